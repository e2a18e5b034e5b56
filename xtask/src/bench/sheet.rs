//! BENCHMARKS.md: which benchmarks are in which table, and how a table is written.

use std::fmt::Write as _;

use super::picture::{self, Line};
use super::records::{Record, Records, Unit};

/// A chapter of BENCHMARKS.md: one file of benchmarks.
pub(super) struct Area {
    pub(super) title: &'static str,
    /// The file.
    pub(super) bench: &'static str,
    /// What it is started with.
    pub(super) arguments: &'static [&'static str],
    /// The kind of guest that it is run in, whose kernel has IPVS.
    pub(super) guest: Option<Guest>,
    text: &'static str,
    /// What the sizes count.
    counted: &'static str,
    table: Table,
    picture: Option<Picture>,
}

/// A kind of guest of `xtask/guest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guest {
    /// User-mode Linux, which sees the machine's files and has `nf_tables` for bridges only.
    Uml,
    /// Debian's cloud kernel, which has everything, where qemu may have to emulate the processor.
    Qemu,
}

pub(super) enum Table {
    /// Our time, the kernel's share of it, and a peer's.
    Peers(&'static [Work]),
    /// Our program and the tool whose place it takes, for all that an area has recorded.
    Tools { area: &'static str },
    /// What several have measured alike: `of` are the second parts of the records' names, `by` the third.
    Beside { area: &'static str, of: &'static [&'static str], by: &'static [&'static str] },
    /// The same, where the first of `by` has its figures and the others how many times as much theirs are: of
    /// each round, so that a load of the machine that all meet has no part in it.
    Against { area: &'static str, of: &'static [&'static str], by: &'static [&'static str] },
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
        guest: None,
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
        title: "The tools",
        bench: "tools",
        arguments: &[],
        guest: None,
        text: "Our program in the place of each tool: the same words and input, by turns, each in a namespace of its own \
               that holds the same; what a command changes is put back. Processor time of the whole process, in user \
               space and in the kernel, so that nothing else that the machine does counts. Ours is the static program \
               that `cargo xtask image tools` builds. `add` and its like are one \
               command beside all of these elements, rules or flows. IPVS is in a chapter of its own.",
        counted: "size",
        table: Table::Tools { area: "tools" },
        picture: None,
    },
    Area {
        title: "Services, nftables mode",
        bench: "proxier",
        arguments: BRIEF,
        guest: None,
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
        guest: None,
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
        guest: None,
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
        guest: None,
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
        guest: Some(Guest::Uml),
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
        guest: Some(Guest::Uml),
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
        guest: None,
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
        guest: None,
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
        guest: None,
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
        guest: None,
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
        title: "Schedulers",
        bench: "schedulers",
        arguments: &[],
        guest: None,
        text: "1,000 services of ten endpoints in the layout `maps`: the processor time of a sync, the kernel's part \
               included, and the elements of the tables. What connections cost is in *Data path*.",
        counted: "services",
        table: Table::Beside {
            area: "schedulers",
            of: &["first sync", "one endpoint changes", "elements"],
            by: SCHEDULERS,
        },
        picture: None,
    },
    Area {
        title: "Schedulers: the kernel's memory",
        bench: "schedulers",
        arguments: &[],
        guest: Some(Guest::Qemu),
        text: "The same in a virtual machine with Debian's 6.1, where nobody else uses the kernel's memory: what the \
               tables take more than those of one service.",
        counted: "services",
        table: Table::Beside {
            area: "schedulers, memory",
            of: &["memory of the kernel's tables"],
            by: SCHEDULERS,
        },
        picture: None,
    },
    Area {
        title: "Schedulers: clients",
        bench: "schedulers",
        arguments: &[],
        guest: None,
        text: "The share of 2,000 clients, of addresses and ports in no order, that another endpoint serves when one of \
               ten goes, for each of the ten, or comes back: at least its own 10 %. The largest share of an endpoint over \
               the mean: of all clients under `maglev`, of these under `source-hash`. Computed by `explain`, which tests \
               compare with packets.",
        counted: "endpoints",
        table: Table::Beside {
            area: "clients",
            of: &["clients that move when one endpoint goes or comes", "largest share over the mean"],
            by: &["source-hash", "maglev", "maglev:1021"],
        },
        picture: None,
    },
    Area {
        title: "Counters",
        bench: "schedulers",
        arguments: &[],
        guest: None,
        text: "What `--service-metrics` costs at 10,000 services of five endpoints: the processor time, the kernel's part \
               included.",
        counted: "services",
        table: Table::Beside {
            area: "counters",
            of: &["first sync", "one endpoint changes", "one reading of all counts"],
            by: &["off", "frontends", "endpoints"],
        },
        picture: None,
    },
    Area {
        title: "Fast path",
        bench: "fastpath",
        arguments: &[],
        guest: Some(Guest::Qemu),
        text: "`--nftables-fastpath-after`, on and off in turn: bytes by TCP and datagrams by UDP from a pod through a \
               Service to an endpoint of another node, in a virtual machine with Debian's 6.1 and one emulated processor, \
               whose clock an instruction moves by a nanosecond. *on* is how many times as much as *off*. Client and \
               server are included: of the node's part alone more is saved.",
        counted: "services",
        table: Table::Against {
            area: "fast path",
            of: &["processor time of 1 GiB by TCP", "MiB a second by TCP", "processor time of a datagram"],
            by: &["off", "on"],
        },
        picture: None,
    },
    Area {
        title: "Data path",
        bench: "data-path",
        arguments: &[],
        guest: None,
        text: "What the rules cost packets, through a node in network namespaces: TCP connections a second, each \
               opened, accepted and closed; the processor time of one, that of client and server included; and \
               the time from the first UDP packet of a connection to its answer. *none* asks the endpoint itself, \
               untracked, and has its figures here; the others have how many times as much theirs are, each in its \
               round, as all take turns. *one rule* is the least that any proxy costs. Affinity is \
               `sessionAffinity: ClientIP`, `maglev` has 31 slots, *counted* is `--service-metrics endpoints`. \
               Three endpoints a service.",
        counted: "services",
        table: Table::Against {
            area: "data path",
            of: DATA_PATH,
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
            title: "Processor time of a TCP connection, to any service",
            lines: &[
                ("nftables, maps", "data path/processor time of a connection: any service/nftables, maps"),
                (
                    "nftables, chains",
                    "data path/processor time of a connection: any service/nftables, chains",
                ),
                ("iptables-nft", "data path/processor time of a connection: any service/iptables-nft"),
                ("iptables-legacy", "data path/processor time of a connection: any service/iptables-legacy"),
                ("none", "data path/processor time of a connection: any service/none"),
            ],
        }),
    },
    Area {
        title: "Data path, with ipvs mode",
        bench: "data-path",
        arguments: &[],
        guest: Some(Guest::Qemu),
        text: "The same in a virtual machine with Debian's 6.1, whose kernel has IPVS as well, and one emulated \
               processor, whose clock an instruction moves by a nanosecond: times are instructions, the same on \
               a busy machine, and without what caches and branches cost. Its columns compare with each other only.",
        counted: "services",
        table: Table::Against {
            area: "data path, guest",
            of: DATA_PATH,
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
                "ipvs",
            ],
        },
        picture: Some(Picture {
            file: "data-path-ipvs.svg",
            title: "Processor time of a TCP connection, in a guest with IPVS",
            lines: &[
                (
                    "nftables, maps",
                    "data path, guest/processor time of a connection: any service/nftables, maps",
                ),
                ("ipvs", "data path, guest/processor time of a connection: any service/ipvs"),
                (
                    "iptables-legacy",
                    "data path, guest/processor time of a connection: any service/iptables-legacy",
                ),
                ("none", "data path, guest/processor time of a connection: any service/none"),
            ],
        }),
    },
];

/// Those of the benchmark `schedulers`.
const SCHEDULERS: &[&str] = &["random", "round-robin", "source-hash", "maglev", "maglev:1021"];

/// What the benchmark `data-path` records.
const DATA_PATH: &[&str] = &[
    "processor time of a connection: any service",
    "processor time of a connection: the last service",
    "processor time of a connection: any service, session affinity",
    "TCP connections: any service",
    "TCP connections: the last service",
    "TCP connections: any, 100 change a second",
    "TCP connections: any service, session affinity",
    "first UDP packet, p50: any service",
    "first UDP packet, p99: any service",
    "first UDP packet, p50: the last service",
    "first UDP packet, p99: the last service",
    "first UDP packet, p50: any, 100 change a second",
    "first UDP packet, p99: any, 100 change a second",
    "first UDP packet, p50: any service, session affinity",
    "first UDP packet, p99: any service, session affinity",
];

/// Returns the whole of BENCHMARKS.md.
pub(super) fn text(records: &Records, facts: &str) -> String {
    format!("{HEAD}\n{facts}") + &AREAS.iter().filter_map(|area| chapter(area, records)).collect::<String>()
}

/// Returns the text of BENCHMARKS.md with the chapters of these areas written anew, or for the first time in the place
/// that they have in a whole report.
pub(super) fn with_chapters<'a>(
    mut report: String,
    areas: impl Iterator<Item = &'a Area>,
    records: &Records,
) -> Result<String, String> {
    let heading = |area: &Area| format!("\n## {}\n", area.title);
    for area in areas {
        let chapter =
            chapter(area, records).ok_or_else(|| format!("{}: nothing was recorded", area.title))?;
        let place = match report.find(&heading(area)) {
            Some(start) => {
                let behind = start + heading(area).len();
                start..report[behind..].find("\n## ").map_or(report.len(), |length| behind + length)
            }
            None => {
                let behind = AREAS.iter().skip_while(|other| other.title != area.title).skip(1);
                let next = behind.map(heading).find_map(|heading| report.find(&heading));
                next.map_or(report.len()..report.len(), |next| next..next)
            }
        };
        report.replace_range(place, &chapter);
    }
    Ok(report)
}

/// Returns the chapter of an area, if anything was recorded of it.
fn chapter(area: &Area, records: &Records) -> Option<String> {
    let table = Some(area.table.text(records, area.counted)).filter(|table| !table.is_empty())?;
    let mut text = format!("\n## {}\n\n{}\n\n", area.title, wrapped(area.text));
    if let Some(picture) = &area.picture {
        let _ = write!(text, "![{}](benches/pictures/{})\n\n", picture.title, picture.file);
    }
    text += &table;
    if area.table.area().is_some_and(|name| records.is_unoptimised(name)) {
        text += "\n(By a build of the profile `dev`: what is not the kernel's takes longer than it would.)\n";
    }
    let guest = if area.guest.is_some() { " --guest" } else { "" };
    let _ = write!(text, "\n`cargo xtask bench {}{guest}` measures this.\n", area.bench);
    Some(text)
}

/// Returns the package that a file of benchmarks belongs to: one that runs a program belongs to that program's.
pub(super) fn package(bench: &str) -> &'static str {
    if bench == "tools" { "sluicegate-tools" } else { "benches" }
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
    /// Returns the area whose records it has, if it is one and what was measured is of the benchmark's profile.
    const fn area(&self) -> Option<&'static str> {
        match self {
            Self::Peers(_) | Self::Tools { .. } => None,
            Self::Beside { area, .. } | Self::Against { area, .. } => Some(area),
        }
    }

    /// Returns the table, or nothing where nothing was recorded.
    pub(super) fn text(&self, records: &Records, counted: &str) -> String {
        let lines = match self {
            Self::Peers(works) => works.iter().flat_map(|work| work.lines(records)).collect(),
            Self::Tools { area } => tools(records, area),
            Self::Beside { area, of, by } => beside(records, area, of, by, |_, record| cell(record)),
            Self::Against { area, of, by } => beside(records, area, of, by, |first, record| match first {
                Some(first) if first != record => times(record, first),
                _ => cell(record),
            }),
        };
        if lines.is_empty() {
            return String::new();
        }
        let head = match self {
            Self::Peers(_) => {
                format!("| | {counted} | sluicegate | the kernel's share | peer | its time | times ours |\n")
                    + "|---|---:|---:|---:|---|---:|---:|\n"
            }
            Self::Tools { .. } => {
                format!(
                    "| | {counted} | sluicegate-tools | the tool | times ours |\n|---|---:|---:|---:|---:|\n"
                )
            }
            Self::Beside { by, .. } | Self::Against { by, .. } => {
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

/// Writes a line for each work of an area, in the order of its records.
fn tools(records: &Records, area: &str) -> Vec<String> {
    let line = |(name, size): (&str, u64)| {
        let what = name.strip_prefix(area)?.strip_prefix('/')?.strip_suffix(OURS)?;
        let ours = records.find(name, size)?;
        let theirs = records.find(&format!("{area}/{what}{THEIRS}"), size)?;
        let times = theirs.median() / ours.median();
        Some(format!("| {what} | {size} | {} | {} | {times:.1} |\n", cell(ours), cell(theirs)))
    };
    records.names().filter_map(line).collect()
}

/// How the records of `benches/tools.rs` of the tools end.
const OURS: &str = "/sluicegate-tools";
const THEIRS: &str = "/the tool";

/// Returns the lines of what several have measured; `cell` is given the first of them as well.
fn beside(
    records: &Records,
    area: &str,
    of: &[&str],
    by: &[&str],
    cell: impl Fn(Option<&Record>, &Record) -> String,
) -> Vec<String> {
    let mut lines = Vec::new();
    for what in of {
        let names: Vec<_> = by.iter().map(|who| format!("{area}/{what}/{who}")).collect();
        for size in records.sizes(names.iter().map(String::as_str)) {
            let found: Vec<_> = names.iter().map(|name| records.find(name, size)).collect();
            let first = found.first().copied().flatten();
            let cells: Vec<_> =
                found.iter().map(|one| one.map(|one| cell(first, one)).unwrap_or_default()).collect();
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
        Unit::Mebibytes => format!("{} MiB", significant(median)),
        Unit::Number => format!("{median:.0}{}", around(format!("{low:.0}"), format!("{high:.0}"))),
        Unit::Percent => format!("{median:.1} %{}", around(format!("{low:.1}"), format!("{high:.1}"))),
        Unit::Times => format!("{median:.3}{}", around(format!("{low:.3}"), format!("{high:.3}"))),
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

/// Writes how many times as much it is as another.
fn times(record: &Record, other: &Record) -> String {
    let [low, median, high] = record.over(other);
    match record.is_single() {
        true => format!("{median:.2}"),
        false => format!("{median:.2} ({low:.2}–{high:.2})"),
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
    fn the_others_stand_against_the_first_round_by_round() {
        let records = records(&[("a/x/one", 10, 2e6), ("a/x/two", 10, 5e6), ("a/x/two", 100, 5e6)]);
        let table = Table::Against { area: "a", of: &["x"], by: &["one", "two"] };
        let lines = "| x | 10 | 2.00 ms | 2.50 |\n| x | 100 |  | 5.00 ms |\n";
        assert!(table.text(&records, "services").ends_with(lines), "{}", table.text(&records, "services"));
    }

    #[test]
    fn a_chapter_that_is_written_anew_leaves_the_others() {
        let records =
            records(&[("tools/nft: list/sluicegate-tools", 10, 2e6), ("tools/nft: list/the tool", 10, 5e6)]);
        let area = || AREAS.iter().filter(|area| area.title == "The tools");
        let before = "# Benchmarks\n\n## One\n\n1\n\n## The tools\n\nstale\n\n## Two\n\n2\n";
        let after = with_chapters(before.to_owned(), area(), &records).unwrap();
        let (head, rest) = after.split_once("\n## The tools\n").unwrap();
        assert_eq!(head, "# Benchmarks\n\n## One\n\n1\n");
        assert!(rest.contains("| nft: list | 10 | 2.00 ms | 5.00 ms | 2.5 |"), "{rest}");
        assert!(!rest.contains("stale") && rest.ends_with("\n\n## Two\n\n2\n"), "{rest}");
        let first = with_chapters("# Benchmarks\n\n## iptables\n\n1\n".to_owned(), area(), &records).unwrap();
        assert!(
            first.starts_with("# Benchmarks\n\n## The tools\n") && first.ends_with("\n\n## iptables\n\n1\n")
        );
    }

    #[test]
    fn tools_are_listed_in_the_order_of_their_records() {
        let records = records(&[
            ("tools/nft: list/sluicegate-tools", 10, 2e6),
            ("tools/nft: list/the tool", 10, 5e6),
            ("tools/ipset: add/sluicegate-tools", 10, 2e3),
            ("tools/ipset: add/the tool", 10, 1e3),
            ("tools/nft: list/sluicegate-tools", 100, 2e6),
        ]);
        assert_eq!(
            tools(&records, "tools"),
            [
                "| nft: list | 10 | 2.00 ms | 5.00 ms | 2.5 |\n",
                "| ipset: add | 10 | 2.00 µs | 1.00 µs | 0.5 |\n",
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
            let folder = if package(area.bench) == "benches" { "benches" } else { "crates/tools" };
            let path = format!("{}/../{folder}/benches/{}.rs", env!("CARGO_MANIFEST_DIR"), area.bench);
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
