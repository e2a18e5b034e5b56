//! The message types of `nf_tables` (`enum nf_tables_msg_types`, `linux/netfilter/nf_tables.h`), each with
//! the attributes of its messages.

use crate::monitor::trace::TRACE;
use crate::object::chain::wire::CHAIN;
use crate::object::element::wire::ELEMENT_LIST;
use crate::object::flowtable::wire::FLOWTABLE;
use crate::object::generation::GENERATION;
use crate::object::rule::wire::RULE;
use crate::object::set::wire::SET;
use crate::object::stateful::wire::OBJECT;
use crate::object::table::wire::TABLE;
use crate::wire::attributes::Enumeration;

/// `NFNL_SUBSYS_NFTABLES` (`linux/netfilter/nfnetlink.h`): the upper byte of the type of every message.
pub(crate) const SUBSYSTEM: u8 = 10;

macro_rules! messages {
    ($( $(#[$note:meta])* $name:ident = $number:literal $list:ident, )*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of `enum nf_tables_msg_types`, \
                `linux/netfilter/nf_tables.h`.")]
            $(#[doc = ""] #[$note])*
            pub(crate) const $name: u8 = $number;
        )*

        /// Returns the attributes of a message of this type.
        pub(crate) fn attributes_of(command: u8) -> Enumeration {
            match command {
                $( $name => $list, )*
                _ => &[],
            }
        }
    };
}

messages! {
    NFT_MSG_NEWTABLE = 0 TABLE,
    NFT_MSG_GETTABLE = 1 TABLE,
    NFT_MSG_DELTABLE = 2 TABLE,
    NFT_MSG_NEWCHAIN = 3 CHAIN,
    NFT_MSG_GETCHAIN = 4 CHAIN,
    NFT_MSG_DELCHAIN = 5 CHAIN,
    NFT_MSG_NEWRULE = 6 RULE,
    NFT_MSG_GETRULE = 7 RULE,
    NFT_MSG_DELRULE = 8 RULE,
    NFT_MSG_NEWSET = 9 SET,
    NFT_MSG_GETSET = 10 SET,
    NFT_MSG_DELSET = 11 SET,
    NFT_MSG_NEWSETELEM = 12 ELEMENT_LIST,
    NFT_MSG_GETSETELEM = 13 ELEMENT_LIST,
    NFT_MSG_DELSETELEM = 14 ELEMENT_LIST,
    NFT_MSG_NEWGEN = 15 GENERATION,
    NFT_MSG_GETGEN = 16 GENERATION,
    NFT_MSG_TRACE = 17 TRACE,
    NFT_MSG_NEWOBJ = 18 OBJECT,
    NFT_MSG_GETOBJ = 19 OBJECT,
    NFT_MSG_DELOBJ = 20 OBJECT,
    NFT_MSG_GETOBJ_RESET = 21 OBJECT,
    NFT_MSG_NEWFLOWTABLE = 22 FLOWTABLE,
    NFT_MSG_GETFLOWTABLE = 23 FLOWTABLE,
    NFT_MSG_DELFLOWTABLE = 24 FLOWTABLE,
    /// Since Linux 6.2.
    NFT_MSG_GETRULE_RESET = 25 RULE,
    /// This and the other `DESTROY` messages exist since Linux 6.3.
    NFT_MSG_DESTROYTABLE = 26 TABLE,
    NFT_MSG_DESTROYCHAIN = 27 CHAIN,
    NFT_MSG_DESTROYRULE = 28 RULE,
    NFT_MSG_DESTROYSET = 29 SET,
    NFT_MSG_DESTROYSETELEM = 30 ELEMENT_LIST,
    NFT_MSG_DESTROYOBJ = 31 OBJECT,
    NFT_MSG_DESTROYFLOWTABLE = 32 FLOWTABLE,
    /// Since Linux 6.5.
    NFT_MSG_GETSETELEM_RESET = 33 ELEMENT_LIST,
}
