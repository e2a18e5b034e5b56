//! Generated rules beside nft: what it makes of each in the kernel, and what we do.
//!
//! `rules` makes all combinations of keys, shapes and values; a fixed seed decides which of them the test tries.
//! `cargo xtask differential --seconds N` tries others, as many as the time allows, and
//! `SLUICEGATE_DIFFERENTIAL_RULES` names a file of rules to try instead, each behind the family of its table.
//! `exceptions` names what differs on purpose, each with the reason.
//!
//! What nft made of a rule is listed and loaded by us, too. That gives the same expressions again; or others, where
//! nft says the same of a packet in more steps; or it is refused, as what has no words, or what contradicts itself.

mod exceptions;
mod rules;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{ApplyOptions, Family, Transaction, read};
use testns::Netns;

use rules::Sample;

/// A generator of numbers, so that a failure can be repeated (xorshift).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (end as u64)).unwrap()
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }
}

/// The seed of the test.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// The number of rules that the test tries.
const TRIED: usize = 600;
/// How many of nft's rules become other expressions that do the same, and how many have no words or contradict
/// themselves, so that their listing is refused: more are a fault.
const OTHERS: usize = 13;
const REFUSED: usize = 8;
/// The number of tables that are loaded at once.
const BATCH: usize = 100;

#[test]
fn generated_rules_are_what_nft_makes_of_them() {
    if !testns::have(&["nft"]) {
        return;
    }
    // Those of nft 1.0.6, whatever distribution has it: what another version does is another list.
    let version = testns::sh("nft --version");
    if !version.contains("v1.0.6") {
        return testns::skip(&format!("nft 1.0.6 is the oracle, found {}", version.trim()));
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let until = number("SLUICEGATE_DIFFERENTIAL_SECONDS")
        .map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seed = number("SLUICEGATE_DIFFERENTIAL_SEED").filter(|seed| *seed != 0).unwrap_or(SEED);
    let file = std::env::var("SLUICEGATE_DIFFERENTIAL_RULES").ok();
    let mut samples = file.as_ref().map_or_else(rules::all, |file| rules::of_file(file));
    Dice(seed).shuffle(&mut samples);
    if until.is_none() && file.is_none() {
        samples.truncate(TRIED);
    }
    let (mut tried, mut alike, mut held, mut refused, mut others) = (0, 0, 0, 0, 0);
    let (mut excepted, mut failures) = (BTreeMap::new(), Vec::new());
    for batch in samples.chunks(BATCH) {
        if until.is_some_and(|until| Instant::now() > until) {
            break;
        }
        let Some(results) = compare(batch) else { return };
        for (sample, (result, listed)) in batch.iter().zip(results) {
            tried += 1;
            match listed {
                Listed::Same => {}
                Listed::Other => others += 1,
                Listed::Refused => refused += 1,
                Listed::Failed(text) => failures.push(format!("{sample}\n  what nft made of it {text}")),
            }
            match result.map_err(|difference| (exceptions::reason(sample, &difference), difference)) {
                Ok(is_held) => {
                    alike += 1;
                    held += usize::from(is_held);
                }
                Err((Some(reason), _)) => *excepted.entry(reason).or_insert(0) += 1,
                Err((None, difference)) => failures.push(format!("{sample}\n{difference}")),
            }
        }
    }
    println!("{tried} of {} rules with the seed {seed}, {alike} alike", samples.len());
    println!("of nft's {others} are listed and loaded as other expressions, {refused} are refused");
    excepted.iter().for_each(|(reason, count)| println!("{count} differ: {reason}"));
    // With the seed of the test no exception may hold for more than it was made for.
    if until.is_none() && file.is_none() && seed == SEED {
        let grown = excepted.iter().filter(|(reason, count)| exceptions::most(reason) < **count);
        failures.extend(grown.map(|(reason, count)| format!("{count} differ: {reason}")));
        if others > OTHERS || refused > REFUSED {
            failures.push(format!("{others} of nft's are loaded as others, {refused} are refused"));
        }
    }
    assert!(failures.is_empty(), "{} of {tried}:\n{}", failures.len(), failures.join("\n"));
    if file.is_none() {
        assert!(alike > tried / 2, "{alike} of {tried} alike");
        assert!(held > tried / 4, "{held} of {tried} are in the kernel by both");
    }
}

/// What comes of our listing of what nft made of a rule.
enum Listed {
    /// The same expressions, or there is nothing to list.
    Same,
    /// Other expressions that do the same, as the conversion has found.
    Other,
    /// The text is refused.
    Refused,
    Failed(String),
}

/// What one side makes of each sample: `None` where it refuses.
type Made = Vec<Option<String>>;

/// How the two sides differ on a rule.
struct Difference {
    nft: Option<String>,
    ours: Option<String>,
    /// What nft says where it alone refuses.
    said: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "refused".to_owned());
        write!(f, "  nft:  {} {}\n  ours: {}", text(&self.nft), self.said, text(&self.ours))
    }
}

/// Compares what nft and we make of samples, and tells of those that are alike whether the kernel holds them;
/// `None` where there are no namespaces.
fn compare(samples: &[Sample]) -> Option<Vec<(Result<bool, Difference>, Listed)>> {
    let (own, theirs, again) = (Netns::new()?, Netns::new()?, Netns::new()?);
    let all: Vec<_> = (0..samples.len()).collect();
    let parsed: HashMap<usize, Transaction> =
        all.iter().filter_map(|at| Some((*at, parse(&samples[*at], *at)?))).collect();
    let readable: Vec<_> = all.iter().copied().filter(|at| parsed.contains_key(at)).collect();
    let ours = own.run(|| {
        load(&readable, &|part| {
            let mut whole = Transaction::new();
            part.iter().for_each(|at| _ = whole.append(parsed[at].clone()));
            whole.apply(&mut socket()).is_ok()
        });
        made(samples.len())
    });
    let nft = |part: &[usize]| {
        let text: String = part.iter().map(|at| samples[*at].script(*at)).collect();
        testns::feed(&["nft", "-f", "-"], &text).status.success()
    };
    let made_by_nft = theirs.run(|| {
        // What we refuse, nft mostly refuses too: these are not to spoil the others' batch.
        let (taken, refused): (Vec<_>, Vec<_>) = all.iter().partition(|at| ours[**at].is_some());
        load(&taken, &nft);
        refused.iter().for_each(|at| _ = nft(&[*at]));
        made(samples.len())
    });
    let refusal = |at: usize| {
        let output = theirs.run(|| testns::feed(&["nft", "-c", "-f", "-"], &samples[at].script(at)));
        String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()
    };
    let listed = listed(&made_by_nft, &theirs, &again);
    let both = ours.into_iter().zip(made_by_nft).enumerate();
    let compared = both.map(|(at, (ours, nft))| match ours == nft {
        true => Ok(ours.is_some()),
        false => {
            let said = if nft.is_none() { refusal(at) } else { String::new() };
            Err(Difference { nft, ours, said })
        }
    });
    Some(compared.zip(listed).collect())
}

/// Lists what one namespace has, and loads that in another.
fn listed(made: &Made, theirs: &Netns, again: &Netns) -> Vec<Listed> {
    let tables = theirs.run(|| read::ruleset(&mut socket(), Family::UNSPEC).unwrap().content());
    let name = |table: &str| table.strip_prefix('t').and_then(|number| number.parse::<usize>().ok());
    let texts: HashMap<usize, String> =
        tables.iter().filter_map(|of| Some((name(of.table.id.name.as_str())?, of.to_string()))).collect();
    let parsed: HashMap<usize, Result<Transaction, String>> = texts
        .iter()
        .map(|(at, text)| (*at, Transaction::parse(text).map_err(|error| error.to_string())))
        .collect();
    let mut readable: Vec<_> = parsed.iter().filter(|(_, of)| of.is_ok()).map(|(at, _)| *at).collect();
    readable.sort_unstable();
    let loaded = again.run(|| {
        load(&readable, &|part| {
            let mut whole = Transaction::new();
            let all = part.iter().filter_map(|at| parsed.get(at)?.clone().ok());
            all.for_each(|of| _ = whole.append(of));
            whole.apply(&mut socket()).is_ok()
        });
        self::made(made.len())
    });
    let result = |at: usize| {
        let Some(text) = texts.get(&at) else { return Listed::Same };
        match &parsed[&at] {
            Err(_) => Listed::Refused,
            Ok(_) if text.contains("unknown expressions") => Listed::Failed(format!("is taken:\n{text}")),
            Ok(_) if loaded[at] == made[at] => Listed::Same,
            Ok(_) if loaded[at].is_none() => {
                Listed::Failed(format!("is listed, and the kernel refuses it:\n{text}"))
            }
            Ok(_) => Listed::Other,
        }
    };
    (0..made.len()).map(result).collect()
}

fn parse(sample: &Sample, number: usize) -> Option<Transaction> {
    let transaction = Transaction::parse(&sample.script(number)).ok()?;
    transaction.encode(ApplyOptions::default()).is_ok().then_some(transaction)
}

/// Loads all of these that load, by halves where a whole batch is refused.
fn load(part: &[usize], one: &dyn Fn(&[usize]) -> bool) {
    if part.is_empty() || one(part) || part.len() == 1 {
        return;
    }
    let (first, second) = part.split_at(part.len() / 2);
    load(first, one);
    load(second, one);
}

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).unwrap()
}

/// Returns the rule of each table in the kernel's expressions, with the sets and their elements.
fn made(count: usize) -> Made {
    let ruleset = read::ruleset(&mut socket(), Family::UNSPEC).unwrap();
    let mut tables: BTreeMap<String, String> = BTreeMap::new();
    for rule in &ruleset.rules {
        let text: Vec<_> = rule.expressions.iter().map(|expression| format!("{expression:?}")).collect();
        *tables.entry(rule.table.to_string()).or_default() += &text.join(" ");
    }
    for (set, elements) in &ruleset.sets {
        let mut list: Vec<_> = elements.iter().map(|element| format!("{element:?}")).collect();
        list.sort_unstable();
        let (flags, types) = (set.flags, (set.key_type, set.key_len, set.data_type, set.data_len));
        let text = format!(" | {} {flags:?} {types:?} {:?} {{ {} }}", set.name, set.fields, list.join(", "));
        *tables.entry(set.table.to_string()).or_default() += &text;
    }
    (0..count).map(|at| tables.get(&format!("t{at}")).cloned()).collect()
}
