//! Chains (`enum nft_chain_attributes`, `enum nft_hook_attributes`).

pub(crate) mod wire;

use std::fmt;

use crate::family::Family;
use crate::name::{Comment, InterfaceName, Name};
use crate::object::ChainId;
use crate::object::device_list::device_list;
use crate::tree::Counter;
use crate::wording::Wording;

/// A chain: a regular one, or with a hook a base chain.
///
/// ```
/// use sluicegate_nftables::{Chain, ChainType, Family, Hook, Policy, Priority, TableId, Transaction};
///
/// let input = TableId::new(Family::INET, "firewall".parse()?).chain("input".parse()?);
/// let chain = Chain::base(input, ChainType::Filter, Hook::Input, Priority::FILTER).policy(Policy::Drop);
/// let mut transaction = Transaction::new();
/// transaction.add(chain);
/// assert_eq!(
///     transaction.to_string(),
///     "add chain inet firewall input { type filter hook input priority 0 ; policy drop ; }\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chain {
    /// The identifier.
    pub id: ChainId,
    /// The hook, for a base chain; packets enter a regular chain only by jumps.
    pub base: Option<BaseChain>,
    /// A new policy for an existing base chain; that of a new one is in [`base`](Self::base).
    pub policy: Option<Policy>,
    /// Its comment.
    pub comment: Option<Comment>,
    /// What a base chain counts from: the packets that reach its end. Without it the kernel does not count
    /// them. iptables-nft sets it; nft has no word for it, so it is not printed.
    pub counter: Option<Counter>,
}

/// The properties of a base chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BaseChain {
    /// The type of the chain, which determines what its rules can do.
    pub kind: ChainType,
    /// The hook at which packets enter the chain.
    pub hook: Hook,
    /// The position among the chains of the hook: the lowest priority comes first.
    pub priority: Priority,
    /// The verdict for packets that reach the end of the chain; the kernel's default is to accept them.
    pub policy: Option<Policy>,
    /// The devices of an ingress or egress hook. A name that ends with `*` stands for all devices with this
    /// prefix; that needs a kernel with [`Feature::DevicePrefix`](crate::probe::Feature::DevicePrefix).
    pub devices: Vec<InterfaceName>,
    /// Whether the devices apply the chain in hardware (`flags offload`), before the packet reaches a
    /// processor.
    ///
    /// The kernel accepts this at the ingress hook of family netdev, for devices whose drivers support it,
    /// with a priority of 1 to 65535 and without the policy `drop`. Rules of the chain can only be appended,
    /// and have to be such that a device can apply them: comparisons of addresses, protocols and ports,
    /// `accept`, `drop`, `fwd` and `dup`.
    pub offload: bool,
}

/// The type of a base chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChainType {
    /// `filter`
    Filter,
    /// `nat`: sees only the first packet of a connection.
    Nat,
    /// `route`: if it changes the packet, the kernel routes it again.
    Route,
    /// A type of a newer kernel.
    Other(Name),
}

/// A hook at which packets enter a base chain.
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
    /// `ingress`: packets that a device has received.
    Ingress,
    /// `egress`: packets that a device is to transmit.
    Egress,
}

/// The position of a base chain among those of its hook.
///
/// nft has names for some numbers, which differ between families and hooks; see [`Priority::name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

/// The verdict for packets that reach the end of a base chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// `accept`
    Accept,
    /// `drop`
    Drop,
}

impl Chain {
    /// Creates a regular chain.
    #[must_use]
    pub fn new(id: ChainId) -> Self {
        Self { id, base: None, policy: None, comment: None, counter: None }
    }

    /// Creates a base chain.
    #[must_use]
    pub fn base(id: ChainId, kind: ChainType, hook: Hook, priority: Priority) -> Self {
        let base = BaseChain { kind, hook, priority, policy: None, devices: Vec::new(), offload: false };
        Self { id, base: Some(base), policy: None, comment: None, counter: None }
    }

    /// Sets what a base chain counts from.
    #[must_use]
    pub fn counter(mut self, counter: Counter) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// Sets the policy; ignored for a regular chain, which has none.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        if let Some(base) = &mut self.base {
            base.policy = Some(policy);
        }
        self
    }

    /// Sets the devices of an ingress or egress hook.
    #[must_use]
    pub fn devices(mut self, devices: impl IntoIterator<Item = InterfaceName>) -> Self {
        if let Some(base) = &mut self.base {
            base.devices = devices.into_iter().collect();
        }
        self
    }

    /// Lets the devices apply the chain in hardware ([`BaseChain::offload`]); ignored for a regular chain.
    #[must_use]
    pub fn offload(mut self) -> Self {
        if let Some(base) = &mut self.base {
            base.offload = true;
        }
        self
    }
}

/// Formats the argument of an nft command: `chain ip t c { type nat hook prerouting priority -100 ; }`.
impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain {}", self.id)?;
        if self.base.is_none() && self.policy.is_none() && self.comment.is_none() {
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
        if let Some(policy) = self.policy.filter(|_| self.base.is_none()) {
            write!(f, " policy {policy} ;")?;
        }
        if let Some(comment) = &self.comment {
            write!(f, " comment {comment} ;")?;
        }
        f.write_str(" }")
    }
}

impl BaseChain {
    /// Returns `type nat hook prerouting priority -100`.
    pub(crate) fn header(&self, family: Family, with: Wording<'_>) -> String {
        let devices = match self.devices.as_slice() {
            [] => String::new(),
            [device] => format!("device {device} "),
            devices => device_list(devices, with) + " ",
        };
        let (kind, hook) = (self.kind.name(), self.hook);
        let priority = match with.is_script() || with.options.numeric_priority {
            true => self.priority.0.to_string(),
            false => self.priority.name(family, hook),
        };
        format!("type {kind} hook {hook} {devices}priority {priority}")
    }
}

impl ChainType {
    /// Returns nft's keyword for the type.
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
    /// All hooks: those of protocols by number, then those of devices.
    pub const ALL: &'static [Self] = &[
        Self::Prerouting,
        Self::Input,
        Self::Forward,
        Self::Output,
        Self::Postrouting,
        Self::Ingress,
        Self::Egress,
    ];

    /// Returns the number of the hook in a family (such as `enum nf_inet_hooks`); `None` if the family has no
    /// such hook.
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

    /// Returns the priority with this name, if nft accepts the name in this family and hook.
    #[must_use]
    pub fn from_name(name: &str, family: Family, hook: Hook) -> Option<Self> {
        names(family).iter().find(|(n, _, hooks)| *n == name && hooks.allow(hook)).map(|(_, p, _)| Self(*p))
    }

    /// Returns the priority as nft lists it: the nearest name that is valid in this family and hook, if at
    /// most 10 away (`dstnat - 10`), else the number.
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

/// The families and hooks in which a name is valid.
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

impl Policy {}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept => "accept",
            Self::Drop => "drop",
        })
    }
}
