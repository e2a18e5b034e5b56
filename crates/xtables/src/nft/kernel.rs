//! Questions to the kernel: revisions of extensions, and the parts of tables that a change names.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sluicegate_iptables_save::Family;
use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, Errno, NetlinkFamily, Options, Socket, exchange};
use sluicegate_nftables::{ChainId, Name, read};

use super::builtin::table_id;
use super::list::have_links;
use super::state::{Known, KnownChain, KnownTable, OldRule, old_rule};
use crate::Error;
use crate::extension::{Kind, Revisions, Sets};
use crate::legacy::KernelSets;
use crate::rule::Kernel;

/// The kernel, and what it was asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) family: Family,
    pub(super) socket: RefCell<Socket>,
    sets: KernelSets,
    revisions: RefCell<Revisions>,
    known: RefCell<Known>,
}

impl Asked {
    pub(super) fn open(family: Family) -> Result<Self, Error> {
        let socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
        let sets = KernelSets::open().map_err(|errno| Error::Socket { family: Family::Ipv4, errno })?;
        Ok(Self {
            family,
            socket: RefCell::new(socket),
            sets,
            revisions: RefCell::default(),
            known: RefCell::default(),
        })
    }

    /// Asks `nft_compat` for a revision (`enum nfnl_compat_attr`, `linux/netfilter/nf_tables_compat.h`).
    pub(super) fn has_revision(&self, kind: Kind, name: &str, revision: u8) -> Result<bool, Error> {
        if let Some(found) = self.revisions.borrow().get(kind, name, revision) {
            return Ok(found);
        }
        let mut batch = Batch::new();
        let family = table_id(self.family, "").family.0;
        let mut request = batch.netfilter(NFNL_SUBSYS_NFT_COMPAT, NFNL_MSG_COMPAT_GET, Flags::ACK, family, 0);
        request.put_str(NFTA_COMPAT_NAME, name);
        request.put_be32(NFTA_COMPAT_REV, revision.into());
        request.put_be32(NFTA_COMPAT_TYPE, u32::from(kind == Kind::Target));
        drop(request);
        let report = exchange(&mut *self.socket.borrow_mut(), &[&batch], |_| Ok(()))?;
        let found = match report.errors.into_iter().next() {
            None => true,
            Some(error) if matches!(error.errno, Errno::ENOENT | Errno::EPROTONOSUPPORT) => false,
            Some(error) => return Err(sluicegate_netlink::Error::from(error).into()),
        };
        self.revisions.borrow_mut().insert(kind, name, revision, found);
        Ok(found)
    }

    /// Forgets the names of sets, which a long-lived client would print for others of their numbers.
    pub(super) fn forget_sets(&self) {
        self.sets.forget();
    }

    pub(super) fn generation(&self) -> Result<u32, Error> {
        Ok(read::generation(&mut *self.socket.borrow_mut())?.id)
    }

    /// Asks for the generation, and forgets what is known of another one.
    pub(super) fn refresh(&self) -> Result<u32, Error> {
        let generation = self.generation()?;
        let mut known = self.known.borrow_mut();
        if known.generation != Some(generation) {
            self.sets.forget();
            *known = Known { generation: Some(generation), ..Known::default() };
        }
        Ok(generation)
    }

    pub(super) fn forget(&self) {
        self.sets.forget();
        *self.known.borrow_mut() = Known::default();
    }

    /// Notes the generation that a batch of ours made, and changes what is known accordingly.
    pub(super) fn follow(&self, generation: u32, change: impl FnOnce(&mut HashMap<String, KnownTable>)) {
        let mut known = self.known.borrow_mut();
        known.generation = Some(generation);
        change(&mut known.tables);
    }

    pub(super) fn table_exists(&self, table: &str) -> Result<bool, Error> {
        if let Some(known) = self.known.borrow().tables.get(table) {
            return Ok(known.exists);
        }
        let found = read::table(&mut *self.socket.borrow_mut(), &table_id(self.family, table))?;
        let exists = found.is_some();
        let known = KnownTable { exists, whole: !exists, chains: HashMap::new() };
        self.known.borrow_mut().tables.insert(table.to_owned(), known);
        Ok(exists)
    }

    /// Returns a chain, if there is one.
    pub(super) fn chain(&self, table: &str, name: &str) -> Result<Option<KnownChain>, Error> {
        if !self.table_exists(table)? {
            return Ok(None);
        }
        if let Some(known) = self.known.borrow().tables.get(table) {
            match known.chains.get(name) {
                Some(chain) => return Ok(chain.clone()),
                None if known.whole => return Ok(None),
                None => (),
            }
        }
        let found = read::chain(&mut *self.socket.borrow_mut(), &self.chain_id(table, name))?;
        let found = found.as_ref().map(known_chain);
        if let Some(known) = self.known.borrow_mut().tables.get_mut(table) {
            known.chains.insert(name.to_owned(), found.clone());
        }
        Ok(found)
    }

    /// Reads all chains of a table in one go.
    pub(super) fn read_chains(&self, table: &str) -> Result<(), Error> {
        if !self.table_exists(table)?
            || self.known.borrow().tables.get(table).is_some_and(|known| known.whole)
        {
            return Ok(());
        }
        let chains = read::chains(&mut *self.socket.borrow_mut(), table_id(self.family, table))?;
        if let Some(known) = self.known.borrow_mut().tables.get_mut(table) {
            for chain in &chains {
                let place = known.chains.entry(chain.name.as_str().to_owned()).or_default();
                *place = Some(place.take().unwrap_or_else(|| known_chain(chain)));
            }
            known.whole = true;
        }
        Ok(())
    }

    /// Returns the names of all chains of a table.
    pub(super) fn chain_names(&self, table: &str) -> Result<Vec<String>, Error> {
        self.read_chains(table)?;
        let known = self.known.borrow();
        let chains = known.tables.get(table).map(|known| known.chains.iter());
        let existing = chains.into_iter().flatten().filter(|(_, chain)| chain.is_some());
        Ok(existing.map(|(name, _)| name.clone()).collect())
    }

    /// Returns the rules of a chain that exists.
    pub(super) fn rules(&self, table: &str, chain: &str) -> Result<Arc<Vec<Arc<OldRule>>>, Error> {
        let known = self.chain(table, chain)?.and_then(|chain| chain.rules);
        if let Some(rules) = known {
            return Ok(rules);
        }
        let rules = self.raw_rules(table, chain)?;
        let links = if have_links(&rules) { self.links()? } else { BTreeMap::new() };
        let name = |index| links.get(&index).cloned();
        let rules = rules.iter().map(|rule| Arc::new(old_rule(rule, self.family, &name))).collect();
        let rules = Arc::new(rules);
        let mut known = self.known.borrow_mut();
        let place = known.tables.get_mut(table).and_then(|known| known.chains.get_mut(chain)?.as_mut());
        if let Some(place) = place {
            place.rules = Some(Arc::clone(&rules));
        }
        Ok(rules)
    }

    /// Returns the rules of a chain with their expressions and counters.
    pub(super) fn raw_rules(&self, table: &str, chain: &str) -> Result<Vec<read::Rule>, Error> {
        Ok(read::chain_rules(&mut *self.socket.borrow_mut(), &self.chain_id(table, chain))?)
    }

    /// Returns the names of the interfaces by their numbers.
    pub(super) fn links(&self) -> Result<BTreeMap<u32, String>, Error> {
        let mut socket = Socket::open(NetlinkFamily::ROUTE, &Options::default())?;
        let links = read::interfaces(&mut socket)?;
        Ok(links.into_iter().map(|(index, name)| (index, name.as_str().to_owned())).collect())
    }

    /// Returns the handle of a chain, and the number of its rules and of the jumps to it.
    pub(super) fn handle_and_uses(&self, table: &str, chain: &str) -> Result<(u64, u32), Error> {
        let found = read::chain(&mut *self.socket.borrow_mut(), &self.chain_id(table, chain))?;
        Ok(found.map_or((0, 0), |chain| (chain.handle, chain.uses)))
    }

    pub(super) fn chain_id(&self, table: &str, name: &str) -> ChainId {
        table_id(self.family, table).chain(Name::from_kernel(name))
    }
}

impl Kernel for Asked {
    fn has(&self, kind: Kind, name: &str, revision: u8) -> bool {
        self.has_revision(kind, name, revision).unwrap_or(false)
    }

    fn sets(&self) -> &dyn Sets {
        &self.sets
    }
}

fn known_chain(chain: &read::Chain) -> KnownChain {
    let is_accepting = chain.policy.is_none_or(|policy| policy == NF_ACCEPT);
    KnownChain { is_base: chain.hook.is_some(), is_accepting, rules: None }
}

/// `NF_ACCEPT` (`linux/netfilter.h`)
pub(super) const NF_ACCEPT: u32 = 1;
/// `NFNL_SUBSYS_NFT_COMPAT` (`linux/netfilter/nfnetlink.h`)
const NFNL_SUBSYS_NFT_COMPAT: u8 = 11;
/// `NFNL_MSG_COMPAT_GET`
const NFNL_MSG_COMPAT_GET: u8 = 0;
/// `NFTA_COMPAT_NAME`
const NFTA_COMPAT_NAME: u16 = 1;
/// `NFTA_COMPAT_REV`
const NFTA_COMPAT_REV: u16 = 2;
/// `NFTA_COMPAT_TYPE`: 0 for a match, 1 for a target.
const NFTA_COMPAT_TYPE: u16 = 3;
