//! A server that tells a client who answered and from where it was asked.

use std::io::Write as _;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use super::{LabError, Namespace};

/// Starts a TCP and a UDP server on each of `ports` inside a namespace, for IPv4 and IPv6. It answers each connection
/// or datagram with `NAME SOURCE-ADDRESS` and lives until the process ends.
///
/// # Errors
/// When a port cannot be bound.
pub fn serve(namespace: &Namespace, name: &str, ports: &[u16]) -> Result<(), LabError> {
    for &port in ports {
        let fail = |e| LabError::new(format!("listening on port {port} in {}", namespace.name()), e);
        // A socket stays in the namespace of the thread that made it.
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
        // A client that went away is not this server's business.
        let _ = stream.write_all(greeting(name, from).as_bytes());
    }
}

fn answer_udp(socket: &UdpSocket, name: &str) {
    let mut request = [0; 64];
    loop {
        // A refusal of an earlier answer (ICMP) is reported here, and is no reason to stop.
        if let Ok((_, from)) = socket.recv_from(&mut request) {
            let _ = socket.send_to(greeting(name, from).as_bytes(), from);
        }
    }
}

fn greeting(name: &str, from: SocketAddr) -> String {
    format!("{name} {}", from.ip().to_canonical())
}
