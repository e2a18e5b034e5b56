//! Elements of plain constants, read from the bytes of the text without a token for each.
//!
//! Large scripts are mostly lists of addresses, ports, protocols and marks. A list is read here as long as
//! every element is a plain one, and by tokens from the first one on that is more: one with a name for a
//! port, a comment, a statement, a variable, or a mistake.

use std::net::Ipv6Addr;

use crate::datatype::DataType;
use crate::key::{MAX_BYTES, Part, kind_of};
use crate::name::Name;
use crate::object::Element;
use crate::object::element::Packed;
use crate::text::parse::constant::Typed;
use crate::text::parse::lexer::in_word;
use crate::tree::Verdict;

/// The form of the elements of a set or map that can be read in this way.
#[derive(Debug)]
pub(crate) struct Plain {
    key: Side,
    data: Data,
    /// Whether keys may be prefixes and ranges.
    intervals: bool,
}

#[derive(Debug)]
enum Data {
    None,
    Value(Side),
    Verdict,
}

/// A key or a value.
#[derive(Debug)]
struct Side {
    parts: Vec<Constant>,
    /// The types of the parts, as a [`Packed`] key has them.
    kinds: Vec<u8>,
    low: [u8; MAX_BYTES],
    high: [u8; MAX_BYTES],
    length: usize,
}

#[derive(Debug, Clone, Copy)]
enum Constant {
    Ipv4,
    Ipv6,
    Ether,
    Port,
    Protocol,
    Mark,
}

impl Plain {
    /// Returns the form of elements with these keys; `None` where they are not plain.
    pub(crate) fn of_set(keys: &[Typed], intervals: bool) -> Option<Self> {
        Some(Self { key: Side::of(keys)?, data: Data::None, intervals })
    }

    pub(crate) fn of_map(keys: &[Typed], values: &[Typed], intervals: bool) -> Option<Self> {
        Some(Self { key: Side::of(keys)?, data: Data::Value(Side::of(values)?), intervals })
    }

    pub(crate) fn of_verdict_map(keys: &[Typed], intervals: bool) -> Option<Self> {
        Some(Self { key: Side::of(keys)?, data: Data::Verdict, intervals })
    }

    /// Reads elements from the start of a text, and returns the number of bytes up to the end of the last
    /// one; 0 where the first one is not plain.
    pub(crate) fn elements(&mut self, text: &[u8], out: &mut Vec<Element>) -> usize {
        let mut scan = Scan { rest: text };
        let mut end = 0;
        while let Some(element) = self.element(&mut scan) {
            let behind = text.len() - scan.rest.len();
            scan.blanks_and_newlines();
            let more = scan.eat(b',');
            if !more && scan.rest.first() != Some(&b'}') {
                break;
            }
            out.push(element);
            end = behind;
            if !more {
                break;
            }
            scan.blanks_and_newlines();
        }
        end
    }

    /// Reads a key from the start of a text, and returns it as an element, with its length in the text.
    pub(crate) fn key(&mut self, text: &[u8]) -> Option<(Element, usize)> {
        let mut scan = Scan { rest: text };
        let element = self.element_of_key(&mut scan)?;
        Some((element, text.len() - scan.rest.len()))
    }

    #[inline]
    fn element(&mut self, scan: &mut Scan<'_>) -> Option<Element> {
        let element = self.element_of_key(scan)?;
        match &mut self.data {
            Data::None => Some(element),
            Data::Value(value) => {
                scan.colon()?;
                value.read(scan, false)?;
                Some(element.packed_value(value.low()))
            }
            Data::Verdict => {
                scan.colon()?;
                Some(element.verdict(scan.verdict()?))
            }
        }
    }
}

impl Plain {
    #[inline]
    fn element_of_key(&mut self, scan: &mut Scan<'_>) -> Option<Element> {
        let single = self.key.read(scan, self.intervals)?;
        let element = Element::of_packed(self.key.low());
        Some(if single { element } else { element.with_end(self.key.high()) })
    }
}

impl Side {
    /// Returns the form of a key of these types.
    fn of(types: &[Typed]) -> Option<Self> {
        let mut side = Self {
            parts: Vec::new(),
            kinds: Vec::new(),
            low: [0; MAX_BYTES],
            high: [0; MAX_BYTES],
            length: 0,
        };
        for typed in types {
            let Part::Type(of) = typed.part else { return None };
            side.parts.push(match of {
                DataType::IPV4_ADDR => Constant::Ipv4,
                DataType::IPV6_ADDR => Constant::Ipv6,
                DataType::ETHER_ADDR => Constant::Ether,
                DataType::INET_SERVICE => Constant::Port,
                DataType::INET_PROTO => Constant::Protocol,
                DataType::MARK => Constant::Mark,
                _ => return None,
            });
            side.kinds.push(kind_of(typed.part)?);
            side.length += of.bytes().next_multiple_of(4);
        }
        // An only part is not padded.
        if let [only] = types {
            side.length = only.part.bytes();
        }
        (side.length <= MAX_BYTES && !types.is_empty()).then_some(side)
    }

    /// Reads all parts, and returns whether each is a single value.
    #[inline]
    fn read(&mut self, scan: &mut Scan<'_>, intervals: bool) -> Option<bool> {
        let (mut at, mut single) = (0, true);
        for (i, of) in self.parts.iter().enumerate() {
            if i > 0 {
                scan.dot()?;
            }
            let (low, high) = (self.low.get_mut(at..)?, self.high.get_mut(at..)?);
            at += match of {
                Constant::Ipv4 => {
                    let (from, to) = scan.ipv4_bounds(intervals)?;
                    single &= put(low, high, from.to_be_bytes(), to.to_be_bytes())?;
                    4
                }
                Constant::Ipv6 => {
                    let (from, to) = scan.ipv6_bounds(intervals)?;
                    single &= put(low, high, from.to_be_bytes(), to.to_be_bytes())?;
                    16
                }
                Constant::Ether => {
                    let address = scan.ether()?;
                    single &= put(low, high, address, address)?;
                    8
                }
                Constant::Port => {
                    let (from, to) = scan.ports(intervals)?;
                    single &= put(low, high, from.to_be_bytes(), to.to_be_bytes())?;
                    4
                }
                Constant::Protocol => {
                    let protocol = [scan.protocol()?];
                    single &= put(low, high, protocol, protocol)?;
                    4
                }
                Constant::Mark => {
                    let mark = scan.mark()?.to_ne_bytes();
                    single &= put(low, high, mark, mark)?;
                    4
                }
            };
            scan.border()?;
        }
        Some(single)
    }

    fn low(&self) -> Packed<'_> {
        Packed { kinds: &self.kinds, bytes: self.low.get(..self.length).unwrap_or_default() }
    }

    fn high(&self) -> &[u8] {
        self.high.get(..self.length).unwrap_or_default()
    }
}

/// Writes both bounds, and returns whether they are equal.
#[inline]
fn put<const N: usize>(low: &mut [u8], high: &mut [u8], from: [u8; N], to: [u8; N]) -> Option<bool> {
    *low.first_chunk_mut()? = from;
    *high.first_chunk_mut()? = to;
    Some(from == to)
}

/// A text that is read byte by byte. Whatever returns `None` may have read a part of it.
struct Scan<'t> {
    rest: &'t [u8],
}

impl<'t> Scan<'t> {
    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    #[inline]
    fn blanks(&mut self) {
        while let [b' ' | b'\t' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    #[inline]
    fn blanks_and_newlines(&mut self) {
        while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Checks that a token ends here.
    #[inline]
    fn border(&self) -> Option<()> {
        matches!(self.rest.first(), None | Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | b'}')).then_some(())
    }

    /// Reads the `.` between two parts: without a blank, it would start a word.
    #[inline]
    fn dot(&mut self) -> Option<()> {
        self.mark_between(b'.')
    }

    /// Reads the `:` between key and value: without a blank, it could be one of an address.
    #[inline]
    fn colon(&mut self) -> Option<()> {
        self.mark_between(b':')
    }

    #[inline]
    fn mark_between(&mut self, mark: u8) -> Option<()> {
        self.blanks();
        match self.rest {
            [first, b' ' | b'\t' | b'\r', rest @ ..] if *first == mark => {
                self.rest = rest;
                self.blanks();
                Some(())
            }
            _ => None,
        }
    }

    /// Reads a decimal number; one that starts with a 0 would be octal.
    #[inline]
    fn decimal(&mut self, largest: u32) -> Option<u32> {
        let (first, mut rest) = self.rest.split_first().filter(|(first, _)| first.is_ascii_digit())?;
        let mut number = u32::from(first - b'0');
        while let [digit @ b'0'..=b'9', tail @ ..] = rest {
            if *first == b'0' {
                return None;
            }
            number = number.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
            rest = tail;
        }
        self.rest = rest;
        (number <= largest).then_some(number)
    }

    #[inline]
    fn ipv4(&mut self) -> Option<u32> {
        let mut address = self.decimal(255)?;
        for _ in 0..3 {
            self.eat(b'.').then_some(())?;
            address = address << 8 | self.decimal(255)?;
        }
        Some(address)
    }

    #[inline]
    fn ipv4_bounds(&mut self, intervals: bool) -> Option<(u32, u32)> {
        let low = self.ipv4()?;
        if !intervals {
            return Some((low, low));
        }
        if self.eat(b'/') {
            let free = u32::MAX.checked_shr(self.decimal(32)?).unwrap_or(0);
            return Some((low & !free, low | free));
        }
        let high = if self.eat(b'-') { self.ipv4()? } else { low };
        (low <= high).then_some((low, high))
    }

    #[inline]
    fn ipv6(&mut self) -> Option<u128> {
        let length = self
            .rest
            .iter()
            .take(LONGEST_IPV6)
            .take_while(|byte| byte.is_ascii_hexdigit() || **byte == b':')
            .count();
        let (address, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let address: Ipv6Addr = std::str::from_utf8(address).ok()?.parse().ok()?;
        Some(address.into())
    }

    fn ipv6_bounds(&mut self, intervals: bool) -> Option<(u128, u128)> {
        let low = self.ipv6()?;
        if !intervals {
            return Some((low, low));
        }
        if self.eat(b'/') {
            let free = u128::MAX.checked_shr(self.decimal(128)?).unwrap_or(0);
            return Some((low & !free, low | free));
        }
        let high = if self.eat(b'-') { self.ipv6()? } else { low };
        (low <= high).then_some((low, high))
    }

    #[inline]
    fn ports(&mut self, intervals: bool) -> Option<(u16, u16)> {
        let port = |scan: &mut Self| u16::try_from(scan.decimal(0xffff)?).ok();
        let low = port(self)?;
        let high = if intervals && self.eat(b'-') { port(self)? } else { low };
        (low <= high).then_some((low, high))
    }

    fn protocol(&mut self) -> Option<u8> {
        for (name, number) in PROTOCOLS {
            if let Some(rest) = self.rest.strip_prefix(name) {
                self.rest = rest;
                return Some(number);
            }
        }
        u8::try_from(self.decimal(255)?).ok()
    }

    fn mark(&mut self) -> Option<u32> {
        let [b'0', b'x', digits @ ..] = self.rest else { return self.decimal(u32::MAX) };
        let length = digits.iter().take_while(|digit| digit.is_ascii_hexdigit()).count();
        let (digits, rest) = digits.split_at_checked(length)?;
        self.rest = rest;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    fn ether(&mut self) -> Option<[u8; 6]> {
        let mut address = [0; 6];
        for (i, byte) in address.iter_mut().enumerate() {
            if i > 0 {
                self.eat(b':').then_some(())?;
            }
            let [high, low, rest @ ..] = self.rest else { return None };
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            *byte = u8::try_from(digit(high)? << 4 | digit(low)?).ok()?;
            self.rest = rest;
        }
        Some(address)
    }

    fn word(&mut self) -> Option<&'t str> {
        self.blanks();
        let length = self.rest.iter().take_while(|byte| in_word(**byte)).count();
        let (word, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.border()?;
        std::str::from_utf8(word).ok()
    }

    fn verdict(&mut self) -> Option<Verdict> {
        Some(match self.word()? {
            "accept" => Verdict::Accept,
            "drop" => Verdict::Drop,
            "continue" => Verdict::Continue,
            "return" => Verdict::Return,
            "jump" => Verdict::Jump(Name::new(self.word()?).ok()?),
            "goto" => Verdict::Goto(Name::new(self.word()?).ok()?),
            _ => return None,
        })
    }
}

/// What can be told from other names by its start, as the border behind it is checked.
const PROTOCOLS: [(&[u8], u8); 3] = [(b"tcp", 6), (b"udp", 17), (b"sctp", 132)];
/// Eight groups of four digits.
const LONGEST_IPV6: usize = 39;
