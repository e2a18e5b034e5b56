//! Writes entries in the notation of `ipset save`.

use std::fmt::{self, Write as _};
use std::net::IpAddr;

use sluicegate_netlink::text::decode;

use super::{Comment, Element, Entry, EntryOptions, Interface, Mac, Place, SkbMark, SkbPrio};
use crate::Addresses;
use crate::port::write_numbers;

impl fmt::Display for Entry {
    /// Prints the element and its options, as after `add SETNAME`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.element, self.options())
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, None)
    }
}

/// Returns the name of an address, for listings with names.
pub(crate) type Hosts<'a> = &'a dyn Fn(IpAddr) -> Option<String>;

impl Element {
    /// Writes the element, with the host names that `hosts` returns for its addresses.
    pub(crate) fn write(&self, f: &mut dyn fmt::Write, hosts: Option<Hosts<'_>>) -> fmt::Result {
        let addresses = |addresses: &Addresses| Shown { addresses: *addresses, hosts };
        match self {
            Self::Ip(a) | Self::IpMac(a, None) => write!(f, "{}", addresses(a)),
            Self::IpMac(a, Some(mac)) => write!(f, "{},{mac}", addresses(a)),
            Self::Port(from, to) => write_numbers(f, *from, *to),
            Self::Mac(mac) => write!(f, "{mac}"),
            Self::NetNet(a, b) => write!(f, "{},{}", addresses(a), addresses(b)),
            Self::IpPort(a, port) => write!(f, "{},{port}", addresses(a)),
            Self::IpPortIp(a, port, b) => write!(f, "{},{port},{}", addresses(a), addresses(b)),
            Self::IpMark(a, mark) => write!(f, "{},0x{mark:08x}", addresses(a)),
            Self::NetInterface(a, interface) => write!(f, "{},{interface}", addresses(a)),
            Self::Set(set, None) => f.write_str(&set.quoted()),
            Self::Set(set, Some(Place::Before(other))) => {
                write!(f, "{} before {}", set.quoted(), other.quoted())
            }
            Self::Set(set, Some(Place::After(other))) => {
                write!(f, "{} after {}", set.quoted(), other.quoted())
            }
        }
    }
}

struct Shown<'a> {
    addresses: Addresses,
    hosts: Option<Hosts<'a>>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(name) = self.hosts.and_then(|hosts| hosts(self.addresses.first())) else {
            return self.addresses.fmt(f);
        };
        // A name with a dash would be read as a range.
        if name.contains('-') {
            write!(f, "[{name}]")?;
        } else {
            f.write_str(&name)?;
        }
        match self.addresses {
            Addresses::Network { prefix, .. } if !self.addresses.is_host() => write!(f, "/{prefix}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for EntryOptions {
    /// Prints each option after a space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.each(|name, value| match value {
            Some(value) => write!(f, " {name} {value}"),
            None => write!(f, " {name}"),
        })
    }
}

impl EntryOptions {
    /// Calls `write` with each option that is set: name and value, in the order of `ipset`.
    pub(crate) fn each(
        &self,
        mut write: impl FnMut(&'static str, Option<&dyn fmt::Display>) -> fmt::Result,
    ) -> fmt::Result {
        let mut value = |name, value: Option<&dyn fmt::Display>| match value {
            Some(value) => write(name, Some(value)),
            None => Ok(()),
        };
        value("timeout", self.timeout.as_ref().map(|v| v as _))?;
        if self.nomatch {
            write("nomatch", None)?;
        }
        if self.wildcard {
            write("wildcard", None)?;
        }
        let mut value = |name, value: Option<&dyn fmt::Display>| match value {
            Some(value) => write(name, Some(value)),
            None => Ok(()),
        };
        value("packets", self.packets.as_ref().map(|v| v as _))?;
        value("bytes", self.bytes.as_ref().map(|v| v as _))?;
        value("comment", self.comment.as_ref().map(|v| v as _))?;
        value("skbmark", self.skbmark.as_ref().map(|v| v as _))?;
        value("skbprio", self.skbprio.as_ref().map(|v| v as _))?;
        value("skbqueue", self.skbqueue.as_ref().map(|v| v as _))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02X}:{b:02X}:{c:02X}:{d:02X}:{e:02X}:{g:02X}")
    }
}

impl fmt::Display for Interface {
    /// Prints the name, in quotes if it has spaces. ipset 7.17 prints no quotes, and cannot read that back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_physdev() {
            f.write_str("physdev:")?;
        }
        let has_space = self.name().iter().any(u8::is_ascii_whitespace);
        let quote = if has_space { "\"" } else { "" };
        f.write_str(quote)?;
        write_safely(f, self.name())?;
        f.write_str(quote)
    }
}

impl fmt::Display for Comment {
    /// Prints the comment in quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        write_safely(f, self.as_bytes())?;
        f.write_char('"')
    }
}

impl fmt::Display for SkbMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.mark)?;
        if self.mask == u32::MAX { Ok(()) } else { write!(f, "/0x{:x}", self.mask) }
    }
}

impl fmt::Display for SkbPrio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.major, self.minor)
    }
}

/// Writes text of the kernel so that it is read back as one word of one line.
fn write_safely(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let safe = |c: char| if c == '"' || c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    decode(bytes).chars().try_for_each(|c| f.write_char(safe(c)))
}

#[cfg(test)]
mod tests {
    use sluicegate_netlink::text::encode;

    use super::*;

    /// As ipset 7.17 prints them, in its order.
    #[test]
    fn options_are_printed_in_the_order_of_ipset() {
        let options = EntryOptions {
            timeout: Some(99),
            nomatch: true,
            wildcard: true,
            packets: Some(1),
            bytes: Some(2),
            comment: Some(Comment::new("hi there").unwrap()),
            skbmark: Some(SkbMark { mark: 0x10, mask: 0xff }),
            skbprio: Some(SkbPrio { major: 1, minor: 0x10 }),
            skbqueue: Some(5),
        };
        assert_eq!(
            options.to_string(),
            " timeout 99 nomatch wildcard packets 1 bytes 2 comment \"hi there\" skbmark 0x10/0xff \
             skbprio 1:10 skbqueue 5"
        );
    }

    #[test]
    fn a_comment_from_the_kernel_prints_on_one_line() {
        let comment = Comment::from_kernel(b"a\"\nadd x 1.1.1.1\xff\0");
        assert_eq!(comment.to_string(), "\"a\u{fffd}\u{fffd}add x 1.1.1.1\u{10ffff}\"");
    }

    #[test]
    fn a_comment_that_is_not_utf8_is_read_and_printed_as_its_bytes() {
        let comment = Comment::new(&decode(b"caf\xe9")).unwrap();
        assert_eq!(comment.as_bytes(), b"caf\xe9");
        assert_eq!(*encode(&comment.to_string()), *b"\"caf\xe9\"");
    }
}
