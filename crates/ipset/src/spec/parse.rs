//! Reads the words of a `create` command.

use super::{CreateOptions, Range, SetSpec};
use crate::address::host;
use crate::set_type::CreateWord;
use crate::text::{IgnoredOption, ParseError, Word};
use crate::{Addresses, EntryOptions, Family, Names, Reason, SetName, SetType, number, port};

/// Reads `SETNAME TYPENAME [OPTIONS]`.
pub(crate) fn spec(
    set: &Word<'_>,
    kind: &Word<'_>,
    words: Vec<Word<'_>>,
    end: u32,
    names: &dyn Names,
    warnings: &mut Vec<IgnoredOption>,
) -> Result<SetSpec, ParseError> {
    let name = SetName::new(&set.text).map_err(|reason| set.wrong(reason))?;
    let set_type: SetType = kind.text.parse().map_err(|reason| kind.wrong(reason))?;
    let words = pair(set_type, words)?;
    // The family first, wherever it is on the line: addresses are read according to it.
    let family = family(set_type, &words)?;
    let mut options = CreateOptions::default();
    let mut ends = Ends::default();
    for (option, word, value) in &words {
        let wrong = |reason| value.wrong(reason);
        match option {
            Opt::Word(option) => {
                read(&mut options, *option, &value.text, set_type, family, names).map_err(wrong)?;
            }
            Opt::Flag(_) => {}
            Opt::From => ends.from = Some(value),
            Opt::To => ends.to = Some(value),
            Opt::Network => {
                let network = Addresses::parse(&value.text, family, names).map_err(wrong)?;
                if !matches!(network, Addresses::Network { .. }) {
                    return Err(wrong(Reason::NeedsRange(value.text.to_string())));
                }
                options.range = Some(Range::Addresses(network));
            }
            Opt::Ignored => {
                // ipset reads both into the same, and warns of each once.
                let option = match word.text.trim_start_matches('-') {
                    "network" => "from",
                    name => name,
                };
                if !warnings.iter().any(|known| known.option == option) {
                    warnings.push(IgnoredOption { option: option.to_owned(), value: value.text.to_string() });
                }
            }
        }
    }
    ends.read(&mut options, set_type, family, names)?;
    SetSpec::new(name, set_type, family, options).map_err(|reason| match &reason {
        Reason::MissingOption(_) | Reason::Exclusive(..) => ParseError { line: None, column: end, reason },
        _ => kind.wrong(reason),
    })
}

/// Reads seconds.
pub(crate) fn timeout(text: &str) -> Result<u32, Reason> {
    let seconds = number::parse(text, 0, EntryOptions::MAX_TIMEOUT.into())?;
    Ok(u32::try_from(seconds).unwrap_or(EntryOptions::MAX_TIMEOUT))
}

/// The meaning of a word of `create`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Opt {
    Word(CreateWord),
    /// `-4` and `-6`.
    Flag(Family),
    /// Obsolete forms of `range`.
    From,
    To,
    Network,
    /// Obsolete options without effect.
    Ignored,
}

/// An option, its word, and the word of its value.
type Paired<'l> = (Opt, Word<'l>, Word<'l>);

/// Splits words into options with their values. A flag's value is the flag.
fn pair<'l>(kind: SetType, words: Vec<Word<'l>>) -> Result<Vec<Paired<'l>>, ParseError> {
    let mut pairs: Vec<Paired<'l>> = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some((option, name)) = option(kind, &word.text) else {
            return Err(word.wrong(Reason::UnknownArgument(word.text.to_string())));
        };
        let same = |given: &Opt| match (given, option) {
            (Opt::Word(CreateWord::Family) | Opt::Flag(_), Opt::Word(CreateWord::Family) | Opt::Flag(_)) => {
                true
            }
            (Opt::Ignored, Opt::Ignored) => false,
            (given, option) if begins_range(*given) && begins_range(option) => true,
            (given, _) if is_switch(*given) => false,
            (given, option) => *given == option,
        };
        if pairs.iter().any(|(given, ..)| same(given)) {
            return Err(word.wrong(Reason::Twice(name)));
        }
        let value = if is_flag(option) {
            word.clone()
        } else {
            words.next().ok_or_else(|| word.wrong(Reason::MissingValue(name)))?
        };
        pairs.push((option, word, value));
    }
    Ok(pairs)
}

fn option(kind: SetType, text: &str) -> Option<(Opt, &'static str)> {
    let text = text.strip_prefix("--").unwrap_or(text);
    let named = kind.facts().create.iter().find(|word| word.name() == text);
    let has_family = kind.takes(CreateWord::Family);
    let has_range = kind.takes(CreateWord::Range);
    match (named, text) {
        (Some(word), _) => Some((Opt::Word(*word), word.name())),
        (None, "-4") if has_family => Some((Opt::Flag(Family::Ipv4), "-4")),
        (None, "-6") if has_family => Some((Opt::Flag(Family::Ipv6), "-6")),
        (None, "from") if has_range => Some((Opt::From, "from")),
        (None, "to") if has_range => Some((Opt::To, "to")),
        (None, "network") if has_range && kind != SetType::BitmapPort => Some((Opt::Network, "network")),
        _ => ignored(kind).iter().find(|name| **name == text).map(|name| (Opt::Ignored, *name)),
    }
}

/// Returns the options of ipset 4 that ipset 7 reads and ignores.
fn ignored(kind: SetType) -> &'static [&'static str] {
    match kind {
        SetType::HashIp => &["probes", "resize", "gc"],
        SetType::HashNet => &["probes", "resize"],
        SetType::HashIpPort | SetType::HashIpPortIp | SetType::HashIpPortNet | SetType::HashIpMark => {
            &["probes", "resize", "from", "to", "network"]
        }
        _ => &[],
    }
}

/// Returns whether an option says where the range begins: it is one option by three names.
fn begins_range(option: Opt) -> bool {
    matches!(option, Opt::Word(CreateWord::Range) | Opt::From | Opt::Network)
}

fn is_flag(option: Opt) -> bool {
    matches!(option, Opt::Flag(_)) || is_switch(option)
}

/// Returns true for an option without a value, which may be given twice.
fn is_switch(option: Opt) -> bool {
    matches!(
        option,
        Opt::Word(CreateWord::Counters | CreateWord::Comment | CreateWord::Forceadd | CreateWord::Skbinfo)
    )
}

fn family(kind: SetType, words: &[Paired<'_>]) -> Result<Family, ParseError> {
    for (option, _, value) in words {
        let family = match option {
            Opt::Flag(family) => *family,
            Opt::Word(CreateWord::Family) => Family::parse(&value.text).map_err(|r| value.wrong(r))?,
            _ => continue,
        };
        if !kind.families().contains(&family) {
            return Err(value.wrong(Reason::TypeFamily { kind, family }));
        }
        return Ok(family);
    }
    Ok(kind.default_family())
}

fn read(
    options: &mut CreateOptions,
    word: CreateWord,
    text: &str,
    kind: SetType,
    family: Family,
    names: &dyn Names,
) -> Result<(), Reason> {
    match word {
        CreateWord::Family => {}
        CreateWord::Hashsize => options.hashsize = Some(number::parse_u32(text)?),
        CreateWord::Maxelem => options.maxelem = Some(number::parse_u32(text)?),
        CreateWord::Size => options.size = Some(number::parse_u32(text)?),
        CreateWord::Initval => options.initval = Some(number::parse_u32(text)?),
        CreateWord::Markmask => options.markmask = Some(number::parse_u32(text)?),
        CreateWord::Bucketsize => options.bucketsize = Some(number::parse_u8(text)?),
        CreateWord::Timeout => options.timeout = Some(timeout(text)?),
        CreateWord::Netmask => {
            let bits = number::parse(text, 1, family.bits().into())?;
            options.netmask = u8::try_from(bits).ok();
        }
        CreateWord::Bitmask => {
            let mask = host(text, family, names);
            options.bitmask = Some(mask.map_err(|_| Reason::Bitmask { text: text.to_owned(), family })?);
        }
        CreateWord::Counters => options.counters = true,
        CreateWord::Comment => options.comment = true,
        CreateWord::Forceadd => options.forceadd = true,
        CreateWord::Skbinfo => options.skbinfo = true,
        CreateWord::Range => options.range = Some(range(text, kind, family, names)?),
    }
    Ok(())
}

fn range(text: &str, kind: SetType, family: Family, names: &dyn Names) -> Result<Range, Reason> {
    if kind == SetType::BitmapPort {
        return match port::parse_bare(text, names)? {
            (from, Some(to)) => Ok(Range::Ports(from, to)),
            (_, None) => Err(Reason::MissingOption("to")),
        };
    }
    match Addresses::parse(text, family, names)? {
        Addresses::Host(_) => Err(Reason::NeedsRange(text.to_owned())),
        range => Ok(Range::Addresses(range)),
    }
}

/// The options `from` and `to`, the notation of ipset 4 for a range.
#[derive(Default)]
struct Ends<'w> {
    from: Option<&'w Word<'w>>,
    to: Option<&'w Word<'w>>,
}

impl Ends<'_> {
    fn read(
        self,
        options: &mut CreateOptions,
        kind: SetType,
        family: Family,
        names: &dyn Names,
    ) -> Result<(), ParseError> {
        let (from, to) = match (self.from, self.to) {
            (None, None) => return Ok(()),
            (Some(from), Some(to)) => (from, to),
            (Some(one), None) => return Err(one.wrong(Reason::MissingOption("to"))),
            (None, Some(one)) => return Err(one.wrong(Reason::MissingOption("from"))),
        };
        let range = if kind == SetType::BitmapPort {
            let one = |word: &Word<'_>| match port::parse_bare(&word.text, names) {
                Ok((port, None)) => Ok(port),
                Ok(_) => Err(word.wrong(Reason::Number(word.text.to_string()))),
                Err(reason) => Err(word.wrong(reason)),
            };
            Range::Ports(one(from)?, one(to)?)
        } else {
            let one = |word: &Word<'_>| host(&word.text, family, names).map_err(|reason| word.wrong(reason));
            Range::Addresses(Addresses::Range { from: one(from)?, to: one(to)? })
        };
        options.range = Some(range);
        Ok(())
    }
}
