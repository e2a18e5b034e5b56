//! The parts of a rule: generic matches, match extensions with their options, the target with its
//! options.

use std::borrow::Cow;
use std::fmt;

use crate::ext::{self, Family};
use crate::read::is_remark;
use crate::tree::Counters;
use crate::words::{quote, quote_if_needed};

/// The words of a rule, read.
///
/// [`Spec::read`] takes what can be read, even with modules and options that are not known;
/// [`check`](crate::check) takes only what can be a rule. Both borrow the words from the rule.
///
/// ```
/// use sluicegate_iptables_save::Spec;
///
/// let spec = Spec::read("-p tcp -m comment --comment web --dport 80 -j WEB")?;
/// let comment = spec.matches.iter().find(|module| module.name == "comment").expect("it has one");
/// assert_eq!(comment.options[0].value(), Some("web"));
/// # Ok::<(), sluicegate_iptables_save::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spec<'a> {
    /// `-p`, `-s`, `-d`, `-i`, `-o`, `-f` under their long names, in the order of the words.
    pub generic: Vec<OptionUse<'a>>,
    /// The match extensions, in the order in which they were loaded.
    pub matches: Vec<Module<'a>>,
    /// `-j` or `-g`.
    pub target: Option<Target<'a>>,
    /// `-c packets bytes` among the words.
    pub counters: Option<Counters>,
    /// The family that `-4` or `-6` says, for which alone the rule is.
    pub family: Option<Family>,
}

/// A match extension of a rule, or the target, with its options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module<'a> {
    /// `tcp`, `comment`, `DNAT`, a chain, ...
    pub name: Cow<'a, str>,
    /// Its options in the order of the words.
    pub options: Vec<OptionUse<'a>>,
    /// Loaded by `-p` and an option of the protocol, not by `-m`.
    pub implicit: bool,
}

/// The target of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target<'a> {
    /// The verdict, chain or target extension, with its options.
    pub module: Module<'a>,
    /// `-g`: return not here, but to where this chain was called from.
    pub goto: bool,
}

/// An option as it is used in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionUse<'a> {
    /// Its long name without dashes, in full: `destination-port` for `--dport`.
    pub name: Cow<'a, str>,
    /// `!` stands before it.
    pub negated: bool,
    /// The words that follow it.
    pub values: Values<'a>,
    /// The offset at which it starts, in bytes of the words of the rule.
    pub(crate) offset: u32,
}

/// The values of an option. None, one or two take no memory of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Values<'a> {
    /// No value: a flag.
    #[default]
    None,
    /// One, as of `--dport 80`.
    One(Cow<'a, str>),
    /// Two, as of `--match-set name src`.
    Two([Cow<'a, str>; 2]),
    /// More, of an option that is not known.
    Many(Vec<Cow<'a, str>>),
}

impl<'a> Values<'a> {
    /// Returns the values, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Cow<'a, str>] {
        match self {
            Self::None => &[],
            Self::One(value) => std::slice::from_ref(value),
            Self::Two(values) => values,
            Self::Many(values) => values,
        }
    }

    pub(crate) fn push(&mut self, value: Cow<'a, str>) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(value),
            Self::One(first) => Self::Two([first, value]),
            Self::Two([first, second]) => Self::Many(vec![first, second, value]),
            Self::Many(mut values) => {
                values.push(value);
                Self::Many(values)
            }
        };
    }
}

impl<'a> OptionUse<'a> {
    /// Returns an option with its values.
    #[must_use]
    pub fn new(name: impl Into<Cow<'a, str>>, values: impl IntoIterator<Item = Cow<'a, str>>) -> Self {
        let mut option = Self { name: name.into(), negated: false, values: Values::None, offset: 0 };
        values.into_iter().for_each(|value| option.values.push(value));
        option
    }

    /// Returns the same option with `!` before it, or without.
    #[must_use]
    pub fn negated(mut self, negated: bool) -> Self {
        self.negated = negated;
        self
    }

    /// Returns the first value.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.values.as_slice().first().map(|value| &**value)
    }
}

impl<'a> Module<'a> {
    /// Returns a module without options.
    #[must_use]
    pub fn new(name: impl Into<Cow<'a, str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the same module, owning all its text.
    #[must_use]
    pub fn into_owned(self) -> Module<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let options = self.options.into_iter().map(|option| OptionUse {
            name: own(option.name),
            negated: option.negated,
            values: match option.values {
                Values::None => Values::None,
                Values::One(value) => Values::One(own(value)),
                Values::Two(values) => Values::Two(values.map(own)),
                Values::Many(values) => Values::Many(values.into_iter().map(own).collect()),
            },
            offset: option.offset,
        });
        Module { name: own(self.name), options: options.collect(), implicit: self.implicit }
    }

    /// Adds an option.
    #[must_use]
    pub fn with(mut self, option: OptionUse<'a>) -> Self {
        self.options.push(option);
        self
    }

    /// Returns the option of that full name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&OptionUse<'a>> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Returns the first value of the option of that full name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.option(name)?.value()
    }
}

impl<'a> Spec<'a> {
    /// Returns the generic option of that long name: `protocol`, `source`, `destination`, `in-interface`,
    /// `out-interface`, `fragment`.
    #[must_use]
    pub fn generic(&self, name: &str) -> Option<&OptionUse<'a>> {
        self.generic.iter().find(|option| option.name == name)
    }

    /// Returns the first match of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Module<'a>> {
        self.matches.iter().find(|module| module.name == name)
    }

    /// Returns the text of the comment match.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        self.find("comment")?.value("comment")
    }

    /// Returns the name of the target or chain.
    #[must_use]
    pub fn target_name(&self) -> Option<&str> {
        self.target.as_ref().map(|target| &*target.module.name)
    }

    /// Returns the words of the rule, as [`crate::Rule::new`] takes them.
    ///
    /// # Errors
    /// [`crate::Error::Unquotable`] for a value with a line end or a zero byte.
    pub fn to_words(&self) -> Result<String, crate::Error> {
        let mut out = Separated::new(String::with_capacity(128));
        // Writing to a string does not fail.
        let _ = out.spec(self);
        if !out.unquotable {
            return Ok(out.text);
        }
        for module in self.matches.iter().chain(self.target.as_ref().map(|target| &target.module)) {
            quote(&module.name)?;
            module.options.iter().try_for_each(OptionUse::writable)?;
        }
        self.generic.iter().try_for_each(OptionUse::writable)?;
        Ok(out.text)
    }
}

impl OptionUse<'_> {
    fn writable(&self) -> Result<(), crate::Error> {
        self.values.as_slice().iter().try_for_each(|value| quote(value).map(drop))
    }
}

/// The words of the rule, in the order that iptables-save prints them in: generic options, matches, target.
impl fmt::Display for Spec<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Separated::new(f).spec(self)
    }
}

/// Writes words with blanks between.
struct Separated<W> {
    text: W,
    first: bool,
    /// Whether a word could not be quoted, and an empty one stands in its place.
    unquotable: bool,
}

impl<W: fmt::Write> Separated<W> {
    fn new(text: W) -> Self {
        Self { text, first: true, unquotable: false }
    }

    fn spec(&mut self, spec: &Spec<'_>) -> fmt::Result {
        match spec.family {
            Some(Family::Ipv4) => self.word("-4")?,
            Some(Family::Ipv6) => self.word("-6")?,
            None => (),
        }
        if let Some(Counters { packets, bytes }) = spec.counters {
            self.word(&format!("-c {packets} {bytes}"))?;
        }
        for option in &spec.generic {
            let short = GENERIC.iter().find(|(long, _)| *long == option.name).map(|(_, short)| *short);
            self.option(option, short, true, |_| false)?;
        }
        for module in &spec.matches {
            self.word("-m")?;
            self.plain(&module.name)?;
            self.options(module, false)?;
        }
        if let Some(Target { module, goto }) = &spec.target {
            self.word(if *goto { "-g" } else { "-j" })?;
            self.plain(&module.name)?;
            self.options(module, true)?;
        }
        Ok(())
    }

    /// Begins a word.
    fn blank(&mut self) -> fmt::Result {
        if std::mem::replace(&mut self.first, false) { Ok(()) } else { self.text.write_char(' ') }
    }

    fn word(&mut self, word: &str) -> fmt::Result {
        self.blank()?;
        self.text.write_str(word)
    }

    /// Writes a word, quoted if it must be; an empty word for one that cannot be quoted.
    fn plain(&mut self, word: &str) -> fmt::Result {
        let quoted = quote_if_needed(word);
        self.quoted(quoted)
    }

    fn quoted(&mut self, quoted: Result<Cow<'_, str>, crate::Error>) -> fmt::Result {
        self.unquotable |= quoted.is_err();
        self.word(&quoted.unwrap_or(Cow::Borrowed("\"\"")))
    }

    fn options(&mut self, module: &Module<'_>, target: bool) -> fmt::Result {
        if module.options.is_empty() {
            return Ok(());
        }
        let find = if target { ext::find_target } else { ext::find_match };
        let known = find(&module.name, Family::Ipv4).or_else(|| find(&module.name, Family::Ipv6));
        for option in &module.options {
            let row = known.and_then(|extension| extension.option(&option.name));
            self.option(option, None, row.is_some(), |at| row.is_some_and(|row| row.is_quoted(at)))?;
        }
        Ok(())
    }

    fn option(
        &mut self,
        option: &OptionUse<'_>,
        short: Option<&str>,
        known: bool,
        text: impl Fn(usize) -> bool,
    ) -> fmt::Result {
        if option.negated {
            self.word("!")?;
        }
        let mut values = option.values.as_slice();
        match (short, values) {
            (Some(short), _) => self.word(short)?,
            // A remark of the tool, as in `[unsupported revision]`.
            (None, _) if is_remark(&option.name) => self.plain(&option.name)?,
            // Only `=` distinguishes the value of an unknown option from the next option.
            (None, [first, rest @ ..]) if !known && (first.starts_with('-') || first == "!") => {
                self.plain(&format!("--{}={first}", printed(&option.name)))?;
                values = rest;
            }
            (None, _) if known => {
                self.word("--")?;
                self.text.write_str(printed(&option.name))?;
            }
            (None, _) => self.plain(&format!("--{}", printed(&option.name)))?,
        }
        for (at, value) in values.iter().enumerate() {
            match text(at) {
                true => self.quoted(quote(value))?,
                false => self.plain(value)?,
            }
        }
        Ok(())
    }
}

/// Returns the name that iptables-save prints for an option, where that is not the full one.
fn printed(name: &str) -> &str {
    match name {
        "source-port" => "sport",
        "destination-port" => "dport",
        other => other,
    }
}

/// Long and short names of the generic options, in the order of iptables-save.
pub(crate) const GENERIC: [(&str, &str); 6] = [
    ("source", "-s"),
    ("destination", "-d"),
    ("in-interface", "-i"),
    ("out-interface", "-o"),
    ("protocol", "-p"),
    ("fragment", "-f"),
];
