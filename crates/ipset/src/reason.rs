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
        "expected the name of a set, found '{}', which is empty, has control characters or quotes, or is an option",
        .0.escape_debug()
    )]
    Name(String),
    /// A set name of more bytes than the kernel has room for.
    #[error("expected a set name of at most {max} bytes, found '{name}'")]
    NameTooLong {
        /// The name.
        name: String,
        /// The limit, 31.
        max: usize,
    },
    /// A type of set that does not exist.
    #[error("expected a set type, found '{0}'")]
    SetType(String),
    /// A family that does not exist.
    #[error("expected the family inet or inet6, found '{0}'")]
    Family(String),
    /// A family that the type does not have.
    #[error("expected a family of set type {kind}, found {family}")]
    TypeFamily {
        /// The type.
        kind: SetType,
        /// The requested family.
        family: Family,
    },
    /// A word that is not a number.
    #[error("expected a number, found '{0}'")]
    Number(String),
    /// A number beyond its limits.
    #[error("expected a number from {min} to {max}, found '{text}'")]
    OutOfRange {
        /// The number as it was written.
        text: String,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// Neither an address of the family nor a name that resolves to one.
    #[error("expected an {} address, found '{text}'", family.of_addresses())]
    Address {
        /// The word.
        text: String,
        /// The family of the set.
        family: Family,
    },
    /// Square brackets around a name that are not closed, or are followed by something.
    #[error("expected a closing bracket at the end of the name, found '{0}'")]
    Bracket(String),
    /// A network or range where the type stores single addresses.
    #[error("expected a single address, found '{0}'")]
    SingleAddress(String),
    /// A range of addresses where the kernel accepts an address or a network only.
    #[error("expected an address or a network, found '{0}'")]
    NoAddressRange(String),
    /// `range` of `create` needs a network or a range.
    #[error("expected a network (ADDRESS/PREFIX) or a range (FROM-TO), found '{0}'")]
    NeedsRange(String),
    /// Neither the name nor the number of an IP protocol.
    #[error("expected the name or number of an IP protocol, found '{0}'")]
    Protocol(String),
    /// Protocol 0 cannot be stored.
    #[error("expected a protocol from 1 to 255, found 0, which a set cannot store")]
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
    #[error("expected an {name} message (a name or TYPE/CODE), found '{text}'")]
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
    #[error("expected the protocol tcp or udp, found '{0}'")]
    TcpOrUdp(String),
    /// Neither a port number nor a service of the protocol.
    #[error("expected a port or a {protocol} service, found '{text}'")]
    Service {
        /// The word.
        text: String,
        /// The protocol as it was written.
        protocol: String,
    },
    /// Not six numbers below 100 in hexadecimal digits, with colons between.
    #[error("expected a MAC address, found '{0}'")]
    Mac(String),
    /// An interface name that the text form of ipset cannot represent.
    #[error(
        "expected the name of an interface (1 to 15 bytes without commas, quotes and control characters), \
         found '{}'",
        .0.escape_debug()
    )]
    Interface(String),
    /// A comment that the text form of ipset cannot represent.
    #[error("expected a comment without double quotes and control characters")]
    Comment,
    /// A comment of more bytes than the kernel accepts.
    #[error("expected a comment of at most 255 bytes, found {length}")]
    CommentTooLong {
        /// Its length.
        length: usize,
    },
    /// Not `0xMARK` or `0xMARK/0xMASK`.
    #[error("expected a mark (0xMARK or 0xMARK/0xMASK), found '{0}'")]
    SkbMark(String),
    /// Not `MAJOR:MINOR`.
    #[error("expected a priority (MAJOR:MINOR in hexadecimal), found '{0}'")]
    SkbPrio(String),
    /// A mask that is not an address, or is all zeros.
    #[error("expected a bitmask of family {family}, found '{text}'")]
    Bitmask {
        /// The word.
        text: String,
        /// The family of the set.
        family: Family,
    },
    /// An element with too few parts.
    #[error("expected an element of {kind}, which has {need} parts, found '{text}' without part {part}")]
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
    #[error("expected an element of {kind}, which has {need} parts, found '{text}'")]
    TooManyParts {
        /// The element.
        text: String,
        /// The type of the set.
        kind: SetType,
        /// Parts of the type.
        need: usize,
    },
    /// An element of another shape than the type has.
    #[error("expected an element of {kind} with family {family}, found {element}")]
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
    #[error("expected an option of {kind} in the command {command}, found {option}")]
    NoSuchOption {
        /// The option.
        option: &'static str,
        /// The type of the set.
        kind: SetType,
        /// The command.
        command: &'static str,
    },
    /// Two options that exclude each other.
    #[error("expected {0} or {1}, found both")]
    Exclusive(&'static str, &'static str),
    /// An entry of a set that neither the file creates nor the caller knows.
    #[error("expected the name of a set that exists, found {0}")]
    UnknownSet(String),
    /// An entry that expands to too many entries.
    #[error("expected at most {max} entries, found '{text}', which stands for more")]
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
    #[error("expected {0} once, found it twice")]
    Twice(&'static str),
    /// A required option that is missing.
    #[error("expected the option {0}, found none")]
    MissingOption(&'static str),
    /// A word that is not a command.
    #[error("expected a command, found '{0}'")]
    UnknownCommand(String),
    /// A command line without a command.
    #[error("expected a command, found none")]
    NoCommand,
    /// A command lacks its first or second argument.
    #[error("expected the {which} argument of the command {command}, found none")]
    MissingArgument {
        /// The command.
        command: &'static str,
        /// `first` or `second`.
        which: &'static str,
    },
    /// A word that is not an option of the command.
    #[error("unknown argument '{0}'")]
    UnknownArgument(String),
    /// A word behind all that the command takes.
    #[error("expected the end of the command, found '{0}'")]
    SurplusArgument(String),
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
    #[error("expected the output mode plain, save or xml, found '{0}'")]
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
                | Self::SurplusArgument(_)
                | Self::MissingValue(_)
                | Self::NotInRestore(_)
                | Self::Quote
        )
    }
}
