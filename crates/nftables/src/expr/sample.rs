//! Generates arbitrary expressions of every kind, and tests that encoding and decoding preserve them.

use proptest::prelude::*;
use sluicegate_netlink::attr::{self, Attributes};

use crate::expr::Verdict;
use crate::expr::*;
use crate::name::Name;

/// A source of numbers, chosen by proptest.
pub(crate) struct Source {
    numbers: Vec<u64>,
    next: usize,
    /// The nesting depth of expressions so far, which is limited.
    depth: u32,
}

impl Source {
    pub(crate) fn new(numbers: Vec<u64>) -> Self {
        Self { numbers, next: 0, depth: 1 }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        let number = self.numbers.get(self.next % self.numbers.len()).copied().unwrap_or(0);
        // The numbers are reused, but differ from one round to the next.
        number.wrapping_mul(2 * self.next as u64 + 1)
    }
}

pub(crate) trait Sample {
    fn sample(source: &mut Source) -> Self;
}

macro_rules! sampled {
    ($($of:ty, $source:ident => $value:expr;)*) => {$(
        impl Sample for $of {
            #[allow(clippy::cast_possible_truncation, reason = "any number will do")]
            fn sample($source: &mut Source) -> Self {
                $value
            }
        }
    )*};
}

sampled! {
    u8, s => s.number() as u8;
    u16, s => s.number() as u16;
    u32, s => s.number() as u32;
    u64, s => s.number();
    Name, s => Name::from_kernel(&format!("n{}", s.number()));
    String, s => format!("text {}", s.number());
    Box<str>, s => format!("text {}", s.number()).into();
    Vec<u8>, s => {
        let length = s.number() as usize % 65;
        (0..length).map(|_| s.number() as u8).collect()
    };
    Data, s => match s.number() % 5 {
        0 => Data::Verdict(Verdict::Drop),
        1 => Data::Verdict(Verdict::Jump(Sample::sample(s))),
        2 => Data::Code(VerdictCode(0x0001_0003)),
        3 => Data::ChainId(VerdictCode::GOTO, Sample::sample(s)),
        _ => Data::Value(Sample::sample(s)),
    };
    Bytes, s => Vec::<u8>::sample(s).into();
    Box<Expr>, s => Box::new(one(s));
    Vec<Expr>, s => (0..s.number() % 3).map(|_| one(s)).collect();
}

impl<T: Sample> Sample for Option<T> {
    fn sample(source: &mut Source) -> Self {
        source.number().is_multiple_of(2).then(|| T::sample(source))
    }
}

fn one(source: &mut Source) -> Expr {
    if source.depth == 0 {
        return Notrack {}.into();
    }
    source.depth -= 1;
    let mut all = Expr::samples(source);
    source.depth += 1;
    // Expressions that contain others are never nested.
    all.retain(|expr| !matches!(expr, Expr::Inner(_) | Expr::Dynset(_)));
    let index = usize::try_from(source.number()).unwrap_or(0) % all.len();
    all.swap_remove(index)
}

pub(crate) fn round_trip(expr: &Expr) -> Expr {
    let bytes = attr::encode(|w| expr.encode(w, 1)).unwrap();
    let attribute = Attributes::new(&bytes).next().unwrap().unwrap();
    Expr::decode(&attribute).unwrap()
}

proptest! {
    #[test]
    fn every_kind_of_expression_survives_the_wire(numbers in prop::collection::vec(any::<u64>(), 16..64)) {
        let mut source = Source::new(numbers);
        for expr in Expr::samples(&mut source) {
            prop_assert_eq!(round_trip(&expr), expr);
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(name in prop::sample::select(Expr::NAMES),
        data in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = attr::encode(|w| {
            w.put_str(1, name);
            w.put(2, &data);
        }).unwrap();
        let whole = attr::encode(|w| w.put(1, &bytes)).unwrap();
        let _ = Expr::decode(&Attributes::new(&whole).next().unwrap().unwrap());
    }
}

#[test]
fn an_expression_is_small() {
    // A ruleset has tens of thousands of expressions: declare a larger kind as `boxed` in table.rs.
    assert!(size_of::<Data>() <= 32, "{}", size_of::<Data>());
    assert!(size_of::<Expr>() <= 56, "{}", size_of::<Expr>());
}

#[test]
fn every_expression_of_the_kernel_has_a_row_and_a_line_in_the_documentation() {
    let documentation = include_str!("mod.rs");
    for name in KERNEL {
        assert!(Expr::NAMES.contains(name), "{name} has no row in table.rs");
        assert!(
            documentation.contains(&format!("//! | `{name}` |")),
            "{name} has no line in the table of mod.rs"
        );
    }
    assert_eq!(KERNEL.len(), Expr::NAMES.len());
}

/// The names of `struct nft_expr_type` in Linux 6.12.
const KERNEL: &[&str] = &[
    "bitwise",
    "byteorder",
    "cmp",
    "connlimit",
    "counter",
    "ct",
    "dup",
    "dynset",
    "exthdr",
    "fib",
    "flow_offload",
    "fwd",
    "hash",
    "immediate",
    "inner",
    "last",
    "limit",
    "log",
    "lookup",
    "masq",
    "match",
    "meta",
    "nat",
    "notrack",
    "numgen",
    "objref",
    "osf",
    "payload",
    "queue",
    "quota",
    "range",
    "redir",
    "reject",
    "rt",
    "socket",
    "synproxy",
    "target",
    "tproxy",
    "tunnel",
    "xfrm",
];
