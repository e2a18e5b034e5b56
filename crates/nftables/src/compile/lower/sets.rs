//! Creates anonymous sets and maps, each for one rule.

use crate::check::LowerError;
use crate::compile::constant::{Bounds, Place};
use crate::compile::lower::statement::element_expr;
use crate::compile::lower::{AnonymousSet, Before, Lower};
use crate::expr::ObjectKind;
use crate::key::{Key, Part};
use crate::name::Name;
use crate::object::element::{compare, order, successor, wire_count};
use crate::object::{Element, Set, SetData, SetFlags, SetId, SetType};
use crate::sort;
use crate::tree::{Expression, Meter, Value, Verdict};

impl Lower<'_> {
    pub(super) fn anonymous_set(
        &mut self,
        of: &Expression,
        keys: &[Place],
        members: &[Expression],
    ) -> Result<(Name, u32), LowerError> {
        let elements = members.iter().map(|member| element(keys, member)).collect::<Result<_, _>>()?;
        Ok(self.anonymous(of, keys, None, elements, members.iter().any(is_interval)))
    }

    pub(super) fn anonymous_vmap(
        &mut self,
        of: &Expression,
        keys: &[Place],
        pairs: &[(Expression, Verdict)],
    ) -> Result<(Name, u32), LowerError> {
        let elements = pairs
            .iter()
            .map(|(key, verdict)| Ok(element(keys, key)?.verdict(verdict.clone())))
            .collect::<Result<_, _>>()?;
        Ok(self.anonymous(
            of,
            keys,
            Some(SetData::Verdict),
            elements,
            pairs.iter().any(|(key, _)| is_interval(key)),
        ))
    }

    pub(super) fn anonymous_object_map(
        &mut self,
        of: &Expression,
        keys: &[Place],
        pairs: &[(Expression, Name)],
        kind: ObjectKind,
    ) -> Result<(Name, u32), LowerError> {
        let elements = pairs
            .iter()
            .map(|(key, object)| Ok(element(keys, key)?.object(object.clone())))
            .collect::<Result<_, _>>()?;
        Ok(self.anonymous(
            of,
            keys,
            Some(SetData::Object(kind)),
            elements,
            pairs.iter().any(|(key, _)| is_interval(key)),
        ))
    }

    pub(super) fn anonymous_map(
        &mut self,
        of: &Expression,
        keys: &[Place],
        pairs: &[(Expression, Expression)],
        data: &[Part],
    ) -> Result<(Name, u32), LowerError> {
        let places: Vec<_> = data.iter().copied().map(Place::of).collect();
        let intervals = pairs.iter().any(|(_, value)| is_interval(value));
        let elements: Vec<_> = pairs
            .iter()
            .map(|(key, value)| {
                let (low, high) = key_bounds(&places, value)?;
                Ok(match high {
                    // In a map with ranges as values every value is a range, because all values have the same
                    // length.
                    None if !intervals => element(keys, key)?.value(low),
                    high => element(keys, key)?.value_range(low, high.unwrap_or(low)),
                })
            })
            .collect::<Result<_, _>>()?;
        let values = SetType::Parts(data.to_vec());
        let data = if intervals { SetData::Interval(values) } else { SetData::Value(values) };
        Ok(self.anonymous(of, keys, Some(data), elements, pairs.iter().any(|(key, _)| is_interval(key))))
    }

    /// Creates the set of a meter: an anonymous set with a name, to which the rule adds elements.
    pub(super) fn meter_set(&mut self, meter: &Meter) -> u32 {
        *self.numbers += 1;
        let number = *self.numbers;
        let id = SetId { table: self.table.clone(), name: meter.name.clone(), map: false };
        let mut set = Set::new(id, SetType::Parts(meter.key.parts()));
        // nft marks the set as anonymous, so that it is deleted with the rule.
        set.flags = SetFlags::ANONYMOUS | SetFlags::DYNAMIC;
        set.flags.set(SetFlags::TIMEOUT, meter.timeout.is_some());
        set.size = Some(meter.size);
        let set = AnonymousSet { number, set, elements: Vec::new(), key_type: None };
        self.out.before.push(Before::Set(Box::new(set)));
        number
    }

    /// Creates an anonymous set. `of` is the expression that is looked up: nft stores it in the user data to
    /// list constants in its terms, but for maps only if it has several parts. `intervals` is also true for a
    /// prefix that is the whole key.
    fn anonymous(
        &mut self,
        of: &Expression,
        keys: &[Place],
        data: Option<SetData>,
        mut elements: Vec<Element>,
        intervals: bool,
    ) -> (Name, u32) {
        *self.numbers += 1;
        let number = *self.numbers;
        // The kernel replaces `%d` by the lowest free number.
        let name = Name::from_kernel(match data {
            None => "__set%d",
            Some(SetData::Object(_)) => "__objmap%d",
            Some(_) => "__map%d",
        });
        let id = SetId { table: self.table.clone(), name: name.clone(), map: data.is_some() };
        let parts: Vec<_> = keys.iter().map(|place| place.wide_part()).collect();
        // A bit field can make the keys wider than the type: nft then stores the number of the type itself.
        let key_type = match keys {
            [place] if place.wide_part() != place.part => Some(place.part.data_type()),
            _ => None,
        };
        // nft stores the expression only in these cases.
        let has_user_data = match data {
            None => key_type.is_none(),
            Some(SetData::Object(_)) => false,
            Some(_) => keys.len() > 1,
        };
        let key = match has_user_data && of.parts() == parts {
            true => SetType::Typeof(of.clone()),
            false => SetType::Parts(parts),
        };
        let mut set = Set::new(id, key);
        // Nothing can change the elements of an anonymous set: nft marks it as constant.
        set.flags = SetFlags::ANONYMOUS | SetFlags::CONSTANT;
        if intervals {
            set.flags |= SetFlags::INTERVAL;
            // Ranges of a concatenation are not merged: its elements have no single order.
            if keys.len() == 1 {
                elements = merged(elements);
            }
        }
        // The size lets the kernel choose a hash table of fixed size.
        set.data = data;
        let sized = wire_count(&set, &elements);
        set.size = u32::try_from(sized).ok();
        self.out.before.push(Before::Set(Box::new(AnonymousSet { number, set, elements, key_type })));
        (name, number)
    }
}

impl Place {
    /// Returns the part of a key with this length: a bit field may span one byte more than its type has.
    fn wide_part(self) -> Part {
        match self.part {
            part if self.bytes == part.bytes() => part,
            Part::Type(of) if self.bytes == of.bytes() + 1 => Part::Wide(of),
            part => Part::Integer { bytes: u8::try_from(self.bytes).unwrap_or(16), order: part.order() },
        }
    }
}

/// Returns whether a member of a set is a prefix, a range or a wildcard.
pub(crate) fn is_interval(member: &Expression) -> bool {
    match member.member() {
        Expression::Prefix(_) | Expression::Range(_) => true,
        Expression::Value(Value::Interface(name) | Value::Text(name)) => name.prefix().is_some(),
        Expression::Concat(parts) => parts.iter().any(is_interval),
        _ => false,
    }
}

/// Converts a constant to an element of a set with these key types.
#[cfg(feature = "json")]
pub(crate) fn set_element(parts: &[Part], constant: &Expression) -> Result<Element, LowerError> {
    let places: Vec<_> = parts.iter().copied().map(Place::of).collect();
    element(&places, constant)
}

/// Converts a member of a set to an element, with its statements and comment.
fn element(keys: &[Place], member: &Expression) -> Result<Element, LowerError> {
    let Expression::Elem(elem) = member else { return plain(keys, member) };
    let mut element = plain(keys, &elem.value)?;
    for statement in &elem.statements {
        element_expr(statement)?;
        element = element.statement(statement.clone());
    }
    Ok(match &elem.comment {
        Some(comment) => element.comment(comment.clone()),
        None => element,
    })
}

fn plain(keys: &[Place], member: &Expression) -> Result<Element, LowerError> {
    // `*`, the catch-all element.
    if *member == Expression::Any {
        return Ok(Element::catch_all());
    }
    Ok(match key_bounds(keys, member)? {
        (low, None) => Element::new(low),
        (low, Some(high)) => Element::range(low, high),
    })
}

/// Converts a constant to a key, with its upper bound if it is a range.
pub(crate) fn key_bounds(places: &[Place], constant: &Expression) -> Result<(Key, Option<Key>), LowerError> {
    let parts: &[Expression] = match constant {
        Expression::Concat(parts) => parts,
        single => std::slice::from_ref(single),
    };
    if parts.len() != places.len() {
        return Err(LowerError::Constant {
            value: constant.to_string(),
            wanted: format!("value of {} parts", places.len()),
        });
    }
    let (mut low, mut high, mut single) = (Key::new(), Key::new(), true);
    for (part, place) in parts.iter().zip(places) {
        let bounds = Bounds::of(part, *place)?;
        single &= bounds.is_single();
        // Both bounds are encoded with the length that the register has, which may exceed that of the type.
        let fits = low.try_append(place.wide_part(), &bounds.low);
        fits.and_then(|()| high.try_append(place.wide_part(), &bounds.high)).ok_or_else(|| {
            LowerError::Unsupported {
                what: "a key has at most eight parts and 64 bytes",
                expression: constant.to_string(),
            }
        })?;
    }
    Ok((low, (!single).then_some(high)))
}

/// Merges ranges that touch or overlap, as nft does in anonymous sets. If they overlap, the statements and
/// comment of the first are kept. Ranges that only touch are merged only if they carry the same; nft also
/// lists them separately otherwise.
pub(crate) fn merged(mut elements: Vec<Element>) -> Vec<Element> {
    let is_set = elements.iter().all(|e| e.maps_to_nothing() && !e.is_catch_all());
    sort::by(&mut elements, order);
    // Elements of a map are only sorted: merging them would lose a value.
    if is_set {
        elements.dedup_by(|element, last| {
            let (key, end, last_end) = (element.key(), element.last(), last.last());
            let overlaps = compare(&key, &last_end).is_le();
            let touches = successor(&last_end).is_none_or(|next| compare(&key, &next).is_le());
            let merges = touches && (overlaps || element.has_same_state(last));
            if merges {
                let high = std::cmp::max_by(end, last_end, compare);
                *last = last.clone().to(high);
            }
            merges
        });
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::lower::lower_alone;
    use crate::tree::{Counter, Elem, Match, Payload, Reject};
    use crate::{Comment, Family, Port, TableId};

    fn elements(members: impl IntoIterator<Item = Elem>) -> Result<Vec<String>, LowerError> {
        let table = TableId::new(Family::IP, "t".parse().unwrap());
        let statements = [Match::new(Payload::TCP_DPORT, Expression::set(members)).into()];
        let lowered = lower_alone(&table, &statements)?;
        let of = |before: &Before| match before {
            Before::Set(set) => set.elements.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        Ok(lowered.before.iter().flat_map(of).collect())
    }

    fn ports(low: u16, high: u16) -> Elem {
        Elem::new(Expression::range(Port(low), Port(high)))
    }

    fn commented(elem: Elem) -> Elem {
        elem.comment(Comment::new("x").unwrap())
    }

    #[test]
    fn ranges_side_by_side_are_one_where_they_carry_the_same() {
        assert_eq!(elements([ports(1, 2), ports(3, 4)]).unwrap(), ["1-4"]);
        let both = [commented(ports(1, 2)), commented(ports(3, 4))];
        assert_eq!(elements(both).unwrap(), ["1-4 comment \"x\""]);
        let one = [commented(ports(1, 2)), ports(3, 4)];
        assert_eq!(elements(one).unwrap(), ["1-2 comment \"x\"", "3-4"]);
    }

    #[test]
    fn of_ranges_that_overlap_the_first_keeps_its_comment() {
        assert_eq!(elements([ports(3, 5), commented(ports(1, 3))]).unwrap(), ["1-5 comment \"x\""]);
        assert_eq!(elements([commented(ports(3, 5)), ports(1, 9)]).unwrap(), ["1-9"]);
    }

    #[test]
    fn an_only_member_that_carries_something_is_a_set() {
        assert_eq!(elements([Elem::new(Port(22))]).unwrap(), [""; 0]);
        assert_eq!(elements([commented(Elem::new(Port(22)))]).unwrap(), ["22 comment \"x\""]);
    }

    #[test]
    fn more_parts_than_a_key_has_are_refused() {
        let table = TableId::new(Family::IP, "t".parse().unwrap());
        let among = |parts: u32| {
            let fields = (0..parts).map(|_| Payload::IP_TTL.into());
            let values = Expression::concat((0..parts).map(Expression::from));
            let statements = [Match::new(Expression::concat(fields), Expression::set([values])).into()];
            lower_alone(&table, &statements).map(drop).map_err(|e| e.to_string())
        };
        among(8).unwrap();
        assert!(among(9).unwrap_err().starts_with("a key has at most eight parts and 64 bytes: "));
    }

    #[test]
    fn what_an_element_cannot_carry_is_refused() {
        let counted = Elem::new(Port(22)).statement(Counter::default());
        assert_eq!(elements([counted.clone()]).unwrap(), ["22 counter"]);
        let error = elements([counted.statement(Reject::TcpReset)]).unwrap_err().to_string();
        assert!(error.contains("an element cannot carry this statement"), "{error}");
    }
}
