//! Declares the attributes of netlink messages: number, C name, and what is nested in each.
//!
//! Each attribute is declared once, in the file that encodes and decodes its object ([`attributes!`]).
//! Encoders, decoders, the fake and error messages ([`AttributePath`](crate::AttributePath)) all use that
//! declaration.

/// An attribute of a C enumeration.
#[derive(Debug)]
pub(crate) struct AttributeType {
    /// `nla_type`.
    pub(crate) number: u16,
    /// The C name.
    pub(crate) name: &'static str,
    /// The attributes in it, if it is a nest.
    pub(crate) nested: Enumeration,
}

/// The attributes of one C enumeration.
pub(crate) type Enumeration = &'static [AttributeType];

/// Declares enumerations of attributes: a `u16` constant for each attribute, and the list of them for error
/// messages.
///
/// `=> OTHER` after a number names the enumeration of the attributes in a nest.
macro_rules! attributes {
    ($(
        $(#[$doc:meta])*
        $list:ident: $enumeration:literal {
            $( $(#[$note:meta])* $name:ident = $number:literal $(=> $nested:path)?, )*
        }
    )*) => {$(
        $(
            #[doc = concat!("`", stringify!($name), "` of `", $enumeration, "`.")]
            $(#[doc = ""] #[$note])*
            #[allow(dead_code, reason = "enumerations are declared whole")]
            pub(crate) const $name: u16 = $number;
        )*

        #[doc = concat!("`", $enumeration, "`.")]
        $(#[$doc])*
        #[allow(dead_code, reason = "not every nest is looked into by error messages")]
        pub(crate) const $list: $crate::wire::attributes::Enumeration = &[$(
            $crate::wire::attributes::AttributeType {
                number: $number,
                name: stringify!($name),
                nested: $crate::wire::attributes::attributes!(@ $($nested)?),
            }
        ),*];
    )*};
    (@ $nested:path) => { $nested };
    (@) => { &[] };
}
pub(crate) use attributes;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    /// The files of this crate.
    fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the crate's own sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all.push(path);
            }
        }
    }

    /// The name that a line defines: `NFTA_X = 1,` or `const NFTA_X: u16 = 1;`.
    fn defined(line: &str) -> Option<&str> {
        let (left, right) = line.trim_start().split_once('=')?;
        let left = left.trim_end();
        let left = left.split_once("const ").map_or(left, |(_, constant)| constant);
        let (name, _) = left.split_once(':').unwrap_or((left, ""));
        let is_constant =
            name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        let is_number = right.trim_start().starts_with(|first: char| first.is_ascii_digit());
        let of_kernel = ["NFTA_", "NFT_MSG_", "NFNLA_"].iter().any(|prefix| name.starts_with(prefix));
        (is_constant && is_number && of_kernel).then_some(name)
    }

    #[test]
    fn every_wire_constant_is_defined_once() {
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in &files {
            let text = std::fs::read_to_string(file).expect("a source file");
            for name in text.lines().filter_map(defined) {
                found.entry(name.to_owned()).or_default().push(file.display().to_string());
            }
        }
        assert!(found.len() > 150, "only {} definitions were recognised", found.len());
        let twice: Vec<_> = found.iter().filter(|(_, files)| files.len() > 1).collect();
        assert!(twice.is_empty(), "defined more than once: {twice:#?}");
    }

    #[test]
    fn definitions_are_recognised() {
        assert_eq!(defined("        NFTA_EXAMPLE_A = 4 => HOOK,"), Some("NFTA_EXAMPLE_A"));
        assert_eq!(defined("const NFT_MSG_EXAMPLE: u8 = 16;"), Some("NFT_MSG_EXAMPLE"));
        assert_eq!(defined("pub(crate) const NFTA_EXAMPLE_B: u16 = 10;"), Some("NFTA_EXAMPLE_B"));
        assert_eq!(defined("    NFTA_TABLE_NAME => named = Some(name(&attribute)?),"), None);
        assert_eq!(defined("let x = NFTA_SET_ID;"), None);
    }
}
