//! Reads what nft looks up on the machine to print a listing: names of links, and names of numbers in
//! `/etc/iproute2`.

use std::collections::BTreeMap;

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{Batch, DecodeError, Transport, dump};

use crate::datatype::DataType;
use crate::error::Error;
use crate::name::{InterfaceName, Name, NameProblem};
use crate::wire::decode::need;
use crate::wording::ListOptions;

/// Reads the names for listings on this machine: those of the links in the network namespace of the socket,
/// and those of numbers in the files `group`, `rt_marks` and `rt_realms` of `/etc/iproute2`. As in nft, a
/// file that cannot be read contains no names.
///
/// Times remain in UTC: the time zone is not looked up ([`ListOptions::time_zone`]).
///
/// `transport` must be a `NETLINK_ROUTE` socket.
///
/// ```no_run
/// use sluicegate_nftables::netlink::{Options, NetlinkFamily, Socket};
/// use sluicegate_nftables::{Family, read};
///
/// let mut route = Socket::open(NetlinkFamily::ROUTE, &Options::default())?;
/// let mut netfilter = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
/// let options = read::list_options(&mut route)?;
/// for table in read::ruleset(&mut netfilter, Family::UNSPEC)?.content() {
///     print!("{}", table.display(&options)); // iif "lo"
/// }
/// # Ok::<(), sluicegate_nftables::Error>(())
/// ```
///
/// # Errors
/// If the kernel refuses or does not answer.
pub fn list_options(transport: &mut (impl Transport + ?Sized)) -> Result<ListOptions, Error> {
    let mut options = ListOptions { interfaces: interfaces(transport)?, ..ListOptions::default() };
    for (file, of) in FILES {
        let text = std::fs::read(format!("/etc/iproute2/{file}")).unwrap_or_default();
        // In a line that is not UTF-8 the name is not valid; other lines are not affected.
        let text = String::from_utf8_lossy(&text);
        options.symbols.extend(symbols(&text).map(|(number, name)| ((of, number), name)));
    }
    Ok(options)
}

/// Reads the links of a network namespace, by index. A link whose name cannot be printed in a listing (it has
/// a quotation mark) is left out: it is listed by its number.
///
/// # Errors
/// As [`list_options`].
pub fn interfaces(transport: &mut (impl Transport + ?Sized)) -> Result<BTreeMap<u32, InterfaceName>, Error> {
    let mut request = Batch::new();
    request.message(RTM_GETLINK, Flags::REQUEST | Flags::DUMP, 0).raw(&[0; IFINFOMSG]);
    let links = dump(transport, &request, |message| {
        Ok(if message.header.kind == RTM_NEWLINK { link(&message)? } else { None })
    })?;
    Ok(links.into_iter().collect())
}

fn link(message: &Message<'_>) -> Result<Option<(u32, InterfaceName)>, DecodeError> {
    let (header, rest) = need(message.payload.split_at_checked(IFINFOMSG), "struct ifinfomsg")?;
    let index = need(header.get(4..8).and_then(|bytes| bytes.try_into().ok()), "ifi_index")?;
    let name = need(Attributes::new(rest).find(IFLA_IFNAME)?, "IFLA_IFNAME")?;
    let name = name.text().ok().filter(|name| !name.contains(['"', '\\']));
    Ok(name.map(|name| (u32::from_ne_bytes(index), InterfaceName::from_kernel(&name))))
}

/// Parses lines with a number, decimal or with `0x`, and a name. Names that cannot be printed in a listing
/// are skipped, as are all other lines.
fn symbols(text: &str) -> impl Iterator<Item = (u64, Name)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (number, name) = (words.next()?, words.next()?);
        let number = match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => number.parse(),
        };
        Some((number.ok()?, quoted(name)?))
    })
}

/// Returns a name that is printed in quotes, so that it may be a keyword of nft.
fn quoted(name: &str) -> Option<Name> {
    match Name::new(name) {
        Err(error) if error.reason != NameProblem::Keyword => None,
        _ => Some(Name::from_kernel(name)),
    }
}

const FILES: [(&str, DataType); 3] =
    [("group", DataType::DEVGROUP), ("rt_marks", DataType::MARK), ("rt_realms", DataType::REALM)];
/// The size of `struct ifinfomsg` in bytes.
const IFINFOMSG: usize = 16;
/// `RTM_NEWLINK`
const RTM_NEWLINK: u16 = 16;
/// `RTM_GETLINK`
const RTM_GETLINK: u16 = 18;
/// `IFLA_IFNAME`
const IFLA_IFNAME: u16 = 3;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::scripted::{Script, done};

    use super::*;

    #[test]
    fn a_link_whose_name_cannot_be_listed_does_not_hide_the_others() {
        let mut batch = Batch::new();
        for (index, name) in [(1_u32, &b"lo\0"[..]), (2, b"a\";drop#\0"), (3, b"\xe9th0\0"), (4, b"eth0\0")] {
            let mut message = batch.message(RTM_NEWLINK, Flags::MULTI, 0);
            let mut header = [0; IFINFOMSG];
            header[4..8].copy_from_slice(&index.to_ne_bytes());
            message.raw(&header);
            message.put(IFLA_IFNAME, name);
        }
        // All links are in the answer to message 1.
        let mut answer = batch.bytes().unwrap().to_vec();
        let mut at = 0;
        while at < answer.len() {
            let length = u32::from_ne_bytes(answer[at..at + 4].try_into().unwrap());
            answer[at + 8..at + 12].copy_from_slice(&1_u32.to_ne_bytes());
            at += usize::try_from(length).unwrap().next_multiple_of(4);
        }
        answer.extend(done(1));
        let mut kernel = Script::new();
        kernel.expect_any().reply(answer);
        let links: Vec<_> = interfaces(&mut kernel).unwrap().into_iter().collect();
        let names = [(1, "lo"), (3, "\u{10ffe9}th0"), (4, "eth0")];
        assert_eq!(links, names.map(|(index, name)| (index, InterfaceName::from_kernel(name))));
    }

    #[test]
    fn names_of_numbers_are_read_as_iproute2_writes_them() {
        let text = "# device groups\n0\tdefault\n 7 uplinks # a comment\n0x10 flags\n8 \"quoted\"\nnot \
            a-number\n9\n";
        let found: Vec<_> = symbols(text).map(|(number, name)| (number, name.as_str().to_owned())).collect();
        assert_eq!(found, [(0, "default".to_owned()), (7, "uplinks".to_owned()), (16, "flags".to_owned())]);
    }
}
