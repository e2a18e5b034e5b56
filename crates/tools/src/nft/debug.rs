//! `--debug=netlink`: what is sent to the kernel, and what it has, as libnftnl's library prints it.
//!
//! Registers are shown by their numbers, and data as the words that the machine has in memory.

use std::fmt::Write as _;

use sluicegate_nftables::expr::{
    BitwiseOp, ByteorderOp, CmpOp, Data, DynsetOp, Expr, ExthdrFlags, ExthdrOp, PayloadBase, RangeOp,
    Register,
};
use sluicegate_nftables::monitor::{Change, Event, RuleChange};
use sluicegate_nftables::netlink::message::Messages;
use sluicegate_nftables::{ApplyOptions, Family, SetFlags, Transaction, Within, read};

use super::error::CommandError;

/// What a transaction sends. It is printed although the kernel may refuse it.
pub(super) fn sent(transaction: &Transaction) -> Result<String, CommandError> {
    // What only the kernel knows is not in it: the places of rules by their index, and handles of chains.
    let Ok(batch) = transaction.encode(ApplyOptions::default()) else { return Ok(String::new()) };
    let mut text = String::new();
    for message in Messages::new(batch.bytes().map_err(CommandError::cause)?) {
        let message = message.map_err(CommandError::cause)?;
        // Of what deletes, only elements are printed.
        match Event::decode(message) {
            Ok(Some(Event::Rule(RuleChange::New(_) | RuleChange::Inserted(_), rule))) => {
                text.push_str(&of_rule(&rule)?);
            }
            Ok(Some(Event::Set(Change::New | Change::Created, set))) => {
                let size = set.size.map(|size| format!(" size {size}")).unwrap_or_default();
                let _ = writeln!(text, "{} {} {:x}{size}", set.name.as_str(), set.table, set.flags.bits());
            }
            Ok(Some(Event::Elements(_, set, elements))) => {
                let _ = write!(text, "{} {} 0\n\t", set.set.as_str(), set.table);
                let list: Vec<_> = elements.iter().map(of_element).collect();
                let _ = writeln!(text, "{}", list.join("\t"));
            }
            _ => {}
        }
    }
    Ok(text)
}

/// What the kernel has of a family or table.
pub(super) fn listed(ruleset: &read::Ruleset, within: &Within) -> Result<String, CommandError> {
    let is_listed = |of: Family, table: &sluicegate_nftables::Name| match within {
        Within::Family(family) => *family == Family::UNSPEC || *family == of,
        Within::Table(id) => id.family == of && id.name == *table,
    };
    let mut text = String::new();
    for (set, elements) in &ruleset.sets {
        if set.flags.contains(SetFlags::ANONYMOUS) || !is_listed(set.family, &set.table) {
            continue;
        }
        let _ = writeln!(text, "{} {} @{}", set.family, set.table, set.name);
        for element in elements {
            let _ = writeln!(text, "\t{}", of_element(element));
        }
    }
    for rule in ruleset.rules.iter().filter(|rule| is_listed(rule.family, &rule.table)) {
        text.push_str(&of_rule(rule)?);
    }
    Ok(text)
}

fn of_rule(rule: &read::Rule) -> Result<String, CommandError> {
    let mut text = format!("{} {} {}", rule.family, rule.table, rule.chain);
    if rule.handle != 0 {
        let _ = write!(text, " {}", rule.handle);
    }
    if let Some(position) = rule.position {
        let _ = write!(text, " {position}");
    }
    text.push('\n');
    for expr in &rule.expressions {
        let shown =
            of_expr(expr).ok_or_else(|| CommandError::NoWords { expression: expr.name().to_string() })?;
        let _ = writeln!(text, "  [ {shown} ]");
    }
    if !rule.user_data.is_empty() {
        let byte = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte).to_string(),
            byte => format!("\\x{byte:02x}"),
        };
        let _ = write!(text, "  userdata = {{ {} }}", rule.user_data.iter().map(byte).collect::<String>());
    }
    text.push('\n');
    Ok(text)
}

fn of_element(element: &read::Element) -> String {
    let data = element.data.as_ref().map(|data| format!("{} ", of_data(data, ""))).unwrap_or_default();
    let end =
        element.details().key_end.as_ref().map(|end| format!(" - {}", words(end, ""))).unwrap_or_default();
    format!("element {}{end}  : {data}{} [end]", words(&element.key, ""), element.flags.bits())
}

/// Words of four bytes as this machine reads them.
fn words(bytes: &[u8], start: &str) -> String {
    let word = |chunk: &[u8]| {
        let mut word = [0; 4];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        format!("{start}{:08x}", u32::from_ne_bytes(word))
    };
    bytes.chunks(4).map(word).collect::<Vec<_>>().join(" ")
}

fn of_data(data: &Data, start: &str) -> String {
    use sluicegate_nftables::expr::Verdict;
    match data {
        Data::Value(bytes) => words(bytes, start),
        Data::Verdict(verdict) => match verdict {
            Verdict::Jump(chain) => format!("jump -> {chain}"),
            Verdict::Goto(chain) => format!("goto -> {chain}"),
            other => other.to_string(),
        },
        Data::ChainId(code, id) => format!("{code} -> __chain{id}"),
        Data::Code(code) => code.to_string(),
        _ => "unknown".to_owned(),
    }
}

fn value(data: &Data) -> String {
    of_data(data, "0x")
}

/// An expression; `None` for one that has no text here.
fn of_expr(expr: &Expr) -> Option<String> {
    let reg = |of: Register| of.0;
    Some(match expr {
        Expr::Meta(of) => match (of.dreg, of.sreg) {
            (Some(dreg), _) => format!("meta load {} => reg {}", meta_key(of.key), reg(dreg)),
            (None, sreg) => format!("meta set {} with reg {}", meta_key(of.key), reg(sreg?)),
        },
        Expr::Cmp(of) => format!("cmp {} reg {} {}", cmp_op(of.op)?, reg(of.sreg), value(&of.data)),
        Expr::Range(of) => {
            let op = if of.op == RangeOp::EQ { "eq" } else { "neq" };
            format!("range {op} reg {} {} {}", reg(of.sreg), value(&of.from), value(&of.to))
        }
        Expr::Payload(of) => {
            let base = match of.base {
                PayloadBase::LINK => "link",
                PayloadBase::NETWORK => "network",
                PayloadBase::TRANSPORT => "transport",
                PayloadBase::INNER => "inner",
                _ => return None,
            };
            let place = format!("{}b @ {base} header + {}", of.len, of.offset);
            match (of.dreg, of.sreg) {
                (Some(dreg), _) => format!("payload load {place} => reg {}", reg(dreg)),
                (None, sreg) => format!(
                    "payload write reg {} => {place} csum_type {} csum_off {} csum_flags 0x{:x}",
                    reg(sreg?),
                    of.csum_type.map_or(0, |of| of.0),
                    of.csum_offset.unwrap_or_default(),
                    of.csum_flags.map_or(0, |of| of.bits()),
                ),
            }
        }
        Expr::Immediate(of) => format!("immediate reg {} {}", reg(of.dreg), value(&of.data)),
        Expr::Bitwise(of) => {
            let (to, from) = (reg(of.dreg), reg(of.sreg));
            match of.op {
                None | Some(BitwiseOp::BOOL) => format!(
                    "bitwise reg {to} = ( reg {from} & {} ) ^ {}",
                    value(of.mask.as_ref()?),
                    value(of.xor.as_ref()?)
                ),
                Some(BitwiseOp::LSHIFT) => {
                    format!("bitwise reg {to} = ( reg {from} << {} )", value(of.data.as_ref()?))
                }
                Some(BitwiseOp::RSHIFT) => {
                    format!("bitwise reg {to} = ( reg {from} >> {} )", value(of.data.as_ref()?))
                }
                _ => return None,
            }
        }
        Expr::Byteorder(of) => {
            let op = if of.op == ByteorderOp::NTOH { "ntoh" } else { "hton" };
            format!("byteorder reg {} = {op}(reg {}, {}, {})", reg(of.dreg), reg(of.sreg), of.size, of.len)
        }
        Expr::Lookup(of) => {
            let to = of.dreg.map(|dreg| format!(" dreg {}", reg(dreg))).unwrap_or_default();
            let flags = of.flags.map(|flags| format!(" 0x{:x}", flags.bits())).unwrap_or_default();
            format!("lookup reg {} set {}{to}{flags}", reg(of.sreg), of.set.as_str())
        }
        Expr::Ct(of) => {
            let direction = of.direction.map(|of| format!(" , dir {of}")).unwrap_or_default();
            match (of.dreg, of.sreg) {
                (Some(dreg), _) => format!("ct load {} => reg {}{direction}", ct_key(of.key), reg(dreg)),
                (None, sreg) => format!("ct set {} with reg {}{direction}", ct_key(of.key), reg(sreg?)),
            }
        }
        Expr::Rt(of) => format!(
            "rt load {} => reg {}",
            of.key.to_string().replace("ip nexthop", "nexthop4").replace("ip6 nexthop", "nexthop6"),
            reg(of.dreg)
        ),
        Expr::Socket(of) => {
            let level = of.level.map(|level| format!(" level {level}")).unwrap_or_default();
            format!("socket load {} => reg {}{level}", of.key, reg(of.dreg))
        }
        Expr::Osf(of) => format!("osf dreg {}", reg(of.dreg)),
        Expr::Fib(of) => format!(
            "fib {} {} => reg {}",
            of.flags.iter_names().map(|(name, _)| name.to_lowercase()).collect::<Vec<_>>().join(" "),
            of.result,
            reg(of.dreg)
        ),
        Expr::Numgen(of) => {
            let offset = of.offset.filter(|offset| *offset != 0).map(|offset| format!(" offset {offset}"));
            format!(
                "numgen reg {} = {} mod {}{}",
                reg(of.dreg),
                of.mode,
                of.modulus,
                offset.unwrap_or_default()
            )
        }
        Expr::Hash(of) => {
            let offset = of.offset.filter(|offset| *offset != 0).map(|offset| format!(" offset {offset}"));
            let offset = offset.unwrap_or_default();
            match of.sreg {
                Some(sreg) => format!(
                    "hash reg {} = jhash(reg {}, {}, 0x{:x}) % mod {}{offset}",
                    reg(of.dreg),
                    reg(sreg),
                    of.len.unwrap_or_default(),
                    of.seed.unwrap_or_default(),
                    of.modulus
                ),
                None => format!("hash reg {} = symhash() % mod {}{offset}", reg(of.dreg), of.modulus),
            }
        }
        Expr::Xfrm(of) => {
            let direction = if of.direction == 0 { "in" } else { "out" };
            let key = of.key.to_string().replace("ip6 ", "").replace("ip ", "");
            format!("xfrm load {direction} {} {key} => reg {}", of.number.unwrap_or_default(), reg(of.dreg))
        }
        Expr::Exthdr(of) => {
            let header = match of.op.unwrap_or(ExthdrOp::IPV6) {
                ExthdrOp::IPV6 => "ipv6",
                ExthdrOp::TCPOPT => "tcpopt",
                ExthdrOp::IPV4 => "ipv4",
                ExthdrOp::SCTP => "sctp chunk",
                _ => return None,
            };
            let present = of.flags.is_some_and(|flags| flags.contains(ExthdrFlags::PRESENT));
            let present = if present { " present" } else { "" };
            let place = format!("{}b @ {} + {}", of.len?, of.kind, of.offset.unwrap_or_default());
            match (of.dreg, of.sreg) {
                (Some(dreg), _) => format!("exthdr load {header} {place}{present} => reg {}", reg(dreg)),
                (None, Some(sreg)) => format!("exthdr write {header} reg {} => {place}", reg(sreg)),
                _ => return None,
            }
        }
        Expr::Nat(of) => {
            let family = if of.family == 10 { "ip6" } else { "ip" };
            let mut text = format!("nat {} {family}", of.of);
            let parts = [
                ("addr_min", of.addr_min),
                ("addr_max", of.addr_max),
                ("proto_min", of.proto_min),
                ("proto_max", of.proto_max),
            ];
            for (name, register) in parts {
                if let Some(register) = register {
                    let _ = write!(text, " {name} reg {}", reg(register));
                }
            }
            if let Some(flags) = of.flags.filter(|flags| flags.bits() != 0) {
                let _ = write!(text, " flags 0x{:x}", flags.bits());
            }
            text
        }
        Expr::Masq(of) => nat_like("masq", of.proto_min, of.proto_max, of.flags.map_or(0, |of| of.bits())),
        Expr::Redir(of) => nat_like("redir", of.proto_min, of.proto_max, of.flags.map_or(0, |of| of.bits())),
        Expr::Reject(of) => format!("reject type {} code {}", of.of.0, of.code.unwrap_or_default()),
        Expr::Tproxy(of) => {
            let family = match of.family {
                2 => " ip",
                10 => " ip6",
                _ => "",
            };
            let addr = of.addr.map(|of| format!(" addr reg {}", reg(of))).unwrap_or_default();
            let port = of.port.map(|of| format!(" port reg {}", reg(of))).unwrap_or_default();
            format!("tproxy{family}{addr}{port}")
        }
        Expr::Queue(of) => {
            let mut text = match (of.sreg, of.number) {
                (Some(sreg), _) => format!("queue sg_queue_from reg {}", reg(sreg)),
                (None, number) => {
                    let first = number?;
                    let last = first.saturating_add(of.total.unwrap_or(1).max(1) - 1);
                    if last == first {
                        format!("queue num {first}")
                    } else {
                        format!("queue num {first}-{last}")
                    }
                }
            };
            let flags = of.flags.map_or(0, |of| of.bits());
            for (bit, word) in [(1, " bypass"), (2, " fanout")] {
                text.push_str(if flags & bit != 0 { word } else { "" });
            }
            text
        }
        Expr::Counter(of) => {
            format!("counter pkts {} bytes {}", of.packets.unwrap_or_default(), of.bytes.unwrap_or_default())
        }
        Expr::Quota(of) => format!(
            "quota bytes {} consumed {} flags {}",
            of.bytes,
            of.consumed.unwrap_or_default(),
            of.flags.map_or(0, |of| of.bits())
        ),
        Expr::Limit(of) => limit(of)?,
        Expr::Log(of) => {
            let mut text = "log".to_owned();
            if let Some(prefix) = &of.prefix {
                let _ = write!(text, " prefix {prefix}");
            }
            match (of.group, of.level) {
                (Some(group), _) => {
                    let snaplen = of.snaplen.unwrap_or_default();
                    let threshold = of.queue_threshold.unwrap_or_default();
                    let _ = write!(text, " group {group} snaplen {snaplen} qthreshold {threshold}");
                }
                (None, Some(level)) => {
                    let _ = write!(text, " level {level}");
                }
                _ => {}
            }
            if of.flags.is_some_and(|flags| flags.bits() != 0) {
                return None;
            }
            text
        }
        Expr::Connlimit(of) => {
            format!("connlimit count {} flags {:x}", of.count, of.flags.map_or(0, |of| of.bits()))
        }
        Expr::Dynset(of) => {
            let op = match of.op {
                DynsetOp::ADD => "add",
                DynsetOp::UPDATE => "update",
                DynsetOp::DELETE => "delete",
                _ => return None,
            };
            let mut text = format!("dynset {op} reg_key {} set {}", reg(of.key), of.set.as_str());
            if let Some(data) = of.data {
                let _ = write!(text, " sreg_data {}", reg(data));
            }
            if let Some(timeout) = of.timeout {
                let _ = write!(text, " timeout {timeout}ms");
            }
            for expr in of.expr.iter().map(|expr| &**expr).chain(&of.exprs) {
                let _ = write!(text, " expr [ {} ]", of_expr(expr)?);
            }
            text
        }
        Expr::Notrack(_) => "notrack".to_owned(),
        Expr::Objref(of) => match (&of.name, of.kind) {
            (Some(name), Some(kind)) => format!("objref type {} name {name}", kind.0),
            _ => format!("objref sreg {} set {}", reg(of.sreg?), of.set.as_ref()?),
        },
        Expr::Synproxy(of) if of.flags.is_none_or(|flags| flags.bits() & !3 == 0) => {
            format!("synproxy mss {} wscale {}", of.mss.unwrap_or_default(), of.wscale.unwrap_or_default())
        }
        _ => return None,
    })
}

/// `masq` and `redir`, whose registers and flags are the same.
fn nat_like(name: &str, min: Option<Register>, max: Option<Register>, flags: u32) -> String {
    let mut text = name.to_owned();
    for (part, register) in [("proto_min", min), ("proto_max", max)] {
        if let Some(register) = register {
            let _ = write!(text, " {part} reg {}", register.0);
        }
    }
    if flags != 0 {
        let _ = write!(text, " flags 0x{flags:x}");
    }
    text
}

fn limit(of: &sluicegate_nftables::expr::kind::Limit) -> Option<String> {
    let unit = match of.unit {
        1 => "second",
        60 => "minute",
        3600 => "hour",
        86_400 => "day",
        604_800 => "week",
        _ => return None,
    };
    let kind = if of.of.is_some_and(|of| of.0 == 1) { "bytes" } else { "packets" };
    let (burst, flags) = (of.burst.unwrap_or_default(), of.flags.map_or(0, |of| of.bits()));
    Some(format!("limit rate {}/{unit} burst {burst} type {kind} flags 0x{flags:x}", of.rate))
}

fn cmp_op(op: CmpOp) -> Option<&'static str> {
    Some(match op {
        CmpOp::EQ => "eq",
        CmpOp::NEQ => "neq",
        CmpOp::LT => "lt",
        CmpOp::LTE => "lte",
        CmpOp::GT => "gt",
        CmpOp::GTE => "gte",
        _ => return None,
    })
}

/// libnftnl has some keys under other names than nft.
fn meta_key(key: sluicegate_nftables::expr::MetaKey) -> String {
    key.to_string()
        .replace("length", "len")
        .replace("ibrname", "bri_iifname")
        .replace("obrname", "bri_oifname")
}

fn ct_key(key: sluicegate_nftables::expr::CtKey) -> String {
    match key.to_string().as_str() {
        "ip saddr" => "src_ip".to_owned(),
        "ip daddr" => "dst_ip".to_owned(),
        "ip6 saddr" => "src_ip6".to_owned(),
        "ip6 daddr" => "dst_ip6".to_owned(),
        "saddr" => "src".to_owned(),
        "daddr" => "dst".to_owned(),
        "proto-src" => "proto_src".to_owned(),
        "proto-dst" => "proto_dst".to_owned(),
        other => other.to_owned(),
    }
}
