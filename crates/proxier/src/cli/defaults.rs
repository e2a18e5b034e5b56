//! `--write-config-to`: the defaults as a configuration file.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use sluicegate_proxier::Mode;
use sluicegate_proxier::config::format_duration;
use sluicegate_proxier::run::Intervals;
use sluicegate_proxier::sysctl::Conntrack;

use super::Error;

/// Writes the configuration that applies without flags and without a file. What was there stays where that
/// fails: half a file would be read as a configuration.
pub(super) fn write(path: &Path) -> Result<(), Error> {
    let failed = |source: io::Error| Error::flag(format!("--write-config-to {}", path.display()), source);
    // What is not a file, as /dev/stdout, cannot be replaced.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(path, text()).map_err(failed);
    }
    // A link stays a link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let mut file = File::create_new(&beside).map_err(failed)?;
    let mut fill = || {
        if let Ok(former) = path.metadata() {
            file.set_permissions(former.permissions())?;
        }
        file.write_all(text().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    fill().map_err(|error| {
        // The disk that has no room for it is no better off with half of it.
        let _ = std::fs::remove_file(&beside);
        failed(error)
    })
}

fn text() -> String {
    let [nftables, iptables, ipvs] =
        [Mode::Nftables, Mode::Iptables, Mode::Ipvs].map(|mode| periods(Intervals::of(mode)));
    let usual = Conntrack::KUBE_PROXY;
    let [established, close_wait] =
        [usual.tcp_established, usual.tcp_close_wait].map(|time| format_duration(time.unwrap_or_default()));
    let rules = "  masqueradeAll: false\n  masqueradeBit: 14\n";
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nbindAddress: 0.0.0.0\nbindAddressHardFail: false\n\
         clientConnection:\n  acceptContentTypes: \"\"\n  burst: 0\n  contentType: \"\"\n  kubeconfig: \"\"\n  \
         qps: 0\nclusterCIDR: \"\"\nconfigSyncPeriod: 0s\nconntrack:\n  maxPerCore: {}\n  min: {}\n  \
         tcpBeLiberal: false\n  tcpCloseWaitTimeout: {close_wait}\n  tcpEstablishedTimeout: {established}\n  \
         udpStreamTimeout: 0s\n  udpTimeout: 0s\ndetectLocal:\n  bridgeInterface: \"\"\n  \
         interfaceNamePrefix: \"\"\ndetectLocalMode: \"\"\nenableProfiling: false\nhealthzBindAddress: \
         0.0.0.0:10256\nhostnameOverride: \"\"\niptables:\n  localhostNodePorts: true\n{rules}{iptables}ipvs:\n  \
         excludeCIDRs: null\n{ipvs}  scheduler: rr\n  strictARP: false\n  tcpFinTimeout: 0s\n  tcpTimeout: 0s\n  udpTimeout: 0s\nkind: KubeProxyConfiguration\nlogging:\n  \
         format: text\n  verbosity: 0\nmetricsBindAddress: 127.0.0.1:10249\nmode: {}\nnftables:\n\
         {rules}{nftables}nodePortAddresses: null\noomScoreAdj: {OOM_SCORE}\nportRange: \"\"\n\
         showHiddenMetricsForVersion: \"\"\n",
        usual.max_per_core.unwrap_or_default(),
        usual.min.unwrap_or_default(),
        Mode::default(),
    )
}

fn periods(Intervals { min, sync, .. }: Intervals) -> String {
    format!("  minSyncPeriod: {}\n  syncPeriod: {}\n", format_duration(min), format_duration(sync))
}

/// kube-proxy's score: it is killed after almost everything else.
pub(super) const OOM_SCORE: i32 = -999;

#[cfg(test)]
mod tests {
    use sluicegate_proxier::config::Config;

    use super::*;

    #[test]
    fn the_defaults_are_a_configuration_without_a_remark() {
        let config = Config::parse(Path::new("defaults"), &text()).unwrap();
        assert_eq!(config.unused, []);
        assert_eq!((config.mode, config.oom_score_adj), (Some(Mode::Nftables), Some(OOM_SCORE)));
        let Conntrack { max_per_core, min, tcp_established, tcp_close_wait, .. } = config.conntrack;
        let usual = Conntrack::KUBE_PROXY;
        assert_eq!((max_per_core, min), (usual.max_per_core, usual.min));
        assert_eq!((tcp_established, tcp_close_wait), (usual.tcp_established, usual.tcp_close_wait));
        for (mode, rules) in
            [(Mode::Nftables, config.nftables), (Mode::Iptables, config.iptables), (Mode::Ipvs, config.ipvs)]
        {
            let Intervals { min, sync, .. } = Intervals::of(mode);
            assert_eq!((rules.min_sync_period, rules.sync_period), (Some(min), Some(sync)), "{mode}");
        }
    }
}
