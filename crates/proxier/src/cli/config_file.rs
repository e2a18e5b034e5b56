//! The file of `--config`: when it changes, the daemon ends, to be started anew with what is in it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluicegate_proxier::config::Config;
use sluicegate_proxier::run::Signal;
use tokio::sync::mpsc::Sender;
use tokio::time::{MissedTickBehavior, interval};

/// Looks at the file every second. When another configuration has been in it for two looks, `changed` is set
/// and the loop is told to stop. One that cannot be used is told, and leaves everything as it is: the daemon
/// could not start with it.
pub(super) async fn follow(path: PathBuf, mut first: Config, stop: Sender<Signal>, changed: Arc<AtomicBool>) {
    forget_places(&mut first);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = read(&path);
    let mut reported = None;
    loop {
        ticks.tick().await;
        let now = read(&path);
        let is_steady = now == last;
        match &now {
            Ok(config) if is_steady && *config != first => {
                tracing::error!(
                    "{}: the configuration has changed; ending, to be started anew with it",
                    path.display()
                );
                changed.store(true, Ordering::Relaxed);
                // The loop has ended if nobody listens.
                let _ = stop.send(Signal::Stop).await;
                return;
            }
            Err(reason) if is_steady && reported.as_ref() != Some(reason) => {
                tracing::warn!("{reason}; the configuration of before stays in use");
                reported = Some(reason.clone());
            }
            Ok(_) if is_steady => reported = None,
            _ => {}
        }
        last = now;
    }
}

/// Why the file cannot be used, in words: causes as those of the system are not comparable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unusable(String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn read(path: &Path) -> Result<Config, Unusable> {
    let mut config = Config::read(path).map_err(|error| Unusable(error.to_string()))?;
    forget_places(&mut config);
    Ok(config)
}

/// Comments and the order of fields change nothing but the lines of remarks.
fn forget_places(config: &mut Config) {
    config.unused.clear();
    config.doubtful.clear();
}

const EVERY: Duration = Duration::from_secs(1);
