//! A client that opens connections and reports which endpoint answered, or that none did.

use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// The transport protocol of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// A TCP connection.
    Tcp,
    /// A UDP datagram from a port of its own.
    Udp,
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// The outcome of one connection or datagram.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// An endpoint answered: its name, and the source address that it saw.
    From {
        /// The endpoint's name.
        name: String,
        /// The source address that it saw.
        source: IpAddr,
    },
    /// Refused at once (a reset, or an ICMP error).
    Refused,
    /// A rule on the way out of the client's own host stopped it (`EPERM`): dropped or rejected, the client
    /// cannot tell.
    Stopped,
    /// There was no answer in time.
    Silence,
    /// Another error occurred.
    Failed(String),
}

/// Connects to `target` from the current namespace, `times` times, each from a new port. Returns every
/// outcome.
#[must_use]
pub fn ask(transport: Transport, target: SocketAddr, times: usize, patience: Duration) -> Vec<Answer> {
    (0..times)
        .map(|_| {
            let text = match transport {
                Transport::Tcp => ask_tcp(target, patience),
                Transport::Udp => ask_udp(target, patience),
            };
            text.map_or_else(|error| failure(&error), |text| parse(&text))
        })
        .collect()
}

fn ask_tcp(target: SocketAddr, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&target, patience)?;
    stream.set_read_timeout(Some(patience))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn ask_udp(target: SocketAddr, patience: Duration) -> io::Result<String> {
    let any: IpAddr =
        if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_read_timeout(Some(patience))?;
    socket.connect(target)?;
    socket.send(b"who?")?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    Ok(String::from_utf8_lossy(answer.get(..length).unwrap_or_default()).into_owned())
}

fn parse(text: &str) -> Answer {
    match text.split_once(' ').map(|(name, source)| (name, source.parse())) {
        Some((name, Ok(source))) => Answer::From { name: name.to_owned(), source },
        _ => Answer::Failed(format!("expected an endpoint and an address, found {text:?}")),
    }
}

fn failure(error: &io::Error) -> Answer {
    if error.raw_os_error() == Some(nix::Error::EPERM as i32) {
        return Answer::Stopped;
    }
    match error.kind() {
        // A prohibited address is refused by ICMP as EHOSTUNREACH or EACCES.
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::PermissionDenied => Answer::Refused,
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Answer::Silence,
        _ => Answer::Failed(error.to_string()),
    }
}
