//! Names of at most 15 bytes, as the kernel's fields of 16 bytes require: schedulers, persistence engines,
//! network interfaces.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Invalid};

/// `IP_VS_SCHEDNAME_MAXLEN`, `IP_VS_PENAME_MAXLEN` and `IP_VS_IFNAME_MAXLEN` of `linux/ip_vs.h`: 16 with the
/// final NUL.
const ROOM: usize = 16;

/// A name of 1 to 15 printable ASCII characters without white space, stored inline. It fits the kernel's
/// field, and cannot inject another word into the text form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Name([u8; ROOM]);

impl Name {
    /// Returns a name for the constants below. A literal that is not valid fails to compile.
    const fn literal(text: &str) -> Self {
        let bytes = text.as_bytes();
        assert!(fits(bytes));
        let mut name = [0; ROOM];
        let mut at = 0;
        while at < bytes.len() {
            name[at] = bytes[at];
            at += 1;
        }
        Self(name)
    }

    fn new(text: &str) -> Option<Self> {
        if !fits(text.as_bytes()) {
            return None;
        }
        let mut name = [0; ROOM];
        for (to, from) in name.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Some(Self(name))
    }

    fn as_str(&self) -> &str {
        let text = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        // `new` and `literal` have checked that it is ASCII.
        std::str::from_utf8(text).unwrap_or_default()
    }
}

const fn fits(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_graphic() {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty() && bytes.len() < ROOM
}

macro_rules! names {
    ($(
        $(#[$doc:meta])*
        $type:ident, $kind:literal, { $($(#[$item:meta])* $const:ident = $text:literal;)* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Name);

        impl $type {
            $($(#[$item])* pub const $const: Self = Self(Name::literal($text));)*

            /// The names that this crate knows. A kernel may have others.
            pub const KNOWN: &[Self] = &[$(Self::$const),*];

            /// Checks a name: 1 to 15 printable ASCII characters, no white space.
            ///
            /// # Errors
            /// [`Error::Invalid`] when it is empty, too long, or has any other character.
            pub fn new(name: &str) -> Result<Self, Error> {
                Name::new(name)
                    .map(Self)
                    .ok_or_else(|| Invalid::Name { kind: $kind, name: name.to_owned() }.into())
            }

            /// Returns the name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(name: &str) -> Result<Self, Error> {
                Self::new(name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($type), "({})"), self.as_str())
            }
        }
    )*};
}

names! {
    /// A scheduler, by the name of its kernel module without `ip_vs_`.
    ///
    /// The set is open: a kernel may have other schedulers than these constants. It answers `ENOENT` if it
    /// does not have one.
    Scheduler, "scheduler", {
        /// Round robin.
        RR = "rr";
        /// Weighted round robin.
        WRR = "wrr";
        /// Least connection.
        LC = "lc";
        /// Weighted least connection, the default of ipvsadm.
        WLC = "wlc";
        /// Locality-based least connection.
        ///
        /// Load `ip_vs_lblc` (and `ip_vs_lblcr`) before the first service asks for it, where network
        /// namespaces with IPVS go at the same time: Linux loads the module with the lock of IPVS held, the
        /// module waits for the namespaces that go, and these for that lock (seen with 6.1).
        LBLC = "lblc";
        /// Locality-based least connection with replication. Its module is to be loaded before, as that of
        /// [`LBLC`](Self::LBLC).
        LBLCR = "lblcr";
        /// Destination hashing.
        DH = "dh";
        /// Source hashing.
        SH = "sh";
        /// Shortest expected delay.
        SED = "sed";
        /// Never queue.
        NQ = "nq";
        /// Weighted failover.
        FO = "fo";
        /// Weighted overflow.
        OVF = "ovf";
        /// Maglev hashing (Linux 4.18).
        MH = "mh";
        /// Power of two random choices (Linux 5.9).
        TWOS = "twos";
        /// The name that the kernel reports for a service whose scheduler was removed.
        NONE = "none";
    }

    /// A persistence engine, which recognises connections of one session by other data than the client's
    /// address.
    Engine, "persistence engine", {
        /// The Call-ID of SIP over UDP.
        SIP = "sip";
    }

    /// The network interface that a sync daemon sends and receives on.
    Interface, "interface", {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_15_printable_characters() {
        assert_eq!(Scheduler::new("rr").unwrap(), Scheduler::RR);
        assert_eq!(Scheduler::new("abcdefghijklmno").unwrap().as_str(), "abcdefghijklmno");
        for wrong in ["", "abcdefghijklmnop", "a b", "a\nb", "a\0b", "é"] {
            assert!(Scheduler::new(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_error_contains_the_name_that_is_not_valid() {
        let error = Interface::new("eth 0").unwrap_err().to_string();
        assert_eq!(
            error,
            "interface name `eth 0` is not valid: expected 1 to 15 printable ASCII characters without white \
             space"
        );
    }

    #[test]
    fn a_name_prints_as_its_text() {
        assert_eq!(Scheduler::WLC.to_string(), "wlc");
        assert_eq!(format!("{:?}", Engine::SIP), "Engine(sip)");
    }
}
