//! The result of a cleanup, which attempts each of its parts even if others fail.

use crate::Error;

/// The objects that were removed, and the failures.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Cleaned {
    /// Descriptions of the objects that were removed.
    pub removed: Vec<String>,
    /// The failures, after which some objects may still exist.
    pub failed: Vec<Error>,
}

impl Cleaned {
    /// Adds the result of one part.
    pub(crate) fn add(&mut self, part: Result<impl IntoIterator<Item = String>, Error>) {
        match part {
            Ok(removed) => self.removed.extend(removed),
            Err(error) => self.failed.push(error),
        }
    }
}

impl From<Result<Vec<String>, Error>> for Cleaned {
    fn from(part: Result<Vec<String>, Error>) -> Self {
        let mut cleaned = Self::default();
        cleaned.add(part);
        cleaned
    }
}
