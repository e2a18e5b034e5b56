//! What the examples print.

use testns::run_example;

#[test]
fn chain_names_prints_the_names_of_both_modes() {
    assert_eq!(
        run_example("chain-names", &[]),
        "iptables: KUBE-SVC-IXHL676EY46F5RLS, KUBE-SEP-VNXTORXD4ZU3FI6U\n\
         nftables: service-34HOXUJH-demo/dns/udp/dns, endpoint-PAAF6AAY-demo/dns/udp/dns__10.244.0.20/53\n"
    );
}
