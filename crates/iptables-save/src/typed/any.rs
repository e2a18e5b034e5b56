//! Every match and every target as a value of one type.

use super::{Jump, Typed, matches, targets};
use crate::spec::{Module, Target};
use crate::{Error, Spec, find_match};

/// Declares an enumeration with a variant for each structure.
macro_rules! any {
    ($(#[$about:meta])* $any:ident of $module:ident: $($variant:ident)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $any {
            $(
                #[allow(missing_docs, reason = "the structure says what it is")]
                $variant($module::$variant),
            )*
            /// One that iptables-extensions(8) does not have, or of which the tool could not print the
            /// options.
            Other(Module<'static>),
        }

        impl $any {
            fn read(module: &Module<'_>, name: &str) -> Result<Self, Error> {
                Ok(match name {
                    $($module::$variant::NAME => Self::$variant(Typed::of(module)?),)*
                    _ => Self::Other(module.clone().into_owned()),
                })
            }

            /// Returns the module, as [`Typed::module`] does.
            #[must_use]
            pub fn module(&self) -> Module<'static> {
                match self {
                    $(Self::$variant(typed) => typed.module(),)*
                    Self::Other(module) => module.clone(),
                }
            }
        }

        $(impl From<$module::$variant> for $any {
            fn from(typed: $module::$variant) -> Self {
                Self::$variant(typed)
            }
        })*
    };
}

any! {
    /// A match of any kind.
    ///
    /// ```
    /// use sluicegate_iptables_save::Spec;
    /// use sluicegate_iptables_save::typed::AnyMatch;
    ///
    /// let spec = Spec::read("-p tcp -m tcp --dport 80 -m ttl --ttl-gt 5 -j ACCEPT").unwrap();
    /// let [AnyMatch::Tcp(tcp), AnyMatch::Ttl(ttl)] = &spec.typed_matches().unwrap()[..] else { panic!() };
    /// assert_eq!(tcp.destination_port.unwrap().value.first, 80);
    /// assert_eq!(ttl.gt, Some(5));
    /// ```
    AnyMatch of matches:
    Addrtype
    Ah
    Bpf
    Cgroup
    Cluster
    Comment
    Connbytes
    Connlabel
    Connlimit
    Connmark
    Conntrack
    Cpu
    Dccp
    Devgroup
    Dscp
    Dst
    Ecn
    Esp
    Eui64
    Frag
    Hashlimit
    Hbh
    Helper
    Hl
    Icmp
    Icmp6
    Ipcomp
    Iprange
    Ipv6header
    Ipvs
    Length
    Limit
    Mac
    Mark
    Mh
    Multiport
    Nfacct
    Osf
    Owner
    Physdev
    Pkttype
    Policy
    Quota
    Rateest
    Realm
    Recent
    Rpfilter
    Rt
    Sctp
    Set
    Socket
    Srh
    State
    Statistic
    StringMatch
    Tcp
    Tcpmss
    Time
    Tos
    Ttl
    U32
    Udp
}

any! {
    /// A target extension of any kind.
    AnyExtension of targets:
    Audit
    Checksum
    Classify
    Clusterip
    Connmark
    Connsecmark
    Ct
    Dnat
    Dnpt
    Dscp
    Ecn
    Hl
    Hmark
    Idletimer
    Led
    Log
    Mark
    Masquerade
    Netmap
    Nflog
    Nfqueue
    Notrack
    Rateest
    Redirect
    Reject
    Secmark
    Set
    Snat
    Snpt
    Synproxy
    Tcpmss
    Tcpoptstrip
    Tee
    Tos
    Tproxy
    Trace
    Ttl
    Ulog
}

/// A target of any kind: a verdict, a chain, or an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyTarget {
    /// A verdict, a jump or a goto.
    Jump(Jump),
    /// A target with a structure of its own.
    Extension(AnyExtension),
}

impl AnyMatch {
    /// Reads a match of any kind into its structure.
    ///
    /// # Errors
    /// As [`Typed::of`]. A match that is not known is [`AnyMatch::Other`].
    pub fn of(module: &Module<'_>) -> Result<Self, Error> {
        Self::read(module, known_name(module, false))
    }
}

impl AnyTarget {
    /// Reads a target of any kind into its structure.
    ///
    /// # Errors
    /// As [`Typed::of`]. A target that is not known but has options is [`AnyExtension::Other`].
    pub fn of(target: &Target<'_>) -> Result<Self, Error> {
        match Jump::of(target) {
            Some(jump) => Ok(Self::Jump(jump)),
            None => AnyExtension::read(&target.module, known_name(&target.module, true)).map(Self::Extension),
        }
    }
}

impl From<AnyTarget> for Target<'static> {
    fn from(target: AnyTarget) -> Self {
        match target {
            AnyTarget::Jump(jump) => jump.into(),
            AnyTarget::Extension(extension) => Self { module: extension.module(), goto: false },
        }
    }
}

impl Spec<'_> {
    /// Returns all matches of the rule, read.
    ///
    /// # Errors
    /// As [`Typed::of`].
    pub fn typed_matches(&self) -> Result<Vec<AnyMatch>, Error> {
        self.matches.iter().map(AnyMatch::of).collect()
    }

    /// Returns the target of the rule, read; `None` if it has none.
    ///
    /// # Errors
    /// As [`Typed::of`].
    pub fn any_target(&self) -> Result<Option<AnyTarget>, Error> {
        self.target.as_ref().map(AnyTarget::of).transpose()
    }
}

/// Returns the name of the extension of a module, which may have another by an alias; an empty one for a
/// module whose options the tool could not print.
fn known_name<'m>(module: &'m Module<'_>, target: bool) -> &'m str {
    if module.options.iter().any(|option| crate::read::is_remark(&option.name)) {
        return "";
    }
    let mut families = [crate::Family::Ipv4, crate::Family::Ipv6].into_iter();
    match families.find_map(|family| find_match(&module.name, family)) {
        Some(extension) if !target => extension.name,
        _ => &module.name,
    }
}
