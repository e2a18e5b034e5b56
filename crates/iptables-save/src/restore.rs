//! Runs `iptables-save` and `iptables-restore`: the one place of this crate that starts processes.
//!
//! The input goes to standard input, without a temporary file. Time and output are limited; a tool that goes
//! over is ended. The message of a tool that fails is mapped to line, rule and [`Cause`] for both back ends.
//! The tools report nothing but text, so the mapping reads the messages of iptables 1.8.9 in the C locale.

mod ensure;
mod failure;
mod process;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ext::Family;
use crate::tree::Entry;
use crate::{Changes, Error, Save, split};
use process::Process;

#[cfg(doc)]
use crate::{Cause, decode};

/// The kernel interface that a tool uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackEnd {
    /// `ip_tables`, by set and get of socket options.
    Legacy,
    /// `nf_tables`, by netlink.
    Nft,
}

/// A pair of `iptables-save` and `iptables-restore` of one back end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    family: Family,
    back_end: BackEnd,
    version: (u32, u32, u32),
    save: PathBuf,
    restore: PathBuf,
    /// `iptables` itself, where it is installed.
    single: Option<PathBuf>,
    limits: RunLimits,
}

/// The limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLimits {
    /// After this time the tool is ended, whether it works or waits for the lock.
    pub time: Duration,
    /// Most bytes that the tool may write to standard output, and as many to standard error.
    pub output: usize,
}

/// The tools of a family that are installed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tools {
    /// The default: the back end of `iptables-restore` itself, which other programs on this system use.
    pub usual: Option<Tool>,
    /// The legacy back end.
    pub legacy: Option<Tool>,
    /// The nft back end.
    pub nft: Option<Tool>,
}

/// The options for a run of `iptables-restore`, but for `--noflush`, which follows from what is restored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restore {
    /// `--counters`: set the counters that the input has.
    pub counters: bool,
    /// `--test`: read and check the input, commit nothing. The kernel is not asked.
    pub test: bool,
    /// `-w`: wait so many seconds for the xtables lock (legacy; the nft back end has none).
    pub wait: Option<u32>,
    /// `-W`: try the lock again after so many microseconds, below a second. Tools from 1.8.8 on ignore it.
    pub wait_interval: Option<u32>,
}

impl Default for RunLimits {
    /// 60 s, 256 MiB.
    fn default() -> Self {
        Self { time: Duration::from_secs(60), output: 256 << 20 }
    }
}

impl Tools {
    /// Looks for the tools of a family on `PATH` and in the system directories, and asks each for its
    /// `--version`.
    ///
    /// # Errors
    /// [`Error::Run`], of which [`Error::is_not_found`] is true, if there is none.
    pub fn find(family: Family) -> Result<Self, Error> {
        let stem = if family == Family::Ipv4 { "iptables" } else { "ip6tables" };
        let tool = |infix: &str| Tool::at(family, &format!("{stem}{infix}"));
        let usual = tool("").ok();
        let of = |infix, back_end| {
            let own = tool(infix).ok().filter(|tool: &Tool| tool.back_end == back_end);
            own.or_else(|| usual.clone().filter(|tool| tool.back_end == back_end))
        };
        let (legacy, nft) = (of("-legacy", BackEnd::Legacy), of("-nft", BackEnd::Nft));
        match (&usual, &legacy, &nft) {
            (None, None, None) => tool("").map(|_| Self { usual: None, legacy: None, nft: None }),
            _ => Ok(Self { usual, legacy, nft }),
        }
    }

    /// Returns the tools whose back end holds rules or user-defined chains at this moment. Two of them are a
    /// warning: packets pass both, and whoever looks at one does not see the other.
    ///
    /// # Errors
    /// As [`Tool::save`].
    pub fn in_use(&self) -> Result<Vec<&Tool>, Error> {
        let mut used = Vec::new();
        for tool in self.legacy.iter().chain(&self.nft) {
            if tool.holds_rules()? {
                used.push(tool);
            }
        }
        Ok(used)
    }
}

impl Tool {
    fn at(family: Family, stem: &str) -> Result<Self, Error> {
        let (save, restore) = (find(&format!("{stem}-save"))?, find(&format!("{stem}-restore"))?);
        Self::open(family, save, restore, find(stem).ok())
    }

    /// Uses these programs, wherever they are: `iptables-save`, `iptables-restore`, which is asked for its
    /// `--version`, and for [`append`](Self::append) `iptables` itself.
    ///
    /// # Errors
    /// [`Error::Run`] when `restore` cannot be run, or prints no version.
    pub fn open(
        family: Family,
        save: PathBuf,
        restore: PathBuf,
        single: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let limits = RunLimits { time: Duration::from_secs(10), output: 64 << 10 };
        let said = Process { program: &restore, arguments: &["--version".to_owned()], limits }.run("")?;
        let said = said.success(|said| failure::of(said, ""))?;
        let (version, back_end) = failure::version(&said).ok_or_else(|| Error::Run {
            command: format!("{} --version", restore.display()),
            reason: format!("expected `iptables vX.Y.Z`, found `{}`", said.trim()),
            missing: false,
        })?;
        Ok(Self { family, back_end, version, save, restore, single, limits: RunLimits::default() })
    }

    /// Returns the family of the tool: iptables or ip6tables.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the back end of the tool.
    #[must_use]
    pub fn back_end(&self) -> BackEnd {
        self.back_end
    }

    /// Returns the version of the tool, as in (1, 8, 9).
    #[must_use]
    pub fn version(&self) -> (u32, u32, u32) {
        self.version
    }

    /// Returns the same tool with other limits for its runs.
    #[must_use]
    pub fn with_limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Runs `iptables-save`: of one table or of all, with counters if wanted. [`Save::parse`] reads what it
    /// prints. Bytes that are not UTF-8 are represented as [`decode`] does.
    ///
    /// # Errors
    /// [`Error::Run`], [`Error::TimedOut`], [`Error::Output`]; [`Error::Refused`] if the tool fails.
    pub fn save(&self, table: Option<&str>, counters: bool) -> Result<String, Error> {
        let mut arguments = Vec::new();
        if counters {
            arguments.push("--counters".to_owned());
        }
        if let Some(table) = table {
            arguments.extend(["--table".to_owned(), table.to_owned()]);
        }
        let said = Process { program: &self.save, arguments: &arguments, limits: self.limits }.run("")?;
        said.success(|said| failure::of(said, ""))
    }

    /// Runs `iptables-restore` with a whole save: in the tables that it names, every chain that it does not
    /// name is deleted. Both back ends take each table whole or not at all; of several tables, those before a
    /// failure stay changed.
    ///
    /// # Errors
    /// As [`Tool::save`]; [`Error::Refused`] says line, rule and cause.
    pub fn restore(&self, save: &Save<'_>, how: Restore) -> Result<(), Error> {
        self.restore_text(&save.to_string(), how)
    }

    /// Runs `iptables-restore --noflush` with changes: chains that they do not name are left alone.
    ///
    /// # Errors
    /// As [`Tool::restore`].
    pub fn apply(&self, changes: &Changes<'_>, how: Restore) -> Result<(), Error> {
        self.apply_text(&changes.to_string(), how)
    }

    /// As [`Tool::restore`], with text that need not be a save; characters of it may stand for bytes, see
    /// [`decode`].
    ///
    /// # Errors
    /// As [`Tool::restore`].
    pub fn restore_text(&self, text: &str, how: Restore) -> Result<(), Error> {
        self.run(text, how, true)
    }

    /// As [`Tool::apply`], with text.
    ///
    /// # Errors
    /// As [`Tool::restore`].
    pub fn apply_text(&self, text: &str, how: Restore) -> Result<(), Error> {
        self.run(text, how, false)
    }

    fn run(&self, input: &str, how: Restore, flush: bool) -> Result<(), Error> {
        let mut arguments = Vec::new();
        for (wanted, argument) in [(!flush, "--noflush"), (how.counters, "--counters"), (how.test, "--test")]
        {
            arguments.extend(wanted.then(|| argument.to_owned()));
        }
        // Older tools know neither; the nft back end takes and ignores both.
        if self.version >= (1, 6, 2) {
            arguments.extend(how.wait.map(|seconds| format!("--wait={seconds}")));
            if how.wait.is_some() {
                arguments.extend(how.wait_interval.map(|pause| format!("--wait-interval={pause}")));
            }
        }
        let said =
            Process { program: &self.restore, arguments: &arguments, limits: self.limits }.run(input)?;
        said.success(|said| failure::of(said, input)).map(drop)
    }

    /// Appends one rule to a chain by `iptables -A`, which says why the kernel refuses it; of that, legacy
    /// `iptables-restore` says nothing.
    ///
    /// # Errors
    /// As [`Tool::restore`], and [`Error::Run`] where `iptables` itself is not installed.
    pub fn append(&self, table: &str, chain: &str, words: &str) -> Result<(), Error> {
        let Some(program) = &self.single else {
            return Err(Error::Run {
                command: "iptables".to_owned(),
                reason: format!("no such program beside {}", self.restore.display()),
                missing: true,
            });
        };
        let mut arguments: Vec<String> = ["-t", table, "-A", chain].map(str::to_owned).into();
        if self.version >= (1, 6, 2) {
            arguments.insert(0, "--wait=5".to_owned());
        }
        for word in split(words) {
            arguments.push(word?.text.into_owned());
        }
        let said = Process { program, arguments: &arguments, limits: self.limits }.run("")?;
        said.success(|said| failure::of(said, "")).map(drop)
    }

    /// Returns whether there are rules or user-defined chains in the back end.
    ///
    /// # Errors
    /// As [`Tool::save`], and those of [`Save::parse`].
    pub fn holds_rules(&self) -> Result<bool, Error> {
        let text = self.save(None, false)?;
        let save = Save::parse(&text)?;
        let counts = |entry: &Entry<'_>| match entry {
            Entry::Rule(_) => true,
            Entry::Chain(chain) => chain.policy().is_none_or(|policy| policy != "ACCEPT"),
            _ => false,
        };
        Ok(save.tables().any(|table| table.entries.iter().any(counts)))
    }
}

/// Returns the path of a program, on `PATH` or in the system directories that an ordinary user's `PATH` often
/// lacks.
fn find(program: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<_> = std::env::split_paths(&path).collect();
    directories.extend(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from));
    let found = directories.iter().map(|directory| directory.join(program)).find(|path| Path::is_file(path));
    found.ok_or_else(|| Error::Run {
        command: program.to_owned(),
        reason: "no such program, neither on PATH nor in the system directories".to_owned(),
        missing: true,
    })
}
