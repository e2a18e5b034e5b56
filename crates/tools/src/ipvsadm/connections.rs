//! `-L -c`: the connections, which the kernel tells in a file alone.

use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};

use super::names;

/// The file, in the network namespace of this process.
pub(super) const FILE: &str = "/proc/thread-self/net/ip_vs_conn";

/// Returns the list of the connections in the text of [`FILE`], in the order of the kernel, as the tool lists them.
///
/// # Errors
/// With the line that is not one of that file.
pub(super) fn listed(text: &str, numeric: bool, persistence: bool) -> Result<String, NotAConnection> {
    let mut list =
        "IPVS connection entries\npro expire state       source             virtual            destination"
            .to_owned();
    list.push_str(if persistence { "        pe name          pe_data\n" } else { "\n" });
    for (number, line) in (1..).zip(text.lines()).skip(1) {
        let connection =
            Connection::parse(line).ok_or_else(|| NotAConnection { line: number, found: line.to_owned() })?;
        connection.write(&mut list, numeric, persistence);
    }
    Ok(list)
}

/// A line of [`FILE`] that is not one of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotAConnection {
    line: usize,
    found: String,
}

impl fmt::Display for NotAConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FILE}: line {}: expected a connection, found `{}`", self.line, self.found)
    }
}

/// A line of the file.
struct Connection<'a> {
    protocol: &'a str,
    client: (IpAddr, u16),
    service: (IpAddr, u16),
    destination: (IpAddr, u16),
    state: &'a str,
    seconds: u64,
    engine: Option<(&'a str, &'a str)>,
}

impl<'a> Connection<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let protocol = words.next()?;
        let mut end = || Some((address(words.next()?)?, u16::from_str_radix(words.next()?, 16).ok()?));
        let (client, service, destination) = (end()?, end()?, end()?);
        let (state, seconds) = (words.next()?, words.next()?.parse().ok()?);
        // Data of an engine (the Call-ID of SIP) may have anything in it but blanks.
        let engine = words.next().map(|name| (name, words.next().unwrap_or_default()));
        Some(Self { protocol, client, service, destination, state, seconds, engine })
    }

    fn write(&self, list: &mut String, numeric: bool, persistence: bool) {
        let protocol = self.protocol.to_ascii_lowercase();
        let shown = |(address, port)| names::endpoint(address, port, &protocol, numeric);
        let (minutes, seconds) = (self.seconds / 60, self.seconds % 60);
        let destination = match self.engine.filter(|_| persistence) {
            Some((name, data)) => format!("{:<16} {name:<18} {data}", shown(self.destination)),
            None => shown(self.destination),
        };
        let _ = writeln!(
            list,
            "{:<3} {minutes:02}:{seconds:02}  {:<11} {:<18} {:<18} {destination}",
            self.protocol,
            self.state,
            shown(self.client),
            shown(self.service),
        );
    }
}

/// Eight digits for IPv4, with colons IPv6.
fn address(word: &str) -> Option<IpAddr> {
    if word.contains(':') {
        return word.trim_start_matches('[').trim_end_matches(']').parse().ok();
    }
    let number = u32::from_str_radix(word, 16).ok().filter(|_| word.len() == 8)?;
    Some(Ipv4Addr::from(number).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Linux 6.1, with ipvsadm 1.31.
    const CAPTURED: &str = "\
Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData
TCP 0A000001 A028 0A000001 0050 0A000002 0050 ESTABLISHED     899
UDP 0A000001 0000 0A000001 13C4 0A000002 13C4 NONE            359 sip abcdefgh12345678@x
";

    #[test]
    fn a_list_is_the_one_of_the_tool() {
        assert_eq!(
            listed(CAPTURED, true, false).unwrap(),
            "\
IPVS connection entries
pro expire state       source             virtual            destination
TCP 14:59  ESTABLISHED 10.0.0.1:41000     10.0.0.1:80        10.0.0.2:80
UDP 05:59  NONE        10.0.0.1:0         10.0.0.1:5060      10.0.0.2:5060
"
        );
        assert_eq!(
            listed(CAPTURED, true, true).unwrap(),
            "\
IPVS connection entries
pro expire state       source             virtual            destination        pe name          pe_data
TCP 14:59  ESTABLISHED 10.0.0.1:41000     10.0.0.1:80        10.0.0.2:80
UDP 05:59  NONE        10.0.0.1:0         10.0.0.1:5060      10.0.0.2:5060    sip                abcdefgh12345678@x
"
        );
    }

    #[test]
    fn a_line_that_is_none_is_told() {
        let cut = CAPTURED.replace(" 0A000002 0050", "");
        assert_eq!(listed(&cut, true, false).unwrap_err().line, 2);
    }

    #[test]
    fn an_address_of_ipv6_stands_in_brackets() {
        let line = "Pro\nTCP fd00:0000:0000:0000:0000:0000:0000:0001 0001 fd00:0000:0000:0000:0000:0000:0000:0002 \
                    0050 fd00:0000:0000:0000:0000:0000:0000:0003 0050 SYN_RECV         59\n";
        let list = listed(line, true, false).unwrap();
        assert!(
            list.ends_with("TCP 00:59  SYN_RECV    [fd00::1]:1        [fd00::2]:80       [fd00::3]:80\n"),
            "{list}"
        );
    }
}
