//! Chains (`enum nft_chain_attributes`, `enum nft_hook_attributes`).

use std::fmt;

use sluicegate_netlink::attr::Writer;

use crate::family::Family;
use crate::lang::Wording;
use crate::name::{Comment, InterfaceName, Name};
use crate::object::devices::device_list;
use crate::object::{Rule, TableId, userdata};

/// What names a chain: its table and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId {
    /// The table.
    pub table: TableId,
    /// The name.
    pub name: Name,
}

impl ChainId {
    /// An empty rule in it.
    #[must_use]
    pub fn rule(&self) -> Rule {
        Rule::new(self.clone())
    }
}

impl fmt::Display for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table, self.name)
    }
}

/// A chain: regular, or, with a hook, a base chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// What names it.
    pub id: ChainId,
    /// Where packets enter it, if not by a jump only.
    pub base: Option<BaseChain>,
    /// Its comment.
    pub comment: Option<Comment>,
}

/// What makes a chain a base chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseChain {
    /// What it may do.
    pub kind: ChainType,
    /// Where packets enter it.
    pub hook: Hook,
    /// Its place among the chains of that hook; the lowest comes first.
    pub priority: Priority,
    /// What becomes of packets at its end; the kernel's default is to accept them.
    pub policy: Option<Policy>,
    /// The devices of an ingress or egress hook. A name that ends with `*` is for all devices whose names start so; only kernels with
    /// [`Feature::DevicePrefix`](crate::probe::Feature::DevicePrefix) take it.
    pub devices: Vec<InterfaceName>,
    /// Whether the devices do it themselves (`flags offload`): they match and drop before a processor sees the packet.
    ///
    /// The kernel takes this at the ingress hook of family netdev, for devices whose drivers can do it, with a priority of 1 to 65535 and without
    /// the policy `drop`; and in the chain only rules that are added at its end and that a device can follow: equality of addresses, protocols and
    /// ports, `accept`, `drop`, `fwd` and `dup`.
    pub offload: bool,
}

/// What a base chain may do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChainType {
    /// `filter`
    Filter,
    /// `nat`: sees the first packet of a connection only.
    Nat,
    /// `route`: a change of the packet makes the kernel route it again.
    Route,
    /// One of a newer kernel.
    Other(Name),
}

/// Where packets enter a base chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hook {
    /// `prerouting`
    Prerouting,
    /// `input`
    Input,
    /// `forward`
    Forward,
    /// `output`
    Output,
    /// `postrouting`
    Postrouting,
    /// `ingress`: of a device.
    Ingress,
    /// `egress`: of a device.
    Egress,
}

/// The place of a base chain among those of its hook.
///
/// nft gives names to some numbers, and not the same in every family and hook; [`Priority::name`] knows which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

/// What becomes of packets at the end of a base chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// `accept`
    Accept,
    /// `drop`
    Drop,
}

impl Chain {
    /// A regular chain.
    #[must_use]
    pub fn new(id: ChainId) -> Self {
        Self { id, base: None, comment: None }
    }

    /// A base chain.
    #[must_use]
    pub fn base(id: ChainId, kind: ChainType, hook: Hook, priority: Priority) -> Self {
        let base = BaseChain { kind, hook, priority, policy: None, devices: Vec::new(), offload: false };
        Self { id, base: Some(base), comment: None }
    }

    /// With a comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// With a policy; a regular chain has none and ignores this.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        if let Some(base) = &mut self.base {
            base.policy = Some(policy);
        }
        self
    }

    /// On these devices, for hooks that belong to a device.
    #[must_use]
    pub fn devices(mut self, devices: impl IntoIterator<Item = InterfaceName>) -> Self {
        if let Some(base) = &mut self.base {
            base.devices = devices.into_iter().collect();
        }
        self
    }

    /// Done by the devices themselves ([`BaseChain::offload`]); a regular chain has none and ignores this.
    #[must_use]
    pub fn offload(mut self) -> Self {
        if let Some(base) = &mut self.base {
            base.offload = true;
        }
        self
    }

    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.put_str(NFTA_CHAIN_TABLE, &self.id.table.name);
        w.put_str(NFTA_CHAIN_NAME, &self.id.name);
        if let Some(base) = &self.base {
            w.put_str(NFTA_CHAIN_TYPE, base.kind.name());
            if let Some(policy) = base.policy {
                w.put_be32(NFTA_CHAIN_POLICY, policy.number());
            }
            let mut hook = w.nest(NFTA_CHAIN_HOOK);
            // A hook that the family does not have gets a number that the kernel refuses.
            hook.put_be32(NFTA_HOOK_HOOKNUM, base.hook.number(self.id.table.family).unwrap_or(u32::MAX));
            hook.put_be32(NFTA_HOOK_PRIORITY, base.priority.0.cast_unsigned());
            match base.devices.as_slice() {
                [] => {}
                [device] if device.prefix().is_none() => hook.put_str(NFTA_HOOK_DEV, device.as_str()),
                devices => {
                    let mut list = hook.nest(NFTA_HOOK_DEVS);
                    devices.iter().for_each(|device| encode_device(device, &mut list));
                }
            }
            drop(hook);
            if base.offload {
                w.put_be32(NFTA_CHAIN_FLAGS, NFT_CHAIN_HW_OFFLOAD);
            }
        }
        if let Some(comment) = &self.comment {
            w.put(NFTA_CHAIN_USERDATA, &userdata::comment(userdata::CHAIN_COMMENT, comment));
        }
    }
}

/// A chain of a rule's own, which the kernel gives a name; in the batch it goes by its number.
pub(crate) fn encode_bound(table: &TableId, number: u32, w: &mut Writer<'_>) {
    w.put_str(NFTA_CHAIN_TABLE, &table.name);
    w.put_be32(NFTA_CHAIN_ID, number);
    w.put_be32(NFTA_CHAIN_FLAGS, NFT_CHAIN_BINDING);
}

/// Appends a device, or all devices whose names start alike, to a list of them.
pub(crate) fn encode_device(device: &InterfaceName, list: &mut Writer<'_>) {
    match device.prefix() {
        Some(prefix) => list.put_str(NFTA_DEVICE_PREFIX, prefix),
        None => list.put_str(NFTA_DEVICE_NAME, device.as_str()),
    }
}

/// As nft's commands say it: `chain ip t c { type nat hook prerouting priority -100 ; }`.
impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain {}", self.id)?;
        if self.base.is_none() && self.comment.is_none() {
            return Ok(());
        }
        f.write_str(" {")?;
        if let Some(base) = &self.base {
            write!(f, " {} ;", base.header(self.id.table.family, Wording::SCRIPT))?;
            if let Some(policy) = base.policy {
                write!(f, " policy {policy} ;")?;
            }
            if base.offload {
                f.write_str(" flags offload ;")?;
            }
        }
        if let Some(comment) = &self.comment {
            write!(f, " comment {comment} ;")?;
        }
        f.write_str(" }")
    }
}

impl BaseChain {
    /// `type nat hook prerouting priority -100`
    pub(crate) fn header(&self, family: Family, with: Wording<'_>) -> String {
        let devices = match self.devices.as_slice() {
            [] => String::new(),
            [device] => format!("device {device} "),
            devices => device_list(devices, with) + " ",
        };
        let (kind, hook) = (self.kind.name(), self.hook);
        let priority = match with.is_script() {
            true => self.priority.0.to_string(),
            false => self.priority.name(family, hook),
        };
        format!("type {kind} hook {hook} {devices}priority {priority}")
    }
}

impl ChainType {
    /// Its word.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Filter => "filter",
            Self::Nat => "nat",
            Self::Route => "route",
            Self::Other(name) => name,
        }
    }
}

impl Hook {
    /// Every hook: those of protocols by their number, then those of devices.
    pub const ALL: &'static [Self] = &[
        Self::Prerouting,
        Self::Input,
        Self::Forward,
        Self::Output,
        Self::Postrouting,
        Self::Ingress,
        Self::Egress,
    ];

    /// Its number in a family (`enum nf_inet_hooks` and its like); `None` where the family has no such hook.
    #[must_use]
    pub fn number(self, family: Family) -> Option<u32> {
        match (family, self) {
            (Family::ARP, Self::Input) | (Family::NETDEV, Self::Ingress) => Some(0),
            (Family::ARP, Self::Output) | (Family::NETDEV, Self::Egress) => Some(1),
            (Family::ARP | Family::NETDEV, _) => None,
            (_, Self::Prerouting) => Some(0),
            (_, Self::Input) => Some(1),
            (_, Self::Forward) => Some(2),
            (_, Self::Output) => Some(3),
            (_, Self::Postrouting) => Some(4),
            (Family::INET, Self::Ingress) => Some(5),
            _ => None,
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prerouting => "prerouting",
            Self::Input => "input",
            Self::Forward => "forward",
            Self::Output => "output",
            Self::Postrouting => "postrouting",
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}

impl Priority {
    /// `raw`
    pub const RAW: Self = Self(-300);
    /// `mangle`
    pub const MANGLE: Self = Self(-150);
    /// `dstnat`
    pub const DSTNAT: Self = Self(-100);
    /// `filter`
    pub const FILTER: Self = Self(0);
    /// `security`
    pub const SECURITY: Self = Self(50);
    /// `srcnat`
    pub const SRCNAT: Self = Self(100);

    /// The number that a name stands for, where nft allows it.
    #[must_use]
    pub fn from_name(name: &str, family: Family, hook: Hook) -> Option<Self> {
        names(family).iter().find(|(n, _, hooks)| *n == name && hooks.allow(hook)).map(|(_, p, _)| Self(*p))
    }

    /// As nft lists it: the nearest name that is legal in this family and hook, at most 10 away (`dstnat - 10`), else the number.
    #[must_use]
    pub fn name(self, family: Family, hook: Hook) -> String {
        let near = |p: i32| self.0.checked_sub(p).filter(|d| (-10..=10).contains(d));
        for (name, priority, hooks) in names(family) {
            match near(*priority).filter(|_| hooks.allow(hook)) {
                Some(0) => return (*name).to_owned(),
                Some(above @ 1..) => return format!("{name} + {above}"),
                Some(below) => return format!("{name} - {}", below.unsigned_abs()),
                None => {}
            }
        }
        self.0.to_string()
    }
}

/// Where a name of a priority is legal.
#[derive(Clone, Copy)]
enum In {
    Any,
    Only(Hook),
}

impl In {
    fn allow(self, hook: Hook) -> bool {
        match self {
            Self::Any => true,
            Self::Only(only) => only == hook,
        }
    }
}

fn names(family: Family) -> &'static [(&'static str, i32, In)] {
    match family {
        Family::BRIDGE => &[
            ("dstnat", -300, In::Only(Hook::Prerouting)),
            ("filter", -200, In::Any),
            ("out", 100, In::Only(Hook::Output)),
            ("srcnat", 300, In::Only(Hook::Postrouting)),
        ],
        Family::ARP | Family::NETDEV => &[("filter", 0, In::Any)],
        _ => &[
            ("raw", -300, In::Any),
            ("mangle", -150, In::Any),
            ("dstnat", -100, In::Only(Hook::Prerouting)),
            ("filter", 0, In::Any),
            ("security", 50, In::Any),
            ("srcnat", 100, In::Only(Hook::Postrouting)),
        ],
    }
}

impl Policy {
    fn number(self) -> u32 {
        match self {
            Self::Drop => 0,
            Self::Accept => 1,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept => "accept",
            Self::Drop => "drop",
        })
    }
}

pub(crate) const NFTA_CHAIN_TABLE: u16 = 1;
pub(crate) const NFTA_CHAIN_HANDLE: u16 = 2;
pub(crate) const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_CHAIN_FLAGS: u16 = 10;
const NFTA_CHAIN_ID: u16 = 11;
const NFTA_CHAIN_USERDATA: u16 = 12;
const NFT_CHAIN_HW_OFFLOAD: u32 = 2;
const NFT_CHAIN_BINDING: u32 = 4;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_HOOK_DEV: u16 = 3;
const NFTA_HOOK_DEVS: u16 = 4;
const NFTA_DEVICE_NAME: u16 = 1;
/// Since Linux 6.17.
const NFTA_DEVICE_PREFIX: u16 = 2;
