//! Checks that an expression has the type of the set or map in which it is looked up. nft checks that before
//! it sends a rule; the kernel compares lengths at best, so a rule that looks ports up in a set of addresses
//! would be accepted and never match.
//!
//! The types are those that nft 1.0.6 compares. Whatever a later version accepts is accepted too, and so is
//! everything whose type is known only to the program that wrote it.

use crate::check::{Definitions, LowerError};
use crate::datatype::DataType;
use crate::expr::{CtKey, ExthdrOp, FibResult};
use crate::key::Part;
use crate::name::Name;
use crate::object::{Set, SetData, SetType};
use crate::tree::exthdr::Exthdr;
use crate::tree::{BinaryOp, Expression, Mangle, Mapping, SetUpdate};

/// A type for each part; `None` matches every type. Stored inline, because every lookup of every rule is
/// checked.
#[derive(Clone, Copy, Default)]
struct Types {
    list: [Option<DataType>; MAX_PARTS],
    count: usize,
}

/// The use of a key or value: each is more tolerant than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyUse {
    /// A lookup in a set.
    Set,
    /// A lookup in a map. Marks match all numbers, as in later versions of nft.
    Map,
    /// A statement, or an element that a rule adds. Plain numbers match every type.
    Statement,
}

impl Definitions<'_> {
    /// Checks the type of a key that is looked up in a set or map, or added to it, if its definition is
    /// known.
    pub(crate) fn check_key(
        self,
        key: &Expression,
        set: Option<&Set>,
        key_use: KeyUse,
    ) -> Result<(), LowerError> {
        let Some(set) = set else { return Ok(()) };
        let Some(wanted) = self.types_of_set(&set.key) else { return Ok(()) };
        let Some(has) = self.types_of(key) else { return Ok(()) };
        let (wanted, has) = (wanted.parts(), has.parts());
        if all_agree(wanted, has, key_use)
            && !(key_use == KeyUse::Statement && is_of_other_width(key, wanted))
        {
            return Ok(());
        }
        let (has, wanted) = (text(has), text(wanted));
        Err(LowerError::KeyType { set: set.id.name.clone(), expression: key.to_string(), has, wanted })
    }

    /// Checks the type of a value that is added to a map, if its definition is known.
    pub(crate) fn check_value(self, value: &Expression, map: Option<&Set>) -> Result<(), LowerError> {
        let Some(map) = map else { return Ok(()) };
        let Some(of_map) = self.types_of_values(map) else { return Ok(()) };
        let Some(of_value) = self.types_of(value) else { return Ok(()) };
        let (of_map, of_value) = (of_map.parts(), of_value.parts());
        if all_agree(of_map, of_value, KeyUse::Statement) && !is_of_other_width(value, of_map) {
            return Ok(());
        }
        Err(value_type(map, of_map, of_value))
    }

    /// Checks that a value has a type that a statement can assign. A constant takes the type that is wanted.
    pub(crate) fn check_assigned_value(
        self,
        value: &Expression,
        wanted: Option<DataType>,
    ) -> Result<(), LowerError> {
        if matches!(value, Expression::Map(_)) {
            return self.check_map_values(value, &[wanted]);
        }
        let has = type_of(value);
        if wanted.is_none() || agree(wanted, has, KeyUse::Statement) {
            return Ok(());
        }
        let (has, wanted) = (text(&[has]), text(&[wanted]));
        Err(LowerError::GivenType { expression: value.to_string(), has, wanted })
    }

    /// Checks the type of a value that a statement sends somewhere: an address, a port, a device.
    pub(crate) fn check_destination(self, value: &Expression, wanted: DataType) -> Result<(), LowerError> {
        let wanted = [Some(wanted)];
        if matches!(value, Expression::Map(_)) {
            return self.check_map_values(value, &wanted);
        }
        let [of] = wanted;
        let has = if value.is_constant() { None } else { type_of(value) };
        if agree(of, has, KeyUse::Statement) && !is_of_other_width(value, &wanted) {
            return Ok(());
        }
        Err(LowerError::GivenType { expression: value.to_string(), has: text(&[has]), wanted: text(&wanted) })
    }

    /// Checks the type of a key that is looked up in a named set or map.
    pub(crate) fn looked_up(self, key: &Expression, name: &Name, key_use: KeyUse) -> Result<(), LowerError> {
        self.check_key(key, self.set(name), key_use)
    }

    /// Checks the type of a key that is looked up in a named map of verdicts.
    pub(crate) fn verdict_map(self, key: &Expression, name: &Name) -> Result<(), LowerError> {
        let known = self.set(name);
        // For a map with other values the kernel would only report EINVAL.
        self.check_verdicts(known)?;
        self.check_key(key, known, KeyUse::Map)
    }

    /// Checks that a statement changes what can be changed, to a value of its type.
    pub(crate) fn mangled(self, mangle: &Mangle) -> Result<(), LowerError> {
        self.check_assigned_value(&mangle.value, type_of(&mangle.key))
    }

    /// Checks the types of what a statement adds to a set or map.
    pub(crate) fn updated(self, update: &SetUpdate) -> Result<(), LowerError> {
        let known = self.set(&update.set);
        self.check_key(&update.key, known, KeyUse::Statement)?;
        update.value.iter().try_for_each(|value| self.check_value(value, known))
    }

    /// Checks that a statement can use the values of a named map. In nft the type of the values determines
    /// whether NAT has a port; here the kind of the target does.
    pub(crate) fn check_map_values(
        self,
        value: &Expression,
        wanted: &[Option<DataType>],
    ) -> Result<(), LowerError> {
        let Expression::Map(map) = value else { return Ok(()) };
        let Mapping::Named(map) = &map.map else { return Ok(()) };
        let Some(map) = self.set(map) else { return Ok(()) };
        let Some(has) = self.types_of_values(map) else { return Ok(()) };
        let has = has.parts();
        let mut parts = wanted.iter().zip(has);
        if has.len() == wanted.len() && parts.all(|(wanted, has)| agree(*wanted, *has, KeyUse::Statement)) {
            return Ok(());
        }
        Err(value_type(map, has, wanted))
    }

    /// Checks that a map contains verdicts, if its definition is known.
    pub(crate) fn check_verdicts(self, map: Option<&Set>) -> Result<(), LowerError> {
        let verdict = [Some(DataType::VERDICT)];
        let Some(map) = map else { return Ok(()) };
        match self.types_of_values(map) {
            Some(has) if !all_agree(&verdict, has.parts(), KeyUse::Statement) => {
                Err(value_type(map, has.parts(), &verdict))
            }
            _ => Ok(()),
        }
    }

    fn types_of_values(self, map: &Set) -> Option<Types> {
        match map.data.as_ref()? {
            SetData::Value(of) | SetData::Interval(of) => self.types_of_set(of),
            SetData::Verdict => Types::of([Some(DataType::VERDICT)]),
            // The kernel itself checks the kinds of objects.
            SetData::Object(_) => None,
        }
    }

    fn types_of_set(self, of: &SetType) -> Option<Types> {
        let named = |of: DataType| has_name(of).then_some(of);
        match of {
            SetType::Types(types) => Types::of(types.iter().map(|of| named(*of))),
            SetType::Typeof(expression) => self.types_of(expression),
            SetType::Queue => Types::of([Some(DataType::INTEGER)]),
            // A set that was listed without user data for its parts, or that has types of its own program:
            // the parts are raw bytes.
            SetType::Parts(parts) if parts.iter().any(|part| matches!(part, Part::Integer { .. })) => None,
            SetType::Parts(parts) => Types::of(parts.iter().map(|part| named(part.data_type()))),
        }
    }

    /// Returns the types of an expression's parts; `None` if not even their number is known.
    fn types_of(self, expression: &Expression) -> Option<Types> {
        let mut types = Types::default();
        self.append_types(expression, &mut types)?;
        Some(types)
    }

    fn append_types(self, expression: &Expression, types: &mut Types) -> Option<()> {
        match expression {
            Expression::Concat(list) => list.iter().try_for_each(|item| self.append_types(item, types)),
            Expression::Map(map) => match &map.map {
                Mapping::Named(name) => {
                    let given = self.types_of_values(self.set(name)?)?;
                    given.parts().iter().try_for_each(|of| types.push(*of))
                }
                // The values of an anonymous map are checked with the rule's other constants.
                Mapping::Anonymous(_) => None,
            },
            single => types.push(type_of(single)),
        }
    }
}

impl Types {
    /// Collects the types of parts; `None` if there are none, or more than a key can have.
    fn of(list: impl IntoIterator<Item = Option<DataType>>) -> Option<Self> {
        let mut types = Self::default();
        list.into_iter().try_for_each(|of| types.push(of))?;
        (types.count > 0).then_some(types)
    }

    fn push(&mut self, of: Option<DataType>) -> Option<()> {
        *self.list.get_mut(self.count)? = of;
        self.count += 1;
        Some(())
    }

    fn parts(&self) -> &[Option<DataType>] {
        self.list.get(..self.count).unwrap_or_default()
    }
}

/// Returns the type that every version of nft gives to an expression of one part.
pub(crate) fn type_of(expression: &Expression) -> Option<DataType> {
    let is_known = match expression {
        Expression::Payload(_) | Expression::Inner(_) | Expression::Osf(_) => true,
        Expression::Numgen(_) | Expression::Jhash(_) | Expression::Symhash(_) => true,
        Expression::Exthdr(exthdr) => has_type(*exthdr),
        Expression::Meta(key) => key.name().is_some(),
        // The addresses of these keys may be of either IP version.
        Expression::Ct(ct) => ct.key.name().is_some() && ![CtKey::SADDR, CtKey::DADDR].contains(&ct.key),
        Expression::Rt(rt) => rt.key.name().is_some(),
        Expression::Socket(socket) => socket.key.name().is_some(),
        Expression::Ipsec(ipsec) => ipsec.key.name().is_some(),
        Expression::Tunnel(key) => key.name().is_some(),
        // In older versions of nft the name of an interface is a plain string here.
        Expression::Fib(fib) => !fib.check && fib.result != FibResult::OIFNAME,
        Expression::Binary(binary) => {
            let keeps_type = matches!(binary.op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
            return if keeps_type && binary.right.is_constant() { type_of(&binary.left) } else { None };
        }
        // Raw bytes may have any type, and constants take the type that they are compared with.
        _ => false,
    };
    is_known.then(|| expression.part()).flatten().map(Part::data_type)
}

/// Returns whether all versions of nft give the field the same type: addresses of IP options and subtypes of
/// MPTCP used to be numbers, and only later versions allow the presence of an option in a set.
fn has_type(exthdr: Exthdr) -> bool {
    !exthdr.is_presence()
        && exthdr.op() != ExthdrOp::IPV4
        && exthdr.header().is_some_and(|header| header != "mptcp")
}

/// Returns whether `type NAME` can name the type. The others need `typeof` with an expression.
fn has_name(of: DataType) -> bool {
    let unnamed = [
        DataType::INTEGER,
        DataType::BITMASK,
        DataType::STRING,
        DataType::LL_ADDR,
        DataType::CT_LABEL,
        DataType::CT_EVENT,
    ];
    !unnamed.contains(&of)
}

fn all_agree(wanted: &[Option<DataType>], has: &[Option<DataType>], key_use: KeyUse) -> bool {
    match (wanted, has) {
        ([wanted], [has]) => agree(*wanted, *has, key_use),
        // nft does not check what a plain number is added to.
        (_, [Some(DataType::INTEGER)]) => key_use == KeyUse::Statement,
        // In a concatenation the types have to be equal.
        _ => {
            let mut parts = wanted.iter().zip(has);
            wanted.len() == has.len() && parts.all(|(wanted, has)| agree(*wanted, *has, KeyUse::Set))
        }
    }
}

fn agree(wanted: Option<DataType>, has: Option<DataType>, key_use: KeyUse) -> bool {
    let (Some(wanted), Some(has)) = (wanted, has) else { return true };
    wanted == has
        || wanted == DataType::MARK && key_use >= KeyUse::Map && can_be_mark(has)
        || has == DataType::INTEGER && key_use == KeyUse::Statement
}

/// Returns whether the type is a number that is not wider than a mark.
fn can_be_mark(of: DataType) -> bool {
    ![DataType::VERDICT, DataType::STRING, DataType::IFNAME].contains(&of)
        && of.bytes() <= DataType::MARK.bytes()
}

/// Returns whether the value is a plain number of a header whose length differs from that of the type. nft
/// does not check bit fields.
fn is_of_other_width(value: &Expression, wanted: &[Option<DataType>]) -> bool {
    let Expression::Payload(field) = value else { return false };
    let is_whole = field.bits().is_multiple_of(8) && field.offset().is_multiple_of(8);
    if field.data_type() != DataType::INTEGER || !is_whole {
        return false;
    }
    match wanted {
        [None | Some(DataType::INTEGER | DataType::MARK)] => false,
        [Some(wanted)] => wanted.is_bitmask() || usize::from(field.bits() / 8) != wanted.bytes(),
        _ => true,
    }
}

fn value_type(map: &Set, has: &[Option<DataType>], wanted: &[Option<DataType>]) -> LowerError {
    LowerError::ValueType { map: map.id.name.clone(), has: text(has), wanted: text(wanted) }
}

fn text(types: &[Option<DataType>]) -> String {
    let name = |of: &Option<DataType>| of.map_or("?", DataType::name);
    types.iter().map(name).collect::<Vec<_>>().join(" . ")
}

/// The maximum number of parts of a key.
const MAX_PARTS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Order;
    use crate::expr::{MetaKey, PayloadBase};
    use crate::tree::{Mangle, Match, Nat, Payload, RawPayload, SetUpdate, Statement, Vmap};
    use crate::{ApplyOptions, Error, Family, Name, Table, TableId, Transaction};

    fn table() -> TableId {
        TableId::new(Family::IP, Name::from_kernel("t"))
    }

    fn name() -> Name {
        Name::from_kernel("s")
    }

    fn set(of: impl Into<SetType>) -> Set {
        Set::new(table().set(name()), of)
    }

    fn map(of: impl Into<SetType>, to: impl Into<SetType>) -> Set {
        Set::map(table().map(name()), of, to)
    }

    fn in_set(key: impl Into<Expression>) -> Statement {
        Match::new(key, Expression::named(&name())).into()
    }

    fn rule(transaction: &mut Transaction, statement: Statement) {
        transaction.add(table().chain(Name::from_kernel("c")).rule().then(statement));
    }

    fn said(transaction: &Transaction) -> Result<(), String> {
        match transaction.encode(ApplyOptions::default()) {
            Err(Error::Statement { cause, .. }) => Err(cause.to_string()),
            other => other.map(drop).map_err(|error| error.to_string()),
        }
    }

    fn lowered_behind(before: Match, set: Set, statement: Statement) -> Result<(), String> {
        let mut transaction = Transaction::new();
        transaction.add(set);
        transaction.add(table().chain(Name::from_kernel("c")).rule().then(before).then(statement));
        said(&transaction)
    }

    fn lowered(set: Set, statement: Statement) -> Result<(), String> {
        let mut transaction = Transaction::new();
        transaction.add(set);
        rule(&mut transaction, statement);
        said(&transaction)
    }

    #[test]
    fn a_key_is_of_the_type_of_the_set() {
        let addresses = || set(DataType::IPV4_ADDR);
        lowered(addresses(), in_set(Payload::IP_SADDR)).unwrap();
        let wrong = "`tcp dport` is of type inet_service, but the keys of @s are of type ipv4_addr";
        assert_eq!(lowered(addresses(), in_set(Payload::TCP_DPORT)).unwrap_err(), wrong);
        let pair = || Expression::concat([Payload::TCP_DPORT.into(), Payload::IP_SADDR.into()]);
        let wrong = "`tcp dport . ip saddr` is of type inet_service . ipv4_addr, but the keys of @s are of \
            type ipv4_addr . inet_service";
        let pairs = set([DataType::IPV4_ADDR, DataType::INET_SERVICE]);
        assert_eq!(lowered(pairs, in_set(pair())).unwrap_err(), wrong);
        lowered(set(pair()), in_set(pair())).unwrap();
        let update = SetUpdate::update(&name(), Payload::TCP_DPORT);
        assert!(lowered(addresses(), update.into()).unwrap_err().contains("are of type ipv4_addr"));
    }

    #[test]
    fn values_are_of_the_type_that_is_wanted() {
        let given = || Expression::from(Payload::IP_SADDR).map(&name());
        let ports = || map(DataType::IPV4_ADDR, DataType::INET_SERVICE);
        lowered(ports(), Mangle::new(Payload::TCP_DPORT, given()).into()).unwrap();
        let wrong = "the values of @s are of type inet_service, not ipv4_addr";
        assert_eq!(lowered(ports(), Mangle::new(Payload::IP_DADDR, given()).into()).unwrap_err(), wrong);
        let wrong = "the values of @s are of type inet_service, not verdict";
        assert_eq!(lowered(ports(), Vmap::new(Payload::IP_SADDR, &name()).into()).unwrap_err(), wrong);
        let value = Some(Payload::IP_DADDR.into());
        let update = SetUpdate { value, ..SetUpdate::update(&name(), Payload::IP_SADDR) };
        let wrong = "the values of @s are of type inet_service, not ipv4_addr";
        assert_eq!(lowered(ports(), update.into()).unwrap_err(), wrong);
    }

    #[test]
    fn nat_has_a_port_where_its_map_gives_one() {
        let pairs = || map(DataType::IPV4_ADDR, [DataType::IPV4_ADDR, DataType::INET_SERVICE]);
        let addresses = || map(DataType::IPV4_ADDR, DataType::IPV4_ADDR);
        let given = || Expression::from(Payload::IP_SADDR).map(&name());
        let (to, to_concat) = (|| Nat::to(given()), || Nat::to_concat(Family::IP, given()));
        lowered(addresses(), Statement::dnat(to())).unwrap();
        lowered_behind(Match::new(MetaKey::L4PROTO, 6_u32), pairs(), Statement::dnat(to_concat())).unwrap();
        let wrong = "the values of @s are of type ipv4_addr . inet_service, not ipv4_addr";
        assert_eq!(lowered(pairs(), Statement::dnat(to())).unwrap_err(), wrong);
        let wrong = "the values of @s are of type ipv4_addr, not ipv4_addr . inet_service";
        let tcp = Match::new(MetaKey::L4PROTO, 6_u32);
        assert_eq!(lowered_behind(tcp, addresses(), Statement::dnat(to_concat())).unwrap_err(), wrong);
    }

    #[test]
    fn marks_take_numbers_from_maps_and_in_them() {
        let given = || Mangle::new(MetaKey::MARK, Expression::from(Payload::IP_SADDR).map(&name()));
        lowered(map(DataType::IPV4_ADDR, DataType::IPV4_ADDR), given().into()).unwrap();
        for too_wide in [DataType::IPV6_ADDR, DataType::IFNAME] {
            lowered(map(DataType::IPV4_ADDR, too_wide), given().into()).unwrap_err();
        }
        let marks = Set::verdict_map(table().map(name()), DataType::MARK);
        lowered(marks, Vmap::new(Payload::IP_SADDR, &name()).into()).unwrap();
        lowered(set(DataType::MARK), in_set(Payload::IP_SADDR)).unwrap_err();
    }

    #[test]
    fn what_has_no_type_that_is_known_is_looked_up_anywhere() {
        let raw = RawPayload { base: PayloadBase::NETWORK, offset: 96, bits: 32 };
        lowered(set(DataType::IPV4_ADDR), in_set(raw)).unwrap();
        lowered(set(Expression::from(raw)), in_set(Payload::IP_SADDR)).unwrap();
        let number = SetType::Parts(vec![Part::Integer { bytes: 4, order: Order::Network }]);
        lowered(set(number), in_set(Payload::IP_SADDR)).unwrap();
        let mut elsewhere = Transaction::new();
        rule(&mut elsewhere, in_set(Payload::IP_SADDR));
        said(&elsewhere).unwrap();
    }

    /// A rule is checked against the set that exists when it is added.
    #[test]
    fn a_set_may_come_again_with_another_type() {
        let mut again = Transaction::new();
        again.add(set(DataType::IPV4_ADDR));
        rule(&mut again, in_set(Payload::IP_SADDR));
        again.delete(table()).add(Table::new(table())).add(set(DataType::INET_SERVICE));
        rule(&mut again, in_set(Payload::TCP_DPORT));
        said(&again).unwrap();
        rule(&mut again, in_set(Payload::IP_SADDR));
        said(&again).unwrap_err();
    }
}
