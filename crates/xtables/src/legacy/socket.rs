//! The socket options of iptables: the only file of the crate with `unsafe` code.
//!
//! The requests take a structure that names the table and is overwritten with the answer, or has a pointer
//! inside. The safe wrappers of rustix, nix and socket2 have neither, so getsockopt(2) and setsockopt(2) are
//! called here. `Socket::get` hands the kernel a buffer and its length. `Socket::replace` alone writes a
//! pointer into a request, of a slice that outlives the call.
#![allow(unsafe_code, reason = "no safe wrapper takes these two socket options")]

use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use sluicegate_iptables_save::Family;
use sluicegate_netlink::Errno;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the structures of this crate are those of 64-bit kernels");

/// A raw socket, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    level: i32,
}

/// A request that the kernel answers in the buffer. None of their structures has a pointer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Get {
    /// `IPT_SO_GET_INFO`
    Info,
    /// `IPT_SO_GET_ENTRIES`
    Entries,
    /// `IPT_SO_GET_REVISION_MATCH`
    MatchRevision,
    /// `IPT_SO_GET_REVISION_TARGET`
    TargetRevision,
    /// `SO_IP_SET` of `linux/netfilter/ipset/ip_set.h`, which is a request to IPv4 for both families.
    IpSet,
}

/// `struct xt_counters`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct RawCounters {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Socket {
    pub(super) fn open(family: Family) -> Result<Self, Errno> {
        let (domain, level) = match family {
            Family::Ipv4 => (AddressFamily::INET, libc::IPPROTO_IP),
            Family::Ipv6 => (AddressFamily::INET6, libc::IPPROTO_IPV6),
        };
        let fd = socket_with(domain, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::RAW));
        fd.map(|fd| Self { fd, level }).map_err(|error| Errno(error.raw_os_error()))
    }

    /// Sends a request, and returns the length of the answer in the buffer with the number that the call
    /// returned.
    pub(super) fn get(&self, request: Get, buffer: &mut [u8]) -> Result<(usize, i32), Errno> {
        let (level, option) = match request {
            Get::Info => (self.level, 64),
            Get::Entries => (self.level, 65),
            // IPT_SO_GET_REVISION_* are 66 and 67, IP6T_SO_GET_REVISION_* 68 and 69.
            Get::MatchRevision => (self.level, if self.level == libc::IPPROTO_IP { 66 } else { 68 }),
            Get::TargetRevision => (self.level, if self.level == libc::IPPROTO_IP { 67 } else { 69 }),
            Get::IpSet => (libc::IPPROTO_IP, 83),
        };
        let mut length = libc::socklen_t::try_from(buffer.len()).map_err(|_| Errno::E2BIG)?;
        // SAFETY: the kernel reads and writes at most `length` bytes of the buffer, which is borrowed mutably
        // for the call, and the structures of these requests contain no pointers.
        let value = unsafe {
            libc::getsockopt(self.fd.as_raw_fd(), level, option, buffer.as_mut_ptr().cast(), &raw mut length)
        };
        match value {
            0.. => Ok((usize::try_from(length).unwrap_or(buffer.len()), value)),
            _ => Err(last_error()),
        }
    }

    /// Sends `IPT_SO_SET_REPLACE`: a `struct ipt_replace` with its entries, whose last two fields before
    /// these, the number of counters and the pointer to them, are filled in here. The counters of the old
    /// entries are returned through it.
    pub(super) fn replace(&self, request: &mut [u8], counters: &mut [RawCounters]) -> Result<(), Errno> {
        // Kernels before 6.9 copy as many bytes of entries as this field says, however long the request is.
        let size = request.get(REPLACE_SIZE).and_then(|size| size.try_into().map(u32::from_ne_bytes).ok());
        let entries = request.len().checked_sub(REPLACE).and_then(|size| u32::try_from(size).ok());
        if size.is_none() || size != entries {
            return Err(Errno::EINVAL);
        }
        let count = u32::try_from(counters.len()).map_err(|_| Errno::E2BIG)?;
        let pointer = counters.as_mut_ptr().expose_provenance();
        let fields = [&count.to_ne_bytes()[..], &pointer.to_ne_bytes()].concat();
        request.get_mut(REPLACE_COUNTERS).ok_or(Errno::EINVAL)?.copy_from_slice(&fields);
        // SAFETY: as in `set`, with as many bytes behind the structure as it says; the kernel writes `count`
        // counters to `pointer`, and `counters` has so many and is borrowed mutably for the call.
        unsafe { self.set(64, request) }
    }

    /// Sends `IPT_SO_SET_ADD_COUNTERS`: a `struct xt_counters_info` with its counters.
    pub(super) fn add_counters(&self, request: &[u8]) -> Result<(), Errno> {
        // SAFETY: as in `set`; this structure contains no pointers.
        unsafe { self.set(65, request) }
    }

    /// # Safety
    /// Whatever `request` points to has to be valid for what the kernel writes there.
    unsafe fn set(&self, option: i32, request: &[u8]) -> Result<(), Errno> {
        let length = libc::socklen_t::try_from(request.len()).map_err(|_| Errno::E2BIG)?;
        // SAFETY: the kernel reads `length` bytes of the request.
        let value = unsafe {
            libc::setsockopt(self.fd.as_raw_fd(), self.level, option, request.as_ptr().cast(), length)
        };
        if value == 0 { Ok(()) } else { Err(last_error()) }
    }
}

fn last_error() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or_default())
}

/// `sizeof(struct ipt_replace)`, without its entries.
const REPLACE: usize = 96;
/// `size` of `struct ipt_replace`.
const REPLACE_SIZE: std::ops::Range<usize> = 40..44;
/// `num_counters` and `counters` of `struct ipt_replace`.
const REPLACE_COUNTERS: std::ops::Range<usize> = 84..96;
