//! Names of hosts and services in place of addresses and ports: `-L` and `-S` without `-n` write them, and whatever
//! reads an address takes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::iptables::hosts;

/// Returns `address:port` with the names that both have, unless `numeric`.
pub(super) fn endpoint(address: IpAddr, port: u16, protocol: &str, numeric: bool) -> String {
    let (host, service) = match numeric {
        true => (None, None),
        false => (hosts::host(address), hosts::service(port, protocol)),
    };
    let port = service.unwrap_or_else(|| port.to_string());
    match (address, host) {
        (IpAddr::V4(_), Some(host)) => format!("{host}:{port}"),
        (IpAddr::V4(address), None) => format!("{address}:{port}"),
        (IpAddr::V6(_), Some(host)) => format!("[{host}]:{port}"),
        (IpAddr::V6(address), None) => format!("[{address}]:{port}"),
    }
}

/// Returns the words of a command with numbers for the names in the addresses of services and servers. What has
/// no number stays, to be refused where it stands.
pub(super) fn numbered(words: &[String]) -> Vec<String> {
    each(words, number)
}

/// Returns a saved command with names.
pub(super) fn named(line: &str) -> String {
    let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
    each(&words, |word, protocol| {
        let (address, port) = word.rsplit_once(':')?;
        let address = address.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
        Some(endpoint(address, port.parse().ok()?, protocol, false))
    })
    .join(" ")
}

/// Replaces the values of the options that have an address.
fn each(words: &[String], replace: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    let mut protocol = "tcp";
    let mut is_address = false;
    let mut replaced = Vec::with_capacity(words.len());
    for word in words {
        let value = |word: &str| replace(word, protocol).unwrap_or_else(|| word.to_owned());
        if std::mem::take(&mut is_address) {
            replaced.push(value(word));
            continue;
        }
        let (option, joined) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (word.as_str(), None),
        };
        match option {
            "-u" | "--udp-service" => protocol = "udp",
            "--sctp-service" => protocol = "sctp",
            "-t" | "--tcp-service" => protocol = "tcp",
            "-r" | "--real-server" => (),
            _ => {
                replaced.push(word.clone());
                continue;
            }
        }
        match joined {
            Some(text) => {
                let text = replace(text, protocol).unwrap_or_else(|| text.to_owned());
                replaced.push(format!("{option}={text}"));
            }
            None => {
                is_address = true;
                replaced.push(word.clone());
            }
        }
    }
    replaced
}

fn number(word: &str, protocol: &str) -> Option<String> {
    if word.parse::<IpAddr>().is_ok() {
        return None;
    }
    let (host, port) = match word.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (word, None),
    };
    let port = match port {
        None => String::new(),
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => format!(":{port}"),
        Some(name) => format!(":{}", hosts::port(name, protocol)?),
    };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match inner {
        Some(inner) if inner.parse::<Ipv6Addr>().is_ok() => Some(format!("{host}{port}")),
        Some(inner) => Some(format!("[{}]{port}", address_of(inner, IpAddr::is_ipv6)?)),
        None if host.parse::<Ipv4Addr>().is_ok() => Some(format!("{host}{port}")),
        // `1.2.3` is an address of IPv4 to the C library, and a mistake to a person.
        None if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => None,
        None => Some(format!("{}{port}", address_of(host, IpAddr::is_ipv4)?)),
    }
}

fn address_of(host: &str, wanted: impl Fn(&IpAddr) -> bool) -> Option<IpAddr> {
    dns_lookup::lookup_host(host).ok()?.into_iter().find(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn names_of_ports_are_those_of_the_protocol() {
        if hosts::port("tftp", "udp").is_none() {
            return testns::skip("this machine has no /etc/services");
        }
        assert_eq!(numbered(&words("-A -u 1.2.3.4:tftp -s rr")), words("-A -u 1.2.3.4:69 -s rr"));
        // Of TCP it is no service.
        assert_eq!(numbered(&words("-A -t 1.2.3.4:tftp")), words("-A -t 1.2.3.4:tftp"));
        assert_eq!(numbered(&words("-a --udp-service=[::1]:tftp")), words("-a --udp-service=[::1]:69"));
        assert_eq!(named("-A -u 192.0.2.4:69 -s rr"), "-A -u 192.0.2.4:tftp -s rr");
    }

    #[test]
    fn what_is_a_number_stays() {
        let line = "-a -t 1.2.3.4:80 -r [2001:db8::1]:8080 -m -w 514";
        assert_eq!(numbered(&words(line)), words(line));
        assert_eq!(numbered(&words("-A -t 1.2.3:80")), words("-A -t 1.2.3:80"));
    }
}
