//! Where the benchmarks were run: the machine, its kernel, the tools, and how busy it was.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::session::Session;

/// Notes the load of the machine before the benchmarks of a file are run.
pub(super) fn note_load(directory: &Path, bench: &str) -> Result<(), String> {
    let path = directory.join(LOAD);
    let average = fs::read_to_string("/proc/loadavg").map_err(|e| format!("/proc/loadavg: {e}"))?;
    let minute = average.split_whitespace().next().unwrap_or_default();
    let file = fs::File::options().create(true).append(true).open(&path);
    file.and_then(|mut file| writeln!(file, "{bench} {minute}"))
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// Returns what is known of the machine as a Markdown list.
pub(super) fn gather(session: &Session, directory: &Path) -> Result<String, String> {
    let of = |path: &str| fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
    let (processors, memory) = (of("/proc/cpuinfo")?, of("/proc/meminfo")?);
    let count = processors.lines().filter(|line| line.starts_with("processor")).count();
    let model = after(&processors, "model name").unwrap_or("unknown");
    let kilobytes =
        after(&memory, "MemTotal").and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let mut text = format!(
        "- Machine: {count} processors ({model}), {} GiB of memory.\n- Kernel: Linux {}.\n- Compiler: {}, \
         profile `bench`.\n- Tools: {}.\n",
        kilobytes.unwrap_or_default() >> 20,
        // What is behind the version names the build.
        of("/proc/sys/kernel/osrelease")?.split('-').next().unwrap_or_default().trim(),
        first_line(session.cargo().arg("--version")).unwrap_or_else(|| "unknown".to_owned()),
        tools()
    );
    // A report can be made of records whose run was another program's.
    if let Ok(load) = fs::read_to_string(directory.join(LOAD)) {
        let load: Vec<_> = load.lines().filter_map(|line| line.split_once(' ')).collect();
        let words: Vec<_> = load.iter().map(|(bench, load)| format!("{bench} {load}")).collect();
        text += &format!("- Load of the last minute before each file of benches: {}.\n", words.join(", "));
    }
    Ok(text)
}

fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim())
}

/// Returns the versions of the peers that are installed.
fn tools() -> String {
    let known = ["nft", "ipset", "iptables-nft", "iptables-legacy", "ipvsadm", "conntrack"];
    let versions: Vec<_> = known
        .iter()
        .filter_map(|tool| first_line(Command::new(tool).arg("--version")))
        // ipset and nft say more than that.
        .map(|line| line.split([',', '[']).next().unwrap_or_default().trim().to_owned())
        .collect();
    versions.join(", ")
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()?.lines().next().map(str::to_owned)
}

/// Below the directory of records.
const LOAD: &str = "load";
