//! The rules of the kernel, one family in one back end: what an applier lists and changes. And the one place
//! that chooses the back end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sluicegate_iptables_save::{Item, Save};
use sluicegate_services::Family;
use sluicegate_xtables::legacy::{self, Replaced, Restore};
use sluicegate_xtables::{BackEnd, Error, nft};

use super::planner::tool_family;
use super::{CANARY, CANARY_TABLES};

/// The rules of one family in one back end of the kernel.
///
/// [`open`] returns those of the current network namespace. Another implementation may stand between these
/// and an applier: one that counts, or fails on request.
pub trait Tables: fmt::Debug + Send {
    /// Returns the family.
    fn family(&self) -> Family;

    /// Returns the back end.
    fn back_end(&self) -> BackEnd;

    /// Returns those of [`CANARY_TABLES`] that are in use, with chains and rules as iptables-save prints
    /// them.
    ///
    /// # Errors
    /// If the kernel refuses it.
    fn list(&mut self) -> Result<Save<'static>, Error>;

    /// Carries out lines as `iptables-restore --noflush --counters` does: each table is changed as a whole or
    /// not at all.
    ///
    /// # Errors
    /// If a line does not fit to the rules that there are, or the kernel refuses it.
    fn apply(&mut self, input: &Save<'_>) -> Result<(), Error>;

    /// Returns whether a table has a chain. The cost does not depend on other tables.
    ///
    /// # Errors
    /// If the kernel refuses it.
    fn has_chain(&mut self, table: &str, chain: &str) -> Result<bool, Error>;

    /// In the nft back end, returns the generation of the ruleset.
    ///
    /// # Errors
    /// If the kernel refuses it.
    fn generation(&mut self) -> Result<Option<Generation>, Error> {
        Ok(None)
    }

    /// In the legacy back end, which counts no changes, returns whether a table in use is larger or smaller than
    /// these tables left it, or was when they changed it; compared with the last call, from the second on.
    ///
    /// # Errors
    /// If the kernel refuses it.
    fn is_disturbed(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Returns whether a rule of these words could be added to a table, as far as that can be told without
    /// adding it: the kernel has the matches and targets.
    ///
    /// # Errors
    /// If the words cannot be a rule, or the kernel cannot be asked.
    fn has_extensions(&mut self, table: &str, words: &str) -> Result<bool, Error>;
}

/// The generation of `nf_tables`, which all commits count on, and how many of these were made by some tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// The generation.
    pub id: u32,
    /// The number of commits.
    pub commits: u32,
}

/// Opens the rules of each family in the network namespace of the calling thread: in the back end that is
/// given, or else in that of [`choose`].
///
/// # Errors
/// If a capability is missing, or the kernel has no netfilter.
pub fn open(back_end: Option<BackEnd>, families: &[Family]) -> Result<Vec<Box<dyn Tables>>, Error> {
    let back_end = back_end.map_or_else(choose, Ok)?;
    let patience = Patience::default();
    let open = |family: &Family| {
        let client = Client { patience: patience.clone(), ..Client::open(*family, back_end)? };
        Ok(Box::new(client) as Box<dyn Tables>)
    };
    families.iter().map(open).collect()
}

/// Opens the rules of both families in every back end that is in use, to clean up whichever was used; or
/// returns why not.
pub(crate) fn open_used() -> Vec<Result<Box<dyn Tables>, Error>> {
    let mut all: Vec<Result<Box<dyn Tables>, Error>> = Vec::new();
    let patience = Patience::default();
    for back_end in BackEnd::BOTH {
        for family in Family::BOTH {
            match Client::open(family, back_end).and_then(|client| Ok((client.used()?, client))) {
                Ok((used, _)) if used.is_empty() => {}
                Ok((_, client)) => all.push(Ok(Box::new(Client { patience: patience.clone(), ..client }))),
                // Without it there are no rules.
                Err(error) if error.is_unsupported() => {}
                Err(error) => all.push(Err(error)),
            }
        }
    }
    all
}

/// Returns the back end that other programs of this node use: two of them would not see each other's rules,
/// and packets would pass both.
///
/// As kube-proxy's image chooses between the tools: the back end in which the kubelet made its chains, or else
/// a service proxy its canary; nft first. Without any, the legacy back end if it has more rules, and otherwise
/// nft, unless the kernel does not have that, or not in each family in which it has the legacy back end.
///
/// # Errors
/// As [`open`].
pub fn choose() -> Result<BackEnd, Error> {
    let mut clients = Vec::new();
    for back_end in [BackEnd::Nft, BackEnd::Legacy] {
        for family in Family::BOTH {
            match Client::open(family, back_end).and_then(|client| Ok((client.used()?, client))) {
                Ok((used, client)) => clients.push((client, used)),
                // As without IPv6.
                Err(error) if error.is_unsupported() => {}
                Err(error) => return Err(error),
            }
        }
    }
    for hint in [&KUBELET[..], &[CANARY]] {
        for (client, _) in clients.iter_mut().filter(|(_, used)| used.contains(&"mangle")) {
            for chain in hint {
                if client.has_chain("mangle", chain)? {
                    return Ok(client.back_end());
                }
            }
        }
    }
    let families = |back_end| {
        let ours = clients.iter_mut().filter(|(client, _)| client.back_end() == back_end);
        ours.map(|(client, _)| usize::from(client.has_extensions("filter", PROBE).unwrap_or(false))).sum()
    };
    let has_nft = has_nft(families);
    let mut rules = |back_end| {
        let ours = clients.iter_mut().filter(|(client, _)| client.back_end() == back_end);
        // What cannot be listed is not of iptables.
        ours.filter_map(|(client, _)| client.list().ok())
            .map(|save| save.tables().map(|table| table.rules().count()).sum::<usize>())
            .sum::<usize>()
    };
    let is_legacy = !has_nft || rules(BackEnd::Legacy) > rules(BackEnd::Nft);
    Ok(if is_legacy { BackEnd::Legacy } else { BackEnd::Nft })
}

/// Returns whether `nf_tables` takes rules of iptables in as many families as the legacy back end: it may be there
/// for some families alone, or without extensions of iptables.
fn has_nft(mut families: impl FnMut(BackEnd) -> usize) -> bool {
    match families(BackEnd::Nft) {
        0 => false,
        // The legacy back end makes its tables when it is asked.
        some => some == Family::BOTH.len() || families(BackEnd::Legacy) <= some,
    }
}

/// The words of a rule that iptables-nft writes with an extension.
const PROBE: &str = "-m addrtype --dst-type LOCAL";
/// The chains of table mangle by which the kubelet tells others which back end it uses.
const KUBELET: [&str; 2] = ["KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"];

/// The rules of the kernel.
#[derive(Debug)]
struct Client {
    family: Family,
    socket: Socket,
    /// How large we left the tables of the legacy back end; `None` before anybody asked.
    left: Option<Sizes>,
    /// Whether a table that we changed was not as large as we had left it.
    was_disturbed: bool,
    patience: Patience,
}

/// The number of entries of tables, and their size in bytes.
type Sizes = BTreeMap<String, (u32, u32)>;

/// When the lock of the legacy back end was last waited for in vain. Clones share it, as one lock is for both
/// families.
///
/// A sync changes several tables, one after the other. Each change would wait as long for a program that never
/// lets the lock go, and nobody else would have a turn: so the first one waits, and those of the time after it
/// take the lock only where it is free.
#[derive(Clone, Debug, Default)]
struct Patience(Arc<Mutex<Option<Instant>>>);

impl Patience {
    /// Carries out lines, and waits for the lock if it wasn't waited for just now.
    fn restore(
        &self,
        client: &mut legacy::Client,
        input: &Save<'_>,
        how: Restore,
    ) -> Result<Vec<Replaced>, Error> {
        let longest = client.lock_wait();
        let wait = self.wait(longest, Instant::now());
        client.set_lock_wait(wait);
        let restored = client.restore(input, how);
        client.set_lock_wait(longest);
        match restored {
            Err(Error::Locked { path, .. }) => {
                if !wait.is_zero() {
                    self.refused(Instant::now());
                }
                // The same text each time, as a failure that lasts is not logged again.
                Err(Error::Locked { path, waited: longest })
            }
            done => done,
        }
    }

    /// Returns how long to wait, of at most `longest`.
    fn wait(&self, longest: Duration, now: Instant) -> Duration {
        let last = self.lock().map(|last| now.saturating_duration_since(last));
        if last.is_some_and(|last| last < longest) { Duration::ZERO } else { longest }
    }

    fn refused(&self, now: Instant) {
        *self.lock() = Some(now);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
enum Socket {
    Legacy(legacy::Client),
    Nft(nft::Client),
}

impl Client {
    fn open(family: Family, back_end: BackEnd) -> Result<Self, Error> {
        let socket = match back_end {
            BackEnd::Legacy => Socket::Legacy(legacy::Client::open(tool_family(family))?),
            BackEnd::Nft => Socket::Nft(nft::Client::open(tool_family(family))?),
        };
        Ok(Self { family, socket, left: None, was_disturbed: false, patience: Patience::default() })
    }

    /// Returns those of our tables that are in use. To read another one of the legacy back end would make it.
    fn used(&self) -> Result<Vec<&'static str>, Error> {
        let is_used: Box<dyn Fn(&str) -> bool> = match &self.socket {
            Socket::Legacy(client) => {
                // Who may not know asks for each.
                let used = client.tables();
                Box::new(move |name| used.as_ref().is_none_or(|used| used.iter().any(|used| used == name)))
            }
            Socket::Nft(client) => {
                let used = client.tables()?;
                Box::new(move |name| used.contains(&name))
            }
        };
        Ok(CANARY_TABLES.into_iter().filter(|name| is_used(name)).collect())
    }

    fn check(&self, table: &str, chain: &str, words: &str) -> Result<bool, Error> {
        match &self.socket {
            Socket::Legacy(client) => client.check(table, chain, words),
            Socket::Nft(client) => client.check(table, chain, words),
        }
    }
}

impl Tables for Client {
    fn family(&self) -> Family {
        self.family
    }

    fn back_end(&self) -> BackEnd {
        match self.socket {
            Socket::Legacy(_) => BackEnd::Legacy,
            Socket::Nft(_) => BackEnd::Nft,
        }
    }

    fn list(&mut self) -> Result<Save<'static>, Error> {
        let mut save = Save::default();
        for name in self.used()? {
            let listed = match &self.socket {
                Socket::Legacy(client) => client.view(name, false),
                Socket::Nft(client) => client.view(name, false),
            };
            match listed {
                Ok(view) => save.items.push(Item::Table(view.table)),
                // A kernel may lack the table.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(save)
    }

    fn apply(&mut self, input: &Save<'_>) -> Result<(), Error> {
        let how = Restore::default().counters();
        match &mut self.socket {
            Socket::Legacy(client) => {
                let replaced = self.patience.restore(client, input, how)?;
                let Some(left) = &mut self.left else { return Ok(()) };
                for Replaced { table, before, after, .. } in replaced {
                    // Another program may have come between what we compared with and this, which our own
                    // change then hides.
                    self.was_disturbed |= left.insert(table, after).is_some_and(|left| left != before);
                }
                Ok(())
            }
            Socket::Nft(client) => client.restore(input, how),
        }
    }

    fn has_chain(&mut self, table: &str, chain: &str) -> Result<bool, Error> {
        match self.check(table, chain, "") {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn generation(&mut self) -> Result<Option<Generation>, Error> {
        let Socket::Nft(client) = &self.socket else { return Ok(None) };
        Ok(Some(Generation { id: client.generation()?, commits: client.commits() }))
    }

    fn is_disturbed(&mut self) -> Result<bool, Error> {
        let Socket::Legacy(client) = &self.socket else { return Ok(false) };
        let mut sizes = Sizes::new();
        for name in self.used()? {
            match client.size(name) {
                Ok(size) => drop(sizes.insert(name.to_owned(), size)),
                // A kernel may lack the table.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let is_as_left = self.left.as_ref().is_none_or(|left| *left == sizes);
        self.left = Some(sizes);
        Ok(std::mem::take(&mut self.was_disturbed) || !is_as_left)
    }

    fn has_extensions(&mut self, table: &str, words: &str) -> Result<bool, Error> {
        let chain = if table == "nat" { "POSTROUTING" } else { "INPUT" };
        match self.check(table, chain, words) {
            Ok(_) => Ok(true),
            Err(error) if error.is_unsupported() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_waited_for_once_and_then_not_for_as_long_again() {
        const LONGEST: Duration = Duration::from_secs(5);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let patience = Patience::default();
        let other_family = patience.clone();
        assert_eq!(patience.wait(LONGEST, at(0)), LONGEST);
        patience.refused(at(5));
        // What else the sync changes, in this family and in the other.
        for seconds in [5, 6, 9] {
            assert_eq!(patience.wait(LONGEST, at(seconds)), Duration::ZERO);
            assert_eq!(other_family.wait(LONGEST, at(seconds)), Duration::ZERO);
        }
        assert_eq!(other_family.wait(LONGEST, at(10)), LONGEST);
        other_family.refused(at(15));
        assert_eq!(patience.wait(LONGEST, at(19)), Duration::ZERO);
    }

    #[test]
    fn nf_tables_without_a_family_that_the_legacy_back_end_has_is_not_chosen() {
        for (nft, legacy, expected) in
            [(0, 0, false), (0, 2, false), (1, 0, true), (1, 1, true), (1, 2, false)]
        {
            let families = |back_end| if back_end == BackEnd::Nft { nft } else { legacy };
            assert_eq!(has_nft(families), expected, "{nft} {legacy}");
        }
        // Where it has all, the other one is not asked, which would make its tables.
        assert!(has_nft(|back_end| {
            assert_eq!(back_end, BackEnd::Nft);
            2
        }));
    }
}
