//! Matches as structures. Names and meanings are those of iptables-extensions(8).

mod address;
mod connection;
mod header;
mod host;
mod ipsec;
mod ipv6;
mod policy;
mod rate;
mod transport;

pub use address::{Addrtype, Devgroup, Eui64, Iprange, Mac, Physdev, Pkttype, Realm, Rpfilter};
pub use connection::{Cluster, Connbytes, Connlabel, Connlimit, Connmark, Conntrack, Helper, Ipvs, State};
pub use header::{Bpf, Dscp, Ecn, Hl, Length, StringMatch, Tos, Ttl, U32};
pub use host::{Cgroup, Comment, Cpu, Mark, Owner, Set, Socket};
pub use ipsec::{Ah, Esp, Ipcomp};
pub use ipv6::{Dst, Frag, Hbh, Ipv6header, Mh, Rt, Srh};
pub use policy::{Policy, PolicyElement};
pub use rate::{Hashlimit, Limit, Nfacct, Quota, Rateest, Recent, Statistic, Time};
pub use transport::{Dccp, Icmp, Icmp6, Multiport, Osf, Sctp, Tcp, Tcpmss, Udp};
