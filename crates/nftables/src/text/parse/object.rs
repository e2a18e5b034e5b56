//! Stateful objects: counters, quotas, limits, `ct` objects, tunnels.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::Protocol;
use crate::datatype::DataType;
use crate::expr::ObjectKind;
use crate::family::Family;
use crate::name::{Comment, Name, SecurityContext};
use crate::object::{
    GeneveOption, ObjectConfig, ObjectId, StatefulObject, Tunnel, TunnelEndpoints, TunnelOptions,
    timeout_states,
};
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::Kind;
use crate::text::parse::parser::{Parsed, Parser, unquoted, wrong_name};
use crate::text::parse::suggest::nearest;
use crate::tree::{Connlimit, Counter, Quota, Synproxy};

impl Parser<'_, '_> {
    /// The kind of an object, if the next words name one: `counter`, `ct helper`.
    pub(crate) fn object_kind(&mut self) -> Option<ObjectKind> {
        let kind = match self.word() {
            "counter" => ObjectKind::COUNTER,
            "quota" => ObjectKind::QUOTA,
            "limit" => ObjectKind::LIMIT,
            "secmark" => ObjectKind::SECMARK,
            "synproxy" => ObjectKind::SYNPROXY,
            "tunnel" => ObjectKind::TUNNEL,
            "ct" => {
                let kind = match self.second_word() {
                    "helper" => ObjectKind::CT_HELPER,
                    "timeout" => ObjectKind::CT_TIMEOUT,
                    "expectation" => ObjectKind::CT_EXPECT,
                    "count" => ObjectKind::CONNLIMIT,
                    _ => return None,
                };
                self.next();
                kind
            }
            _ => return None,
        };
        self.next();
        Some(kind)
    }

    /// The properties of an object, after its name: in braces or without.
    pub(crate) fn object(&mut self, id: ObjectId) -> Parsed<StatefulObject> {
        let start = self.token.span;
        let kind = id.kind;
        let noted = self.problems.len();
        let mut draft = Draft::default();
        if self.is(Kind::OpenBrace) {
            self.block(&mut |parser| {
                if parser.is_word("comment") {
                    let span = parser.next().span;
                    if draft.comment.is_some() {
                        return Err(Problem::new(span, "this object has a comment already"));
                    }
                    draft.comment = Some(parser.comment()?);
                    return Ok(());
                }
                parser.object_property(kind, &mut draft)
            })?;
        } else if !self.at_end() {
            self.object_property(kind, &mut draft)?;
        } else if kind != ObjectKind::COUNTER {
            return Err(self.expected(&format!("what the {kind} is, in braces")));
        }
        let comment = draft.comment.take();
        let config = draft.config(kind).map_err(|missing| {
            Problem::new(self.since(start), format!("this {kind} needs {missing}"))
                .follows(self.problems.len() > noted)
        })?;
        Ok(StatefulObject { id, config, comment })
    }

    /// The protocol of a helper.
    fn transport_of_helper(&mut self) -> Parsed<Protocol> {
        self.one_of(&[("tcp", Protocol::TCP), ("udp", Protocol::UDP)])
    }

    fn object_property(&mut self, kind: ObjectKind, draft: &mut Draft) -> Parsed<()> {
        match kind {
            ObjectKind::COUNTER => {
                if !matches!(self.word(), "packets" | "bytes") {
                    return Err(self.expected_one_of(&["packets", "comment"]));
                }
                self.want_word("packets")?;
                let packets = self.number("a number of packets")?;
                self.want_word("bytes")?;
                let bytes = self.number("a number of bytes")?;
                draft.config = Some(ObjectConfig::Counter(Counter { packets, bytes }));
            }
            ObjectKind::QUOTA => draft.config = Some(ObjectConfig::Quota(self.quota_of()?)),
            ObjectKind::LIMIT => {
                self.want_word("rate")?;
                draft.config = Some(ObjectConfig::Limit(self.rate()?));
            }
            ObjectKind::SECMARK => {
                let span = self.token.span;
                let context = self.string("a security context")?;
                let context = SecurityContext::new(context);
                let context = context.map_err(|error| wrong_name(span, "a security context", &error))?;
                draft.config = Some(ObjectConfig::Secmark(context));
            }
            ObjectKind::SYNPROXY => {
                let mut synproxy = draft.synproxy.unwrap_or_default();
                if !self.synproxy_part(&mut synproxy)? {
                    return Err(self.expected_one_of(&[
                        "mss",
                        "wscale",
                        "timestamp",
                        "sack-perm",
                        "comment",
                    ]));
                }
                while self.synproxy_part(&mut synproxy)? {}
                draft.synproxy = Some(synproxy);
            }
            ObjectKind::CONNLIMIT => {
                let over = self.eat_word("over");
                if !over {
                    self.eat_word("to");
                }
                let count = self.small("a number of connections")?;
                draft.config = Some(ObjectConfig::Connlimit(Connlimit { count, over }));
            }
            ObjectKind::TUNNEL => self.tunnel_property(draft.tunnel.get_or_insert_default())?,
            kind => self.ct_property(kind, draft)?,
        }
        Ok(())
    }

    /// A line of `ct helper`, `ct timeout` or `ct expectation`.
    fn ct_property(&mut self, kind: ObjectKind, draft: &mut Draft) -> Parsed<()> {
        match (self.word(), kind) {
            ("type", ObjectKind::CT_HELPER) => {
                self.next();
                if !self.is(Kind::Quoted) {
                    return Err(self.expected("the name of a helper, in quotes"));
                }
                let span = self.token.span;
                let text = unquoted(self.text());
                let name = match Name::new(text) {
                    Ok(name) if text.len() <= MAX_HELPER => name,
                    Ok(_) => {
                        return Err(Problem::new(
                            span,
                            format!("expected a helper of at most {MAX_HELPER} bytes"),
                        ));
                    }
                    Err(error) => return Err(wrong_name(span, "the name of a helper", &error)),
                };
                self.next();
                draft.helper = Some(name);
                self.want_word("protocol")?;
                draft.protocol = Some(self.transport_of_helper()?);
            }
            ("protocol", ObjectKind::CT_TIMEOUT | ObjectKind::CT_EXPECT) => {
                self.next();
                draft.protocol = Some(self.transport()?);
            }
            ("l3proto", _) => {
                self.next();
                let families = [
                    ("ip", Family::IP),
                    ("ip6", Family::IP6),
                    ("inet", Family::INET),
                    ("bridge", Family::BRIDGE),
                ];
                draft.family = Some(self.one_of(&families)?);
            }
            ("policy", ObjectKind::CT_TIMEOUT) => {
                self.next();
                self.want(Kind::Assign, "`=`")?;
                self.want(Kind::OpenBrace, "`{`")?;
                // nft lists one of no state, where all times are the kernel's own, and does not read it.
                self.members(&mut |parser| {
                    let state = parser.want(Kind::Word, "the name of a state")?.span;
                    parser.want(Kind::Colon, "`:` and a time")?;
                    let time = parser.time_or_seconds("a time")?;
                    let state = parser.lexer.text_of(state).to_owned();
                    draft.policy.push((state, time));
                    Ok(())
                })?;
                // The possible states depend on the protocol.
            }
            ("dport", ObjectKind::CT_EXPECT) => {
                self.next();
                draft.port = Some(self.small("a port")?);
            }
            ("timeout", ObjectKind::CT_EXPECT) => {
                self.next();
                draft.timeout = Some(self.time("a timeout")?);
            }
            ("size", ObjectKind::CT_EXPECT) => {
                self.next();
                draft.size = Some(self.small("a number of connections")?);
            }
            (_, ObjectKind::CT_HELPER) => return Err(self.expected_one_of(&["type", "l3proto", "comment"])),
            (_, ObjectKind::CT_TIMEOUT) => {
                return Err(self.expected_one_of(&["protocol", "policy", "l3proto", "comment"]));
            }
            _ => {
                return Err(
                    self.expected_one_of(&["protocol", "dport", "timeout", "size", "l3proto", "comment"])
                );
            }
        }
        self.separator()
    }

    fn transport(&mut self) -> Parsed<Protocol> {
        let word = self.word();
        match DataType::INET_PROTO.value_of(word).and_then(|number| u8::try_from(number).ok()) {
            Some(number) if !timeout_states(Protocol(number)).is_empty() => {
                self.next();
                Ok(Protocol(number))
            }
            _ => {
                Err(self.expected("a transport protocol such as `tcp`").meant(nearest(word, ["tcp", "udp"])))
            }
        }
    }

    fn tunnel_property(&mut self, tunnel: &mut TunnelDraft) -> Parsed<()> {
        let word = self.word();
        match word {
            "id" => {
                self.next();
                tunnel.id = Some(self.small("a number")?);
            }
            "ip" | "ip6" => {
                self.next();
                let is_source = self.one_of(&[("saddr", true), ("daddr", false)])?;
                let span = self.token.span;
                let text = self.string("an address")?;
                if word == "ip" {
                    let address: Ipv4Addr =
                        text.parse().map_err(|_| Problem::new(span, "expected an IPv4 address"))?;
                    let ends = if is_source { &mut tunnel.v4.0 } else { &mut tunnel.v4.1 };
                    *ends = Some(address);
                } else {
                    let text = text.trim_matches(['[', ']']);
                    let address: Ipv6Addr =
                        text.parse().map_err(|_| Problem::new(span, "expected an IPv6 address"))?;
                    let ends = if is_source { &mut tunnel.v6.0 } else { &mut tunnel.v6.1 };
                    *ends = Some(address);
                }
            }
            "sport" => {
                self.next();
                tunnel.sport = self.small("a port")?;
            }
            "dport" => {
                self.next();
                tunnel.dport = self.small("a port")?;
            }
            "tos" => {
                self.next();
                tunnel.tos = self.small("a number")?;
            }
            "ttl" => {
                self.next();
                tunnel.ttl = Some(self.small("a number")?);
            }
            "vxlan" | "erspan" | "geneve" => {
                self.next();
                tunnel.options = Some(self.tunnel_options(word)?);
                return Ok(());
            }
            _ => {
                return Err(self.expected_one_of(&[
                    "id", "ip", "ip6", "sport", "dport", "tos", "ttl", "vxlan", "erspan", "geneve",
                ]));
            }
        }
        self.separator()
    }

    fn tunnel_options(&mut self, kind: &str) -> Parsed<TunnelOptions> {
        let start = self.token.span;
        let (mut numbers, mut geneve) = (Erspan::default(), Vec::new());
        let mut gbp = None;
        self.block(&mut |parser| {
            match (kind, parser.word()) {
                ("vxlan", "gbp") => {
                    parser.next();
                    gbp = Some(parser.small("a number")?);
                }
                ("erspan", "version") => {
                    parser.next();
                    numbers.version = Some(parser.number("a version")?);
                }
                ("erspan", "index") => {
                    parser.next();
                    numbers.index = Some(parser.small("a number")?);
                }
                ("erspan", "direction") => {
                    parser.next();
                    numbers.egress = Some(parser.one_of(&[("ingress", false), ("egress", true)])?);
                }
                ("erspan", "id") => {
                    parser.next();
                    numbers.hardware = Some(parser.small("a number")?);
                }
                ("geneve", "class") => {
                    parser.next();
                    let class = parser.small("a class")?;
                    parser.want_word("opt-type")?;
                    let kind = parser.small("a type")?;
                    parser.want_word("data")?;
                    let span = parser.token.span;
                    let text = parser.string("data in quotes")?;
                    let data =
                        hex(text).ok_or_else(|| Problem::new(span, "expected bytes like \"0x0102\""))?;
                    geneve.push(GeneveOption { class, kind, data });
                }
                ("vxlan", _) => return Err(parser.expected_one_of(&["gbp"])),
                ("erspan", _) => {
                    return Err(parser.expected_one_of(&["version", "index", "direction", "id"]));
                }
                _ => return Err(parser.expected_one_of(&["class"])),
            }
            parser.separator()
        })?;
        let options = match (kind, gbp, numbers) {
            ("vxlan", Some(gbp), _) => Some(TunnelOptions::Vxlan { gbp }),
            ("erspan", _, Erspan { version: Some(1), index: Some(index), .. }) => {
                Some(TunnelOptions::Erspan1 { index })
            }
            (
                "erspan",
                _,
                Erspan { version: Some(2), egress: Some(egress), hardware: Some(hardware), .. },
            ) => Some(TunnelOptions::Erspan2 { hardware, egress }),
            ("geneve", ..) if !geneve.is_empty() => Some(TunnelOptions::Geneve(geneve)),
            _ => None,
        };
        options.ok_or_else(|| {
            Problem::new(self.since(start), format!("these options of `{kind}` are not complete"))
        })
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Erspan {
    version: Option<u64>,
    index: Option<u32>,
    egress: Option<bool>,
    hardware: Option<u8>,
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.is_empty() || !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// What has been read of an object.
#[derive(Debug, Default)]
struct Draft {
    config: Option<ObjectConfig>,
    comment: Option<Comment>,
    synproxy: Option<Synproxy>,
    helper: Option<Name>,
    protocol: Option<Protocol>,
    family: Option<Family>,
    policy: Vec<(String, Duration)>,
    port: Option<u16>,
    timeout: Option<Duration>,
    size: Option<u8>,
    tunnel: Option<TunnelDraft>,
}

#[derive(Debug, Default)]
struct TunnelDraft {
    id: Option<u32>,
    v4: (Option<Ipv4Addr>, Option<Ipv4Addr>),
    v6: (Option<Ipv6Addr>, Option<Ipv6Addr>),
    sport: u16,
    dport: u16,
    tos: u8,
    ttl: Option<u8>,
    options: Option<TunnelOptions>,
}

/// What an object needs and does not have.
#[derive(Debug, thiserror::Error)]
enum Needs {
    #[error("{0}")]
    Property(&'static str),
    #[error("what a {0} is")]
    Kind(ObjectKind),
    #[error("a state of {protocol}, and `{found}` is none{}", meant(.nearest))]
    State { protocol: Protocol, found: String, nearest: Option<&'static str> },
}

fn meant(nearest: &Option<&str>) -> String {
    nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

impl Draft {
    /// The object, or what it lacks.
    fn config(self, kind: ObjectKind) -> Result<ObjectConfig, Needs> {
        let protocol = || self.protocol.ok_or(Needs::Property("a `protocol`"));
        let family = self.family;
        Ok(match kind {
            ObjectKind::COUNTER => self.config.unwrap_or(ObjectConfig::Counter(Counter::default())),
            // Of no bytes, which nft takes.
            ObjectKind::QUOTA => self.config.unwrap_or(ObjectConfig::Quota(Quota::default())),
            ObjectKind::SYNPROXY => {
                ObjectConfig::Synproxy(self.synproxy.ok_or(Needs::Property("`mss` and `wscale`"))?)
            }
            ObjectKind::CT_HELPER => ObjectConfig::CtHelper {
                protocol: protocol()?,
                helper: self.helper.ok_or(Needs::Property("a `type`"))?,
                family,
            },
            ObjectKind::CT_TIMEOUT => {
                let protocol = protocol()?;
                let states = timeout_states(protocol);
                let policy = self.policy.iter().map(|(state, time)| {
                    let known = states.iter().find(|known| *known == state);
                    known.map(|known| (*known, *time)).ok_or_else(|| Needs::State {
                        protocol,
                        found: state.clone(),
                        nearest: nearest(state, states.iter().copied()),
                    })
                });
                ObjectConfig::CtTimeout { protocol, family, policy: policy.collect::<Result<_, _>>()? }
            }
            ObjectKind::CT_EXPECT => ObjectConfig::CtExpectation {
                protocol: protocol()?,
                port: self.port.ok_or(Needs::Property("a `dport`"))?,
                timeout: self.timeout.ok_or(Needs::Property("a `timeout`"))?,
                size: self.size.ok_or(Needs::Property("a `size`"))?,
                family,
            },
            ObjectKind::TUNNEL => ObjectConfig::Tunnel(self.tunnel.unwrap_or_default().tunnel()?),
            kind => self.config.ok_or(Needs::Kind(kind))?,
        })
    }
}

impl TunnelDraft {
    fn tunnel(self) -> Result<Tunnel, Needs> {
        let id = self.id.ok_or(Needs::Property("an `id`"))?;
        let mut tunnel = match (self.v4, self.v6) {
            ((None, None), (source, Some(destination))) => {
                let mut tunnel = Tunnel::v4(id, Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
                let source = source.unwrap_or(Ipv6Addr::UNSPECIFIED);
                tunnel.endpoints = TunnelEndpoints::V6 { source, destination, flow_label: 0 };
                tunnel
            }
            ((source, Some(destination)), (None, None)) => {
                Tunnel::v4(id, source.unwrap_or(Ipv4Addr::UNSPECIFIED), destination)
            }
            _ => return Err(Needs::Property("an `ip daddr` or an `ip6 daddr`")),
        };
        (tunnel.sport, tunnel.dport, tunnel.tos) = (self.sport, self.dport, self.tos);
        tunnel.ttl = self.ttl.unwrap_or(tunnel.ttl);
        tunnel.options = self.options;
        Ok(tunnel)
    }
}

/// `NF_CT_HELPER_NAME_LEN` counts the NUL.
const MAX_HELPER: usize = 15;

#[cfg(test)]
mod tests {
    use crate::Transaction;

    fn read(object: &str) -> String {
        match Transaction::parse(&format!("add {object}")) {
            Ok(transaction) => transaction.to_string().trim_end().trim_start_matches("add ").to_owned(),
            Err(error) => error.mistakes.iter().map(|m| m.message.as_str()).collect::<Vec<_>>().join("; "),
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        for object in [
            "counter ip t a",
            "counter ip t a { packets 1 bytes 2 ; comment \"x\" ; }",
            "quota ip t a { over 10 mbytes used 1 kbytes ; }",
            "limit ip t a { rate 10/second burst 9 packets ; }",
            "secmark ip t a { \"system_u:object_r:ssh_server_packet_t:s0\" ; }",
            "synproxy ip t a { mss 1460 ; wscale 7 ; timestamp sack-perm ; }",
            "ct helper ip t a { type \"ftp\" protocol tcp ; l3proto ip ; }",
            "ct timeout ip t a { protocol tcp ; l3proto ip ; policy = { established : 100, close : 10 } ; }",
            "ct expectation ip t a { protocol udp ; dport 5432 ; timeout 1h ; size 12 ; l3proto ip ; }",
            "tunnel netdev t a { id 10 ; ip saddr 1.1.1.1 ; ip daddr 1.1.1.2 ; sport 1 ; ttl 255 ; vxlan { \
                gbp 200 ; } ; }",
            "tunnel netdev t a { id 1 ; ip6 saddr ::1 ; ip6 daddr ::2 ; ttl 10 ; erspan { version 1 ; index \
                2 ; } ; }",
        ] {
            assert_eq!(read(object), object);
        }
        assert_eq!(read("counter ip t a packets 1 bytes 2"), "counter ip t a { packets 1 bytes 2 ; }");
        // As nft lists one whose times are all the kernel's own.
        let default = read("ct timeout ip t a { protocol tcp; l3proto ip; policy = {  }; }");
        assert_eq!(read(&default), default);
        assert_eq!(default, read("ct timeout ip t a { protocol tcp; l3proto ip; }"));
    }

    #[test]
    fn what_nft_refuses_is_refused() {
        assert_eq!(read("quota ip t a"), "expected what the quota is, in braces, found the end of the text");
        assert_eq!(read("quota ip t a { }"), "quota ip t a { 0 bytes ; }");
        assert_eq!(
            read("ct helper ip t a { protocol tcp; }"),
            "expected `type`, `l3proto` or `comment`, found `protocol`"
        );
        assert_eq!(
            read("ct timeout ip t a { protocol tcp; policy = { establishd : 5 }; }"),
            "this ct timeout needs a state of tcp, and `establishd` is none; did you mean `established`?"
        );
        assert_eq!(read("counter ip t a { packets 1 }"), "expected `bytes`, found `}`");
    }
}
