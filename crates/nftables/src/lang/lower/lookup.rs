//! Look-ups in sets and maps, named or made for the rule.

use crate::expr::{self, ByteorderOp, LookupFlags, Register};
use crate::key::{Part, width};
use crate::lang::constant::Place;
use crate::lang::lower::agree::Taker;
use crate::lang::lower::load::{WORDS, has_word};
use crate::lang::lower::sets::is_interval;
use crate::lang::lower::{Lower, LowerError};
use crate::lang::{Expression, Mapping, MatchOp, Value, Vmap};
use crate::name::Name;
use crate::object::element::is_turned;
use crate::object::{Set, SetFlags};

impl Lower<'_> {
    /// Looks a key up and leaves the value where the key was.
    pub(super) fn load_map(
        &mut self,
        map: &crate::lang::Map,
        wanted: &[Part],
        word: u32,
    ) -> Result<u32, LowerError> {
        self.imply(&map.key)?;
        let (form, types) = match &map.map {
            Mapping::Named(name) => {
                let known = self.set(name);
                self.is_key_of(&map.key, known, Taker::Map)?;
                (KeyForm::named(self.holds_intervals(name, known, &map.key)), key_types(known))
            }
            Mapping::Anonymous(pairs) => (KeyForm::of(pairs.iter().map(|(key, _)| key)), Vec::new()),
        };
        let key = self.load_key(&map.key, &types, form, word)?;
        let (set, set_id, bytes) = match &map.map {
            Mapping::Named(name) => (name.clone(), None, wanted.iter().map(|p| p.bytes()).sum()),
            Mapping::Anonymous(pairs) => {
                let own = pairs.first().map(|(_, value)| value.parts()).unwrap_or_default();
                let parts = if wanted.is_empty() { own } else { wanted.to_vec() };
                let bytes = width(&parts);
                let (name, number) = self.anonymous_map(&map.key, &key, pairs, &parts)?;
                (name, Some(number), bytes)
            }
        };
        let register = Register::word(word);
        self.push(expr::Lookup { set, sreg: register, dreg: Some(register), set_id, flags: None });
        Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    pub(crate) fn vmap(&mut self, vmap: &Vmap) -> Result<(), LowerError> {
        self.imply(&vmap.key)?;
        let (set, set_id) = match &vmap.map {
            Mapping::Named(name) => {
                let known = self.set(name);
                self.gives_verdicts(known)?;
                self.load_named(&vmap.key, name, Taker::Map)?;
                (name.clone(), None)
            }
            Mapping::Anonymous(pairs) => {
                let form = KeyForm::of(pairs.iter().map(|(key, _)| key));
                let keys = self.load_key(&vmap.key, &[], form, 0)?;
                let (name, number) = self.anonymous_vmap(&vmap.key, &keys, pairs)?;
                (name, Some(number))
            }
        };
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
        self.load_named(left, &set, Taker::Set)?;
        self.push_lookup(op, set, number);
        Ok(())
    }

    pub(super) fn push_lookup(&mut self, op: MatchOp, set: Name, set_id: Option<u32>) {
        let flags = (op == MatchOp::Neq).then_some(LookupFlags::INVERT);
        self.push(expr::Lookup { set, sreg: Register::word(0), dreg: None, set_id, flags });
    }

    /// Loads the key of a set or map with a name.
    pub(super) fn load_named(
        &mut self,
        key: &Expression,
        name: &Name,
        taker: Taker,
    ) -> Result<(), LowerError> {
        let set = self.set(name);
        self.is_key_of(key, set, taker)?;
        let types = key_types(set);
        if !self.holds_intervals(name, set, key) {
            return self.load_typed(key, &types).map(drop);
        }
        self.load_key(key, &types, KeyForm::named(true), 0).map(drop)
    }

    /// Loads a key whose constants are of these types into the first registers. Returns its bytes.
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

    /// A constant as it is looked up.
    fn load_constant(
        &mut self,
        value: &Value,
        of: Part,
        intervals: bool,
        word: u32,
    ) -> Result<Place, LowerError> {
        let place = Place::of(of);
        let mut bytes = place.bytes(value)?;
        if intervals && is_turned(of) {
            bytes.reverse();
        }
        self.immediate(bytes, word);
        Ok(place)
    }

    /// Loads what a set or map is looked up with. `types` are those of its keys, where they are known.
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
                if let (Expression::Value(value), Some(of)) = (item, types.get(i)) {
                    places.push(self.load_constant(value, *of, form.intervals, word)?);
                    word += u32::try_from(of.bytes().div_ceil(4)).unwrap_or(WORDS);
                    continue;
                }
                let bytes = self.load_plain(item, word)?;
                let place = self.place(item)?;
                self.turn(form.intervals, place, word);
                places.push(place);
                word += bytes.div_ceil(4);
            }
            return Ok(places);
        }
        if let (Expression::Value(value), [of]) = (key, types) {
            return Ok(vec![self.load_constant(value, *of, form.intervals, word)?]);
        }
        has_word(key)?;
        let field = self.load_field(key, word)?;
        self.mask(&field, word);
        let place = self.place(key)?;
        let place = match form.bits {
            Bits::Stay => Place { bytes: field.bytes as usize, shift: field.shift, ..place },
            Bits::Moved => {
                self.move_down(&field, field.bytes, word);
                Place { bytes: field.bytes as usize, ..place }
            }
            Bits::Typed if field.shift == 0 => Place { bytes: field.bytes as usize, ..place },
            Bits::Typed => {
                self.move_down(&field, u32::try_from(place.bytes).unwrap_or(u32::MAX), word);
                place
            }
        };
        self.turn(form.intervals, place, word);
        Ok(vec![place])
    }

    /// Intervals are compared in network order: numbers in host order are turned before they are looked up in them.
    fn turn(&mut self, intervals: bool, place: Place, word: u32) {
        let size = u32::try_from(place.bytes).unwrap_or(0);
        if intervals && is_turned(place.part) && matches!(size, 2 | 4 | 8) {
            self.turn_register(word, size);
        }
    }

    /// Turns a number of the host's order in a register round.
    pub(super) fn turn_register(&mut self, word: u32, len: u32) {
        /// The kernel turns eight bytes at most at once, so that the order of labels is the one that they have to nft.
        const AT_ONCE: u32 = 8;
        self.byteorder(word, ByteorderOp::HTON, len, len.min(AT_ONCE));
    }

    /// Whether a set or map holds intervals. Where it is not known, and makes a difference to this key, it is noted as a doubt.
    fn holds_intervals(&mut self, name: &Name, known: Option<&Set>, key: &Expression) -> bool {
        if let Some(set) = known {
            return set.flags.contains(SetFlags::INTERVAL);
        }
        if !key.parts().into_iter().any(is_turned) {
            return false;
        }
        let id = self.table.set(name.clone());
        let holds = self.intervals.contains(&id);
        if !holds {
            self.out.doubts.push(id);
        }
        holds
    }

    pub(super) fn place(&self, expression: &Expression) -> Result<Place, LowerError> {
        let part = expression.part().ok_or_else(|| LowerError::Unsupported {
            what: "the type of this is not known here",
            expression: expression.to_string(),
        })?;
        let bits = expression.bits().filter(|bits| !bits.is_multiple_of(8));
        Ok(Place { bits, ..Place::of(part) })
    }
}

/// The types of the keys of a set with a name; none where the set is not known.
pub(super) fn key_types(set: Option<&Set>) -> Vec<Part> {
    set.map(|set| set.key.parts()).unwrap_or_default()
}

/// What a set demands of the register that is looked up in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyForm {
    bits: Bits,
    intervals: bool,
}

/// Where the bits of a field are that lies among others.
#[derive(Debug, Clone, Copy)]
enum Bits {
    /// Where they are in the header. The members are moved up to there.
    Stay,
    /// At the end of the bytes that they lay in.
    Moved,
    /// At the end of as many bytes as the field's type has, as a set with a name has it.
    Typed,
}

impl KeyForm {
    /// For a set of these members that is made for the rule. Where one of them is `*`, nft cannot list moved members.
    pub(super) fn of<'m>(members: impl Iterator<Item = &'m Expression> + Clone) -> Self {
        let any = members.clone().any(|member| *member.member() == Expression::any());
        Self {
            bits: if any { Bits::Moved } else { Bits::Stay },
            intervals: members.into_iter().any(is_interval),
        }
    }

    fn named(intervals: bool) -> Self {
        Self { bits: Bits::Typed, intervals }
    }
}

#[cfg(test)]
mod tests {
    use crate::lang::lower::{Intervals, KnownSets, lower};
    use crate::lang::{Expression, Payload, SetUpdate};
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
        let lowered =
            |constant, sets| lower(&table, &update(constant), sets, &none, &mut 0).unwrap_err().to_string();
        assert_eq!(lowered(256, &known), "256 is no inet_proto of 1 bytes");
        assert_eq!(lowered(6, &KnownSets::new()), "a number needs something that says its width: `6`");
    }
}
