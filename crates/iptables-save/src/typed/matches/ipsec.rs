//! Matches of the headers of IPsec.

use crate::typed::{Not, Span, typed};

typed! {
    /// The authentication header of IPsec.
    Ah = "ah" {
        /// Security parameter index.
        ahspi: Option<Not<Span<u32>>> = "ahspi",
        /// Length of the header in bytes (ip6tables).
        ahlen: Option<Not<u32>> = "ahlen",
        /// The reserved bytes are zero (ip6tables).
        ahres: bool = "ahres",
    }
    /// The encapsulating security payload of IPsec.
    Esp = "esp" {
        /// Security parameter index.
        espspi: Option<Not<Span<u32>>> = "espspi",
    }
    /// The compression header of IPsec.
    Ipcomp = "ipcomp" {
        /// Compression parameter index.
        spi: Option<Not<Span<u32>>> = "ipcompspi",
        /// The reserved field is zero.
        res: bool = "compres",
    }
}
