//! How long checks took the last time, kept below the target directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::checks::Check;
use crate::session::Session;

/// The times by the names of checks.
pub(crate) struct Times {
    file: PathBuf,
    seconds: BTreeMap<String, f64>,
}

impl Times {
    /// Reads the times. A file that is not there, or not ours, has none.
    pub(crate) fn read(session: &Session) -> Self {
        let file = session.scratch.join("times.json");
        let kept: Value = fs::read_to_string(&file)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let seconds = kept.as_object().into_iter().flatten();
        let seconds = seconds.filter_map(|(name, time)| Some((name.clone(), time.as_f64()?))).collect();
        Self { file, seconds }
    }

    /// Returns how long a check takes: what was measured here, or what is usual on two processors.
    pub(crate) fn of(&self, check: &Check) -> Duration {
        let usual = check.minutes * 60.0;
        let seconds = self.seconds.get(check.name).copied().filter(|time| *time >= 0.0).unwrap_or(usual);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Keeps what a check took.
    pub(crate) fn keep(&mut self, check: &Check, time: Duration) {
        self.seconds.insert(check.name.to_owned(), time.as_secs_f64());
        // Without the file, the next run shows usual times.
        let _ = fs::write(&self.file, json!(self.seconds).to_string());
    }
}
