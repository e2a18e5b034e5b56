//! Figures that take an API server and kube-proxy, and so are kept as data with where they come from: a chapter
//! of BENCHMARKS.md and its pictures.

use std::fmt::Write as _;

use super::picture::{self, Line};
use super::records::Records;
use super::sheet::{Table, wrapped};

/// Returns the chapter.
pub(super) fn chapter() -> Result<String, String> {
    let records = records()?;
    let mut text = format!("\n## Beside kube-proxy\n\n{}\n\n", wrapped(TEXT));
    for picture in &PICTURES {
        let _ = write!(text, "![{}](benches/pictures/{})\n\n", picture.title, picture.file);
    }
    text += &Table::Beside { area: Records::BESIDE, of: &OF, by: &BY }.text(&records, COUNTED);
    text += "\n`benches/figures/beside-kube-proxy.json` has these figures, and how they were measured.\n";
    Ok(text)
}

/// Returns the names and the texts of the pictures.
pub(super) fn pictures() -> Result<Vec<(&'static str, String)>, String> {
    let records = records()?;
    let draw = |picture: &Picture| {
        let line = |name: &&'static str| {
            let found = records.growth(&format!("{}/{}/{name}", Records::BESIDE, picture.of));
            #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
            let points = found.iter().map(|one| (one.size as f64, one.median())).collect();
            Line { name, points }
        };
        let lines: Vec<_> = BY.iter().map(line).collect();
        Some((picture.file, picture::draw(picture.title, COUNTED, &lines)?))
    };
    Ok(PICTURES.iter().filter_map(draw).collect())
}

fn records() -> Result<Records, String> {
    Records::of_figures(include_str!("../../../benches/figures/beside-kube-proxy.json"))
        .map_err(|error| format!("benches/figures/beside-kube-proxy.json: {error}"))
}

struct Picture {
    file: &'static str,
    title: &'static str,
    of: &'static str,
}

const COUNTED: &str = "services";
const PICTURES: [Picture; 2] = [
    Picture {
        file: "kube-proxy-start.svg",
        title: "From the start of the proxy to its rules",
        of: "start to programmed",
    },
    Picture {
        file: "kube-proxy-change.svg",
        title: "One endpoint replaced, until the kernel has it",
        of: "one endpoint replaced",
    },
];
const OF: [&str; 7] = [
    "start to programmed",
    "processor time of the start",
    "most memory (RSS)",
    "one endpoint replaced",
    "processor time of a change",
    "50 changes a second, each: median",
    "50 changes a second, each: 99th percentile",
];
const BY: [&str; 3] = ["sluicegate, maps", "kube-proxy, nftables", "kube-proxy, iptables-nft"];
const TEXT: &str = "sluicegate and kube-proxy 1.36.2, one after the other in one sitting on the same machine, with \
                    the objects of a real API server (kube-apiserver 1.36.2, etcd 3.6), five endpoints a service, \
                    cluster IPs of IPv4, no affinity, each with its default `minSyncPeriod` (kube-proxy 1 s, \
                    sluicegate 50 ms): 2 processors (Intel Xeon, virtual), Linux 6.18, nft 1.0.6, iptables 1.8.9 \
                    (nf_tables). Each figure is of one run, and these are not measured again by `cargo xtask bench`. \
                    A change is a PUT of an EndpointSlice until the kernel's event names the new address; about 4.5 \
                    ms of it are the API server's. Of kube-proxy's 5.4 s at 10,000 services 5.3 s are `nft list \
                    table`, which its version 1.37 no longer starts; that was not measured. Its memory is without \
                    the children that it starts. The start of iptables mode is `iptables-restore` 1.8.9.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_each_size_of_each_proxy() {
        let chapter = chapter().unwrap();
        let rows: Vec<_> =
            chapter.lines().filter(|line| line.starts_with("| ") && !line.contains("---")).collect();
        // And the head.
        assert_eq!(rows.len(), 1 + OF.len() * 3, "{chapter}");
        assert!(rows.iter().skip(1).all(|row| !row.contains("|  |")), "{chapter}");
        assert!(rows.contains(&"| start to programmed | 10000 | 1.06 s | 16.5 s | 498 s |"), "{chapter}");
        assert!(wrapped(TEXT).lines().all(|line| line.chars().count() <= 110));
        assert_eq!(pictures().unwrap().len(), PICTURES.len());
    }
}
