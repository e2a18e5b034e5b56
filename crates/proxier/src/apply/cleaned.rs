//! What came of a cleanup, of which each part is tried whatever becomes of the others.

use crate::Error;

/// What was removed, and what could not be.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Cleaned {
    /// Everything that was there, and is not any more.
    pub removed: Vec<String>,
    /// Why something may still be there.
    pub failed: Vec<Error>,
}

impl Cleaned {
    /// Adds what came of one part.
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
