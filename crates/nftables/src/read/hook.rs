//! Reads the functions that are registered at netfilter hooks (`linux/netfilter/nfnetlink_hook.h`):
//! everything that processes packets, in order.

use std::fmt;

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, DecodeError, Errno, Transport, Wait, dump_into};

use super::split;
use crate::error::Error;
use crate::wire::attributes::attributes;
use crate::wire::decode::{name, need};
use crate::{ChainId, Family, FlowtableId, Hook, Name, TableId};

/// A function that the kernel calls for packets at a hook. It belongs to a chain or a flowtable, to
/// connection tracking, iptables, a security module, ...
///
/// It prints as a line of `nft list hooks`: `-0000000200 ipv4_conntrack_in [nf_conntrack]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisteredHook {
    /// The family of the hook. Never [`Family::INET`]: chains of that family are registered for IPv4 and for
    /// IPv6, or at a device.
    pub family: Family,
    /// The hook: `NF_INET_*`, `NF_ARP_*` or `NF_NETDEV_*` of the family.
    pub number: u32,
    /// The priority: functions with lower ones are called first.
    pub priority: i32,
    /// The device, for hooks of family netdev.
    pub device: Option<String>,
    /// The name of the function; `None` from a kernel without symbols (`CONFIG_KALLSYMS`).
    pub function: Option<String>,
    /// The module that contains the function; `None` if it is built in.
    pub module: Option<String>,
    /// The object that registered the function, if the kernel reports one.
    pub by: Option<RegisteredBy>,
    /// Unknown attributes, each with its type.
    pub unknown: Vec<(u16, Vec<u8>)>,
}

/// The object that registered a function (`enum nfnl_hook_chaintype`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisteredBy {
    /// `NFNL_HOOK_TYPE_NFTABLES`: a base chain.
    Chain(ChainId),
    /// `NFNL_HOOK_TYPE_BPF`: the BPF program with this id. Since Linux 6.4.
    Bpf(u32),
    /// `NFNL_HOOK_TYPE_NFT_FLOWTABLE`: a flowtable. Since Linux 6.17.
    Flowtable(FlowtableId),
    /// Another kind of object.
    Unknown {
        /// `NFNLA_HOOK_INFO_TYPE`.
        kind: u32,
        /// `NFNLA_HOOK_INFO_DESC`.
        description: Vec<u8>,
    },
}

/// Reads the functions that are registered at the hooks of a family, as `nft list hooks` does: hook by hook,
/// each in the order in which the kernel calls them.
///
/// Since Linux 5.14. Returns `None` if the kernel does not support it, because it was built without
/// `CONFIG_NETFILTER_NETLINK_HOOK` ([`Feature::RegisteredHooks`](crate::probe::Feature::RegisteredHooks)). An
/// empty list means that nothing is registered.
///
/// [`Family::INET`] selects IPv4 and IPv6, [`Family::UNSPEC`] also bridges and ARP. If a device is given, its
/// own hooks (ingress and egress) come last: those of family netdev, which chains of family inet use as well.
/// [`Family::NETDEV`] selects only these. Hooks that the kernel does not have are left out.
///
/// Chains of type nat are not listed by themselves: functions of the module `nf_nat` call them.
///
/// Each hook is read at one moment, but different hooks at different moments.
///
/// ```no_run
/// use sluicegate_nftables::netlink::{Options, NetlinkFamily, Socket};
/// use sluicegate_nftables::{Family, read};
///
/// let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
/// match read::hooks(&mut socket, Family::UNSPEC, Some("eth0"))? {
///     Some(hooks) => print!("{}", read::HookListing(&hooks)),
///     None => println!("not supported by this kernel"),
/// }
/// # Ok::<(), sluicegate_nftables::Error>(())
/// ```
///
/// # Errors
/// As [`hook`].
pub fn hooks(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    device: Option<&str>,
) -> Result<Option<Vec<RegisteredHook>>, Error> {
    let mut all = Vec::new();
    for family in families(family, device.is_some()) {
        for number in Hook::ALL.iter().filter_map(|hook| hook.number(family)) {
            match hook(transport, family, number, device) {
                Ok(Some(found)) => all.extend(found),
                Ok(None) => return Ok(None),
                Err(error) if has_no_such_hook(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Some(all))
}

/// Returns the selected families, in nft's order.
fn families(family: Family, with_device: bool) -> Vec<Family> {
    let mut asked = match family {
        Family::UNSPEC => vec![Family::IP, Family::IP6, Family::BRIDGE, Family::ARP],
        Family::INET => vec![Family::IP, Family::IP6],
        Family::NETDEV => Vec::new(),
        _ => vec![family],
    };
    if with_device || family == Family::NETDEV {
        asked.push(Family::NETDEV);
    }
    asked
}

/// Returns whether the error means that the kernel does not have the hook: it is too old, or was built
/// without `CONFIG_NETFILTER_EGRESS`.
fn has_no_such_hook(error: &Error) -> bool {
    matches!(error.errno(), Some(Errno::EOPNOTSUPP | Errno::EPROTONOSUPPORT))
}

/// Reads the functions that are registered at one hook, given by its number, in the order in which the kernel
/// calls them; `None` as from [`hooks`]. Only hooks of family netdev need a device.
///
/// # Errors
/// `ENODEV` if the device does not exist; `EPROTONOSUPPORT` or `EOPNOTSUPP` if the kernel has no hooks of
/// this family, or the device no such hook; `EINVAL` if another family has no such hook, or the device is
/// missing for family netdev. Also if the kernel refuses for another reason, or does not answer.
pub fn hook(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    number: u32,
    device: Option<&str>,
) -> Result<Option<Vec<RegisteredHook>>, Error> {
    match ask(transport, family, number, device.filter(|_| family == Family::NETDEV)) {
        Ok(found) => Ok(Some(found)),
        // EINVAL is the answer of nfnetlink to an unknown subsystem, and also the answer of this subsystem to
        // an unknown hook.
        Err(error) if error.errno() == Some(Errno::EINVAL) => {
            if supports_hooks(transport)? {
                Err(error)
            } else {
                Ok(None)
            }
        }
        Err(error) => Err(error),
    }
}

/// Returns whether the kernel supports listing registered functions. This may load a kernel module.
pub(crate) fn supports_hooks(transport: &mut (impl Transport + ?Sized)) -> Result<bool, Error> {
    // This hook exists in every kernel.
    match ask(transport, Family::IP, 0, None) {
        Ok(_) => Ok(true),
        Err(error) if error.errno() == Some(Errno::EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}

fn ask(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    number: u32,
    device: Option<&str>,
) -> Result<Vec<RegisteredHook>, Error> {
    let mut request = Batch::new();
    let mut message = request.netfilter(SUBSYSTEM, NFNL_MSG_HOOK_GET, Flags::DUMP, family.0, 0);
    if let Some(device) = device {
        message.put_str(NFNLA_HOOK_DEV, device);
    }
    message.put_be32(NFNLA_HOOK_HOOKNUM, number);
    drop(message);
    Ok(dump_into(&mut AnyPort(transport), &request, |message, found| {
        // Messages are accepted from any port, so an event of another subsystem may have the sequence number
        // of the request.
        if message.header.kind != u16::from_be_bytes([SUBSYSTEM, NFNL_MSG_HOOK_GET]) {
            return Ok(());
        }
        let (family, attributes) = split(message)?;
        let mut hook = RegisteredHook::decode(family, attributes)?;
        // The answers do not repeat the device of the request.
        hook.device = hook.device.or_else(|| device.map(str::to_owned));
        found.push(hook);
        Ok(())
    })?)
}

/// A transport that accepts answers by their sequence number alone: this subsystem sends its answers with
/// port 0 (in Linux 6.12; the source of later versions is unchanged).
struct AnyPort<'t, T: ?Sized>(&'t mut T);

impl<T: Transport + ?Sized> Transport for AnyPort<'_, T> {
    fn send(&mut self, datagram: &[u8]) -> Result<(), sluicegate_netlink::Error> {
        self.0.send(datagram)
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, sluicegate_netlink::Error> {
        self.0.receive(buffer, wait)
    }

    fn send_limit(&mut self, size: usize) -> usize {
        self.0.send_limit(size)
    }
}

impl RegisteredHook {
    /// Decodes the attributes of a message about a registered function.
    ///
    /// # Errors
    /// If they are malformed, or lack the hook or the priority.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut number, mut priority, mut device) = (None, None, None);
        let (mut function, mut module, mut by, mut unknown) = (None, None, None, Vec::new());
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFNLA_HOOK_HOOKNUM => number = Some(attribute.be32()?),
                NFNLA_HOOK_PRIORITY => priority = Some(attribute.be32()?.cast_signed()),
                NFNLA_HOOK_DEV => device = Some(attribute.text()?.into_owned()),
                NFNLA_HOOK_FUNCTION_NAME => function = Some(attribute.text()?.into_owned()),
                NFNLA_HOOK_MODULE_NAME => module = Some(attribute.text()?.into_owned()),
                NFNLA_HOOK_CHAIN_INFO => by = Some(RegisteredBy::decode(&attribute)?),
                kind => unknown.push((kind, attribute.payload.to_vec())),
            }
        }
        let number = need(number, "NFNLA_HOOK_HOOKNUM")?;
        let priority = need(priority, "NFNLA_HOOK_PRIORITY")?;
        Ok(Self { family, number, priority, device, function, module, by, unknown })
    }

    /// Returns the hook as a named constant, if it has a name.
    #[must_use]
    pub fn hook(&self) -> Option<Hook> {
        Hook::ALL.iter().copied().find(|hook| hook.number(self.family) == Some(self.number))
    }

    /// Returns whether another function is registered at the same hook.
    fn is_at_same_hook(&self, other: &Self) -> bool {
        (self.family, self.number, &self.device) == (other.family, other.number, &other.device)
    }
}

impl RegisteredBy {
    fn decode(info: &Attribute<'_>) -> Result<Self, DecodeError> {
        let (mut kind, mut description) = (None, None);
        for part in info.attributes() {
            let part = part?;
            match part.kind {
                NFNLA_HOOK_INFO_TYPE => kind = Some(part.be32()?),
                NFNLA_HOOK_INFO_DESC => description = Some(part),
                _ => {}
            }
        }
        let (Some(kind), Some(description)) = (kind, description) else {
            return Ok(Self::Unknown { kind: kind.unwrap_or_default(), description: Vec::new() });
        };
        let known = match kind {
            NFNL_HOOK_TYPE_NFTABLES => {
                named(&description)?.map(|(table, name)| Self::Chain(table.chain(name)))
            }
            NFNL_HOOK_TYPE_NFT_FLOWTABLE => {
                named(&description)?.map(|(table, name)| Self::Flowtable(table.flowtable(name)))
            }
            NFNL_HOOK_TYPE_BPF => match description.attributes().find(NFNLA_HOOK_BPF_ID)? {
                Some(id) => Some(Self::Bpf(id.be32()?)),
                None => None,
            },
            _ => None,
        };
        Ok(known.unwrap_or_else(|| Self::Unknown { kind, description: description.payload.to_vec() }))
    }
}

/// Returns the table and the name of a chain or flowtable (`enum nfnl_hook_chain_desc_attributes`).
fn named(description: &Attribute<'_>) -> Result<Option<(TableId, Name)>, DecodeError> {
    let (mut table, mut family, mut named) = (None, None, None);
    for part in description.attributes() {
        let part = part?;
        match part.kind {
            NFNLA_CHAIN_TABLE => table = Some(name(&part)?),
            NFNLA_CHAIN_FAMILY => family = Some(Family(part.u8()?)),
            NFNLA_CHAIN_NAME => named = Some(name(&part)?),
            _ => {}
        }
    }
    Ok(match (family, table, named) {
        (Some(family), Some(table), Some(name)) => Some((TableId::new(family, table), name)),
        _ => None,
    })
}

/// Formats a line of `nft list hooks`.
impl fmt::Display for RegisteredHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.priority {
            0 => f.write_str(" 0000000000")?,
            priority => write!(f, "{priority:+011}")?,
        }
        match (&self.by, &self.function) {
            (Some(RegisteredBy::Chain(chain)), _) => write!(f, " chain {chain}")?,
            (Some(RegisteredBy::Flowtable(flowtable)), _) => write!(f, " flowtable {flowtable}")?,
            (_, Some(function)) => write!(f, " {}", function.escape_debug())?,
            (_, None) => {}
        }
        if let Some(RegisteredBy::Bpf(id)) = self.by {
            write!(f, " id {id}")?;
        }
        match &self.module {
            Some(module) => write!(f, " [{}]", module.escape_debug()),
            None => Ok(()),
        }
    }
}

/// Prints the result of [`hooks`] as `nft list hooks` does.
///
/// There are differences from nft 1.0.6. Three or more functions with the same hook and priority are in the
/// order in which they are called; nft 1.0.6 reverses all but the first. nft 1.0.6 lists ARP only if that is
/// the requested family, never lists the egress hook of a device, and repeats the ingress hook of a device
/// for each other family in the list. If a list has several devices, each hook has the name of its device, as
/// in newer versions of nft.
#[derive(Debug, Clone, Copy)]
pub struct HookListing<'a>(pub &'a [RegisteredHook]);

impl fmt::Display for HookListing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut devices = self.0.iter().filter_map(|hook| hook.device.as_deref());
        let first = devices.next();
        let several = devices.any(|device| Some(device) != first);
        let mut family = None;
        for hooks in self.0.chunk_by(RegisteredHook::is_at_same_hook) {
            let Some(first) = hooks.first() else { continue };
            if family != Some(first.family) {
                f.write_str(if family.is_some() { "}\n" } else { "" })?;
                writeln!(f, "family {} {{", first.family)?;
                family = Some(first.family);
            }
            match first.hook() {
                Some(hook) => write!(f, "\thook {hook}")?,
                None => write!(f, "\thook {}", first.number)?,
            }
            match &first.device {
                Some(device) if several => writeln!(f, " device {} {{", device.escape_debug())?,
                _ => f.write_str(" {\n")?,
            }
            for hook in hooks {
                writeln!(f, "\t\t{hook}")?;
            }
            f.write_str("\t}\n")?;
        }
        f.write_str(if family.is_some() { "}\n" } else { "" })
    }
}

attributes! {
    HOOK: "enum nfnl_hook_attributes, linux/netfilter/nfnetlink_hook.h" {
        NFNLA_HOOK_HOOKNUM = 1,
        NFNLA_HOOK_PRIORITY = 2,
        NFNLA_HOOK_DEV = 3,
        NFNLA_HOOK_FUNCTION_NAME = 4,
        NFNLA_HOOK_MODULE_NAME = 5,
        NFNLA_HOOK_CHAIN_INFO = 6 => CHAIN_INFO,
    }

    CHAIN_INFO: "enum nfnl_hook_chain_info_attributes, linux/netfilter/nfnetlink_hook.h" {
        NFNLA_HOOK_INFO_DESC = 1,
        NFNLA_HOOK_INFO_TYPE = 2,
    }

    CHAIN_DESCRIPTION: "enum nfnl_hook_chain_desc_attributes, linux/netfilter/nfnetlink_hook.h" {
        NFNLA_CHAIN_TABLE = 1,
        NFNLA_CHAIN_FAMILY = 2,
        NFNLA_CHAIN_NAME = 3,
    }

    BPF: "enum nfnl_hook_bpf_attributes, linux/netfilter/nfnetlink_hook.h" {
        NFNLA_HOOK_BPF_ID = 1,
    }
}

/// `NFNL_SUBSYS_HOOK`, of `linux/netfilter/nfnetlink.h`.
const SUBSYSTEM: u8 = 12;
/// `NFNL_MSG_HOOK_GET` of `enum nfnl_hook_msg_types`.
const NFNL_MSG_HOOK_GET: u8 = 0;
/// `NFNL_HOOK_TYPE_NFTABLES` of `enum nfnl_hook_chaintype`.
const NFNL_HOOK_TYPE_NFTABLES: u32 = 1;
/// `NFNL_HOOK_TYPE_BPF` of `enum nfnl_hook_chaintype`.
const NFNL_HOOK_TYPE_BPF: u32 = 2;
/// `NFNL_HOOK_TYPE_NFT_FLOWTABLE` of `enum nfnl_hook_chaintype`.
const NFNL_HOOK_TYPE_NFT_FLOWTABLE: u32 = 3;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::attr::encode;
    use sluicegate_netlink::message::{self, Header};
    use sluicegate_netlink::scripted::{Script, done, error};

    use super::*;

    fn decode(by: &RegisteredBy, family: Family) -> RegisteredHook {
        let bytes = encode(|w| {
            w.put_be32(NFNLA_HOOK_HOOKNUM, 0);
            w.put_be32(NFNLA_HOOK_PRIORITY, 7);
            w.put_str(NFNLA_HOOK_FUNCTION_NAME, "run");
            w.put_str(NFNLA_HOOK_MODULE_NAME, "of");
            w.put(99, &[1, 2]);
            let mut info = w.nest(NFNLA_HOOK_CHAIN_INFO);
            let mut name = |kind, id: (&TableId, &Name)| {
                info.put_be32(NFNLA_HOOK_INFO_TYPE, kind);
                let mut description = info.nest(NFNLA_HOOK_INFO_DESC);
                description.put_str(NFNLA_CHAIN_TABLE, &id.0.name);
                description.put_u8(NFNLA_CHAIN_FAMILY, id.0.family.0);
                description.put_str(NFNLA_CHAIN_NAME, id.1);
            };
            match by {
                RegisteredBy::Chain(id) => name(NFNL_HOOK_TYPE_NFTABLES, (&id.table, &id.name)),
                RegisteredBy::Flowtable(id) => name(NFNL_HOOK_TYPE_NFT_FLOWTABLE, (&id.table, &id.name)),
                RegisteredBy::Bpf(id) => {
                    info.put_be32(NFNLA_HOOK_INFO_TYPE, NFNL_HOOK_TYPE_BPF);
                    info.nest(NFNLA_HOOK_INFO_DESC).put_be32(NFNLA_HOOK_BPF_ID, *id);
                }
                RegisteredBy::Unknown { kind, description } => {
                    info.put_be32(NFNLA_HOOK_INFO_TYPE, *kind);
                    info.put(NFNLA_HOOK_INFO_DESC, description);
                }
            }
        });
        RegisteredHook::decode(family, Attributes::new(&bytes.unwrap())).unwrap()
    }

    #[test]
    fn what_has_a_function_registered_is_kept_known_or_not() {
        let table = TableId::new(Family::INET, Name::from_kernel("t"));
        let cases = [
            (RegisteredBy::Chain(table.chain(Name::from_kernel("c"))), "+0000000007 chain inet t c [of]"),
            (
                RegisteredBy::Flowtable(table.flowtable(Name::from_kernel("f"))),
                "+0000000007 flowtable inet t f [of]",
            ),
            (RegisteredBy::Bpf(12), "+0000000007 run id 12 [of]"),
            (RegisteredBy::Unknown { kind: 4, description: vec![1, 2, 3] }, "+0000000007 run [of]"),
            // A known type without the description that belongs to it.
            (RegisteredBy::Unknown { kind: 1, description: Vec::new() }, "+0000000007 run [of]"),
            (RegisteredBy::Unknown { kind: 2, description: Vec::new() }, "+0000000007 run [of]"),
        ];
        for (by, line) in cases {
            let hook = decode(&by, Family::NETDEV);
            assert_eq!((hook.to_string().as_str(), &hook.unknown), (line, &vec![(99, vec![1, 2])]));
            assert_eq!(hook.by, Some(by));
        }
    }

    #[test]
    fn priorities_have_a_sign_and_ten_digits() {
        let mut hook = decode(&RegisteredBy::Bpf(1), Family::IP);
        for (priority, shown) in
            [(i32::MIN, "-2147483648"), (-400, "-0000000400"), (0, " 0000000000"), (i32::MAX, "+2147483647")]
        {
            hook.priority = priority;
            assert_eq!(hook.to_string(), format!("{shown} run id 1 [of]"));
        }
    }

    #[test]
    fn devices_are_told_apart_where_there_are_several() {
        let of = |device: &str, number| RegisteredHook {
            device: Some(device.to_owned()),
            number,
            ..decode(&RegisteredBy::Bpf(1), Family::NETDEV)
        };
        let line = "\t\t+0000000007 run id 1 [of]\n\t}\n";
        assert_eq!(
            HookListing(&[of("one", 0), of("one", 1), of("two", 1)]).to_string(),
            format!(
                "family netdev {{\n\thook ingress device one {{\n{line}\thook egress device one \
                 {{\n{line}\thook egress device two {{\n{line}}}\n"
            )
        );
        assert_eq!(
            HookListing(&[of("one", 0), decode(&RegisteredBy::Bpf(1), Family::ARP), of("one", 2)])
                .to_string(),
            format!(
                "family netdev {{\n\thook ingress {{\n{line}}}\nfamily arp {{\n\thook input \
                 {{\n{line}}}\nfamily netdev {{\n\thook 2 {{\n{line}}}\n"
            )
        );
        assert_eq!(HookListing(&[]).to_string(), "");
    }

    /// A kernel that ends successive dumps with these errors, or successfully.
    fn refusing(ends: &[Option<Errno>]) -> Script {
        let mut kernel = Script::new();
        for end in ends {
            kernel.expect_any().reply(end.map_or_else(|| done(1), |errno| error(1, errno, None, None)));
        }
        kernel
    }

    #[test]
    fn a_kernel_that_cannot_tell_is_not_one_that_has_nothing() {
        let mut cannot = refusing(&[Some(Errno::EINVAL); 2]);
        assert_eq!(hooks(&mut cannot, Family::IP, None).unwrap(), None);
        cannot.finish();
        let mut empty = refusing(&[None; 5]);
        assert_eq!(hooks(&mut empty, Family::IP, None).unwrap(), Some(Vec::new()));
        empty.finish();
    }

    /// A socket with a port; the answers of the script have port 0.
    struct OfPort(Script);

    impl Transport for OfPort {
        fn send(&mut self, datagram: &[u8]) -> Result<(), sluicegate_netlink::Error> {
            self.0.send(datagram)
        }

        fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, sluicegate_netlink::Error> {
            self.0.receive(buffer, wait)
        }

        fn send_limit(&mut self, size: usize) -> usize {
            self.0.send_limit(size)
        }

        fn port(&self) -> Option<u32> {
            Some(7)
        }
    }

    #[test]
    fn answers_without_a_port_are_taken_and_events_with_their_number_are_not() {
        let told = |subsystem: u8| {
            let attributes = encode(|w| {
                w.raw(&[Family::ARP.0, 0, 0, 0]);
                w.put_be32(NFNLA_HOOK_HOOKNUM, 0);
                w.put_be32(NFNLA_HOOK_PRIORITY, 1);
            });
            let kind = u16::from_be_bytes([subsystem, NFNL_MSG_HOOK_GET]);
            let header = Header { kind, flags: Flags::MULTI, sequence: 1, port: 0 };
            message::encode(header, &attributes.unwrap())
        };
        let mut kernel = Script::new();
        kernel.expect_any().reply(told(10)).reply(told(SUBSYSTEM)).reply(done(1));
        let found = hook(&mut OfPort(kernel), Family::ARP, 0, None).unwrap().unwrap();
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["+0000000001"]);
    }

    #[test]
    fn a_hook_that_the_kernel_does_not_have_has_nothing() {
        let mut kernel = refusing(&[None, Some(Errno::EPROTONOSUPPORT)]);
        assert_eq!(hooks(&mut kernel, Family::NETDEV, Some("lo")).unwrap(), Some(Vec::new()));
        kernel.finish();
        let mut kernel = refusing(&[Some(Errno::EPROTONOSUPPORT)]);
        assert_eq!(
            hook(&mut kernel, Family::NETDEV, 1, Some("lo")).unwrap_err().errno(),
            Some(Errno::EPROTONOSUPPORT)
        );
    }

    #[test]
    fn a_question_that_the_kernel_does_not_take_is_an_error() {
        // The second request is for another hook, which exists.
        let mut kernel = refusing(&[Some(Errno::EINVAL), None]);
        assert_eq!(hooks(&mut kernel, Family::NETDEV, None).unwrap_err().errno(), Some(Errno::EINVAL));
        kernel.finish();
        for errno in [Errno::EPERM, Errno::ENODEV] {
            let mut kernel = refusing(&[Some(errno)]);
            assert_eq!(hooks(&mut kernel, Family::NETDEV, Some("no")).unwrap_err().errno(), Some(errno));
        }
    }

    #[test]
    fn everything_is_asked_for_family_by_family() {
        let all: Vec<u8> = families(Family::UNSPEC, true).iter().map(|family| family.0).collect();
        assert_eq!(all, [2, 10, 7, 3, 5]);
        assert_eq!(families(Family::INET, false), [Family::IP, Family::IP6]);
        assert_eq!(families(Family::NETDEV, true), [Family::NETDEV]);
        assert_eq!(families(Family::ARP, false), [Family::ARP]);
    }
}
