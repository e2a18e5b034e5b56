//! Lowers lookups in sets and maps, named or anonymous.

use crate::check::LowerError;
use crate::compile::constant::Place;
use crate::compile::lower::Lower;
use crate::compile::lower::fold::without_xor;
use crate::compile::lower::load::{WORDS, is_expressible};
use crate::compile::lower::sets::is_interval;
use crate::expr::{self, ByteorderOp, LookupFlags, Register};
use crate::key::{Part, is_byte_swapped, width};
use crate::name::Name;
use crate::object::{Set, SetFlags};
use crate::tree::{Expression, Mapping, MatchOp, Value, Vmap};

impl Lower<'_> {
    /// Looks a key up in a map, and loads the value into the register of the key.
    pub(super) fn load_map(
        &mut self,
        map: &crate::tree::Map,
        wanted: &[Part],
        word: u32,
    ) -> Result<u32, LowerError> {
        self.imply(&map.key)?;
        let (set, set_id, bytes) = match &map.map {
            // The definition of a named map is not always known, so the length of its values follows from
            // their use.
            Mapping::Named(name) => {
                let known = self.set(name);
                let form = KeyForm::named(self.holds_intervals(name, known, &map.key));
                self.load_key(&map.key, &key_types(known), form, word)?;
                (name.clone(), None, wanted.iter().map(|p| p.bytes()).sum())
            }
            Mapping::Anonymous(pairs) => {
                let (of, pairs) = without_xor(&map.key, pairs, |(key, _)| key);
                let key = self.load_key(of, &[], KeyForm::of(pairs.iter().map(|(key, _)| key)), word)?;
                // A map without a use that determines the type takes that of its first value.
                let own = pairs.first().map(|(_, value)| value.parts()).unwrap_or_default();
                let parts = if wanted.is_empty() { own } else { wanted.to_vec() };
                let bytes = width(&parts);
                let (name, number) = self.anonymous_map(of, &key, &pairs, &parts)?;
                (name, Some(number), bytes)
            }
        };
        let register = Register::word(word);
        // nft reuses the register of the key for the value.
        self.push(expr::Lookup { set, sreg: register, dreg: Some(register), set_id, flags: None });
        Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    pub(crate) fn vmap(&mut self, vmap: &Vmap) -> Result<(), LowerError> {
        self.imply(&vmap.key)?;
        let (set, set_id) = match &vmap.map {
            Mapping::Named(name) => {
                self.load_named(&vmap.key, name)?;
                (name.clone(), None)
            }
            Mapping::Anonymous(pairs) => {
                let (key, pairs) = without_xor(&vmap.key, pairs, |(key, _)| key);
                let form = KeyForm::of(pairs.iter().map(|(key, _)| key));
                let keys = self.load_key(key, &[], form, 0)?;
                let (name, number) = self.anonymous_vmap(key, &keys, &pairs)?;
                (name, Some(number))
            }
        };
        // A lookup into the verdict register executes the verdict.
        let dreg = Some(Register::VERDICT);
        self.push(expr::Lookup { set, sreg: Register::word(0), dreg, set_id, flags: None });
        Ok(())
    }

    pub(super) fn look_up(
        &mut self,
        left: &Expression,
        op: MatchOp,
        set: Name,
        number: Option<u32>,
    ) -> Result<(), LowerError> {
        self.load_named(left, &set)?;
        self.push_lookup(op, set, number);
        Ok(())
    }

    pub(super) fn push_lookup(&mut self, op: MatchOp, set: Name, set_id: Option<u32>) {
        let flags = (op == MatchOp::Neq).then_some(LookupFlags::INVERT);
        self.push(expr::Lookup { set, sreg: Register::word(0), dreg: None, set_id, flags });
    }

    /// Loads the key of a named set or map.
    pub(super) fn load_named(&mut self, key: &Expression, name: &Name) -> Result<(), LowerError> {
        let set = self.set(name);
        let types = key_types(set);
        // Without intervals the key is loaded like any value; constants in it take the types of the set.
        if !self.holds_intervals(name, set, key) {
            return self.load_typed(key, &types).map(drop);
        }
        self.load_key(key, &types, KeyForm::named(true), 0).map(drop)
    }

    /// Loads a key into the first registers; constants in it have these types. Returns its length in bytes.
    pub(super) fn load_typed(&mut self, key: &Expression, types: &[Part]) -> Result<u32, LowerError> {
        let Expression::Concat(list) = key else {
            return match (key, types) {
                (Expression::Value(_), [_]) => self.load_as(key, types, 0),
                _ => self.load_plain(key, 0),
            };
        };
        let mut total = 0;
        for (i, item) in list.iter().enumerate() {
            let bytes = match (item, types.get(i..=i)) {
                (Expression::Value(_), Some(of)) => self.load_as(item, of, total / 4)?,
                _ => self.load_plain(item, total / 4)?,
            };
            total += bytes.next_multiple_of(4);
        }
        Ok(total)
    }

    /// Loads a constant as part of a key.
    fn load_constant(
        &mut self,
        value: &Value,
        of: Part,
        intervals: bool,
        word: u32,
    ) -> Result<Place, LowerError> {
        let place = Place::of(of);
        let mut bytes = place.bytes(value)?;
        // The bounds of intervals are stored in network byte order (`Element::encode`), because
        // `nft_set_rbtree` compares them with `memcmp`.
        if intervals && is_byte_swapped(of) {
            bytes.reverse();
        }
        self.immediate(bytes, word);
        Ok(place)
    }

    /// Loads the key of a lookup. `types` are the types of the set's keys, if they are known.
    pub(super) fn load_key(
        &mut self,
        key: &Expression,
        types: &[Part],
        form: KeyForm,
        word: u32,
    ) -> Result<Vec<Place>, LowerError> {
        if let Expression::Concat(list) = key {
            let (mut places, mut word) = (Vec::with_capacity(list.len()), word);
            for (i, item) in list.iter().enumerate() {
                // A constant has no length of its own; it takes that of the key's field.
                if let (Expression::Value(value), Some(of)) = (item, types.get(i)) {
                    places.push(self.load_constant(value, *of, form.intervals, word)?);
                    word += u32::try_from(of.bytes().div_ceil(4)).unwrap_or(WORDS);
                    continue;
                }
                // In a concatenation every field has its own register, so bit fields are shifted down.
                let bytes = self.load_plain(item, word)?;
                let place = self.place(item)?;
                self.swap_for_intervals(form.intervals, place, word);
                places.push(place);
                word += bytes.div_ceil(4);
            }
            return Ok(places);
        }
        if let (Expression::Value(value), [of]) = (key, types) {
            return Ok(vec![self.load_constant(value, *of, form.intervals, word)?]);
        }
        is_expressible(key)?;
        let field = self.load_field(key, word)?;
        self.mask(&field, word);
        let place = self.place(key)?;
        // The elements of the set are encoded for the place where the bits are.
        let place = match form.bits {
            Bits::Stay => Place { bytes: field.bytes as usize, shift: field.shift, ..place },
            Bits::Shifted => {
                self.move_down(&field, field.bytes, word);
                Place { bytes: field.bytes as usize, ..place }
            }
            Bits::Typed if field.shift == 0 => Place { bytes: field.bytes as usize, ..place },
            Bits::Typed => {
                self.move_down(&field, u32::try_from(place.bytes).unwrap_or(u32::MAX), word);
                place
            }
        };
        self.swap_for_intervals(form.intervals, place, word);
        Ok(vec![place])
    }

    /// Byte-swaps a number in host byte order before it is looked up among intervals, which the kernel
    /// compares in network byte order.
    fn swap_for_intervals(&mut self, intervals: bool, place: Place, word: u32) {
        let size = u32::try_from(place.bytes).unwrap_or(0);
        // `nft_byteorder` converts numbers of these sizes only.
        if intervals && is_byte_swapped(place.part) && matches!(size, 2 | 4 | 8) {
            self.swap_register(word, size);
        }
    }

    /// Byte-swaps a number in host byte order in a register.
    pub(super) fn swap_register(&mut self, word: u32, len: u32) {
        /// `nft_byteorder` converts at most eight bytes at once; nft orders the words of connection labels
        /// accordingly.
        const AT_ONCE: u32 = 8;
        self.byteorder(word, ByteorderOp::HTON, len, len.min(AT_ONCE));
    }

    /// Returns whether a set or map has intervals. If that is not known and matters for this key, the set is
    /// added to those to query.
    fn holds_intervals(&mut self, name: &Name, known: Option<&Set>, key: &Expression) -> bool {
        if let Some(set) = known {
            return set.flags.contains(SetFlags::INTERVAL);
        }
        // Other keys are loaded the same way in either case, so no query is needed.
        if !key.parts().into_iter().any(is_byte_swapped) {
            return false;
        }
        let id = self.table.set(name.clone());
        let holds = self.intervals.contains(&id);
        if !holds {
            self.out.sets_to_query.push(id);
        }
        holds
    }

    pub(super) fn place(&self, expression: &Expression) -> Result<Place, LowerError> {
        let part = expression.part().ok_or_else(|| LowerError::Unsupported {
            what: "the type of this expression is not known",
            expression: expression.to_string(),
        })?;
        let bits = expression.bits().filter(|bits| !bits.is_multiple_of(8));
        Ok(Place { bits, ..Place::of(part) })
    }
}

/// Returns the types of the keys of a named set; empty if its definition is not known.
pub(super) fn key_types(set: Option<&Set>) -> Vec<Part> {
    set.map(|set| set.key.parts()).unwrap_or_default()
}

/// The form of key that a set requires in the register.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyForm {
    bits: Bits,
    intervals: bool,
}

/// The position of a bit field in a key.
#[derive(Debug, Clone, Copy)]
enum Bits {
    /// The bits stay where they are in the header, and the elements are shifted to match.
    Stay,
    /// The bits are shifted to the end of the bytes that contain them.
    Shifted,
    /// The bits are shifted to the end of as many bytes as the field's type has, which is the key length of a
    /// named set.
    Typed,
}

impl KeyForm {
    /// Returns the form of keys for an anonymous set with these members. If one of them is `*`, nft cannot
    /// list shifted members.
    pub(super) fn of<'m>(members: impl Iterator<Item = &'m Expression> + Clone) -> Self {
        let any = members.clone().any(|member| *member.member() == Expression::Any);
        Self {
            bits: if any { Bits::Shifted } else { Bits::Stay },
            intervals: members.into_iter().any(is_interval),
        }
    }

    fn named(intervals: bool) -> Self {
        Self { bits: Bits::Typed, intervals }
    }
}

#[cfg(test)]
mod tests {
    use crate::check::KnownSets;
    use crate::compile::lower::{Intervals, lower};
    use crate::tree::{Expression, Payload, SetUpdate};
    use crate::{DataType, Family, Set, TableId};

    #[test]
    fn a_constant_in_a_key_is_of_the_type_that_the_set_has() {
        let table = TableId::new(Family::IP, "t".parse().unwrap());
        let set = Set::new(table.set("s".parse().unwrap()), [DataType::IPV4_ADDR, DataType::INET_PROTO]);
        let update = |constant: u32| {
            let key = Expression::concat([Payload::IP_SADDR.into(), constant.into()]);
            [SetUpdate::update(&set.id.name, key).into()]
        };
        let known = KnownSets::from([(&set.id, &set)]);
        let none = Intervals::new();
        lower(&table, &update(6), &known, &none, &mut 0).unwrap();
        let lowered = |constant, sets| {
            lower(&table, &update(constant), sets, &none, &mut 0).unwrap_err().cause.to_string()
        };
        assert_eq!(lowered(256, &known), "expected inet_proto of 1 byte, found 256");
        assert_eq!(lowered(6, &KnownSets::new()), "the width of this number is not known: `6`");
    }
}
