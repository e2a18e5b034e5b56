//! Connection labels: 128 bits of a flow, and the names that a file gives them.

use std::collections::BTreeMap;

/// The labels of a flow: a set of bits, 0 to 127.
///
/// ```
/// use sluicegate_conntrack::Labels;
///
/// let mut labels = Labels::default();
/// assert!(labels.insert(127) && !labels.insert(128));
/// assert!(labels.contains(127));
/// assert_eq!(labels.bits().collect::<Vec<_>>(), [127]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Labels(pub [u8; Labels::BYTES]);

impl Labels {
    /// The number of bytes (`NF_CT_LABELS_MAX_SIZE`). Bit n is in byte n / 8.
    pub const BYTES: usize = 16;

    /// Returns whether a label is set.
    #[must_use]
    pub fn contains(&self, bit: u16) -> bool {
        self.0.get(usize::from(bit / 8)).is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
    }

    /// Returns whether all labels of another set are set.
    #[must_use]
    pub fn contains_all(&self, others: &Self) -> bool {
        self.0.iter().zip(others.0).all(|(have, want)| have & want == want)
    }

    /// Sets a label. Returns false when there is no such bit.
    pub fn insert(&mut self, bit: u16) -> bool {
        match self.0.get_mut(usize::from(bit / 8)) {
            Some(byte) => {
                *byte |= 1 << (bit % 8);
                true
            }
            None => false,
        }
    }

    /// Returns whether no label is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; Self::BYTES]
    }

    /// Returns the labels that are set, in order.
    pub fn bits(&self) -> impl Iterator<Item = u16> + '_ {
        (0..128).filter(|bit| self.contains(*bit))
    }
}

/// The names of labels, as a file like `/etc/xtables/connlabel.conf` has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelNames {
    names: BTreeMap<u16, String>,
}

impl LabelNames {
    /// Reads the text of such a file: on each line a bit and its name. As `libnetfilter_conntrack` does, it
    /// skips lines that are not such a pair, names of other characters than letters, digits, `-` and space,
    /// and whatever gives a bit or a name for the second time.
    ///
    /// ```
    /// use sluicegate_conntrack::LabelNames;
    ///
    /// let names = LabelNames::parse("# bit name\n1 eth0-in\n0x10\teth0 out\n1 again\n");
    /// assert_eq!((names.bit("eth0-in"), names.name(16)), (Some(1), Some("eth0 out")));
    /// assert_eq!(names.bit("again"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut names = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((bit, name)) = split_number(line) else { continue };
            let name = name.trim_matches([' ', '\x0c', '\r', '\t', '\x0b']);
            let is_sane = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-');
            let is_new = !names.contains_key(&bit) && !names.values().any(|known| known == name);
            if !name.is_empty() && name.chars().all(is_sane) && is_new {
                names.insert(bit, name.to_owned());
            }
        }
        Self { names }
    }

    /// Returns the bit of a name. It may be above 127, the last that a flow can have.
    #[must_use]
    pub fn bit(&self, name: &str) -> Option<u16> {
        self.names.iter().find(|(_, known)| *known == name).map(|(bit, _)| *bit)
    }

    /// Returns the name of a bit.
    #[must_use]
    pub fn name(&self, bit: u16) -> Option<&str> {
        self.names.get(&bit).map(String::as_str)
    }

    /// Returns whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Splits a line into the number that it begins with, as C writes it, and the rest.
fn split_number(line: &str) -> Option<(u16, &str)> {
    let line = line.trim_start();
    let (digits, radix) = match line.strip_prefix("0x").or_else(|| line.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if line.starts_with('0') => (line, 8),
        None => (line, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, rest) = digits.split_at_checked(end)?;
    // libnetfilter_conntrack knows 1024 bits, of which the kernel has 128.
    let number = u16::from_str_radix(number, radix).ok().filter(|bit| *bit < 1024)?;
    Some((number, rest))
}
