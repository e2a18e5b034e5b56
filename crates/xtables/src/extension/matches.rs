//! Matches.

mod conntrack;
mod header;
mod ipv6;
mod ipvs;
mod meta;
mod network;
mod rate;
mod rateest;
mod set;
mod text;
mod transport;

pub(in crate::extension) use set::{NO_SET, read_set_of, write_set};

use super::{Codec, Decode, Encode, Kind};

pub(super) fn all() -> impl Iterator<Item = &'static Codec> {
    [
        transport::CODECS,
        conntrack::CODECS,
        meta::CODECS,
        rate::CODECS,
        rateest::CODECS,
        header::CODECS,
        network::CODECS,
        set::CODECS,
        text::CODECS,
        ipv6::CODECS,
        ipvs::CODECS,
    ]
    .into_iter()
    .flatten()
}

const fn codec(name: &'static str, revision: u8, size: usize, encode: Encode, decode: Decode) -> Codec {
    Codec::new(Kind::Match, name, revision, size, encode, decode)
}
