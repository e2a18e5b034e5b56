//! Loopback, by one message of rtnetlink(7): `ip` would be another process for each namespace, and starting
//! one takes a tenth of a second where the processor is emulated.

use std::io;

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Sets `lo` up in the network namespace of this thread.
pub(crate) fn set_up() -> io::Result<()> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(), 0)?;
    let mut answer = Vec::with_capacity(4096);
    socket.recv(&mut answer, 0)?;
    refusal(&answer)
}

/// Returns the message: `struct nlmsghdr` and `struct ifinfomsg`.
fn request() -> Vec<u8> {
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    // Its number, and ours, which the kernel knows.
    message.extend([0; 8]);
    // The family and the type of the device: any.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    // What its flags are to be, and which of them are to change.
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message
}

/// Returns the error in an acknowledgement, `struct nlmsgerr`: none is zero.
fn refusal(answer: &[u8]) -> io::Result<()> {
    let short = || io::Error::other(format!("expected an acknowledgement, found {} bytes", answer.len()));
    let error = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)?;
    match i32::from_ne_bytes(error) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

const LENGTH: u32 = 32;
// linux/rtnetlink.h, linux/netlink.h, linux/if.h.
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFF_UP: u32 = 1;
/// The first device of every network namespace.
const LOOPBACK: i32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_of_a_new_namespace_is_up_and_has_its_addresses() {
        crate::netns(|| {
            let bound = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
            std::net::TcpStream::connect(bound.local_addr().expect("an address")).expect("a connection");
            std::net::TcpListener::bind("[::1]:0").expect("an address of IPv6");
        });
    }

    #[test]
    fn a_refusal_is_an_error() {
        assert_eq!(request().len(), LENGTH as usize);
        let mut answer = [0; 36];
        assert!(refusal(&answer).is_ok());
        answer[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(refusal(&answer).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(refusal(&answer[..16]).is_err());
    }
}
