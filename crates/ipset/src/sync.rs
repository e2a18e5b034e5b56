//! Synchronises whole sets: replaces the entries atomically, or changes only those that differ.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use sluicegate_netlink::Transport;

use crate::{
    Client, Comment, CreateOptions, Element, Entry, EntryOptions, Error, Exist, Reason, SetName, SetSpec,
    SetType, SkbMark, SkbPrio,
};

/// The result of [`Client::sync`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Whether the set was created.
    pub created: bool,
    /// The number of entries that were added or got other options.
    pub added: usize,
    /// The number of entries that were deleted.
    pub deleted: usize,
}

impl Changes {
    /// Returns true when nothing had to be changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The additions and deletions that change a set to the wanted entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Wanted entries that the set does not have, or has with other options.
    pub add: Vec<Entry>,
    /// Entries of the set that are not wanted.
    pub delete: Vec<Entry>,
}

impl Difference {
    /// Compares the wanted entries with those of a set.
    ///
    /// `set` are the options of the set, whose masks determine the stored elements ([`Entry::stored`]). Two
    /// entries are equal if the set stores the same element for them. Timeouts and counters are compared only
    /// if the wanted entry has them. As a timeout runs down, a wanted entry with one is added again, and so
    /// refreshed, each time. Of two wanted entries with the same element the later one counts, as for the
    /// kernel.
    ///
    /// # Errors
    /// Those of [`Entry::stored`].
    pub fn between(wanted: &[Entry], present: &[Entry], set: &CreateOptions) -> Result<Self, Reason> {
        let there: HashMap<Element, &Entry> = present.iter().map(|entry| (key(entry), entry)).collect();
        let mut places = HashMap::with_capacity(wanted.len());
        let mut stored: Vec<Entry> = Vec::with_capacity(wanted.len());
        for entry in wanted {
            for entry in entry.stored(set)? {
                let place = *places.entry(key(&entry)).or_insert(stored.len());
                match stored.get_mut(place) {
                    Some(earlier) => *earlier = over(earlier, entry),
                    None => stored.push(entry),
                }
            }
        }
        let add = stored
            .into_iter()
            .filter(|entry| !there.get(&key(entry)).is_some_and(|present| serves(present, entry)));
        let add = add.collect();
        let delete = present.iter().filter(|entry| !places.contains_key(&key(entry))).cloned().collect();
        Ok(Self { add, delete })
    }
}

/// Returns the part of an entry that identifies it. A `bitmap:ip,mac` has one entry for each address,
/// whatever its MAC address is.
fn key(entry: &Entry) -> Element {
    match *entry.element() {
        Element::IpMac(address, _) if entry.set_type() == SetType::BitmapIpMac => {
            Element::IpMac(address, None)
        }
        element => element,
    }
}

/// Returns the entry of a set after `later` was added to a set with `earlier`, which has the same key. An
/// entry without a MAC address keeps that of the earlier one.
fn over(earlier: &Entry, later: Entry) -> Entry {
    match (earlier.element(), later.element()) {
        (mac @ Element::IpMac(_, Some(_)), Element::IpMac(_, None)) => later.at(*mac),
        _ => later,
    }
}

/// Returns whether an entry of the set satisfies the wanted entry.
fn serves(present: &Entry, wanted: &Entry) -> bool {
    // If no MAC address is wanted, the kernel takes that of the first packet: any is accepted.
    let any_mac = matches!(wanted.element(), Element::IpMac(_, None));
    (any_mac || present.element() == wanted.element()) && options_serve(present.options(), wanted.options())
}

fn options_serve(present: &EntryOptions, wanted: &EntryOptions) -> bool {
    fn asked<T: PartialEq + Copy>(present: Option<T>, wanted: Option<T>) -> bool {
        wanted.is_none() || present == wanted
    }
    asked(present.timeout, wanted.timeout)
        && asked(present.packets, wanted.packets)
        && asked(present.bytes, wanted.bytes)
        && present.nomatch == wanted.nomatch
        && present.wildcard == wanted.wildcard
        // The kernel does not report options that are empty or zero. Others that are not wanted are removed.
        && comment(present) == comment(wanted)
        && skbmark(present) == skbmark(wanted)
        && skbprio(present) == skbprio(wanted)
        && present.skbqueue.unwrap_or(0) == wanted.skbqueue.unwrap_or(0)
}

fn comment(options: &EntryOptions) -> Option<&Comment> {
    options.comment.as_ref().filter(|comment| !comment.is_empty())
}

fn skbmark(options: &EntryOptions) -> Option<SkbMark> {
    options.skbmark.filter(|mark| (mark.mark, mark.mask) != (0, 0))
}

fn skbprio(options: &EntryOptions) -> Option<SkbPrio> {
    options.skbprio.filter(|priority| (priority.major, priority.minor) != (0, 0))
}

impl<T: Transport> Client<T> {
    /// Replaces all entries of a set atomically: a rule that matches the set sees the old entries or the new
    /// ones. Creates the set if it does not exist.
    ///
    /// It fills a temporary set, swaps it with the set, and destroys it; its hash is sized for the entries.
    /// If a command fails before the swap, the set is unchanged and the temporary set is destroyed.
    ///
    /// # Errors
    /// Those of create, add and swap. [`Error::Different`] if the set exists with another type or family: the
    /// kernel cannot swap such sets. [`Error::Busy`] with the set's name if other programs list it for a
    /// second, so that it cannot be swapped; with the name of the temporary set if that, which has the old
    /// entries then, cannot be destroyed: the set is replaced, and the temporary set remains.
    pub fn replace(&mut self, spec: &SetSpec, entries: &[Entry]) -> Result<(), Error> {
        let set = spec.name();
        match self.header(set) {
            Ok(header) if (header.kind, header.family) == (spec.set_type(), spec.family()) => {}
            Ok(header) => return Err(different(spec, header.kind, header.family)),
            Err(error) if error.is_not_found() => return self.create_filled(spec, entries),
            Err(error) => return Err(error),
        }
        let temporary = self.create_temporary(&spec.clone().sized_for(entries.len()))?;
        let swapped =
            self.add(temporary, entries, Exist::Ignore).and_then(|()| self.swap_soon(temporary, set));
        if swapped.is_err() {
            // The first error is reported, not one of the clean-up.
            let _ = self.destroy_soon(temporary);
            return swapped;
        }
        self.destroy_soon(temporary)
    }

    /// Changes a set to the wanted entries with the fewest additions and deletions. Creates the set if it
    /// does not exist; the options of an existing set are not changed.
    ///
    /// Entries are added before others are deleted, unless there is no room for both. This is not a
    /// transaction: between the first and the last change the set has old and new entries.
    ///
    /// # Errors
    /// Those of create, list, add and del, and of [`Difference::between`]; [`Error::Different`] when the set
    /// exists with another type or family.
    pub fn sync(&mut self, spec: &SetSpec, entries: &[Entry]) -> Result<Changes, Error> {
        let set = spec.name();
        let listing = match self.list(Some(set)) {
            Ok(listings) => listings.into_iter().next(),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let Some(listing) = listing else {
            let difference = Difference::between(entries, &[], spec.options())?;
            self.create_filled(spec, &difference.add)?;
            return Ok(Changes { created: true, added: difference.add.len(), deleted: 0 });
        };
        let info = &listing.info;
        if (info.kind, info.family) != (spec.set_type(), spec.family()) {
            return Err(different(spec, info.kind, info.family));
        }
        let Difference { add, delete } = Difference::between(entries, &listing.entries, &info.options)?;
        let room = info.options.maxelem.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        if listing.entries.len().saturating_add(add.len()) > room {
            self.delete(set, &delete, Exist::Ignore)?;
            self.add(set, &add, Exist::Ignore)?;
        } else {
            self.add(set, &add, Exist::Ignore)?;
            self.delete(set, &delete, Exist::Ignore)?;
        }
        Ok(Changes { created: false, added: add.len(), deleted: delete.len() })
    }

    /// Creates a set with entries. If that fails, the set does not exist.
    fn create_filled(&mut self, spec: &SetSpec, entries: &[Entry]) -> Result<(), Error> {
        self.create(&spec.clone().sized_for(entries.len()), Exist::Fail)?;
        let filled = self.add(spec.name(), entries, Exist::Ignore);
        if filled.is_err() {
            let _ = self.destroy_soon(spec.name());
        }
        filled
    }

    /// Creates a set under a name that no other set has.
    fn create_temporary(&mut self, spec: &SetSpec) -> Result<SetName, Error> {
        for number in 0..TEMPORARY_NAMES {
            let name = temporary_name(spec.name(), number);
            match self.create(&spec.named(name), Exist::Fail) {
                Ok(()) => return Ok(name),
                Err(error) if error.is_already_exists() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Busy { set: temporary_name(spec.name(), 0), tries: TEMPORARY_NAMES })
    }

    /// Swaps two sets, one of which another program may be listing at the moment.
    fn swap_soon(&mut self, from: SetName, to: SetName) -> Result<(), Error> {
        unless_busy(to, || self.swap(from, to))
    }

    /// Destroys a set that no rule refers to, but that another program may be listing at the moment.
    fn destroy_soon(&mut self, set: SetName) -> Result<(), Error> {
        unless_busy(set, || self.destroy(set, Exist::Ignore))
    }
}

/// Repeats an attempt, with growing pauses, while the set is busy.
fn unless_busy(set: SetName, mut attempt: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    for number in 0..TRIES {
        match attempt() {
            Err(error) if error.is_busy() => thread::sleep(Duration::from_millis(1 << number.min(6))),
            other => return other,
        }
    }
    Err(Error::Busy { set, tries: TRIES })
}

fn different(spec: &SetSpec, kind: SetType, family: crate::Family) -> Error {
    Error::Different {
        set: spec.name(),
        found: format!("{kind} with family {family}"),
        wanted: format!("{} with family {}", spec.set_type(), spec.family()),
    }
}

/// Returns the set's name, shortened so that the number fits.
fn temporary_name(set: SetName, number: u32) -> SetName {
    let suffix = format!(".new{number}");
    let mut start = set.to_text().into_owned();
    while start.len() + suffix.len() > SetName::MAX {
        start.pop();
    }
    SetName::new(&format!("{start}{suffix}")).unwrap_or(set)
}

const TEMPORARY_NAMES: u32 = 16;
/// The number of attempts, which take about a second in all.
const TRIES: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comment, Family, Numeric};

    fn entries(kind: SetType, texts: &[&str]) -> Vec<Entry> {
        texts.iter().map(|text| Entry::parse(kind, Family::Ipv4, text, &Numeric).unwrap()).collect()
    }

    fn texts(entries: &[Entry]) -> Vec<String> {
        entries.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_entries_that_differ_are_changed() {
        let plain = CreateOptions::default();
        let wanted = entries(SetType::HashNet, &["10.0.0.0/8", "10.0.0.1", "11.0.0.0-11.0.0.2"]);
        // As the kernel lists them.
        let present = entries(SetType::HashNet, &["10.0.0.0/8", "11.0.0.0/31", "12.0.0.0/8"]);
        let difference = Difference::between(&wanted, &present, &plain).unwrap();
        assert_eq!(texts(&difference.add), ["10.0.0.1", "11.0.0.2"]);
        assert_eq!(texts(&difference.delete), ["12.0.0.0/8"]);
        assert_eq!(Difference::between(&present, &present, &plain).unwrap(), Difference::default());
    }

    #[test]
    fn only_wanted_options_are_compared() {
        let plain = CreateOptions::default();
        let [bare] = &entries(SetType::HashIp, &["1.1.1.1"])[..] else { panic!("one entry") };
        let with = |options: EntryOptions| bare.clone().with(options).unwrap();
        let counted = with(EntryOptions {
            packets: Some(5),
            bytes: Some(50),
            timeout: Some(7),
            ..EntryOptions::default()
        });
        let commented =
            with(EntryOptions { comment: Some(Comment::new("x").unwrap()), ..EntryOptions::default() });
        let add = |wanted: &Entry, present: &Entry| {
            let wanted = std::slice::from_ref(wanted);
            Difference::between(wanted, std::slice::from_ref(present), &plain).unwrap().add.len()
        };
        assert_eq!(add(bare, &counted), 0);
        assert_eq!(add(&counted, bare), 1);
        assert_eq!(add(&commented, bare), 1);
        assert_eq!(add(bare, &commented), 1);
        assert_eq!(add(&commented, &commented), 0);
    }

    #[test]
    fn a_temporary_name_fits() {
        for name in ["a", &"x".repeat(31), &"ä".repeat(15)] {
            let name = SetName::new(name).unwrap();
            let temporary = temporary_name(name, 15);
            assert_ne!(temporary, name);
            assert!(temporary.to_string().ends_with(".new15"));
        }
    }
}
