//! ipset's sets by name and by number: `struct ip_set_req_*` of `linux/netfilter/ipset/ip_set.h`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use sluicegate_iptables_save::Family;
use sluicegate_netlink::Errno;

use super::socket::{Get, Socket};
use crate::extension::wire::{Reader, Writer};
use crate::extension::{SetMismatch, Sets};

/// The sets of a network namespace.
#[derive(Debug)]
pub(crate) struct KernelSets {
    socket: Socket,
    version: Cell<Option<u32>>,
    /// Names of numbers that were asked for since the last [`forget`](Self::forget): a set keeps its number
    /// only for as long as a rule uses it.
    names: RefCell<HashMap<u16, String>>,
}

impl KernelSets {
    pub(crate) fn open() -> Result<Self, Errno> {
        let socket = Socket::open(Family::Ipv4)?;
        Ok(Self { socket, version: Cell::new(None), names: RefCell::default() })
    }

    /// Forgets the names, before rules are read that may have other sets of the same numbers.
    pub(crate) fn forget(&self) {
        self.names.borrow_mut().clear();
    }

    /// Returns the version of the protocol, which every request has to have.
    fn version(&self) -> Result<u32, Errno> {
        if let Some(version) = self.version.get() {
            return Ok(version);
        }
        let mut request = Writer::default();
        request.u32(VERSION);
        request.u32(0);
        let mut buffer = request.finish();
        self.socket.get(Get::IpSet, &mut buffer)?;
        let version = Reader::new(buffer.get(4..).unwrap_or_default()).u32().ok_or(Errno::EINVAL)?;
        self.version.set(Some(version));
        Ok(version)
    }

    /// Asks for the number and the family of a set.
    fn ask(&self, name: &str) -> Result<(u16, u32), Errno> {
        let mut request = Writer::default();
        request.u32(GET_FNAME);
        request.u32(self.version()?);
        request.u32(0);
        request.text(name, 32).map_err(|_| Errno::ENOENT)?;
        let mut buffer = request.finish();
        self.socket.get(Get::IpSet, &mut buffer)?;
        let mut answer = Reader::new(buffer.get(8..).unwrap_or_default());
        answer.u32().zip(answer.u16()).map(|(family, index)| (index, family)).ok_or(Errno::EINVAL)
    }
}

impl Sets for KernelSets {
    fn index(&self, name: &str, family: Family) -> Result<u16, SetMismatch> {
        let name_of = || name.to_owned();
        let (index, set_family) = match self.ask(name) {
            Ok(answer) => answer,
            Err(super::ENOPROTOOPT) => return Err(SetMismatch::NoIpset),
            Err(errno) => return Err(SetMismatch::Refused { name: name_of(), errno }),
        };
        if index == u16::MAX {
            return Err(SetMismatch::Missing { name: name_of() });
        }
        let (wanted, text) = if family == Family::Ipv4 { (2, "IPv4") } else { (10, "IPv6") };
        if set_family != 0 && set_family != wanted {
            return Err(SetMismatch::Family { name: name_of(), family: text });
        }
        Ok(index)
    }

    fn name(&self, index: u16) -> Option<String> {
        if let Some(name) = self.names.borrow().get(&index) {
            return Some(name.clone());
        }
        let mut request = Writer::default();
        request.u32(GET_BYINDEX);
        request.u32(self.version().ok()?);
        request.u16(index);
        request.zeros(30);
        let mut buffer = request.finish();
        self.socket.get(Get::IpSet, &mut buffer).ok()?;
        let name = Reader::new(buffer.get(8..)?).text(32).filter(|name| !name.is_empty())?;
        self.names.borrow_mut().insert(index, name.clone());
        Some(name)
    }
}

/// `IP_SET_OP_VERSION`
const VERSION: u32 = 0x100;
/// `IP_SET_OP_GET_FNAME`
const GET_FNAME: u32 = 8;
/// `IP_SET_OP_GET_BYINDEX`
const GET_BYINDEX: u32 = 7;
