//! Errors about values: names, numbers, addresses, ports, options.

use crate::{Family, Protocol, SetType};

/// The reason that a value or a command line is not valid.
///
/// Tests check the wording. [`ParseError`](crate::text::ParseError) adds the position of the word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A set name that cannot be written on a command line, or an empty one.
    #[error(
        "'{}' cannot be the name of a set: it is empty, has control characters or quotes, or is an option",
        .0.escape_debug()
    )]
    Name(String),
    /// A set name of more bytes than the kernel has room for.
    #[error("set name '{name}' is longer than {max} bytes")]
    NameTooLong {
        /// The name.
        name: String,
        /// The limit, 31.
        max: usize,
    },
    /// A type of set that does not exist.
    #[error("set type '{0}' is unknown")]
    SetType(String),
    /// A family that does not exist.
    #[error("family '{0}' is unknown: inet or inet6 is needed")]
    Family(String),
    /// A family that the type does not have.
    #[error("set type {kind} has no family {family}")]
    TypeFamily {
        /// The type.
        kind: SetType,
        /// The requested family.
        family: Family,
    },
    /// A word that is not a number.
    #[error("'{0}' is not a number")]
    Number(String),
    /// A number beyond its limits.
    #[error("'{text}' is out of range {min}-{max}")]
    OutOfRange {
        /// The number as it was written.
        text: String,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// Neither an address of the family nor a name that resolves to one.
    #[error("'{text}' is not an {} address", family.of_addresses())]
    Address {
        /// The word.
        text: String,
        /// The family of the set.
        family: Family,
    },
    /// Square brackets around a name that are not closed, or are followed by something.
    #[error("'{0}' has no closing bracket in the right place")]
    Bracket(String),
    /// A network or range where the type stores single addresses.
    #[error("'{0}': a single address is needed here")]
    SingleAddress(String),
    /// A range of addresses where the kernel accepts an address or a network only.
    #[error("'{0}': an address or a network is needed here, a range is not possible")]
    NoAddressRange(String),
    /// `range` of `create` needs a network or a range.
    #[error("'{0}': a network (ADDRESS/PREFIX) or a range (FROM-TO) is needed here")]
    NeedsRange(String),
    /// Neither the name nor the number of an IP protocol.
    #[error("'{0}' is not a protocol")]
    Protocol(String),
    /// Protocol 0 cannot be stored.
    #[error("protocol 0 cannot be stored in a set")]
    ZeroProtocol,
    /// ICMP in a set of the other family.
    #[error("protocol {protocol} can be used with family {family} only")]
    IcmpFamily {
        /// `icmp` or `ipv6-icmp`.
        protocol: Protocol,
        /// The family of the protocol.
        family: Family,
    },
    /// Neither the name of an ICMP message nor `type/code`.
    #[error("'{text}' is not an {name} message: a name or TYPE/CODE is needed")]
    Icmp {
        /// The word.
        text: String,
        /// `ICMP` or `ICMPv6`.
        name: &'static str,
    },
    /// A port of a protocol that has no ports.
    #[error("protocol {0} has no ports: only the pseudo port 0 can be used with it")]
    PseudoPort(Protocol),
    /// A range of ports of a protocol that has no ports.
    #[error("protocol {0} has no ports that could be a range")]
    PortRange(Protocol),
    /// Another protocol than TCP and UDP in a `bitmap:port`.
    #[error("'{0}': only the protocols tcp and udp can be used here")]
    TcpOrUdp(String),
    /// Neither a port number nor a service of the protocol.
    #[error("'{text}' is neither a number nor a {protocol} service")]
    Service {
        /// The word.
        text: String,
        /// The protocol as it was written.
        protocol: String,
    },
    /// Not six numbers below 100 in hexadecimal digits, with colons between.
    #[error("'{0}' is not a MAC address")]
    Mac(String),
    /// An interface name that the text form of ipset cannot represent.
    #[error(
        "'{}' cannot be the name of an interface (1 to 15 bytes without commas, quotes and control characters)",
        .0.escape_debug()
    )]
    Interface(String),
    /// A comment that the text form of ipset cannot represent.
    #[error("a comment cannot have double quotes or control characters")]
    Comment,
    /// A comment of more bytes than the kernel accepts.
    #[error("the comment has {length} bytes, the limit is 255")]
    CommentTooLong {
        /// Its length.
        length: usize,
    },
    /// Not `0xMARK` or `0xMARK/0xMASK`.
    #[error("'{0}' is not a mark: 0xMARK or 0xMARK/0xMASK is needed")]
    SkbMark(String),
    /// Not `MAJOR:MINOR`.
    #[error("'{0}' is not a priority: MAJOR:MINOR in hexadecimal is needed")]
    SkbPrio(String),
    /// A mask that is not an address, or is all zeros.
    #[error("'{text}' is not a bitmask of family {family}")]
    Bitmask {
        /// The word.
        text: String,
        /// The family of the set.
        family: Family,
    },
    /// An element with too few parts.
    #[error("'{text}': an element of {kind} has {need} parts, part {part} is missing")]
    MissingPart {
        /// The element.
        text: String,
        /// The type of the set.
        kind: SetType,
        /// Parts of the type.
        need: usize,
        /// The first part that is missing.
        part: usize,
    },
    /// An element with too many parts.
    #[error("'{text}': an element of {kind} has {need} parts only")]
    TooManyParts {
        /// The element.
        text: String,
        /// The type of the set.
        kind: SetType,
        /// Parts of the type.
        need: usize,
    },
    /// An element of another shape than the type has.
    #[error("{element} is not an element of {kind} with family {family}")]
    Shape {
        /// The element.
        element: String,
        /// The type of the set.
        kind: SetType,
        /// The family of the set.
        family: Family,
    },
    /// A range or network in a command that takes one element.
    #[error("{element} is not possible in the command {command} with set type {kind} and family {family}")]
    NotInCommand {
        /// The kind of element, such as `a range of ports`.
        element: &'static str,
        /// The command.
        command: &'static str,
        /// The type of the set.
        kind: SetType,
        /// The family of the set.
        family: Family,
    },
    /// An option that the type (or the command) does not have.
    #[error("{kind} has no option {option} in the command {command}")]
    NoSuchOption {
        /// The option.
        option: &'static str,
        /// The type of the set.
        kind: SetType,
        /// The command.
        command: &'static str,
    },
    /// Two options that exclude each other.
    #[error("{0} and {1} exclude each other")]
    Exclusive(&'static str, &'static str),
    /// An entry of a set that neither the file creates nor the caller knows.
    #[error("the set {0} does not exist")]
    UnknownSet(String),
    /// An entry that expands to too many entries.
    #[error("'{text}' stands for more than {max} entries")]
    TooMany {
        /// The entry.
        text: String,
        /// The limit.
        max: usize,
    },
    /// An entry for which kernels store different elements in a set with a mask.
    #[error("'{0}': what a hash:net,net with a netmask or bitmask stores for it depends on the kernel")]
    Masked(String),
    /// An option that is given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A required option that is missing.
    #[error("the option {0} is missing")]
    MissingOption(&'static str),
    /// A word that is not a command.
    #[error("no command: '{0}' is unknown")]
    UnknownCommand(String),
    /// A command line without a command.
    #[error("no command")]
    NoCommand,
    /// A command lacks its first or second argument.
    #[error("the command {command} lacks its {which} argument")]
    MissingArgument {
        /// The command.
        command: &'static str,
        /// `first` or `second`.
        which: &'static str,
    },
    /// A surplus word.
    #[error("unknown argument '{0}'")]
    UnknownArgument(String),
    /// An option at the end of the line that needs a value.
    #[error("the option {0} lacks its value")]
    MissingValue(&'static str),
    /// A command that a restore file cannot have.
    #[error("the command {0} cannot be used in a restore file")]
    NotInRestore(&'static str),
    /// An odd number of double quotes on a line.
    #[error("a double quote is not closed")]
    Quote,
    /// An output format that does not exist.
    #[error("output mode '{0}' is unknown: plain, save or xml is needed")]
    OutputMode(String),
}

impl Reason {
    /// Returns true when the words are not a command, rather than a command with a value that is not valid.
    /// `ipset` exits with 2 for these, and with 1 for the others.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::MissingOption(_)
                | Self::UnknownCommand(_)
                | Self::NoCommand
                | Self::MissingArgument { .. }
                | Self::UnknownArgument(_)
                | Self::MissingValue(_)
                | Self::NotInRestore(_)
                | Self::Quote
        )
    }
}
