//! The tree: tables, chains, rules and commands, each with the text it was read from until it is changed.

use std::borrow::Cow;

use memchr::memchr2;

use crate::Error;
use crate::check::chain_name;
use crate::encoding::encode;

/// A whole `iptables-save` output or `iptables-restore` input.
///
/// Everything borrows from the input where it can; [`Save::into_owned`] cuts the tie. Rendering an untouched
/// tree gives the input back byte for byte: `to_string` that of [`Save::parse`], [`Save::to_bytes`] also that
/// of [`Save::parse_bytes`].
///
/// ```
/// use sluicegate_iptables_save::Save;
///
/// let text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n";
/// let save = Save::parse(text)?;
/// let filter = save.table("filter").expect("it is there");
/// assert_eq!(filter.rules().count(), 1);
/// assert_eq!(save.to_string(), text);
/// # Ok::<(), sluicegate_iptables_save::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Save<'a> {
    /// Tables, and the text between them, in order.
    pub items: Vec<Item<'a>>,
}

/// A part of a [`Save`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item<'a> {
    /// From `*name` to `COMMIT`.
    Table(Table<'a>),
    /// Comments and blank lines outside tables, with their line ends.
    Text(Cow<'a, str>),
}

/// A table: `*name`, what is done in it, `COMMIT`. The same table may occur again in one input.
///
/// ```
/// use sluicegate_iptables_save::Save;
///
/// let save = Save::parse("*nat\n:WEB - [0:0]\n-A PREROUTING -j WEB\nCOMMIT\n")?;
/// for table in save.tables() {
///     let chains: Vec<&str> = table.chains().map(|chain| chain.name()).collect();
///     assert_eq!((table.name(), &*chains), ("nat", &["WEB"][..]));
/// }
/// # Ok::<(), sluicegate_iptables_save::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table<'a> {
    pub(crate) head: Source<'a>,
    pub(crate) name: Cow<'a, str>,
    /// Chains, rules, commands, comments, in order.
    pub entries: Vec<Entry<'a>>,
    pub(crate) commit: Source<'a>,
    pub(crate) line: u32,
}

/// A line of a table, or some lines of text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// `:NAME POLICY [packets:bytes]`
    Chain(Chain<'a>),
    /// `-A`, `-I`, `-D`, `-R` or `-C` with a chain.
    Rule(Rule<'a>),
    /// `-N`, `-X`, `-F`, `-P`, `-Z`, `-E`.
    Command(Command<'a>),
    /// Comments and blank lines, with their line ends.
    Text(Cow<'a, str>),
}

/// Packet and byte counters, `[packets:bytes]`.
///
/// ```
/// use sluicegate_iptables_save::{Counters, Rule};
///
/// let rule = Rule::parse("[7:420] -A INPUT -j ACCEPT")?;
/// assert_eq!(rule.counters(), Some(Counters { packets: 7, bytes: 420 }));
/// # Ok::<(), sluicegate_iptables_save::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A chain line.
///
/// ```
/// use sluicegate_iptables_save::Save;
///
/// let save = Save::parse("*filter\n:INPUT DROP [7:420]\nCOMMIT\n")?;
/// let input = save.table("filter").and_then(|table| table.chain("INPUT")).expect("it is there");
/// assert_eq!(input.policy(), Some("DROP"));
/// assert_eq!(input.counters().map(|counters| counters.packets), Some(7));
/// # Ok::<(), sluicegate_iptables_save::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) policy: Option<Cow<'a, str>>,
    pub(crate) counters: Option<Counters>,
    pub(crate) line: u32,
}

/// A rule line: counters, what to do, the chain, and the words of the rule.
///
/// ```
/// use sluicegate_iptables_save::Rule;
///
/// let rule = Rule::parse("-A INPUT -p tcp --dport 22 -j ACCEPT")?;
/// assert_eq!((rule.chain(), rule.text()), ("INPUT", "-p tcp --dport 22 -j ACCEPT"));
/// let spec = rule.spec()?;
/// assert_eq!(spec.target.map(|target| target.module.name.into_owned()).as_deref(), Some("ACCEPT"));
/// # Ok::<(), sluicegate_iptables_save::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) counters: Option<Counters>,
    pub(crate) action: Action,
    pub(crate) chain: Cow<'a, str>,
    pub(crate) words: Cow<'a, str>,
    pub(crate) line: u32,
}

/// The operation of a rule line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// `-A`: after the last rule.
    Append,
    /// `-I`, with the rule number if it is given (absent: 1).
    Insert(Option<u32>),
    /// `-R` with the rule number.
    Replace(u32),
    /// `-D` with a rule.
    Delete,
    /// `-D` with a rule number.
    DeleteNumber(u32),
    /// `-C`: is there such a rule?
    Check,
}

/// A line that changes chains, not rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) verb: Verb<'a>,
    pub(crate) line: u32,
}

/// The operation of a [`Command`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verb<'a> {
    /// `-N chain`
    New(Cow<'a, str>),
    /// `-X chain`; without a chain, all empty ones.
    DeleteChain(Option<Cow<'a, str>>),
    /// `-F chain`; without a chain, all.
    Flush(Option<Cow<'a, str>>),
    /// `-P chain target`, with `-c packets bytes` if given.
    Policy(Cow<'a, str>, Cow<'a, str>, Option<Counters>),
    /// `-Z chain`, of one rule if a number is given; without a chain, all.
    Zero(Option<Cow<'a, str>>, Option<u32>),
    /// `-E old new`
    Rename(Cow<'a, str>, Cow<'a, str>),
}

/// The line, its end included, that a node was read from; empty once the node is changed or was built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Source<'a>(pub(crate) Cow<'a, str>);

impl<'a> Save<'a> {
    /// Returns the tables, in order.
    pub fn tables(&self) -> impl Iterator<Item = &Table<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Table(table) => Some(table),
            Item::Text(_) => None,
        })
    }

    /// Returns the tables, in order, to be changed.
    pub fn tables_mut(&mut self) -> impl Iterator<Item = &mut Table<'a>> {
        self.items.iter_mut().filter_map(|item| match item {
            Item::Table(table) => Some(table),
            Item::Text(_) => None,
        })
    }

    /// Returns the first table of that name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table<'a>> {
        self.tables().find(|table| table.name == name)
    }

    /// Returns the comment lines outside tables, without their line ends.
    pub fn comments(&self) -> impl Iterator<Item = &str> {
        let texts = self.items.iter().filter_map(|item| match item {
            Item::Text(text) => Some(&**text),
            Item::Table(_) => None,
        });
        texts.flat_map(str::lines).filter(|line| line.starts_with('#'))
    }

    /// Returns the text, with the bytes that were read by [`Save::parse_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = self.to_string();
        match encode(&text) {
            Cow::Owned(bytes) => bytes,
            Cow::Borrowed(_) => text.into_bytes(),
        }
    }

    /// Returns the same tree, owning all its text.
    #[must_use]
    pub fn into_owned(self) -> Save<'static> {
        Save { items: self.items.into_iter().map(Item::into_owned).collect() }
    }
}

impl Item<'_> {
    /// Returns the same item, owning all its text.
    #[must_use]
    pub fn into_owned(self) -> Item<'static> {
        match self {
            Self::Table(table) => Item::Table(table.into_owned()),
            Self::Text(text) => Item::Text(own(text)),
        }
    }
}

impl<'a> Table<'a> {
    /// Returns an empty table.
    ///
    /// # Errors
    /// [`Error::Unquotable`] if the name cannot be that of a table.
    pub fn new(table: impl Into<Cow<'a, str>>) -> Result<Self, Error> {
        let table = table.into();
        name(&table)?;
        Ok(Self::read(Source::default(), table, 0))
    }

    pub(crate) fn read(head: Source<'a>, name: Cow<'a, str>, line: u32) -> Self {
        Self { head, name, entries: Vec::new(), commit: Source::default(), line }
    }

    /// `filter`, `nat`, `mangle`, `raw`, `security`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Line of `*name` in the input, from 1; 0 for a table that was built.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line as usize
    }

    /// Returns the chain lines, in order.
    pub fn chains(&self) -> impl Iterator<Item = &Chain<'a>> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Chain(chain) => Some(chain),
            _ => None,
        })
    }

    /// Returns the rule lines, in order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule<'a>> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Rule(rule) => Some(rule),
            _ => None,
        })
    }

    /// Returns the rule lines, in order, to be changed.
    pub fn rules_mut(&mut self) -> impl Iterator<Item = &mut Rule<'a>> {
        self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Rule(rule) => Some(rule),
            _ => None,
        })
    }

    /// Returns the chain commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = &Command<'a>> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Command(command) => Some(command),
            _ => None,
        })
    }

    /// Returns the chain line of that name.
    #[must_use]
    pub fn chain(&self, name: &str) -> Option<&Chain<'a>> {
        self.chains().find(|chain| chain.name == name)
    }

    /// Returns the same table, owning all its text.
    #[must_use]
    pub fn into_owned(self) -> Table<'static> {
        Table {
            head: self.head.into_owned(),
            name: own(self.name),
            entries: self.entries.into_iter().map(Entry::into_owned).collect(),
            commit: self.commit.into_owned(),
            line: self.line,
        }
    }
}

impl Entry<'_> {
    /// Returns the same entry, owning all its text.
    #[must_use]
    pub fn into_owned(self) -> Entry<'static> {
        match self {
            Self::Chain(chain) => Entry::Chain(chain.into_owned()),
            Self::Rule(rule) => Entry::Rule(rule.into_owned()),
            Self::Command(command) => Entry::Command(command.into_owned()),
            Self::Text(text) => Entry::Text(own(text)),
        }
    }
}

impl<'a> Chain<'a> {
    /// Returns a chain line; a user-defined chain has no policy.
    ///
    /// # Errors
    /// [`Error::Unquotable`] if the name cannot be that of a chain, or the policy is not a word.
    pub fn new(
        chain: impl Into<Cow<'a, str>>,
        policy: Option<Cow<'a, str>>,
        counters: Option<Counters>,
    ) -> Result<Self, Error> {
        let chain = chain.into();
        name(&chain)?;
        policy.iter().try_for_each(|policy| name(policy))?;
        Ok(Self { source: Source::default(), name: chain, policy, counters, line: 0 })
    }

    /// Returns the name of the chain.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `ACCEPT` or `DROP` of a built-in chain; `None` (written `-`) of a user-defined one.
    #[must_use]
    pub fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// Returns the counters, if the line has any.
    #[must_use]
    pub fn counters(&self) -> Option<Counters> {
        self.counters
    }

    /// Line in the input, from 1; 0 for a chain that was built.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line as usize
    }

    /// Changes the counters; the line is then rendered anew.
    pub fn set_counters(&mut self, counters: Option<Counters>) {
        self.counters = counters;
        self.source = Source::default();
    }

    /// Changes the policy; the line is then rendered anew.
    ///
    /// # Errors
    /// [`Error::Unquotable`] if the policy is not a word.
    pub fn set_policy(&mut self, policy: Option<Cow<'a, str>>) -> Result<(), Error> {
        policy.iter().try_for_each(|policy| name(policy))?;
        self.policy = policy;
        self.source = Source::default();
        Ok(())
    }

    /// Returns the same chain, owning all its text.
    #[must_use]
    pub fn into_owned(self) -> Chain<'static> {
        Chain {
            source: self.source.into_owned(),
            name: own(self.name),
            policy: self.policy.map(own),
            counters: self.counters,
            line: self.line,
        }
    }
}

impl<'a> Rule<'a> {
    /// Returns a rule line from the words of the rule, quoted as they are to stand in the line.
    /// [`crate::Spec`] writes them.
    ///
    /// # Errors
    /// [`Error::Unquotable`] if the name cannot be that of a chain, or the words are more than one line.
    pub fn new(
        action: Action,
        chain: impl Into<Cow<'a, str>>,
        words: impl Into<Cow<'a, str>>,
    ) -> Result<Self, Error> {
        let (source, chain, words) = (Source::default(), chain.into(), words.into());
        name(&chain)?;
        one_line(&words)?;
        Ok(Self { source, counters: None, action, chain, words, line: 0 })
    }

    /// Returns a rule that a chain has and iptables has no words for, in its place among the others. `text`
    /// says what it is, in the language of nft for instance.
    ///
    /// Its words begin with a `#`, which no words of a rule do, so that neither iptables-restore nor anything
    /// here takes them for a rule; what is printed with it cannot be loaded without it.
    ///
    /// ```
    /// use sluicegate_iptables_save::{Family, Place, Rule, check};
    /// let rule = Rule::foreign("INPUT", "meta skuid 3000 accept").unwrap();
    /// assert!(rule.is_foreign());
    /// assert_eq!(rule.to_string(), "-A INPUT # meta skuid 3000 accept\n");
    /// let place = Place { table: "filter", chain: "INPUT", family: Family::Ipv4 };
    /// assert!(check(rule.text(), place).is_err());
    /// ```
    ///
    /// # Errors
    /// As [`Rule::new`].
    pub fn foreign(chain: impl Into<Cow<'a, str>>, text: &str) -> Result<Self, Error> {
        Self::new(Action::Append, chain, format!("# {text}"))
    }

    /// Returns whether it is a rule that iptables has no words for, as [`Rule::foreign`] makes it.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.words.starts_with('#')
    }

    /// Returns the chain that the rule is in.
    #[must_use]
    pub fn chain(&self) -> &str {
        &self.chain
    }

    /// Returns the operation of the line on the rule.
    #[must_use]
    pub fn action(&self) -> Action {
        self.action
    }

    /// Returns the counters in front of the rule, if any.
    #[must_use]
    pub fn counters(&self) -> Option<Counters> {
        self.counters
    }

    /// Returns the rule itself, from behind the chain to the end of the line; [`crate::split`] parts it into
    /// words.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.words
    }

    /// Line in the input, from 1; 0 for a rule that was built.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line as usize
    }

    /// Changes the counters; the line is then rendered anew.
    pub fn set_counters(&mut self, counters: Option<Counters>) {
        self.counters = counters;
        self.source = Source::default();
    }

    /// Changes what the line does; the line is then rendered anew.
    pub fn set_action(&mut self, action: Action) {
        self.action = action;
        self.source = Source::default();
    }

    /// Moves the rule to another chain; the line is then rendered anew.
    ///
    /// # Errors
    /// [`Error::Unquotable`] if the name cannot be that of a chain.
    pub fn set_chain(&mut self, chain: impl Into<Cow<'a, str>>) -> Result<(), Error> {
        let chain = chain.into();
        name(&chain)?;
        self.chain = chain;
        self.source = Source::default();
        Ok(())
    }

    /// Changes the words of the rule; the line is then rendered anew.
    ///
    /// # Errors
    /// [`Error::Unquotable`] if the words are more than one line.
    pub fn set_text(&mut self, words: impl Into<Cow<'a, str>>) -> Result<(), Error> {
        let words = words.into();
        one_line(&words)?;
        self.words = words;
        self.source = Source::default();
        Ok(())
    }

    /// Returns the same rule, owning all its text.
    #[must_use]
    pub fn into_owned(self) -> Rule<'static> {
        Rule {
            source: self.source.into_owned(),
            counters: self.counters,
            action: self.action,
            chain: own(self.chain),
            words: own(self.words),
            line: self.line,
        }
    }
}

impl<'a> Command<'a> {
    /// Returns a command line.
    ///
    /// ```
    /// use sluicegate_iptables_save::{Command, Verb};
    /// assert_eq!(Command::new(Verb::New("WEB".into())).unwrap().to_string(), "-N WEB\n");
    /// // It would be two lines.
    /// assert!(Command::new(Verb::New("WEB\n-F".into())).is_err());
    /// ```
    ///
    /// # Errors
    /// [`Error::Unquotable`] if a name is more than one word. Whether a chain can be called so, the kernel says.
    pub fn new(verb: Verb<'a>) -> Result<Self, Error> {
        let (first, second) = match &verb {
            Verb::New(chain) => (Some(chain), None),
            Verb::DeleteChain(chain) | Verb::Flush(chain) | Verb::Zero(chain, _) => (chain.as_ref(), None),
            Verb::Policy(chain, other, _) | Verb::Rename(chain, other) => (Some(chain), Some(other)),
        };
        first.into_iter().chain(second).try_for_each(|word| one_word(word))?;
        Ok(Self { source: Source::default(), verb, line: 0 })
    }

    /// Returns the operation of the command.
    #[must_use]
    pub fn verb(&self) -> &Verb<'a> {
        &self.verb
    }

    /// Line in the input, from 1; 0 for a command that was built.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line as usize
    }

    /// Returns the same command, owning all its text.
    #[must_use]
    pub fn into_owned(self) -> Command<'static> {
        let verb = match self.verb {
            Verb::New(chain) => Verb::New(own(chain)),
            Verb::DeleteChain(chain) => Verb::DeleteChain(chain.map(own)),
            Verb::Flush(chain) => Verb::Flush(chain.map(own)),
            Verb::Policy(chain, target, counters) => Verb::Policy(own(chain), own(target), counters),
            Verb::Zero(chain, number) => Verb::Zero(chain.map(own), number),
            Verb::Rename(old, new) => Verb::Rename(own(old), own(new)),
        };
        Command { source: self.source.into_owned(), verb, line: self.line }
    }
}

impl Source<'_> {
    pub(crate) fn into_owned(self) -> Source<'static> {
        Source(own(self.0))
    }
}

/// Refuses a name that is not a single word.
fn name(name: &str) -> Result<(), Error> {
    match chain_name(name) {
        Ok(()) => Ok(()),
        Err(_) => {
            Err(Error::Unquotable { word: name.to_owned(), reason: "expected the name of a chain or table" })
        }
    }
}

/// Refuses a name that would be several words, or another line.
fn one_word(name: &str) -> Result<(), Error> {
    match name.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control()) {
        true => {
            Err(Error::Unquotable { word: name.to_owned(), reason: "it has a blank or a control character" })
        }
        false => Ok(()),
    }
}

/// Refuses words that would end their line.
fn one_line(words: &str) -> Result<(), Error> {
    match memchr2(b'\n', 0, words.as_bytes()).is_some() {
        true => Err(Error::Unquotable { word: words.to_owned(), reason: "it has a line end or a zero byte" }),
        false => Ok(()),
    }
}

fn own(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}
