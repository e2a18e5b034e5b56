//! What is done to bits on the way: masks, shifts, and the fields that they cut out.

use crate::datatype::Order;
use crate::expr::{self, BitwiseOp, PayloadBase, Register};
use crate::key::integer;
use crate::lang::expression::*;
use crate::lang::exthdr::Exthdr;
use crate::lang::raise::constant::{in_bits, ones, value};
use crate::lang::raise::{Held, Raise};
use crate::lang::{Payload, Value};

impl Raise<'_> {
    pub(super) fn bitwise(&mut self, b: &expr::Bitwise) -> Option<()> {
        let (from, to) = (b.sreg.first_word()?, b.dreg.first_word()?);
        let held = self.registers.get(&from)?;
        let held = match b.op {
            None | Some(BitwiseOp::BOOL) => self.field_of(held)?,
            _ => held.clone(),
        };
        let new = match (b.op, held) {
            (
                None | Some(BitwiseOp::BOOL),
                Held::Loaded { expression, bytes, mask: None, place, moved, turned },
            ) => {
                let mask = Some((b.mask.as_ref()?.value()?.to_vec(), b.xor.as_ref()?.value()?.to_vec()));
                Held::Loaded { expression, bytes, mask, place, moved, turned }
            }
            (Some(op @ (BitwiseOp::LSHIFT | BitwiseOp::RSHIFT)), held @ Held::Loaded { .. }) => {
                let by = integer(Order::Host, b.data.as_ref()?.value()?);
                self.shifted(op, &held, by)?
            }
            (Some(BitwiseOp::AND | BitwiseOp::OR | BitwiseOp::XOR), held) => self.joined(b, &held)?,
            _ => return None,
        };
        self.registers.insert(to, new);
        Some(())
    }

    /// Two registers, or one and a constant, joined.
    fn joined(&self, b: &expr::Bitwise, left: &Held) -> Option<Held> {
        let op = match b.op? {
            BitwiseOp::AND => BinaryOp::And,
            BitwiseOp::OR => BinaryOp::Or,
            _ => BinaryOp::Xor,
        };
        let Held::Loaded { expression, bytes, .. } = left else { return None };
        let turned = |order| Some(expression.part()?.order() != order);
        let order = self.order(left, b.len)?;
        let right = match (b.sreg2, &b.data) {
            (Some(second), None) => {
                let second = self.held(second)?;
                let Held::Loaded { bytes, .. } = second else { return None };
                let fits = *bytes == b.len || *bytes < b.len && order == Order::Host;
                self.whole(second).filter(|_| fits && self.order(second, b.len) == Some(order))?
            }
            (None, Some(data)) => match data.value()? {
                number @ ([_] | [_, _] | [_, _, _, _]) => Value::Number(integer(order, number)).into(),
                bytes => Value::Bytes(bytes.to_vec()).into(),
            },
            _ => return None,
        };
        let (turned, bytes) = (turned(order)?, (*bytes).max(b.len));
        let expression = self.whole(left)?.binary(op, right);
        Some(Held::Loaded { expression, bytes, mask: None, place: None, moved: false, turned })
    }

    /// The order of the bytes of a register, as part of so many.
    fn order(&self, held: &Held, of: u32) -> Option<Order> {
        let Held::Loaded { expression, bytes, turned, .. } = held else { return None };
        let own = expression.part()?.order();
        Some(match own {
            Order::Network if *turned || *bytes == 1 && of > 1 => Order::Host,
            Order::Host if *turned => Order::Network,
            own => own,
        })
    }

    /// What a register holds; where its lowest bits were cut out and are a field, that field.
    fn field_of(&self, held: &Held) -> Option<Held> {
        Some(match held {
            Held::Loaded { bytes, mask: Some((mask, _)), turned, .. } => match self.whole(held)? {
                Expression::Binary(_) => held.clone(),
                _ if lowest_one(mask)? > 0 => held.clone(),
                expression => {
                    let (bytes, turned) = (*bytes, *turned);
                    Held::Loaded { expression, bytes, mask: None, place: None, moved: true, turned }
                }
            },
            held => held.clone(),
        })
    }

    /// Numbers of a register are turned round, or back. Those of several words go by the first; of a field that was moved there may be a word more.
    pub(super) fn turn(&mut self, register: Register) -> Option<()> {
        let word = register.first_word()?;
        if let Some(held) = self.registers.get_mut(&word) {
            let Held::Loaded { turned, .. } = held else { return None };
            *turned = !*turned;
            return Some(());
        }
        let covers = |start: u32| match self.registers.get(&start) {
            Some(Held::Loaded { bytes, moved, .. }) => {
                bytes.div_ceil(4).min(4) + u32::from(*moved) > word - start
            }
            _ => false,
        };
        (word.saturating_sub(3)..word).any(covers).then_some(())
    }

    /// A bit field that was moved down to its place is that field; anything else is a shift.
    fn shifted(&self, op: BitwiseOp, held: &Held, by: u64) -> Option<Held> {
        let Held::Loaded { bytes, mask, turned, .. } = held else { return None };
        let (expression, turned) = (self.cut(held)?, *turned);
        let cut = matches!(
            &expression,
            Expression::Payload(_) | Expression::Exthdr(_) | Expression::Inner(_) | Expression::RawPayload(_)
        );
        // How far above its place the field still is.
        let above = match mask {
            Some((mask, _)) if cut => lowest_one(mask)?,
            _ => 0,
        };
        let moved = cut && mask.is_some();
        let held = |expression, bytes, moved| Held::Loaded {
            expression,
            bytes,
            mask: None,
            place: None,
            moved,
            turned,
        };
        Some(match op {
            BitwiseOp::RSHIFT if moved && by == above => held(expression, *bytes, true),
            // Of three bytes, the number is the last ones of four.
            BitwiseOp::RSHIFT if cut && turned && *bytes == 3 && by == above + 8 => held(expression, 4, true),
            // The number needs a byte less than it lay in.
            BitwiseOp::LSHIFT if moved && turned && by.checked_add(above) == Some(8) => {
                held(expression, bytes.checked_sub(1)?, true)
            }
            BitwiseOp::RSHIFT => {
                held(expression.binary(BinaryOp::ShiftRight, by.checked_sub(above)?), *bytes, false)
            }
            _ => held(expression.binary(BinaryOp::ShiftLeft, by.checked_add(above)?), *bytes, false),
        })
    }

    /// A register's expression. Bits that were turned to be moved are a field also where that has no name.
    fn cut(&self, held: &Held) -> Option<Expression> {
        let whole = self.whole(held)?;
        match (held, &whole) {
            (
                Held::Loaded {
                    expression: Expression::RawPayload(raw),
                    mask: Some((mask, xor)),
                    turned: true,
                    ..
                },
                Expression::Binary(_),
            ) if xor.iter().all(|byte| *byte == 0) => {
                let (lead, bits) = ones(mask)?;
                Some(RawPayload { offset: raw.offset.checked_add(lead)?, bits, ..*raw }.into())
            }
            _ => Some(whole),
        }
    }

    /// A register's expression with what was done to its bits.
    pub(super) fn whole(&self, held: &Held) -> Option<Expression> {
        let Held::Loaded { expression, mask, place, bytes, moved, turned } = held else { return None };
        let Some((mask, xor)) = mask else {
            return (*moved || is_whole(expression, *bytes)).then(|| expression.clone());
        };
        if xor.iter().all(|byte| *byte == 0)
            && !moved
            && let Some(field) = self.bit_field(expression, *place, *bytes, mask)
        {
            return Some(field);
        }
        let part = expression.part()?;
        // A field that is put where a number of the host's order goes.
        let host = part.order() == Order::Network && (*turned || *bytes == 1 && mask.len() > 1);
        let number = |bytes: &[u8]| match host {
            true => Value::Number(integer(Order::Host, bytes)),
            false => value(part, bytes),
        };
        let all = mask.iter().all(|byte| *byte == 0xff);
        let none = xor.iter().all(|byte| *byte == 0);
        let or = mask.iter().zip(xor).all(|(m, x)| m & x == 0);
        let joined: Vec<u8> = mask.iter().zip(xor).map(|(m, x)| m | x).collect();
        let expression = expression.clone();
        Some(match (all, none) {
            (true, true) => expression,
            (true, false) => expression.xor(number(xor)),
            (false, true) => expression.and(number(mask)),
            // What is toggled where nothing is kept is set.
            (false, false) if or && joined.iter().all(|byte| *byte == 0xff) => expression.or(number(xor)),
            (false, false) if or => expression.and(number(&joined)).or(number(xor)),
            (false, false) => expression.and(number(mask)).xor(number(xor)),
        })
    }

    /// The field whose bits a mask keeps.
    fn bit_field(
        &self,
        expression: &Expression,
        place: Option<(PayloadBase, u32)>,
        bytes: u32,
        mask: &[u8],
    ) -> Option<Expression> {
        let (lead, bits) = ones(mask)?;
        match expression {
            Expression::Exthdr(e) => {
                let offset = (e.offset() / 8 * 8).checked_add(lead)?;
                let field = Exthdr::at(e.op(), e.kind(), offset, bits, false)?;
                // Bits of a field with a name go by that.
                (field.numbers().is_some() || e.numbers().is_none()).then(|| field.into())
            }
            Expression::Inner(inner) => self.inner_bit_field(*inner, lead, bits),
            Expression::Payload(_) | Expression::RawPayload(_) => {
                let (base, start) = place?;
                let offset = in_bits(start)?.checked_add(lead)?;
                let field = |f: &Payload| {
                    (self.offset_of(*f), f.bits()) == (offset, bits)
                        && u32::from((f.offset() % 8 + f.bits()).div_ceil(8)) == bytes
                };
                self.known_fields(base).find(field).map(Expression::from)
            }
            _ => None,
        }
    }
}

/// How many zeros a mask of one row of ones ends with.
fn lowest_one(mask: &[u8]) -> Option<u64> {
    let (lead, bits) = ones(mask)?;
    u64::try_from((mask.len() * 8).checked_sub(usize::from(lead + bits))?).ok()
}

/// Whether so many bytes are all of an expression: what is in a tunnel or an option may be cut out of them, or they out of it, later.
fn is_whole(expression: &Expression, bytes: u32) -> bool {
    match expression {
        Expression::Inner(inner) => in_bits(bytes) == Some(inner.field.bits()),
        Expression::Exthdr(e) => e.is_presence() || in_bits(bytes) == Some(e.bits()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::{self, Data, Expr, ExthdrOp, Register};
    use crate::family::Family;
    use crate::lang::Statement;
    use crate::lang::raise::{Sets, raise};

    /// No kernel looks so far into an option, but bytes can say that one does.
    #[test]
    fn bits_behind_all_that_can_be_counted_have_no_words() {
        let register = Register::word(0);
        let option = expr::Exthdr {
            dreg: Some(register),
            kind: 253,
            offset: Some(8_191),
            len: Some(2),
            flags: None,
            op: Some(ExthdrOp::TCPOPT),
            sreg: None,
        };
        let bits = expr::Bitwise {
            sreg: register,
            dreg: register,
            len: 2,
            mask: Some(Data::Value([0, 0x0f].into())),
            xor: Some(Data::Value([0, 0].into())),
            op: None,
            data: None,
            sreg2: None,
        };
        let cmp = expr::Cmp { sreg: register, op: expr::CmpOp::EQ, data: Data::Value([0, 1].into()) };
        let exprs: Vec<Expr> = vec![option.into(), bits.into(), cmp.into()];
        let statements = raise(Family::IP, &Sets::new(), &exprs);
        assert!(!matches!(statements[..], [Statement::Raw(_)]), "{statements:?}");
    }
}
