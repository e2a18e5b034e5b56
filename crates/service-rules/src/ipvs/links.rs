//! The addresses of this namespace's devices, by rtnetlink: they are listed once and then updated by events.
//! Many addresses are bound and unbound in one datagram.
//!
//! Numbers are those of `linux/rtnetlink.h`, `linux/if_addr.h` and `linux/if_link.h`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use sluicegate_netlink::message::{Flags, Message, Messages};
use sluicegate_netlink::{Batch, Errno, Error, KernelError, Transport, Wait, exchange};
use sluicegate_services::Family;

use super::change::prefix;
use super::{Change, DEVICE, Planner};
use crate::addresses::{self, ADDRESS, DEL_ADDRESS, LOCAL, NEW_ADDRESS};

/// The known addresses of the devices.
#[derive(Debug)]
pub(super) struct Links<T> {
    transport: T,
    /// The transport that has joined the groups of address events.
    events: Option<T>,
    /// The number of our device.
    device: Option<u32>,
    addresses: BTreeSet<(u32, IpAddr)>,
    known: bool,
    /// Whether another program has changed the addresses of our device, by family.
    disturbed: [bool; 2],
}

/// The multicast groups for address events (`RTNLGRP_IPV4_IFADDR`, `RTNLGRP_IPV6_IFADDR`, linux/rtnetlink.h).
pub(super) const GROUPS: [u32; 2] = [5, 9];

impl<T: Transport> Links<T> {
    pub(super) fn new(transport: T, events: Option<T>) -> Self {
        Self {
            transport,
            events,
            device: None,
            addresses: BTreeSet::new(),
            known: false,
            disturbed: [false; 2],
        }
    }

    /// Updates the addresses from the events since the last call, or from a listing where events are lost or
    /// not received.
    pub(super) fn refresh(&mut self) -> Result<(), Error> {
        let mut buffer = Vec::new();
        // Addresses may change faster than they are read here. A listing has what the events left have.
        let mut left = MOST_EVENTS;
        while let Some(events) = &mut self.events {
            let Some(fewer) = left.checked_sub(1) else {
                self.known = false;
                break;
            };
            left = fewer;
            match events.receive(&mut buffer, Wait::No) {
                Ok(true) => {
                    for message in Messages::new(&buffer) {
                        self.note_event(message?)?;
                    }
                }
                Ok(false) => break,
                Err(Error::Overrun) => self.known = false,
                Err(error) => return Err(error),
            }
        }
        if self.known && self.events.is_some() { Ok(()) } else { self.list() }
    }

    /// Lists all addresses and finds our device.
    pub(super) fn list(&mut self) -> Result<(), Error> {
        self.addresses = addresses::list(&mut self.transport)?.into_iter().collect();
        self.device = self.find()?;
        self.known = true;
        Ok(())
    }

    /// Returns the addresses of our device.
    pub(super) fn ours(&self, family: Family) -> BTreeSet<IpAddr> {
        let ours = self.addresses.iter().filter(|(index, _)| Some(*index) == self.device).map(|(_, ip)| *ip);
        // The kernel adds link-local addresses if the device is set up.
        let link_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        ours.filter(|ip| Family::of(*ip) == family && !link_local(ip)).collect()
    }

    /// Returns the addresses of all other devices.
    pub(super) fn others(&self) -> Vec<IpAddr> {
        let others = self.addresses.iter().filter(|(index, _)| Some(*index) != self.device);
        others.map(|(_, ip)| *ip).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Adds the repair of other programs' changes to our device since the last call to a change.
    pub(super) fn repair(&mut self, planner: &Planner, change: &mut Change) {
        let family = planner.family();
        if !std::mem::take(&mut self.disturbed[family as usize]) {
            return;
        }
        let bound = self.ours(family);
        change.bind = planner.addresses().filter(|ip| !bound.contains(ip)).collect();
        change.unbind = bound.into_iter().filter(|ip| !planner.wants_address(*ip)).collect();
    }

    /// Binds addresses to our device, which is created if it does not exist.
    pub(super) fn bind(&mut self, ips: &[IpAddr]) -> Result<(), Error> {
        if ips.is_empty() {
            return Ok(());
        }
        let device = match self.device {
            Some(device) => device,
            None => self.make()?,
        };
        self.change(NEW_ADDRESS, Flags::CREATE | Flags::EXCL, device, ips, |error| {
            error.errno == Errno::EEXIST
        })?;
        self.addresses.extend(ips.iter().map(|ip| (device, *ip)));
        Ok(())
    }

    /// Unbinds the addresses; one that is not bound is not an error.
    pub(super) fn unbind(&mut self, ips: &[IpAddr]) -> Result<(), Error> {
        let Some(device) = self.device else { return Ok(()) };
        self.change(DEL_ADDRESS, Flags::empty(), device, ips, |error| error.errno == Errno::EADDRNOTAVAIL)?;
        for ip in ips {
            self.addresses.remove(&(device, *ip));
        }
        Ok(())
    }

    /// Deletes our device with its addresses. Returns false if it does not exist.
    pub(super) fn remove(&mut self) -> Result<bool, Error> {
        let Some(device) = self.find()? else { return Ok(false) };
        let mut batch = Batch::new();
        batch.message(DEL_LINK, Flags::REQUEST | Flags::ACK, 0).raw(&link_header(device));
        self.request(&batch)?;
        (self.device, self.known) = (None, false);
        Ok(true)
    }

    fn note_event(&mut self, message: Message<'_>) -> Result<(), Error> {
        if let Some(entry) = addresses::decode(message)? {
            // Our own changes are recorded already.
            let news = match message.header.kind {
                NEW_ADDRESS => self.addresses.insert(entry),
                _ => self.addresses.remove(&entry),
            };
            self.disturbed[Family::of(entry.1) as usize] |= news && Some(entry.0) == self.device;
        }
        Ok(())
    }

    fn make(&mut self) -> Result<u32, Error> {
        let mut batch = Batch::new();
        let flags = Flags::REQUEST | Flags::ACK | Flags::CREATE | Flags::EXCL;
        let mut message = batch.message(NEW_LINK, flags, 0);
        message.raw(&link_header(0));
        message.put_str(LINK_NAME, DEVICE);
        message.nest(LINK_INFO).put_str(INFO_KIND, "dummy");
        drop(message);
        let made = self.request(&batch);
        self.device = self.find()?;
        match (made, self.device) {
            // Another program created it meanwhile.
            (_, Some(device)) => Ok(device),
            (Err(error), None) => Err(error),
            (Ok(()), None) => Err(Error::Kernel(KernelError::new(0, Errno::ENODEV))),
        }
    }

    fn find(&mut self) -> Result<Option<u32>, Error> {
        let mut batch = Batch::new();
        let mut message = batch.message(GET_LINK, Flags::REQUEST | Flags::ACK, 0);
        message.raw(&link_header(0));
        message.put_str(LINK_NAME, DEVICE);
        drop(message);
        let mut found = None;
        let report = exchange(&mut self.transport, &[&batch], |message| {
            found = message.payload.get(4..8).and_then(|bytes| bytes.first_chunk()).copied();
            Ok(())
        })?;
        match report.errors.into_iter().next() {
            Some(error) if error.errno == Errno::ENODEV => Ok(None),
            Some(error) => Err(error.into()),
            None => Ok(found.map(u32::from_ne_bytes)),
        }
    }

    fn change(
        &mut self,
        kind: u16,
        flags: Flags,
        device: u32,
        ips: &[IpAddr],
        harmless: impl Fn(&KernelError) -> bool,
    ) -> Result<(), Error> {
        for part in ips.chunks(AT_ONCE) {
            let mut batch = Batch::new();
            for (at, ip) in part.iter().enumerate() {
                let last = if at + 1 == part.len() { Flags::ACK } else { Flags::empty() };
                let mut message = batch.message(kind, Flags::REQUEST | flags | last, 0);
                let (family, attribute): (Family, &[u8]) = match ip {
                    IpAddr::V4(v4) => (Family::Ipv4, &v4.octets()),
                    IpAddr::V6(v6) => (Family::Ipv6, &v6.octets()),
                };
                message.raw(&[address_family(family), prefix(family), NO_DAD, 0]);
                message.raw(&device.to_ne_bytes());
                message.put(LOCAL, attribute);
                message.put(ADDRESS, attribute);
            }
            let report = exchange(&mut self.transport, &[&batch], |_| Ok(()))?;
            if report.lost {
                return Err(Error::Overrun);
            }
            if let Some(error) = report.errors.into_iter().find(|error| !harmless(error)) {
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn request(&mut self, batch: &Batch) -> Result<(), Error> {
        let report = exchange(&mut self.transport, &[batch], |_| Ok(()))?;
        report.errors.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// `struct ifinfomsg`
fn link_header(index: u32) -> [u8; 16] {
    let mut header = [0; 16];
    for (to, from) in header.iter_mut().skip(4).zip(index.to_ne_bytes()) {
        *to = from;
    }
    header
}

const fn address_family(family: Family) -> u8 {
    match family {
        Family::Ipv4 => 2,
        Family::Ipv6 => 10,
    }
}

const NEW_LINK: u16 = 16;
const DEL_LINK: u16 = 17;
const GET_LINK: u16 = 18;
/// `IFA_F_NODAD`: a dummy device has no neighbours that could use the same address.
const NO_DAD: u8 = 2;
/// `IFLA_IFNAME`
const LINK_NAME: u16 = 3;
/// `IFLA_LINKINFO`
const LINK_INFO: u16 = 18;
/// `IFLA_INFO_KIND`
const INFO_KIND: u16 = 1;
/// Datagrams of events that one sync reads.
const MOST_EVENTS: u32 = 1 << 16;
/// The number of addresses in a datagram. Any receive buffer has room for this number of refusals.
const AT_ONCE: usize = 512;
