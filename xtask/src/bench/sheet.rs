//! BENCHMARKS.md: which benchmarks are in which table, and how a table is written.

use std::fmt::Write as _;

use super::picture::{self, Line};
use super::records::{Record, Records, Unit};

/// A chapter of BENCHMARKS.md: one file of benches/benches.
pub(super) struct Area {
    pub(super) title: &'static str,
    /// The file.
    pub(super) bench: &'static str,
    /// What it is started with.
    pub(super) arguments: &'static [&'static str],
    /// Whether it is run in user-mode Linux, whose kernel has IPVS.
    pub(super) in_guest: bool,
    text: &'static str,
    /// What the sizes count.
    counted: &'static str,
    table: Table,
    picture: Option<Picture>,
}

pub(super) enum Table {
    /// Our time, the kernel's share of it, and a peer's.
    Peers(&'static [Work]),
    /// What several have measured alike: `of` are the second parts of the records' names, `by` the third.
    Beside { area: &'static str, of: &'static [&'static str], by: &'static [&'static str] },
}

/// A line of a table, for each size.
pub(super) struct Work {
    what: &'static str,
    /// The name of the record, as for those that follow.
    ours: &'static str,
    kernel: Option<&'static str>,
    /// The peer's name, and that of its record.
    peer: Option<(&'static str, &'static str)>,
}

struct Picture {
    file: &'static str,
    title: &'static str,
    /// Names of lines and of records.
    lines: &'static [(&'static str, &'static str)],
}

/// Short, as ten samples are taken of most. The settings of a benchmark come before these.
const BRIEF: &[&str] = &["--warm-up-time", "0.2", "--measurement-time", "1", "--noplot"];

pub(super) const AREAS: &[Area] = &[
    Area {
        title: "nftables engine",
        bench: "nftables",
        arguments: BRIEF,
        in_guest: false,
        text: "Services with five endpoints each, as elements of two maps: values made, encoded, sent and committed, \
               beside the kernel alone with the same bytes, and `nft -f` with the same text.",
        counted: "services",
        table: Table::Peers(&[
            Work {
                what: "load",
                ours: "nftables kernel/build, encode, send",
                kernel: Some("nftables kernel/kernel alone"),
                peer: Some(("nft -f", "nftables kernel/nft -f")),
            },
            Work {
                what: "replace one endpoint",
                ours: "nftables kernel/change one endpoint",
                kernel: None,
                peer: Some(("nft -f", "nftables kernel/change one endpoint, nft -f")),
            },
            Work { what: "make values", ours: "nftables/build", kernel: None, peer: None },
            Work { what: "encode", ours: "nftables/encode", kernel: None, peer: None },
            Work { what: "print as a script", ours: "nftables/print", kernel: None, peer: None },
            Work { what: "read elements", ours: "nftables kernel/read endpoints", kernel: None, peer: None },
        ]),
        picture: Some(Picture {
            file: "nftables.svg",
            title: "Loading services as map elements",
            lines: &[
                ("sluicegate", "nftables kernel/build, encode, send"),
                ("nft -f", "nftables kernel/nft -f"),
                ("the kernel alone", "nftables kernel/kernel alone"),
            ],
        }),
    },
    Area {
        title: "Services, nftables mode",
        bench: "proxier",
        arguments: BRIEF,
        in_guest: false,
        text: "From the model of a cluster, five endpoints a service, to the kernel. `chains` has the shape of \
               kube-proxy's rules, and its peer is `nft -f` with the same rules as text, which is how kube-proxy \
               loads them.",
        counted: "services",
        table: Table::Peers(&[
            Work {
                what: "first sync, `maps`",
                ours: "proxier/first sync/maps",
                kernel: Some("proxier/first sync/maps, kernel"),
                peer: Some(("nft -f of chains", "proxier/first sync/nft -f of chains")),
            },
            Work {
                what: "first sync, `chains`",
                ours: "proxier/first sync/chains",
                kernel: None,
                peer: Some(("nft -f of chains", "proxier/first sync/nft -f of chains")),
            },
            Work {
                what: "one endpoint changes",
                ours: "proxier/change/one endpoint",
                kernel: None,
                peer: None,
            },
            Work {
                what: "100 services change",
                ours: "proxier/change/100 services",
                kernel: None,
                peer: None,
            },
        ]),
        picture: Some(Picture {
            file: "services.svg",
            title: "First sync by number of services",
            lines: &[
                ("layout maps", "proxier/first sync/maps"),
                ("nft -f, kube-proxy's shape", "proxier/first sync/nft -f of chains"),
                ("layout chains", "proxier/first sync/chains"),
                ("maps: the kernel's share", "proxier/first sync/maps, kernel"),
            ],
        }),
    },
    Area {
        title: "iptables",
        bench: "xtables",
        arguments: &[],
        in_guest: false,
        text: "The rules of kube-proxy's iptables mode, five endpoints a service, restored as a whole and changed by \
               one endpoint, in both back ends. Both take turns in each round. In iptables-legacy the kernel \
               replaces a table whatever changes in it: its share is to give the tables of the change and to take them \
               back. In iptables-nft it validates all rules that packets can reach in a table when one with a verdict \
               is added: its share is one such rule.",
        counted: "services",
        table: Table::Peers(&[
            Work {
                what: "nft: everything",
                ours: "iptables/nft: everything/library",
                kernel: None,
                peer: Some(("iptables-nft-restore", "iptables/nft: everything/iptables-restore")),
            },
            Work {
                what: "nft: one endpoint",
                ours: "iptables/nft: one endpoint/library",
                kernel: Some("iptables/nft: one endpoint/the kernel alone"),
                peer: Some(("iptables-nft-restore", "iptables/nft: one endpoint/iptables-restore")),
            },
            Work {
                what: "legacy: everything",
                ours: "iptables/legacy: everything/library",
                kernel: None,
                peer: Some(("iptables-legacy-restore", "iptables/legacy: everything/iptables-restore")),
            },
            Work {
                what: "legacy: one endpoint",
                ours: "iptables/legacy: one endpoint/library",
                kernel: Some("iptables/legacy: the tables of a change/the kernel alone"),
                peer: Some(("iptables-legacy-restore", "iptables/legacy: one endpoint/iptables-restore")),
            },
        ]),
        picture: Some(Picture {
            file: "iptables.svg",
            title: "Restoring the rules of iptables mode",
            lines: &[
                ("sluicegate, nft", "iptables/nft: everything/library"),
                ("iptables-nft-restore", "iptables/nft: everything/iptables-restore"),
                ("sluicegate, legacy", "iptables/legacy: everything/library"),
                ("iptables-legacy-restore", "iptables/legacy: everything/iptables-restore"),
            ],
        }),
    },
    Area {
        title: "ipset",
        bench: "ipset",
        arguments: BRIEF,
        in_guest: false,
        text: "Entries added to an empty `hash:ip,port` that is large enough.",
        counted: "entries",
        table: Table::Peers(&[
            Work {
                what: "from typed entries",
                ours: "ipset/add hash:ip,port/client",
                kernel: Some("ipset/add hash:ip,port/kernel"),
                peer: Some(("ipset restore", "ipset/add hash:ip,port/ipset restore")),
            },
            Work {
                what: "from text",
                ours: "ipset/add hash:ip,port/client from text",
                kernel: Some("ipset/add hash:ip,port/kernel"),
                peer: Some(("ipset restore", "ipset/add hash:ip,port/ipset restore")),
            },
        ]),
        picture: Some(Picture {
            file: "ipset.svg",
            title: "Adding entries to hash:ip,port",
            lines: &[
                ("sluicegate", "ipset/add hash:ip,port/client"),
                ("ipset restore", "ipset/add hash:ip,port/ipset restore"),
                ("the kernel alone", "ipset/add hash:ip,port/kernel"),
            ],
        }),
    },
    Area {
        title: "IPVS",
        bench: "ipvs",
        arguments: BRIEF,
        in_guest: false,
        text: "The bytes of the commands for services of five destinations each, without a kernel, beside the \
               builders of the crate neli.",
        counted: "services",
        table: Table::Peers(&[Work {
            what: "make commands",
            ours: "ipvs/encode/sluicegate",
            kernel: None,
            peer: Some(("neli", "ipvs/encode/neli")),
        }]),
        picture: None,
    },
    Area {
        title: "IPVS: the kernel's table",
        bench: "ipvs",
        arguments: &["ipvs/kernel", "--noplot"],
        in_guest: true,
        text: "Services of five destinations each, added to an empty table and listed, in user-mode Linux 6.1. System \
               calls take several times as long there as on a machine, for each of the columns.",
        counted: "services",
        table: Table::Peers(&[
            Work {
                what: "add",
                ours: "ipvs/kernel/sluicegate",
                kernel: Some("ipvs/kernel/raw, one send"),
                peer: Some(("ipvsadm -R", "ipvs/kernel/ipvsadm -R")),
            },
            Work {
                what: "list",
                ours: "ipvs/kernel/list, sluicegate",
                kernel: None,
                peer: Some(("ipvsadm -S -n", "ipvs/kernel/list, ipvsadm -S -n")),
            },
        ]),
        picture: None,
    },
    Area {
        title: "Services, ipvs mode",
        bench: "ipvs-mode",
        arguments: &["ipvs-mode/kernel", "--noplot"],
        in_guest: true,
        text: "From the model of a cluster, five endpoints a service, to virtual servers, sets, addresses and \
               rules, in user-mode Linux 6.1. The peer carries out the same plan by starting `ipset`, \
               `ipvsadm` and `ip` for each object, and `iptables-restore` once. The kernel's share is to send \
               the netlink messages of the same sync again, without the rules. Page faults take far longer \
               there than on a machine, which appears as ours.",
        counted: "services",
        table: Table::Peers(&[
            Work {
                what: "first sync",
                ours: "ipvs-mode/kernel/first sync",
                kernel: Some("ipvs-mode/kernel/first sync, the kernel alone"),
                peer: Some((
                    "a program for each object",
                    "ipvs-mode/kernel/first sync, a program for each object",
                )),
            },
            Work {
                what: "one endpoint changes",
                ours: "ipvs-mode/kernel/one endpoint's change",
                kernel: None,
                peer: Some((
                    "a program for each object",
                    "ipvs-mode/kernel/one endpoint's change, a program for each object",
                )),
            },
        ]),
        picture: None,
    },
    Area {
        title: "Connection tracking",
        bench: "conntrack",
        arguments: BRIEF,
        in_guest: false,
        text: "One flow in a hundred belongs to a UDP service that is gone. The tool is started anew each time, as \
               kube-proxy once did.",
        counted: "flows",
        table: Table::Peers(&[
            Work {
                what: "delete one service's",
                ours: "conntrack/among/delete one service's",
                kernel: None,
                peer: Some(("conntrack -D", "conntrack/among/conntrack -D -p udp -d 10.96.0.1 --dport 53")),
            },
            Work {
                what: "list all",
                ours: "conntrack/among/list all",
                kernel: None,
                peer: Some(("conntrack -L", "conntrack/among/conntrack -L")),
            },
        ]),
        picture: None,
    },
    Area {
        title: "The daemon under churn",
        bench: "churn",
        arguments: &[],
        in_guest: false,
        text: "The processor time a second of the daemon in nftables mode while one endpoint changes 50 times a \
               second, by the least time between two syncs; 10 ms are 1 % of a processor. *nft -f* gets the \
               changes of each second in kube-proxy's layout: what kube-proxy starts, without its own work.",
        counted: "services",
        table: Table::Beside {
            area: "churn",
            of: &["processor time a second, 50 changes a second"],
            by: &["ours, 50ms", "ours, 1s", "nft -f, kube-proxy's layout, 1s"],
        },
        picture: None,
    },
    Area {
        title: "Reading manifests",
        bench: "manifests",
        arguments: &[],
        in_guest: false,
        text: "The processor time a service, with its five endpoints, from text as kubectl prints it to the objects of \
               the API. serde_yaml gives no places for errors.",
        counted: "services",
        table: Table::Beside {
            area: "manifests",
            of: &["read"],
            by: &["ours, documents", "ours, a list", "ours, JSON", "serde_yaml"],
        },
        picture: None,
    },
    Area {
        title: "A folder of manifests",
        bench: "folder",
        arguments: &[],
        in_guest: false,
        text: "One file a service, of which one changes: until its object is told to the run loop, of which 10 ms are the \
               wait for a moment without events, and the processor time that it takes.",
        counted: "files",
        table: Table::Beside {
            area: "folder",
            of: &["change a file"],
            by: &["until it is told", "processor time"],
        },
        picture: None,
    },
    Area {
        title: "Data path",
        bench: "data-path",
        arguments: &[],
        in_guest: false,
        text: "What the rules cost packets, through a node in network namespaces: TCP connections a second, each \
               opened, accepted and closed, and the time from the first UDP packet of a connection to its answer. \
               *none* asks the endpoint itself, *one rule* is the least that any proxy costs; neither depends on \
               the number of services.",
        counted: "services",
        table: Table::Beside {
            area: "data path",
            of: &[
                "TCP connections: the last service",
                "TCP connections: any service",
                "TCP connections: any, 100 change a second",
                "TCP connections: any service, session affinity",
                "first UDP packet: the last service",
                "first UDP packet: any service",
                "first UDP packet: any, 100 change a second",
                "first UDP packet: any service, session affinity",
            ],
            by: &[
                "none",
                "one rule",
                "nftables, maps",
                "maps, source-hash",
                "maps, maglev",
                "maps, counted",
                "nftables, chains",
                "iptables-nft",
                "iptables-legacy",
            ],
        },
        picture: Some(Picture {
            file: "data-path.svg",
            title: "First UDP packet of a connection, to any service",
            lines: &[
                ("nftables, maps", "data path/first UDP packet: any service/nftables, maps"),
                ("nftables, chains", "data path/first UDP packet: any service/nftables, chains"),
                ("iptables-nft", "data path/first UDP packet: any service/iptables-nft"),
                ("iptables-legacy", "data path/first UDP packet: any service/iptables-legacy"),
            ],
        }),
    },
    Area {
        title: "Data path, ipvs mode",
        bench: "data-path",
        arguments: &[],
        in_guest: true,
        text: "The same in user-mode Linux 6.1, which has IPVS and iptables-legacy, and one processor: its columns \
               compare with each other only.",
        counted: "services",
        table: Table::Beside {
            area: "data path, guest",
            of: &[
                "TCP connections: the last service",
                "TCP connections: any service",
                "TCP connections: any, 100 change a second",
                "TCP connections: any service, session affinity",
                "first UDP packet: the last service",
                "first UDP packet: any service",
                "first UDP packet: any, 100 change a second",
                "first UDP packet: any service, session affinity",
            ],
            by: &["none", "iptables-legacy", "ipvs"],
        },
        picture: None,
    },
];

/// Returns the whole of BENCHMARKS.md.
pub(super) fn text(records: &Records, facts: &str) -> String {
    let mut text = format!("{HEAD}\n{facts}");
    for area in AREAS {
        let table = area.table.text(records, area.counted);
        if table.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {}\n\n{}\n\n", area.title, wrapped(area.text));
        if let Some(picture) = &area.picture {
            let _ = write!(text, "![{}](benches/pictures/{})\n\n", picture.title, picture.file);
        }
        text += &table;
        let guest = if area.in_guest { " --guest" } else { "" };
        let _ = write!(text, "\n`cargo xtask bench {}{guest}` measures this.\n", area.bench);
    }
    text
}

impl Area {
    /// Returns the name and the text of the picture, if there is one and anything to be seen on it.
    pub(super) fn picture(&self, records: &Records) -> Option<(&'static str, String)> {
        let picture = self.picture.as_ref()?;
        #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
        let points = |name| records.growth(name).iter().map(|one| (one.size as f64, one.median())).collect();
        let lines: Vec<_> =
            picture.lines.iter().map(|(name, record)| Line { name, points: points(record) }).collect();
        Some((picture.file, picture::draw(picture.title, self.counted, &lines)?))
    }
}

impl Table {
    /// Returns the table, or nothing where nothing was recorded.
    pub(super) fn text(&self, records: &Records, counted: &str) -> String {
        let lines = match self {
            Self::Peers(works) => works.iter().flat_map(|work| work.lines(records)).collect(),
            Self::Beside { area, of, by } => beside(records, area, of, by),
        };
        if lines.is_empty() {
            return String::new();
        }
        let head = match self {
            Self::Peers(_) => {
                format!("| | {counted} | sluicegate | the kernel's share | peer | its time | times ours |\n")
                    + "|---|---:|---:|---:|---|---:|---:|\n"
            }
            Self::Beside { by, .. } => {
                let columns = "---:|".repeat(by.len());
                format!("| | {counted} | {} |\n|---|---:|{columns}\n", by.join(" | "))
            }
        };
        head + &lines.concat()
    }
}

impl Work {
    fn lines(&self, records: &Records) -> Vec<String> {
        let line = |size| {
            let ours = records.find(self.ours, size)?;
            let kernel = self.kernel.and_then(|name| records.find(name, size));
            let peer = self.peer.and_then(|(name, record)| Some((name, records.find(record, size)?)));
            let mut line = format!("| {} | {size} | {} | ", self.what, cell(ours));
            line += &kernel.map(cell).unwrap_or_default();
            line += &match peer {
                Some((name, theirs)) => {
                    format!(" | `{name}` | {} | {:.1} |", cell(theirs), theirs.median() / ours.median())
                }
                None => " | | | |".to_owned(),
            };
            Some(line + "\n")
        };
        records.sizes([self.ours]).into_iter().filter_map(line).collect()
    }
}

fn beside(records: &Records, area: &str, of: &[&str], by: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for what in of {
        let names: Vec<_> = by.iter().map(|who| format!("{area}/{what}/{who}")).collect();
        for size in records.sizes(names.iter().map(String::as_str)) {
            let cells: Vec<_> =
                names.iter().map(|name| records.find(name, size).map(cell).unwrap_or_default()).collect();
            lines.push(format!("| {what} | {size} | {} |\n", cells.join(" | ")));
        }
    }
    lines
}

/// Writes the median and the quartiles around it.
fn cell(record: &Record) -> String {
    let [low, median, high] = record.quartiles();
    let around = |low: String, high: String| match record.is_single() {
        true => String::new(),
        false => format!(" ({low}–{high})"),
    };
    match record.unit {
        Unit::PerSecond => format!("{median:.0}/s{}", around(format!("{low:.0}"), format!("{high:.0}"))),
        Unit::Mebibytes => format!("{median:.0} MiB"),
        Unit::Nanoseconds => {
            let (divisor, unit) = match median {
                ns if ns < 1e3 => (1.0, "ns"),
                ns if ns < 1e6 => (1e3, "µs"),
                ns if ns < 1e9 => (1e6, "ms"),
                _ => (1e9, "s"),
            };
            let [low, median, high] = [low, median, high].map(|ns| significant(ns / divisor));
            format!("{median} {unit}{}", around(low, high))
        }
    }
}

/// Writes three digits of a number.
fn significant(number: f64) -> String {
    match number {
        number if number < 10.0 => format!("{number:.2}"),
        number if number < 100.0 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

/// Breaks a text into lines as long as those of this repository.
pub(super) fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        if lines
            .last()
            .is_some_and(|line| !line.is_empty() && line.chars().count() + word.chars().count() >= 109)
        {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

const HEAD: &str = "\
# Benchmarks

Written by `cargo xtask bench` from what the benchmarks recorded; no number here is typed. Each cell is the
median, and in brackets the first and the third quartile. *The kernel's share* is what the kernel takes for
the same bytes by itself: nobody can be faster. *Times ours* is the peer's median divided by ours, of the
same run. Peers are started as their users start them, so a tool's time has the start of its process in it.
Where a tool takes many seconds it is left out; `SLUICEGATE_BENCH_ALL` has it run as well.
Of two or three rounds the brackets have the least and the greatest: where they overlap, there is no difference.
";

#[cfg(test)]
mod tests {
    use super::super::records::tests::records;
    use super::*;

    #[test]
    fn a_line_has_the_peer_beside_our_time() {
        let work = Work { what: "load", ours: "a", kernel: Some("k"), peer: Some(("nft -f", "b")) };
        let records = records(&[("a", 10, 2e6), ("k", 10, 1.5e6), ("b", 10, 5e6), ("a", 100, 3.0)]);
        assert_eq!(
            work.lines(&records),
            [
                "| load | 10 | 2.00 ms | 1.50 ms | `nft -f` | 5.00 ms | 2.5 |\n",
                "| load | 100 | 3.00 ns |  | | | |\n",
            ]
        );
    }

    #[test]
    fn an_area_without_records_is_left_out() {
        let text =
            text(&records(&[("ipvs/encode/neli", 10, 1.0), ("ipvs/encode/sluicegate", 10, 1.0)]), "- x\n");
        assert!(text.contains("## IPVS") && !text.contains("## ipset"), "{text}");
    }

    #[test]
    fn every_file_of_an_area_exists() {
        for area in AREAS {
            let path = format!("{}/../benches/benches/{}.rs", env!("CARGO_MANIFEST_DIR"), area.bench);
            assert!(std::path::Path::new(&path).exists(), "{path}");
        }
    }

    #[test]
    fn lines_are_not_longer_than_elsewhere() {
        for area in AREAS {
            assert!(wrapped(area.text).lines().all(|line| line.chars().count() <= 110), "{}", area.title);
        }
    }
}
