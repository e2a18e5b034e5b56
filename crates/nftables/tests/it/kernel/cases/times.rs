//! The time of packets: dates, hours and days of the week.

use sluicegate_nftables::expr::MetaKey;

use super::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![rules("times", Family::INET, rules_of_times()), named()]
}

/// 2026-01-01 00:00:00 UTC, and some seconds.
fn at(seconds: u64) -> u64 {
    (1_767_225_600 + seconds) * 1_000_000_000
}

fn hour(hours: u64, minutes: u64) -> u64 {
    hours * 3600 + minutes * 60
}

fn rules_of_times() -> Vec<Vec<Statement>> {
    let is = |left: MetaKey, right: Expression| vec![Statement::from(Match::new(left, right))];
    let with = |left: MetaKey, op, right: u64| vec![Statement::from(Match::with(left, op, right))];
    let not = |left: MetaKey, right: Expression| vec![Statement::from(Match::not(left, right))];
    let (time, hours, day) = (MetaKey::TIME, MetaKey::HOUR, MetaKey::DAY);
    vec![
        is(time, at(0).into()),
        is(time, at(86_399).into()),
        is(time, at(59 * 86_400 - 1).into()),
        is(time, Expression::range(at(0), at(86_400))),
        not(time, Expression::range(at(0), at(86_400))),
        with(time, MatchOp::Lt, at(86_400)),
        with(time, MatchOp::Gte, at(5)),
        with(time, MatchOp::Neq, at(0)),
        is(time, Expression::set([at(0), at(100)])),
        is(hours, hour(17, 0).into()),
        is(hours, (hour(17, 0) + 5).into()),
        is(hours, Expression::range(hour(17, 0), hour(19, 30))),
        not(hours, Expression::range(hour(17, 0), hour(19, 30))),
        // Under an offset of two hours these cross midnight, the last two do so in UTC.
        is(hours, Expression::range(hour(21, 0), hour(23, 0))),
        is(hours, Expression::range(hour(22, 0), hour(23, 59))),
        not(hours, Expression::range(hour(21, 0), hour(23, 0))),
        is(hours, Expression::range(hour(22, 0), hour(2, 0))),
        not(hours, Expression::range(hour(22, 0), hour(2, 0))),
        with(hours, MatchOp::Gt, hour(17, 0)),
        with(hours, MatchOp::Lte, 0),
        is(hours, Expression::set([hour(17, 0), 0])),
        is(hours, Expression::set([hour(9, 0).into(), Expression::range(hour(17, 0), hour(19, 0))])),
        is(day, 6_u64.into()),
        is(day, Expression::set([6_u64, 0])),
        is(day, Expression::range(1_u64, 5_u64)),
        with(day, MatchOp::Neq, 1),
        with(day, MatchOp::Gt, 3),
        vec![
            Match::new(day, Expression::set([1_u64, 2])).into(),
            Match::new(hours, Expression::range(hour(8, 0), hour(18, 0))).into(),
            Verdict::Accept.into(),
        ],
        vec![
            Match::new(
                Expression::concat([day.into(), hours.into()]),
                Expression::set([Expression::concat([6_u64.into(), hour(17, 0).into()])]),
            )
            .into(),
        ],
        vec![Vmap::new(hours, vec![(hour(17, 0).into(), Verdict::Accept)]).into()],
        vec![
            Mangle::new(
                MetaKey::MARK,
                Expression::Meta(day)
                    .map_anonymous([(0_u64.into(), 7_u64.into()), (6_u64.into(), 8_u64.into())]),
            )
            .into(),
        ],
    ]
}

fn named() -> Case {
    case("sets of times", Family::INET, |tx, t, chain| {
        for (n, key) in [("hours", MetaKey::HOUR), ("days", MetaKey::DAY), ("times", MetaKey::TIME)] {
            let of = SetType::Typeof(key.into());
            tx.add(Set::new(t.set(name(n)), of));
            tx.add(chain.rule().then(Match::new(key, Expression::named(&name(n)))));
        }
        let element = |key: MetaKey, bytes: &[u8]| {
            let mut element = Key::new();
            element.append(Expression::Meta(key).part().unwrap(), bytes);
            Element::new(element)
        };
        let hours = |hours| u32::try_from(hour(hours, 0)).unwrap().to_ne_bytes();
        tx.add_element(&t.set(name("hours")), element(MetaKey::HOUR, &hours(17)));
        tx.add_element(&t.set(name("hours")), element(MetaKey::HOUR, &hours(23)));
        tx.add_element(&t.set(name("days")), element(MetaKey::DAY, &[3]));
        tx.add_element(&t.set(name("times")), element(MetaKey::TIME, &at(7).to_ne_bytes()));
    })
}
