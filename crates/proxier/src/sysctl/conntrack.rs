//! The sysctls of connection tracking that kube-proxy sets: the most connections, and timeouts.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::Sysctls;

/// Limits and timeouts of connection tracking, as kube-proxy's `--conntrack-*`. `None` and zero leave a
/// sysctl as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conntrack {
    /// The most connections for each core, at most 1,048,576 in all.
    pub max_per_core: Option<u32>,
    /// The most connections, however few cores there are. Without [`max_per_core`](Self::max_per_core) its
    /// default counts.
    pub min: Option<u32>,
    /// The timeout of established TCP connections that are idle.
    pub tcp_established: Option<Duration>,
    /// The timeout of TCP connections in `CLOSE_WAIT`.
    pub tcp_close_wait: Option<Duration>,
    /// Whether to accept TCP packets outside of windows. False leaves the sysctl as it is.
    pub tcp_be_liberal: Option<bool>,
    /// The timeout of UDP flows without an answer.
    pub udp: Option<Duration>,
    /// The timeout of UDP flows in both directions.
    pub udp_stream: Option<Duration>,
}

impl Conntrack {
    /// The values that kube-proxy sets without flags.
    pub const KUBE_PROXY: Self = Self {
        max_per_core: Some(32_768),
        min: Some(131_072),
        tcp_established: Some(Duration::from_secs(86_400)),
        tcp_close_wait: Some(Duration::from_secs(3_600)),
        tcp_be_liberal: None,
        udp: None,
        udp_stream: None,
    };

    /// Returns these values, and those of `other` where there are none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            max_per_core: self.max_per_core.or(other.max_per_core),
            min: self.min.or(other.min),
            tcp_established: self.tcp_established.or(other.tcp_established),
            tcp_close_wait: self.tcp_close_wait.or(other.tcp_close_wait),
            tcp_be_liberal: self.tcp_be_liberal.or(other.tcp_be_liberal),
            udp: self.udp.or(other.udp),
            udp_stream: self.udp_stream.or(other.udp_stream),
        }
    }

    /// Returns the most connections on a machine with so many cores. `None` to leave the limit as it is.
    ///
    /// ```
    /// use sluicegate_proxier::sysctl::Conntrack;
    ///
    /// assert_eq!(Conntrack::KUBE_PROXY.most(2), Some(131_072));
    /// assert_eq!(Conntrack::KUBE_PROXY.most(8), Some(262_144));
    /// assert_eq!(Conntrack { max_per_core: Some(0), ..Conntrack::KUBE_PROXY }.most(8), None);
    /// ```
    #[must_use]
    pub fn most(&self, cores: u32) -> Option<u32> {
        let usual = Self::KUBE_PROXY;
        self.max_per_core.or(self.min)?;
        let per_core = self.max_per_core.or(usual.max_per_core).filter(|per_core| *per_core > 0)?;
        let most = per_core.saturating_mul(cores).max(self.min.or(usual.min).unwrap_or_default());
        Some(most.min(MOST))
    }

    /// Returns each sysctl below `net/netfilter` with its value.
    fn values(&self, cores: u32) -> impl Iterator<Item = (&'static str, u64)> {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs()).filter(|seconds| *seconds > 0);
        let values = [
            ("nf_conntrack_max", self.most(cores).map(u64::from)),
            ("nf_conntrack_tcp_timeout_established", seconds(self.tcp_established)),
            ("nf_conntrack_tcp_timeout_close_wait", seconds(self.tcp_close_wait)),
            (
                "nf_conntrack_tcp_be_liberal",
                self.tcp_be_liberal.filter(|be_liberal| *be_liberal).map(u64::from),
            ),
            ("nf_conntrack_udp_timeout", seconds(self.udp)),
            ("nf_conntrack_udp_timeout_stream", seconds(self.udp_stream)),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

impl Sysctls {
    /// Sets the sysctls of connection tracking that differ, on a machine with so many cores. Returns each
    /// that was set, and why one could not be.
    ///
    /// The limit belongs to the machine, so it can be set only from the first network namespace.
    #[must_use]
    pub fn set_conntrack(&self, conntrack: &Conntrack, cores: u32) -> Vec<Result<Changed, SetError>> {
        let mut lines: Vec<_> = conntrack
            .values(cores)
            .filter_map(|(name, value)| self.set_to(name, value).transpose())
            .collect();
        let was_raised = |set: &Result<Changed, SetError>| {
            set.as_ref().is_ok_and(|set| set.name == "net.netfilter.nf_conntrack_max")
        };
        if let Some(most) = conntrack.most(cores)
            && lines.iter().any(was_raised)
        {
            // A quarter, as kube-proxy: the kernel does not make more buckets with the limit.
            lines.extend(raise(Path::new(HASH_SIZE), u64::from(most / 4)).transpose());
        }
        lines
    }

    fn set_to(&self, name: &str, value: u64) -> Result<Option<Changed>, SetError> {
        let path = self.0.join("net/netfilter").join(name);
        let name = format!("net.netfilter.{name}");
        let failed = |source| SetError { name: name.clone(), value, source };
        let found = fs::read_to_string(&path).map_err(failed)?;
        if found.trim() == value.to_string() {
            return Ok(None);
        }
        fs::write(&path, value.to_string()).map_err(failed)?;
        Ok(Some(Changed { name, before: found.trim().to_owned(), value }))
    }
}

/// Writes a number to a file that has a smaller one.
fn raise(path: &Path, value: u64) -> Result<Option<Changed>, SetError> {
    let name = path.display().to_string();
    let failed = |source| SetError { name: name.clone(), value, source };
    let found = fs::read_to_string(path).map_err(failed)?;
    if found.trim().parse::<u64>().is_ok_and(|found| found >= value) {
        return Ok(None);
    }
    fs::write(path, value.to_string()).map_err(failed)?;
    Ok(Some(Changed { name, before: found.trim().to_owned(), value }))
}

/// A sysctl, or a parameter of a module, that was set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// The name, or the path of a parameter.
    pub name: String,
    /// What it was.
    pub before: String,
    /// What it is now.
    pub value: u64,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was {} and is {} now", self.name, self.before, self.value)
    }
}

/// A sysctl, or a parameter of a module, that cannot be set.
#[derive(Debug, thiserror::Error)]
#[error("{name} cannot be set to {value}: {source}")]
#[non_exhaustive]
pub struct SetError {
    /// The name, or the path of a parameter.
    pub name: String,
    /// What it should be.
    pub value: u64,
    /// What the system said.
    pub source: io::Error,
}

/// The most that kube-proxy sets, whatever the number of cores.
const MOST: u32 = 1_048_576;
/// The number of buckets, a parameter of the module.
const HASH_SIZE: &str = "/sys/module/nf_conntrack/parameters/hashsize";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_set_and_zero_leaves_it() {
        let directory = std::env::temp_dir().join(format!("sluicegate-conntrack-{}", std::process::id()));
        let below = directory.join("net/netfilter");
        fs::create_dir_all(&below).unwrap();
        for (name, value) in [
            ("nf_conntrack_tcp_timeout_established", "432000\n"),
            ("nf_conntrack_tcp_timeout_close_wait", "3600\n"),
            ("nf_conntrack_udp_timeout", "30\n"),
        ] {
            fs::write(below.join(name), value).unwrap();
        }
        let given = Conntrack {
            max_per_core: Some(0),
            udp: Some(Duration::ZERO),
            udp_stream: Some(Duration::from_secs(9)),
            ..Conntrack::default()
        };
        let lines = Sysctls::below(&directory).set_conntrack(&given.or(Conntrack::KUBE_PROXY), 4);
        let set = "net.netfilter.nf_conntrack_tcp_timeout_established was 432000 and is 86400 now";
        assert!(lines[0].as_ref().is_ok_and(|line| line.to_string() == set), "{lines:?}");
        assert!(
            lines[1]
                .as_ref()
                .is_err_and(|line| line.to_string().contains("udp_timeout_stream cannot be set to 9"))
        );
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(fs::read_to_string(below.join("nf_conntrack_udp_timeout")).unwrap(), "30\n");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_number_of_buckets_is_only_raised() {
        let path = std::env::temp_dir().join(format!("sluicegate-hashsize-{}", std::process::id()));
        fs::write(&path, "1000\n").unwrap();
        assert!(raise(&path, 900).unwrap().is_none());
        assert!(
            raise(&path, 2000)
                .unwrap()
                .is_some_and(|line| line.to_string().ends_with("was 1000 and is 2000 now"))
        );
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_most_is_bounded_on_a_large_machine() {
        assert_eq!(Conntrack::KUBE_PROXY.most(1_000), Some(MOST));
        assert_eq!(Conntrack { min: Some(5), ..Conntrack::default() }.most(1), Some(32_768));
        assert_eq!(Conntrack::default().most(64), None);
    }
}
