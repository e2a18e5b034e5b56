//! A small network: client, director and servers on one bridge, in namespaces of their own.
//!
//! ```text
//! client    10.0.0.100 10.1.0.100 fd00::100 fd01::100
//! director  10.0.0.1   10.1.0.1   fd00::1   fd01::1     and the virtual addresses
//! server i  10.0.0.2i             fd00::2i              default route: the director
//! ```
//! Virtual addresses in `10.0.0.0/24` and `fd00::/64` are for direct routing and tunnels: the servers have
//! them as well, without answering ARP for them, and answer the client directly. Those in `10.1.0.0/24` and
//! `fd01::/64` are for masquerading: answers return through the director.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use sluicegate_ipvs::Client;
use testns::Netns;

/// The virtual address of direct routing and tunnels.
pub(crate) const DIRECT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 10));
/// The same in IPv6.
pub(crate) const DIRECT6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x10));
/// The virtual address of masquerading.
pub(crate) const MASQUERADE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 10));
/// The same in IPv6.
pub(crate) const MASQUERADE6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 0x10));
/// The port of the servers.
pub(crate) const PORT: u16 = 8080;

const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) struct Lab {
    pub(crate) director: Netns,
    pub(crate) client: Netns,
    pub(crate) servers: Vec<Netns>,
    /// The namespace of the bridge between them.
    _wire: Netns,
}

impl Lab {
    /// Builds the network, with TCP and UDP servers that answer with their name: `s1`, `s2`, ...
    pub(crate) fn new(servers: u8) -> Self {
        let namespace = || Netns::new().expect("the guest's root can make namespaces");
        let (wire, director, client) = (namespace(), namespace(), namespace());
        let servers: Vec<_> = (0..servers).map(|_| namespace()).collect();
        connect(&wire, [&director, &client].into_iter().chain(&servers));
        director.run(|| {
            // Before addresses are added: after a redirect answers would not return through the director.
            for (path, value) in [
                ("ipv4/ip_forward", "1"),
                ("ipv6/conf/all/forwarding", "1"),
                ("ipv4/conf/all/send_redirects", "0"),
                ("ipv4/conf/eth0/send_redirects", "0"),
            ] {
                sysctl(path, value);
            }
            addresses(&["10.0.0.1/24", "10.1.0.1/24", "fd00::1/64", "fd01::1/64"]);
            addresses(&["10.0.0.10/32", "10.1.0.10/32", "fd00::10/128", "fd01::10/128"]);
        });
        client.run(|| addresses(&["10.0.0.100/24", "10.1.0.100/24", "fd00::100/64", "fd01::100/64"]));
        for (number, server) in servers.iter().enumerate() {
            start_server(server, number + 1);
        }
        Self { director, client, servers, _wire: wire }
    }

    /// Returns a client of the director's IPVS.
    pub(crate) fn ipvs(&self) -> Client {
        self.director.run(|| Client::open().expect("the guest has IPVS"))
    }

    /// Returns the address of server `number`, from 1.
    pub(crate) fn server(&self, number: u8, like: IpAddr) -> IpAddr {
        server_address(number.into(), like.is_ipv6())
    }

    /// Opens `count` connections, one after the other, and returns how often each server answered.
    pub(crate) fn tcp(&self, to: IpAddr, port: u16, count: usize) -> BTreeMap<String, usize> {
        let mut answers = BTreeMap::new();
        for _ in 0..count {
            let connection = self.connect(to, port);
            *answers.entry(connection.name.clone()).or_default() += 1;
            connection.reset();
        }
        answers
    }

    /// Opens a connection and keeps it.
    pub(crate) fn connect(&self, to: IpAddr, port: u16) -> Connection {
        self.client.run(|| {
            let stream =
                TcpStream::connect_timeout(&SocketAddr::new(to, port), PATIENCE).expect("a connection");
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut reader = BufReader::new(stream);
            let mut name = String::new();
            reader.read_line(&mut name).expect("the name of the server");
            Connection { reader, name: name.trim_end().to_owned() }
        })
    }

    /// Sends `count` datagrams from as many sockets: to IPVS, datagrams from one port are one connection.
    pub(crate) fn udp(&self, to: IpAddr, port: u16, count: usize) -> BTreeMap<String, usize> {
        let sockets: Vec<_> = (0..count).map(|_| self.udp_socket(to, port)).collect();
        let mut answers = BTreeMap::new();
        for socket in &sockets {
            *answers.entry(ask(socket)).or_default() += 1;
        }
        answers
    }

    pub(crate) fn udp_socket(&self, to: IpAddr, port: u16) -> UdpSocket {
        self.client.run(|| {
            let any: IpAddr =
                if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let socket = UdpSocket::bind((any, 0)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.connect((to, port)).unwrap();
            socket
        })
    }
}

/// Sends a request, and returns the answer: the name of the server.
pub(crate) fn ask(socket: &UdpSocket) -> String {
    socket.send(b"?").unwrap();
    let mut buffer = [0; 64];
    let length = socket.recv(&mut buffer).expect("an answer");
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

/// An open connection to a server.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    pub(crate) name: String,
}

impl Connection {
    /// Returns whether the server still answers.
    pub(crate) fn echo(&mut self) -> bool {
        let mut answer = [0; 5];
        self.reader.get_mut().write_all(b"hello").is_ok()
            && self.reader.read_exact(&mut answer).is_ok()
            && answer == *b"hello"
    }

    /// Closes it with a reset, which a socket with an unread answer sends. IPVS then removes the connection
    /// after ten seconds instead of minutes.
    pub(crate) fn reset(mut self) {
        self.reader.get_mut().write_all(b"hello").unwrap();
        let mut byte = [0];
        self.reader.get_mut().peek(&mut byte).unwrap();
    }
}

/// Waits until `condition` is true.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "in vain waited for: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Sets a sysctl in the namespace of the calling thread.
pub(crate) fn sysctl(path: &str, value: &str) {
    let path = format!("/proc/sys/net/{path}");
    std::fs::write(&path, value).unwrap_or_else(|e| panic!("{path}: {e}"));
}

/// Runs lines of iproute2's batch mode, in the namespace of the calling thread.
pub(crate) fn ip(batch: &str) {
    let output = testns::feed(&["ip", "-batch", "-"], batch);
    assert!(output.status.success(), "{batch}\n{output:?}");
}

fn server_address(number: usize, six: bool) -> IpAddr {
    let last = u8::try_from(20 + number).unwrap();
    if six { Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into()).into() } else { [10, 0, 0, last].into() }
}

/// Creates a bridge with a link to each host, whose end is called eth0.
fn connect<'a>(wire: &Netns, hosts: impl Iterator<Item = &'a Netns>) {
    let mut batch = "link add br0 type bridge\nlink set br0 up\n".to_owned();
    let hosts: Vec<_> = hosts.collect();
    for (number, host) in hosts.iter().enumerate() {
        let path = host.path();
        batch += &format!(
            "link add p{number} type veth peer name eth0 netns {path}\nlink set p{number} master br0 up\n"
        );
    }
    wire.run(|| ip(&batch));
    for host in hosts {
        host.run(|| ip("link set eth0 up\n"));
    }
}

/// Adds addresses to eth0, without duplicate address detection.
fn addresses(list: &[&str]) {
    let line = |address: &&str| {
        let nodad = if address.contains("::") { " nodad" } else { "" };
        format!("addr add {address} dev eth0{nodad}\n")
    };
    ip(&list.iter().map(line).collect::<String>());
}

fn start_server(server: &Netns, number: usize) {
    let own = [server_address(number, false), server_address(number, true)];
    server.run(|| {
        // A server has the virtual addresses of direct routing, and does not answer ARP for them.
        for device in ["all", "eth0"] {
            // The director would redirect the answers of masquerading (for IPv6 it cannot be configured not
            // to).
            sysctl(&format!("ipv6/conf/{device}/accept_redirects"), "0");
            sysctl(&format!("ipv4/conf/{device}/arp_ignore"), "1");
            sysctl(&format!("ipv4/conf/{device}/arp_announce"), "2");
        }
        addresses(&[&format!("{}/24", own[0]), &format!("{}/64", own[1])]);
        ip(&format!(
            "addr add {DIRECT}/32 dev lo\naddr add {DIRECT6}/128 dev lo nodad\n\
             route add default via 10.0.0.1\nroute add ::/0 via fd00::1\n"
        ));
    });
    let listener = server.run(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)).unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| serve(stream, number)));
    // One socket for each address: the answer must come from the address that the request was sent to.
    for address in own.into_iter().chain([DIRECT, DIRECT6]) {
        let socket = server.run(|| UdpSocket::bind((address, PORT)).unwrap());
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((_, from)) = socket.recv_from(&mut buffer) {
                let _ = socket.send_to(format!("s{number}").as_bytes(), from);
            }
        });
    }
}

/// Sends its name, then echoes until the client closes the connection.
fn serve(mut stream: TcpStream, number: usize) {
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        let mut answer = format!("s{number}\n").into_bytes();
        while stream.write_all(&answer).is_ok() {
            match stream.read(&mut buffer) {
                Ok(length @ 1..) => answer = buffer[..length].to_vec(),
                _ => return,
            }
        }
    });
}
