//! Addresses of this namespace's devices, by rtnetlink: listed once, then heard of; bound and unbound many in a message.
//!
//! Numbers are those of `linux/rtnetlink.h`, `linux/if_addr.h` and `linux/if_link.h`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::{Flags, Message, Messages};
use sluicegate_netlink::{Batch, DecodeError, Error, KernelError, Transport, Wait, dump, exchange};

use crate::model::Family;
use crate::plan::ipvs::{Change, DEVICE, Planner, prefix};

/// The devices' addresses, as they are known.
#[derive(Debug)]
pub(super) struct Links<T> {
    transport: T,
    /// Joined to the groups of addresses.
    events: Option<T>,
    /// The number of our device.
    device: Option<u32>,
    addresses: BTreeSet<(u32, IpAddr)>,
    known: bool,
    /// Our device has not what we gave it.
    disturbed: [bool; 2],
}

/// The groups of `linux/rtnetlink.h` that tell of addresses (`RTNLGRP_IPV4_IFADDR`, `RTNLGRP_IPV6_IFADDR`).
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

    /// Takes note of what changed since the last call; lists everything where that cannot be told.
    pub(super) fn refresh(&mut self) -> Result<(), Error> {
        let mut buffer = Vec::new();
        while let Some(events) = &mut self.events {
            match events.receive(&mut buffer, Wait::No) {
                Ok(true) => {
                    for message in Messages::new(&buffer) {
                        self.hear(message?)?;
                    }
                }
                Ok(false) => break,
                Err(Error::Overrun) => self.known = false,
                Err(error) => return Err(error),
            }
        }
        if self.known && self.events.is_some() { Ok(()) } else { self.list() }
    }

    /// Lists everything.
    pub(super) fn list(&mut self) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.message(GET_ADDRESS, Flags::REQUEST | Flags::DUMP, 0).raw(&[0; 8]);
        let found = dump(&mut self.transport, &batch, |message| Ok(address(message)?))?;
        self.addresses = found.into_iter().collect();
        self.device = self.find()?;
        self.known = true;
        Ok(())
    }

    /// The addresses of our device.
    pub(super) fn ours(&self, family: Family) -> BTreeSet<IpAddr> {
        let ours = self.addresses.iter().filter(|(index, _)| Some(*index) == self.device).map(|(_, ip)| *ip);
        // The kernel's own, if somebody sets the device up.
        let link_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        ours.filter(|ip| Family::of(*ip) == family && !link_local(ip)).collect()
    }

    /// The addresses of all other devices.
    pub(super) fn others(&self) -> Vec<IpAddr> {
        let others = self.addresses.iter().filter(|(index, _)| Some(*index) != self.device);
        others.map(|(_, ip)| *ip).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Adds to a change what somebody else did to our device since the last call.
    pub(super) fn mend(&mut self, planner: &Planner, change: &mut Change) {
        let family = planner.family();
        if !std::mem::take(&mut self.disturbed[family as usize]) {
            return;
        }
        let bound = self.ours(family);
        change.bind = planner.addresses().filter(|ip| !bound.contains(ip)).collect();
        change.unbind = bound.into_iter().filter(|ip| !planner.wants_address(*ip)).collect();
    }

    /// Binds addresses to our device, which is made if it is not there.
    pub(super) fn bind(&mut self, ips: &[IpAddr]) -> Result<(), Error> {
        if ips.is_empty() {
            return Ok(());
        }
        let device = match self.device {
            Some(device) => device,
            None => self.make()?,
        };
        self.change(NEW_ADDRESS, Flags::CREATE | Flags::EXCL, device, ips, |error| error.code == EXISTS)?;
        self.addresses.extend(ips.iter().map(|ip| (device, *ip)));
        Ok(())
    }

    /// Unbinds them; one that is not bound is no error.
    pub(super) fn unbind(&mut self, ips: &[IpAddr]) -> Result<(), Error> {
        let Some(device) = self.device else { return Ok(()) };
        self.change(DEL_ADDRESS, Flags::empty(), device, ips, |error| error.code == NO_SUCH_ADDRESS)?;
        for ip in ips {
            self.addresses.remove(&(device, *ip));
        }
        Ok(())
    }

    /// Deletes our device with its addresses; false when there is none.
    pub(super) fn remove(&mut self) -> Result<bool, Error> {
        let Some(device) = self.find()? else { return Ok(false) };
        let mut batch = Batch::new();
        batch.message(DEL_LINK, Flags::REQUEST | Flags::ACK, 0).raw(&link_header(device));
        self.tell(&batch)?;
        (self.device, self.known) = (None, false);
        Ok(true)
    }

    fn hear(&mut self, message: Message<'_>) -> Result<(), Error> {
        if let Some(held) = address(message)? {
            // What we did ourselves is noted already.
            let news = match message.header.kind {
                NEW_ADDRESS => self.addresses.insert(held),
                _ => self.addresses.remove(&held),
            };
            self.disturbed[Family::of(held.1) as usize] |= news && Some(held.0) == self.device;
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
        let made = self.tell(&batch);
        self.device = self.find()?;
        match (made, self.device) {
            // Somebody else made it meanwhile.
            (_, Some(device)) => Ok(device),
            (Err(error), None) => Err(error),
            (Ok(()), None) => Err(Error::Kernel(KernelError::new(0, NO_SUCH_DEVICE))),
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
            Some(error) if error.code == NO_SUCH_DEVICE => Ok(None),
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
                    IpAddr::V4(v4) => (Family::V4, &v4.octets()),
                    IpAddr::V6(v6) => (Family::V6, &v6.octets()),
                };
                message.raw(&[af(family), prefix(family), NO_DAD, 0]);
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

    fn tell(&mut self, batch: &Batch) -> Result<(), Error> {
        let report = exchange(&mut self.transport, &[batch], |_| Ok(()))?;
        report.errors.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Device and address of a message about an address; none in other messages.
fn address(message: Message<'_>) -> Result<Option<(u32, IpAddr)>, DecodeError> {
    if ![NEW_ADDRESS, DEL_ADDRESS].contains(&message.header.kind) {
        return Ok(None);
    }
    let Some((header, rest)) = message.payload.split_first_chunk::<8>() else { return Ok(None) };
    let [.., i0, i1, i2, i3] = *header;
    // Of a point-to-point link, the second one is the far end.
    let attribute = match Attributes::new(rest).find(LOCAL)? {
        Some(attribute) => Some(attribute),
        None => Attributes::new(rest).find(ADDRESS)?,
    };
    let Some(attribute) = attribute else { return Ok(None) };
    let ip = match attribute.array::<4>() {
        Ok(octets) => IpAddr::from(octets),
        Err(_) => IpAddr::from(attribute.array::<16>()?),
    };
    Ok(Some((u32::from_ne_bytes([i0, i1, i2, i3]), ip)))
}

/// `struct ifinfomsg`
fn link_header(index: u32) -> [u8; 16] {
    let mut header = [0; 16];
    for (to, from) in header.iter_mut().skip(4).zip(index.to_ne_bytes()) {
        *to = from;
    }
    header
}

const fn af(family: Family) -> u8 {
    match family {
        Family::V4 => 2,
        Family::V6 => 10,
    }
}

const NEW_LINK: u16 = 16;
const DEL_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const DEL_ADDRESS: u16 = 21;
const GET_ADDRESS: u16 = 22;
/// `IFA_ADDRESS`
const ADDRESS: u16 = 1;
/// `IFA_LOCAL`
const LOCAL: u16 = 2;
/// `IFA_F_NODAD`: nobody else on a link without links.
const NO_DAD: u8 = 2;
/// `IFLA_IFNAME`
const LINK_NAME: u16 = 3;
/// `IFLA_LINKINFO`
const LINK_INFO: u16 = 18;
/// `IFLA_INFO_KIND`
const INFO_KIND: u16 = 1;
/// `EEXIST`
const EXISTS: i32 = 17;
/// `ENODEV`
const NO_SUCH_DEVICE: i32 = 19;
/// `EADDRNOTAVAIL`
const NO_SUCH_ADDRESS: i32 = 99;
/// Addresses in one datagram: refusals of so many fit any receive buffer.
const AT_ONCE: usize = 512;
