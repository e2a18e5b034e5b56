//! A change of the kernel as a value. It prints as input of the tools that do the same.

use std::fmt;
use std::net::IpAddr;

use sluicegate_ipset::{Entry, SetSpec};
use sluicegate_iptables_save::Save;
use sluicegate_ipvs::Command;
use sluicegate_services::Family;

use super::DEVICE;
use super::set::Set;

/// A change in one family. The fields are in the order in which they are applied: additions first, removals
/// last.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Change {
    /// Sets to create.
    pub create: Vec<SetSpec>,
    /// Entries to add to sets.
    pub add: Vec<(Set, Vec<Entry>)>,
    /// Virtual servers and destinations to add and change.
    pub serve: Vec<Command>,
    /// Input of `iptables-restore --noflush`; without tables if no rule changes.
    pub rules: Save<'static>,
    /// Addresses to bind.
    pub bind: Vec<IpAddr>,
    /// Addresses to unbind.
    pub unbind: Vec<IpAddr>,
    /// Virtual servers and destinations to delete.
    pub retire: Vec<Command>,
    /// Entries to delete from sets.
    pub delete: Vec<(Set, Vec<Entry>)>,
}

impl Change {
    /// Returns `true` if the change is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.create.is_empty()
            && self.add.is_empty()
            && self.serve.is_empty()
            && self.rules.items.is_empty()
            && self.bind.is_empty()
            && self.unbind.is_empty()
            && self.retire.is_empty()
            && self.delete.is_empty()
    }

    /// Splits the commands of a difference into those that add and those that remove, which come last.
    pub(crate) fn set_commands(&mut self, mut commands: Vec<Command>) {
        let adds = |command: &Command| {
            !matches!(command, Command::DeleteService { .. } | Command::DeleteDestination { .. })
        };
        self.retire = commands.split_off(commands.partition_point(adds));
        self.serve = commands;
    }

    /// Returns the change as scripts, each after a heading that names its tool.
    #[must_use]
    pub fn script(&self, family: Family) -> Script<'_> {
        Script { change: self, family }
    }
}

/// Prints a [`Change`].
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    change: &'a Change,
    family: Family,
}

impl fmt::Display for Script<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, family } = self;
        if !(change.create.is_empty() && change.add.is_empty() && change.delete.is_empty()) {
            writeln!(f, "# ipset restore")?;
            change.create.iter().try_for_each(|spec| writeln!(f, "{spec}"))?;
            self.entries(f, "add", &change.add)?;
            self.entries(f, "del", &change.delete)?;
        }
        if !(change.serve.is_empty() && change.retire.is_empty()) {
            writeln!(f, "# ipvsadm -R")?;
            change.serve.iter().chain(&change.retire).try_for_each(|command| writeln!(f, "{command}"))?;
        }
        if !(change.bind.is_empty() && change.unbind.is_empty()) {
            writeln!(f, "# addresses of {DEVICE}: ip -batch -")?;
            let prefix = prefix(*family);
            let mut line = |verb, ip| writeln!(f, "address {verb} {ip}/{prefix} dev {DEVICE}");
            change.bind.iter().try_for_each(|ip| line("add", ip))?;
            change.unbind.iter().try_for_each(|ip| line("del", ip))?;
        }
        if !change.rules.items.is_empty() {
            let tool = if *family == Family::Ipv4 { "iptables-restore" } else { "ip6tables-restore" };
            write!(f, "# {tool} --noflush\n{}", change.rules)?;
        }
        Ok(())
    }
}

impl Script<'_> {
    fn entries(&self, f: &mut fmt::Formatter<'_>, verb: &str, sets: &[(Set, Vec<Entry>)]) -> fmt::Result {
        for (set, entries) in sets {
            let name = set.name(self.family);
            entries.iter().try_for_each(|entry| writeln!(f, "{verb} {name} {entry}"))?;
        }
        Ok(())
    }
}

/// Returns the prefix length of a single address.
pub(crate) const fn prefix(family: Family) -> u8 {
    match family {
        Family::Ipv4 => 32,
        Family::Ipv6 => 128,
    }
}
