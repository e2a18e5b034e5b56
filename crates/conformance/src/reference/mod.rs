//! libnftnl as the one who says what a message means.
#![allow(unsafe_code, reason = "libnftnl is a C library, and its safe wrapper has no parser")]

mod expression;

use std::mem::size_of;

/// libnftnl's own names and numbers.
pub use nftnl::nftnl_sys as sys;

pub use expression::{Stated, attributes_of, rule_of};

/// Lets libnftnl parse a message (`nlmsghdr` and all) and build its payload again, `nfgenmsg` left out.
///
/// # Errors
/// What libnftnl would not take: a message of a kind that it has no object for, or one that it cannot parse.
pub fn rebuild(message: &[u8]) -> Result<Vec<u8>, String> {
    let mut input = Aligned::new(message.len());
    input.bytes_mut().get_mut(..message.len()).ok_or("no room")?.copy_from_slice(message);
    if message.len() < HEADER || input.length() != message.len() {
        return Err(format!("{} bytes are no message", message.len()));
    }
    let command = message.get(4).copied().unwrap_or(u8::MAX);
    let mut output = Aligned::new(ROOM);
    output
        .bytes_mut()
        .get_mut(..HEADER)
        .ok_or("no room")?
        .copy_from_slice(message.get(..HEADER).unwrap_or_default());
    output.set_length(HEADER);
    let (from, to) = (input.pointer(), output.pointer());

    macro_rules! object {
        ($alloc:ident, $parse:ident, $build:ident, $free:ident) => {{
            // SAFETY: both point at messages whose headers are true: `input` was checked to be as long as its
            // header says, and `output` has 256 KiB behind its header, four times what a message of ours can
            // hold. The object is ours until it is freed.
            unsafe {
                let object = sys::$alloc();
                let parsed = sys::$parse(from, object);
                if parsed >= 0 {
                    sys::$build(to, object);
                }
                sys::$free(object);
                parsed
            }
        }};
    }
    // NFT_MSG_DESTROY... say what NFT_MSG_DEL... do.
    let parsed = match command {
        0..=2 | 26 => object!(
            nftnl_table_alloc,
            nftnl_table_nlmsg_parse,
            nftnl_table_nlmsg_build_payload,
            nftnl_table_free
        ),
        3..=5 | 27 => object!(
            nftnl_chain_alloc,
            nftnl_chain_nlmsg_parse,
            nftnl_chain_nlmsg_build_payload,
            nftnl_chain_free
        ),
        6..=8 | 28 => {
            object!(nftnl_rule_alloc, nftnl_rule_nlmsg_parse, nftnl_rule_nlmsg_build_payload, nftnl_rule_free)
        }
        9..=11 | 29 => {
            object!(nftnl_set_alloc, nftnl_set_nlmsg_parse, nftnl_set_nlmsg_build_payload, nftnl_set_free)
        }
        12..=14 | 30 => object!(
            nftnl_set_alloc,
            nftnl_set_elems_nlmsg_parse,
            nftnl_set_elems_nlmsg_build_payload,
            nftnl_set_free
        ),
        18..=20 | 31 => {
            object!(nftnl_obj_alloc, nftnl_obj_nlmsg_parse, nftnl_obj_nlmsg_build_payload, nftnl_obj_free)
        }
        22..=24 | 32 => object!(
            nftnl_flowtable_alloc,
            nftnl_flowtable_nlmsg_parse,
            nftnl_flowtable_nlmsg_build_payload,
            nftnl_flowtable_free
        ),
        other => return Err(format!("libnftnl has no object for command {other}")),
    };
    if parsed < 0 {
        return Err(format!("libnftnl cannot parse it: {}", std::io::Error::last_os_error()));
    }
    let length = output.length();
    output.bytes_mut().get(HEADER..length).map(<[u8]>::to_vec).ok_or_else(|| "it built too much".to_owned())
}

/// A message in memory that is aligned as C wants it.
struct Aligned(Vec<u64>);

impl Aligned {
    fn new(bytes: usize) -> Self {
        Self(vec![0; bytes.div_ceil(8) + 2])
    }

    fn pointer(&mut self) -> *mut NlMsgHdr {
        self.0.as_mut_ptr().cast()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: any u64 is eight bytes of any value, and these are borrowed as long as the vector is.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * size_of::<u64>()) }
    }

    /// `nlmsg_len`
    fn length(&mut self) -> usize {
        let field = self.bytes_mut().first_chunk::<4>().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        usize::try_from(field).unwrap_or(usize::MAX)
    }

    fn set_length(&mut self, length: usize) {
        let field = u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes();
        if let Some(place) = self.bytes_mut().first_chunk_mut::<4>() {
            *place = field;
        }
    }
}

type NlMsgHdr = sys::libc::nlmsghdr;

/// `struct nlmsghdr` and `struct nfgenmsg`.
const HEADER: usize = 20;
/// Room for what libnftnl builds.
const ROOM: usize = 256 << 10;
