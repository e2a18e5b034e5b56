//! The manifests of `examples/manifests`, built into the program so that it runs from any directory.

use sluicegate_proxier::source::{self, Manifest};

use crate::Error;

/// Reads the objects of all files.
pub(super) fn read(mut sink: impl FnMut(Manifest)) -> Result<(), Error> {
    for (name, text) in FILES {
        source::read_str(name, text, &mut sink)?;
    }
    Ok(())
}

macro_rules! files {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../../examples/manifests/", $name)))),*]
    };
}

const FILES: [(&str, &str); 5] = files!["dns.yaml", "empty.yaml", "mirror.yaml", "node.yaml", "web.yaml"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_of_the_directory_is_missing() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/manifests");
        let mut names: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, FILES.map(|(name, _)| name));
    }
}
