//! Statistics of flows and of expectations, by processor.

use std::fmt;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::message::Message;

/// The counters of one processor since the network namespace was created, each with its name (`conntrack
/// -S`).
///
/// Counters that a kernel does not have are absent. The numbers wrap around.
///
/// It prints as a line of `conntrack -S`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerCpu<N> {
    /// The number of the processor.
    pub cpu: u16,
    /// The counters, in the order of their attributes.
    pub figures: Vec<(N, u32)>,
}

impl<N: Copy + PartialEq> PerCpu<N> {
    /// Returns one counter; `None` if the kernel does not report it.
    ///
    /// ```no_run
    /// use sluicegate_conntrack::{Client, Statistic};
    ///
    /// for cpu in Client::open()?.statistics()? {
    ///     println!("{}: {} dropped", cpu.cpu, cpu.get(Statistic::DROP).unwrap_or(0));
    /// }
    /// # Ok::<(), sluicegate_conntrack::Error>(())
    /// ```
    #[must_use]
    pub fn get(&self, name: N) -> Option<u32> {
        self.figures.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Decodes a message of the dump. The number of the processor is in the field `res_id`.
    pub(crate) fn decode(message: Message<'_>, name: fn(u16) -> N) -> Result<Self, DecodeError> {
        let (header, attributes) = message.netfilter()?;
        let mut figures: Vec<(u16, u32)> = Vec::new();
        for attribute in attributes {
            let attribute = attribute?;
            figures.push((attribute.kind, attribute.be32()?));
        }
        figures.sort_by_key(|(kind, _)| *kind);
        let figures = figures.into_iter().map(|(kind, value)| (name(kind), value)).collect();
        Ok(Self { cpu: header.resource, figures })
    }
}

/// Prints `cpu=0   <tab>found=0 invalid=0 `, with a space at the end, as conntrack(8) does.
impl<N: fmt::Display> fmt::Display for PerCpu<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu={:<4}\t", self.cpu)?;
        self.figures.iter().try_for_each(|(name, value)| write!(f, "{name}={value} "))
    }
}

macro_rules! figures {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $figure:ident = $value:literal, $text:literal;)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u16);

        impl $name {
            $($(#[$doc])* pub const $figure: Self = Self($value);)*

            /// Returns the name that conntrack(8) prints, `None` for an unknown counter.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        /// Prints the name, or the number in hexadecimal.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => write!(f, "{:#x}", self.0),
                }
            }
        }
    };
}

figures! {
    /// The counters of flows (`enum ctattr_stats_cpu` of `linux/netfilter/nfnetlink_conntrack.h`).
    Statistic {
        /// `CTA_STATS_SEARCHED`: steps of lookups; no longer counted.
        SEARCHED = 1, "searched";
        /// `CTA_STATS_FOUND`: lookups that found a flow.
        FOUND = 2, "found";
        /// `CTA_STATS_NEW`: new flows; no longer counted.
        NEW = 3, "new";
        /// `CTA_STATS_INVALID`: packets that belong to no flow and cannot create one.
        INVALID = 4, "invalid";
        /// `CTA_STATS_IGNORE`: packets that were tracked already; no longer counted.
        IGNORE = 5, "ignore";
        /// `CTA_STATS_DELETE`: deleted flows; no longer counted.
        DELETE = 6, "delete";
        /// `CTA_STATS_DELETE_LIST`: flows that were added to the list of dying ones; no longer counted.
        DELETE_LIST = 7, "delete_list";
        /// `CTA_STATS_INSERT`: flows that were added to the table.
        INSERT = 8, "insert";
        /// `CTA_STATS_INSERT_FAILED`: flows that were not added, because another one has their tuples.
        INSERT_FAILED = 9, "insert_failed";
        /// `CTA_STATS_DROP`: packets that were dropped because they could not be tracked.
        DROP = 10, "drop";
        /// `CTA_STATS_EARLY_DROP`: flows that were deleted to make room for others in a full table.
        EARLY_DROP = 11, "early_drop";
        /// `CTA_STATS_ERROR`: malformed packets, which are also counted as invalid.
        ERROR = 12, "error";
        /// `CTA_STATS_SEARCH_RESTART`: lookups that were restarted because the table was resized.
        SEARCH_RESTART = 13, "search_restart";
        /// `CTA_STATS_CLASH_RESOLVE`: clashes of two new flows that were resolved.
        CLASH_RESOLVE = 14, "clash_resolve";
        /// `CTA_STATS_CHAIN_TOOLONG`: flows for which a chain of the table was too long.
        CHAIN_TOOLONG = 15, "chaintoolong";
    }
}

figures! {
    /// The counters of expectations (`enum ctattr_expect_stats` of
    /// `linux/netfilter/nfnetlink_conntrack.h`).
    ExpectationStatistic {
        /// `CTA_STATS_EXP_NEW`: new flows that were expected.
        NEW = 1, "expect_new";
        /// `CTA_STATS_EXP_CREATE`: expectations that were created.
        CREATE = 2, "expect_create";
        /// `CTA_STATS_EXP_DELETE`: expectations that were deleted.
        DELETE = 3, "expect_delete";
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_netlink::Batch;
    use sluicegate_netlink::message::{Flags, Messages, NfGenMsg};

    use super::*;

    #[test]
    fn counters_are_in_the_order_of_their_attributes_and_unknown_ones_are_kept() {
        let mut batch = Batch::new();
        let mut message = batch.message(0x0104, Flags::MULTI, 0);
        message.raw(&NfGenMsg { family: 0, version: 0, resource: 3 }.bytes());
        message.put_be32(99, 7);
        message.put_be32(10, 2);
        message.put_be32(2, 1);
        drop(message);
        let bytes = batch.bytes().unwrap();
        let message = Messages::new(bytes).next().unwrap().unwrap();
        let statistics = PerCpu::decode(message, Statistic).unwrap();
        assert_eq!(statistics.to_string(), "cpu=3   \tfound=1 drop=2 0x63=7 ");
        assert_eq!((statistics.get(Statistic::DROP), statistics.get(Statistic::NEW)), (Some(2), None));
    }
}
