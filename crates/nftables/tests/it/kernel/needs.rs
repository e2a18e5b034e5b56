//! What parts of these tests need, and not every kernel has. Each need is asked for once; what a kernel lacks
//! is told, and has to be in another that these tests run in: this machine's, and the guests'.

use std::sync::OnceLock;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::kind::{Byteorder, Meta};
use sluicegate_nftables::expr::{ByteorderOp, CtKey, MetaKey, Register};
use sluicegate_nftables::lang::{CtState, Match, Statement};
use sluicegate_nftables::probe::{Feature, has_expression, supports};
use sluicegate_nftables::*;

use crate::kernel::cases::name;
use crate::kernel::probing::version;

struct Need {
    /// What is needed.
    what: &'static str,
    /// The cases, the files of the corpus and the words of rules that need it.
    of: &'static [&'static str],
    has: fn(&mut Socket) -> Result<bool, Error>,
    /// Those of the guests' kernels that lack it.
    lacked_by: &'static [(u32, u32)],
    met: OnceLock<bool>,
}

/// The kernels of the guests, as this package's manifest has them: Debian's for clouds.
const GUESTS: &[(u32, u32)] = &[(6, 1), (6, 12)];

static NEEDS: [Need; 13] = [
    need("bits of two registers", &["two values"], GUESTS, |s| supports(s, Feature::BitwiseRegisters)),
    need("flowtables", &["flowtable", "flowtables"], &[], |socket| supports(socket, Feature::Flowtable)),
    need("chains on devices that are not there", &["offload", "a chain of devices"], GUESTS, |socket| {
        supports(socket, Feature::AbsentDevice)
    }),
    need("counts of the elements of sets", &["counts"], GUESTS, |socket| {
        let set = TableId::new(Family::IP, name("t")).set(name("s"));
        let mut tx = Transaction::new();
        tx.add(Table::new(set.table.clone())).add(Set::new(set, DataType::IPV4_ADDR));
        tx.apply(socket)?;
        Ok(read::set(socket, &TableId::new(Family::IP, name("t")).set(name("s")))?
            .is_some_and(|set| set.count.is_some()))
    }),
    need("queue", &["queue"], &[], |socket| supports(socket, Feature::Queue)),
    need("options of DCCP", &["dccp"], &[], |socket| supports(socket, Feature::DccpOption)),
    need("inner", &["gre", "vxlan", "geneve", "gretap"], &[(6, 1)], |s| supports(s, Feature::Inner)),
    need("meta of bridges", &["bridge meta", "bridge_meta"], &[], |socket| {
        takes(socket, Family::BRIDGE, Match::new(MetaKey::IBRPVID, 7_u32).into())
    }),
    need("ct of bridges", &["bridge_ct"], &[], |socket| {
        takes(socket, Family::BRIDGE, Match::new(CtKey::STATE, CtState::NEW).into())
    }),
    need("reject of bridges", &["bridge_reject"], &[], |socket| {
        has_expression(socket, Family::BRIDGE, "reject")
    }),
    need("reject of devices", &["netdev_reject"], GUESTS, |socket| {
        has_expression(socket, Family::NETDEV, "reject")
    }),
    need("what is registered at hooks", &["registered hooks"], &[(6, 1)], |socket| {
        supports(socket, Feature::RegisteredHooks)
    }),
    // nft 1.0.6 sends that where it does nothing, and some kernels refuse it.
    need("byteorder of a single byte", &["concat_protocol"], &[(6, 12)], |socket| {
        let reg = Register::word(0);
        let turn = Byteorder { sreg: reg, dreg: reg, op: ByteorderOp::HTON, len: 1, size: 2 };
        let load = Meta { key: MetaKey::L4PROTO, dreg: Some(reg), sreg: None };
        takes(socket, Family::INET, Statement::Raw(vec![load.into(), turn.into()]))
    }),
];

const fn need(
    what: &'static str,
    of: &'static [&'static str],
    lacked_by: &'static [(u32, u32)],
    has: fn(&mut Socket) -> Result<bool, Error>,
) -> Need {
    Need { what, of, has, lacked_by, met: OnceLock::new() }
}

/// Whether this kernel has what a case, a file of the corpus or a word needs.
pub(crate) fn met(of: &str) -> bool {
    NEEDS.iter().filter(|need| need.of.contains(&of)).all(Need::is_met)
}

impl Need {
    fn is_met(&self) -> bool {
        *self.met.get_or_init(|| {
            let namespace = testns::Netns::new();
            let met = namespace.is_some_and(|n| n.run(|| (self.has)(&mut socket())).expect("it answers"));
            if !met {
                testns::lacks(self.what);
            }
            met
        })
    }
}

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket")
}

/// Whether the kernel would take a rule.
fn takes(socket: &mut Socket, family: Family, statement: Statement) -> Result<bool, Error> {
    let chain = TableId::new(family, name("t")).chain(name("c"));
    let mut tx = Transaction::new();
    tx.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone())).add(chain.rule().then(statement));
    Ok(tx.apply_with(socket, ApplyOptions::default().check()).is_ok())
}

#[test]
fn what_is_lacking_here_is_in_another_kernel() {
    // Whoever may not ask knows of nothing that is there.
    if testns::Netns::new().is_none() {
        return;
    }
    let wrong: Vec<_> = if testns::guest().is_some() {
        let version = version();
        NEEDS.iter().filter(|need| need.is_met() == need.lacked_by.contains(&version)).collect()
    } else {
        NEEDS.iter().filter(|need| need.lacked_by.len() == GUESTS.len() && !need.is_met()).collect()
    };
    let wrong: Vec<_> = wrong.into_iter().map(|need| need.what).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
