//! Reads the words of a rule into a [`Spec`] as `getopt_long(3)` and iptables do: an option belongs to the
//! module loaded last that knows it, an unambiguous prefix of a long name suffices, and `-p` loads the match
//! of its protocol.

use std::borrow::Cow;

use memchr::{memchr_iter, memchr2};

use crate::ext::{Extension, Family, OptionRow, find_match, find_target};
use crate::names;
use crate::spec::{Module, OptionUse, Spec, Target, Values};
use crate::tree::{Counters, Rule};
use crate::value::integer;
use crate::words::{Word, Words, column, split};
use crate::{Error, RuleFault};

impl<'a> Spec<'a> {
    /// Reads the words of a rule, as far as they can be read: an unknown module keeps its words, values are
    /// not checked.
    ///
    /// The family is inferred from the rule where it matters; see [`Spec::read_as`].
    ///
    /// # Errors
    /// [`Error::Rule`] where the words cannot be the options of a rule: a word that belongs to no option, an
    /// option without its value, two targets, an unclosed quotation.
    pub fn read(words: &'a str) -> Result<Self, Error> {
        Self::read_as(words, guess_family(words))
    }

    /// As [`Spec::read`], for iptables or for ip6tables.
    ///
    /// # Errors
    /// As [`Spec::read`].
    pub fn read_as(words: &'a str, family: Family) -> Result<Self, Error> {
        Reader::new(words, family, false).read()
    }

    /// As [`Spec::read_as`], but takes only options that are known and stand as they may.
    pub(crate) fn read_strictly(words: &'a str, family: Family) -> Result<Self, Error> {
        Reader::new(words, family, true).read()
    }
}

impl<'a> Rule<'a> {
    /// Returns whether the line is for tables of this family: one with `-4` or `-6` is for one alone, and
    /// iptables-restore leaves it out of the other.
    #[must_use]
    pub fn is_for(&self, family: Family) -> bool {
        let text = self.text().as_bytes();
        let says = |at: usize| {
            let word = text.get(at..).unwrap_or_default();
            matches!(word, [b'-', b'4' | b'6', ..]) || word.starts_with(b"--ip")
        };
        // Hardly any rule does, and all are asked.
        !memchr_iter(b'-', text).any(says)
            || self.spec().ok().and_then(|spec| spec.family).is_none_or(|only| only == family)
    }

    /// Returns the options of the rule; see [`Spec::read`].
    ///
    /// # Errors
    /// [`Error::Rule`] with the line of the rule; columns count from the start of its words.
    pub fn spec(&self) -> Result<Spec<'_>, Error> {
        Spec::read(self.text()).map_err(|error| error.on_line(self.line().max(1)))
    }
}

/// Returns the family that a rule seems to be for: IPv6 if it has an address, match or target that iptables
/// lacks.
pub(crate) fn guess_family(words: &str) -> Family {
    let mut previous = "";
    for word in words.split([' ', '\t']) {
        let v6 = match previous {
            "-m" | "--match" => {
                find_match(word, Family::Ipv4).is_none() && find_match(word, Family::Ipv6).is_some()
            }
            "-j" | "--jump" => {
                find_target(word, Family::Ipv4).is_none() && find_target(word, Family::Ipv6).is_some()
            }
            "-p" | "--protocol" => matches!(word, "ipv6-icmp" | "icmpv6" | "icmp6" | "58"),
            "-s" | "-d" | "--source" | "--destination" | "--src" | "--dst" => word.contains(':'),
            "--reject-with" => word.starts_with("icmp6"),
            "--to-destination" | "--to-source" => word.starts_with('[') || word.matches(':').count() > 1,
            _ => word == "-6" || word == "--ipv6",
        };
        if v6 {
            return Family::Ipv6;
        }
        previous = word;
    }
    Family::Ipv4
}

struct Reader<'a> {
    line: &'a str,
    words: Words<'a>,
    family: Family,
    strict: bool,
    spec: Spec<'a>,
    /// The extension of each match of `spec`; of the same length.
    loaded: Vec<Option<&'static Extension>>,
    target: Option<&'static Extension>,
    /// The target was loaded after so many matches: its options come after theirs.
    target_after: usize,
    negated: Option<usize>,
    protocol_loaded: bool,
    /// Options that no module knew when they were read.
    unknown: Vec<Unknown<'a>>,
}

/// An option that no module knew when it was read.
struct Unknown<'a> {
    word: Word<'a>,
    /// It was given to the target, and not to a match.
    of_target: bool,
    /// The number of matches that were loaded at that point.
    matches: usize,
}

/// The meaning of a long option name.
#[derive(Clone, Copy)]
enum Found {
    Generic(&'static str),
    Match(usize, &'static OptionRow),
    Target(&'static OptionRow),
}

impl<'a> Reader<'a> {
    fn new(line: &'a str, family: Family, strict: bool) -> Self {
        Self {
            line,
            words: split(line),
            family,
            strict,
            spec: Spec::default(),
            loaded: Vec::new(),
            target: None,
            target_after: 0,
            negated: None,
            protocol_loaded: false,
            unknown: Vec::new(),
        }
    }

    fn read(mut self) -> Result<Spec<'a>, Error> {
        if let Some(at) = memchr2(b'\n', 0, self.line.as_bytes()) {
            return Err(self.wrong_at(at, "", "a line end or a zero byte, which no rule can have"));
        }
        let mut count = 0;
        while let Some(word) = self.words.next().transpose()? {
            count += 1;
            if count > MOST_WORDS {
                let what = "the number of options of a rule";
                return Err(Error::Limit { line: 1, what, found: count, limit: MOST_WORDS });
            }
            if word.text == "!" {
                if self.negated.replace(word.offset).is_some() {
                    return Err(self.wrong(&word, "a second `!` before one option"));
                }
                continue;
            }
            if let Some(name) = word.text.strip_prefix("--").filter(|name| !name.is_empty()) {
                self.long(&word, name)?;
            } else if word.text.starts_with('-') && word.text.len() > 1 && word.text != "--" {
                self.short(&word)?;
            } else {
                self.stray(word)?;
            }
        }
        match self.negated {
            Some(at) => Err(self.wrong_at(at, "!", "nothing follows that could be negated")),
            None => {
                self.nothing_too_early()?;
                Ok(self.spec)
            }
        }
    }

    /// Refuses an unknown option that is one of a match, or of the protocol, which is named only behind it. A
    /// rule is printed with `-p` and the matches first, so the option would then be read as theirs. iptables
    /// does not take it where it stands either.
    fn nothing_too_early(&self) -> Result<(), Error> {
        for Unknown { word, of_target, matches } in &self.unknown {
            let name = word.text.trim_start_matches('-');
            let name = name.split_once('=').map_or(name, |(name, _)| name);
            let later = self.loaded.iter().skip(*matches).flatten().copied().filter(|_| *of_target);
            let mut may_take = later.chain(self.protocol_match());
            if let Some(owner) = may_take.find(|extension| takes(extension, name)) {
                return Err(
                    self.wrong(word, &format!("an option of {}, which is named behind it", owner.name))
                );
            }
        }
        Ok(())
    }

    /// A word that is neither an option nor the value of one.
    fn stray(&mut self, word: Word<'a>) -> Result<(), Error> {
        let open = self.loaded.last().is_some_and(Option::is_none) && self.spec.target.is_none()
            || self.spec.target.is_some() && self.target.is_none();
        if let Some(at) = self.negated {
            return Err(self.wrong_at(at, "!", "no option follows that could be negated"));
        }
        let remark = is_remark(&word.text);
        if self.strict || !open && !(remark && (self.spec.target.is_some() || !self.loaded.is_empty())) {
            return Err(self.wrong(&word, "expected an option: this word belongs to none"));
        }
        let module = self.last_module();
        if remark {
            if let Some(module) = module {
                module.options.push(OptionUse::new(word.text, []));
            }
            return Ok(());
        }
        if let Some(option) = module.and_then(|module| module.options.last_mut()) {
            option.values.push(word.text);
            return Ok(());
        }
        Err(self.wrong(&word, "expected an option: this word belongs to none"))
    }

    fn last_module(&mut self) -> Option<&mut Module<'a>> {
        match &mut self.spec.target {
            Some(target) => Some(&mut target.module),
            None => self.spec.matches.last_mut(),
        }
    }

    fn short(&mut self, word: &Word<'a>) -> Result<(), Error> {
        let mut letters = word.text.chars();
        letters.next();
        while let Some(letter) = letters.next() {
            let attached = letters.as_str();
            let Some((name, takes)) =
                SHORT.iter().find(|(short, ..)| *short == letter).map(|(_, name, takes)| (*name, *takes))
            else {
                return Err(self.wrong(word, "no such option"));
            };
            if !takes {
                self.generic(name, false, word, None)?;
                continue;
            }
            // iptables compares the whole word for these, so a value cannot be attached.
            if !attached.is_empty() && matches!(letter, 's' | 'd' | 'p' | 'j' | 'i' | 'o') {
                return Err(self.wrong(word, &format!("expected a blank between `-{letter}` and its value")));
            }
            let value = (!attached.is_empty()).then(|| Cow::Owned(attached.to_owned()));
            return self.generic(name, true, word, value);
        }
        Ok(())
    }

    fn long(&mut self, word: &Word<'a>, name: &str) -> Result<(), Error> {
        let (name, attached) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (name, None),
        };
        let mut found = self.find(name, word)?;
        if found.is_none() && self.load_protocol() {
            found = self.find(name, word)?;
            if found.is_none() {
                self.unload_protocol();
            }
        }
        let attached = attached.map(|value| Cow::Owned(value.to_owned()));
        match found {
            Some(Found::Generic(name)) => {
                let takes = LONG.iter().find(|(long, ..)| *long == name).is_some_and(|(_, takes)| *takes);
                self.generic(name, takes, word, attached)
            }
            Some(Found::Match(at, row)) => {
                let owner = self.loaded.get(at).copied().flatten().map_or("", |extension| extension.name);
                let option = self.option(owner, row, word, attached)?;
                match self.spec.matches.get_mut(at) {
                    Some(module) if self.strict && is_second(module, row) => {
                        Err(self.second(owner, row, word))
                    }
                    Some(module) => {
                        module.options.push(option);
                        Ok(())
                    }
                    None => Ok(()),
                }
            }
            Some(Found::Target(row)) => {
                let owner = self.target.map_or("", |extension| extension.name);
                let option = self.option(owner, row, word, attached)?;
                match &mut self.spec.target {
                    Some(target) if self.strict && is_second(&target.module, row) => {
                        Err(self.second(owner, row, word))
                    }
                    Some(target) => {
                        target.module.options.push(option);
                        Ok(())
                    }
                    None => Ok(()),
                }
            }
            None => self.unknown(word, name, attached),
        }
    }

    /// Returns the option of that name, or else the only one whose name starts with it. Modules loaded later
    /// come first.
    fn find(&self, name: &str, word: &Word<'a>) -> Result<Option<Found>, Error> {
        if let Some((_, found)) = self.options().find(|(full, _)| *full == name) {
            return Ok(Some(found));
        }
        let mut begin = self.options().filter(|(full, _)| full.starts_with(name));
        let Some((first, found)) = begin.next() else { return Ok(None) };
        match begin.find(|(_, other)| !other.same(found)) {
            Some((other, _)) => Err(self.wrong(word, &format!("ambiguous: `--{first}` or `--{other}`?"))),
            None => Ok(Some(found)),
        }
    }

    /// Returns the long options that are known at this point.
    fn options(&self) -> impl Iterator<Item = (&'static str, Found)> {
        let generic = LONG.iter().map(|(full, _)| (*full, Found::Generic(full)));
        let target = self.target.map_or(&[][..], |target| target.options);
        let target =
            move || target.iter().flat_map(|row| names_of(row).map(move |full| (full, Found::Target(row))));
        let of = |at: usize, extension: &Option<&'static Extension>| {
            let rows = extension.map_or(&[][..], |extension| extension.options);
            rows.iter().flat_map(move |row| names_of(row).map(move |full| (full, Found::Match(at, row))))
        };
        let loaded = move || self.loaded.iter().enumerate().rev();
        let later = loaded()
            .filter(|(at, _)| *at >= self.target_after)
            .flat_map(move |(at, extension)| of(at, extension));
        let earlier = loaded()
            .filter(|(at, _)| *at < self.target_after)
            .flat_map(move |(at, extension)| of(at, extension));
        generic.chain(later).chain(target()).chain(earlier)
    }

    /// Loads the match of the protocol, if it has one that is not loaded yet, and returns whether it did.
    fn load_protocol(&mut self) -> bool {
        let Some(extension) = self.protocol_match() else { return false };
        if std::mem::replace(&mut self.protocol_loaded, true) {
            return false;
        }
        self.loaded.push(Some(extension));
        self.spec.matches.push(Module { implicit: true, ..Module::new(extension.name) });
        true
    }

    /// Returns the match that `-p` loads.
    fn protocol_match(&self) -> Option<&'static Extension> {
        let name = self.spec.generic("protocol")?.value()?.to_ascii_lowercase();
        let name = match integer(&name) {
            Some(number) => u8::try_from(number).ok().and_then(names::protocol_name)?,
            None => &name,
        };
        find_match(name, self.family).filter(|extension| !extension.protocols.is_empty())
    }

    /// Undoes [`Self::load_protocol`], when the option turns out not to be one of the protocol's match.
    fn unload_protocol(&mut self) {
        self.loaded.pop();
        self.spec.matches.pop();
        self.protocol_loaded = false;
    }

    fn option(
        &mut self,
        owner: &'static str,
        row: &'static OptionRow,
        word: &Word<'a>,
        attached: Option<Cow<'a, str>>,
    ) -> Result<OptionUse<'a>, Error> {
        let negated = self.negated.take();
        if let Some(at) = negated.filter(|_| self.strict && !row.negatable) {
            let fault = RuleFault::Negated { extension: owner, option: row.name };
            let error = self.wrong_at(at, "!", &format!("`--{}` cannot be negated", row.name));
            return Err(error.with_fault(fault));
        }
        let mut option = OptionUse {
            name: Cow::Borrowed(row.name),
            negated: negated.is_some(),
            values: Values::None,
            offset: u32::try_from(word.offset).unwrap_or(u32::MAX),
        };
        if attached.is_some() && row.values.is_empty() {
            return Err(self.wrong(word, &format!("`--{}` takes no value", row.name)));
        }
        if let Some(value) = attached {
            option.values.push(value);
        }
        while option.values.as_slice().len() < row.values.len() {
            let ahead = self.words.clone().next();
            if row.optional && !matches!(&ahead, Some(Ok(next)) if !next.text.starts_with(['-', '!'])) {
                break;
            }
            match self.words.next().transpose()? {
                Some(value) => option.values.push(value.text),
                None => return Err(self.wrong(word, &missing(row, option.values.as_slice().len()))),
            }
        }
        Ok(option)
    }

    fn unknown(&mut self, word: &Word<'a>, name: &str, attached: Option<Cow<'a, str>>) -> Result<(), Error> {
        let to_nothing = self.loaded.is_empty() && self.spec.target.is_none();
        if self.strict || to_nothing || is_remark(name) {
            return Err(self.wrong(word, &self.why_unknown(name)));
        }
        let mut option = OptionUse::new(name.to_owned(), attached).negated(self.negated.take().is_some());
        option.offset = u32::try_from(word.offset).unwrap_or(u32::MAX);
        let mut ahead = self.words.clone();
        while let Some(Ok(next)) = ahead.next()
            && next.text != "!"
            && !next.text.starts_with('-')
        {
            option.values.push(next.text);
            self.words.next();
        }
        self.unknown.push(Unknown {
            word: word.clone(),
            of_target: self.spec.target.is_some(),
            matches: self.loaded.len(),
        });
        if let Some(module) = self.last_module() {
            module.options.push(option);
        }
        Ok(())
    }

    /// Distinguishes an option of a match that is not loaded from an unknown option.
    fn why_unknown(&self, name: &str) -> String {
        let has =
            |extension: &&Extension| extension.supports(self.family) && extension.option(name).is_some();
        let matches: Vec<_> = crate::ext::all_matches().filter(has).map(Extension::name).collect();
        let targets: Vec<_> = crate::ext::all_targets().filter(has).map(Extension::name).collect();
        let loaded: Vec<_> = self.loaded.iter().flatten().map(|extension| extension.name).collect();
        let belongs = match (matches.as_slice(), targets.as_slice()) {
            ([], []) if loaded.is_empty() && self.target.is_none() => return "no such option".to_owned(),
            ([], []) => {
                let all: Vec<_> = loaded.into_iter().chain(self.target.map(|target| target.name)).collect();
                return format!("no such option, neither of a rule nor of {}", all.join(", "));
            }
            ([], targets) => format!("-j {}", targets.join(" or -j ")),
            (matches, _) => format!("-m {}", matches.join(" or -m ")),
        };
        format!("an option of {belongs}, which does not stand before it")
    }

    /// `-4` or `-6`.
    fn only(&mut self, family: Family) -> Result<(), Error> {
        match self.spec.family.replace(family) {
            Some(before) if before != family => {
                Err(self.wrong_at(0, "", "both -4 and -6: it is for no family"))
            }
            _ => Ok(()),
        }
    }

    fn generic(
        &mut self,
        name: &'static str,
        takes: bool,
        word: &Word<'a>,
        attached: Option<Cow<'a, str>>,
    ) -> Result<(), Error> {
        if !takes && attached.is_some() {
            return Err(self.wrong(word, &format!("`--{name}` takes no value")));
        }
        if attached.is_some() && WHOLE_WORD.contains(&name) && word.text.starts_with("--") {
            return Err(self.wrong(word, &format!("expected a blank between `--{name}` and its value")));
        }
        let value = match attached {
            Some(value) => Some(value),
            None if takes => {
                let next = self.words.next().transpose()?;
                Some(
                    next.ok_or_else(|| self.wrong(word, &format!("expected a value of `{}`", word.text)))?
                        .text,
                )
            }
            None => None,
        };
        let negated = self.negated.take();
        match name {
            "match" => {
                self.not_negated(negated, name)?;
                self.load(value.unwrap_or_default(), word)
            }
            "jump" | "goto" => {
                self.not_negated(negated, name)?;
                self.jump(value.unwrap_or_default(), name == "goto", word)
            }
            "set-counters" => {
                self.not_negated(negated, name)?;
                self.counters(&value.unwrap_or_default(), word)
            }
            "ipv4" => self.only(Family::Ipv4),
            "ipv6" => self.only(Family::Ipv6),
            "verbose" => Ok(()),
            "protocol" | "source" | "src" | "destination" | "dst" | "in-interface" | "out-interface"
            | "fragments" => self.push_generic(name, negated.is_some(), value, word),
            _ => Err(self.wrong(word, "not an option of a rule")),
        }
    }

    fn not_negated(&self, negated: Option<usize>, name: &str) -> Result<(), Error> {
        match negated {
            Some(at) => Err(self.wrong_at(at, "!", &format!("`--{name}` cannot be negated"))),
            None => Ok(()),
        }
    }

    fn push_generic(
        &mut self,
        name: &'static str,
        negated: bool,
        value: Option<Cow<'a, str>>,
        word: &Word<'a>,
    ) -> Result<(), Error> {
        let name = match name {
            "src" => "source",
            "dst" => "destination",
            "fragments" => "fragment",
            other => other,
        };
        if self.spec.generic(name).is_some() {
            return Err(self.wrong(word, &format!("`--{name}` stands twice")));
        }
        let mut option = OptionUse::new(name, value).negated(negated);
        option.offset = u32::try_from(word.offset).unwrap_or(u32::MAX);
        self.spec.generic.push(option);
        Ok(())
    }

    fn load(&mut self, name: Cow<'a, str>, word: &Word<'a>) -> Result<(), Error> {
        let extension = find_match(&name, self.family);
        if self.strict && extension.is_none() {
            let other = if self.family == Family::Ipv4 { Family::Ipv6 } else { Family::Ipv4 };
            let reason = match find_match(&name, other) {
                Some(_) if other == Family::Ipv6 => format!("match `{name}` is of ip6tables alone"),
                Some(_) => format!("match `{name}` is of iptables alone"),
                None => format!("no match is called `{name}`"),
            };
            return Err(self.wrong(word, &reason));
        }
        self.loaded.push(extension);
        self.spec.matches.push(Module::new(name));
        Ok(())
    }

    fn jump(&mut self, name: Cow<'a, str>, goto: bool, word: &Word<'a>) -> Result<(), Error> {
        if self.spec.target.is_some() {
            return Err(self.wrong(word, "a second target").with_fault(RuleFault::SecondTarget));
        }
        if !goto {
            self.target = find_target(&name, self.family);
        }
        self.target_after = self.loaded.len();
        self.spec.target = Some(Target { module: Module::new(name), goto });
        Ok(())
    }

    /// `-c packets bytes` or `-c packets,bytes`
    fn counters(&mut self, packets: &str, word: &Word<'a>) -> Result<(), Error> {
        let wrong = |reader: &Self| reader.wrong(word, "expected a number of packets, then one of bytes");
        let (packets, bytes) = match packets.split_once(',') {
            Some((packets, bytes)) => (packets, Cow::Borrowed(bytes)),
            None => {
                let next = self.words.next().transpose()?;
                (packets, next.ok_or_else(|| wrong(self))?.text)
            }
        };
        if self.spec.counters.is_some() {
            return Err(self.wrong(word, "given twice"));
        }
        match (packets.parse(), bytes.parse()) {
            (Ok(packets), Ok(bytes)) => self.spec.counters = Some(Counters { packets, bytes }),
            _ => return Err(wrong(self)),
        }
        Ok(())
    }

    fn second(&self, owner: &'static str, row: &OptionRow, word: &Word<'_>) -> Error {
        let fault = RuleFault::Repeated { extension: owner, option: row.name };
        self.wrong(word, &format!("`--{}` of {owner} stands twice", row.name)).with_fault(fault)
    }

    fn wrong(&self, word: &Word<'_>, reason: &str) -> Error {
        self.wrong_at(word.offset, &word.text, reason)
    }

    fn wrong_at(&self, offset: usize, word: &str, reason: &str) -> Error {
        Error::Rule {
            line: 1,
            column: column(self.line, offset),
            word: word.to_owned(),
            reason: reason.to_owned(),
            fault: Box::new(RuleFault::Other),
        }
    }
}

impl Found {
    fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Generic(a), Self::Generic(b)) => canonical(a) == canonical(b),
            (Self::Match(a, x), Self::Match(b, y)) => a == b && x.name == y.name,
            (Self::Target(x), Self::Target(y)) => x.name == y.name,
            _ => false,
        }
    }
}

/// Returns whether a word is part of `[unsupported revision]`, which iptables prints for a module whose
/// plug-in has another revision.
pub(crate) fn is_remark(word: &str) -> bool {
    word.starts_with('[') || word == "revision]"
}

fn names_of(row: &'static OptionRow) -> impl Iterator<Item = &'static str> {
    std::iter::once(row.name).chain(row.aliases.iter().copied())
}

/// Returns whether an extension has an option whose name starts with `name`.
fn takes(extension: &Extension, name: &str) -> bool {
    extension.options.iter().flat_map(names_of).any(|full| full.starts_with(name))
}

/// Returns whether a module has an option already that may stand once.
fn is_second(module: &Module<'_>, row: &OptionRow) -> bool {
    !row.repeatable && module.option(row.name).is_some()
}

fn canonical(name: &str) -> &str {
    match name {
        "src" => "source",
        "dst" => "destination",
        other => other,
    }
}

fn missing(row: &OptionRow, have: usize) -> String {
    match row.values.len() {
        1 => format!("expected a value of `--{}`", row.name),
        count => format!("expected {count} values of `--{}`, there are {have}", row.name),
    }
}

/// More words than any rule has (iptables-restore takes 251), so that looking up options stays cheap.
const MOST_WORDS: usize = 1024;

/// Options whose value the tool takes from the word behind them, never from behind `=`.
const WHOLE_WORD: [&str; 8] =
    ["protocol", "source", "src", "destination", "dst", "jump", "in-interface", "out-interface"];

/// Short options: letter, long name, whether a value follows.
const SHORT: [(char, &str, bool); 14] = [
    ('p', "protocol", true),
    ('s', "source", true),
    ('d', "destination", true),
    ('i', "in-interface", true),
    ('o', "out-interface", true),
    ('j', "jump", true),
    ('g', "goto", true),
    ('m', "match", true),
    ('f', "fragments", false),
    ('c', "set-counters", true),
    ('4', "ipv4", false),
    ('6', "ipv6", false),
    ('v', "verbose", false),
    ('n', "numeric", false),
];

/// Long options of the tool itself, and whether a value follows. Those that are not options of a rule are
/// listed because they make prefixes ambiguous.
const LONG: [(&str, bool); 37] = [
    ("append", true),
    ("delete", true),
    ("check", true),
    ("insert", true),
    ("replace", true),
    ("list", false),
    ("list-rules", false),
    ("flush", false),
    ("zero", false),
    ("new-chain", true),
    ("delete-chain", false),
    ("rename-chain", true),
    ("policy", true),
    ("source", true),
    ("destination", true),
    ("src", true),
    ("dst", true),
    ("protocol", true),
    ("in-interface", true),
    ("jump", true),
    ("table", true),
    ("match", true),
    ("numeric", false),
    ("out-interface", true),
    ("verbose", false),
    ("wait", false),
    ("wait-interval", false),
    ("exact", false),
    ("fragments", false),
    ("version", false),
    ("help", false),
    ("line-numbers", false),
    ("modprobe", true),
    ("set-counters", true),
    ("goto", true),
    ("ipv4", false),
    ("ipv6", false),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Spec<'_> {
        Spec::read(words).unwrap()
    }

    #[test]
    fn options_belong_to_the_module_loaded_last_that_knows_them() {
        let spec = read("-m mark --mark 1 -m connmark ! --mark 2 -j SET --add-set s src --timeout 5");
        assert_eq!(spec.matches[0].value("mark"), Some("1"));
        assert!(spec.matches[1].option("mark").unwrap().negated);
        assert_eq!(spec.target.unwrap().module.value("timeout"), Some("5"));
    }

    #[test]
    fn a_beginning_of_a_name_will_do_if_it_is_the_only_one() {
        assert_eq!(
            read("-j DNAT --to 10.0.0.1").target.unwrap().module.value("to-destination"),
            Some("10.0.0.1")
        );
        assert_eq!(read("-p tcp -m multiport --dport 1,2").matches[0].value("dports"), Some("1,2"));
        let error = Spec::read("-m recent --r").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1, column 11: `--r`: ambiguous: `--replace` or `--rename-chain`?"
        );
    }

    #[test]
    fn a_protocol_brings_its_match_along_when_an_option_asks_for_it() {
        let spec = read("-p 17 --dport 53 -j ACCEPT");
        assert!(spec.matches[0].implicit && spec.matches[0].name == "udp");
        assert!(read("-p tcp -j ACCEPT").matches.is_empty());
    }

    #[test]
    fn an_option_before_the_match_that_it_is_of_is_refused() {
        for (words, column, owner) in [
            ("-p tcp -j SNAT --to-sourceort --ports 8 -m multiport ! --dports 1", 31, "multiport"),
            ("-j CHAOS --port=8 -m multiport ! --dports 1", 10, "multiport"),
            ("-j SNAT --dport 80 -p tcp", 9, "tcp"),
            ("-m geoip ! --dport 80 -p 6 --sport 1", 12, "tcp"),
        ] {
            let error = Spec::read(words).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line 1, column {column}: ")), "{words}: {error}");
            assert!(
                error.ends_with(&format!("an option of {owner}, which is named behind it")),
                "{words}: {error}"
            );
        }
        // Behind its match it is read as an option of the match, before the target and behind it.
        for words in ["-m multiport -j SNAT --ports 8", "-j SNAT -m multiport --ports 8"] {
            assert_eq!(read(words).to_words().unwrap(), "-m multiport --ports 8 -j SNAT");
        }
    }

    #[test]
    fn what_is_negated_is_an_option_and_no_remark_of_the_tool() {
        for words in ["-m geoip --source-country ! DE --more", "-m geoip ! [unsupported revision] --more"] {
            let error = Spec::read(words).unwrap_err().to_string();
            assert!(error.ends_with("`!`: no option follows that could be negated"), "{error}");
        }
        assert!(Spec::read("-m geoip --[unsupported").unwrap_err().to_string().ends_with("no such option"));
    }

    #[test]
    fn unknown_modules_keep_their_words() {
        let words = "-m geoip ! --source-country DE,FR -m tcp --dport 80 -j CHAOS --tarpit";
        let spec = read(words);
        assert_eq!(spec.matches[0].value("source-country"), Some("DE,FR"));
        assert_eq!(spec.to_words().unwrap(), words);
        for words in [
            "-p tcp -m nfacct [unsupported revision] -j DNAT [unsupported revision]",
            "-j CHAOS [unsupported revision] 5 bytes",
        ] {
            assert_eq!(read(words).to_words().unwrap(), words);
        }
    }
}
