//! This program beside each tool whose place it takes: the same words and input, in turns, each in a network
//! namespace of its own that holds the same.
//!
//!     cargo bench -p sluicegate-tools --bench tools
//!
//! Times are processor time, in user space and in the kernel, of the whole process from its start to its end:
//! what else the machine does makes neither of the two slower. Where a command changes something, it is put
//! back before the next round, which is not timed.
//!
//! `SLUICEGATE_BENCH_ROUNDS` says how many rounds (5) what takes long is measured, the rest four times as many;
//! a word on the command line is a part of the names of what is measured. `SLUICEGATE_TOOLS` is the path of
//! another build of this program.

use std::fmt::Write as _;
use std::time::Duration;

use benches::record::{self, Unit};
use benches::timing::{is_measuring, time_of_tool};
use testns::Netns;

fn main() {
    let size = |usual: u32| if is_measuring() { usual } else { 100 };
    println!("{:>8} {:<44} {:>10} {:>10} {:>6}", "size", "", "ours, ms", "tool, ms", "times");
    nft_elements(size(100_000));
    nft_intervals(size(30_000));
    nft_rules(size(30_000));
    for back_end in ["nft", "legacy"] {
        iptables(back_end, size(50_000), size(10_000));
    }
    ipset(size(100_000));
    conntrack(size(10_000));
}

fn nft_elements(size: u32) {
    let elements: Vec<_> = (0..size).map(|n| address(n).to_string()).collect();
    // nft 1.0.6 takes no brace behind another without the end of a line.
    let elements = elements.join(", ");
    let set = format!("table ip t {{\nset s {{\ntype ipv4_addr\nelements = {{ {elements} }}\n}}\n}}");
    let Some(both) = Both::new("nft", "nft", size, &set, "nft -f -") else { return };
    both.large("set: script", "-f -", &format!("table ip t\ndelete table ip t\n{set}"));
    both.large("set: list", "list set ip t s", "");
    both.large("set: list as JSON", "-j list set ip t s", "");
    let one = format!("element ip t s {{ {} }}", address(size / 2));
    both.small("set: get an element", &format!("get {one}"), "");
    both.small("set: delete an element", &format!("delete {one}"), &format!("nft add {one}"));
    both.small("set: add an element", &format!("add {one}"), "");
}

fn nft_intervals(size: u32) {
    let ranges: Vec<_> = (0..size).map(|n| format!("{}-{}", address(4 * n), address(4 * n + 1))).collect();
    let ranges = ranges.join(", ");
    let set =
        format!("table ip t {{\nset s {{\ntype ipv4_addr\nflags interval\nelements = {{ {ranges} }}\n}}\n}}");
    let Some(both) = Both::new("nft", "nft", size, &set, "nft -f -") else { return };
    both.large("intervals: script", "-f -", &format!("table ip t\ndelete table ip t\n{set}"));
    both.large("intervals: list", "list set ip t s", "");
    let (range, inside) = (format!("{}-{}", address(2), address(3)), address(4 * (size / 2)));
    let undo = format!("nft delete element ip t s {{ {range} }}");
    both.small("intervals: get one", &format!("get element ip t s {{ {inside} }}"), "");
    both.small("intervals: add one", &format!("add element ip t s {{ {range} }}"), &undo);
}

fn nft_rules(size: u32) {
    let mut rules = "table ip t {\nchain c {\n".to_owned();
    for n in 0..size {
        let port = 1 + n % 60_000;
        let _ =
            writeln!(rules, "ip saddr {} tcp dport {port} counter accept comment \"rule {n}\"", address(n));
    }
    rules += "}\nchain d {\nip saddr 192.0.2.1 accept\n}\n}";
    let Some(both) = Both::new("nft", "nft", size, &rules, "nft -f -") else { return };
    both.large("rules: script", "-f -", &format!("table ip t\ndelete table ip t\n{rules}"));
    both.large("rules: list", "list table ip t", "");
    both.large("rules: list as JSON", "-j list table ip t", "");
    both.small(
        "beside rules: add one",
        "add rule ip t d ip saddr 192.0.2.2 accept",
        "nft flush chain ip t d",
    );
    both.small("beside rules: insert one in their chain", "insert rule ip t c accept", "");
    both.small("beside rules: list another chain", "list chain ip t d", "");
    both.small("beside rules: list tables", "list tables", "");
}

/// `many` rules in chains of ten, and beside them, in a table of its own, a chain of `few`.
fn iptables(back_end: &str, many: u32, few: u32) {
    let mut chains = String::new();
    let mut rules = String::new();
    for n in 0..many {
        if n % 10 == 0 {
            let _ = writeln!(chains, ":CHAIN-{} - [0:0]", n / 10);
        }
        let (chain, address, port) = (n / 10, address(n), 1 + n % 60_000);
        let words = format!("-s {address}/32 -p tcp -m comment --comment \"rule {n}\" -m tcp --dport {port}");
        let _ = writeln!(rules, "-A CHAIN-{chain} {words} -j ACCEPT");
    }
    let many_rules = format!("*filter\n{chains}{rules}COMMIT\n");
    let mut few_rules = "*mangle\n:FEW - [0:0]\n".to_owned();
    for n in 0..few {
        let _ = writeln!(few_rules, "-A FEW -s {}/32 -p tcp -m tcp --dport 80 -j ACCEPT", address(n));
    }
    few_rules += "COMMIT\n";
    let program = format!("iptables-{back_end}");
    let restore = format!("{program}-restore");
    let input = format!("{many_rules}{few_rules}");
    let name = |what: &str| format!("{back_end}: {what}");
    let Some(mut both) = Both::new(&program, &restore, few, &input, &restore) else { return };
    both.large(&name("restore"), "", &few_rules);
    both.tool = program.clone();
    let at = few / 2;
    let one = |at| format!("FEW -t mangle -s {}/32 -p tcp -m tcp --dport 80 -j ACCEPT", address(at));
    both.small(&name("check a rule"), &format!("-C {}", one(at)), "");
    let other = one(few + 1);
    both.small(&name("add a rule"), &format!("-A {other}"), &format!("{program} -D {other}"));
    both.small(&name("insert a rule"), &format!("-I {other}"), &format!("{program} -D {other}"));
    let last = one(few - 1);
    both.small(&name("delete the last rule"), &format!("-D {last}"), &format!("{program} -A {last}"));
    both.large(&name("-L -n"), "-t mangle -L FEW -n", "");
    both.large(&name("-S"), "-t mangle -S", "");
    both.size = many;
    // One in the middle, however few there are.
    let chain = format!("CHAIN-{}", many / 20);
    both.small(&name("-S CHAIN"), &format!("-S {chain}"), "");
    both.small(&name("-L CHAIN -n"), &format!("-L {chain} -n"), "");
    both.small(&name("new chain"), "-N NEW", &format!("{program} -X NEW"));
    both.small(
        &name("-A in a small chain"),
        &format!("-A {chain} -j DROP"),
        &format!("{program} -D {chain} -j DROP"),
    );
    both.tool = restore;
    both.large(&name("restore"), "", &many_rules);
    let change = format!("*filter\n-F {chain}\n-A {chain} -s 192.0.2.1/32 -j DROP\nCOMMIT\n");
    both.small(&name("restore a chain"), "--noflush", &format!("\n{change}"));
    both.tool = format!("{program}-save");
    both.large(&name("save"), "-t filter", "");
}

fn ipset(size: u32) {
    let mut input = format!("create s hash:ip,port maxelem {}\n", 2 * size);
    for n in 0..size {
        let _ = writeln!(input, "add s {},tcp:{}", address(n), 1 + n % 60_000);
    }
    let Some(both) = Both::new("ipset", "ipset", size, &input, "ipset restore") else { return };
    both.large("restore", "restore -exist", &format!("\nflush s\n{input}"));
    both.large("save", "save", "");
    both.large("list", "list s", "");
    both.small("list -terse", "list -terse", "");
    both.small("test an entry", &format!("test s {},tcp:8", address(7)), "");
    both.small("add an entry", "add s 192.0.2.1,tcp:1", "ipset del s 192.0.2.1,tcp:1");
}

fn conntrack(size: u32) {
    let mut input = String::new();
    for n in 0..size {
        let (source, port) = (address(n), 1 + n % 60_000);
        let words = "-p udp --dport 53 -t 3600 -d 192.0.2.53";
        let _ = writeln!(input, "-I {words} -s {source} --sport {port}");
    }
    let Some(both) = Both::new("conntrack", "conntrack", size, &input, "conntrack -R -") else { return };
    let one = format!("-p udp --dport 53 -d 192.0.2.53 -s {} --sport 8", address(7));
    both.large("-L", "-L", "");
    both.large("-L of one client", &format!("-L -s {}", address(7)), "");
    both.small("-G", &format!("-G {one}"), "");
    both.small("-C", "-C", "");
    both.small("-D", &format!("-D {one}"), &format!("conntrack -I -t 3600 {one}"));
}

/// Two namespaces with the same in them, one for each.
struct Both {
    ours: Netns,
    theirs: Netns,
    /// What belongs together in the table.
    area: &'static str,
    tool: String,
    size: u32,
}

impl Both {
    /// Makes two namespaces, with what the tool makes of this input.
    fn new(area: &str, tool: &str, size: u32, input: &str, command: &str) -> Option<Self> {
        let area = match area {
            "nft" => "nft",
            "ipset" => "ipset",
            "conntrack" => "conntrack",
            _ => "iptables",
        };
        if !wanted(area) || !testns::have(&[tool]) {
            return None;
        }
        let both = Self { ours: Netns::new()?, theirs: Netns::new()?, area, tool: tool.to_owned(), size };
        for namespace in [&both.ours, &both.theirs] {
            let _ = namespace.run_here(|| time_of_tool(command, input));
        }
        Some(both)
    }

    /// Measures a command with an input.
    fn large(&self, what: &str, words: &str, input: &str) {
        self.compare(what, words, input, "", rounds());
    }

    /// Measures a command more often; `beside` is its input, or if it is one line, the tool's command that takes it
    /// back.
    fn small(&self, what: &str, words: &str, beside: &str) {
        let (input, undo) = if beside.contains('\n') { (beside, "") } else { ("", beside) };
        self.compare(what, words, input, undo, 4 * rounds());
    }

    fn compare(&self, what: &str, words: &str, input: &str, undo: &str, rounds: usize) {
        let run = |namespace: &Netns, program: &str| {
            namespace.run_here(|| {
                let took = time_of_tool(&format!("{program} {words}"), input);
                if !undo.is_empty() {
                    let _ = time_of_tool(undo, "");
                }
                took
            })
        };
        let path = std::env::var("SLUICEGATE_TOOLS");
        let program = path.as_deref().unwrap_or(env!("CARGO_BIN_EXE_sluicegate-tools"));
        let program = format!("{program} {}", self.tool);
        let (mut ours, mut theirs): (Vec<_>, Vec<_>) =
            (0..rounds).map(|_| (run(&self.ours, &program), run(&self.theirs, &self.tool))).unzip();
        self.keep(what, "sluicegate-tools", &ours);
        self.keep(what, "the tool", &theirs);
        let (ours, theirs) = (median(&mut ours), median(&mut theirs));
        let name = format!("{}: {what}", self.area);
        println!("{:>8} {name:<44} {ours:>10.2} {theirs:>10.2} {:>6.2}", self.size, theirs / ours);
    }

    fn keep(&self, what: &str, who: &str, times: &[Duration]) {
        let samples: Vec<_> = times.iter().map(|time| time.as_secs_f64() * 1e9).collect();
        let what = format!("{}: {what}", self.area);
        record::keep("tools", &what, who, self.size, Unit::Nanoseconds, &samples);
    }
}

/// Says whether the command line asks for these: without any word for all.
fn wanted(area: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--")).peekable();
    words.peek().is_none() || words.any(|word| area.contains(&word))
}

/// Returns one address of 10.0.0.0/8: those of higher numbers come after those of lower ones.
fn address(n: u32) -> std::net::Ipv4Addr {
    (0x0a00_0000 | (n & 0x00ff_ffff)).into()
}

fn rounds() -> usize {
    let rounds = std::env::var("SLUICEGATE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    if is_measuring() { rounds.unwrap_or(5) } else { 1 }
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}
