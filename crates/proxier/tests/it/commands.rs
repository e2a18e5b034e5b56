//! What holds for every command: no panic where nobody reads or the disk is full, one form of JSON each, help
//! that fits the terminal, and statuses that say what happened.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::status::{Directory, Running};

const EXAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../service-rules/testdata/kube-proxy/services.yaml");

/// One command line for each subcommand that prints something and ends by itself.
const COMMANDS: [&[&str]; 12] = [
    &["render", "--manifests", EXAMPLE],
    &["sync", "--hostname-override", "node", "--manifests", EXAMPLE],
    &["run", "--version=true"],
    &["diff", "--hostname-override", "node", "--manifests", EXAMPLE],
    &["cleanup", "--proxy-mode", "nftables"],
    &["doctor"],
    &["check", "--manifests", EXAMPLE],
    &["explain", "--from", "10.0.0.1", "--to", "172.30.10.1:80/tcp", "--manifests", EXAMPLE],
    &["status", "--metrics-bind-address", "127.0.0.1:1"],
    &["completions", "bash"],
    &["complete", "sluicegate-proxier", "explain", "--manifests", EXAMPLE, "--to", ""],
    &["man"],
];

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
    command.args(words).stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    command(words).output().expect("the binary can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("a device that is full")
}

/// The subcommands that the help names.
fn subcommands() -> Vec<String> {
    let help = text(&run(&["--help"]).stdout);
    let commands = help.split_once("Commands:\n").expect("a list of commands").1;
    let commands = commands.split("\n\n").next().unwrap_or_default();
    let name = |line: &str| {
        line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split(' ').next().map(str::to_owned)
    };
    commands.lines().filter_map(name).filter(|name| name != "help").collect()
}

#[test]
fn the_table_has_every_command() {
    let named = subcommands();
    for name in &named {
        assert!(COMMANDS.iter().any(|words| words[0] == name), "{name} is not among them");
    }
    let hidden = COMMANDS.iter().filter(|words| !named.iter().any(|name| name == words[0]));
    assert_eq!(hidden.map(|words| words[0]).collect::<Vec<_>>(), ["completions", "complete", "man"]);
}

#[test]
fn no_command_panics_where_nobody_reads_or_nothing_can_be_written() {
    testns::netns(|| {
        let helps = COMMANDS.iter().map(|words| vec![words[0], "--help"]);
        let all = COMMANDS.iter().map(|words| words.to_vec()).chain(helps).chain([
            vec!["--help"],
            vec!["--version"],
            vec!["render", "--proxy-mode", "iptables", "--manifests", EXAMPLE],
            vec!["render", "--proxy-mode", "ipvs", "--manifests", EXAMPLE],
            vec!["check", "--output", "json", "--manifests", EXAMPLE],
            vec!["doctor", "--output", "json", "--manifests", EXAMPLE],
            vec!["sync", "--output", "json", "--hostname-override", "node", "--manifests", EXAMPLE],
        ]);
        for words in all {
            let is_usage = words.contains(&"--help") || words.contains(&"--version");
            let usual = run(&words).status.code();
            // Before a change: the second sync would have nothing to say.
            let full_disk = command(&words).stdout(full()).output().expect("it starts");
            let said = text(&full_disk.stderr);
            assert!(!said.contains("panicked"), "{words:?}: {said}");
            // There is no difference, and no daemon to ask.
            let nothing_said = ["diff", "status"].contains(&words[0]);
            if !nothing_said {
                assert_eq!(full_disk.status.code(), Some(1), "{words:?} on a full disk: {said}");
                assert!(said.contains("standard output: "), "{words:?}: {said}");
            }
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            let closed = command(&words).stdout(writer).output().expect("it starts");
            let said = text(&closed.stderr);
            assert!(!said.contains("panicked") && !said.contains("standard output"), "{words:?}: {said}");
            if is_usage || words[0] != "doctor" {
                assert_eq!(closed.status.code(), usual, "{words:?} without a reader: {said}");
            }
            let silent = command(&words).stderr(full()).stdout(Stdio::null()).status().expect("it starts");
            assert_eq!(silent.code(), usual, "{words:?} with standard error on a full disk");
        }
        // What goes wrong is told on standard error, or nowhere.
        for words in [&["render"][..], &["nosuch"], &["check", "--manifests", "/nowhere"], &["man", "nosuch"]]
        {
            let failed = command(words).stderr(full()).stdout(full()).status().expect("it starts").code();
            assert!(matches!(failed, Some(1 | 2)), "{words:?}: {failed:?}");
        }
    });
}

#[test]
fn help_fits_the_terminal() {
    for words in COMMANDS.iter().map(|words| vec![words[0], "--help"]).chain([vec!["--help"]]) {
        for columns in [60_usize, 80, 132] {
            let output = command(&words)
                .env("COLUMNS", columns.to_string())
                .output()
                .expect("the binary can be started");
            assert!(output.status.success());
            for line in text(&output.stdout).lines() {
                // The names of flags and of their values are never broken, nor are examples.
                let is_name = line.trim_start().starts_with(['-', '$']) || line.starts_with("Usage: ");
                assert!(line.chars().count() <= columns || is_name, "{words:?} at {columns}: {line}");
            }
        }
    }
}

#[test]
fn tables_fit_the_terminal_and_are_lines_for_grep_elsewhere() {
    testns::netns(|| {
        for columns in [60_usize, 80, 132] {
            let output =
                command(&["doctor"]).env("COLUMNS", columns.to_string()).output().expect("it starts");
            let table = text(&output.stdout);
            let table: Vec<_> = table.lines().filter(|line| line.starts_with(['│', '┌', '╞', '└'])).collect();
            assert!(table.len() > 10, "{table:?}");
            assert!(table.iter().all(|line| line.chars().count() <= columns), "{columns}: {table:#?}");
        }
        let whole = text(&command(&["doctor"]).env_remove("COLUMNS").output().expect("it starts").stdout);
        let row = whole.lines().find(|line| line.contains("CAP_NET_ADMIN")).expect("a row");
        assert_eq!(row.matches(['│', '┆']).count(), 5, "{row}");
    });
}

#[test]
fn help_has_groups_and_examples() {
    for words in COMMANDS.iter().filter(|words| !["completions", "complete", "man"].contains(&words[0])) {
        let help = text(&run(&[words[0], "--help"]).stdout);
        assert!(help.contains("\nExamples:\n") && help.contains("\nExit status:\n"), "{help}");
    }
    let help = text(&run(&["run", "--help"]).stdout);
    for group in ["Objects", "This node", "Rules", "Rules of ipvs mode", "Periods", "Connection tracking"] {
        assert!(help.contains(&format!("\n{group}:\n")), "{group}: {help}");
    }
}

/// The fields of each object are those that the README describes.
#[test]
fn json_has_the_fields_that_the_readme_names() {
    let readme = include_str!("../../README.md");
    let node = ["--hostname-override", "node", "--manifests", EXAMPLE, "-o", "json"];
    testns::netns(|| {
        for name in ["check", "sync", "diff", "doctor", "explain", "cleanup"] {
            let words = match name {
                "cleanup" => vec![name, "--proxy-mode", "nftables", "-o", "json"],
                "explain" => {
                    [&[name, "--from", "10.0.0.1", "--to", "172.30.10.1:80/tcp"], &node[..]].concat()
                }
                _ => [&[name][..], &node].concat(),
            };
            let output = run(&words);
            let value: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|error| panic!("{words:?}: {error}: {}", text(&output.stderr)));
            let described = readme.split_once(&format!("| `{name}` | ")).expect("a row for the command").1;
            let described = described.lines().next().unwrap_or_default();
            for field in value.as_object().expect("an object").keys() {
                assert!(
                    described.contains(&format!("`{field}`")),
                    "{field} of {name} is not in: {described}"
                );
            }
            match name {
                "check" => {
                    let ports = value["ports"].as_array().expect("a list");
                    let web = ports.iter().find(|port| port["name"] == "demo/web:http").expect("a port");
                    assert_eq!((&web["port"], &web["endpoints"]), (&80.into(), &2.into()));
                    assert_eq!((&web["protocol"], &web["clusterIP"]), (&"tcp".into(), &"172.30.10.1".into()));
                }
                "sync" => assert_eq!((&value["changed"], &value["mode"]), (&true.into(), &"nftables".into())),
                "diff" => assert_eq!((&value["changed"], &value["script"]), (&false.into(), &"".into())),
                "explain" => {
                    let frontend = &value["frontend"];
                    let named = (&frontend["service"], &frontend["port"], &frontend["kinds"][0]);
                    assert_eq!(named, (&"demo/web".into(), &"http".into(), &"cluster IP".into()));
                    assert_eq!(value["verdict"]["choices"][0]["probability"], 0.5);
                }
                "doctor" => assert_eq!(value["modes"].as_array().map(Vec::len), Some(3)),
                _ => assert_eq!(value["removed"].as_array().map(Vec::len), Some(2), "{value}"),
            }
        }
    });
}

/// What a shell offers for the last of these words, in the order of names. It is in a directory that has
/// `services.yaml` and nothing else of a name without a point.
const OFFERED: &[(&[&str], &[&str])] = &[
    (&["sta"], &["status"]),
    (&["status", "--o"], &["--output"]),
    (&["run", "--allow"], &["--allow-empty"]),
    (&["sync", "--proxy-m"], &["--proxy-mode"]),
    (&["sync", "--proxy-mode", ""], &["iptables", "ipvs", "nftables"]),
    (&["run", "--proxy-mode", "ip"], &["iptables", "ipvs"]),
    (&["doctor", "--proxy-mode", "nft"], &["nftables"]),
    (&["render", "--layout", ""], &["chains", "maps"]),
    (&["diff", "--masquerade-all", ""], &["false", "true"]),
    (&["run", "--detect-local-mode", "Node"], &["NodeCIDR"]),
    (&["run", "--service-metrics", ""], &["endpoints", "frontends", "off"]),
    (&["explain", "--nftables-scheduler", "r"], &["random", "round-robin"]),
    (&["run", "--ipvs-scheduler", "wl"], &["wlc"]),
    (&["check", "--nodeport-addresses", "p"], &["primary"]),
    (&["check", "--output", ""], &["json", "text"]),
    (&["check", "--manifests", "ser"], &["services.yaml"]),
    (&["sync", "--config", "ser"], &["services.yaml"]),
];

/// What a shell offers of names, where a daemon has the example's services and `services.yaml` is the example.
const NAMED: &[(&[&str], &[&str])] = &[
    (&["status", "demo/d"], &["demo/dns"]),
    (&["status", "ap"], &["api"]),
    (&["status", "--endpoints", "demo/dns", "demo/w"], &["demo/web"]),
    (&["status", "--metrics-bind-address", "127.0.0.1:1", "demo/w"], &[]),
    (&["status", "nosuch"], &[]),
    (&["explain", "--to", "172.30.10.3"], &["172.30.10.3:53/udp"]),
    (&["explain", "--from", "10.244.1"], &["10.244.1.10", "10.244.1.20"]),
    (&["explain", "--manifests", "node.yaml", "--to", "[fd"], &["[fd00::10]:80/tcp"]),
    (&["explain", "--manifests", "node.yaml", "services.yaml", "--to=5"], &["--to=5.6.7.8:443/tcp"]),
    (
        &[
            "explain",
            "--manifests",
            "node.yaml",
            "services.yaml",
            "--hostname-override",
            "one",
            "--to",
            "192.168.0",
        ],
        &["192.168.0.2:31443/tcp"],
    ),
    (&["run", "--manifests", "node.yaml", "--hostname-override", "t"], &["two"]),
    (&["explain", "--interface", "l"], &["lo"]),
    (&["check", "--manifests", "ser"], &["services.yaml"]),
];

/// A name that a shell would take for more than a word is there, and is not offered.
const NODES: &str = "\
    {apiVersion: v1, kind: Node, metadata: {name: one}, status: {addresses: [{type: InternalIP, address: 192.168.0.2}]}}\n\
    ---\n\
    {apiVersion: v1, kind: Node, metadata: {name: two}}\n\
    ---\n\
    {apiVersion: v1, kind: Node, metadata: {name: 't;reboot'}}\n\
    ---\n\
    apiVersion: v1\n\
    kind: Service\n\
    metadata: {namespace: demo, name: six}\n\
    spec: {clusterIP: 'fd00::10', clusterIPs: ['fd00::10'], ipFamilies: [IPv6], ports: [{port: 80}]}\n";

/// Compares the names that a shell offers. `step` is 1, or more for a shell that takes long to start.
fn compare_names(
    shell: &str,
    script: &str,
    step: usize,
    drive: impl Fn(&std::path::Path, &[&str]) -> Command + Sync,
) {
    testns::netns(|| {
        let folder = Directory::new(&format!("names-{shell}"));
        folder.write(script, &text(&run(&["completions", shell]).stdout));
        folder.write("services.yaml", &std::fs::read_to_string(EXAMPLE).expect("the example"));
        folder.write("node.yaml", NODES);
        let manifests = folder.0.join("services.yaml");
        let mut daemon = command(&["run", "--hostname-override", "node", "--manifests"]);
        daemon.arg(manifests).stdout(Stdio::null()).stderr(Stdio::null());
        let _daemon = Running(daemon.spawn().expect("it starts"));
        let end = Instant::now() + Duration::from_secs(30);
        while !text(&run(&["status"]).stdout).starts_with("ready") {
            assert!(Instant::now() < end, "the daemon is not ready");
            std::thread::sleep(Duration::from_millis(50));
        }
        for (words, expected) in NAMED.iter().step_by(step) {
            let offered = offered(&folder.0, drive(&folder.0, words), words);
            // Some names are those of options as well, which are offered where there is nothing else.
            let offered: Vec<_> =
                offered.iter().filter(|name| !expected.is_empty() || !name.starts_with('-')).collect();
            assert_eq!(offered, *expected, "{shell} offers for {words:?}");
        }
    });
}

/// Runs what drives a shell in the folder, with the program where a shell looks for it, and returns what is offered,
/// in the order of names.
fn offered(folder: &std::path::Path, mut command: Command, words: &[&str]) -> Vec<String> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
    let path = program.parent().expect("a folder").display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    command
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder)
        .env("TERM", "dumb")
        .stdin(Stdio::null());
    let output = command.output().expect("the shell can be started");
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {}", text(&output.stderr));
    let output = text(&output.stdout);
    let words = output.lines().filter_map(|line| line.split_whitespace().next());
    let mut offered: Vec<_> = words.map(str::to_owned).collect();
    offered.sort_unstable();
    offered.dedup();
    offered
}

/// Compares what a shell offers: `drive` gets the directory of `OFFERED`, where `script` is the name of the
/// shell's script, and the words.
fn compare_offers(shell: &str, script: &str, drive: impl Fn(&std::path::Path, &[&str]) -> Command) {
    let folder = std::env::temp_dir().join(format!("sluicegate-{shell}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a directory");
    std::fs::write(folder.join(script), run(&["completions", shell]).stdout).expect("a file");
    std::fs::write(folder.join("services.yaml"), "").expect("a file");
    for (words, expected) in OFFERED {
        let offered = offered(&folder, drive(&folder, words), words);
        assert_eq!(offered, *expected, "{shell} offers for {words:?}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

fn bash(words: &[&str]) -> Command {
    // What readline replaces begins behind `:` or `=`, and is printed with what stands before it.
    let drive = r#"
        . ./.script
        compopt() { :; } # it complains where no key was pressed
        COMP_WORDS=(sluicegate-proxier "$@"); COMP_CWORD=$#; COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
        function=$(complete -p sluicegate-proxier | sed -n 's/.*-F \([^ ]*\).*/\1/p')
        last=${COMP_WORDS[COMP_CWORD]}
        "$function" sluicegate-proxier "$last" "${COMP_WORDS[COMP_CWORD - 1]}"
        kept=
        [[ $last == *[:=]* ]] && kept=${last%"${last##*[:=]}"}
        for offered in "${COMPREPLY[@]}"; do printf '%s\n' "$kept$offered"; done"#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", drive, "-"]).args(words);
    bash
}

fn fish(words: &[&str]) -> Command {
    let mut fish = Command::new("fish");
    let line = format!("sluicegate-proxier {}", words.join(" "));
    fish.args(["--no-config", "-c", &format!("source .script; complete -C {line:?}")]);
    fish
}

fn zsh(folder: &std::path::Path, words: &[&str]) -> Command {
    testns::zsh(folder, &format!("sluicegate-proxier {}", words.join(" ")))
}

#[test]
fn bash_offers_subcommands_their_options_and_the_values_of_these() {
    compare_offers("bash", ".script", |_, words| bash(words));
}

#[test]
fn bash_offers_the_names_that_there_are() {
    compare_names("bash", ".script", 1, |_, words| bash(words));
}

#[test]
fn fish_offers_subcommands_their_options_and_the_values_of_these() {
    if testns::have(&["fish"]) {
        compare_offers("fish", ".script", |_, words| fish(words));
    }
}

#[test]
fn fish_offers_the_names_that_there_are() {
    if testns::have(&["fish"]) {
        compare_names("fish", ".script", 1, |_, words| fish(words));
    }
}

#[test]
fn zsh_offers_subcommands_their_options_and_the_values_of_these() {
    if testns::have(&["zsh"]) {
        compare_offers("zsh", "_sluicegate-proxier", zsh);
    }
}

#[test]
fn zsh_offers_the_names_that_there_are() {
    if testns::have(&["zsh"]) {
        compare_names("zsh", "_sluicegate-proxier", 3, zsh);
    }
}

#[test]
fn the_status_of_diff_says_whether_there_is_a_difference() {
    testns::netns(|| {
        for mode in ["nftables", "iptables"] {
            if mode == "iptables" && !testns::have(&["iptables-nft-restore"]) {
                continue;
            }
            let words = |first: &'static str, more: &[&'static str]| -> Vec<&'static str> {
                let mode = ["--proxy-mode", mode, "--hostname-override", "node", "--manifests", EXAMPLE];
                let nft = ["--iptables-backend", "nft"];
                [&[first][..], &mode, if mode[1] == "iptables" { &nft[..] } else { &[] }, more].concat()
            };
            let status = |words: &[&str]| run(words).status.code();
            assert_eq!(status(&words("diff", &["--exit-code"])), Some(1), "{mode}");
            assert_eq!(status(&words("diff", &[])), Some(0), "{mode}");
            assert_eq!(status(&words("sync", &[])), Some(0), "{mode}");
            assert_eq!(status(&words("diff", &["--exit-code"])), Some(0), "{mode}");
            assert_eq!(status(&["diff", "--exit-code", "--manifests", "/nowhere"]), Some(2));
            assert_eq!(status(&["diff", "--manifests", "/nowhere"]), Some(1));
        }
    });
}

#[test]
fn manifests_are_read_from_standard_input() {
    let manifests = std::fs::read(EXAMPLE).expect("the example");
    let feed = |words: &[&str], input: &[u8]| {
        let mut child = command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        child.stdin.take().expect("a pipe").write_all(input).expect("it is read");
        child.wait_with_output().expect("it ends")
    };
    for name in ["render", "check"] {
        let from_file = run(&[name, "--manifests", EXAMPLE]);
        let from_input = feed(&[name, "--manifests", "-"], &manifests);
        assert_eq!(text(&from_input.stdout), text(&from_file.stdout), "{name}");
        assert_eq!(from_input.status.code(), from_file.status.code(), "{name}");
    }
    let json = br#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}}"#;
    assert!(
        text(&feed(&["check", "--manifests", "-", EXAMPLE], json).stdout)
            .contains("default/a 10.0.0.1:80/tcp: 0 endpoints")
    );
    let wrong = feed(&["render", "--manifests", "-"], b"apiVersion: v1\nkind: Service\nspec: {ports: 80}\n");
    assert!(text(&wrong.stderr).contains("standard input, document 1, line 3"), "{}", text(&wrong.stderr));
    testns::netns(|| {
        let followed = run(&[
            "run",
            "--hostname-override",
            "node",
            "--healthz-bind-address",
            "",
            "--metrics-bind-address",
            "",
            "--manifests",
            "-",
        ]);
        assert_eq!(followed.status.code(), Some(1));
        assert!(text(&followed.stderr).contains("--manifests -: "), "{}", text(&followed.stderr));
    });
}

#[test]
fn shells_and_man_are_given_their_pages() {
    for (shell, part) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef sluicegate-proxier"),
        ("fish", "complete -c sluicegate-proxier"),
    ] {
        let script = text(&run(&["completions", shell]).stdout);
        assert!(script.contains(part) && script.contains("nodeport-addresses"), "{shell}: {script:.200}");
    }
    let page = text(&run(&["man"]).stdout);
    assert!(page.contains(".TH sluicegate-proxier 1") && page.contains(".SH NAME"), "{page:.400}");
    assert!(page.contains(".SH \"EXIT STATUS\"") && page.contains(".SH EXAMPLES"), "{page}");
    for name in subcommands() {
        let page = text(&run(&["man", &name]).stdout);
        assert!(page.contains(&format!(".TH sluicegate-proxier-{name} 1")), "{name}: {page:.400}");
    }
}

#[test]
fn doctor_ends_with_what_it_found_and_exits_so() {
    testns::netns(|| {
        let doctor = |forward: &str, words: &[&str]| {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", forward).expect("a sysctl");
            std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", forward).expect("a sysctl");
            let output = run(&[&["doctor"], words].concat());
            let last: Vec<_> = text(&output.stdout).lines().rev().take(3).map(str::to_owned).collect();
            (output.status.code(), last)
        };
        let (status, last) = doctor("0", &[]);
        assert_eq!(status, Some(1), "{last:?}");
        assert!(last.iter().all(|line| line.contains("net.ipv4.ip_forward")), "{last:?}");
        let (status, last) = doctor("1", &["--proxy-mode", "nftables"]);
        assert!(!last[0].contains("ip_forward"), "{last:?}");
        let is_well = !last[0].contains("fault") && !last[0].contains("missing");
        assert_eq!(status, Some(i32::from(!is_well)), "{last:?}");
        assert!(last[0].starts_with("nftables mode: works"), "{last:?}");
    });
}

#[test]
fn one_is_not_many() {
    let one = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}\n---\n\
        apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a, labels: {kubernetes.io/service-name: a}}\n\
        addressType: IPv4\nports: [{port: 8080}]\nendpoints: [{addresses: [10.244.0.1]}]\n";
    let path = std::env::temp_dir().join(format!("sluicegate-one-{}.yaml", std::process::id()));
    std::fs::write(&path, one).expect("a temporary file");
    let path = path.to_str().expect("text");
    let checked = text(&run(&["check", "--manifests", path]).stdout);
    assert!(checked.contains(": 1 endpoint, 1 of them ready, 0 of them here"), "{checked}");
    testns::netns(|| {
        let synced = text(&run(&["sync", "--hostname-override", "node", "--manifests", path]).stdout);
        assert!(synced.starts_with("1 service: "), "{synced}");
        let words: Vec<_> = synced.split([' ', ',', ';', '\n']).collect();
        for pair in words.windows(2).filter(|pair| pair[0] == "1") {
            assert!(!pair[1].ends_with('s'), "{synced}");
        }
        let synced = text(&run(&["sync", "--hostname-override", "node", "--manifests", EXAMPLE]).stdout);
        assert!(synced.contains(" services: "), "{synced}");
    });
    // A file that is left behind harms nobody.
    let _ = std::fs::remove_file(path);
}
