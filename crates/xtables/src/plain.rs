//! The rules that tables are full of (addresses, interfaces, ports, comments, a verdict or a chain), between words
//! and bytes without the detour through a tree of options: a save of fifty thousand rules takes a third of the time.
//!
//! Nothing is decided here. Whatever is not of the few forms below, or is written in another way than iptables-save
//! writes it, is `None`, and goes the way of all other rules. For what is, both ways give the same, which the tests
//! compare over rules made at random.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use sluicegate_iptables_save::{Family, Place, Spec, Target, find_target, protocol_name, quote, split};

use crate::entry::interface;
use crate::extension::wire::{Reader, Writer};
use crate::extension::{Binary, Kind, Sets, decode_extension};
use crate::rule::{Action, Kernel, Rule, VERDICTS, is_chain};

/// The action of a rule, borrowed from a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Then<'a> {
    Continue,
    Verdict(i32),
    Chain(&'a str),
    /// A target by its name and revision, with its structure.
    Target(&'a str, u8, &'a [u8]),
}

/// Returns the words of a rule, whose matches are given by their names and revisions with their structures.
pub(crate) fn words<'a>(
    head: &[u8],
    matches: impl Iterator<Item = (Cow<'a, str>, u8, &'a [u8])>,
    then: Then<'_>,
    family: Family,
    sets: &dyn Sets,
) -> Option<String> {
    let mut text = String::with_capacity(128);
    let goto = write_head(&mut text, head, family)?;
    for (name, revision, data) in matches {
        match (&*name, revision) {
            ("tcp", 0) => write_tcp(&mut text, data)?,
            ("udp", 0) => write_udp(&mut text, data)?,
            ("comment", 0) => write_comment(&mut text, data)?,
            _ => {
                let module = decode_extension(Kind::Match, &name, revision, data, family, sets)?;
                let spec = Spec { matches: vec![module], ..Spec::default() };
                text.extend([" ", &crate::print::words(&spec).ok()?]);
            }
        }
    }
    match then {
        Then::Continue if goto => return None,
        Then::Continue => (),
        Then::Verdict(verdict) => {
            let (name, _) = VERDICTS.iter().find(|(_, known)| *known == verdict && !goto)?;
            text.extend([" -j ", name]);
        }
        Then::Chain(name) => {
            if !is_name(name.as_bytes()) || !is_chain(name, (!goto).then_some(family)) {
                return None;
            }
            text.extend([if goto { " -g " } else { " -j " }, name]);
        }
        Then::Target(..) if goto => return None,
        Then::Target(name, revision, data) => {
            let module = decode_extension(Kind::Target, name, revision, data, family, sets)?;
            let spec = Spec { target: Some(Target { module, goto }), ..Spec::default() };
            text.extend([" ", &crate::print::words(&spec).ok()?]);
        }
    }
    // Each part begins with a blank.
    if !text.is_empty() {
        text.remove(0);
    }
    Some(text)
}

/// Writes addresses, interfaces and the protocol, and returns whether the rule goes to its chain.
fn write_head(text: &mut String, head: &[u8], family: Family) -> Option<bool> {
    let data = &mut Reader::new(head);
    let width = if family == Family::Ipv4 { 4 } else { 16 };
    let hosts = [data.take(width)?, data.take(width)?];
    let masks = [data.take(width)?, data.take(width)?];
    let names: [[u8; 16]; 2] = [data.array()?, data.array()?];
    let name_masks: [[u8; 16]; 2] = [data.array()?, data.array()?];
    let protocol = u8::try_from(data.u16()?).ok()?;
    let (says_protocol, goto) = match (family, data.u8()?) {
        (Family::Ipv4, flags @ (0 | IPT_GOTO)) => (protocol != 0, flags != 0),
        (Family::Ipv6, 0) => match data.u8()? {
            flags @ (0 | IP6T_PROTOCOL | IP6T_GOTO | 5) => {
                (flags & IP6T_PROTOCOL != 0, flags & IP6T_GOTO != 0)
            }
            _ => return None,
        },
        _ => return None,
    };
    if says_protocol != (protocol != 0) {
        return None;
    }
    let nots = data.u8()?;
    let mut said = 0;
    for ((host, mask), (bit, word)) in hosts.into_iter().zip(masks).zip([(0x08, "-s "), (0x10, "-d ")]) {
        if mask.iter().all(|byte| *byte == 0) && host.iter().all(|byte| *byte == 0) {
            continue;
        }
        let length = prefix_length(mask)?;
        if host.iter().zip(mask).any(|(host, mask)| host & !mask != 0) {
            return None;
        }
        said |= bit;
        text.push_str(if nots & bit == 0 { " " } else { " ! " });
        text.push_str(word);
        match family {
            Family::Ipv4 => {
                for (at, byte) in host.iter().enumerate() {
                    text.extend((at > 0).then_some('.'));
                    push_number(text, (*byte).into());
                }
            }
            Family::Ipv6 => {
                let _ = write!(text, "{}", Ipv6Addr::from(<[u8; 16]>::try_from(host).ok()?));
            }
        }
        text.push('/');
        push_number(text, length);
    }
    for ((name, mask), (bit, word)) in names.iter().zip(name_masks).zip([(0x01, "-i "), (0x02, "-o ")]) {
        let counted = mask.iter().take_while(|byte| **byte == u8::MAX).count();
        if mask.iter().skip(counted).any(|byte| *byte != 0) {
            return None;
        }
        let (shown, rest) = name.split_at(counted);
        let (shown, any) = match shown {
            [] if rest.iter().all(|byte| *byte == 0) => continue,
            [shown @ .., 0] => (shown, ""),
            shown => (shown, "+"),
        };
        if !is_name(shown) || shown.len() + any.len() > 15 {
            return None;
        }
        said |= bit;
        text.push_str(if nots & bit == 0 { " " } else { " ! " });
        text.extend([word, std::str::from_utf8(shown).ok()?, any]);
    }
    if protocol != 0 {
        said |= 0x40;
        text.push_str(if nots & 0x40 == 0 { " -p " } else { " ! -p " });
        match protocol_name(protocol) {
            Some(name) => text.push_str(name),
            None => push_number(text, protocol.into()),
        }
    }
    // What is negated must be there to be so.
    (nots & !said == 0).then_some(goto)
}

/// `struct xt_tcp` with ports alone.
fn write_tcp(text: &mut String, data: &[u8]) -> Option<()> {
    let [ports @ .., 0, 0, 0, nots] = data.get(..12).filter(|_| data.len() == 16)? else { return None };
    text.push_str(" -m tcp");
    write_ports(text, ports, *nots)
}

/// `struct xt_udp`
fn write_udp(text: &mut String, data: &[u8]) -> Option<()> {
    let [ports @ .., nots, 0] = data.get(..10).filter(|_| data.len() == 16)? else { return None };
    text.push_str(" -m udp");
    write_ports(text, ports, *nots)
}

fn write_ports(text: &mut String, ports: &[u8], nots: u8) -> Option<()> {
    let data = &mut Reader::new(ports);
    for (bit, word) in [(1, " --sport "), (2, " --dport ")] {
        let (low, high) = (data.u16()?, data.u16()?);
        let not = nots & bit != 0;
        if (low, high) == ALL_PORTS && !not {
            continue;
        }
        text.push_str(if not { " !" } else { "" });
        text.push_str(word);
        push_number(text, low);
        if low != high {
            text.push(':');
            push_number(text, high);
        }
    }
    (nots & !3 == 0).then_some(())
}

/// `struct xt_comment_info`
fn write_comment(text: &mut String, data: &[u8]) -> Option<()> {
    let end = data.iter().position(|byte| *byte == 0).filter(|_| data.len() == COMMENT)?;
    let comment = data.get(..end)?;
    let comment = std::str::from_utf8(comment).ok().filter(|_| is_printable(comment))?;
    text.extend([" -m comment --comment ", &quote(comment).ok()?]);
    Some(())
}

/// Encodes the words of a rule that is to stand in a user-defined chain.
pub(crate) fn compile(words: &str, place: Place<'_>, kernel: &dyn Kernel) -> Option<Rule> {
    // Within all limits of iptables-restore. What may stand in which built-in chain is judged elsewhere.
    let is_user = |chain: &str| is_name(chain.as_bytes()) && chain.len() <= CHAIN && !HOOKS.contains(&chain);
    if words.len() > 512 || !words.is_ascii() || !TABLES.contains(&place.table) || !is_user(place.chain) {
        return None;
    }
    let mut found = Found::default();
    let mut words = split(words).map(|word| word.ok().map(|word| word.text));
    let mut not = false;
    while let Some(word) = words.next() {
        let negated = std::mem::take(&mut not);
        match &*word? {
            "!" if !negated => not = true,
            "-s" => found.network(0, &words.next()??, negated, place.family)?,
            "-d" => found.network(1, &words.next()??, negated, place.family)?,
            "-i" => found.interface(0, &words.next()??, negated)?,
            "-o" => found.interface(1, &words.next()??, negated)?,
            "-p" if !negated && found.protocol == 0 => {
                found.protocol = match &*words.next()?? {
                    "tcp" => 6,
                    "udp" => 17,
                    _ => return None,
                }
            }
            "-m" if !negated => match (&*words.next()??, found.protocol) {
                ("comment", _) => {
                    if words.next()?? != "--comment" {
                        return None;
                    }
                    let comment = words.next()??;
                    let is_plain = comment.len() < COMMENT && is_printable(comment.as_bytes());
                    let mut data = Writer::with_capacity(COMMENT);
                    data.text(Some(&comment).filter(|_| is_plain)?, COMMENT).ok()?;
                    found.matches.push(("comment", data.finish(), 0));
                }
                ("tcp", 6) => found.matches.push(("tcp", TCP.to_vec(), 11)),
                ("udp", 17) => found.matches.push(("udp", UDP.to_vec(), 8)),
                _ => return None,
            },
            "--sport" => found.ports(0, &words.next()??, negated)?,
            "--dport" => found.ports(1, &words.next()??, negated)?,
            goto @ ("-j" | "-g") if !negated => {
                let name = words.next()??;
                let verdict =
                    VERDICTS.iter().find(|(verdict, _)| *verdict == name).map(|(_, number)| *number);
                found.goto = goto == "-g";
                found.action = match verdict {
                    _ if name == place.chain => return None,
                    Some(_) if found.goto || place.table == "nat" && name == "DROP" => return None,
                    Some(verdict) => Action::Verdict(verdict),
                    None if !is_user(&name) => return None,
                    None if !found.goto && is_target(&name) => return None,
                    None => Action::Chain(name.into_owned()),
                };
                if words.next().is_some() {
                    return None;
                }
            }
            _ => return None,
        }
    }
    if not || found.matches.iter().any(|(name, ..)| !kernel.has(Kind::Match, name, 0)) {
        return None;
    }
    Some(found.rule(place.family))
}

/// What was found in the words of a rule.
struct Found {
    /// Source and destination, each with its mask, as the bytes of the kernel.
    networks: [Option<([u8; 16], [u8; 16])>; 2],
    interfaces: [Option<([u8; 16], [u8; 16])>; 2],
    protocol: u8,
    nots: u8,
    goto: bool,
    /// Names and structures, with the offset of the flags that negate ports.
    matches: Vec<(&'static str, Vec<u8>, usize)>,
    action: Action,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            networks: [None; 2],
            interfaces: [None; 2],
            protocol: 0,
            nots: 0,
            goto: false,
            matches: Vec::new(),
            action: Action::Continue,
        }
    }
}

impl Found {
    fn network(&mut self, at: usize, word: &str, negated: bool, family: Family) -> Option<()> {
        let (address, length) =
            word.split_once('/').map_or((word, None), |(host, length)| (host, Some(length)));
        let mut host = [0; 16];
        let width = match family {
            Family::Ipv4 => {
                host.first_chunk_mut::<4>()?.copy_from_slice(&Ipv4Addr::from_str(address).ok()?.octets());
                32
            }
            Family::Ipv6 => {
                host = Ipv6Addr::from_str(address).ok()?.octets();
                128
            }
        };
        let length =
            length.map_or(Some(width), |length| number(length, width)).filter(|length| *length > 0)?;
        let mut mask = [0; 16];
        for (at, (host, mask)) in (0_u16..).step_by(8).zip(host.iter_mut().zip(&mut mask)) {
            let bits = length.saturating_sub(at).min(8);
            *mask = u8::MAX.checked_shl(u32::from(8 - bits)).unwrap_or(0);
            *host &= *mask;
        }
        self.nots |= if negated { 0x08 << at } else { 0 };
        let place = self.networks.get_mut(at)?;
        place.replace((host, mask)).is_none().then_some(())
    }

    fn interface(&mut self, at: usize, word: &str, negated: bool) -> Option<()> {
        let pattern =
            interface(Some(word).filter(|word| is_name(word.trim_end_matches('+').as_bytes()))?).ok()?;
        self.nots |= if negated { 1 << at } else { 0 };
        let place = self.interfaces.get_mut(at)?;
        place.replace(pattern).is_none().then_some(())
    }

    /// Sets the ports of the match that was named last.
    fn ports(&mut self, at: usize, word: &str, negated: bool) -> Option<()> {
        let (low, high) = match word.split_once(':') {
            None => (number(word, u16::MAX)?, number(word, u16::MAX)?),
            Some((low, high)) => (number(low, u16::MAX)?, number(high, u16::MAX)?),
        };
        // A negated range is saved as the rest of all ports.
        if low > high || (low, high) == ALL_PORTS || negated && low != high {
            return None;
        }
        let (_, data, nots) = self.matches.last_mut().filter(|(.., nots)| *nots != 0)?;
        let place = data.get_mut(4 * at..4 * at + 4).filter(|place| **place == [0, 0, u8::MAX, u8::MAX])?;
        place.get_mut(..2)?.copy_from_slice(&low.to_ne_bytes());
        place.get_mut(2..)?.copy_from_slice(&high.to_ne_bytes());
        *data.get_mut(*nots)? |= if negated { 1 << at } else { 0 };
        Some(())
    }

    fn rule(self, family: Family) -> Rule {
        let mut head = Writer::with_capacity(crate::entry::head_size(family));
        let width = if family == Family::Ipv4 { 4 } else { 16 };
        let networks = self.networks.map(Option::unwrap_or_default);
        let hosts = networks.iter().map(|(host, _)| host);
        for bytes in hosts.chain(networks.iter().map(|(_, mask)| mask)) {
            head.bytes(bytes.get(..width).unwrap_or_default());
        }
        let interfaces = self.interfaces.map(Option::unwrap_or_default);
        interfaces.iter().for_each(|(name, _)| head.bytes(name));
        interfaces.iter().for_each(|(_, mask)| head.bytes(mask));
        head.u16(self.protocol.into());
        match family {
            Family::Ipv4 => head.u8(if self.goto { IPT_GOTO } else { 0 }),
            Family::Ipv6 => {
                head.u8(0);
                head.u8(u8::from(self.protocol != 0) | if self.goto { IP6T_GOTO } else { 0 });
            }
        }
        head.u8(self.nots);
        head.align(4);
        let binary = |(name, data, _)| Binary { name: Cow::Borrowed(name), revision: 0, data };
        Rule {
            head: head.finish(),
            matches: self.matches.into_iter().map(binary).collect(),
            action: self.action,
        }
    }
}

/// Reads a number as it is printed.
fn number(word: &str, most: u16) -> Option<u16> {
    let is_printed =
        word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    word.parse().ok().filter(|number| is_printed && *number <= most)
}

fn push_number(text: &mut String, number: u16) {
    let mut from = 10_000;
    while from > 1 && number < from {
        from /= 10;
    }
    while from > 0 {
        text.push(char::from(b'0' + u8::try_from(number / from % 10).unwrap_or_default()));
        from /= 10;
    }
}

fn prefix_length(mask: &[u8]) -> Option<u16> {
    let ones = mask.iter().take_while(|byte| **byte == u8::MAX).count();
    let mut rest = mask.iter().skip(ones);
    let more = rest.next().copied().unwrap_or_default();
    let is_prefix = more.leading_ones() + more.trailing_zeros() >= 8 && rest.all(|byte| *byte == 0);
    let length = 8 * u32::try_from(ones).ok()? + more.leading_ones();
    u16::try_from(length).ok().filter(|_| is_prefix)
}

/// Whether a name needs no quotation, and can be taken for nothing else.
fn is_name(name: &[u8]) -> bool {
    let is_plain =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'@');
    name.first().is_some_and(u8::is_ascii_alphanumeric) && name.iter().all(is_plain)
}

/// Whether it is a target of either family: that of the other cannot be a chain.
fn is_target(name: &str) -> bool {
    [Family::Ipv4, Family::Ipv6].into_iter().any(|family| find_target(name, family).is_some())
}

fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|byte| (0x20..0x7f).contains(byte))
}

const ALL_PORTS: (u16, u16) = (0, u16::MAX);
/// `struct xt_tcp` that matches every packet, filled up to `XT_ALIGN`: the lowest ports are 0, the highest 65535.
const TCP: [u8; 16] = [0, 0, 255, 255, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0];
/// `struct xt_udp`
const UDP: [u8; 16] = TCP;
/// The size of `struct xt_comment_info`.
const COMMENT: usize = 256;
/// The most bytes of the name of a chain.
const CHAIN: usize = 28;
/// `IPT_F_GOTO`
const IPT_GOTO: u8 = 0x02;
/// `IP6T_F_PROTO`
const IP6T_PROTOCOL: u8 = 0x01;
/// `IP6T_F_GOTO`
const IP6T_GOTO: u8 = 0x04;
const TABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];
const HOOKS: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::extension::NoSets;

    /// A kernel with all revisions.
    struct Everything;

    impl Kernel for Everything {
        fn has(&self, _: Kind, _: &str, _: u8) -> bool {
            true
        }

        fn sets(&self) -> &dyn Sets {
            &NoSets
        }
    }

    fn option() -> impl Strategy<Value = String> {
        let of = |words: &'static [&'static str]| prop::sample::select(words);
        let port =
            of(&["80", "0", "65535", "080", "1:2", "2:1", "0:65535", "0:9", "http", "1:", "+1", "65536"]);
        let address =
            of(&["10.0.0.1", "10.1.2.3/9", "0/0", "1.2.3.4/0", "10.0.0.1/08", "10.1", "1.2.3.4/255.0.255.0"]);
        let address6 =
            of(&["2001:db8::1", "fe80::/10", "::/0", "::1/128", "::ffff:1.2.3.4/97", "2001:DB8::/33"]);
        let name =
            of(&["eth0", "cali+", "+", "a++", "fifteen-bytes-x", "sixteen-bytes-xx", "e!h", "\"a b\""]);
        let comment = of(&["a", "\"a b\"", "\"a\\\"b\\\\'\"", "\"\"", "é", "-x", "!", "\"\t\""]);
        let target = of(&[
            "ACCEPT",
            "DROP",
            "RETURN",
            "QUEUE",
            "X",
            "Y",
            "INPUT",
            "LOG",
            "-x",
            "MARK",
            "a!b",
            "ERROR",
            "REJECT",
            "TTL",
            "HL",
            "MASQUERADE",
        ]);
        let protocol = of(&["tcp", "udp", "6", "icmp", "all", "TCP", "sctp"]);
        let other = of(&["-m tcp", "-m udp", "-m mark --mark 1", "-m comment", "-f", "-c 1 2", "-4", "! !"]);
        let not = || of(&["", "", "! "]);
        prop_oneof![
            (not(), of(&["-s", "-d"]), address).prop_map(|(not, o, v)| format!("{not}{o} {v}")),
            (not(), of(&["-s", "-d"]), address6).prop_map(|(not, o, v)| format!("{not}{o} {v}")),
            (not(), of(&["-i", "-o"]), name).prop_map(|(not, o, v)| format!("{not}{o} {v}")),
            (not(), protocol).prop_map(|(not, v)| format!("{not}-p {v}")),
            comment.prop_map(|v| format!("-m comment --comment {v}")),
            (not(), of(&["--sport", "--dport"]), port).prop_map(|(not, o, v)| format!("{not}{o} {v}")),
            (of(&["-j", "-g"]), target).prop_map(|(o, v)| format!("{o} {v}")),
            other.prop_map(str::to_owned),
        ]
    }

    /// Words as they are saved, with one part in another way.
    fn rule() -> impl Strategy<Value = String> {
        let protocol = prop::sample::select(&["tcp", "udp"][..]);
        let saved = protocol.prop_map(|p| vec![format!("-p {p}"), format!("-m {p}")]);
        (saved, prop::collection::vec(option(), 0..5), 0..6_usize).prop_map(|(mut parts, more, at)| {
            let at = at.min(more.len());
            let (before, behind) = more.split_at(at);
            parts.splice(0..0, before.iter().cloned());
            parts.extend_from_slice(behind);
            parts.join(" ")
        })
    }

    fn of_corpus() -> impl Strategy<Value = String> {
        // Miri takes minutes to read all of them.
        let some = if cfg!(miri) { 20 } else { usize::MAX };
        let words = corpus(RULES).chain(corpus(RULES6)).map(|(.., words)| words.to_owned());
        prop::sample::select(words.take(some).collect::<Vec<_>>())
    }

    fn same_both_ways(words: &str, place: Place<'_>) -> Result<bool, TestCaseError> {
        let family = place.family;
        let general = Rule::compile_in_general(words, place, &Everything);
        let plain = compile(words, place, &Everything);
        if let Some(plain) = &plain {
            let [one] =
                &general.as_ref().map_err(|error| TestCaseError::fail(format!("{words}: {error}")))?.0[..]
            else {
                return Err(TestCaseError::fail(format!("{words}: several rules")));
            };
            prop_assert_eq!(plain, one, "{}", words);
        }
        for rule in general.iter().flat_map(|(rules, _)| rules) {
            if let Some(words) = rule.plain_words(family, &NoSets) {
                prop_assert_eq!(Ok(words), rule.words_in_general(family, &NoSets));
            }
        }
        Ok(plain.is_some())
    }

    /// The rules of a corpus, each with its table and chain.
    fn corpus(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| {
            let (place, words) = line.split_once(':')?;
            let (table, chain) = place.split_once(' ')?;
            Some((table, chain, words.trim()))
        })
    }

    const RULES: &str = include_str!("../../iptables-save/testdata/rules.v4");
    const RULES6: &str = include_str!("../../iptables-save/testdata/rules.v6");
    const REFUSED: &str = include_str!("../../iptables-save/testdata/refused.v4");

    #[test]
    #[cfg_attr(miri, ignore = "thousands of rules, for which Miri takes an hour")]
    fn both_ways_have_the_same_limits() {
        for length in [1, 14, 15, 16, 27, 28, 29, 30, 254, 255, 256, 257, 480, 512, 600] {
            let name = "n".repeat(length);
            let (quoted, escaped) = ("a ".repeat(length / 2), "\\\\".repeat(length / 2));
            for words in [
                format!("-m comment --comment {name}"),
                format!("-m comment --comment \"{quoted}\""),
                format!("-m comment --comment \"{escaped}\""),
                format!("-i {name}"),
                format!("-o {name}+"),
                format!("-j {name}"),
                format!("-g {name}"),
            ] {
                for family in [Family::Ipv4, Family::Ipv6] {
                    same_both_ways(&words, Place { table: "filter", chain: "Y", family }).unwrap();
                }
            }
            same_both_ways("-j X", Place { table: "filter", chain: &name, family: Family::Ipv4 }).unwrap();
        }
        for table in TABLES.into_iter().chain(["broute", ""]) {
            for chain in HOOKS.into_iter().chain(["Y", "ACCEPT", "LOG", "", "-x", "a b"]) {
                for words in ["-j ACCEPT", "-j DROP", "-j RETURN", "-j QUEUE", "-i a -o b -g X"] {
                    same_both_ways(words, Place { table, chain, family: Family::Ipv4 }).unwrap();
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of rules, for which Miri takes an hour")]
    fn both_ways_give_the_same_for_the_corpora() {
        for (text, family) in [(RULES, Family::Ipv4), (RULES6, Family::Ipv6), (REFUSED, Family::Ipv4)] {
            let mut plain = 0;
            for (table, chain, words) in corpus(text) {
                for table in TABLES.into_iter().filter(|other| *other == table || chain == "T") {
                    plain += u32::from(same_both_ways(words, Place { table, chain, family }).unwrap());
                }
            }
            assert!(plain > 0 || text == REFUSED, "none of them goes the short way");
        }
    }

    proptest! {
        // As often as other properties in Miri.
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 2000 }, ..ProptestConfig::default() })]

        #[test]
        fn both_ways_from_words_give_the_same(words in rule(), v6: bool, table in 0..5_usize) {
            let family = if v6 { Family::Ipv6 } else { Family::Ipv4 };
            same_both_ways(&words, Place { table: TABLES[table], chain: "Y", family })?;
        }

        #[test]
        fn both_ways_from_bytes_give_the_same(
            words in prop_oneof![rule(), of_corpus()],
            v6: bool,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let family = if v6 { Family::Ipv6 } else { Family::Ipv4 };
            let place = Place { table: "mangle", chain: "Y", family };
            let Ok((rules, _)) = Rule::compile_in_general(&words, place, &Everything) else { return Ok(()) };
            for mut rule in rules {
                for (at, byte) in &changes {
                    let mut all: Vec<_> = rule.matches.iter_mut().map(|binary| &mut binary.data).collect();
                    all.push(&mut rule.head);
                    let count = all.len();
                    let part = &mut all[at.index(count)];
                    let length = part.len();
                    part[at.index(length)] = *byte;
                }
                if let Some(words) = rule.plain_words(family, &NoSets) {
                    prop_assert_eq!(Ok(words), rule.words_in_general(family, &NoSets));
                }
            }
        }
    }

    #[test]
    fn the_rules_that_tables_are_full_of_go_this_way() {
        let place = Place { table: "nat", chain: "Y", family: Family::Ipv4 };
        let place6 = Place { family: Family::Ipv6, ..place };
        for (words, place) in [
            ("-s 10.0.0.1/32 -p tcp -m comment --comment \"rule 1\" -m tcp --dport 80 -j ACCEPT", place),
            (
                "! -s 10.0.0.0/8 -d 192.0.2.1/32 -i eth0 ! -o cali+ -p udp -m udp --sport 1:2 ! --dport 53 -g X",
                place,
            ),
            ("-m comment --comment \"web:http\" -j KUBE-SVC-XYZ", place),
            ("", place),
            ("-s 2001:db8::/32 -p tcp -m tcp --dport 80 -j RETURN", place6),
        ] {
            assert!(same_both_ways(words, place).unwrap(), "{words}");
            let rule = compile(words, place, &Everything).unwrap();
            assert_eq!(rule.plain_words(place.family, &NoSets).as_deref(), Some(words));
        }
    }
}
