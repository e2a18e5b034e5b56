//! Every type against the real ipset, in a kernel that has them all (user-mode Linux 6.1).

use sluicegate_ipset::{Client, SetType};
use testns::Netns;

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn every_type_and_family_behaves_as_with_ipset() {
    let Some(_) = testns::guest() else { return testns::skip("not in a guest") };
    if !testns::have(&["ipset"]) {
        return;
    }
    for kind in SetType::ALL {
        for family in kind.families() {
            let Some(namespace) = Netns::new() else { return };
            namespace.run(|| crate::every_type::same_as_ipset(kind, *family, 60));
        }
    }
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn an_option_that_needs_a_newer_kernel_is_named() {
    let Some(_) = testns::guest() else { return testns::skip("not in a guest") };
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        let mut client = Client::open().unwrap();
        // Linux 6.1 has revision 5 of hash:ip; revision 6 introduced the bitmask.
        let lines = sluicegate_ipset::text::parse(
            "create a hash:ip bitmask 255.0.0.0",
            &sluicegate_ipset::Numeric,
            |_| None,
        );
        let error = client.apply(&lines.unwrap()[0].command, sluicegate_ipset::Exist::Fail).unwrap_err();
        assert_eq!(
            error.to_string(),
            "option netmask or bitmask of set type hash:ip needs revision 6 in the kernel, which has 5"
        );
        assert!(error.is_unsupported());
    });
}
