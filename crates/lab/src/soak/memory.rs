//! A limit of a process' memory: of a control group where one can be made, which counts what the kernel keeps
//! for it as well, or else of the process for its data.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// A limit, in megabytes. Its control group goes when this is dropped.
pub(super) struct Limit {
    megabytes: u32,
    group: Option<PathBuf>,
}

impl Limit {
    pub(super) fn of(megabytes: u32) -> Result<Self, Error> {
        let bytes = (u64::from(megabytes) << 20).to_string();
        for (root, file) in ROOTS {
            let group = Path::new(root).join(format!("sluicegate-soak-{}", std::process::id()));
            let made = Path::new(root).join(file.sibling).exists() && fs::create_dir(&group).is_ok();
            if !made {
                continue;
            }
            if fs::write(group.join(file.name), &bytes).is_ok() {
                return Ok(Self { megabytes, group: Some(group) });
            }
            let removed = fs::remove_dir(&group);
            removed.map_err(|error| Error::network(group.display().to_string(), error))?;
        }
        Ok(Self { megabytes, group: None })
    }

    /// Returns the words before a program that put it under the limit: a shell, which becomes the program.
    pub(super) fn command(&self) -> Vec<String> {
        let (script, limit) = match &self.group {
            Some(group) => {
                ("echo $$ > \"$0\" && exec \"$@\"", group.join("cgroup.procs").display().to_string())
            }
            None => ("ulimit -d \"$0\" && exec \"$@\"", (u64::from(self.megabytes) * 1024).to_string()),
        };
        ["sh", "-c", script, &limit].map(str::to_owned).into()
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { megabytes, group } = self;
        match group {
            Some(group) => {
                let peak = PEAKS.iter().find_map(|file| fs::read_to_string(group.join(file)).ok());
                let peak = peak.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or_default() >> 20;
                write!(f, "{megabytes} MB by a control group, of which {peak} were used at most")
            }
            None => {
                write!(f, "{megabytes} MB of data by a limit of the process: no control group can be made")
            }
        }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            let _ = fs::remove_dir(group);
        }
    }
}

/// The file of a limit, and another that is in the root where its controller works.
struct File {
    name: &'static str,
    sibling: &'static str,
}

/// Where control groups are mounted, of both versions.
const ROOTS: [(&str, File); 2] = [
    ("/sys/fs/cgroup", File { name: "memory.max", sibling: "cgroup.controllers" }),
    ("/sys/fs/cgroup/memory", File { name: "memory.limit_in_bytes", sibling: "memory.limit_in_bytes" }),
];
/// The files with the most that was used, of both versions.
const PEAKS: [&str; 2] = ["memory.peak", "memory.max_usage_in_bytes"];
