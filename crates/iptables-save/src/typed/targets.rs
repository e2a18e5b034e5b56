//! Targets as structures. Names and meanings are those of iptables-extensions(8).

mod header;
mod log;
mod mark;
mod nat;
mod verdict;

pub use header::{Checksum, Dscp, Ecn, Hl, Tcpmss, Tcpoptstrip, Tos, Ttl};
pub use log::{Audit, Idletimer, Led, Log, Nflog, Rateest, Tee, Trace, Ulog};
pub use mark::{Classify, Connmark, Connsecmark, Hmark, Mark, Secmark};
pub use nat::{Clusterip, Dnat, Dnpt, Masquerade, Netmap, Redirect, Snat, Snpt, Tproxy};
pub use verdict::{Ct, Nfqueue, Notrack, Reject, Set, Synproxy};
