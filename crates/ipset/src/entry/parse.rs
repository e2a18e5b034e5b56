//! Reads elements in the notation of `ipset add`: parts that are separated by commas.

use std::net::IpAddr;

use super::{Element, Interface, Mac, Place};
use crate::address::split_inside;
use crate::set_type::Part;
use crate::{Addresses, Family, Names, Port, Reason, SetName, SetType, number, port};

/// Reads the element of a set of this type and family.
pub(super) fn element(
    kind: SetType,
    family: Family,
    text: &str,
    names: &dyn Names,
) -> Result<Element, Reason> {
    if kind == SetType::ListSet {
        return set(text, kind);
    }
    let (first, second, third) = split(kind, text)?;
    let place = |part: usize| kind.parts().get(part).copied().unwrap_or(Part::Address);
    let addresses = |text: &str, part: usize| addresses(text, place(part), family, names);
    Ok(match (place(0), second, third) {
        (Part::PortNumber, ..) => {
            let (from, to) = port::parse_bare(first, names)?;
            Element::Port(from, to)
        }
        (Part::Mac, ..) => Element::Mac(first.parse()?),
        (_, None, _) if kind == SetType::BitmapIpMac => Element::IpMac(addresses(first, 0)?, None),
        (_, Some(port), Some(third)) => {
            let first = addresses(first, 0)?;
            Element::IpPortIp(first, Port::parse(port, family, names)?, addresses(third, 2)?)
        }
        (_, Some(second), None) => {
            let first = addresses(first, 0)?;
            match place(1) {
                Part::Mac => Element::IpMac(first, Some(second.parse()?)),
                Part::Port => Element::IpPort(first, Port::parse(second, family, names)?),
                Part::Mark => Element::IpMark(first, number::parse_u32(second)?),
                Part::Interface => Element::NetInterface(first, interface(second)?),
                _ => Element::NetNet(first, addresses(second, 1)?),
            }
        }
        (_, None, _) => Element::Ip(addresses(first, 0)?),
    })
}

/// Splits an element at its commas and counts the parts.
fn split(kind: SetType, text: &str) -> Result<(&str, Option<&str>, Option<&str>), Reason> {
    let need = kind.dimension();
    let missing = |part| Reason::MissingPart { text: text.to_owned(), kind, need, part };
    let too_many = || Reason::TooManyParts { text: text.to_owned(), kind, need };
    let Some((first, rest)) = split_inside(text, ',') else {
        let optional = need == 1 || kind == SetType::BitmapIpMac;
        return if optional { Ok((text, None, None)) } else { Err(missing(2)) };
    };
    if need < 2 {
        return Err(too_many());
    }
    let Some((second, third)) = split_inside(rest, ',') else {
        return if need == 2 { Ok((first, Some(rest), None)) } else { Err(missing(3)) };
    };
    if need < 3 || split_inside(third, ',').is_some() {
        return Err(too_many());
    }
    Ok((first, Some(second), Some(third)))
}

fn addresses(text: &str, part: Part, family: Family, names: &dyn Names) -> Result<Addresses, Reason> {
    // A plain address is the most frequent part of a large restore file, and needs no resolver.
    if let Ok(address) = text.parse::<IpAddr>()
        && Family::of(address) == family
    {
        return Ok(Addresses::Host(address));
    }
    let read = Addresses::parse(text, family, names)?;
    super::check_addresses(&read, part, family).map(|()| read).map_err(|reason| match reason {
        // The error has the text as the user wrote it.
        Reason::SingleAddress(_) => Reason::SingleAddress(text.to_owned()),
        Reason::NoAddressRange(_) => Reason::NoAddressRange(text.to_owned()),
        other => other,
    })
}

fn interface(text: &str) -> Result<Interface, Reason> {
    match text.strip_prefix("physdev:") {
        Some(name) => Interface::new(name).map(Interface::physdev),
        None => Interface::new(text),
    }
}

/// `set`, or `set,before,other` as ipset 4 wrote it.
fn set(text: &str, kind: SetType) -> Result<Element, Reason> {
    let Some((set, rest)) = split_inside(text, ',') else {
        return Ok(Element::Set(SetName::new(text)?, None));
    };
    let set = SetName::new(set)?;
    let place = match split_inside(rest, ',') {
        Some(("before", other)) => Place::Before(SetName::new(other)?),
        Some(("after", other)) => Place::After(SetName::new(other)?),
        _ => return Err(Reason::TooManyParts { text: text.to_owned(), kind, need: 1 }),
    };
    Ok(Element::Set(set, Some(place)))
}

impl std::str::FromStr for Mac {
    type Err = Reason;

    /// Reads `12:34:56:78:9A:BC`, in either case. Zeros in front of a part may be left out, or be more.
    fn from_str(text: &str) -> Result<Self, Reason> {
        let bad = || Reason::Mac(text.to_owned());
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let part = pairs.next().filter(|part| !part.starts_with('+')).ok_or_else(bad)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| bad())?;
        }
        if pairs.next().is_some() { Err(bad()) } else { Ok(Self(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Numeric};
    use proptest::prelude::*;

    fn read(kind: &str, family: Family, text: &str) -> String {
        match Entry::parse(kind.parse().unwrap(), family, text, &Numeric) {
            Ok(entry) => entry.to_string(),
            Err(reason) => reason.to_string(),
        }
    }

    /// Accepted and refused as by ipset 7.17; what it prints, for what it accepts.
    #[test]
    fn elements_of_every_type_are_read() {
        for (kind, text, printed) in [
            ("bitmap:ip", "10.0.0.8/30", "10.0.0.8/30"),
            (
                "bitmap:ip",
                "10.0.0.1,AA:BB:CC:DD:EE:FF",
                "expected an element of bitmap:ip, which has 1 parts, found '10.0.0.1,AA:BB:CC:DD:EE:FF'",
            ),
            ("bitmap:ip,mac", "10.0.0.1", "10.0.0.1"),
            ("bitmap:ip,mac", "10.0.0.2,aa:bb:cc:dd:ee:0f", "10.0.0.2,AA:BB:CC:DD:EE:0F"),
            ("bitmap:ip,mac", "10.0.0.2-10.0.0.4", "expected a single address, found '10.0.0.2-10.0.0.4'"),
            ("bitmap:ip,mac", "10.0.0.2,xx", "expected a MAC address, found 'xx'"),
            ("hash:ip", "10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.9"),
            ("hash:mac", "01:02:03:04:05:06", "01:02:03:04:05:06"),
            ("hash:mac", "1:2:3:4:5:f", "01:02:03:04:05:0F"),
            ("hash:mac", "001:2:3:4:5:6", "01:02:03:04:05:06"),
            ("hash:mac", "1:2:3:4:5:100", "expected a MAC address, found '1:2:3:4:5:100'"),
            ("hash:mac", "1:2:3:4:5:", "expected a MAC address, found '1:2:3:4:5:'"),
            ("hash:mac", "01:02:03:04:05:06:07", "expected a MAC address, found '01:02:03:04:05:06:07'"),
            ("hash:ip,mac", "1.1.1.1,01:02:03:04:05:06", "1.1.1.1,01:02:03:04:05:06"),
            (
                "hash:ip,mac",
                "1.1.1.1",
                "expected an element of hash:ip,mac, which has 2 parts, found '1.1.1.1' without part 2",
            ),
            ("hash:net", "10.0.0.0/8", "10.0.0.0/8"),
            ("hash:net,net", "10.0.0.0/8,11.0.0.0-11.0.0.9", "10.0.0.0/8,11.0.0.0-11.0.0.9"),
            ("hash:ip,port", "1.1.1.1,http", "expected a port or a tcp service, found 'http'"),
            ("hash:net,port", "1.1.1.0/24,udp:1-2", "1.1.1.0/24,udp:1-2"),
            ("hash:ip,port,ip", "1.2.3.4,80,5.6.7.8", "1.2.3.4,tcp:80,5.6.7.8"),
            ("hash:ip,port,ip", "1.2.3.4,80,5.6.7.0/24", "expected a single address, found '5.6.7.0/24'"),
            (
                "hash:ip,port,ip",
                "1.2.3.4,80",
                "expected an element of hash:ip,port,ip, which has 3 parts, found '1.2.3.4,80' without part 3",
            ),
            (
                "hash:ip,port,ip",
                "1.2.3.4,80,1.1.1.1,1",
                "expected an element of hash:ip,port,ip, which has 3 parts, found '1.2.3.4,80,1.1.1.1,1'",
            ),
            ("hash:ip,port,net", "1.2.3.4,80,5.6.7.0/24", "1.2.3.4,tcp:80,5.6.7.0/24"),
            ("hash:ip,mark", "1.1.1.1,0x63", "1.1.1.1,0x00000063"),
            ("hash:net,port,net", "0.0.0.0/0,80,5.6.7.0/24", "0.0.0.0/0,tcp:80,5.6.7.0/24"),
            ("hash:net,iface", "1.2.3.0/24,physdev:eth0", "1.2.3.0/24,physdev:eth0"),
            ("hash:net,iface", "1.2.3.0/24,a b", "1.2.3.0/24,\"a b\""),
            ("hash:net,iface", "1.2.3.0/24,physdev: a", "1.2.3.0/24,physdev:\" a\""),
            (
                "hash:net,iface",
                "1.2.3.0/24,0123456789abcdef",
                "expected the name of an interface (1 to 15 bytes without commas, quotes and control \
                 characters), found '0123456789abcdef'",
            ),
        ] {
            let family = kind.parse::<SetType>().unwrap().default_family();
            assert_eq!(read(kind, family, text), printed);
        }
        assert_eq!(read("bitmap:port", Family::Unspecified, "udp:5-7"), "5-7");
        assert_eq!(read("list:set", Family::Unspecified, "a,before,b"), "a before b");
        assert_eq!(
            read("list:set", Family::Unspecified, "a,b"),
            "expected an element of list:set, which has 1 parts, found 'a,b'"
        );
    }

    #[test]
    fn ipv6_has_no_ranges_where_single_addresses_are_stored() {
        for (kind, text, printed) in [
            ("hash:ip", "1::/64", "expected a single address, found '1::/64'"),
            ("hash:ip", "1::-2::", "expected a single address, found '1::-2::'"),
            ("hash:ip", "1::/128", "1::"),
            ("hash:net", "1::/64", "1::/64"),
            ("hash:net", "1::-2::", "expected an address or a network, found '1::-2::'"),
        ] {
            assert_eq!(read(kind, Family::Ipv6, text), printed);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,40}", kind in 0_usize..16) {
            let kind = SetType::ALL[kind];
            for family in kind.families() {
                let _ = Entry::parse(kind, *family, &text, &Numeric);
            }
        }

        #[test]
        fn text_of_plausible_characters_does_not_panic(
            text in "[0-9a-f.:,/\\[\\]x-]{0,30}",
            kind in 0_usize..16,
        ) {
            let kind = SetType::ALL[kind];
            for family in kind.families() {
                if let Ok(entry) = Entry::parse(kind, *family, &text, &Numeric) {
                    let printed = entry.element().to_string();
                    let again = Entry::parse(kind, *family, &printed, &Numeric).unwrap();
                    prop_assert_eq!(again.element().to_string(), printed);
                }
            }
        }
    }
}
