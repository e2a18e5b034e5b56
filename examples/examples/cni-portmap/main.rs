//! A chained CNI plug-in (CNI specification 1.1.0): forwards ports of the host to a container, and lets it
//! leave its network with an address of the host.
//!
//! ```json
//! { "type": "cni-portmap", "capabilities": { "portMappings": true }, "ipMasq": true }
//! ```
//!
//! It keeps one table, whose rules never change (`table.nft`), and adds and removes elements, each with the
//! attachment that it belongs to as its comment, by network, container and interface: the kernel's table is all
//! the state that there is. All networks of the host share it, and none touches the elements of another. Ports
//! are not forwarded on 127.0.0.1, which would need the sysctl `route_localnet`.

use std::collections::{HashMap, HashSet};
use std::env;
use std::io::{self, Read};
use std::net::IpAddr;
use std::process::ExitCode;

use ipnet::IpNet;
use serde_json::{Value, json};
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Protocol, Socket};
use sluicegate_nftables::reconcile::{self, Difference};
use sluicegate_nftables::{
    ApplyOptions, Comment, Element, InterfaceName, Port, TableContent, Transaction, read,
};

const USAGE: &str = "usage: CNI_COMMAND=ADD|DEL|CHECK|GC|STATUS|VERSION CNI_CONTAINERID=ID CNI_IFNAME=NAME \
cni-portmap <CONFIG

A CNI plug-in for port mappings and masquerading, started by a container runtime. It reads the configuration
of its network (JSON) from the standard input, and works in its network namespace, that of the host.";

const VERSIONS: [&str; 3] = ["0.4.0", "1.0.0", "1.1.0"];

/// An error as the specification wants it: codes below 100 are those of the specification.
struct Failure(u32, String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(100, error.to_string())
    }
}

fn main() -> ExitCode {
    if env::args_os().len() > 1 {
        return printed(USAGE, ExitCode::SUCCESS);
    }
    let mut config = Value::Null;
    match run(&mut config) {
        Ok(Some(output)) => printed(output, ExitCode::SUCCESS),
        Ok(None) => ExitCode::SUCCESS,
        Err(Failure(code, message)) => {
            let version = config["cniVersion"].as_str().unwrap_or("1.1.0");
            printed(json!({ "cniVersion": version, "code": code, "msg": message }), ExitCode::FAILURE)
        }
    }
}

/// Prints a line, and returns the status if that succeeds.
fn printed(line: impl std::fmt::Display, status: ExitCode) -> ExitCode {
    match examples::print(format!("{line}\n")) {
        Ok(()) => status,
        Err(error) => {
            examples::tell(format_args!("cni-portmap: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(config: &mut Value) -> Result<Option<Value>, Failure> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).map_err(|e| Failure(5, format!("standard input: {e}")))?;
    *config = serde_json::from_str(&input).map_err(|e| Failure(6, format!("the configuration: {e}")))?;
    let version = config["cniVersion"].as_str().unwrap_or("0.1.0").to_owned();
    let command = variable("CNI_COMMAND")?;
    if command == "VERSION" {
        return Ok(Some(json!({ "cniVersion": version, "supportedVersions": VERSIONS })));
    }
    if !VERSIONS.contains(&&*version) {
        return Err(Failure(
            1,
            format!("CNI version {version} is not supported, only {}", VERSIONS.join(", ")),
        ));
    }
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    match &*command {
        "ADD" => {
            let attachment = Attachment::read(config)?;
            change(&mut kernel, |owner| *owner != attachment.id, Some(&attachment))?;
            let mut result = config["prevResult"].clone();
            result["cniVersion"] = version.into();
            return Ok(Some(result));
        }
        "CHECK" => {
            let attachment = Attachment::read(config)?;
            let (_, difference) = compare(&mut kernel, |id| *id != attachment.id, Some(&attachment))?;
            if !difference.is_empty() {
                return Err(Failure(100, format!("the kernel differs: {difference}")));
            }
        }
        "DEL" => {
            let id = attachment_id(config)?;
            change(&mut kernel, |owner| *owner != id, None)?;
        }
        "GC" => {
            let valid = config["cni.dev/valid-attachments"].as_array();
            let valid = valid.ok_or_else(|| Failure(7, "no cni.dev/valid-attachments".to_owned()))?;
            let network = network(config)?;
            let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
            let id = |of: &Value| comment(network, &text(of, "containerID"), &text(of, "ifname"));
            let valid = valid.iter().map(id).collect::<Result<HashSet<_>, _>>()?;
            change(&mut kernel, |owner| network_of(owner) != Some(network) || valid.contains(owner), None)?;
        }
        "STATUS" => drop(read::generation(&mut kernel).map_err(|e| Failure(50, e.to_string()))?),
        other => return Err(Failure(4, format!("CNI_COMMAND: unknown command {other:?}"))),
    }
    Ok(None)
}

fn variable(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|e| Failure(4, format!("{name}: {e}")))
}

/// Returns the comment of the elements of this attachment.
fn attachment_id(config: &Value) -> Result<Comment, Failure> {
    comment(network(config)?, &variable("CNI_CONTAINERID")?, &variable("CNI_IFNAME")?)
}

fn network(config: &Value) -> Result<&str, Failure> {
    let name = config["name"].as_str().filter(|name| is_id(name));
    name.ok_or_else(|| {
        Failure(7, format!("wrong name of the network in the configuration: {}", config["name"]))
    })
}

/// Returns the name of an attachment: none of its parts has a slash.
fn comment(network: &str, container: &str, interface: &str) -> Result<Comment, Failure> {
    if !is_id(container) {
        return Err(Failure(4, format!("CNI_CONTAINERID: not a valid id: {container:?}")));
    }
    InterfaceName::new(interface).map_err(|e| Failure(4, format!("CNI_IFNAME: {e}")))?;
    Comment::new(&format!("{network}/{container}/{interface}")).map_err(|e| Failure(4, e.to_string()))
}

/// Returns the network of an attachment; `None` for the comment of somebody else.
fn network_of(owner: &Comment) -> Option<&str> {
    let (network, rest) = owner.as_str().split_once('/')?;
    rest.contains('/').then_some(network)
}

/// Names of networks and containers, as the specification allows them.
fn is_id(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// What one interface of one container needs: the elements, each with the name of its set.
struct Attachment {
    id: Comment,
    elements: Vec<(String, Element)>,
}

impl Attachment {
    fn read(config: &Value) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure(7, format!("{what} in the configuration"));
        let result =
            config.get("prevResult").ok_or_else(|| wrong("no prevResult: is the plug-in chained?"))?;
        let addresses = result["ips"].as_array().ok_or_else(|| wrong("no ips of the prevResult"))?;
        let parse = |of: &Value| of["address"].as_str().and_then(|text| text.parse::<IpNet>().ok());
        let addresses: Vec<IpNet> = addresses
            .iter()
            .map(|of| parse(of).ok_or_else(|| wrong(&format!("wrong IP {of}"))))
            .collect::<Result<_, _>>()?;
        let mut attachment = Self { id: attachment_id(config)?, elements: Vec::new() };
        // The first address of each family, as the reference plug-in does.
        for is_v4 in [true, false] {
            let Some(net) = addresses.iter().find(|net| net.addr().is_ipv4() == is_v4) else { continue };
            let to = net.addr();
            let mappings = config["runtimeConfig"]["portMappings"].as_array().map(Vec::as_slice);
            for mapping in mappings.unwrap_or_default() {
                attachment
                    .forward(mapping, to)
                    .ok_or_else(|| wrong(&format!("wrong port mapping {mapping}")))?;
            }
            if mappings.is_some_and(|mappings| !mappings.is_empty()) {
                attachment.push("self", is_v4, Element::new((to, to)));
            }
            if config["ipMasq"] == true {
                attachment.push("egress", is_v4, Element::new(to));
                attachment.push("inside", is_v4, Element::range((to, net.network()), (to, net.broadcast())));
            }
        }
        Ok(attachment)
    }

    /// Adds a mapping, if it is of the family of the address; `None` for one that is not valid.
    fn forward(&mut self, mapping: &Value, to: IpAddr) -> Option<()> {
        let port = |key: &str| mapping[key].as_u64().and_then(|n| u16::try_from(n).ok()).filter(|n| *n != 0);
        let protocol = match mapping["protocol"].as_str().unwrap_or("tcp").to_lowercase().as_str() {
            "tcp" => Protocol::TCP,
            "udp" => Protocol::UDP,
            "sctp" => Protocol::SCTP,
            _ => return None,
        };
        let (from, to_port) = (Port(port("hostPort")?), Port(port("containerPort")?));
        let host: Option<IpAddr> = match mapping["hostIP"].as_str().unwrap_or_default() {
            "" => None,
            text => Some(text.parse().ok()?),
        };
        if host.is_some_and(|host| host.is_ipv4() != to.is_ipv4()) {
            return Some(());
        }
        match host.filter(|host| !host.is_unspecified()) {
            Some(host) => {
                self.push("hosts", to.is_ipv4(), Element::new((host, protocol, from)).value((to, to_port)));
            }
            None => self.push("ports", to.is_ipv4(), Element::new((protocol, from)).value((to, to_port))),
        }
        Some(())
    }

    fn push(&mut self, set: &str, is_v4: bool, element: Element) {
        let family = if is_v4 { 4 } else { 6 };
        self.elements.push((format!("{set}{family}"), element.comment(self.id.clone())));
    }
}

/// Changes the table: keeps the elements of attachments for which `keep` holds, and adds those of another.
fn change(
    kernel: &mut Socket,
    keep: impl Fn(&Comment) -> bool,
    add: Option<&Attachment>,
) -> Result<(), Failure> {
    loop {
        let (exists, difference) = compare(kernel, &keep, add)?;
        // Without the table there is nothing to remove.
        if difference.is_empty() || (!exists && add.is_none()) {
            return Ok(());
        }
        let options = ApplyOptions::default().generation(difference.generation);
        match difference.transaction.apply_with(kernel, options) {
            // Another program changed the ruleset in the meantime.
            Err(error) if error.is_generation_changed() => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(()),
        }
    }
}

/// Compares the table with what it should be. Also returns whether the kernel has it.
fn compare(
    kernel: &mut Socket,
    keep: impl Fn(&Comment) -> bool,
    add: Option<&Attachment>,
) -> Result<(bool, Difference), Failure> {
    let mut wanted = Transaction::parse(include_str!("table.nft"))?.into_content()?;
    let ruleset = read::ruleset(kernel, &wanted[0].table.id)?;
    let content = ruleset.content();
    let stale = add.map(|add| stale(&content, add)).unwrap_or_default();
    let is_kept =
        |element: &&Element| element.get_comment().is_none_or(|owner| keep(owner) && !stale.contains(owner));
    for (set, elements) in wanted.iter_mut().flat_map(|table| &mut table.sets) {
        let name = set.id.name.as_str();
        let known = content.iter().flat_map(|table| table.elements(name));
        elements.extend(known.filter(is_kept).cloned());
        let own = add.iter().flat_map(|add| &add.elements).filter(|(set, _)| set == name);
        let mut new: HashMap<String, &Element> = HashMap::new();
        for (_, element) in own {
            if new.insert(element.key().to_string(), element).is_some_and(|other| other != element) {
                return Err(Failure(7, format!("{name}: {} is mapped twice", element.key())));
            }
        }
        let is_new = |known: &&Element| !new.is_empty() && new.contains_key(&known.key().to_string());
        if let Some(taken) = elements.iter().find(is_new) {
            let owner = taken.get_comment().map(Comment::as_str).unwrap_or_default();
            return Err(Failure(101, format!("{name}: {} belongs to {owner}", taken.key())));
        }
        elements.extend(new.into_values().cloned());
    }
    let difference = reconcile::difference(&wanted, &ruleset, &reconcile::Options::default())?;
    Ok((!content.is_empty(), difference))
}

/// Returns the attachments of the same network that have an address of the new one: their containers are gone,
/// or the address would not have been given again.
fn stale(content: &[TableContent], new: &Attachment) -> HashSet<Comment> {
    let of_address = |set: &str| set.starts_with("self") || set.starts_with("egress");
    let keys: HashSet<_> = new
        .elements
        .iter()
        .filter(|(set, _)| of_address(set))
        .map(|(set, element)| (set.as_str(), element.key().to_string()))
        .collect();
    let sets =
        content.iter().flat_map(|table| &table.sets).filter(|(set, _)| of_address(set.id.name.as_str()));
    sets.flat_map(|(set, elements)| elements.iter().map(|element| (set.id.name.as_str(), element)))
        .filter(|(set, element)| keys.contains(&(*set, element.key().to_string())))
        .filter_map(|(_, element)| element.get_comment())
        .filter(|owner| **owner != new.id && network_of(owner) == network_of(&new.id))
        .cloned()
        .collect()
}
