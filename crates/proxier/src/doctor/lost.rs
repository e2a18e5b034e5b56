//! Looks for what may have dropped a packet that was lost by no rule of nftables.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{self as nft, Hook, read};
use sluicegate_service_rules::iptables::{self, BackEnd};
use sluicegate_service_rules::nftables::{End, Journey, Place};
use sluicegate_services::Family;

use super::{legacy_is_there, legacy_tables, others};

/// Returns what may be why a packet was lost, each in a sentence, the surest first. It changes nothing, and
/// looks at the network namespace of the calling thread as it is now.
#[must_use]
pub fn why_lost(journey: &Journey) -> Vec<String> {
    let End::Lost { to, place, interface } = &journey.end else { return Vec::new() };
    let family = Family::of(to.ip());
    match place {
        Place::Routing => routing(*to, family, interface.and_then(device)),
        Place::Hook(hook) => {
            let mut found = in_hook(*hook, family);
            if *hook == Hook::Output {
                found.extend(no_route(*to));
            }
            found
        }
        Place::BeforeConntrack => {
            let mut found = full_conntrack();
            let hook = if interface.is_some() { Hook::Prerouting } else { Hook::Output };
            found.extend(in_hook(hook, family));
            found
        }
    }
}

fn routing(to: SocketAddr, family: Family, device: Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    let (all, version) = match family {
        Family::Ipv4 => ("net.ipv4.ip_forward", "ipv4"),
        Family::Ipv6 => ("net.ipv6.conf.all.forwarding", "ipv6"),
    };
    if sysctl(all) == Some(0) {
        found.push(format!("{all} is 0: nothing is forwarded"));
    }
    found.extend(no_route(to));
    let Some(device) = device else { return found };
    let forwarding = format!("net.{version}.conf.{device}.forwarding");
    if sysctl(&forwarding) == Some(0) {
        found.push(format!("{forwarding} is 0: what comes in there is not forwarded"));
    }
    let filters = ["all", &device].map(|name| sysctl(&format!("net.{version}.conf.{name}.rp_filter")));
    if let Some(filter @ 1..) = filters.into_iter().flatten().max() {
        found.push(format!(
            "rp_filter of {device} is {filter}: a packet is dropped where its answer would not {}",
            if filter == 1 { "leave through the interface that it came in through" } else { "have a route" }
        ));
    }
    found
}

/// Asks the kernel for a route, by a socket that sends nothing.
fn no_route(to: SocketAddr) -> Option<String> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let connected = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(to));
    connected.err().map(|error| format!("this node has no route to {}: {error}", to.ip()))
}

fn in_hook(hook: Hook, family: Family) -> Vec<String> {
    let mut found = Vec::new();
    let chain = hook.to_string().to_uppercase();
    if legacy_is_there(family) {
        let opened = iptables::open(Some(BackEnd::Legacy), &[family]).map(|all| all.into_iter().next());
        match opened.and_then(|tables| tables.map(|mut tables| tables.list()).transpose()) {
            Ok(save) => {
                let save = save.unwrap_or_default();
                for (table, _) in others::dropping(&save).iter().filter(|(_, name)| *name == chain) {
                    found.push(format!(
                        "{family} iptables-legacy, table {table}: the policy of {chain} is DROP"
                    ));
                }
                let refusing = others::refusing(&save, &chain);
                for (table, rule) in refusing.iter().take(MOST_RULES) {
                    found.push(format!("{family} iptables-legacy, table {table}: {rule}"));
                }
                if refusing.len() > MOST_RULES {
                    let more = refusing.len() - MOST_RULES;
                    found.push(format!("{family} iptables-legacy: {more} more rules that drop or refuse"));
                }
            }
            Err(error) => {
                found.push(format!("the rules of {family} iptables-legacy cannot be read: {error}"));
            }
        }
        for table in unlisted(hook, family) {
            found.push(format!("{family} iptables-legacy has a table {table}, which was not looked into"));
        }
    }
    found.extend(strangers(hook, family));
    found
}

/// Returns the tables of iptables-legacy on a hook that are not among those that a proxy uses.
fn unlisted(hook: Hook, family: Family) -> Vec<&'static str> {
    let names = fs::read_to_string(legacy_tables(family)).unwrap_or_default();
    let on_hook: &[&str] = match hook {
        Hook::Prerouting => &["raw"],
        Hook::Output => &["raw", "security"],
        Hook::Input | Hook::Forward => &["security"],
        _ => &[],
    };
    on_hook.iter().copied().filter(|table| names.lines().any(|line| line == *table)).collect()
}

/// Returns the functions of a hook that are neither chains of nftables nor what connection tracking and
/// address translation need.
fn strangers(hook: Hook, family: Family) -> Option<String> {
    let nft_family = if family == Family::Ipv4 { nft::Family::IP } else { nft::Family::IP6 };
    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).ok()?;
    let hooks = read::hook(&mut socket, nft_family, hook.number(nft_family)?, None).ok()??;
    let is_usual = |hook: &read::RegisteredHook| {
        let words = ["conntrack", "confirm", "nat", "defrag", "nft", "synproxy"];
        match hook.by {
            Some(read::RegisteredBy::Chain(_) | read::RegisteredBy::Flowtable(_)) => true,
            Some(_) => false,
            None => hook.function.as_deref().is_none_or(|name| words.iter().any(|word| name.contains(word))),
        }
    };
    let name = |hook: &read::RegisteredHook| {
        let module = hook.module.as_ref().map(|module| format!(" of {module}")).unwrap_or_default();
        let what = match (&hook.by, &hook.function) {
            (Some(read::RegisteredBy::Bpf(id)), _) => format!("BPF program {id}"),
            (_, function) => format!("{}{module}", function.as_deref().unwrap_or("a function")),
        };
        format!("{what} (priority {})", hook.priority)
    };
    let names: Vec<_> = hooks.iter().filter(|hook| !is_usual(hook)).map(name).collect();
    (!names.is_empty()).then(|| format!("beside nftables, this hook has {}", names.join(", ")))
}

fn full_conntrack() -> Vec<String> {
    let [count, most] = ["count", "max"].map(|name| sysctl(&format!("net.netfilter.nf_conntrack_{name}")));
    match (count, most) {
        (Some(count), Some(most)) if count >= most => {
            vec![format!("connection tracking is full: it has {count} of {most} flows")]
        }
        _ => Vec::new(),
    }
}

/// Returns the name of an interface.
fn device(index: u32) -> Option<String> {
    let mut socket = Socket::open(NetlinkFamily::ROUTE, &Options::default()).ok()?;
    read::interfaces(&mut socket).ok()?.get(&index).map(ToString::to_string)
}

/// Reads a sysctl by its name, with dots. The name of a device may have dots too, and is looked for as it is.
fn sysctl(name: &str) -> Option<i64> {
    let parts: Vec<_> = name.splitn(4, '.').collect();
    let path = match parts.as_slice() {
        [net, version, "conf", rest] => {
            let (device, field) = rest.rsplit_once('.')?;
            format!("/proc/sys/{net}/{version}/conf/{device}/{field}")
        }
        _ => format!("/proc/sys/{}", name.replace('.', "/")),
    };
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The most rules that are named.
const MOST_RULES: usize = 5;
