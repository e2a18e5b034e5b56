//! Limits on the size of inputs.

/// Sizes above which input is refused with [`Error::Limit`](crate::Error::Limit). The memory of the tree
/// grows with the input, never faster; for that of normal forms see [`Limits::RULES_OF_A_LINE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of the whole input.
    pub input: usize,
    /// Bytes of one line. iptables-restore 1.8.9 itself cuts lines at 10,239 bytes, see
    /// [`Limits::RESTORE_LINE`].
    pub line: usize,
    /// Lines of the whole input.
    pub lines: usize,
}

impl Limits {
    /// Longest line, its end included, that iptables-restore 1.8.9 reads whole (a buffer of 10,240 bytes).
    pub const RESTORE_LINE: usize = 10_239;
    /// Longest word in bytes that iptables-restore 1.8.9 takes (`Parameter too long!`).
    pub const RESTORE_WORD: usize = 1_023;
    /// Most words that iptables-restore 1.8.9 takes in one rule (255 arguments, three of which are its own,
    /// one the end).
    pub const RESTORE_WORDS: usize = 251;
    /// Most rules that one line may stand for by the lists of `-s` and `-d`, which iptables multiplies
    /// without a limit. So the normal form of a line has at most so many times its size.
    pub const RULES_OF_A_LINE: usize = 1024;
    /// Longest chain name in bytes (`XT_EXTENSION_MAXNAMELEN` - 1, `linux/netfilter/x_tables.h`).
    pub const CHAIN_NAME: usize = 28;
}

impl Default for Limits {
    /// 256 MiB, lines of 1 MiB, 4,194,304 lines.
    fn default() -> Self {
        Self { input: 256 << 20, line: 1 << 20, lines: 4 << 20 }
    }
}
