//! Tests that unknown attributes of a newer kernel are preserved, wherever in an expression or element they
//! are.

use proptest::prelude::*;
use proptest::sample::Index;
use sluicegate_netlink::attr::{self, Attribute, Attributes, Writer};

use crate::expr::sample::{Source, round_trip};
use crate::expr::*;
use crate::name::Name;
use crate::{Family, read};

/// A tree of attributes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Tree {
    Leaf(u16, Vec<u8>),
    Nest(u16, Vec<Self>),
}

impl Tree {
    /// Decodes what our encoder wrote, which sets the nested flag on every nest.
    fn read(attributes: Attributes<'_>) -> Option<Vec<Self>> {
        let read = |attribute: Attribute<'_>| {
            let inner = if attribute.nested { Self::read(attribute.attributes()) } else { None };
            match inner {
                Some(inner) => Self::Nest(attribute.kind, inner),
                None => Self::Leaf(attribute.kind, attribute.payload.to_vec()),
            }
        };
        attributes.map(|attribute| Some(read(attribute.ok()?))).collect()
    }

    fn write(trees: &[Self], w: &mut Writer<'_>) {
        for tree in trees {
            match tree {
                Self::Leaf(kind, payload) => w.put(*kind, payload),
                Self::Nest(kind, inner) => Self::write(inner, &mut w.nest(*kind)),
            }
        }
    }

    /// Returns the number of attribute lists in the trees, at any depth.
    fn lists(trees: &[Self]) -> usize {
        1 + trees
            .iter()
            .map(|tree| if let Self::Nest(_, inner) = tree { Self::lists(inner) } else { 0 })
            .sum::<usize>()
    }

    /// Inserts a tree into one of the lists.
    fn insert(trees: &mut Vec<Self>, list: &mut usize, at: Index, tree: &Self) {
        if *list == 0 {
            trees.insert(at.index(trees.len() + 1), tree.clone());
        }
        *list = list.wrapping_sub(1);
        for inner in trees {
            if let Self::Nest(_, inner) = inner {
                Self::insert(inner, list, at, tree);
            }
        }
    }

    /// Removes what has no meaning: the order of attributes of different types, the NUL at the end of a
    /// string, and the flag of a nest.
    fn meaning(mut self) -> Self {
        if let Self::Leaf(kind, payload) = &self
            && !payload.is_empty()
            && let Some(inner) = Self::read(Attributes::new(payload))
        {
            self = Self::Nest(*kind, inner);
        }
        match &mut self {
            Self::Leaf(_, payload) => {
                payload.pop_if(|last| *last == 0);
            }
            Self::Nest(_, inner) => {
                let mut sorted: Vec<_> = std::mem::take(inner).into_iter().map(Self::meaning).collect();
                sorted.sort_by_key(|tree| match tree {
                    Self::Leaf(kind, _) | Self::Nest(kind, _) => *kind,
                });
                *inner = sorted;
            }
        }
        self
    }
}

fn attribute(bytes: &[u8]) -> Attribute<'_> {
    Attributes::new(bytes).next().unwrap().unwrap()
}

fn bytes(tree: &Tree) -> Vec<u8> {
    attr::encode(|w| Tree::write(std::slice::from_ref(tree), w)).unwrap()
}

/// Returns an attribute of any type, known or not. It is not empty: an empty one might be padding, which
/// decoders skip.
fn extra() -> impl Strategy<Value = Tree> {
    (1_u16..30, prop::collection::vec(any::<u8>(), 1..20))
        .prop_map(|(kind, payload)| Tree::Leaf(kind, payload))
}

proptest! {
    #[test]
    fn what_is_decoded_says_all_that_there_was(
        numbers in prop::collection::vec(any::<u64>(), 16..64), extra in extra(), list in any::<Index>(),
            at in any::<Index>(),
    ) {
        for expr in Expr::samples(&mut Source::new(numbers)) {
            let own = attr::encode(|w| expr.encode(w, 1)).unwrap();
            let mut own = Tree::read(Attributes::new(&own)).unwrap().remove(0);
            let Tree::Nest(_, lists) = &mut own else { panic!("{own:?}") };
            let mut list = list.index(Tree::lists(lists));
            Tree::insert(lists, &mut list, at, &extra);
            let sent = bytes(&own);
            // Without its name, or with a second one in its place, it is a different expression or none.
            let Ok(decoded) = Expr::decode(&attribute(&sent)) else { continue };
            let again = attr::encode(|w| decoded.encode(w, 1)).unwrap();
            if sent != again {
                let trees = |bytes: &[u8]| Tree::read(Attributes::new(bytes)).unwrap().remove(0).meaning();
                prop_assert_eq!(trees(&again), trees(&sent), "{:?}", decoded);
            }
        }
    }

    #[test]
    fn what_no_kernel_has_so_far_is_kept_to_the_byte(
        numbers in prop::collection::vec(any::<u64>(), 16..64), kind in 100_u16..0x3fff,
            payload in prop::collection::vec(any::<u8>(), 0..20), list in any::<Index>(),
            at in any::<Index>(),
    ) {
        for expr in Expr::samples(&mut Source::new(numbers)) {
            let own = attr::encode(|w| expr.encode(w, 1)).unwrap();
            let mut own = Tree::read(Attributes::new(&own)).unwrap().remove(0);
            let Tree::Nest(_, lists) = &mut own else { panic!("{own:?}") };
            // Inserts into the expression's data, at any depth.
            let Some(Tree::Nest(2, data)) = lists.get_mut(1) else { continue };
            let mut list = list.index(Tree::lists(data));
            Tree::insert(data, &mut list, at, &Tree::Leaf(kind, payload.clone()));
            let sent = bytes(&own);
            let decoded = Expr::decode(&attribute(&sent)).unwrap();
            prop_assert_ne!(&decoded, &expr);
            prop_assert_eq!(decoded.name(), expr.name());
            prop_assert_eq!(attr::encode(|w| decoded.encode(w, 1)).unwrap(), sent, "{:?}", decoded);
        }
    }

    #[test]
    fn what_a_newer_kernel_says_of_an_element_is_kept(kind in 12_u16..0x3fff,
        payload in prop::collection::vec(any::<u8>(), 0..20), verdict in any::<bool>()) {
        let data = match verdict {
            true => Data::Verdict(Verdict::Drop),
            false => Data::Value([10, 0, 0, 1].into()),
        };
        let extra = attr::encode(|w| w.put(kind, &payload)).unwrap();
        let value = attr::encode(|w| {
            let mut nest = w.nest(2);
            nest.put(1, &[10, 0, 0, 1]);
            nest.raw(&extra);
        }).unwrap();
        for (more, rest) in [(&extra, &extra), (&value, &value)] {
            let list = attr::encode(|w| {
                let mut list = w.nest(3);
                let mut element = list.nest(1);
                Data::Value([80, 0].into()).encode(&mut element, 1);
                if rest != &value {
                    data.encode(&mut element, 2);
                }
                element.raw(more);
            }).unwrap();
            let elements = read::Element::decode_list(Attributes::new(&list)).unwrap();
            prop_assert_eq!(elements.len(), 1);
            prop_assert_eq!(&elements[0].key, &[80, 0]);
            prop_assert!(elements[0].data.is_some());
            prop_assert_eq!(&elements[0].details().rest, rest);
        }
    }
}

#[test]
fn an_expression_of_a_newer_kernel_is_kept() {
    let expr = Expr::from(Unknown::new(Name::from_kernel("newer"), vec![8, 0, 1, 0, 1, 2, 3, 4]));
    assert_eq!(round_trip(&expr), expr);
}

#[test]
fn an_attribute_that_ends_without_its_padding_is_kept() {
    // The attributes are NFTA_EXPR_NAME and an unknown attribute with a payload of one byte, which lacks one
    // of its three bytes of padding.
    let payload = [5, 0, 1, 0, b'x', 0, 0, 0, 5, 0, 9, 0, 4, 0, 0];
    let bytes = attr::encode(|w| w.put(1, &payload)).unwrap();
    let expr = Expr::decode(&attribute(&bytes)).unwrap();
    assert_eq!(round_trip(&expr), expr);
}

#[test]
fn expressions_in_one_another_are_kept_however_deep() {
    let mut bytes = Vec::new();
    for _ in 0..1_000 {
        let inner = attr::encode(|w| {
            let mut whole = w.nest(5);
            whole.put_str(1, "inner");
            let mut data = whole.nest(2);
            (1..=4).for_each(|kind| data.put_be32(kind, 1));
            data.raw(&bytes);
        });
        bytes = inner.unwrap();
    }
    let expr = Expr::decode(&attribute(&bytes)).unwrap();
    assert!(matches!(expr, Expr::Unknown(_)));
    assert_eq!(round_trip(&expr), expr);
}

#[test]
fn padding_is_no_field() {
    let counter = Counter { bytes: Some(1), packets: Some(2) };
    for (pad, payload, known) in [(3, &[][..], true), (3, &[0; 4][..], false), (4, &[][..], false)] {
        let bytes = attr::encode(|w| {
            let mut whole = w.nest(1);
            whole.put_str(1, "counter");
            let mut data = whole.nest(2);
            data.put(pad, payload);
            data.put_be64(1, 1);
            data.put_be64(2, 2);
        })
        .unwrap();
        let decoded = Expr::decode(&Attributes::new(&bytes).next().unwrap().unwrap()).unwrap();
        assert_eq!(decoded == counter.clone().into(), known, "{pad} {payload:?}");
    }
}

#[test]
fn a_state_of_a_newer_kernel_is_listed_as_far_as_it_is_known() {
    let exprs = attr::encode(|w| {
        let mut whole = w.nest(1);
        whole.put_str(1, "counter");
        let mut data = whole.nest(2);
        data.put_be64(1, 7);
        data.put_be64(2, 5);
        data.put_be32(9, 1);
    })
    .unwrap();
    let read_set = |exprs: &[u8]| {
        let set = attr::encode(|w| {
            w.put_str(1, "t");
            w.put_str(2, "s");
            w.put_be32(4, 7);
            w.put_be32(5, 4);
            w.put(18, exprs);
        })
        .unwrap();
        read::Set::decode(Family::IP, Attributes::new(&set)).unwrap()
    };
    let table = attr::encode(|w| w.put_str(1, "t")).unwrap();
    let ruleset = read::Ruleset {
        tables: vec![read::Table::decode(Family::IP, Attributes::new(&table)).unwrap()],
        sets: vec![(read_set(&exprs), Vec::new())],
        ..read::Ruleset::default()
    };
    let (set, _) = &ruleset.content()[0].sets[0];
    assert_eq!(set.statements, [crate::tree::Counter { packets: 5, bytes: 7 }.into()]);
    let kept = attr::encode(|w| ruleset.sets[0].0.expressions[0].encode(w, 1)).unwrap();
    assert_eq!(kept, exprs);
}

#[test]
fn a_rule_keeps_its_expressions_where_a_member_of_its_set_carries_one_without_words() {
    use crate::tree::{Expression, Match, Payload, Statement};
    use crate::{Chain, Port, Table, TableId, Transaction, fake::Fake};

    let chain = TableId::new(Family::IP, Name::from_kernel("t")).chain(Name::from_kernel("c"));
    let mut transaction = Transaction::new();
    transaction.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone()));
    transaction.add(chain.rule().then(Match::new(Payload::TCP_DPORT, Expression::set([Port(1), Port(2)]))));
    let mut fake = Fake::new();
    transaction.apply(&mut fake).expect("the kernel takes it");
    let mut held = fake.ruleset();
    let is_raw = |held: &read::Ruleset| {
        let content = held.content().remove(0);
        matches!(content.chains[0].1[0].statements[..], [Statement::Raw(_)])
    };
    assert!(!is_raw(&held));
    let newer = attr::encode(|w| w.nest(1).put_str(1, "newer")).unwrap();
    let newer = Expr::decode(&Attributes::new(&newer).next().unwrap().unwrap()).unwrap();
    held.sets[0].1[0].details_mut().expressions.push(newer);
    assert!(is_raw(&held));
}
