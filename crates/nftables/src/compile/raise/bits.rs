//! Raises masks and shifts, and the bit fields that they extract.

use crate::compile::raise::constant::{in_bits, ones, said, value};
use crate::compile::raise::{Content, Raise};
use crate::datatype::{DataType, Order};
use crate::expr::{self, BitwiseOp, PayloadBase, Register};
use crate::key::{Part, integer};
use crate::tree::expression::*;
use crate::tree::exthdr::Exthdr;
use crate::tree::{Payload, Value};

impl Raise<'_> {
    pub(super) fn bitwise(&mut self, b: &expr::Bitwise) -> Option<()> {
        let (from, to) = (b.sreg.first_word()?, b.dreg.first_word()?);
        let content = self.registers.get(&from)?;
        let content = match b.op {
            None | Some(BitwiseOp::BOOL) => self.field_of(content)?,
            // A mask on a bit field applies to its value, so the extraction is complete.
            _ => content.clone(),
        };
        let new = match (b.op, content) {
            (
                None | Some(BitwiseOp::BOOL),
                Content::Loaded { expression, bytes, mask, place, moved, byte_swapped },
            ) => {
                let (next, xor) = (b.mask.as_ref()?.value()?, b.xor.as_ref()?.value()?);
                let second = in_effect(next, xor, usize::try_from(bytes).ok()?);
                let mask = Some(match mask {
                    Some(first) => joined(&first, &second)?,
                    None => second,
                });
                Content::Loaded { expression, bytes, mask, place, moved, byte_swapped }
            }
            (Some(op @ (BitwiseOp::LSHIFT | BitwiseOp::RSHIFT)), content @ Content::Loaded { .. }) => {
                // The kernel lists the number of bits in host byte order.
                let by = integer(Order::Host, b.data.as_ref()?.value()?);
                self.shifted(op, &content, by)?
            }
            // Operations of two registers exist since Linux 6.13.
            (Some(BitwiseOp::AND | BitwiseOp::OR | BitwiseOp::XOR), content) => self.combined(b, &content)?,
            _ => return None,
        };
        self.registers.insert(to, new);
        Some(())
    }

    /// Raises `x OP y` of two registers, or of a register and a constant.
    fn combined(&self, b: &expr::Bitwise, left: &Content) -> Option<Content> {
        let op = match b.op? {
            BitwiseOp::AND => BinaryOp::And,
            BitwiseOp::OR => BinaryOp::Or,
            _ => BinaryOp::Xor,
        };
        let Content::Loaded { expression, bytes, .. } = left else { return None };
        let byte_swapped = |order| Some(expression.part()?.order() != order);
        let order = self.order(left, b.len)?;
        let right = match (b.sreg2, &b.data) {
            (Some(second), None) => {
                let second = self.content(second)?;
                let Content::Loaded { bytes, .. } = second else { return None };
                // A shorter number in host byte order is extended by zeros.
                let fits = *bytes == b.len || *bytes < b.len && order == Order::Host;
                self.whole(second).filter(|_| fits && self.order(second, b.len) == Some(order))?
            }
            (None, Some(data)) => match data.value()? {
                // Numbers of these lengths are listed as numbers, others as bytes.
                number @ ([_] | [_, _] | [_, _, _, _]) => Value::Number(integer(order, number)).into(),
                bytes => Value::Bytes(bytes.into()).into(),
            },
            _ => return None,
        };
        let (byte_swapped, bytes) = (byte_swapped(order)?, (*bytes).max(b.len));
        let expression = self.whole(left)?.binary(op, right);
        Some(Content::Loaded { expression, bytes, mask: None, place: None, moved: false, byte_swapped })
    }

    /// Returns the byte order of a register's value as an operand of `of` bytes.
    fn order(&self, content: &Content, of: u32) -> Option<Order> {
        let Content::Loaded { expression, bytes, byte_swapped, .. } = content else { return None };
        let own = expression.part()?.order();
        Some(match own {
            // A single byte of a header is loaded as the lowest byte of a longer number.
            Order::Network if *byte_swapped || *bytes == 1 && of > 1 => Order::Host,
            Order::Host if *byte_swapped => Order::Network,
            own => own,
        })
    }

    /// Returns the content of a register; if a mask extracted a bit field that needs no shift, the field.
    fn field_of(&self, content: &Content) -> Option<Content> {
        Some(match content {
            Content::Loaded { bytes, mask: Some((mask, _)), byte_swapped, .. } => {
                // If the lowest bit of the mask is set, no shift follows: the mask alone has extracted the
                // field.
                match self.whole(content)? {
                    Expression::Binary(_) => content.clone(),
                    _ if lowest_one(mask)? > 0 => content.clone(),
                    expression => {
                        let (bytes, byte_swapped) = (*bytes, *byte_swapped);
                        Content::Loaded {
                            expression,
                            bytes,
                            mask: None,
                            place: None,
                            moved: true,
                            byte_swapped,
                        }
                    }
                }
            }
            content => content.clone(),
        })
    }

    /// Records that the number in a register is byte-swapped. If the value spans several words, the first one
    /// represents it; a shifted field may extend into one more word.
    pub(super) fn swap_register(&mut self, register: Register) -> Option<()> {
        let word = register.first_word()?;
        if let Some(content) = self.registers.get_mut(&word) {
            let Content::Loaded { byte_swapped, .. } = content else { return None };
            *byte_swapped = !*byte_swapped;
            return Some(());
        }
        let covers = |start: u32| match self.registers.get(&start) {
            Some(Content::Loaded { bytes, moved, .. }) => {
                bytes.div_ceil(4).min(4) + u32::from(*moved) > word - start
            }
            _ => false,
        };
        (word.saturating_sub(3)..word).any(covers).then_some(())
    }

    /// Raises a shift: if it moves a bit field to the lowest bits, it becomes the field, else a shift
    /// operation.
    fn shifted(&self, op: BitwiseOp, content: &Content, by: u64) -> Option<Content> {
        let Content::Loaded { bytes, mask, byte_swapped, .. } = content else { return None };
        let (expression, byte_swapped) = (self.cut(content)?, *byte_swapped);
        let cut = matches!(
            &expression,
            Expression::Payload(_) | Expression::Exthdr(_) | Expression::Inner(_) | Expression::RawPayload(_)
        );
        // The number of bits between the field and the lowest bit.
        let above = match mask {
            Some((mask, _)) if cut => lowest_one(mask)?,
            _ => 0,
        };
        let moved = cut && mask.is_some();
        let loaded = |expression, bytes, moved| Content::Loaded {
            expression,
            bytes,
            mask: None,
            place: None,
            moved,
            byte_swapped,
        };
        Some(match op {
            BitwiseOp::RSHIFT if moved && by == above => loaded(expression, *bytes, true),
            // Three bytes were swapped as a 32-bit word, of which they are the upper ones.
            BitwiseOp::RSHIFT if cut && byte_swapped && *bytes == 3 && by == above + 8 => {
                loaded(expression, 4, true)
            }
            // The number needs a byte less than the field spans, so it was shifted left to end at a byte.
            BitwiseOp::LSHIFT if moved && byte_swapped && by.checked_add(above) == Some(8) => {
                loaded(expression, bytes.checked_sub(1)?, true)
            }
            BitwiseOp::RSHIFT => {
                loaded(expression.binary(BinaryOp::ShiftRight, by.checked_sub(above)?), *bytes, false)
            }
            _ => loaded(expression.binary(BinaryOp::ShiftLeft, by.checked_add(above)?), *bytes, false),
        })
    }

    /// Returns the expression of a register. Bits that were byte-swapped to be shifted are a field even
    /// without a name.
    fn cut(&self, content: &Content) -> Option<Expression> {
        let whole = self.whole(content)?;
        match (content, &whole) {
            (
                Content::Loaded {
                    expression: Expression::RawPayload(raw),
                    mask: Some((mask, xor)),
                    byte_swapped: true,
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

    /// Returns the expression of a register, with the operations on its bits.
    pub(super) fn whole(&self, content: &Content) -> Option<Expression> {
        let Content::Loaded { expression, mask, place, bytes, moved, byte_swapped } = content else {
            return None;
        };
        let Some((mask, xor)) = mask else {
            // A load of more bytes than the field has waits for the mask that extracts the field.
            return (*moved || is_whole(expression, *bytes)).then(|| expression.clone());
        };
        // Of the flags of TCP, all of which many rules look at, it is left out, as by nft: a byte has no order.
        let is_flags = expression.part().is_some_and(|part| part.data_type() == DataType::TCP_FLAG);
        let all = !is_flags && mask.iter().all(|byte| *byte == 0xff);
        let none = xor.iter().all(|byte| *byte == 0);
        // A mask of all bits extracts nothing: it is an operation, as which it is listed.
        if none
            && !all
            && !moved
            && let Some(field) = self.bit_field(expression, *place, *bytes, mask)
        {
            return Some(field);
        }
        // Only the first bytes of the field were loaded.
        if matches!(expression, Expression::Exthdr(e) if in_bits(*bytes).is_some_and(|bits| bits < e.bits()))
        {
            return None;
        }
        // A mask of all the bytes of which the field is a part is none of the field.
        if all && !is_whole(expression, *bytes) {
            return None;
        }
        let part = expression.part()?;
        // A header field that is used as a number in host byte order: so are the operands.
        let host = part.order() == Order::Network && (*byte_swapped || *bytes == 1 && mask.len() > 1);
        let number = |bytes: &[u8]| match host {
            true => Value::Number(integer(Order::Host, bytes)),
            false => value(part, bytes),
        };
        let or = mask.iter().zip(xor).all(|(m, x)| m & x == 0);
        let combined: Vec<u8> = mask.iter().zip(xor).map(|(m, x)| m | x).collect();
        let expression = expression.clone();
        Some(match (all, none) {
            // A mask of all bits is more than many types can say: hours, or fields of fewer bits than their bytes.
            (true, true) if has_bits(part) => expression.or(number(xor)),
            (true, false) => expression.xor(said(part, number(xor))?),
            (true, true) => return None,
            (false, true) => expression.and(said(part, number(mask))?),
            // Bits that the mask clears and the xor toggles are set.
            (false, false) if or && combined.iter().all(|byte| *byte == 0xff) => {
                expression.or(said(part, number(xor))?)
            }
            (false, false) if or => {
                expression.and(said(part, number(&combined))?).or(said(part, number(xor))?)
            }
            (false, false) => expression.and(said(part, number(mask))?).xor(said(part, number(xor))?),
        })
    }

    /// Returns the field whose bits a mask keeps.
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
                // Other bits of a named field are an operation on that field.
                (field.numbers().is_some() || e.numbers().is_none()).then(|| field.into())
            }
            Expression::Inner(inner) => self.inner_bit_field(*inner, lead, bits),
            Expression::Payload(_) | Expression::RawPayload(_) => {
                let (base, start) = place?;
                let offset = in_bits(start)?.checked_add(lead)?;
                let field = |f: &Payload| {
                    (self.offset_of(*f), f.bits()) == (offset, bits)
                        // The same bits may be loaded with more bytes than nft would load for the field.
                        && u32::from((f.offset() % 8 + f.bits()).div_ceil(8)) == bytes
                };
                self.known_fields(base).find(field).map(Expression::from)
            }
            _ => None,
        }
    }
}

/// Returns whether the language says what is done to no bits of a value of this type: text has none, and the label 0
/// is a bit.
fn has_bits(part: Part) -> bool {
    !matches!(part.data_type(), DataType::IFNAME | DataType::STRING | DataType::CT_LABEL)
}

/// Returns the mask and the xor of as many bytes as the register's value has. Of a shorter mask the kernel takes
/// the rest of its last 32-bit word for zeros, and leaves the words behind it alone: nft 1.0.6 sends such masks
/// for prefixes.
fn in_effect(mask: &[u8], xor: &[u8], bytes: usize) -> Bits {
    let (mut mask, mut xor) = (mask.to_vec(), xor.to_vec());
    if mask.len() < bytes {
        mask.resize(mask.len().next_multiple_of(4).min(bytes), 0);
        mask.resize(bytes, 0xff);
        xor.resize(bytes, 0);
    }
    (mask, xor)
}

/// A mask and an xor.
type Bits = (Vec<u8>, Vec<u8>);

/// Returns one mask and xor in the place of two: `(x & m ^ n) & o ^ p` is `x & (m & o) ^ (n & o ^ p)`.
fn joined(first: &Bits, second: &Bits) -> Option<Bits> {
    if first.0.len() != second.0.len() || first.1.len() != second.1.len() {
        return None;
    }
    let mask = first.0.iter().zip(&second.0).map(|(m, o)| m & o).collect();
    let xor = first.1.iter().zip(&second.0).zip(&second.1).map(|((n, o), p)| n & o ^ p).collect();
    Some((mask, xor))
}

/// Returns the number of zeros below the ones of a mask; `None` if the ones are not contiguous.
fn lowest_one(mask: &[u8]) -> Option<u64> {
    let (lead, bits) = ones(mask)?;
    u64::try_from((mask.len() * 8).checked_sub(usize::from(lead + bits))?).ok()
}

/// Returns whether this number of bytes is the whole value of an expression. Bytes of an option or inside a
/// tunnel may be more than a field, which a mask extracts, or part of one.
fn is_whole(expression: &Expression, bytes: u32) -> bool {
    match expression {
        Expression::Inner(inner) => in_bits(bytes) == Some(inner.field.bits()),
        Expression::Exthdr(e) => e.is_presence() || in_bits(bytes) == Some(e.bits()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::raise::{Raise, Sets, in_words};
    use crate::expr::{self, Data, Expr, ExthdrOp, Register};
    use crate::family::Family;
    use crate::tree::Statement;

    /// The kernel limits the offset in an option, but a message can contain any number.
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
        let sets = Sets::new();
        let statements = in_words(Raise::new(Family::IP, &sets), &exprs);
        assert!(!matches!(statements[..], [Statement::Raw(_)]), "{statements:?}");
    }
}
