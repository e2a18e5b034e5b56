//! The check `image`: builds the image, and runs it as `deploy/` does.
//!
//! `umoci` unpacks it and `runc` runs it, as container runtimes do: in a network namespace of its own, with a
//! read-only root, as a user who is not root, with `CAP_NET_ADMIN` alone. It has to answer `/healthz`, and to
//! lead a connection to a service to its endpoint. What it is not given it must name.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::geteuid;
use serde_json::{Value, json};
use testns::Netns;

use super::bill::Bill;
use super::elsewhere::{self, Twice};
use super::{
    Built, FEATURES, LICENCES, PACKAGE, TOOLS, bill_name, build_tools, gather, megabytes, package, target,
    tools,
};
use crate::report::Outcome;
use crate::session::{Session, on_path, works};

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    let Twice { cargo, here, elsewhere, named } = elsewhere::build(session)?;
    let mut outcome = Outcome::passed();
    let (first, second) = (package(session, &here)?, read(&elsewhere)?);
    let (first, built) = (read(&first.archive)?, package(session, &elsewhere)?);
    let mut expect = |what: &str, is_so: bool| {
        if is_so { outcome.passed += 1 } else { outcome.failures.push(what.to_owned()) }
    };
    expect("the program is the same when it is built in a folder of another name", read(&here)? == second);
    expect("the image of either program is the same", read(&built.archive)? == first);
    expect(&format!("the program names no folder of this machine, found {named:?}"), named.is_empty());
    expect(
        &format!("the image is below {:.0} MB, found {:.1}", megabytes(LARGEST), megabytes(built.size)),
        built.size < LARGEST,
    );
    // As for a release, of either program.
    let (tools, built_tools) = (tools(session)?, build_tools(session)?);
    let sums =
        |program: &Path| read(&gather(session, program, &built, &tools, &built_tools)?.join("SHA256SUMS"));
    let files = sums(&here)?;
    expect("the files of a release are the same", files == sums(&elsewhere)?);
    let files = String::from_utf8_lossy(&files).into_owned();
    // A subcommand of the proxier has a page of its own.
    let of_run = files.contains(&format!("  ./man1/{PACKAGE}-run.1\n"));
    expect("the page of a subcommand is among the files of a release", of_run);
    for name in [PACKAGE, TOOLS] {
        for file in [
            name.to_owned(),
            format!("{name}.tar"),
            bill_name(name),
            format!("{LICENCES}-{name}"),
            format!("man1/{name}.1"),
            format!("completions/{name}"),
            format!("completions/_{name}"),
            format!("completions/{name}.fish"),
        ] {
            let is_there = files.lines().any(|line| line.ends_with(&format!("  ./{file}")));
            expect(&format!("{file} is among the files of a release"), is_there);
        }
    }
    let bill = Bill::of(session, PACKAGE, FEATURES)?;
    let (listed, compiled) = (bill.crates(), compiled(cargo, session)?);
    let odd: Vec<_> = listed.symmetric_difference(&compiled).collect();
    expect(
        &format!("the bill names the crates that were compiled and no others, found {odd:?}"),
        odd.is_empty(),
    );
    if works("python3", &["-c", "import jsonschema"]) {
        let said = schema_refuses(session, &bill)?;
        expect(&format!("the bill is as CycloneDX asks, found {said}"), said == "valid");
    } else {
        outcome.skips.push("python3-jsonschema is missing, which judges the bill of materials".to_owned());
    }
    match run_it(session, &built)? {
        Ran::Here(results) => results.iter().for_each(|(what, is_so)| expect(what, *is_so)),
        Ran::NotHere(why) => outcome.add(Outcome::skipped(why)),
    }
    if outcome.failures.is_empty() {
        elsewhere::remove(session)?;
    }
    Ok(outcome)
}

/// Returns the crates that the compiler was given for the program, as cargo tells when it is asked again.
fn compiled(mut cargo: Command, session: &Session) -> Result<BTreeSet<(String, String)>, String> {
    cargo.args(["--quiet", "--message-format", "json-render-diagnostics"]);
    // What is compiled for the machine that builds (macros, build scripts) lies elsewhere.
    let folder = session.target().join(target());
    let mut crates = BTreeSet::new();
    for line in output(&mut cargo)?.lines() {
        let message: Value = serde_json::from_str(line).map_err(|error| format!("cargo build: {error}"))?;
        let file = message["filenames"][0].as_str().unwrap_or_default();
        if message["reason"] != "compiler-artifact" || !Path::new(file).starts_with(&folder) {
            continue;
        }
        let id = message["package_id"].as_str().unwrap_or_default();
        let named = id.rsplit_once('#').and_then(|(_, named)| named.split_once('@'));
        let (name, version) = named.ok_or_else(|| format!("expected NAME@VERSION in {id}"))?;
        crates.insert((name.to_owned(), version.to_owned()));
    }
    crates.retain(|(name, _)| name != PACKAGE);
    Ok(crates)
}

/// Returns what the schema of `CycloneDX` says about the bill.
fn schema_refuses(session: &Session, bill: &Bill) -> Result<String, String> {
    let path = session.scratch.join("bill.json");
    fs::write(&path, bill.cyclonedx().to_string()).map_err(|error| format!("{}: {error}", path.display()))?;
    let schema = session.root.join("xtask/testdata/cyclonedx/bom-1.4.schema.json");
    Ok(output(Command::new("python3").args(["-c", VALIDATE]).arg(schema).arg(path))?.trim().to_owned())
}

enum Ran {
    /// What was expected, and whether it is so.
    Here(Vec<(String, bool)>),
    /// Why it cannot run.
    NotHere(String),
}

fn run_it(session: &Session, built: &Built) -> Result<Ran, String> {
    let missing: Vec<_> = ["umoci", "runc", "ip"].into_iter().filter(|tool| !on_path(tool)).collect();
    if !missing.is_empty() {
        let why = format!("{} missing (Debian: umoci runc iproute2)", missing.join(" and "));
        return Ok(Ran::NotHere(why));
    }
    if !geteuid().is_root() {
        return Ok(Ran::NotHere(
            "the file capability of the program can be unpacked by root alone".to_owned(),
        ));
    }
    let Some(namespace) = Netns::new() else {
        return Ok(Ran::NotHere("no network namespace can be made".to_owned()));
    };
    let directory = session.scratch.join("image");
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let bundle = directory.join("bundle");
    let image = format!("{}:{}", built.layout.display(), version(built)?);
    session.run(Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle))?;
    let mut trial = Trial { namespace, bundle, directory, results: Vec::new() };
    trial.prepare()?;
    trial.is_static()?;
    trial.has_its_documents()?;
    trial.lacks_what_it_names()?;
    trial.finds_hosts_by_name()?;
    trial.sets_sysctls_when_it_may()?;
    trial.proxies()?;
    Ok(Ran::Here(trial.results))
}

/// The unpacked image, and the namespace to run it in.
struct Trial {
    namespace: Netns,
    bundle: PathBuf,
    directory: PathBuf,
    results: Vec<(String, bool)>,
}

/// What a container is given.
#[derive(Clone, Copy)]
struct Given {
    user: u32,
    capabilities: &'static [&'static str],
    no_new_privileges: bool,
    is_privileged: bool,
}

/// As in `deploy/base/daemon-set.yaml`.
const AS_DEPLOYED: Given = Given {
    user: super::USER,
    capabilities: &["CAP_NET_ADMIN"],
    no_new_privileges: true,
    is_privileged: false,
};

impl Trial {
    fn expect(&mut self, what: &str, is_so: bool, log: &str) {
        if !is_so {
            eprintln!("not so: {what}\n{log}");
        }
        self.results.push((what.to_owned(), is_so));
    }

    /// Makes what the containers mount, and the addresses of the namespace.
    fn prepare(&self) -> Result<(), String> {
        let mounted = self.directory.join("mounted");
        fs::create_dir_all(&mounted).map_err(|error| error.to_string())?;
        let write = |name: &str, text: &str| {
            fs::write(mounted.join(name), text).map_err(|error| format!("{name}: {error}"))
        };
        write("services.yaml", SERVICES)?;
        write("hosts", "127.0.0.1 localhost\n127.0.0.1 api-server.test\n")?;
        write("kubeconfig.yaml", KUBECONFIG)?;
        write(
            "ca.crt",
            &fs::read_to_string(AUTHORITIES).map_err(|error| format!("{AUTHORITIES}: {error}"))?,
        )?;
        let script = "ip address add 192.168.0.2/24 dev lo && ip address add 10.244.0.5/32 dev lo && \
                      ip route add 10.96.0.0/12 dev lo";
        let status = self.namespace.run(|| Command::new("sh").args(["-c", script]).status());
        match status {
            Ok(status) if status.success() => Ok(()),
            failed => Err(format!("addresses of the namespace: {failed:?}")),
        }
    }

    /// The program needs no interpreter and no library.
    fn is_static(&mut self) -> Result<(), String> {
        let program = self.bundle.join("rootfs").join(PACKAGE);
        let said =
            output(Command::new("readelf").args(["-W", "--program-headers", "--dynamic"]).arg(program))?;
        let is_static = !said.contains("INTERP") && !said.contains("(NEEDED)") && said.contains("LOAD");
        self.expect("the program is static", is_static, &said);
        Ok(())
    }

    /// The licences and the bill of materials name the same parts.
    fn has_its_documents(&mut self) -> Result<(), String> {
        let root = self.bundle.join("rootfs");
        let licences = String::from_utf8_lossy(&read(&root.join(LICENCES))?).into_owned();
        let bill: Value = serde_json::from_slice(&read(&root.join(bill_name(PACKAGE)))?)
            .map_err(|error| format!("{}: {error}", bill_name(PACKAGE)))?;
        let parts = bill["components"].as_array().cloned().unwrap_or_default();
        let lacks = |part: &&Value| {
            let text = |key: &str| part[key].as_str().unwrap_or_default();
            let line = format!("\n{} {}, ", text("name"), text("version"));
            !text("name").starts_with("sluicegate-") && !licences.contains(&line)
        };
        let lacking: Vec<_> = parts.iter().filter(lacks).map(|part| &part["name"]).collect();
        let is_so = lacking.is_empty() && parts.len() > 100;
        let what = format!("the image has the licence of each of its {} parts", parts.len());
        self.expect(&what, is_so, &format!("without: {lacking:?}"));
        Ok(())
    }

    /// Without `CAP_NET_ADMIN` the program says so and ends.
    fn lacks_what_it_names(&mut self) -> Result<(), String> {
        let given = Given { capabilities: &[], ..AS_DEPLOYED };
        let mut container = self.start("withheld", given, FROM_MANIFESTS)?;
        let has_failed = container.ends_with_failure()?;
        let log = container.log();
        let names = log.contains("which needs CAP_NET_ADMIN there");
        self.expect("without a capability, it ends and names CAP_NET_ADMIN", has_failed && names, &log);
        Ok(())
    }

    /// A program without the C library's modules resolves names all the same.
    fn finds_hosts_by_name(&mut self) -> Result<(), String> {
        let container = self.start("by-name", AS_DEPLOYED, &["--kubeconfig", "/mounted/kubeconfig.yaml"])?;
        let is_so = container.within(|log| log.contains("Connection refused"));
        self.expect("it finds the API server by its name", is_so, &container.log());
        Ok(())
    }

    /// The init container of `deploy/`.
    fn sets_sysctls_when_it_may(&mut self) -> Result<(), String> {
        let given = Given { user: 0, is_privileged: true, no_new_privileges: false, ..AS_DEPLOYED };
        let mut container = self.start("sysctls", given, &["--init-only"])?;
        let has_failed = container.ends_with_failure()?;
        let forward = || fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap_or_default();
        let is_set = self.namespace.run(forward).trim() == "1";
        self.expect("--init-only sets ip_forward", is_set && !has_failed, &container.log());
        Ok(())
    }

    /// The daemon of `deploy/`, with packets.
    fn proxies(&mut self) -> Result<(), String> {
        let container = self.start("proxier", AS_DEPLOYED, FROM_MANIFESTS)?;
        let healthy = || get("127.0.0.1:10256", "/healthz").is_some_and(|text| text.contains("200 OK"));
        let is_healthy = within(|| self.namespace.run(healthy));
        self.expect("/healthz answers 200", is_healthy, &container.log());
        let answer = self.namespace.run(|| {
            let endpoint =
                TcpListener::bind("10.244.0.5:8080").map_err(|error| format!("endpoint: {error}"))?;
            thread::spawn(move || {
                for connection in endpoint.incoming().take(1).flatten() {
                    let _ = (&connection).write_all(GREETING.as_bytes());
                }
            });
            let to = "10.96.0.10:80".parse().map_err(|error| format!("{error}"))?;
            let mut stream = TcpStream::connect_timeout(&to, PATIENCE).map_err(|error| error.to_string())?;
            let mut said = String::new();
            stream.read_to_string(&mut said).map(|_| said).map_err(|error| error.to_string())
        });
        let is_led = answer.as_deref() == Ok(GREETING);
        self.expect(
            "a connection to the service reaches its endpoint",
            is_led,
            &format!("{answer:?}\n{}", container.log()),
        );
        let log = container.log();
        let troubles = ["ERROR", "denied", "not permitted"].iter().any(|trouble| log.contains(trouble));
        self.expect("nothing fails for want of a right", !troubles, &log);
        Ok(())
    }

    /// Starts `sluicegate-proxier run` with these flags in a container.
    fn start(&self, name: &str, given: Given, flags: &[&str]) -> Result<Container, String> {
        let path = self.bundle.join("config.json");
        let unpacked = self.directory.join("config.json");
        if !unpacked.exists() {
            fs::copy(&path, &unpacked).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let mut config: Value =
            serde_json::from_slice(&read(&unpacked)?).map_err(|error| format!("config.json: {error}"))?;
        self.configure(&mut config, given, flags);
        fs::write(&path, config.to_string()).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = format!("sluicegate-image-{}-{name}", std::process::id());
        let log = self.directory.join(format!("{name}.log"));
        let file = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let child = Command::new("runc")
            .args(["run", "--bundle"])
            .arg(&self.bundle)
            .arg(&name)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|error| format!("runc: {error}"))?;
        Ok(Container { name, child, log })
    }

    /// Changes what umoci made of the image's configuration to what a kubelet asks for.
    fn configure(&self, config: &mut Value, given: Given, flags: &[&str]) {
        let process = &mut config["process"];
        if let Some(words) = process["args"].as_array_mut() {
            words.extend(["run", "--hostname-override", "node-a", "--v", "0"].map(Value::from));
            words.extend(flags.iter().copied().map(Value::from));
        }
        process["terminal"] = false.into();
        process["user"] = json!({"uid": given.user, "gid": given.user});
        process["noNewPrivileges"] = given.no_new_privileges.into();
        // As containerd gives them: none are ambient.
        let capabilities = given.capabilities;
        process["capabilities"] =
            json!({"bounding": capabilities, "effective": capabilities, "permitted": capabilities});
        config["root"]["readonly"] = true.into();
        let mounted = |from: &str, to: &str| {
            let source = self.directory.join("mounted").join(from);
            json!({"destination": to, "type": "bind", "source": source, "options": ["bind", "ro"]})
        };
        config["mounts"] = json!([
            {"destination": "/proc", "type": "proc", "source": "proc"},
            mounted("", "/mounted"),
            mounted("hosts", "/etc/hosts"),
        ]);
        let read_only = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
        config["linux"] = json!({
            "namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "ipc"}, {"type": "uts"},
                {"type": "network", "path": self.namespace.path()}],
            "readonlyPaths": if given.is_privileged { &[][..] } else { &read_only[..] },
        });
    }
}

/// A container that runs, deleted when it is dropped.
struct Container {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Container {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn within(&self, is_so: impl Fn(&str) -> bool) -> bool {
        within(|| is_so(&self.log()))
    }

    /// Waits for the end; an error when there is none.
    fn ends_with_failure(&mut self) -> Result<bool, String> {
        let mut ended = None;
        within(|| {
            ended = self.child.try_wait().ok().flatten();
            ended.is_some()
        });
        ended
            .map(|status| !status.success())
            .ok_or_else(|| format!("{} does not end\n{}", self.name, self.log()))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // One that ended is gone already.
        let mut delete = Command::new("runc");
        delete.args(["delete", "--force", &self.name]);
        let _ = delete.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the tag in the index of the layout.
fn version(built: &Built) -> Result<String, String> {
    let index: Value = serde_json::from_slice(&read(&built.layout.join("index.json"))?)
        .map_err(|error| error.to_string())?;
    let name = &index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"];
    name.as_str().map(str::to_owned).ok_or_else(|| "the index names no tag".to_owned())
}

fn get(server: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(server).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Asks until it is so, or patience ends.
fn within(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", crate::session::shown(command)))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Prints `valid`, or what a JSON schema refuses. The parts of the schema that are in other files are the
/// names of single licences, in whose place we have expressions, and signatures.
const VALIDATE: &str = r#"
import json, sys
from jsonschema import Draft7Validator, RefResolver

schema, bill = (json.load(open(path)) for path in sys.argv[1:])
base = schema["$id"].rsplit("/", 1)[0] + "/"
store = {base + name: {} for name in ("spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json")}
validator = Draft7Validator(schema, resolver=RefResolver.from_schema(schema, store=store))
told = lambda error: "%s: %s" % ("/".join(map(str, error.absolute_path)), error.message)
errors = [told(error) for error in validator.iter_errors(bill)]
print("\n".join(errors[:9]) or "valid")
"#;

/// The flags of a daemon that follows the services of this check.
const FROM_MANIFESTS: &[&str] = &["--manifests", "/mounted/services.yaml", "--cluster-cidr", "10.244.0.0/16"];

const SERVICES: &str = "\
apiVersion: v1
kind: Node
metadata: {name: node-a}
status: {addresses: [{type: InternalIP, address: 192.168.0.2}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: demo}
spec: {clusterIP: 10.96.0.10, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: demo, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.244.0.5]}]
";

/// A server that is named, as kubeadm's may be. Nothing listens there.
const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
users: [{name: test, user: {token: test}}]
clusters:
- name: test
  cluster: {server: 'https://api-server.test:6443', certificate-authority: /mounted/ca.crt}
";
/// Any authorities: without some there is no TLS (Debian: ca-certificates).
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

const GREETING: &str = "from the endpoint\n";
const PATIENCE: Duration = Duration::from_secs(20);
/// The size that the image must stay below, in bytes.
const LARGEST: u64 = 15_000_000;
