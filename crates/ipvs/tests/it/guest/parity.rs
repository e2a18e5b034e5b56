//! Parity with ipvsadm: each lists in the same bytes what the other has written.

use sluicegate_ipvs::*;

use crate::guest::in_guest;

/// One service of each kind and one destination of each kind, as ipvsadm prints them and in its order.
const ALL: &str = "\
-A -t 10.0.0.1:80 -s rr
-a -t 10.0.0.1:80 -r 192.168.1.1:8080 -m -w 5
-a -t 10.0.0.1:80 -r 192.168.1.2:8080 -m -w 0
-a -t 10.0.0.1:80 -r 192.168.1.3:80 -g -w 2147483647
-a -t 10.0.0.1:80 -r 192.168.1.4:80 -i -w 1 --tun-type ipip
-a -t 10.0.0.1:80 -r 192.168.1.5:80 -i -w 1 --tun-type gue --tun-port 6080 --tun-nocsum
-a -t 10.0.0.1:80 -r 192.168.1.6:80 -i -w 1 --tun-type gue --tun-port 6080 --tun-csum
-a -t 10.0.0.1:80 -r 192.168.1.7:80 -i -w 1 --tun-type gue --tun-port 65535 --tun-remcsum
-a -t 10.0.0.1:80 -r 192.168.1.8:80 -i -w 1 --tun-type gre --tun-csum
-a -t 10.0.0.1:80 -r 192.168.1.9:80 -i -w 1 --tun-type gre --tun-nocsum
-a -t 10.0.0.1:80 -r [2001:db8::55]:80 -i -w 1 --tun-type ipip
-A -t 10.0.0.2:80 -s wlc
-A -t 10.0.0.3:0 -s sh -p 400 -M 255.255.255.0 -b sh-fallback,sh-port
-A -t 10.0.0.4:443 -s sh -b sh-port
-A -t 10.0.0.5:443 -s mh -b mh-fallback,mh-port
-A -t 10.0.0.6:443 -s wlc -b flag-1,flag-3
-A -t 10.0.0.7:443 -s lblcr -p 2678400
-A -u 10.0.0.1:53 -s wrr -o
-A -u 10.0.0.3:53 -s wrr -p 100 -o
-A -u 10.0.0.8:5060 -s rr -p 60 --pe sip -o
-A --sctp-service 10.0.0.1:99 -s lc -p 360
-a --sctp-service 10.0.0.1:99 -r 192.168.1.1:99 -m -w 1
-A -t [2001:db8::1]:80 -s rr -p 30 -M 64
-a -t [2001:db8::1]:80 -r [2001:db8::a0a0]:80 -m -w 3
-A -t [2001:db8::2]:80 -s rr
-a -t [2001:db8::2]:80 -r 192.168.1.99:80 -i -w 3 --tun-type ipip
-a -t [2001:db8::2]:80 -r [2001:db8:1111:2222:3333:4444:5555:6666]:80 -g -w 3
-A -u [2001:db8::2]:53 -s sed
-A -f 1 -s rr
-a -f 1 -r 192.168.1.5:0 -m -w 1
-a -f 1 -r 192.168.1.6:0 -g -w 1
-A -f 2 -6 -s rr -p 360
-A -f 2147483647 -s nq -p 360
";

/// Addresses that ipvsadm does not sort numerically.
const SCATTERED: &str = "\
-A -t 172.30.10.1:80 -s rr
-a -t 172.30.10.1:80 -r 10.244.0.10:8080 -m -w 1
-a -t 172.30.10.1:80 -r 192.168.0.2:8080 -m -w 1
-a -t 172.30.10.1:80 -r 5.6.7.8:8080 -m -w 1
-a -t 172.30.10.1:80 -r 130.0.0.1:8080 -m -w 1
-a -t 172.30.10.1:80 -r 60.0.0.1:8080 -m -w 1
-A -t 192.168.99.11:8080 -s rr
-A -t 5.6.7.8:443 -s rr
-A -t 10.0.0.1:443 -s rr
-A -t 130.0.0.1:443 -s rr
-A -t 66.6.7.8:443 -s rr
-A -t 223.6.7.8:443 -s rr
-A -t [8000::1]:443 -s rr
-A -t [2001:db8::1]:443 -s rr
-A -t [f000::1]:443 -s rr
-A -t [2001:db8:8000::1]:443 -s rr
";

fn have_ipvsadm() -> bool {
    testns::have(&["ipvsadm"])
}

fn save() -> String {
    let mut listings = Client::open().unwrap().list(|_| true).unwrap();
    text::sort_services(&mut listings, |listing| listing.service.id);
    let mut saved = String::new();
    for Listing { service, destinations, .. } in &mut listings {
        text::sort_destinations(destinations);
        text::write_saved(&mut saved, service, destinations).unwrap();
    }
    saved
}

fn ipvsadm_restore(text: &str) {
    let output = testns::feed(&["ipvsadm", "-R"], text);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn services_of_ipvsadm_are_listed_as_it_lists_them() {
    in_guest(|| {
        if have_ipvsadm() {
            ipvsadm_restore(ALL);
            assert_eq!(save(), ALL);
            assert_eq!(save(), testns::sh("ipvsadm -S -n"));
        }
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn ipvsadm_lists_our_services_as_we_do() {
    in_guest(|| {
        if have_ipvsadm() {
            Client::open().unwrap().run_all(&text::parse(ALL).unwrap()).unwrap();
            assert_eq!(testns::sh("ipvsadm -S -n"), ALL);
        }
    });
}

/// ipvsadm saves the third flag of `sh` as nothing, and then cannot read its own line.
#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn the_third_flag_of_sh_survives_a_save() {
    in_guest(|| {
        if !have_ipvsadm() {
            return;
        }
        let line = "-A -t 10.0.0.1:80 -s sh -b flag-3\n";
        ipvsadm_restore(line);
        assert_eq!(save(), line);
        let theirs = testns::sh("ipvsadm -S -n");
        assert_eq!(theirs, "-A -t 10.0.0.1:80 -s sh -b \n");
        assert!(!testns::feed(&["ipvsadm", "-R"], &theirs).stderr.is_empty(), "it reads what it saves");
        let _ = testns::sh("ipvsadm -C");
        Client::open().unwrap().run_all(&text::parse(&theirs).unwrap()).unwrap();
        assert_eq!(save(), line);
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn our_order_is_that_of_ipvsadm() {
    in_guest(|| {
        if have_ipvsadm() {
            Client::open().unwrap().run_all(&text::parse(SCATTERED).unwrap()).unwrap();
            assert_eq!(save(), testns::sh("ipvsadm -S -n"));
        }
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn thresholds_are_equal_although_ipvsadm_does_not_save_them() {
    in_guest(|| {
        if !have_ipvsadm() {
            return;
        }
        let text = "-A -t 10.0.0.1:80 -s rr\n-a -t 10.0.0.1:80 -r 192.168.1.1:8080 -m -w 5 -x 100 -y 50\n";
        ipvsadm_restore(text);
        let actual: Table = Client::open().unwrap().list(|_| true).unwrap().into_iter().collect();
        let commands: Vec<_> =
            diff(&actual, &Table::new()).iter().map(|command| format!("{command}\n")).collect();
        assert_eq!(commands.concat(), text);
        assert_eq!(save(), testns::sh("ipvsadm -S -n"));
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn ipvsadm_and_our_client_make_the_same_changes() {
    in_guest(|| {
        if !have_ipvsadm() {
            return;
        }
        let changes = "-E -t 10.0.0.1:80 -s wrr -p 60\n-e -t 10.0.0.1:80 -r 192.168.1.1:8080 -m -w 0\n\
                       -d -t 10.0.0.1:80 -r 192.168.1.2:8080\n-D -u 10.0.0.1:53\n\
                       -E -t 10.0.0.3:0 -s rr -p 1\n";
        ipvsadm_restore(ALL);
        ipvsadm_restore(changes);
        let theirs = testns::sh("ipvsadm -S -n");
        let mut client = Client::open().unwrap();
        client.run(&Command::Flush).unwrap();
        client.run_all(&text::parse(ALL).unwrap()).unwrap();
        client.run_all(&text::parse(changes).unwrap()).unwrap();
        assert_eq!(testns::sh("ipvsadm -S -n"), theirs);
        assert_eq!(save(), theirs);
    });
}

/// What the kernel takes although it is wrong, as ipvsadm can do some of it: listed, but never sent by us.
#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn what_we_would_not_write_we_can_still_list() {
    in_guest(|| {
        if !have_ipvsadm() {
            return;
        }
        let odd = "-A -t 10.0.0.1:80 -s rr -p 300 -M 255.0.255.0\n";
        ipvsadm_restore(odd);
        assert_eq!(save(), odd);
        let error = text::parse(odd).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1, column 1: `-A`: expected a netmask of ones followed by zeros, found 255.0.255.0"
        );
    });
}
