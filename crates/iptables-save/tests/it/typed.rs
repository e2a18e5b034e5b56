//! The structures of `typed` over every rule of the corpus, as it stands and as each tool saves it: they read
//! it, and what they build means the same.

use std::collections::BTreeSet;

use sluicegate_iptables_save::typed::{AnyExtension, AnyMatch, AnyTarget};
use sluicegate_iptables_save::{Extension, Family, Save, Spec, Target, all_matches, all_targets};
use testns::{feed, have, netns, sh};

const CORPORA: [(Family, &str); 2] = [
    (Family::Ipv4, include_str!("../../testdata/rules.v4")),
    (Family::Ipv6, include_str!("../../testdata/rules.v6")),
];

/// Checks that a rule read as structures and built again means the same; returns the names of what was read.
fn through(words: &str, family: Family) -> Vec<String> {
    let read = Spec::read_as(words, family).unwrap_or_else(|error| panic!("{words}: {error}"));
    let mut built = read.clone();
    let mut names = Vec::new();
    let matches = read.typed_matches().unwrap_or_else(|error| panic!("{words}: {error}"));
    for (module, typed) in built.matches.iter_mut().zip(matches) {
        if !matches!(typed, AnyMatch::Other(_)) {
            names.push(typed.module().name.into_owned());
        }
        let again = AnyMatch::of(&typed.module()).expect("what is built can be read");
        assert_eq!(again, typed, "{words}");
        *module = typed.module();
    }
    if let Some(typed) = read.any_target().unwrap_or_else(|error| panic!("{words}: {error}")) {
        if let AnyTarget::Extension(extension) = &typed
            && !matches!(extension, AnyExtension::Other(_))
        {
            names.push(extension.module().name.into_owned());
        }
        let target = Target::from(typed.clone());
        assert_eq!(AnyTarget::of(&target).expect("what is built can be read"), typed, "{words}");
        built.target = Some(target);
    }
    assert_eq!(built.normal(family).expect("few rules"), read.normal(family).expect("few rules"), "{words}");
    names
}

#[test]
fn every_rule_of_the_corpus_means_the_same_through_the_structures() {
    let mut seen = BTreeSet::new();
    for (family, corpus) in CORPORA {
        for line in corpus.lines().filter(|line| !line.starts_with('#')) {
            seen.extend(through(line.split_once(':').expect("TABLE CHAIN: WORDS").1, family));
        }
    }
    // What the tests have no kernel for is in the next test.
    let missing = ["ipvs", "nfacct", "CLUSTERIP", "LED", "SECMARK", "ULOG"];
    let all = all_matches().chain(all_targets()).map(Extension::name);
    let unseen: Vec<_> = all.filter(|name| !seen.contains(*name) && !missing.contains(name)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}

#[test]
fn extensions_that_the_kernel_of_the_tests_lacks_are_read_too() {
    for words in [
        "-m ipvs --ipvs --vproto 6 --vaddr 10.0.0.1 --vport 80 --vdir ORIGINAL ! --vmethod MASQ --vportctl \
         21",
        "-m nfacct --nfacct-name x",
        "-j CLUSTERIP --new --hashmode sourceip --clustermac 01:00:5e:00:00:20 --total-nodes 2 --local-node \
         1 --hash-init 0",
        "-j LED --led-trigger-id x --led-delay inf --led-always-blink",
        "-j SECMARK --selctx system_u:object_r:x_t:s0",
        "-j ULOG --ulog-prefix x --ulog-nlgroup 2 --ulog-cprange 100 --ulog-qthreshold 5",
    ] {
        assert_eq!(through(words, Family::Ipv4).len(), 1, "{words}");
    }
    assert_eq!(through("-p icmpv6 -m icmpv6 --icmpv6-type 1/4", Family::Ipv6), ["icmp6"]);
    let names = through("-p tcp -m nfacct [unsupported revision] -j CHAOS --tarpit", Family::Ipv4);
    assert!(names.is_empty());
}

#[test]
fn no_value_that_a_tool_saves_is_refused() {
    for (family, corpus) in CORPORA {
        for back_end in ["legacy", "nft"] {
            let stem = if family == Family::Ipv4 { "iptables" } else { "ip6tables" };
            let (restore, save) = (format!("{stem}-{back_end}-restore"), format!("{stem}-{back_end}-save"));
            if !have(&[&restore, &save, "ipset"]) {
                return;
            }
            netns(|| {
                let inet = if family == Family::Ipv4 { "inet" } else { "inet6" };
                let _ = sh(&format!(
                    "ipset create s1 hash:ip family {inet} counters timeout 100; ipset create s2 hash:ip \
                     family {inet}; \
                     ipset create s3 hash:ip family {inet} skbinfo"
                ));
                let estimator = "*mangle\n:RE - [0:0]\n-A RE -j RATEEST --rateest-name RE1 \
                                 --rateest-interval 250ms --rateest-ewmalog 500ms\nCOMMIT\n";
                assert!(feed(&[&restore, "--noflush"], estimator).status.success());
                let mut input = String::new();
                for table in ["filter", "nat", "mangle", "raw", "security"] {
                    input.push_str(&format!("*{table}\n:T - [0:0]\n:U - [0:0]\n"));
                    for line in corpus.lines().filter(|line| line.starts_with(&format!("{table} "))) {
                        let (place, words) = line.split_once(':').expect("TABLE CHAIN: WORDS");
                        let chain = place.split_once(' ').expect("TABLE CHAIN").1;
                        input.push_str(&format!("-A {chain} {}\n", words.trim_start()));
                    }
                    input.push_str("COMMIT\n");
                }
                let output = feed(&[&restore, "--noflush"], &input);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                let saved = sh(&save);
                let rules = Save::parse(&saved).expect("what the tool saves can be read").into_owned();
                let mut count = 0;
                for rule in rules.tables().flat_map(sluicegate_iptables_save::Table::rules) {
                    count += through(rule.text(), family).len();
                }
                assert!(count > 2000, "{count}");
            });
        }
    }
}
