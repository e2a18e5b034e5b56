//! The errors that a process without capabilities gets.

use std::process::Command;

use sluicegate_conntrack::{Client, Filter};

#[test]
fn without_the_right_to_it_the_error_says_so() {
    if !testns::have(&["unshare", "setpriv"]) {
        return;
    }
    if std::env::var_os("SLUICEGATE_UNPRIVILEGED_PROBE").is_some() {
        let error = Client::open().and_then(|mut client| client.list(&Filter::default())).unwrap_err();
        assert!(error.is_permission_denied(), "{error}");
        assert!(error.to_string().ends_with("this needs CAP_NET_ADMIN in the network namespace"), "{error}");
        return;
    }
    testns::netns(|| {
        // This very test again, in the namespace, without capabilities.
        let output = Command::new("setpriv")
            .args(["--inh-caps=-all", "--bounding-set=-all", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "rights::without_the_right_to_it_the_error_says_so"])
            .env("SLUICEGATE_UNPRIVILEGED_PROBE", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    });
}
