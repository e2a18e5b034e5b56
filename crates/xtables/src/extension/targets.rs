//! Targets.

mod cluster;
mod conntrack;
mod header;
mod log;
mod mark;
mod nat;
mod rate;
mod verdict;

use super::{Codec, Decode, Encode, Kind};

pub(super) fn all() -> impl Iterator<Item = &'static Codec> {
    [
        nat::CODECS,
        mark::CODECS,
        conntrack::CODECS,
        header::CODECS,
        log::CODECS,
        rate::CODECS,
        verdict::CODECS,
        cluster::CODECS,
    ]
    .into_iter()
    .flatten()
}

const fn codec(name: &'static str, revision: u8, size: usize, encode: Encode, decode: Decode) -> Codec {
    Codec::new(Kind::Target, name, revision, size, encode, decode)
}
