//! The fields of `KubeProxyConfiguration` v1alpha1 (Kubernetes 1.36): which are read, and which are ignored.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use sluicegate_services::{NodePortAddresses, parse_cidr, parse_ip};

use super::{Config, DurationError, Note, Rules, no_effect, parse_duration};
use crate::yaml::{Node, Value};

/// Reads the fields of a document.
pub(super) fn read(root: &Node<'_>) -> Result<Config, Vec<Note>> {
    let mut reader = Reader { config: Config::default(), problems: Vec::new(), kind: None, version: None };
    match &root.value {
        Value::Mapping(entries) => reader.mapping("", entries),
        _ => reader.problems.push(Note::of_file("expected an object with apiVersion and kind")),
    }
    reader.check_head();
    if reader.problems.is_empty() { Ok(reader.config) } else { Err(reader.problems) }
}

struct Reader {
    config: Config,
    problems: Vec<Note>,
    kind: Option<String>,
    version: Option<String>,
}

impl Reader {
    fn mapping(&mut self, path: &str, entries: &[(Node<'_>, Node<'_>)]) {
        for (key, value) in entries {
            let Value::String(name) = &key.value else {
                let text = format!("kube-proxy has no field {}; it is ignored", found(key));
                self.config.doubtful.push(note(key, path, text));
                continue;
            };
            let field = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            if SECTIONS.contains(&field.as_str()) {
                match &value.value {
                    Value::Mapping(entries) => self.mapping(&field, entries),
                    Value::Null => {}
                    _ => self.problem(value, &field, Wrong::unless(Expected::Object, value).to_string()),
                }
            } else if field == "featureGates" {
                self.gates(value);
            } else if let Some(why) = no_effect::of_field(&field) {
                if has_value(value) {
                    self.config.unused.push(note(key, &field, format!("has no effect here: {why}")));
                }
            } else if let Err(problem) = self.field(&field, value) {
                match problem {
                    Problem::Unknown => {
                        let text = "kube-proxy has no such field; it is ignored".to_owned();
                        self.config.doubtful.push(note(key, &field, text));
                    }
                    Problem::Wrong(wrong) => self.problem(value, &field, wrong.to_string()),
                }
            }
        }
    }

    fn field(&mut self, field: &str, value: &Node<'_>) -> Result<(), Problem> {
        if let Some((section, name)) = field.split_once('.')
            && let Some(rules) = self.rules(section)
        {
            match name {
                "masqueradeAll" if section != "ipvs" => {
                    return set(&mut rules.masquerade_all, boolean(value));
                }
                "masqueradeBit" if section != "ipvs" => {
                    return set(&mut rules.masquerade_bit, integer(value, 31));
                }
                "syncPeriod" => return set(&mut rules.sync_period, duration(value)),
                "minSyncPeriod" => return set(&mut rules.min_sync_period, duration(value)),
                _ => {}
            }
        }
        let config = &mut self.config;
        match field {
            "apiVersion" => set(&mut self.version, text(value)),
            "kind" => set(&mut self.kind, text(value)),
            "mode" => set(&mut config.mode, word(value)),
            "hostnameOverride" => set(&mut config.hostname_override, text(value)),
            "bindAddress" => set(&mut config.bind_address, address(value)),
            "bindAddressHardFail" => set(&mut config.bind_address_hard_fail, boolean(value)),
            "clusterCIDR" => set(&mut config.cluster_cidrs, cidrs(value)),
            "detectLocalMode" => set(&mut config.detect_local_mode, parsed(value)),
            "detectLocal.bridgeInterface" => set(&mut config.bridge_interface, text(value)),
            "detectLocal.interfaceNamePrefix" => set(&mut config.interface_name_prefix, text(value)),
            "nodePortAddresses" => set(&mut config.node_port_addresses, node_ports(value)),
            "healthzBindAddress" => set(&mut config.healthz_bind_address, text(value)),
            "metricsBindAddress" => set(&mut config.metrics_bind_address, text(value)),
            "clientConnection.kubeconfig" => {
                set(&mut config.kubeconfig, text(value).map(|t| t.map(Into::into)))
            }
            "iptables.localhostNodePorts" => set(&mut config.localhost_node_ports, boolean(value)),
            "ipvs.scheduler" => set(&mut config.ipvs_scheduler, text(value)),
            "ipvs.excludeCIDRs" => set(&mut config.ipvs_exclude_cidrs, cidr_list(value)),
            "ipvs.strictARP" => set(&mut config.ipvs_strict_arp, boolean(value)),
            "ipvs.tcpTimeout" => set(&mut config.ipvs_tcp_timeout, duration(value)),
            "ipvs.tcpFinTimeout" => set(&mut config.ipvs_tcp_fin_timeout, duration(value)),
            "ipvs.udpTimeout" => set(&mut config.ipvs_udp_timeout, duration(value)),
            "oomScoreAdj" => set(&mut config.oom_score_adj, number(value, -1000, 1000)),
            "conntrack.maxPerCore" => set(&mut config.conntrack.max_per_core, number(value, 0, i32::MAX)),
            "conntrack.min" => set(&mut config.conntrack.min, number(value, 0, i32::MAX)),
            "conntrack.tcpEstablishedTimeout" => {
                set(&mut config.conntrack.tcp_established, any_duration(value))
            }
            "conntrack.tcpCloseWaitTimeout" => set(&mut config.conntrack.tcp_close_wait, any_duration(value)),
            "conntrack.tcpBeLiberal" => set(&mut config.conntrack.tcp_be_liberal, boolean(value)),
            "conntrack.udpTimeout" => set(&mut config.conntrack.udp, any_duration(value)),
            "conntrack.udpStreamTimeout" => set(&mut config.conntrack.udp_stream, any_duration(value)),
            "logging.format" => set(&mut config.log_format, text(value)),
            "logging.verbosity" => set(&mut config.verbosity, number(value, 0, i32::MAX)),
            _ => Err(Problem::Unknown),
        }
    }

    /// Reads the feature gates.
    fn gates(&mut self, gates: &Node<'_>) {
        let entries = match &gates.value {
            Value::Mapping(entries) => entries,
            Value::Null => return,
            _ => {
                let wrong = Wrong::unless(Expected::Gates, gates);
                return self.problem(gates, "featureGates", wrong.to_string());
            }
        };
        for (key, value) in entries.iter() {
            match (&key.value, &value.value) {
                (Value::String(name), Value::Bool(is_on)) => {
                    match self.config.feature_gates.set(name, *is_on) {
                        Ok(()) => {}
                        Err(error) => self.problem(key, "featureGates", error.to_string()),
                    }
                }
                _ => {
                    let wrong = Wrong::unless(Expected::Gates, value);
                    self.problem(value, "featureGates", wrong.to_string());
                }
            }
        }
    }

    fn rules(&mut self, section: &str) -> Option<&mut Rules> {
        match section {
            "iptables" => Some(&mut self.config.iptables),
            "nftables" => Some(&mut self.config.nftables),
            "ipvs" => Some(&mut self.config.ipvs),
            _ => None,
        }
    }

    fn check_head(&mut self) {
        for (field, found, wanted) in [("apiVersion", &self.version, API_VERSION), ("kind", &self.kind, KIND)]
        {
            if found.as_deref() != Some(wanted) {
                let found = found.as_ref().map_or("none".to_owned(), |found| format!("{found:?}"));
                self.problems.push(Note::of_file(&format!("{field}: expected {wanted}, found {found}")));
            }
        }
    }

    fn problem(&mut self, node: &Node<'_>, field: &str, text: String) {
        self.problems.push(note(node, field, text));
    }
}

enum Problem {
    Unknown,
    Wrong(Wrong),
}

/// Why a field cannot have its value.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("expected {expected}, found {found}")]
    Unexpected { expected: Expected, found: String },
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// It is a text that its type does not take; the reason says what was found.
    #[error("{0}")]
    Refused(Box<dyn Error>),
    /// The same, with a reason that does not.
    #[error("{text:?}: {reason}")]
    RefusedText { text: String, reason: Box<dyn Error> },
}

/// What a field may have.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Text,
    Truth,
    /// From the first to the last.
    Number(i32, i32),
    Duration,
    Address,
    Cidr,
    List,
    Object,
    Gates,
}

impl Wrong {
    fn unless(expected: Expected, node: &Node<'_>) -> Self {
        Self::Unexpected { expected, found: found(node) }
    }

    fn text(expected: Expected, text: &str) -> Self {
        Self::Unexpected { expected, found: format!("{text:?}") }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a string"),
            Self::Truth => f.write_str("true or false"),
            Self::Number(least, most) => write!(f, "a number from {least} to {most}"),
            Self::Duration => f.write_str("a duration with its unit (30s, 1m30s, 100ms)"),
            Self::Address => f.write_str("an IP address"),
            Self::Cidr => f.write_str("a CIDR (10.244.0.0/16)"),
            Self::List => f.write_str("a list of strings"),
            Self::Object => f.write_str("an object"),
            Self::Gates => f.write_str("names with true or false"),
        }
    }
}

fn set<T>(place: &mut Option<T>, value: Result<Option<T>, Wrong>) -> Result<(), Problem> {
    *place = value.map_err(Problem::Wrong)?;
    Ok(())
}

fn note(node: &Node<'_>, field: &str, text: String) -> Note {
    Note { line: node.line, column: Some(node.column), field: field.to_owned(), text }
}

/// Returns false for the values that kube-proxy writes for a missing field.
fn has_value(node: &Node<'_>) -> bool {
    match &node.value {
        Value::Null | Value::Bool(false) | Value::Integer(0) => false,
        Value::String(text) => !matches!(&**text, "" | "0s"),
        Value::Sequence(items) => !items.is_empty(),
        Value::Mapping(entries) => entries.iter().any(|(_, value)| has_value(value)),
        _ => true,
    }
}

fn text(node: &Node<'_>) -> Result<Option<String>, Wrong> {
    match &node.value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone().into_owned()).filter(|text| !text.is_empty())),
        _ => Err(Wrong::unless(Expected::Text, node)),
    }
}

fn boolean(node: &Node<'_>) -> Result<Option<bool>, Wrong> {
    match node.value {
        Value::Null => Ok(None),
        Value::Bool(value) => Ok(Some(value)),
        _ => Err(Wrong::unless(Expected::Truth, node)),
    }
}

fn integer(node: &Node<'_>, most: u8) -> Result<Option<u8>, Wrong> {
    number(node, 0, most.into())
}

fn number<T: TryFrom<i64>>(node: &Node<'_>, least: i32, most: i32) -> Result<Option<T>, Wrong> {
    let wrong = || Wrong::unless(Expected::Number(least, most), node);
    match node.value {
        Value::Null => Ok(None),
        Value::Integer(number) if (least.into()..=most.into()).contains(&number) => {
            T::try_from(number).map(Some).map_err(|_| wrong())
        }
        _ => Err(wrong()),
    }
}

fn parsed<T: FromStr<Err: Error + 'static>>(node: &Node<'_>) -> Result<Option<T>, Wrong> {
    let read = |text: String| {
        text.parse().map_err(|reason: T::Err| Wrong::RefusedText { text, reason: Box::new(reason) })
    };
    text(node)?.map(read).transpose()
}

fn any_duration(node: &Node<'_>) -> Result<Option<Duration>, Wrong> {
    match node.value {
        Value::Integer(_) | Value::Float(_) => Err(Wrong::unless(Expected::Duration, node)),
        _ => Ok(text(node)?.map(|text| parse_duration(&text)).transpose()?),
    }
}

fn duration(node: &Node<'_>) -> Result<Option<Duration>, Wrong> {
    Ok(any_duration(node)?.filter(|duration| !duration.is_zero()))
}

fn address(node: &Node<'_>) -> Result<Option<IpAddr>, Wrong> {
    let read = |text: String| parse_ip(&text).ok_or_else(|| Wrong::text(Expected::Address, &text));
    text(node)?.map(read).transpose()
}

/// Reads a value whose error names what was found.
fn word<T: FromStr<Err: Error + 'static>>(node: &Node<'_>) -> Result<Option<T>, Wrong> {
    text(node)?.map(|text| text.parse().map_err(refused::<T>)).transpose()
}

fn refused<T: FromStr<Err: Error + 'static>>(reason: T::Err) -> Wrong {
    Wrong::Refused(Box::new(reason))
}

/// Reads CIDRs separated by commas.
fn cidrs(node: &Node<'_>) -> Result<Option<Vec<IpNet>>, Wrong> {
    text(node)?.map(|text| text.split(',').map(|part| cidr(part.trim())).collect()).transpose()
}

fn cidr(text: &str) -> Result<IpNet, Wrong> {
    parse_cidr(text).ok_or_else(|| Wrong::text(Expected::Cidr, text))
}

fn list(node: &Node<'_>) -> Result<Option<Vec<String>>, Wrong> {
    match &node.value {
        Value::Null => Ok(None),
        Value::Sequence(items) => {
            let items = items.iter().map(|item| Ok(text(item)?.unwrap_or_default()));
            let items: Vec<String> = items.collect::<Result<_, Wrong>>()?;
            Ok(Some(items).filter(|items| !items.is_empty()))
        }
        _ => Err(Wrong::unless(Expected::List, node)),
    }
}

fn cidr_list(node: &Node<'_>) -> Result<Option<Vec<IpNet>>, Wrong> {
    list(node)?.map(|items| items.iter().map(|item| cidr(item)).collect()).transpose()
}

fn node_ports(node: &Node<'_>) -> Result<Option<NodePortAddresses>, Wrong> {
    let read = |items: Vec<String>| items.join(",").parse().map_err(refused::<NodePortAddresses>);
    list(node)?.map(read).transpose()
}

/// Says what a value is, for messages.
fn found(node: &Node<'_>) -> String {
    match &node.value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Sequence(_) => "a list".to_owned(),
        Value::Mapping(_) => "an object".to_owned(),
    }
}

const API_VERSION: &str = "kubeproxy.config.k8s.io/v1alpha1";
const KIND: &str = "KubeProxyConfiguration";

/// The objects whose fields are read.
const SECTIONS: [&str; 7] =
    ["detectLocal", "clientConnection", "conntrack", "iptables", "nftables", "ipvs", "logging"];
