//! The message types of `nf_tables` (`enum nf_tables_msg_types`, `linux/netfilter/nf_tables.h`).

/// `NFNL_SUBSYS_NFTABLES` (`linux/netfilter/nfnetlink.h`): the upper byte of the type of every message.
pub(crate) const SUBSYSTEM: u8 = 10;

macro_rules! messages {
    ($( $(#[$note:meta])* $name:ident = $number:literal, )*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of `enum nf_tables_msg_types`, \
                `linux/netfilter/nf_tables.h`.")]
            $(#[doc = ""] #[$note])*
            pub(crate) const $name: u8 = $number;
        )*
    };
}

messages! {
    NFT_MSG_NEWTABLE = 0,
    NFT_MSG_GETTABLE = 1,
    NFT_MSG_DELTABLE = 2,
    NFT_MSG_NEWCHAIN = 3,
    NFT_MSG_GETCHAIN = 4,
    NFT_MSG_DELCHAIN = 5,
    NFT_MSG_NEWRULE = 6,
    NFT_MSG_GETRULE = 7,
    NFT_MSG_DELRULE = 8,
    NFT_MSG_NEWSET = 9,
    NFT_MSG_GETSET = 10,
    NFT_MSG_DELSET = 11,
    NFT_MSG_NEWSETELEM = 12,
    NFT_MSG_GETSETELEM = 13,
    NFT_MSG_DELSETELEM = 14,
    NFT_MSG_NEWGEN = 15,
    NFT_MSG_GETGEN = 16,
    NFT_MSG_TRACE = 17,
    NFT_MSG_NEWOBJ = 18,
    NFT_MSG_GETOBJ = 19,
    NFT_MSG_DELOBJ = 20,
    NFT_MSG_GETOBJ_RESET = 21,
    NFT_MSG_NEWFLOWTABLE = 22,
    NFT_MSG_GETFLOWTABLE = 23,
    NFT_MSG_DELFLOWTABLE = 24,
    /// Since Linux 6.2.
    NFT_MSG_GETRULE_RESET = 25,
    /// This and the other `DESTROY` messages exist since Linux 6.3.
    NFT_MSG_DESTROYTABLE = 26,
    NFT_MSG_DESTROYCHAIN = 27,
    NFT_MSG_DESTROYRULE = 28,
    NFT_MSG_DESTROYSET = 29,
    NFT_MSG_DESTROYSETELEM = 30,
    NFT_MSG_DESTROYOBJ = 31,
    NFT_MSG_DESTROYFLOWTABLE = 32,
    /// Since Linux 6.5.
    NFT_MSG_GETSETELEM_RESET = 33,
}
