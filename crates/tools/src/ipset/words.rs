//! Errors and warnings in the words of ipset, which programs read: kube-proxy, Felix and others look for `The set
//! with the given name does not exist`. What has no words there is said in ours.

use sluicegate_ipset::netlink::Errno;
use sluicegate_ipset::text::IgnoredOption;
use sluicegate_ipset::{Protocol, Reason, Refusal, SetType, ipset_errno as is};

/// The warning about options that have no effect.
pub(super) fn warning(ignored: &[IgnoredOption]) -> String {
    let one = |of: &IgnoredOption| {
        format!("Option '--{} {}' is ignored. Please upgrade your syntax.", of.option, of.value)
    };
    format!("Warning: {}", ignored.iter().map(one).collect::<Vec<_>>().join("\n"))
}

/// Whether a mistake may be one of the options of a set, which ipset reads when it knows the type.
pub(super) fn is_of_create(reason: &Reason) -> bool {
    matches!(reason, Reason::UnknownArgument(_) | Reason::Number(_) | Reason::OutOfRange { .. })
}

/// Why the kernel has refused a command.
pub(super) fn refusal(of: &Refusal) -> String {
    let known = of.kind.and_then(|kind| of_method(of.errno, kind)).or_else(|| of_any(of.errno, of.command));
    match known {
        Some(words) => words.to_owned(),
        None => format!("Kernel error received: {}", of.errno.description()),
    }
}

fn of_any(errno: Errno, command: &str) -> Option<&'static str> {
    Some(match (errno, command) {
        (Errno::EEXIST, "create") => "Set cannot be created: set with the same name already exists",
        (is::FIND_TYPE, _) | (Errno::EEXIST, "type") => "Kernel error received: set type not supported",
        (Errno::ENOENT, _) => "The set with the given name does not exist",
        (is::PROTOCOL, _) => "Kernel error received: ipset protocol error",
        (is::MAX_SETS, _) => "Kernel error received: maximal number of sets reached, cannot create more.",
        (is::INVALID_NETMASK, _) => "The value of the netmask parameter is invalid",
        (is::INVALID_MARKMASK, _) => "The value of the markmask parameter is invalid",
        (is::INVALID_FAMILY, _) => "Protocol family not supported by the set type",
        (is::BUSY, "destroy") | (is::REFERENCED, "destroy") => {
            "Set cannot be destroyed: it is in use by a kernel component"
        }
        (is::EXIST_SETNAME2, "rename") => "Set cannot be renamed: a set with the new name already exists",
        (is::REFERENCED, "rename") => "Set cannot be renamed: it is in use by another system",
        (is::EXIST_SETNAME2, "swap") => "Sets cannot be swapped: the second set does not exist",
        (is::TYPE_MISMATCH, _) => "The sets cannot be swapped: their type does not match",
        (is::INVALID_CIDR, _) => "The value of the CIDR parameter of the IP address is invalid",
        (is::TIMEOUT, _) => "Timeout cannot be used: set was created without timeout support",
        (is::IPADDR_IPV4, _) => "An IPv4 address is expected, but not received",
        (is::IPADDR_IPV6, _) => "An IPv6 address is expected, but not received",
        (is::COUNTER, _) => "Packet/byte counters cannot be used: set was created without counter support",
        (is::COMMENT, _) => "Comment cannot be used: set was created without comment support",
        (is::SKBINFO, _) => "Skbinfo mapping cannot be used: set was created without skbinfo support",
        (is::EXIST, "add") => "Element cannot be added to the set: it's already added",
        (is::EXIST, "del") => "Element cannot be deleted from the set: it's not added",
        _ => return None,
    })
}

/// The numbers that each method has for itself.
fn of_method(errno: Errno, kind: SetType) -> Option<&'static str> {
    let number = errno.0.checked_sub(is::TYPE_SPECIFIC.0)?;
    let (method, _) = kind.name().split_once(':')?;
    Some(match (method, number) {
        ("bitmap", 0) => "Element is out of the range of the set",
        ("bitmap", 1) => "The range you specified exceeds the size limit of the set type",
        ("hash", 0) => "Hash is full, cannot add more elements",
        ("hash", 1) => "Null-valued element, cannot be stored in a hash type of set",
        ("hash", 2) => "Invalid protocol specified",
        ("hash", 3) => "Protocol missing, but must be specified",
        ("hash", 4) => "Range is not supported in the \"net\" component of the element",
        ("hash", 5) => "Invalid range, covers the whole address space",
        ("list", 0) => "Set to be added/deleted/tested as element does not exist.",
        ("list", 1) => "Sets with list:set type cannot be added to the set.",
        ("list", 2) => "No reference set specified.",
        ("list", 3) => "The set to which you referred with 'before' or 'after' does not exist.",
        ("list", 4) => "The set is full, more elements cannot be added.",
        ("list", 5) => "The set to which you referred with 'before' or 'after' is not added to the set.",
        _ => return None,
    })
}

/// What is wrong with the words of a command.
pub(super) fn reason(of: &Reason) -> String {
    match of {
        Reason::UnknownCommand(word) => format!("No command specified: unknown argument {word}"),
        Reason::NoCommand => "No command specified.".to_owned(),
        Reason::MissingArgument { command, which: "second" } => {
            format!("Missing second mandatory argument to command {command}")
        }
        Reason::MissingArgument { command, .. } => format!("Missing mandatory argument to command {command}"),
        Reason::UnknownArgument(word) => format!("Unknown argument: `{word}'"),
        Reason::SurplusArgument(word) => format!("Unknown argument {word}"),
        Reason::MissingValue("-output") => "Missing mandatory argument to option -o".to_owned(),
        Reason::MissingValue("-file") => "Missing mandatory argument to option -f".to_owned(),
        Reason::MissingValue(option) => format!("Missing mandatory argument of option `{option}'"),
        Reason::MissingOption(option) => format!("Mandatory option `{option}' is missing"),
        Reason::NotInRestore(command) => format!("Command `{command}' is invalid in restore mode."),
        Reason::Icmp { text, name } => format!("Cannot parse {text} as an {name} type/code."),
        of => format!("Syntax error: {}", syntax(of)),
    }
}

fn syntax(of: &Reason) -> String {
    match of {
        Reason::NameTooLong { name, max } => format!("setname '{name}' is longer than {max} characters"),
        Reason::SetType(name) => format!("typename '{name}' is unknown"),
        Reason::Family(name) => format!("unknown inet family {name}"),
        Reason::Number(word) => format!("'{word}' is invalid as number"),
        Reason::OutOfRange { text, min, max } => format!("'{text}' is out of range {min}-{max}"),
        Reason::Address { text, family } => {
            let number = if *family == sluicegate_ipset::Family::Ipv6 { 6 } else { 4 };
            format!("cannot parse {text}: resolving to IPv{number} address failed")
        }
        Reason::Protocol(word) => format!("cannot parse '{word}' as a protocol"),
        Reason::Service { text, protocol } => format!(
            "'{text}' is invalid as number\nSyntax error: '{protocol}' is invalid as number\n\
             cannot parse '{text}' as a {protocol} port"
        ),
        Reason::MissingPart { text, part, .. } => {
            let which = if *part == 3 { "Third" } else { "Second" };
            format!("{which} element is missing from {text}.")
        }
        Reason::TooManyParts { text, kind, need } => {
            let (found, allowed) = match need {
                1 => ("Elem separator", "none"),
                2 => ("Two elem separators", "one"),
                _ => ("Three elem separators", "two"),
            };
            format!("{found} in {text}, but settype {kind} supports {allowed}.")
        }
        Reason::IcmpFamily { protocol: Protocol::ICMPV6, .. } => {
            "Protocol ICMPv6 can be used with family inet6 only".to_owned()
        }
        Reason::IcmpFamily { .. } => "Protocol ICMP can be used with family inet only".to_owned(),
        Reason::PseudoPort(protocol) => {
            format!("Protocol {protocol} can be used with pseudo port value 0 only.")
        }
        Reason::SkbMark(_) => {
            "Invalid skbmark format, it should be:  MARK/MASK or MARK (see manpage)".to_owned()
        }
        Reason::SkbPrio(_) => "Invalid skbprio format, it should be:MAJOR:MINOR (see manpage)".to_owned(),
        Reason::Mac(word) => format!("cannot parse '{word}' as ethernet address"),
        Reason::Bracket(word) => format!("cannot find closing escape character ']' in {word}"),
        Reason::NeedsRange(word) => format!("IP/cidr or IP-IP range must be specified: {word}"),
        Reason::Bitmask { text, family } => format!(
            "cannot parse {text}: resolving to IPv{} address failed\n\
             Syntax error: bitmask is not valid for family = {family}",
            if *family == sluicegate_ipset::Family::Ipv6 { 6 } else { 4 }
        ),
        Reason::Exclusive("netmask", "bitmask") => {
            "bitmask and netmask are mutually exclusive, provide only one".to_owned()
        }
        Reason::Twice(option) => format!("{option} already specified"),
        Reason::OutputMode(word) => format!("unknown output mode '{word}'"),
        other => other.to_string(),
    }
}
