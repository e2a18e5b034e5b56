//! One proxier in a network namespace: two of them would undo each other's work without end.
//!
//! The lock is a listening socket in the abstract namespace of Unix sockets, `@sluicegate-proxier`. Such a name belongs to a
//! network namespace, as the rules do, so two pods of one node that share its network meet there whatever files they
//! see, and a proxier in another network namespace does not. It needs no disk and no right, and it is gone with the
//! process, however that ends.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use crate::Error;

/// Held as long as this value lives.
#[derive(Debug)]
pub struct Lock {
    _listener: UnixListener,
}

impl Lock {
    /// Takes the lock of the current network namespace.
    ///
    /// # Errors
    /// [`Error::Locked`] when another process has it, with its number where that can be seen from here.
    pub fn take() -> Result<Self, Error> {
        let address = SocketAddr::from_abstract_name(NAME);
        let bound = address.and_then(|address| {
            UnixListener::bind_addr(&address).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => io::Error::new(error.kind(), holder(&address)),
                _ => error,
            })
        });
        match bound {
            Ok(listener) => Ok(Self { _listener: listener }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(Error::Locked { holder: error.to_string() })
            }
            Err(source) => Err(Error::Read { path: "@sluicegate-proxier".into(), source }),
        }
    }
}

/// Who listens there: `process 1234`.
fn holder(address: &SocketAddr) -> String {
    let peer = UnixStream::connect_addr(address).ok();
    let credentials = peer.and_then(|peer| getsockopt(&peer, PeerCredentials).ok());
    match credentials.map(|credentials| credentials.pid()) {
        // A process that this process's namespace has no number for is 0.
        Some(pid) if pid > 0 => format!("process {pid}"),
        _ => "a process of another pid namespace".to_owned(),
    }
}

const NAME: &[u8] = b"sluicegate-proxier";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_by_name_of_its_holder_until_the_first_is_gone_and_namespaces_do_not_share_it()
    {
        testns::netns(|| {
            let first = Lock::take().expect("nobody has it");
            let refused = Lock::take().expect_err("it is taken").to_string();
            assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
            testns::netns(|| drop(Lock::take().expect("another namespace has its own")));
            drop(first);
            Lock::take().expect("it is free again");
        });
    }
}
