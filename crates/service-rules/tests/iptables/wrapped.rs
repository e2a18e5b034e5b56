//! The tools of iptables behind scripts that fail on request, as a kernel without memory or a tool that is
//! killed makes them fail.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sluicegate_iptables_save::restore::{BackEnd, Tool};
use sluicegate_iptables_save::{self as save};
use sluicegate_service_rules::iptables::tool_family;
use sluicegate_services::Family;

/// The tools of one back end and family, and the way in which they fail at the moment.
pub(crate) struct Wrapped {
    directory: PathBuf,
    pub(crate) tool: Tool,
}

impl Wrapped {
    pub(crate) fn new(name: &str, family: Family) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("sluicegate-tools-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("a mode");
        let stem = match tool_family(family) {
            save::Family::Ipv4 => format!("iptables-{name}"),
            save::Family::Ipv6 => format!("ip6tables-{name}"),
        };
        let program = |suffix: &str| script(&directory, &stem, suffix);
        let (save, restore) = (program("-save"), program("-restore"));
        let tool =
            Tool::open(tool_family(family), save, restore, Some(program(""))).expect("it has a version");
        let back_end = if name == "legacy" { BackEnd::Legacy } else { BackEnd::Nft };
        assert_eq!(tool.back_end(), back_end);
        Self { directory, tool }
    }

    /// Makes every run fail as this piece of shell does, which stands before the run of the program; `$real`
    /// is the program, `$what` is `save`, `restore` or empty. Empty for no failure.
    pub(crate) fn fail(&self, how: &str) {
        fs::write(self.directory.join("new"), how).expect("a file");
        fs::rename(self.directory.join("new"), self.directory.join("fault")).expect("a file");
        // A fault may count its runs.
        let _ = fs::remove_file(self.directory.join("count"));
    }

    /// What both back ends do without memory: the restore tool of the legacy one does not say so.
    pub(crate) fn without_memory(&self) {
        let said = match self.tool.back_end() {
            BackEnd::Legacy => "echo 'iptables-restore: line 4 failed' >&2; exit 1",
            _ => {
                "echo 'iptables-nft-restore v1.8.9 (nf_tables): ' >&2
                echo 'line 3: RULE_APPEND failed (Cannot allocate memory): rule in chain X' >&2; exit 4"
            }
        };
        self.fail(&format!(
            "case $what in restore) cat >/dev/null; {said};; '') echo 'iptables: Memory allocation problem.' \
                >&2; exit 1;; esac"
        ));
    }

    /// A tool that has no match of this name.
    pub(crate) fn without_match(&self, name: &str) {
        self.fail(&format!(
            "if [ -z \"$what\" ]; then case \"$*\" in *'-m {name} '*) lacks=1;; esac; fi
             if [ \"$what\" = restore ]; then cat >\"$dir/input\"; exec <\"$dir/input\"; grep -q -e '-m \
             {name} ' \"$dir/input\" && lacks=1; fi
             if [ -n \"$lacks\" ]; then
                 echo \"iptables-restore v1.8.9: Couldn't load match \\`{name}':No such file or directory\" \
                 >&2; exit 2
             fi"
        ));
    }
}

impl Drop for Wrapped {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn script(directory: &Path, stem: &str, suffix: &str) -> PathBuf {
    let path = directory.join(format!("tool{suffix}"));
    let what = suffix.trim_start_matches('-');
    let text = format!(
        "#!/bin/sh
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
real={stem}{suffix} what={what} dir={dir} lacks=
case \"$1\" in --version) exec $real \"$@\";; esac
if [ -s \"$dir/fault\" ]; then . \"$dir/fault\"; fi
exec $real \"$@\"
",
        dir = directory.display()
    );
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}
