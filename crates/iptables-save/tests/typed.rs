//! The structures of `typed` over every rule of the corpus: they read it, and what they build means the same.

use sluicegate_iptables_save::typed::{Typed, matches, targets};
use sluicegate_iptables_save::{Family, Module, Spec};

/// The module read as a structure and built again; `None` if there is no structure for it.
fn again(module: &Module<'_>, target: bool) -> Option<Module<'static>> {
    fn through<T: Typed + PartialEq + std::fmt::Debug>(module: &Module<'_>) -> Module<'static> {
        let typed = T::of(module).unwrap_or_else(|error| panic!("{module:?}: {error}"));
        let built = typed.module();
        assert_eq!(T::of(&built).expect("what is built can be read"), typed);
        built
    }
    macro_rules! any_of {
        ($($type:ty),*) => {{
            let known: &[(&str, fn(&Module<'_>) -> Module<'static>)] = &[$((<$type>::NAME, through::<$type>)),*];
            known.iter().find(|(name, _)| *name == module.name).map(|(_, through)| through(module))
        }};
    }
    if target {
        any_of!(
            targets::Connmark,
            targets::Ct,
            targets::Dnat,
            targets::Log,
            targets::Mark,
            targets::Masquerade,
            targets::Nflog,
            targets::Nfqueue,
            targets::Redirect,
            targets::Reject,
            targets::Set,
            targets::Snat,
            targets::Tcpmss,
            targets::Tproxy
        )
    } else {
        any_of!(
            matches::Addrtype,
            matches::Comment,
            matches::Connmark,
            matches::Conntrack,
            matches::Hashlimit,
            matches::Icmp,
            matches::Icmp6,
            matches::Ipvs,
            matches::Limit,
            matches::Mark,
            matches::Multiport,
            matches::Physdev,
            matches::Recent,
            matches::Sctp,
            matches::Set,
            matches::State,
            matches::Statistic,
            matches::Tcp,
            matches::Udp
        )
    }
}

#[test]
fn every_rule_of_the_corpus_means_the_same_through_the_structures() {
    let corpora = [
        (Family::V4, include_str!("../testdata/rules.v4")),
        (Family::V6, include_str!("../testdata/rules.v6")),
    ];
    let mut modules = 0;
    for (family, corpus) in corpora {
        for line in corpus.lines().filter(|line| !line.starts_with('#')) {
            let words = line.split_once(':').expect("TABLE CHAIN: WORDS").1;
            let read = Spec::read_as(words, family).unwrap_or_else(|error| panic!("{line}: {error}"));
            let mut built = read.clone();
            for module in &mut built.matches {
                if let Some(other) = again(module, false) {
                    *module = other;
                    modules += 1;
                }
            }
            if let Some(target) = &mut built.target
                && let Some(other) = again(&target.module, true)
            {
                target.module = other;
                modules += 1;
            }
            assert_eq!(built.normal(family), read.normal(family), "{line}");
        }
    }
    assert!(modules > 2000, "{modules}");
}
