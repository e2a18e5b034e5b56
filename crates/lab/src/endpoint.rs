//! A server that sends its name and the address of the client.

use std::io::Write as _;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use crate::{Error, Namespace};

/// Starts a TCP and a UDP server on each of `ports` inside a namespace, for IPv4 and IPv6. It answers each
/// connection or datagram with `NAME SOURCE-ADDRESS` and lives until the process ends.
///
/// # Errors
/// When a port cannot be bound.
pub fn serve(namespace: &Namespace, name: &str, ports: &[u16]) -> Result<(), Error> {
    for &port in ports {
        let fail = |e| Error::network(format!("listening on port {port} in {}", namespace.name()), e);
        // A socket stays in the namespace of the thread that created it.
        let listener = namespace.run(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))).map_err(fail)?;
        let socket = namespace.run(|| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port))).map_err(fail)?;
        let (tcp_name, udp_name) = (name.to_owned(), name.to_owned());
        std::thread::spawn(move || answer_tcp(&listener, &tcp_name));
        std::thread::spawn(move || answer_udp(&socket, &udp_name));
    }
    Ok(())
}

fn answer_tcp(listener: &TcpListener, name: &str) {
    while let Ok((mut stream, from)) = listener.accept() {
        // The client may have closed the connection.
        let _ = stream.write_all(greeting(name, from).as_bytes());
    }
}

fn answer_udp(socket: &UdpSocket, name: &str) {
    let mut request = [0; 64];
    loop {
        // An ICMP error for an earlier answer is reported here. The server goes on.
        if let Ok((_, from)) = socket.recv_from(&mut request) {
            let _ = socket.send_to(greeting(name, from).as_bytes(), from);
        }
    }
}

fn greeting(name: &str, from: SocketAddr) -> String {
    format!("{name} {}", from.ip().to_canonical())
}
