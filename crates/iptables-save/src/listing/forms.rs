//! How `-L` writes the options of each match and target. Most are a row of data; `own.rs` has the others.
//!
//! Source: what iptables 1.8.9 prints for the rules of `testdata`, which `xtables/tests` compare.

use super::own;
use crate::ext::{self, Family};
use crate::spec::{Module, OptionUse};
use crate::words::quote;

/// Adds what is listed for a match, with the blank before it.
pub(super) fn of_match(line: &mut String, module: &Module<'_>, family: Family) {
    let own = match &*module.name {
        "ah" if family == Family::Ipv4 => own::ah_of_ipv4(module),
        "ah" => own::ah_of_ipv6(module),
        "bpf" => own::bpf(module),
        "connlimit" => own::connlimit(module),
        "dccp" => return form(line, MATCHES, module, family, own::dccp),
        "devgroup" => return form(line, MATCHES, module, family, own::devgroup),
        "eui64" => "eui64 ".to_owned(),
        "frag" => own::frag(module),
        "hashlimit" => own::hashlimit(module),
        "icmp" => own::icmp(module, "icmptype", "icmp"),
        "icmp6" => own::icmp(module, "ipv6-icmptype", "ipv6-icmp"),
        "ipv6header" => return form(line, MATCHES, module, family, own::ipv6header),
        "limit" => own::limit(module),
        "policy" => own::policy(module),
        "rateest" => own::rateest(module),
        "recent" => own::recent(module),
        "sctp" => return form(line, MATCHES, module, family, own::sctp),
        "statistic" => return form(line, MATCHES, module, family, own::statistic),
        "string" => return form(line, MATCHES, module, family, own::string),
        "tcp" => return form(line, MATCHES, module, family, own::tcp),
        "time" => own::time(module),
        _ => return form(line, MATCHES, module, family, |_| None),
    };
    line.push_str(&own);
}

/// Adds what is listed for a target, with the blank before it.
pub(super) fn of_target(line: &mut String, module: &Module<'_>, family: Family) {
    let own = match &*module.name {
        "CLASSIFY" => own::classify(module),
        "CLUSTERIP" => own::clusterip(module),
        "CONNMARK" => own::connmark(module),
        "HMARK" => own::hmark(module),
        "LED" => own::led(module),
        "LOG" => own::log(module),
        "MARK" => own::mark(module),
        "SYNPROXY" => {
            form(line, TARGETS, module, family, |_| None);
            " ".to_owned()
        }
        "TPROXY" => own::tproxy(module),
        "ULOG" => own::ulog(module),
        _ => return form(line, TARGETS, module, family, |_| None),
    };
    line.push_str(&own);
}

/// What stands before the options of an extension, and options with what is listed for them where that is not
/// `name value` and `! name value`: plain, and negated. `{}` is the value; `{s}` is an s if it is a range.
type Form = (&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

/// Adds the options by the row of their extension, but for those that `other` has words for.
fn form(
    line: &mut String,
    forms: &[Form],
    module: &Module<'_>,
    family: Family,
    other: impl Fn(&OptionUse<'_>) -> Option<String>,
) {
    let (_, head, options) =
        forms.iter().find(|(name, ..)| *name == module.name).copied().unwrap_or_default();
    push(line, |text| text.push_str(head));
    // All ports of dccp and sctp, which a save has, are not listed.
    let is_all = |option: &OptionUse<'_>| {
        option.name.ends_with("-port") && option.value() == Some("0:65535") && !option.negated
    };
    for option in module.options.iter().filter(|option| !is_all(option)) {
        let known = options.iter().find(|(name, ..)| *name == option.name);
        push(line, |text| match (other(option), known) {
            (Some(own), _) => text.push_str(&own),
            (None, Some((_, plain, negated))) => {
                fill(text, if option.negated { negated } else { plain }, option);
            }
            (None, None) => text.push_str(&as_saved(module, option, family)),
        });
    }
}

/// Writes a blank and a word behind it; nothing, if the word is empty.
fn push(text: &mut String, word: impl FnOnce(&mut String)) {
    let before = text.len();
    text.push(' ');
    word(text);
    if text.len() == before + 1 {
        text.truncate(before);
    }
}

fn fill(text: &mut String, form: &str, option: &OptionUse<'_>) {
    let values = option.values.as_slice();
    let mut rest = form;
    while let Some((before, (place, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        text.push_str(before);
        if place == "s" && values.first().is_some_and(|value| value.contains(':')) {
            text.push('s');
        }
        if place.is_empty() {
            for (at, value) in values.iter().enumerate() {
                text.extend((at > 0).then_some(' '));
                text.push_str(value);
            }
        }
        rest = after;
    }
    text.push_str(rest);
}

/// Returns an option as iptables-save writes it, but without the dashes.
fn as_saved(module: &Module<'_>, option: &OptionUse<'_>, family: Family) -> String {
    let find = [ext::find_match(&module.name, family), ext::find_target(&module.name, family)];
    let row = find.into_iter().flatten().find_map(|extension| extension.option(&option.name));
    let mut text = if option.negated { "! ".to_owned() } else { String::new() };
    text.push_str(&option.name);
    for (at, value) in option.values.as_slice().iter().enumerate() {
        let quoted = quote(value).ok().filter(|_| row.is_some_and(|row| row.is_quoted(at)));
        text.push(' ');
        text.push_str(quoted.as_deref().unwrap_or(value));
    }
    text
}

const MATCHES: &[Form] = &[
    (
        "addrtype",
        "ADDRTYPE match",
        &[
            ("src-type", "src-type {}", "src-type !{}"),
            ("dst-type", "dst-type {}", "dst-type !{}"),
            ("limit-iface-in", "limit-in", ""),
            ("limit-iface-out", "limit-out", ""),
        ],
    ),
    ("cgroup", "cgroup", &[("path", "{}", "! {}"), ("cgroup", "{}", "! {}")]),
    (
        "cluster",
        "cluster",
        &[
            ("cluster-local-nodemask", "node_mask={}", "!node_mask={}"),
            ("cluster-total-nodes", "total_nodes={}", ""),
            ("cluster-hash-seed", "hash_seed={}", ""),
        ],
    ),
    ("comment", "", &[("comment", "/* {} */", "")]),
    (
        "connbytes",
        "",
        &[("connbytes-mode", "connbytes mode {}", ""), ("connbytes-dir", "connbytes direction {}", "")],
    ),
    ("connlabel", "connlabel", &[("label", "{}", "! {}")]),
    ("connmark", "connmark match", &[("mark", " {}", "! {}")]),
    ("cpu", "cpu", &[("cpu", "{}", "! {}")]),
    (
        "dccp",
        "dccp",
        &[
            ("source-port", "spt{s}:{}", "spt{s}:!{}"),
            ("destination-port", "dpt{s}:{}", "dpt{s}:!{}"),
            ("dccp-option", "option={}", "option=!{}"),
        ],
    ),
    ("dscp", "DSCP match", &[("dscp", "{}", "!{}")]),
    ("dst", "dst", &[("dst-len", "length:{}", "length:!{}"), ("dst-opts", "opts {}", "")]),
    (
        "ecn",
        "ECN match",
        &[
            ("ecn-tcp-cwr", "CWR", "!CWR"),
            ("ecn-tcp-ece", "ECE", "!ECE"),
            ("ecn-ip-ect", "ECT={}", "!ECT={}"),
        ],
    ),
    ("esp", "esp", &[("espspi", "spi{s}:{}", "spi{s}:!{}")]),
    ("hbh", "hbh", &[("hbh-len", "length:{}", "length:!{}"), ("hbh-opts", "opts {}", "")]),
    ("helper", "helper match", &[("helper", "\"{}\"", "! \"{}\"")]),
    (
        "hl",
        "HL match",
        &[("hl-eq", "HL == {}", "HL != {}"), ("hl-lt", "HL < {}", ""), ("hl-gt", "HL > {}", "")],
    ),
    ("ipcomp", "comp", &[("ipcompspi", "spi{s}:{}", "spi{s}:!{}"), ("compres", "reserved", "")]),
    (
        "iprange",
        "",
        &[
            ("src-range", "source IP range {}", "source IP range ! {}"),
            ("dst-range", "destination IP range {}", "destination IP range ! {}"),
        ],
    ),
    ("ipv6header", "ipv6header", &[]),
    ("length", "length", &[("length", "{}", "!{}")]),
    ("mac", "MAC", &[("mac-source", "{}", "! {}")]),
    ("mark", "mark match", &[("mark", "{}", "! {}")]),
    ("mh", "mh", &[("mh-type", "{}", "!{}")]),
    (
        "multiport",
        "multiport",
        &[
            ("sports", "sports {}", "sports  !{}"),
            ("dports", "dports {}", "dports  !{}"),
            ("ports", "ports {}", "ports  !{}"),
        ],
    ),
    (
        "osf",
        "",
        &[
            ("genre", "OS fingerprint match {}", "OS fingerprint match ! {}"),
            ("ttl", "", ""),
            ("log", "", ""),
        ],
    ),
    (
        "owner",
        "",
        &[
            ("uid-owner", "owner UID match {}", "! owner UID match {}"),
            ("gid-owner", "owner GID match {}", "! owner GID match {}"),
            ("suppl-groups", "incl. suppl. groups", ""),
            ("socket-exists", "owner socket exists", "! owner socket exists"),
        ],
    ),
    (
        "physdev",
        "PHYSDEV match",
        &[
            ("physdev-in", "--physdev-in {}", "! --physdev-in {}"),
            ("physdev-out", "--physdev-out {}", "! --physdev-out {}"),
            ("physdev-is-in", "--physdev-is-in", "! --physdev-is-in"),
            ("physdev-is-out", "--physdev-is-out", "! --physdev-is-out"),
            ("physdev-is-bridged", "--physdev-is-bridged", "! --physdev-is-bridged"),
        ],
    ),
    ("pkttype", "PKTTYPE", &[("pkt-type", "= {}", "!= {}")]),
    ("quota", "quota:", &[("quota", "{} bytes", "{} bytes")]),
    ("rpfilter", "rpfilter", &[]),
    (
        "rt",
        "rt",
        &[
            ("rt-type", "type:{}", "type:!{}"),
            ("rt-segsleft", "segsleft{s}:{}", "segsleft{s}:!{}"),
            ("rt-len", "length:{}", "length:!{}"),
            ("rt-0-res", "reserved", ""),
            ("rt-0-addrs", "0-addrs {}", ""),
            ("rt-0-not-strict", "0-not-strict", ""),
        ],
    ),
    (
        "sctp",
        "sctp",
        &[("source-port", "spt{s}:{}", "spt{s}:!{}"), ("destination-port", "dpt{s}:{}", "dpt{s}:!{}")],
    ),
    (
        "socket",
        "socket",
        &[
            ("transparent", "--transparent", ""),
            ("nowildcard", "--nowildcard", ""),
            ("restore-skmark", "--restore-skmark", ""),
        ],
    ),
    (
        "srh",
        "srh",
        &[
            ("srh-next-hdr", "next-hdr:{}", "next-hdr:!{}"),
            ("srh-hdr-len-eq", "hdr-len-eq:{}", "hdr-len-eq:!{}"),
            ("srh-hdr-len-gt", "hdr-len-gt:{}", "hdr-len-gt:!{}"),
            ("srh-hdr-len-lt", "hdr-len-lt:{}", "hdr-len-lt:!{}"),
            ("srh-segs-left-eq", "segs-left-eq:{}", "segs-left-eq:!{}"),
            ("srh-segs-left-gt", "segs-left-gt:{}", "segs-left-gt:!{}"),
            ("srh-segs-left-lt", "segs-left-lt:{}", "segs-left-lt:!{}"),
            ("srh-last-entry-eq", "last-entry-eq:{}", "last-entry-eq:!{}"),
            ("srh-last-entry-gt", "last-entry-gt:{}", "last-entry-gt:!{}"),
            ("srh-last-entry-lt", "last-entry-lt:{}", "last-entry-lt:!{}"),
            ("srh-tag", "tag:{}", "tag:!{}"),
            ("srh-psid", "psid  {}", "psid ! {}"),
            ("srh-nsid", "nsid  {}", "nsid ! {}"),
            ("srh-lsid", "lsid  {}", "lsid ! {}"),
        ],
    ),
    ("statistic", "statistic", &[]),
    (
        "string",
        "STRING match",
        &[("algo", "ALGO name {}", ""), ("from", "FROM {}", ""), ("to", "TO {}", ""), ("icase", "ICASE", "")],
    ),
    (
        "tcp",
        "tcp",
        &[
            ("source-port", "spt{s}:{}", "spt{s}:!{}"),
            ("destination-port", "dpt{s}:{}", "dpt{s}:!{}"),
            ("tcp-option", "option={}", "option=!{}"),
        ],
    ),
    ("tcpmss", "tcpmss match", &[("mss", "{}", "!{}")]),
    ("tos", "", &[("tos", "tos match{}", "tos match!{}")]),
    (
        "ttl",
        "TTL match",
        &[("ttl-eq", "TTL == {}", "TTL != {}"), ("ttl-lt", "TTL < {}", ""), ("ttl-gt", "TTL > {}", "")],
    ),
    ("u32", "u32", &[("u32", "\"{}\"", "! \"{}\"")]),
    (
        "udp",
        "udp",
        &[("source-port", "spt{s}:{}", "spt{s}:!{}"), ("destination-port", "dpt{s}:{}", "dpt{s}:!{}")],
    ),
];

const TARGETS: &[Form] = &[
    ("AUDIT", "AUDIT", &[("type", "{}", "")]),
    ("CHECKSUM", "CHECKSUM", &[("checksum-fill", "fill", "")]),
    ("CONNSECMARK", "CONNSECMARK", &[]),
    ("CT", "CT", &[]),
    ("DNAT", "", &[("to-destination", "to:{}", "")]),
    ("DNPT", "DNPT", &[]),
    ("DSCP", "DSCP", &[("set-dscp", "set {}", "")]),
    ("ECN", "ECN", &[("ecn-tcp-remove", "TCP remove", "")]),
    (
        "HL",
        "HL",
        &[("hl-set", "set to {}", ""), ("hl-dec", "decrement by {}", ""), ("hl-inc", "increment by {}", "")],
    ),
    ("IDLETIMER", "", &[("timeout", "timeout:{}", ""), ("label", "label:{}", "")]),
    ("MASQUERADE", "", &[("to-ports", "masq ports: {}", "")]),
    ("NETMAP", "", &[("to", "to:{}", "")]),
    (
        "NFQUEUE",
        "NFQUEUE",
        &[
            ("queue-num", "num {}", ""),
            ("queue-balance", "balance {}", ""),
            ("queue-bypass", "bypass", ""),
            ("queue-cpu-fanout", "cpu-fanout", ""),
        ],
    ),
    ("NOTRACK", "NOTRACK", &[]),
    (
        "RATEEST",
        "",
        &[
            ("rateest-name", "name {}", ""),
            ("rateest-interval", "interval {}", ""),
            ("rateest-ewmalog", "ewmalog {}", ""),
        ],
    ),
    ("REDIRECT", "", &[("to-ports", "redir ports {}", "")]),
    ("SNAT", "", &[("to-source", "to:{}", "")]),
    ("SNPT", "SNPT", &[]),
    ("SYNPROXY", "SYNPROXY", &[]),
    ("TCPMSS", "TCPMSS", &[("set-mss", "set {}", ""), ("clamp-mss-to-pmtu", "clamp to PMTU", "")]),
    ("TCPOPTSTRIP", "", &[("strip-options", "TCPOPTSTRIP options {}", "")]),
    ("TEE", "TEE", &[("gateway", "gw:{}", ""), ("oif", "oif={}", "")]),
    ("TOS", "TOS", &[("set-tos", "set {}", "")]),
    (
        "TTL",
        "TTL",
        &[
            ("ttl-set", "set to {}", ""),
            ("ttl-dec", "decrement by {}", ""),
            ("ttl-inc", "increment by {}", ""),
        ],
    ),
];
