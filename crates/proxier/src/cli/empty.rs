//! Flags of kube-proxy that an empty value leaves as they are by default: what templates write where nothing is
//! set (`--cluster-cidr=$(POD_CIDR)`).

use std::ffi::OsString;

/// Returns the words of a command line without these flags where their value is empty.
pub(super) fn left_out(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut words) = (Vec::new(), words.into_iter().peekable());
    while let Some(word) = words.next() {
        let is_flag = |name: &str| FLAGS.contains(&name);
        match word.to_str().and_then(|word| word.strip_prefix("--")) {
            Some(flag) if flag.strip_suffix('=').is_some_and(is_flag) => {}
            Some(flag) if is_flag(flag) && words.next_if(|value| value.is_empty()).is_some() => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// The flags whose default is empty in kube-proxy. Not `--healthz-bind-address` and `--metrics-bind-address`, whose
/// server an empty value turns off.
const FLAGS: [&str; 17] = [
    "bind-address",
    "cluster-cidr",
    "config",
    "detect-local-mode",
    "feature-gates",
    "hostname-override",
    "ipvs-exclude-cidrs",
    "ipvs-scheduler",
    "kubeconfig",
    "master",
    "nodeport-addresses",
    "pod-bridge-interface",
    "pod-interface-name-prefix",
    "proxy-mode",
    "show-hidden-metrics-for-version",
    "vmodule",
    "write-config-to",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_value_is_left_out() {
        let left = |text: &str| {
            // `''` is an empty word.
            let words = text.split(' ').map(|word| OsString::from(word.replace("''", "")));
            let kept: Vec<_> =
                left_out(words).iter().map(|word| word.to_string_lossy().into_owned()).collect();
            kept.join(" ")
        };
        assert_eq!(left("p run --config= --cluster-cidr '' --v 2"), "p run --v 2");
        for kept in [
            "p run --config x --cluster-cidr=10.0.0.0/8",
            "p run --metrics-bind-address=",
            "p run --config",
            "p run --cluster-cidr --v",
            "p explain --from=",
        ] {
            assert_eq!(left(kept), kept);
        }
    }
}
