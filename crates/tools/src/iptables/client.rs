//! The tables of either back end.

use std::time::Duration;

use sluicegate_iptables_save::{Family, Save};
use sluicegate_xtables::legacy::{self, Lock, Restore};
use sluicegate_xtables::{BackEnd, Error, View, nft};

use super::choose::legacy_tables;

/// A client of either back end.
pub(super) enum Client {
    Nft(nft::Client),
    Legacy(legacy::Client),
}

impl Client {
    /// Opens one; `wait` is how many seconds the lock of the legacy back end is waited for, `None` for as long
    /// as it takes.
    pub(super) fn open(back_end: BackEnd, family: Family, wait: Option<u64>) -> Result<Self, Error> {
        match back_end {
            BackEnd::Nft => nft::Client::open(family).map(Self::Nft),
            BackEnd::Legacy => {
                let wait = Duration::from_secs(wait.unwrap_or(u64::from(u32::MAX)));
                let lock = Lock::default().wait(wait);
                Ok(Self::Legacy(legacy::Client::open(family)?.with_lock(lock)))
            }
        }
    }

    /// Returns the names of the tables to save, in the order of the tool. Tables of the legacy back end that
    /// nobody uses are not made.
    pub(super) fn tables(&self) -> Result<Vec<String>, Error> {
        match self {
            Self::Nft(client) => Ok(client.tables()?.into_iter().map(str::to_owned).collect()),
            Self::Legacy(client) => Ok(legacy_tables(client.family()).unwrap_or_default()),
        }
    }

    pub(super) fn view(&self, table: &str) -> Result<View, Error> {
        match self {
            Self::Nft(client) => client.view(table, true),
            Self::Legacy(client) => client.view(table, true),
        }
    }

    pub(super) fn view_chain(&self, table: &str, chain: &str) -> Result<Option<View>, Error> {
        match self {
            Self::Nft(client) => client.view_chain(table, chain, true),
            Self::Legacy(client) => client.view_chain(table, chain, true),
        }
    }

    pub(super) fn restore(&self, input: &Save<'_>, how: Restore) -> Result<(), Error> {
        match self {
            Self::Nft(client) => client.restore(input, how),
            Self::Legacy(client) => client.restore(input, how).map(drop),
        }
    }

    pub(super) fn test(&self, input: &Save<'_>, how: Restore) -> Result<(), Error> {
        match self {
            Self::Nft(client) => client.test(input, how),
            Self::Legacy(client) => client.test(input, how),
        }
    }

    pub(super) fn check(&self, table: &str, chain: &str, words: &str) -> Result<bool, Error> {
        match self {
            Self::Nft(client) => client.check(table, chain, words),
            Self::Legacy(client) => client.check(table, chain, words),
        }
    }
}
