//! What benchmarks have recorded: lines of JSON (`benches::record`), and the files of criterion.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The samples of one measurement.
#[derive(Debug, PartialEq)]
pub(super) struct Record {
    /// The parts of its name, with slashes: group and function of criterion, or area, work and who did it.
    pub(super) name: String,
    /// How much was worked on.
    pub(super) size: u64,
    pub(super) unit: Unit,
    /// Whether the benchmark was built without optimisation.
    pub(super) is_unoptimised: bool,
    samples: Vec<f64>,
}

/// What a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Nanoseconds,
    PerSecond,
    Mebibytes,
    Number,
    Percent,
    Times,
}

impl Record {
    /// Returns whether there is one sample, around which there is nothing.
    pub(super) fn is_single(&self) -> bool {
        self.samples.len() == 1
    }

    /// Returns the median with the first and the third quartile around it: of three samples, the least and
    /// the greatest.
    pub(super) fn quartiles(&self) -> [f64; 3] {
        quartiles(self.samples.iter().copied())
    }

    /// Returns the quartiles of how many times the other one's sample each of its is.
    pub(super) fn over(&self, other: &Self) -> [f64; 3] {
        quartiles(self.samples.iter().zip(&other.samples).map(|(of, by)| of / by))
    }

    pub(super) fn median(&self) -> f64 {
        self.quartiles()[1]
    }
}

fn quartiles(samples: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut sorted: Vec<_> = samples.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    [last / 4, last / 2, last - last / 4].map(|at| sorted.get(at).copied().unwrap_or(0.0))
}

/// All records of a run.
#[derive(Debug, Default)]
pub(super) struct Records(Vec<Record>);

impl Records {
    /// Reads the records below a directory.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        let mut records = Self::default();
        records.take(directory)?;
        Ok(records)
    }

    /// The area of the records of [`of_figures`](Self::of_figures).
    pub(super) const BESIDE: &str = "beside kube-proxy";

    /// Reads figures that are kept as data: runs of several proxies, with a field for each figure.
    pub(super) fn of_figures(text: &str) -> Result<Self, String> {
        let value = parse(text)?;
        let runs = value["runs"].as_array().ok_or("no runs")?;
        let mut records = Vec::new();
        for run in runs {
            let size = run["services"].as_u64().ok_or("no services")?;
            let proxy = self::text(run, "proxy")?;
            for (what, field, factor, unit) in FIGURES {
                let figure = run[field].as_f64().ok_or_else(|| format!("no {field}"))?;
                let name = [Self::BESIDE, what, proxy].join("/");
                records.push(Record {
                    name,
                    size,
                    unit,
                    is_unoptimised: false,
                    samples: vec![figure * factor],
                });
            }
        }
        Ok(Self(records))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether something of an area was measured by a build without optimisation.
    pub(super) fn is_unoptimised(&self, area: &str) -> bool {
        let of_area =
            |record: &&Record| record.name.strip_prefix(area).is_some_and(|rest| rest.starts_with('/'));
        self.0.iter().filter(of_area).any(|record| record.is_unoptimised)
    }

    pub(super) fn find(&self, name: &str, size: u64) -> Option<&Record> {
        self.0.iter().find(|record| record.name == name && record.size == size)
    }

    /// Returns the sizes that were measured under any of these names.
    pub(super) fn sizes<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> BTreeSet<u64> {
        let names: BTreeSet<_> = names.into_iter().collect();
        self.0
            .iter()
            .filter(|record| names.contains(record.name.as_str()))
            .map(|record| record.size)
            .collect()
    }

    /// Returns the name and the size of each record, in the order in which they were recorded.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|record| (record.name.as_str(), record.size))
    }

    /// Returns the records of one name, by size.
    pub(super) fn growth(&self, name: &str) -> Vec<&Record> {
        self.sizes([name]).into_iter().filter_map(|size| self.find(name, size)).collect()
    }

    fn take(&mut self, directory: &Path) -> Result<(), String> {
        let fail = |e: std::io::Error| format!("{}: {e}", directory.display());
        let entries = fs::read_dir(directory).map_err(fail)?;
        for entry in entries {
            let path = entry.map_err(fail)?.path();
            let is = |name: &str| path.file_name().is_some_and(|found| found == name);
            if path.is_dir() {
                self.take(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                for line in read(&path)?.lines() {
                    self.0.push(of_line(line).map_err(|e| format!("{}: {e}", path.display()))?);
                }
            } else if is("benchmark.json") && directory.ends_with("new") {
                let samples = read(&directory.join("sample.json"))?;
                let record = of_criterion(&read(&path)?, &samples);
                self.0.extend(record.map_err(|e| format!("{}: {e}", directory.display()))?);
            }
        }
        Ok(())
    }
}

/// What the fields of [`Records::of_figures`] are, and how many of the unit one is.
const FIGURES: [(&str, &str, f64, Unit); 7] = [
    ("start to programmed", "start_to_programmed_s", 1e9, Unit::Nanoseconds),
    ("processor time of the start", "cpu_of_start_s", 1e9, Unit::Nanoseconds),
    ("most memory (RSS)", "rss_max_mib", 1.0, Unit::Mebibytes),
    ("one endpoint replaced", "single_change_median_ms", 1e6, Unit::Nanoseconds),
    ("processor time of a change", "cpu_per_change_ms", 1e6, Unit::Nanoseconds),
    ("50 changes a second, each: median", "lag_at_50_changes_per_s_median_ms", 1e6, Unit::Nanoseconds),
    ("50 changes a second, each: 99th percentile", "lag_p99_ms", 1e6, Unit::Nanoseconds),
];

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn of_line(line: &str) -> Result<Record, String> {
    let value = parse(line)?;
    let unit = match text(&value, "unit")? {
        "ns" => Unit::Nanoseconds,
        "1/s" => Unit::PerSecond,
        "MiB" => Unit::Mebibytes,
        "1" => Unit::Number,
        "%" => Unit::Percent,
        "x" => Unit::Times,
        other => return Err(format!("expected the unit ns, 1/s, MiB, 1, % or x, found {other}")),
    };
    let name = [text(&value, "area")?, text(&value, "what")?, text(&value, "who")?].join("/");
    let size = value["size"].as_u64().ok_or_else(|| format!("no size: {line}"))?;
    let is_unoptimised = value["profile"] == "dev";
    Ok(Record { name, size, unit, is_unoptimised, samples: numbers(&value, "samples")? })
}

/// Reads what criterion 0.7 writes: `benchmark.json` and `sample.json`. A benchmark without a number is none
/// of growth.
fn of_criterion(benchmark: &str, sample: &str) -> Result<Option<Record>, String> {
    let (benchmark, sample) = (parse(benchmark)?, parse(sample)?);
    let Some(size) = benchmark["value_str"].as_str().and_then(|size| size.parse().ok()) else {
        return Ok(None);
    };
    let name = [text(&benchmark, "group_id")?, text(&benchmark, "function_id")?].join("/");
    let (rounds, times) = (numbers(&sample, "iters")?, numbers(&sample, "times")?);
    let samples = rounds.iter().zip(&times).map(|(rounds, time)| time / rounds).collect();
    Ok(Some(Record { name, size, unit: Unit::Nanoseconds, is_unoptimised: false, samples }))
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value[field].as_str().ok_or_else(|| format!("no {field}"))
}

fn numbers(value: &Value, field: &str) -> Result<Vec<f64>, String> {
    let list = value[field].as_array().ok_or_else(|| format!("no {field}"))?;
    list.iter()
        .map(|number| number.as_f64().ok_or_else(|| format!("{field}: {number} is not a number")))
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes records of one sample each.
    pub(in crate::bench) fn records(all: &[(&str, u64, f64)]) -> Records {
        let record = |(name, size, sample): &(&str, u64, f64)| Record {
            name: (*name).to_owned(),
            size: *size,
            unit: Unit::Nanoseconds,
            is_unoptimised: false,
            samples: vec![*sample],
        };
        Records(all.iter().map(record).collect())
    }

    #[test]
    fn a_line_of_the_benches_is_read() {
        let line = r#"{"area":"iptables","what":"everything","who":"library","size":10,"unit":"ns","samples":[3,1,2]}"#;
        let record = of_line(line).unwrap();
        assert_eq!((record.name.as_str(), record.size), ("iptables/everything/library", 10));
        assert_eq!(record.median(), 2.0);
    }

    #[test]
    fn times_of_criterion_are_divided_by_their_rounds() {
        let benchmark = r#"{"group_id":"g","function_id":"f","value_str":"100"}"#;
        let sample = r#"{"sampling_mode":"Flat","iters":[2.0,4.0],"times":[20.0,80.0]}"#;
        let record = of_criterion(benchmark, sample).unwrap().unwrap();
        assert_eq!((record.name.as_str(), record.size, record.samples), ("g/f", 100, vec![10.0, 20.0]));
    }

    #[test]
    fn quartiles_are_around_the_median() {
        let samples = vec![5.0, 1.0, 4.0, 2.0, 3.0];
        let record =
            Record { name: String::new(), size: 1, unit: Unit::PerSecond, is_unoptimised: false, samples };
        assert_eq!(record.quartiles(), [2.0, 3.0, 4.0]);
    }
}
