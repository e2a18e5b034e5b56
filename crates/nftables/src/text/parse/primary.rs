//! Packet expressions: header fields, `meta`, `ct`, `fib` and the like.

use crate::expr::{
    CtKey, Direction, ExthdrOp, FibFlags, FibResult, InnerType, MetaKey, NumgenMode, PayloadBase, RtKey,
    SocketKey, TunnelKey, XfrmKey,
};
use crate::family::Family;
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::Kind;
use crate::text::parse::parser::{Parsed, Parser};
use crate::text::parse::suggest::nearest;
use crate::tree::exthdr::Exthdr;
use crate::tree::{
    Ct, Expression, Fib, Inner, Ipsec, Jhash, Numgen, Osf, Payload, RawPayload, Rt, Socket, Symhash,
};

impl Parser<'_, '_> {
    /// A packet expression, if the next word starts one.
    pub(crate) fn packet_expression(&mut self) -> Parsed<Option<Expression>> {
        if self.is(Kind::At) {
            return if self.is_raw_payload() { self.raw_payload().map(Some) } else { Ok(None) };
        }
        let word = self.word();
        if let Some(key) = unqualified_meta(word) {
            self.next();
            return Ok(Some(Expression::Meta(key)));
        }
        Ok(Some(match word {
            "ip" | "ip6" | "tcp" | "udp" | "th" | "icmp" | "icmpv6" | "ether" | "vlan" | "arp" | "igmp"
            | "ah" | "esp" | "comp" | "udplite" | "dccp" | "sctp" | "gre" | "vxlan" | "geneve" | "gretap" => {
                return self.header(word);
            }
            "meta" => self.meta()?,
            "ct" => self.ct()?,
            "rt" if self.is_routing() => self.routing()?,
            "rt" | "rt0" | "rt2" | "srh" | "hbh" | "frag" | "dst" | "mh" => self.extension(word)?,
            "exthdr" => self.extension_presence()?,
            "fib" => self.fib()?,
            "socket" => self.socket()?,
            "osf" => self.osf()?,
            "numgen" => self.numgen()?,
            "jhash" => self.jhash()?,
            "symhash" => self.symhash()?,
            "ipsec" if matches!(self.second_word(), "in" | "out") => self.ipsec()?,
            "ipsec" => {
                self.next();
                Expression::Meta(MetaKey::IPSEC)
            }
            "tunnel" if matches!(self.second_word(), "id" | "path") => {
                self.next();
                Expression::Tunnel(self.one_of(&[("id", TunnelKey::ID), ("path", TunnelKey::PATH)])?)
            }
            _ => return Ok(None),
        }))
    }

    /// A header's field; `None` where the word is not followed by one, and is a constant.
    fn header(&mut self, protocol: &str) -> Parsed<Option<Expression>> {
        let field = self.second_word();
        let option = match (protocol, field) {
            ("tcp", "option") => Some(ExthdrOp::TCPOPT),
            ("ip", "option") => Some(ExthdrOp::IPV4),
            ("sctp", "chunk") => Some(ExthdrOp::SCTP),
            ("dccp", "option") => Some(ExthdrOp::DCCP),
            _ => None,
        };
        let start = self.token.span;
        if let Some(op) = option {
            self.next();
            self.next();
            let option = self.option(op)?;
            self.context.meets_extension(option).map_err(|clash| self.clashed(clash, self.since(start)))?;
            return Ok(Some(option.into()));
        }
        let tunnel = match protocol {
            "vxlan" => Some(InnerType::VXLAN),
            "geneve" => Some(InnerType::GENEVE),
            "gre" => Some(InnerType::GRE),
            "gretap" => Some(InnerType::GRETAP),
            _ => None,
        };
        if let Some(tunnel) = tunnel
            && Payload::ALL.iter().any(|payload| payload.protocol() == field)
        {
            self.next();
            let inside = self.word();
            // Inner headers are not protocols of the packet itself.
            let context = std::mem::take(&mut self.context);
            let found = self.header(inside);
            self.context = context;
            return match found? {
                Some(Expression::Payload(field)) => Ok(Some(Inner { tunnel, field }.into())),
                _ => Err(self.wrong_field(inside)),
            };
        }
        let Some(payload) = find_field(protocol, field) else { return Ok(None) };
        self.next();
        self.next();
        let mut found = payload;
        if protocol == "arp" && matches!(field, "saddr" | "daddr") {
            let which = self.one_of(&[("ether", "ether"), ("ip", "ip")])?;
            found = Payload::find("arp", &format!("{field} {which}")).unwrap_or(payload);
        }
        self.context.meets(found).map_err(|clash| self.clashed(clash, self.since(start)))?;
        Ok(Some(found.into()))
    }

    /// The mistake for an unknown word after the name of a header.
    pub(crate) fn wrong_field(&self, protocol: &str) -> Box<Problem> {
        let fields = Payload::ALL.iter().filter(|payload| payload.protocol() == protocol);
        let mut names: Vec<_> =
            fields.map(|payload| payload.field().split(' ').next().unwrap_or_default()).collect();
        names.dedup();
        let token = self.second();
        let found = self.lexer.text_of(token.span);
        let problem = self.found_instead(&format!("a field of the header `{protocol}`"), token);
        match nearest(found, names.iter().copied()) {
            Some(meant) => problem.meant(Some(meant)),
            None => problem.help(format!("there are {}", names.join(", "))),
        }
    }

    /// Behind `tcp option`, `ip option`, `sctp chunk` or `dccp option`.
    pub(crate) fn option(&mut self, op: ExthdrOp) -> Parsed<Exthdr> {
        let start = self.token.span;
        if op == ExthdrOp::TCPOPT && self.eat(Kind::At) {
            let kind = self.option_kind()?;
            self.want(Kind::Comma, "`,`")?;
            let offset = self.small("an offset in bits")?;
            self.want(Kind::Comma, "`,`")?;
            let bits = self.small("a number of bits")?;
            return Ok(Exthdr::tcp_option_at(kind, offset, bits));
        }
        if let Kind::Number(_) = self.token.kind {
            let kind = self.small("the number of an option")?;
            let length = |parser: &mut Self| op == ExthdrOp::TCPOPT && parser.eat_word("length");
            return Ok(match op {
                ExthdrOp::TCPOPT if length(self) => Exthdr::tcp_option_at(kind, 8, 8),
                ExthdrOp::TCPOPT => Exthdr::tcp_option(kind),
                ExthdrOp::DCCP => Exthdr::dccp_option(kind),
                _ => return Err(Problem::new(start, format!("expected a name behind `{op}`"))),
            });
        }
        let name = self.word();
        if op == ExthdrOp::TCPOPT && name == "echo" {
            self.next();
            let length = self.eat_word("length");
            return Ok(if length { Exthdr::tcp_option_at(ECHO, 8, 8) } else { Exthdr::tcp_option(ECHO) });
        }
        let Some(presence) = Exthdr::find(op, name, "") else {
            let names = Exthdr::all().filter(|option| option.op() == op).filter_map(Exthdr::header);
            let names: Vec<_> = names.collect();
            return Err(self
                .expected(&format!("the name of an option behind `{op}`"))
                .meant(nearest(name, names.iter().copied())));
        };
        self.next();
        match Exthdr::find(op, name, self.word()).filter(|_| self.is(Kind::Word)) {
            Some(field) => {
                self.next();
                Ok(field)
            }
            None => Ok(presence),
        }
    }

    fn option_kind(&mut self) -> Parsed<u8> {
        if let Kind::Number(_) = self.token.kind {
            return self.small("the number of an option");
        }
        let name = self.word();
        let kind = Exthdr::find(ExthdrOp::TCPOPT, name, "").map(Exthdr::kind);
        let Some(kind) = kind.or((name == "echo").then_some(ECHO)) else {
            return Err(self.expected("the name or the number of a TCP option"));
        };
        self.next();
        Ok(kind)
    }

    /// A field of an IPv6 extension header.
    fn extension(&mut self, header: &str) -> Parsed<Expression> {
        let start = self.token.span;
        let found = self.extension_field(header)?;
        self.context.meets_extension(found).map_err(|clash| self.clashed(clash, self.since(start)))?;
        Ok(found.into())
    }

    fn extension_field(&mut self, header: &str) -> Parsed<Exthdr> {
        self.next();
        let mut field = self.word().to_owned();
        let start = self.token.span;
        if matches!((header, field.as_str()), ("rt0", "addr") | ("srh", "sid")) {
            self.next();
            self.want(Kind::OpenBracket, "`[`")?;
            let number = self.number("a number")?;
            self.want(Kind::CloseBracket, "`]`")?;
            field = format!("{field}[{number}]");
            let found = Exthdr::find(ExthdrOp::IPV6, header, &field);
            return found.ok_or_else(|| {
                Problem::new(self.since(start), format!("expected `[1]` or `[2]`, found `[{number}]`"))
            });
        }
        match Exthdr::find(ExthdrOp::IPV6, header, &field).filter(|_| !field.is_empty()) {
            Some(found) => {
                self.next();
                Ok(found)
            }
            None => {
                let fields: Vec<_> = Exthdr::all()
                    .filter(|other| other.header() == Some(header))
                    .map(|other| other.to_string())
                    .collect();
                let names = fields.iter().filter_map(|name| name.split(' ').next_back());
                let problem = self.expected(&format!("a field of the header `{header}`"));
                Err(problem.meant(nearest(&field, names)))
            }
        }
    }

    /// `exthdr frag`
    fn extension_presence(&mut self) -> Parsed<Expression> {
        let start = self.next().span;
        let name = self.word();
        match Exthdr::find(ExthdrOp::IPV6, name, "") {
            Some(found) => {
                self.next();
                self.context
                    .meets_extension(found)
                    .map_err(|clash| self.clashed(clash, self.since(start)))?;
                Ok(found.into())
            }
            None => Err(self.expected_one_of(&["hbh", "frag", "rt", "dst", "mh"])),
        }
    }

    /// Whether `@` starts bits by place, and not the name of a set.
    fn is_raw_payload(&self) -> bool {
        let mut ahead = self.lexer;
        let base = ahead.next();
        matches!(self.lexer.text_of(base.span), "ll" | "nh" | "th" | "ih") && ahead.next().kind == Kind::Comma
    }

    /// `@th,16,16`
    pub(crate) fn raw_payload(&mut self) -> Parsed<Expression> {
        self.next();
        let base = self.one_of(&[
            ("ll", PayloadBase::LINK),
            ("nh", PayloadBase::NETWORK),
            ("th", PayloadBase::TRANSPORT),
            ("ih", PayloadBase::INNER),
        ])?;
        self.want(Kind::Comma, "`,`")?;
        let offset = self.small("an offset in bits")?;
        self.want(Kind::Comma, "`,`")?;
        let span = self.token.span;
        let bits = self.small("a number of bits")?;
        if bits == 0 {
            return Err(Problem::new(span, "expected a number of bits, found `0`"));
        }
        Ok(RawPayload { base, offset, bits }.into())
    }

    fn meta(&mut self) -> Parsed<Expression> {
        let start = self.next().span;
        let word = self.word();
        match meta_key(word) {
            Some(key) => {
                self.next();
                self.context.check_meta(key).map_err(|clash| self.clashed(clash, self.since(start)))?;
                Ok(Expression::Meta(key))
            }
            None => {
                let names = MetaKey::ALL.iter().filter_map(|key| key.name());
                Err(self.expected("a key of `meta`").meant(nearest(word, names)))
            }
        }
    }

    fn ct(&mut self) -> Parsed<Expression> {
        let start = self.next().span;
        let direction = match self.word() {
            "original" => Some(Direction::ORIGINAL),
            "reply" => Some(Direction::REPLY),
            _ => None,
        };
        if direction.is_some() {
            self.next();
        }
        let first = self.word();
        let key = match first {
            "ip" | "ip6" => {
                self.next();
                let keys = match first {
                    "ip" => [("saddr", CtKey::SADDR_IP), ("daddr", CtKey::DADDR_IP)],
                    _ => [("saddr", CtKey::SADDR_IP6), ("daddr", CtKey::DADDR_IP6)],
                };
                let key = self.one_of(&keys)?;
                let family = if first == "ip" { Family::IP } else { Family::IP6 };
                self.context.check_network(family).map_err(|clash| self.clashed(clash, self.since(start)))?;
                return Ok(Ct { key, direction, family: None }.into());
            }
            "saddr" | "daddr" if self.context.may_be_of_two_families() => {
                self.next();
                return Err(Problem::new(self.since(start), "the addresses have two families here")
                    .help(format!("say `ip {first}` or `ip6 {first}`")));
            }
            word => CtKey::ALL.iter().find(|key| key.name() == Some(word)).copied(),
        };
        match key {
            Some(key) => {
                self.next();
                let is_address = matches!(key, CtKey::SADDR | CtKey::DADDR);
                let family = self.context.network.or(self.table.as_ref().map(|table| table.family));
                let family = family.filter(|of| is_address && matches!(*of, Family::IP | Family::IP6));
                Ok(Ct { key, direction, family }.into())
            }
            None => {
                let names =
                    CtKey::ALL.iter().filter_map(|key| key.name()).chain(["original", "reply", "count"]);
                Err(self.expected("a key of `ct`").meant(nearest(first, names)))
            }
        }
    }

    /// Whether `rt` asks for the route, not for the header of that name.
    fn is_routing(&self) -> bool {
        matches!(self.second_word(), "classid" | "nexthop" | "mtu" | "ipsec" | "ip" | "ip6")
    }

    fn routing(&mut self) -> Parsed<Expression> {
        self.next();
        let family = match self.word() {
            "ip" => Some(Family::IP),
            "ip6" => Some(Family::IP6),
            _ => None,
        };
        if family.is_some() {
            self.next();
        }
        let span = self.token.span;
        // What may carry both families has to say which, here or by a match before.
        let carries_both = |family| [Family::INET, Family::BRIDGE, Family::NETDEV].contains(&family);
        let own = match self.family() {
            family if carries_both(family) => self.context.network.unwrap_or(family),
            family => family,
        };
        let key = self.one_of(&[
            ("classid", RtKey::CLASSID),
            ("nexthop", RtKey::NEXTHOP_IP),
            ("mtu", RtKey::MTU),
            ("ipsec", RtKey::IPSEC),
        ])?;
        let key = match (key, family.unwrap_or(own)) {
            (RtKey::NEXTHOP_IP, Family::IP6) => RtKey::NEXTHOP_IP6,
            (RtKey::NEXTHOP_IP, of) if of != Family::IP => {
                return Err(Problem::new(span, "the next hop has two families here")
                    .help("say `rt ip nexthop` or `rt ip6 nexthop`"));
            }
            (key, _) => key,
        };
        Ok(Expression::Rt(Rt { key }))
    }

    fn fib(&mut self) -> Parsed<Expression> {
        const FLAGS: [(&str, FibFlags); 5] = [
            ("saddr", FibFlags::SADDR),
            ("daddr", FibFlags::DADDR),
            ("mark", FibFlags::MARK),
            ("iif", FibFlags::IIF),
            ("oif", FibFlags::OIF),
        ];
        self.next();
        let start = self.token.span;
        let mut flags = self.one_of(&FLAGS)?;
        while self.eat(Kind::Dot) {
            flags |= self.one_of(&FLAGS)?;
        }
        let span = self.since(start);
        let exclusive = |first, second| flags.contains(first) && flags.contains(second);
        if !flags.intersects(FibFlags::SADDR | FibFlags::DADDR) {
            return Err(Problem::new(span, "`fib` needs either `saddr` or `daddr`"));
        }
        if exclusive(FibFlags::SADDR, FibFlags::DADDR) {
            return Err(Problem::new(span, "`fib` takes `saddr` or `daddr`, not both"));
        }
        if exclusive(FibFlags::IIF, FibFlags::OIF) {
            return Err(Problem::new(span, "`fib` takes `iif` or `oif`, not both"));
        }
        let (result, check) = self.one_of(&[
            ("oif", (FibResult::OIF, false)),
            ("oifname", (FibResult::OIFNAME, false)),
            ("type", (FibResult::ADDRTYPE, false)),
            ("check", (FibResult::OIF, true)),
        ])?;
        Ok(Fib { flags, result, check }.into())
    }

    fn socket(&mut self) -> Parsed<Expression> {
        self.next();
        let key = self.one_of(&[
            ("transparent", SocketKey::TRANSPARENT),
            ("mark", SocketKey::MARK),
            ("wildcard", SocketKey::WILDCARD),
            ("cgroupv2", SocketKey::CGROUPV2),
        ])?;
        let level = match key {
            SocketKey::CGROUPV2 => {
                self.want_word("level")?;
                Some(self.small::<u8>("a level")?.into())
            }
            _ => None,
        };
        Ok(Expression::Socket(Socket { key, level }))
    }

    fn osf(&mut self) -> Parsed<Expression> {
        self.next();
        let ttl = match self.eat_word("ttl") {
            true => self.one_of(&[("loose", 1), ("skip", 2)])?,
            false => 0,
        };
        let version = self.one_of(&[("name", false), ("version", true)])?;
        Ok(Expression::Osf(Osf { ttl, version }))
    }

    fn numgen(&mut self) -> Parsed<Expression> {
        self.next();
        let mode = self.one_of(&[("inc", NumgenMode::INCREMENTAL), ("random", NumgenMode::RANDOM)])?;
        let modulus = self.modulus()?;
        let offset = self.offset(modulus)?;
        Ok(Numgen { mode, modulus, offset }.into())
    }

    fn jhash(&mut self) -> Parsed<Expression> {
        self.next();
        let of = self.deeper(|parser| parser.concat(&[]))?;
        let modulus = self.modulus()?;
        let seed = match self.eat_word("seed") {
            true => Some(self.small("a seed")?),
            false => None,
        };
        let offset = self.offset(modulus)?;
        Ok(Expression::Jhash(Box::new(Jhash { of, modulus, seed, offset })))
    }

    fn symhash(&mut self) -> Parsed<Expression> {
        self.next();
        let modulus = self.modulus()?;
        let offset = self.offset(modulus)?;
        Ok(Expression::Symhash(Symhash { modulus, offset }))
    }

    fn modulus(&mut self) -> Parsed<u32> {
        self.want_word("mod")?;
        let span = self.token.span;
        match self.small("a modulus")? {
            0 => Err(Problem::new(span, "expected a modulus above 0, found `0`")),
            modulus => Ok(modulus),
        }
    }

    fn offset(&mut self, modulus: u32) -> Parsed<u32> {
        if !self.eat_word("offset") {
            return Ok(0);
        }
        let span = self.token.span;
        let offset: u32 = self.small("an offset")?;
        match offset.checked_add(modulus - 1) {
            Some(_) => Ok(offset),
            None => Err(Problem::new(span, "the offset and the modulus together pass 32 bits")),
        }
    }

    fn ipsec(&mut self) -> Parsed<Expression> {
        self.next();
        let out = self.one_of(&[("in", false), ("out", true)])?;
        let number = match self.eat_word("spnum") {
            true => self.small::<u8>("a number")?.into(),
            false => 0,
        };
        let keys = match self.word() {
            "ip" => [("daddr", XfrmKey::DADDR_IP), ("saddr", XfrmKey::SADDR_IP)],
            "ip6" => [("daddr", XfrmKey::DADDR_IP6), ("saddr", XfrmKey::SADDR_IP6)],
            _ => {
                let key = self.one_of(&[("reqid", XfrmKey::REQID), ("spi", XfrmKey::SPI)])?;
                return Ok(Expression::Ipsec(Ipsec { key, out, number }));
            }
        };
        self.next();
        let key = self.one_of(&keys)?;
        Ok(Expression::Ipsec(Ipsec { key, out, number }))
    }
}

/// A field of a header by one of its names. Of ARP's addresses the first word is enough.
pub(crate) fn find_field(protocol: &str, field: &str) -> Option<Payload> {
    match (protocol, field) {
        (_, "") => None,
        ("icmpv6", "param-problem") => Some(Payload::ICMPV6_PARAMETER_PROBLEM),
        ("icmpv6", "packet-too-big") => Some(Payload::ICMPV6_PACKET_TOO_BIG),
        ("arp", "saddr") => Some(Payload::ARP_SADDR_IP),
        ("arp", "daddr") => Some(Payload::ARP_DADDR_IP),
        _ => Payload::find(protocol, field),
    }
}

/// The names of headers that have fields.
pub(crate) fn is_header(word: &str) -> bool {
    matches!(
        word,
        "ip" | "ip6"
            | "tcp"
            | "udp"
            | "th"
            | "icmp"
            | "icmpv6"
            | "ether"
            | "vlan"
            | "arp"
            | "igmp"
            | "ah"
            | "esp"
            | "comp"
            | "udplite"
            | "dccp"
            | "sctp"
            | "gre"
            | "vxlan"
            | "geneve"
            | "gretap"
    )
}

/// The keys of `meta` that need no `meta` before them.
fn unqualified_meta(word: &str) -> Option<MetaKey> {
    Some(match word {
        "mark" => MetaKey::MARK,
        "iif" => MetaKey::IIF,
        "iifname" => MetaKey::IIFNAME,
        "iiftype" => MetaKey::IIFTYPE,
        "oif" => MetaKey::OIF,
        "oifname" => MetaKey::OIFNAME,
        "oiftype" => MetaKey::OIFTYPE,
        "skuid" => MetaKey::SKUID,
        "skgid" => MetaKey::SKGID,
        "nftrace" => MetaKey::NFTRACE,
        "rtclassid" => MetaKey::RTCLASSID,
        "ibriport" | "ibrname" => MetaKey::IBRNAME,
        "obriport" | "obrname" => MetaKey::OBRNAME,
        "pkttype" => MetaKey::PKTTYPE,
        "cpu" => MetaKey::CPU,
        "iifgroup" => MetaKey::IIFGROUP,
        "oifgroup" => MetaKey::OIFGROUP,
        "cgroup" => MetaKey::CGROUP,
        "time" => MetaKey::TIME,
        "day" => MetaKey::DAY,
        "hour" => MetaKey::HOUR,
        _ => return None,
    })
}

fn meta_key(word: &str) -> Option<MetaKey> {
    match word {
        "secpath" => Some(MetaKey::IPSEC),
        "ibridgename" => Some(MetaKey::IBRNAME),
        "obridgename" => Some(MetaKey::OBRNAME),
        _ => unqualified_meta(word)
            .or_else(|| MetaKey::ALL.iter().find(|key| key.name() == Some(word)).copied()),
    }
}

/// `TCPOPT_ECHO`, which nft has no fields of.
const ECHO: u8 = 6;
