//! `cargo xtask differential`: the test of generated rules beside nft, with more of them than it tries.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::session::Session;

/// Tries rules for some seconds, in the order of this seed or of one that no run before had.
pub(crate) fn run(session: &Session, seconds: u64, seed: Option<u64>) -> Result<(), String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    let seed = seed.unwrap_or(now.as_secs() << 20 | u64::from(now.subsec_micros()));
    let mut cargo = session.cargo();
    cargo
        .args(["test", "--quiet", "--package", "sluicegate-conformance", "--test", "it", "--"])
        .args(["--exact", "differential::generated_rules_are_what_nft_makes_of_them", "--nocapture"])
        .env("SLUICEGATE_DIFFERENTIAL_SECONDS", seconds.to_string())
        .env("SLUICEGATE_DIFFERENTIAL_SEED", seed.to_string())
        // Asked for by name, it may not be passed over where nft is missing.
        .env("SLUICEGATE_NO_SKIP", "1");
    session.run(&mut cargo)
}
