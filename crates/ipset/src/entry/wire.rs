//! Entries in messages: the content of one DATA attribute.

use std::net::IpAddr;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attributes, Writer};

use super::{Comment, Element, Entry, EntryOptions, Interface, Mac, Place, SkbMark, SkbPrio};
use crate::set_type::Part;
use crate::wire::{Flags, Put, adt, data, read_address};
use crate::{Addresses, Family, Port, Protocol, SetName, SetType};

/// Writes an element and its options, in the order of libipset: by attribute number.
pub(crate) fn write(w: &mut Writer<'_>, entry: &Entry) {
    let (element, options) = (&entry.element, entry.options());
    let (first, second) = element_addresses(element);
    if let Some(first) = first {
        put_addresses(w, first, (data::IP, data::IP_TO, data::CIDR));
    }
    let port = match element {
        Element::IpPort(_, port) | Element::IpPortIp(_, port, _) => Some(*port),
        _ => None,
    };
    if let Some(port) = port {
        put_ports(w, port.from, port.to);
    } else if let Element::Port(from, to) = element {
        put_ports(w, *from, *to);
    }
    if let Some(timeout) = options.timeout {
        w.net32(data::TIMEOUT, timeout);
    }
    if let Some(port) = port {
        w.put_u8(data::PROTO, port.protocol.0);
    }
    let flags = flags(element, options);
    if !flags.is_empty() {
        w.net32(data::CADT_FLAGS, flags.bits());
    }
    write_rest(w, element, second);
    // One test for all options, as most entries have none.
    if options.packets.is_some()
        || options.bytes.is_some()
        || options.comment.is_some()
        || has_skbinfo(options)
    {
        write_extensions(w, options);
    }
}

/// Reads the content of a DATA attribute of a set with this type and family.
pub(crate) fn read(kind: SetType, family: Family, attributes: Attributes<'_>) -> Result<Entry, DecodeError> {
    let raw = Raw::read(attributes)?;
    let element = raw.element(kind, family)?;
    Ok(Entry::trusted(kind, family, element, raw.options()))
}

fn element_addresses(element: &Element) -> (Option<&Addresses>, Option<&Addresses>) {
    match element {
        Element::Ip(a)
        | Element::IpMac(a, _)
        | Element::IpPort(a, _)
        | Element::IpMark(a, _)
        | Element::NetInterface(a, _) => (Some(a), None),
        Element::NetNet(a, b) | Element::IpPortIp(a, _, b) => (Some(a), Some(b)),
        Element::Port(..) | Element::Mac(_) | Element::Set(..) => (None, None),
    }
}

fn put_addresses(w: &mut Writer<'_>, addresses: &Addresses, (ip, ip_to, cidr): (u16, u16, u16)) {
    match *addresses {
        Addresses::Host(address) => w.address(ip, address),
        Addresses::Network { address, prefix } => {
            w.address(ip, address);
            // The numbers of IP2 are out of order: IP2, CIDR2, IP2_TO.
            w.put_u8(cidr, prefix);
        }
        Addresses::Range { from, to } => {
            w.address(ip, from);
            w.address(ip_to, to);
        }
    }
}

fn put_ports(w: &mut Writer<'_>, from: u16, to: Option<u16>) {
    w.net16(data::PORT, from);
    if let Some(to) = to {
        w.net16(data::PORT_TO, to);
    }
}

fn flags(element: &Element, options: &EntryOptions) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::NOMATCH, options.nomatch);
    flags.set(Flags::WILDCARD, options.wildcard);
    flags.set(Flags::PHYSDEV, matches!(element, Element::NetInterface(_, interface) if interface.physdev));
    flags.set(Flags::BEFORE, matches!(element, Element::Set(_, Some(Place::Before(_)))));
    flags
}

fn write_rest(w: &mut Writer<'_>, element: &Element, second: Option<&Addresses>) {
    match element {
        Element::IpMark(_, mark) => w.net32(data::MARK, *mark),
        Element::Mac(mac) | Element::IpMac(_, Some(mac)) => w.put(adt::ETHER, &mac.0),
        Element::Set(set, place) => {
            w.put(adt::NAME, set.with_nul());
            if let Some(Place::Before(other) | Place::After(other)) = place {
                w.put(adt::NAMEREF, other.with_nul());
            }
        }
        _ => {}
    }
    if let Some(second) = second {
        put_addresses(w, second, (adt::IP2, adt::IP2_TO, adt::CIDR2));
    }
    if let Element::NetInterface(_, interface) = element {
        let length = interface.name().len() + 1;
        w.put(adt::IFACE, interface.name.get(..length).unwrap_or(&interface.name));
    }
}

fn has_skbinfo(options: &EntryOptions) -> bool {
    options.skbmark.is_some() || options.skbprio.is_some() || options.skbqueue.is_some()
}

fn write_extensions(w: &mut Writer<'_>, options: &EntryOptions) {
    if let Some(bytes) = options.bytes {
        w.net64(adt::BYTES, bytes);
    }
    if let Some(packets) = options.packets {
        w.net64(adt::PACKETS, packets);
    }
    if let Some(comment) = &options.comment {
        let mut with_nul = comment.as_bytes().to_vec();
        with_nul.push(0);
        w.put(adt::COMMENT, &with_nul);
    }
    if let Some(SkbMark { mark, mask }) = options.skbmark {
        w.net64(adt::SKBMARK, u64::from(mark) << 32 | u64::from(mask));
    }
    if let Some(SkbPrio { major, minor }) = options.skbprio {
        w.net32(adt::SKBPRIO, u32::from(major) << 16 | u32::from(minor));
    }
    if let Some(queue) = options.skbqueue {
        w.net16(adt::SKBQUEUE, queue);
    }
}

/// The attributes of an element, in any order.
#[derive(Default)]
struct Raw<'a> {
    ip: Option<IpAddr>,
    ip_to: Option<IpAddr>,
    cidr: Option<u8>,
    ip2: Option<IpAddr>,
    ip2_to: Option<IpAddr>,
    cidr2: Option<u8>,
    port: Option<u16>,
    port_to: Option<u16>,
    proto: Option<u8>,
    timeout: Option<u32>,
    flags: Option<u32>,
    mark: Option<u32>,
    ether: Option<[u8; 6]>,
    name: Option<&'a [u8]>,
    nameref: Option<&'a [u8]>,
    iface: Option<&'a [u8]>,
    bytes: Option<u64>,
    packets: Option<u64>,
    comment: Option<&'a [u8]>,
    skbmark: Option<u64>,
    skbprio: Option<u32>,
    skbqueue: Option<u16>,
}

impl<'a> Raw<'a> {
    fn read(attributes: Attributes<'a>) -> Result<Self, DecodeError> {
        let mut raw = Self::default();
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                data::IP => raw.ip = Some(read_address(&attribute)?),
                data::IP_TO => raw.ip_to = Some(read_address(&attribute)?),
                data::CIDR => raw.cidr = Some(attribute.u8()?),
                data::PORT => raw.port = Some(attribute.be16()?),
                data::PORT_TO => raw.port_to = Some(attribute.be16()?),
                data::TIMEOUT => raw.timeout = Some(attribute.be32()?),
                data::PROTO => raw.proto = Some(attribute.u8()?),
                data::CADT_FLAGS => raw.flags = Some(attribute.be32()?),
                data::MARK => raw.mark = Some(attribute.be32()?),
                adt::ETHER => raw.ether = Some(attribute.array()?),
                adt::NAME => raw.name = Some(attribute.payload),
                adt::NAMEREF => raw.nameref = Some(attribute.payload),
                adt::IP2 => raw.ip2 = Some(read_address(&attribute)?),
                adt::CIDR2 => raw.cidr2 = Some(attribute.u8()?),
                adt::IP2_TO => raw.ip2_to = Some(read_address(&attribute)?),
                adt::IFACE => raw.iface = Some(attribute.payload),
                adt::BYTES => raw.bytes = Some(attribute.be64()?),
                adt::PACKETS => raw.packets = Some(attribute.be64()?),
                adt::COMMENT => raw.comment = Some(attribute.payload),
                adt::SKBMARK => raw.skbmark = Some(attribute.be64()?),
                adt::SKBPRIO => raw.skbprio = Some(attribute.be32()?),
                adt::SKBQUEUE => raw.skbqueue = Some(attribute.be16()?),
                _ => {}
            }
        }
        Ok(raw)
    }

    fn flags(&self) -> Flags {
        Flags::from_bits_retain(self.flags.unwrap_or(0))
    }

    fn element(&self, kind: SetType, family: Family) -> Result<Element, DecodeError> {
        let first = || addresses(self.ip, self.ip_to, self.cidr, family, "IPSET_ATTR_IP");
        let second = || addresses(self.ip2, self.ip2_to, self.cidr2, family, "IPSET_ATTR_IP2");
        Ok(match kind.parts() {
            [Part::PortNumber] => Element::Port(self.number()?, self.port_to),
            [Part::Mac] => Element::Mac(self.mac().ok_or(missing("IPSET_ATTR_ETHER"))?),
            [Part::Set] => self.set()?,
            [_] => Element::Ip(first()?),
            [_, Part::Mac] => Element::IpMac(first()?, self.mac()),
            [_, Part::Port] => Element::IpPort(first()?, self.port()?),
            [_, Part::Mark] => Element::IpMark(first()?, self.mark.ok_or(missing("IPSET_ATTR_MARK"))?),
            [_, Part::Interface] => Element::NetInterface(first()?, self.interface()?),
            [_, _] => Element::NetNet(first()?, second()?),
            _ => Element::IpPortIp(first()?, self.port()?, second()?),
        })
    }

    fn mac(&self) -> Option<Mac> {
        self.ether.map(Mac)
    }

    fn number(&self) -> Result<u16, DecodeError> {
        self.port.ok_or(missing("IPSET_ATTR_PORT"))
    }

    fn port(&self) -> Result<Port, DecodeError> {
        let protocol = Protocol(self.proto.ok_or(missing("IPSET_ATTR_PROTO"))?);
        Ok(Port { protocol, from: self.number()?, to: self.port_to })
    }

    fn interface(&self) -> Result<Interface, DecodeError> {
        let name = self.iface.ok_or(missing("IPSET_ATTR_IFACE"))?;
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        Ok(Interface::padded(name, self.flags().contains(Flags::PHYSDEV)))
    }

    fn set(&self) -> Result<Element, DecodeError> {
        let name =
            |payload: &[u8]| SetName::from_kernel(payload).ok_or(missing("a set name of at most 31 bytes"));
        let set = name(self.name.ok_or(missing("IPSET_ATTR_NAME"))?)?;
        let place = match self.nameref.map(name).transpose()? {
            Some(other) if self.flags().contains(Flags::BEFORE) => Some(Place::Before(other)),
            other => other.map(Place::After),
        };
        Ok(Element::Set(set, place))
    }

    fn options(&self) -> EntryOptions {
        EntryOptions {
            timeout: self.timeout,
            nomatch: self.flags().contains(Flags::NOMATCH),
            wildcard: self.flags().contains(Flags::WILDCARD),
            packets: self.packets,
            bytes: self.bytes,
            comment: self.comment.map(Comment::from_kernel),
            skbmark: self.skbmark.map(|both| SkbMark { mark: high(both), mask: low(both) }),
            skbprio: self.skbprio.map(|both| {
                let [a, b, c, d] = both.to_be_bytes();
                SkbPrio { major: u16::from_be_bytes([a, b]), minor: u16::from_be_bytes([c, d]) }
            }),
            skbqueue: self.skbqueue,
        }
    }
}

fn addresses(
    address: Option<IpAddr>,
    to: Option<IpAddr>,
    prefix: Option<u8>,
    family: Family,
    what: &'static str,
) -> Result<Addresses, DecodeError> {
    let address = address.ok_or(missing(what))?;
    if Family::of(address) != family || prefix.is_some_and(|prefix| prefix > family.bits()) {
        return Err(missing("an address of the set's family"));
    }
    Ok(match (to, prefix) {
        (Some(to), _) => Addresses::Range { from: address, to },
        (None, Some(prefix)) => Addresses::Network { address, prefix },
        (None, None) => Addresses::Host(address),
    })
}

fn high(both: u64) -> u32 {
    u32::try_from(both >> 32).unwrap_or(u32::MAX)
}

fn low(both: u64) -> u32 {
    u32::try_from(both & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

fn missing(what: &'static str) -> DecodeError {
    DecodeError::Missing { what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Exist, entries};
    use crate::text::Verb;
    use crate::{Entry, Numeric};
    use proptest::prelude::*;
    use sluicegate_netlink::{Batch, attr};

    fn family() -> impl Strategy<Value = Family> {
        prop_oneof![Just(Family::Ipv4), Just(Family::Ipv6)]
    }

    fn address(family: Family) -> BoxedStrategy<IpAddr> {
        any::<[u8; 16]>()
            .prop_map(move |bytes| match (family, bytes) {
                (Family::Ipv6, bytes) => bytes.into(),
                (_, [a, b, c, d, ..]) => [a, b, c, d].into(),
            })
            .boxed()
    }

    fn addresses(family: Family) -> BoxedStrategy<Addresses> {
        let (host, from, to) = (address(family), address(family), address(family));
        prop_oneof![
            host.prop_map(Addresses::Host),
            (address(family), 0..=family.bits())
                .prop_map(|(address, prefix)| Addresses::Network { address, prefix }),
            (from, to).prop_map(|(from, to)| Addresses::Range { from, to }),
        ]
        .boxed()
    }

    fn port() -> BoxedStrategy<Port> {
        (1_u8.., any::<u16>(), any::<Option<u16>>())
            .prop_map(|(protocol, from, to)| Port { protocol: Protocol(protocol), from, to })
            .boxed()
    }

    fn name() -> impl Strategy<Value = SetName> {
        "[A-Za-z0-9:._ -]{1,31}".prop_filter_map("an option", |name| SetName::new(&name).ok())
    }

    fn element(family: Family) -> BoxedStrategy<Element> {
        let mac = || any::<[u8; 6]>().prop_map(Mac);
        let interface = ("[a-z0-9.]{1,15}", any::<bool>()).prop_map(|(name, physdev)| {
            let interface = Interface::new(&name).expect("a name");
            if physdev { interface.physdev() } else { interface }
        });
        let place = prop_oneof![
            Just(None),
            name().prop_map(|name| Some(Place::Before(name))),
            name().prop_map(|name| Some(Place::After(name))),
        ];
        let a = move || addresses(family);
        prop_oneof![
            a().prop_map(Element::Ip),
            (a(), prop::option::of(mac())).prop_map(|(a, mac)| Element::IpMac(a, mac)),
            (any::<u16>(), any::<Option<u16>>()).prop_map(|(from, to)| Element::Port(from, to)),
            mac().prop_map(Element::Mac),
            (a(), a()).prop_map(|(a, b)| Element::NetNet(a, b)),
            (a(), port()).prop_map(|(a, port)| Element::IpPort(a, port)),
            (a(), port(), a()).prop_map(|(a, port, b)| Element::IpPortIp(a, port, b)),
            (a(), any::<u32>()).prop_map(|(a, mark)| Element::IpMark(a, mark)),
            (a(), interface).prop_map(|(a, interface)| Element::NetInterface(a, interface)),
            (name(), place).prop_map(|(name, place)| Element::Set(name, place)),
        ]
        .boxed()
    }

    fn options() -> BoxedStrategy<EntryOptions> {
        let comment =
            prop::option::of("[a-z \\\\']{0,255}".prop_map(|text| Comment::new(&text).expect("a comment")));
        let skb = (
            prop::option::of(any::<(u32, u32)>().prop_map(|(mark, mask)| SkbMark { mark, mask })),
            prop::option::of(any::<(u16, u16)>().prop_map(|(major, minor)| SkbPrio { major, minor })),
            any::<Option<u16>>(),
        );
        (
            prop::option::of(0..=EntryOptions::MAX_TIMEOUT),
            any::<(bool, bool)>(),
            // ipset accepts numbers up to 2^64 - 2.
            prop::option::of(0..u64::MAX),
            prop::option::of(0..u64::MAX),
            comment,
            skb,
        )
            .prop_map(|(timeout, (nomatch, wildcard), packets, bytes, comment, skb)| EntryOptions {
                timeout,
                nomatch,
                wildcard,
                packets,
                bytes,
                comment,
                skbmark: skb.0,
                skbprio: skb.1,
                skbqueue: skb.2,
            })
            .boxed()
    }

    /// Generates valid entries of all types.
    fn entry() -> BoxedStrategy<Entry> {
        let shape = family().prop_flat_map(|family| (Just(family), element(family), options()));
        (shape, 0..SetType::ALL.len())
            .prop_filter_map("not an entry", |((family, element, options), first)| {
                // The first type, starting at a random one, that has this element.
                SetType::ALL.into_iter().cycle().skip(first).take(SetType::ALL.len()).find_map(|kind| {
                    let family =
                        if kind.families().contains(&family) { family } else { kind.default_family() };
                    let entry = Entry::new(kind, family, element).ok()?;
                    let flags = EntryOptions { nomatch: false, wildcard: false, ..options.clone() };
                    entry.clone().with(options.clone()).or_else(|_| entry.with(flags)).ok()
                })
            })
            .boxed()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(entry in entry()) {
            let bytes = attr::encode(|w| write(w, &entry)).unwrap();
            let again = read(entry.set_type(), entry.family(), Attributes::new(&bytes)).unwrap();
            prop_assert_eq!(again, entry);
        }

        #[test]
        fn what_is_printed_is_read_back(entry in entry()) {
            let (kind, family) = (entry.set_type(), entry.family());
            let line = format!("add s {entry}");
            // The text of a list cannot represent names of sets with quotes or commas.
            prop_assume!(!matches!(entry.element(), Element::Set(..)) || !line.contains(['"', ',']));
            let lines = crate::text::parse(&line, &Numeric, |_| Some((kind, family)));
            let lines = lines.map_err(|error| TestCaseError::fail(format!("{line}: {error}")))?;
            prop_assert_eq!(lines[0].command.to_string(), line);
        }

        #[test]
        fn no_bytes_make_the_reader_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            kind in 0_usize..16,
        ) {
            let kind = SetType::ALL[kind];
            let _ = read(kind, kind.default_family(), Attributes::new(&bytes));
        }

        #[test]
        fn any_entries_fit_into_messages(entry in entry(), count in 1_usize..3000) {
            let list = vec![entry; count];
            let (mut batch, mut done) = (Batch::new(), 0);
            let set = SetName::new(&"x".repeat(31)).unwrap();
            while done < list.len() {
                let written = entries(&mut batch, 7, Verb::Add, &set, &list[done..], done, Exist::Fail);
                prop_assert!(written > 0);
                done += written;
            }
            prop_assert!(batch.bytes().is_ok());
            prop_assert!(batch.len() <= usize::try_from(batch.messages()).unwrap() * (66 << 10));
        }
    }
}
