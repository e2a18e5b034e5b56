//! Rules to bytes and back, without a kernel: over the corpus of sluicegate-iptables-save, and over any
//! bytes.

use proptest::prelude::*;
use sluicegate_iptables_save::{Family, Place};
use sluicegate_xtables::{
    CompileError, Kernel, Kind, NoSets, Rule, Sets, codecs, codecs_of, decode_extension,
};

/// A kernel that has every revision, and the sets of the corpus.
struct Everything;

impl Kernel for Everything {
    fn has(&self, _: Kind, _: &str, _: u8) -> bool {
        true
    }

    fn sets(&self) -> &dyn Sets {
        self
    }
}

impl Sets for Everything {
    fn index(&self, name: &str, _: Family) -> Result<u16, String> {
        let number = name.strip_prefix('s').and_then(|number| number.parse().ok());
        number.ok_or_else(|| format!("there is no set `{name}`"))
    }

    fn name(&self, index: u16) -> Option<String> {
        Some(format!("s{index}"))
    }
}

/// A kernel of another release, without the newest revisions.
struct Old;

impl Kernel for Old {
    fn has(&self, _: Kind, name: &str, _: u8) -> bool {
        name != "conntrack"
    }

    fn sets(&self) -> &dyn Sets {
        &NoSets
    }
}

const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

fn corpus(family: Family) -> impl Iterator<Item = (Place<'static>, &'static str)> {
    let text = match family {
        Family::Ipv4 => include_str!("../../iptables-save/testdata/rules.v4"),
        Family::Ipv6 => include_str!("../../iptables-save/testdata/rules.v6"),
    };
    text.lines().filter(|line| !line.starts_with('#')).map(move |line| {
        let (place, words) = line.split_once(':').expect("TABLE CHAIN: WORDS");
        let (table, chain) = place.split_once(' ').expect("TABLE CHAIN");
        (Place { table, chain, family }, words)
    })
}

#[test]
fn what_is_printed_of_a_rule_says_the_same_as_the_rule() {
    for family in FAMILIES {
        let mut count = 0;
        for (place, words) in corpus(family) {
            let rules = match Rule::compile(words, place, &Everything) {
                Err(CompileError::Unsupported(error)) => {
                    assert!(error.name.eq_ignore_ascii_case("rateest"), "{words}: {error}");
                    continue;
                }
                other => other.unwrap_or_else(|error| panic!("{words}: {error}")),
            };
            for rule in rules {
                let printed = rule.words(family, &Everything).unwrap();
                assert!(!printed.contains("[unsupported"), "{words}: {printed}");
                let again = Rule::compile(&printed, place, &Everything);
                let again = again.unwrap_or_else(|error| panic!("{words}: {printed}: {error}")).remove(0);
                assert_eq!(again.words(family, &Everything).unwrap(), printed, "{words}");
                count += 1;
            }
        }
        assert!(count > 2200, "{count}");
    }
}

#[test]
fn all_extensions_but_those_of_the_documentation_have_a_binary_form() {
    let matches = sluicegate_iptables_save::all_matches().map(|extension| (Kind::Match, extension));
    let targets = sluicegate_iptables_save::all_targets().map(|extension| (Kind::Target, extension));
    let mut without = Vec::new();
    for (kind, extension) in matches.chain(targets) {
        let families = FAMILIES.into_iter().filter(|family| extension.supports(*family));
        if families.clone().any(|family| codecs_of(kind, extension.name(), family).next().is_none()) {
            without.push(extension.name());
        }
    }
    without.sort_unstable();
    assert_eq!(without, ["CLUSTERIP", "LED", "RATEEST", "ULOG", "ipvs", "rateest"]);
}

#[test]
fn flags_that_no_packet_has_are_not_lost() {
    let place = Place { table: "filter", chain: "X", family: Family::Ipv4 };
    let words = "-p tcp -m tcp --tcp-flags NONE SYN";
    let rules = Rule::compile(words, place, &Everything).unwrap();
    assert_eq!(rules[0].words(Family::Ipv4, &Everything).unwrap(), words);
}

#[test]
fn an_extension_that_the_kernel_lacks_is_named_with_its_revision() {
    let place = Place { table: "filter", chain: "X", family: Family::Ipv4 };
    let error = Rule::compile("-m state --state NEW", place, &Old).unwrap_err();
    assert_eq!(error.to_string(), "match state: the kernel does not have it in revision 3");
    let error = Rule::compile("-m bpf --object-pinned /x", place, &Everything).unwrap_err();
    assert_eq!(error.to_string(), "match bpf: expected --bytecode: pinned programs are not supported");
    let error = Rule::compile("-m set --match-set none src", place, &Everything).unwrap_err();
    assert_eq!(error.to_string(), "match set: there is no set `none`");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    /// Flags, lengths and counts are small numbers, so that most bytes are.
    #[test]
    fn any_bytes_are_shown_and_what_is_shown_as_options_is_encoded_again(
        bytes in proptest::collection::vec(prop_oneof![4 => Just(0_u8), 2 => 0_u8..9, 1 => any::<u8>()], 2048),
        short in 0_usize..64,
    ) {
        for codec in codecs() {
            for family in FAMILIES {
                let read = |data: &[u8]| {
                    decode_extension(codec.kind(), codec.kernel_name(), codec.revision(), data, family, &Everything)
                };
                let _ = read(&bytes[..short]);
                let module = read(&bytes[..codec.size()]);
                if module.options.iter().any(|option| option.name.starts_with('[')) {
                    continue;
                }
                let writer = codecs_of(codec.kind(), &module.name, family).next().unwrap();
                let binary = writer.encode(&module, &module, family, &Everything);
                let binary = binary.map_err(|error| TestCaseError::fail(format!("{codec:?}: {error}")))?;
                prop_assert_eq!(&read(&binary.data), &module, "{:?}: {:?}", codec, binary);
            }
        }
    }
}
