//! Rules to bytes and back, without a kernel: over the corpus of sluicegate-iptables-save, and over any
//! bytes.

use proptest::prelude::*;
use sluicegate_iptables_save::{Family, Place, all_matches};
use sluicegate_xtables::{
    Action, Kernel, Kind, NoSets, NoWords, Rule, SetMismatch, Sets, codecs, codecs_of, decode_extension,
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
    fn index(&self, name: &str, _: Family) -> Result<u16, SetMismatch> {
        let number = name.strip_prefix('s').and_then(|number| number.parse().ok());
        number.ok_or_else(|| SetMismatch::Missing { name: name.to_owned() })
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
        Family::Ipv4 => include_str!("../../../iptables-save/testdata/rules.v4"),
        Family::Ipv6 => include_str!("../../../iptables-save/testdata/rules.v6"),
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
            let rules = Rule::compile(words, place, &Everything);
            let rules = rules.unwrap_or_else(|error| panic!("{words}: {error}"));
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
fn all_extensions_have_a_binary_form() {
    let matches = all_matches().map(|extension| (Kind::Match, extension));
    let targets = sluicegate_iptables_save::all_targets().map(|extension| (Kind::Target, extension));
    let mut without = Vec::new();
    for (kind, extension) in matches.chain(targets) {
        let families = FAMILIES.into_iter().filter(|family| extension.supports(*family));
        if families.clone().any(|family| codecs_of(kind, extension.name(), family).next().is_none()) {
            without.push(extension.name());
        }
    }
    assert!(without.is_empty(), "{without:?}");
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
    let error = Rule::compile("-m set --match-set none src", place, &Everything).unwrap_err();
    assert_eq!(error.to_string(), "match set: there is no set `none`");
}

/// Words, what iptables-legacy 1.8.9 hands to `IPT_SO_SET_REPLACE` for them, and what iptables-legacy-save
/// prints of that: seen with strace, and with a library in between that takes the place of the kernel. Linux
/// 6.18 has neither of these targets.
const SENT: &[(&str, &str, &str)] = &[
    ("-j LED --led-trigger-id ssh", "6e657466696c7465722d73736800*", "-j LED --led-trigger-id \"ssh\""),
    (
        "-j LED --led-trigger-id ssh --led-delay 100 --led-always-blink",
        "6e657466696c7465722d737368000000000000000000000000000001 64000000*",
        "-j LED --led-trigger-id \"ssh\" --led-delay 100 --led-always-blink",
    ),
    (
        "-j LED --led-trigger-id abcdefghijklmnop",
        "6e657466696c7465722d6162636465666768696a6b6c6d6e6f7000*",
        "-j LED --led-trigger-id \"abcdefghijklmnop\"",
    ),
    // The tool saves `--led-delay -1`, which it refuses to read.
    (
        "-j LED --led-trigger-id x --led-delay inf",
        "6e657466696c7465722d780000000000000000000000000000000000 ffffffff*",
        "-j LED --led-trigger-id \"x\" --led-delay inf",
    ),
    ("-j ULOG", "0100000000000000 0000000000000000 0100000000000000*", "-j ULOG"),
    (
        "-j ULOG --ulog-prefix x --ulog-nlgroup 2 --ulog-cprange 100 --ulog-qthreshold 5",
        "0200000000000000 6400000000000000 0500000000000000 7800*",
        "-j ULOG --ulog-prefix x --ulog-nlgroup 2 --ulog-cprange 100 --ulog-qthreshold 5",
    ),
    // The tool saves the lower half of the range.
    (
        "-j ULOG --ulog-nlgroup 32 --ulog-qthreshold 50 --ulog-cprange 18446744073709551615",
        "0000008000000000 ffffffffffffffff 3200000000000000*",
        "-j ULOG --ulog-nlgroup 32 --ulog-cprange 18446744073709551615 --ulog-qthreshold 50",
    ),
    ("-j CLUSTERIP", "00*", "-j CLUSTERIP"),
    (
        "-j CLUSTERIP --new --hashmode sourceip --clustermac 01:00:5e:00:00:20 --total-nodes 2 --local-node 1",
        "01000000 01005e000020 0200 0100 0100*",
        "-j CLUSTERIP --new --hashmode sourceip --clustermac 01:00:5E:00:00:20 --total-nodes 2 --local-node 1 \
         --hash-init 0",
    ),
    (
        "-j CLUSTERIP --new --hashmode sourceip-sourceport-destport --clustermac 01:00:5e:00:00:20 \
         --total-nodes 16 --local-node 16 --hash-init 305419896",
        "01000000 01005e000020 1000 0100 1000 000000000000000000000000000000000000000000000000000000000000 0000 \
         02000000 78563412*",
        "-j CLUSTERIP --new --hashmode sourceip-sourceport-destport --clustermac 01:00:5E:00:00:20 \
         --total-nodes 16 --local-node 16 --hash-init 305419896",
    ),
];

#[test]
fn targets_that_the_kernel_of_the_tests_lacks_have_the_bytes_that_the_tool_sends() {
    let place = Place { table: "filter", chain: "INPUT", family: Family::Ipv4 };
    for (words, sent, saved) in SENT {
        let rules =
            Rule::compile(words, place, &Everything).unwrap_or_else(|error| panic!("{words}: {error}"));
        let Action::Target(target) = &rules[0].action else { panic!("{words}: no target") };
        let size = match &*target.name {
            "LED" => 40,
            "ULOG" => 56,
            _ => 64,
        };
        assert_eq!((target.revision, target.data.len()), (0, size), "{words}");
        let hex: String = target.data.iter().map(|byte| format!("{byte:02x}")).collect();
        // A star stands for zeros up to the end.
        let sent = sent.replace(' ', "").replace('*', &"0".repeat(128));
        assert_eq!(hex, sent[..2 * size], "{words}");
        assert_eq!(rules[0].words(Family::Ipv4, &Everything).unwrap(), *saved);
    }
    for (wrong, reason) in [
        ("-j CLUSTERIP --hash-init 7", "--hash-init needs --new"),
        (
            "-j CLUSTERIP --new --hashmode sourceip --clustermac 00:00:5e:00:00:20 --total-nodes 2 --local-node 1",
            "--clustermac: expected a multicast address",
        ),
        ("-j LED --led-delay 7", "--led-trigger-id"),
        ("-j ULOG --ulog-nlgroup 33", "33"),
        ("-m rateest --rateest A --rateest-lt --rateest-bps 10tbit", "below 2^32 bytes a second"),
    ] {
        let error = Rule::compile(wrong, place, &Everything).unwrap_err().to_string();
        assert!(error.contains(reason), "{wrong}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    /// Flags, lengths and counts are small numbers, so that most bytes are.
    #[test]
    fn any_bytes_are_shown_and_what_is_shown_as_options_is_encoded_again(
        fields in proptest::collection::vec(
            prop_oneof![
                6 => Just([0; 4]),
                2 => (0_u8..9).prop_map(|byte| [byte, 0, 0, 0]),
                2 => (0_u8..9).prop_map(|byte| [0, 0, 0, byte]),
                1 => proptest::array::uniform4(0_u8..9),
                // The extremes of each width, in both orders of bytes.
                1 => proptest::sample::select(vec![[0xff; 4], [0xff, 0xff, 0, 0], [0, 0, 0xff, 0xff], [0x80, 0, 0, 0], [0, 0, 0, 0x80]]),
                1 => any::<[u8; 4]>(),
            ],
            512,
        ),
        short in 0_usize..64,
    ) {
        let bytes = fields.concat();
        for codec in codecs() {
            for family in FAMILIES {
                let read = |data: &[u8]| {
                    decode_extension(codec.kind(), codec.kernel_name(), codec.revision(), data, family, &Everything)
                };
                let _ = read(&bytes[..short]);
                let Some(module) = read(&bytes[..codec.size()]) else { continue };
                let writer = codecs_of(codec.kind(), &module.name, family).next().unwrap();
                let binary = writer.encode(&module, &module, family, &Everything);
                let binary = binary.map_err(|error| TestCaseError::fail(format!("{codec:?}: {error}")))?;
                prop_assert_eq!(read(&binary.data), Some(module.clone()), "{:?}: {:?}", codec, binary);
            }
        }
    }
}

/// A rule whose structures cannot be shown exactly has no words, rather than those of one that matches more.
#[test]
fn what_options_do_not_say_has_no_words() {
    let compile = |words: &str| {
        let place = Place { table: "mangle", chain: "PREROUTING", family: Family::Ipv4 };
        Rule::compile(words, place, &Everything).unwrap().remove(0)
    };
    let mut silent = 0;
    for codec in codecs() {
        let patterns = [vec![0xff; codec.size()], vec![0xff; codec.size() + 8], Vec::new()];
        for (data, revision) in patterns.iter().flat_map(|data| [(data, codec.revision()), (data, 99)]) {
            let name = codec.kernel_name();
            let shown = decode_extension(codec.kind(), name, revision, data, Family::Ipv4, &Everything);
            let mut rule = compile("");
            let mut binary = compile("-m comment --comment x").matches.remove(0);
            (binary.name, binary.revision, binary.data) = (name.into(), revision, data.clone());
            match codec.kind() {
                Kind::Match => rule.matches.push(binary),
                Kind::Target => rule.action = Action::Target(binary),
            }
            let words = rule.words(Family::Ipv4, &Everything);
            match shown {
                Some(module) => assert!(words.unwrap().contains(&*module.name), "{codec:?}"),
                None => {
                    let (kind, name) = (codec.kind(), name.to_owned());
                    assert_eq!(words, Err(NoWords::Extension { kind, name, revision }));
                    silent += 1;
                }
            }
        }
    }
    assert!(silent > 300, "{silent}");
}

/// One bit of a head is another one: either its words say so, or there are none.
#[test]
fn every_bit_of_a_head_is_in_its_words_or_there_are_none() {
    let (mut said, mut silent) = (0, 0);
    for (family, addresses) in
        [(Family::Ipv4, "-s 192.0.2.0/24 ! -d 198.51.100.7"), (Family::Ipv6, "-s 2001:db8::/32 ! -d fd00::7")]
    {
        let place = Place { table: "mangle", chain: "FORWARD", family };
        let compile = |words: &str| Rule::compile(words, place, &Everything).unwrap().remove(0);
        for words in [format!("{addresses} -i eth0 -o ppp+ -p tcp"), String::new(), "-i + ! -p 47".to_owned()]
        {
            let rule = compile(&words);
            let printed = rule.words(family, &Everything).unwrap();
            assert_eq!(compile(&printed).words(family, &Everything).unwrap(), printed);
            for bit in 0..rule.head.len() * 8 {
                let mut other = rule.clone();
                other.head[bit / 8] ^= 1 << (bit % 8);
                match other.words(family, &Everything) {
                    Ok(text) if text == printed => {
                        // Padding, what stands behind the end of a name, or what `-p all` sets.
                        let (names, flags) = if family == Family::Ipv4 { (16, 82) } else { (64, 131) };
                        let name = (names..names + 32).contains(&(bit / 8)) && rule.head[bit / 8 + 32] == 0;
                        let all = bit == flags * 8 && family == Family::Ipv6 && words.is_empty();
                        assert!(name || all || bit / 8 > flags, "{words}: bit {bit}: {text}");
                    }
                    // The name of the interface, perhaps.
                    Ok(text) => {
                        let again = Rule::compile(&text, place, &Everything).map(|mut rules| rules.remove(0));
                        let again = again.unwrap_or_else(|error| panic!("{text}: {error}"));
                        assert_eq!(again.words(family, &Everything).as_ref(), Ok(&text));
                        said += 1;
                    }
                    Err(error) => {
                        assert!(matches!(error, NoWords::Head | NoWords::Text(_)), "{error}");
                        silent += 1;
                    }
                }
            }
        }
    }
    assert!(said > 300 && silent > 300, "{said} {silent}");
}

/// Numbers and ranges at the ends of what an option takes, for every option that takes one value.
#[test]
fn every_option_at_its_extremes_is_printed_as_what_it_is() {
    const VALUES: [&str; 12] = [
        ":",
        "0:",
        ":1",
        ":0",
        "0",
        "255",
        "65535",
        "4294967295",
        "0:65535",
        "0:4294967295",
        "0/0",
        "0-4294967295",
    ];
    let mut compiled = 0;
    for family in FAMILIES {
        for extension in all_matches().filter(|extension| extension.supports(family)) {
            let protocol = match extension.name() {
                name @ ("tcp" | "udp" | "udplite" | "sctp" | "dccp" | "esp" | "ah" | "icmp" | "ipcomp") => {
                    name
                }
                "multiport" | "tcpmss" => "tcp",
                "icmp6" => "ipv6-icmp",
                "mh" => "ipv6-mh",
                _ => "all",
            };
            for row in extension.options().iter().filter(|row| row.arity() == 1) {
                for (value, not) in VALUES.iter().flat_map(|value| [(value, ""), (value, "! ")]) {
                    let option = format!("{not}--{} {value}", row.name());
                    compiled += extreme(&format!("-p {protocol} -m {} {option}", extension.name()), family);
                }
            }
        }
    }
    assert!(compiled > 500, "{compiled}");
}

/// Compiles words, if they can be a rule, and prints and compiles it again. Returns how many there were.
fn extreme(words: &str, family: Family) -> usize {
    let place = Place { table: "mangle", chain: "PREROUTING", family };
    let Ok(rules) = Rule::compile(words, place, &Everything) else { return 0 };
    for rule in &rules {
        let printed = rule.words(family, &Everything).expect("words");
        let says_nothing = matches!(printed.as_str(), "-m rt" | "-m frag");
        assert!(!printed.contains("[unsupported"), "{words}: {printed}");
        assert!(!says_nothing || !words.contains('!'), "{words}: {printed}");
        let again = Rule::compile(&printed, place, &Everything).expect("it is a rule");
        assert_eq!(again[0].words(family, &Everything).expect("words"), printed, "{words}");
    }
    rules.len()
}
