//! What campaigns of fuzzing came to: the table of `fuzz/RESULTS.md`, a line for each target.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// One campaign without a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Campaign {
    pub(super) seconds: u64,
    pub(super) runs: u64,
    /// libFuzzer's `cov`: the edges of the program that inputs reached.
    pub(super) edges: u64,
    /// libFuzzer's `ft`: edges with how often, comparisons and the like.
    features: u64,
    /// The inputs that reach them.
    inputs: u64,
}

impl Campaign {
    /// Reads libFuzzer's output, whose last lines are
    /// `#20000 DONE   cov: 955 ft: 2310 corp: 310/12Kb lim: 4096 exec/s: 10000 rss: 60Mb` and
    /// `Done 20000 runs in 2 second(s)`.
    pub(super) fn of_log(log: &str) -> Option<Self> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let last = words(log.lines().rev().find(|line| line.starts_with('#') && line.contains("cov: "))?);
        let behind = |name: &str| {
            let at = last.iter().position(|word| word == name)?;
            last.get(at + 1)?.split('/').next()?.parse().ok()
        };
        let done = words(log.lines().rev().find(|line| line.starts_with("Done "))?);
        Some(Self {
            seconds: done.get(4)?.parse().ok()?,
            runs: done.get(1)?.parse().ok()?,
            edges: behind("cov:")?,
            features: behind("ft:")?,
            inputs: behind("corp:")?,
        })
    }
}

/// The last campaign of each target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Results(BTreeMap<String, Campaign>);

impl Results {
    /// Reads the file. It need not exist.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = if path.exists() { std::fs::read_to_string(path) } else { Ok(String::new()) };
        Self::parse(&text.map_err(|e| format!("{}: {e}", path.display()))?)
            .map_err(|line| format!("{}: not a line of results: {line}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, &str> {
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        let results = rows.map(|line| {
            let cells: Vec<_> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let [_, target, numbers @ .., _] = &cells[..] else { return Err(line) };
            let numbers: Vec<u64> =
                numbers.iter().map(|cell| cell.parse()).collect::<Result<_, _>>().map_err(|_| line)?;
            let [seconds, runs, edges, features, inputs] = numbers[..] else { return Err(line) };
            Ok(((*target).to_owned(), Campaign { seconds, runs, edges, features, inputs }))
        });
        results.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn set(&mut self, target: &str, campaign: Campaign) {
        self.0.insert(target.to_owned(), campaign);
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        self.0.iter().try_for_each(|(target, Campaign { seconds, runs, edges, features, inputs })| {
            writeln!(f, "| `{target}` | {seconds} | {runs} | {edges} | {features} | {inputs} |")
        })
    }
}

const HEAD: &str = "\
# Results of fuzzing

The last campaign of each target, written by `cargo xtask fuzz`, without a failure: what fails is in
`regressions/` with its fix. Edges and features are libFuzzer's `cov` and `ft`, inputs those that reach them.

| target | seconds | runs | edges | features | inputs |
|---|---:|---:|---:|---:|---:|
";

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 40Mb
#1024\tNEW    cov: 900 ft: 2000 corp: 300/11Kb lim: 4096 exec/s: 0 rss: 60Mb L: 5/32 MS: 1 ChangeBit-
#20000\tDONE   cov: 955 ft: 2310 corp: 310/12Kb lim: 4096 exec/s: 10000 rss: 60Mb
###### Recommended dictionary. ######
Done 20000 runs in 2 second(s)
";

    #[test]
    fn the_output_of_libfuzzer_is_read() {
        let campaign = Campaign { seconds: 2, runs: 20_000, edges: 955, features: 2310, inputs: 310 };
        assert_eq!(Campaign::of_log(LOG), Some(campaign));
        let (begun, _) = LOG.split_once("###").unwrap();
        assert_eq!(Campaign::of_log(begun), None);
    }

    #[test]
    fn the_table_is_read_as_it_is_written() {
        let mut results = Results::default();
        results.set("nft-text", Campaign::of_log(LOG).unwrap());
        results.set("ipvs", Campaign::default());
        let text = results.to_string();
        assert_eq!(Results::parse(&text), Ok(results));
        assert!(
            text.ends_with("| `ipvs` | 0 | 0 | 0 | 0 | 0 |\n| `nft-text` | 2 | 20000 | 955 | 2310 | 310 |\n")
        );
        assert_eq!(Results::parse("| `a` | 1 | 2 |"), Err("| `a` | 1 | 2 |"));
    }
}
