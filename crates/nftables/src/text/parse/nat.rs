//! Statements that change addresses, ports and devices: `dnat`, `masquerade`, `tproxy`, `dup`, `fwd`; and
//! `queue`.

use crate::check::judge::looks_up_transport;
use crate::datatype::{DataType, Order};
use crate::expr::NatFlags;
use crate::family::Family;
use crate::key::Part;
use crate::object::SetData;
use crate::text::parse::constant::Typed;
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::Kind;
use crate::text::parse::parser::{Parsed, Parser};
use crate::tree::{Dup, Expression, Fwd, Mapping, Nat, NatTarget, PortNat, Queue, Statement, Tproxy, Value};

/// The form of the target of `dnat` and `snat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Concat,
    Interval,
}

impl Parser<'_, '_> {
    /// `dnat|snat [ip|ip6] to TARGET [FLAGS]`
    pub(crate) fn nat(&mut self) -> Parsed<Statement> {
        let start = self.token.span;
        let is_dnat = self.is_word("dnat");
        self.next();
        let mut family = self.family_before_to();
        let (mut form, mut flags) = (Form::Plain, NatFlags::empty());
        match self.word() {
            "prefix" => {
                self.next();
                flags |= NatFlags::NETMAP;
            }
            "interval" => {
                self.next();
                form = Form::Interval;
            }
            "addr" => {
                self.next();
                self.want(Kind::Dot, "`. port`")?;
                self.want_word("port")?;
                form = Form::Concat;
            }
            _ => {}
        }
        self.eat_word("to");
        let port = [Typed::from(DataType::INET_SERVICE)];
        let to = if self.eat(Kind::Colon) {
            NatTarget::Port(self.port(&port)?)
        } else {
            // In tables of several families an earlier match may determine it.
            if family.is_none() && self.family() == Family::INET {
                family = self.context.network;
            }
            let address = self.address_type(family);
            if address.is_none() {
                self.concat_nothing(start)?;
            }
            let types: Vec<_> = address.into_iter().chain(port).collect();
            let target = self.nat_target(&types)?;
            match self.eat(Kind::Colon) {
                true if looks_up_transport(&target) => NatTarget::AddressPort(target, self.value(&port)?),
                true => NatTarget::AddressPort(target, self.port(&port)?),
                false => self.shape(target, form),
            }
        };
        flags |= self.nat_flags()?;
        let nat = Nat { family, to, flags };
        Ok(if is_dnat { Statement::dnat(nat) } else { Statement::snat(nat) })
    }

    /// A port of a transport protocol that was matched before it: a field in the port itself does not count.
    fn port(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let start = self.token.span;
        let before = self.context;
        let port = self.value(types)?;
        before.check_transport("a port").map_err(|clash| self.clashed(clash, self.since(start)))?;
        Ok(port)
    }

    /// In tables of several families an address needs one.
    fn concat_nothing(&self, start: crate::text::parse::lexer::Span) -> Parsed<()> {
        let word = self.lexer.text_of(start);
        Err(Problem::new(start, format!("`{word}` needs a family in a table of family {}", self.family()))
            .help(format!("say `{word} ip to` or `{word} ip6 to`")))
    }

    /// `ip` or `ip6`, where it is the family and no header.
    fn family_before_to(&mut self) -> Option<Family> {
        let family = match self.word() {
            "ip" => Family::IP,
            "ip6" => Family::IP6,
            _ => return None,
        };
        let is_family = matches!(self.second_word(), "to" | "addr" | "interval" | "prefix");
        is_family.then(|| {
            self.next();
            family
        })
    }

    /// The type of addresses of a family, or of the table's.
    fn address_type(&self, family: Option<Family>) -> Option<Typed> {
        match family.unwrap_or_else(|| self.family()) {
            Family::IP => Some(DataType::IPV4_ADDR.into()),
            Family::IP6 => Some(DataType::IPV6_ADDR.into()),
            _ => None,
        }
    }

    /// An address, a prefix, a range, or a map of these or of addresses and ports.
    fn nat_target(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let start = self.token.span;
        let first = self.concat(types)?;
        if self.eat_word("map") {
            let keys = self.types_of(&first);
            let map = self.mapping(&keys, &mut |parser| parser.some_parts(types))?;
            return Ok(Expression::Map(Box::new(crate::tree::Map { key: first, map })));
        }
        let typed = types.first().copied();
        match self.token.kind {
            Kind::Slash if first.is_constant() => self.prefix(first, typed, start),
            Kind::Dash if first.is_constant() => {
                self.next();
                let last = self.constant(typed)?;
                self.range(first, last, typed, start)
            }
            _ => Ok(first),
        }
    }

    /// The form of a target that is not an address and a port.
    fn shape(&mut self, target: Expression, form: Form) -> NatTarget {
        let (parts, intervals) = match &target {
            Expression::Map(map) => match &map.map {
                Mapping::Named(name) => {
                    let set = self.set(name);
                    match set.as_ref().and_then(|set| set.data.as_ref()) {
                        Some(SetData::Value(of)) => (of.parts().len(), false),
                        Some(SetData::Interval(of)) => (of.parts().len(), true),
                        _ => (1, false),
                    }
                }
                Mapping::Anonymous(pairs) => {
                    let parts = |value: &Expression| {
                        if let Expression::Concat(list) = value { list.len() } else { 1 }
                    };
                    (
                        pairs.iter().map(|(_, value)| parts(value)).max().unwrap_or(1),
                        pairs.iter().any(|(_, value)| is_interval(value)),
                    )
                }
            },
            Expression::Concat(parts) => (parts.len(), false),
            _ => return NatTarget::Address(target),
        };
        match (parts > 1 || form == Form::Concat, intervals || form == Form::Interval) {
            (true, true) => NatTarget::ConcatInterval(target),
            (true, false) => NatTarget::Concat(target),
            (false, true) => NatTarget::Interval(target),
            (false, false) => NatTarget::Address(target),
        }
    }

    fn nat_flags(&mut self) -> Parsed<NatFlags> {
        const FLAGS: [(&str, NatFlags); 3] = [
            ("random", NatFlags::RANDOM),
            ("fully-random", NatFlags::FULLY_RANDOM),
            ("persistent", NatFlags::PERSISTENT),
        ];
        let mut flags = NatFlags::empty();
        if FLAGS.iter().any(|(name, _)| *name == self.word()) {
            flags |= self.one_of(&FLAGS)?;
            while self.eat(Kind::Comma) {
                flags |= self.one_of(&FLAGS)?;
            }
        }
        Ok(flags)
    }

    /// `masquerade|redirect [to :PORT] [FLAGS]`
    pub(crate) fn port_nat(&mut self) -> Parsed<Statement> {
        let is_masquerade = self.is_word("masquerade");
        self.next();
        let mut port = None;
        if self.eat_word("to") {
            if !self.eat(Kind::Colon) && is_masquerade {
                return Err(self.expected("`:` and a port"));
            }
            port = Some(self.port(&[DataType::INET_SERVICE.into()])?);
        }
        let nat = PortNat { port, flags: self.nat_flags()? };
        Ok(if is_masquerade { Statement::masquerade(nat) } else { Statement::redirect(nat) })
    }

    /// `tproxy [ip|ip6] to [ADDRESS][:PORT]`
    pub(crate) fn tproxy(&mut self) -> Parsed<Tproxy> {
        let start = self.next().span;
        self.tproxy_target(start)
    }

    fn tproxy_target(&mut self, start: crate::text::parse::lexer::Span) -> Parsed<Tproxy> {
        let family = self.family_before_to();
        self.want_word("to")?;
        let port = [Typed::from(DataType::INET_SERVICE)];
        if self.eat(Kind::Colon) {
            return Ok(Tproxy { family, address: None, port: Some(self.value(&port)?) });
        }
        let Some(typed) = self.address_type(family) else {
            return self.concat_nothing(start).map(|()| Tproxy { family, address: None, port: None });
        };
        let address = Some(self.value(&[typed])?);
        let port = if self.eat(Kind::Colon) { Some(self.value(&port)?) } else { None };
        Ok(Tproxy { family, address, port })
    }

    /// `dup to ADDRESS [device DEVICE]`, or in family netdev `dup to DEVICE`
    pub(crate) fn dup(&mut self) -> Parsed<Dup> {
        self.next();
        self.want_word("to")?;
        if self.family() == Family::NETDEV {
            return Ok(Dup { address: None, device: Some(self.device()?) });
        }
        let types: Vec<_> = self.address_type(None).into_iter().collect();
        let address = Some(self.value(&types)?);
        let device = if self.eat_word("device") { Some(self.device()?) } else { None };
        Ok(Dup { address, device })
    }

    /// `fwd to DEVICE`, or `fwd ip|ip6 to ADDRESS device DEVICE`
    pub(crate) fn fwd(&mut self) -> Parsed<Fwd> {
        self.next();
        let family = self.family_before_to();
        self.want_word("to")?;
        let Some(family) = family else { return Ok(Fwd { device: self.device()?, address: None }) };
        let types: Vec<_> = self.address_type(Some(family)).into_iter().collect();
        let address = self.value(&types)?;
        self.want_word("device")?;
        Ok(Fwd { device: self.device()?, address: Some((family, address)) })
    }

    fn device(&mut self) -> Parsed<Expression> {
        self.value(&[DataType::IFACE_INDEX.into()])
    }

    /// `queue [flags ...] to NUMBER`, and the older `queue num NUMBER [flags]`
    pub(crate) fn queue(&mut self) -> Parsed<Queue> {
        let mut queue = Queue { to: Value::Number(0).into(), bypass: false, fanout: false };
        self.next();
        let (mut has_number, mut has_flags) = (false, false);
        loop {
            match self.word() {
                "flags" if !has_flags && !has_number => {
                    self.next();
                    self.queue_flags(&mut queue)?;
                    has_flags = true;
                }
                "bypass" | "fanout" => {
                    self.queue_flags(&mut queue)?;
                    has_flags = true;
                }
                "to" | "num" if !has_number => {
                    self.next();
                    queue.to = self.value(&[Part::Integer { bytes: 2, order: Order::Host }.into()])?;
                    has_number = true;
                }
                _ => return Ok(queue),
            }
        }
    }

    fn queue_flags(&mut self, queue: &mut Queue) -> Parsed<()> {
        loop {
            match self.one_of(&[("bypass", true), ("fanout", false)])? {
                true => queue.bypass = true,
                false => queue.fanout = true,
            }
            if !self.eat(Kind::Comma) {
                return Ok(());
            }
        }
    }

    /// `flow add @FLOWTABLE`
    pub(crate) fn flow(&mut self) -> Parsed<Statement> {
        if self.second_word() == "table" {
            return self.meter().map(Statement::from);
        }
        self.next();
        self.one_of(&[("add", ()), ("offload", ())])?;
        self.want(Kind::At, "`@` and the name of a flowtable")?;
        Ok(Statement::FlowAdd(self.any_name("the name of a flowtable")?))
    }
}

fn is_interval(value: &Expression) -> bool {
    match value {
        Expression::Prefix(_) | Expression::Range(_) => true,
        Expression::Concat(parts) => parts.iter().any(is_interval),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::{NatTarget, Statement};
    use crate::{Family, Rule, TableId};

    fn read(family: Family, text: &str) -> String {
        let chain = TableId::new(family, "t".parse().unwrap()).chain("c".parse().unwrap());
        match Rule::parse(&chain, text) {
            Ok(rule) => rule.body().to_string(),
            Err(error) => error.mistakes.first().unwrap().message.clone(),
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        for text in [
            "dnat to 1.2.3.4",
            "tcp dport 80 dnat to 1.2.3.4-1.2.3.9:8000-8080 random,persistent",
            "snat ip prefix to ip saddr map { 10.0.0.0/24 : 192.168.0.0/24 }",
            "meta l4proto tcp dnat ip to ip saddr map { 1.1.1.1 : 2.2.2.2 . 80 }",
            "meta l4proto tcp redirect to :8080",
            "masquerade fully-random",
            "meta l4proto tcp tproxy to 1.2.3.4:80",
            "dup to 1.2.3.4 device 1",
            "queue flags bypass,fanout to 1-4",
            "queue to numgen inc mod 4",
            "flow add @ft",
        ] {
            assert_eq!(read(Family::IP, text), text);
        }
        assert_eq!(read(Family::IP6, "tcp dport 80 dnat to [::1]:80"), "tcp dport 80 dnat to [::1]:80");
        assert_eq!(read(Family::NETDEV, "fwd ip to 1.2.3.4 device 1"), "fwd ip to 1.2.3.4 device 1");
    }

    #[test]
    fn older_words_are_the_same() {
        assert_eq!(read(Family::IP, "queue num 3 bypass"), "queue flags bypass to 3");
        assert_eq!(read(Family::IP, "queue num 1-4 fanout bypass"), "queue flags bypass,fanout to 1-4");
        assert_eq!(read(Family::IP, "meta l4proto tcp redirect to 80"), "meta l4proto tcp redirect to :80");
    }

    #[test]
    fn the_family_follows_from_what_was_matched() {
        assert_eq!(
            read(Family::INET, "ip daddr 1.1.1.1 dnat to 2.2.2.2"),
            "ip daddr 1.1.1.1 dnat ip to 2.2.2.2"
        );
        assert_eq!(read(Family::INET, "dnat to 2.2.2.2"), "`dnat` needs a family in a table of family inet");
    }

    #[test]
    fn maps_of_pairs_give_address_and_port() {
        let to = |text: &str| match Statement::parse(Family::IP, text) {
            Ok(Statement::Dnat(nat)) => nat.to,
            other => panic!("{other:?}"),
        };
        assert!(matches!(to("dnat ip to ip saddr map { 1.1.1.1 : 2.2.2.2 . 80 }"), NatTarget::Concat(_)));
        assert!(matches!(to("dnat to ip saddr map { 1.1.1.1 : 2.2.2.0/24 }"), NatTarget::Interval(_)));
        assert!(matches!(to("dnat ip addr . port to ip saddr map @m"), NatTarget::Concat(_)));
        assert!(matches!(to("dnat to ip saddr map @m"), NatTarget::Address(_)));
    }
}
