//! The tool `ipvsadm` beside ipvsadm 1.31, in a guest with IPVS: the same arguments, the same output and
//! status.
//!
//! Both get the same commands, each in a network namespace of its own, and are compared after every one.
//! Of messages on standard error those are compared that the tool has for what the kernel refuses.

use std::process::Output;

use testns::Netns;

/// Everything in an order that makes sense; `%` lines go to the standard input of the command above.
const SESSION: &str = "\
-v
--version
-L -n
-A -t 10.0.0.1:80 -s rr
-A -t 10.0.0.1:80 -s rr
-A -t 10.0.0.2:80
--add-service --tcp-service 10.0.0.3:443 --scheduler wrr --persistent 60 --netmask 255.255.0.0
-A -u 10.0.0.1:53 -s wrr -o
-A -u 10.0.0.3:53 -s wrr -o -p
-A --sctp-service 10.0.0.1:99 -s lc -p
-A -t 10.0.0.4:0 -s sh -b sh-fallback,sh-port -p 400
-A -t 10.0.0.6:443 -s mh -b mh-port
-A -t 10.0.0.7:443 -s wlc -b flag-1,flag-3
-A -u 10.0.0.8:5060 -s rr -p 60 --pe sip -o
-A -u 10.0.0.9:5060 -s rr --pe sip
-A -u 10.0.0.10:5060 -s rr -M 255.255.0.0
-A -t [2001:db8::1]:80 -s rr -p 30 -M 64
-A -t [2001:db8::2]:80 -s rr
-A -t 2001:db8::3 -p -s rr
-A -f 1 -s rr
-A -f 2 -6 -s rr -p 360
-a -t 10.0.0.1:80 -r 192.168.1.1:8080 -m -w 5 -x 100 -y 50
-a -t 10.0.0.1:80 -r 192.168.1.2 -m
-a -t 10.0.0.1:80 -r 192.168.1.2 -m
-a -t 10.0.0.1:80 -r 192.168.1.3:90 -g
-a -t 10.0.0.1:80 -r 192.168.1.4:80 -i
-a -t 10.0.0.1:80 -r 192.168.1.5:80 -i --tun-type gue --tun-port 6080
-a -t 10.0.0.1:80 -r 192.168.1.6:80 -i --tun-type=gue --tun-port=6080 --tun-csum
-a -t 10.0.0.1:80 -r 192.168.1.7:80 -i --tun-type gue --tun-port 6080 --tun-remcsum
-a -t 10.0.0.1:80 -r 192.168.1.8:80 -i --tun-type gre --tun-csum
-a -t 10.0.0.1:80 -r [2001:db8::55]:80 -i
-at10.0.0.2:80 -r10.9.9.9:80 -m -w0
-a -t [2001:db8::2]:80 -r [2001:db8:1111:2222:3333:4444:5555:6666]:80 -m -w 2147483647
-a -f 1 -r 192.168.1.5:0 -m
-a -f 1 -r 192.168.1.6
-S -n
-Sn
-L -n
-Ln --nosort
-Ln --stats
-Ln --stats --exact
-Ln --rate
-Ln --stats --rate
-Ln --thresholds
-Ln --persistent-conn
-Ln --tun-info
-Ln --thresholds --persistent-conn
-l -n --sort
-L -n -t 10.0.0.1:80
-L -n -t 10.0.0.1:80 --stats
-L -n -t 10.0.0.1:81
-L -n -f 1
-L --timeout
-L --daemon
-L -c -n
-Lc --persistent-conn
-L
-S
-A -u 10.0.0.98:tftp -s rr
-a -u 10.0.0.98:tftp -r 192.168.1.9:tftp -m
-D -u 10.0.0.98:69
--set 100 0 50
-L --timeout
--set 1 2
--set 1 2 3 4
--set a 2 3
--set 1 2 2678401
-E -t 10.0.0.1:80 -s wrr -p
-E -t 10.0.0.99:80 -s wrr
-e -t 10.0.0.1:80 -r 192.168.1.1:8080 -m -w 0
-e -t 10.0.0.1:80 -r 192.168.1.99:8080 -m -w 0
-d -t 10.0.0.1:80 -r 192.168.1.1:8080
-d -t 10.0.0.1:80 -r 192.168.1.1:8080
-a -t 10.0.0.99:80 -r 192.168.1.1:8080
-D -u 10.0.0.1:53
-D -u 10.0.0.1:53
-Z
-Z -t 10.0.0.1:80
-Z -t 10.0.0.1:82
-S -n
-A -t 10.0.0.20:0 -s rr
-A -t 10.0.0.20 -s rr
-A -t 10.0.0.20:80 -o
-A -t 10.0.0.20:80 -s nosuch
-A -t 10.0.0.20:80 -p0
-A -t 10.0.0.20:80 -p2678401
-A -t [2001:db8::9]:80 -p -M 129
-A -f 0
-A -f 0x10
-A -6 -t 10.0.0.20:80
-A -s rr
-A -t 10.0.0.20:80 -w 5
-A -t 10.0.0.20:80 -A
-A -t 10.0.0.20:80 -t 10.0.0.21:80
-A -t 10.0.0.20:80 extra
-A -t 10.0.0.20:99999
-A -t 10.0.0.20:-1
-A -t 1234
-A -t 10.0.0.20:80 -b sh-port -s rr
-A -t
-A --nosuch
-t 10.0.0.20:80 -A
--nosuch
-a -t 10.0.0.1:80 -r 192.168.1.9:80 -m -w -1
-a -t 10.0.0.1:80 -r [fd00::1]:80 -m
-a -t 10.0.0.1:80 -r 192.168.1.9 -i --tun-type gue
-a -t 10.0.0.1:80 -r 192.168.1.9 -i --tun-type foo
-a -t 10.0.0.1:80 -r 192.168.1.9 -i --tun-port 5
-a -t 10.0.0.1:80 -r 192.168.1.9 -i --tun-type gre --tun-remcsum
-a -t 10.0.0.1:80 -r 192.168.1.9 -i --tun-type gue --tun-port 0
-a -t 10.0.0.1:80 -r 192.168.1.9 -i --tun-type gue --tun-port 5 --tun-csum --tun-remcsum
-a -t 10.0.0.1:80 -r 192.168.1.9 -m --tun-type gue --tun-port 5
-a -t 10.0.0.1:80 -r 192.168.1.9 -m -g
-a -t 10.0.0.1:80
-d -t 10.0.0.1:80 -r 192.168.1.9 -m
-D -t 10.0.0.1:80 -s rr
-S --exact
-C -n
-L -n --timeout --stats
-L -n -t 10.0.0.1:80 --timeout
-L -n --timeout --daemon
--start-daemon foo
--start-daemon master --mcast-interface nosuch
--start-daemon master --mcast-interface lo --syncid 256
--start-daemon master --mcast-interface lo --mcast-group 10.0.0.1
--start-daemon master --mcast-interface lo --mcast-ttl 0
--start-daemon master --mcast-interface lo --mcast-port 0
--start-daemon master --mcast-interface lo --sync-maxlen 70000
--stop-daemon master
--stop-daemon foo
-C
-S -n
-R
% -A -t 10.0.0.1:80 -s rr
%
% ipvsadm -a -t 10.0.0.1:80 -r 1.1.1.1:80 -m
% -a -t 10.0.0.1:80 -r 1.1.1.1:80 -m
% -a -t 10.0.0.1:80 -r 1.1.1.2:80 -m
-S -n
-R
% -a -t 10.0.0.1:80 -r 1.1.1.3:80 -m
% -a -t 10.0.0.1:80 -r 1.1.1.3:80 -m
-S -n
-C
-L -n
--start-daemon master --mcast-interface d0 --syncid 5
--start-daemon master --mcast-interface d0 --syncid 5
--start-daemon backup --mcast-interface d0 --syncid 7 --sync-maxlen 1400 --mcast-group 224.0.0.99 \
--mcast-port 9000 --mcast-ttl 3
-L --daemon
--stop-daemon master
-L --daemon -n
--stop-daemon backup
-L --daemon
";

/// What ipvsadm says of what the kernel refuses.
const REFUSED: [&str; 7] = [
    "Service already exists",
    "No such service",
    "Service not defined",
    "Destination already exists",
    "No such destination",
    "Daemon has already run",
    "No daemon is running",
];

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn ipvs_answers_as_ipvsadm_does() {
    if testns::guest().is_none() {
        return testns::skip("runs in a guest kernel only (umlrun, qemurun)");
    }
    let program = env!("CARGO_BIN_EXE_sluicegate-tools");
    if !testns::have(&["ipvsadm", "ip"]) {
        return;
    }
    let [Some(theirs), Some(ours)] = [Netns::new(), Netns::new()] else { return };
    for namespace in [&theirs, &ours] {
        namespace.run(|| {
            drop(testns::sh(
                "modprobe ip_vs && ip link add d0 type dummy && ip link set d0 up multicast on &&
                 ip addr add 10.9.9.1/24 dev d0 && ip route add 224.0.0.0/4 dev d0",
            ));
        });
    }
    let mut different = Vec::new();
    for (line, input) in session() {
        let run = |program: &[&str]| {
            testns::feed(&[program, &*line.split(' ').collect::<Vec<_>>()].concat(), &input)
        };
        let expected = theirs.run(|| run(&["ipvsadm"]));
        // The kernel's own order depends on the namespace.
        let place = if line.contains("--nosort") { &theirs } else { &ours };
        let actual = place.run(|| run(&[program, "ipvsadm"]));
        let refused = String::from_utf8_lossy(&expected.stderr);
        let says_it = !REFUSED.contains(&refused.trim_end()) || actual.stderr.starts_with(&expected.stderr);
        if (&expected.stdout, expected.status) != (&actual.stdout, actual.status) || !says_it {
            different.push(format!("ipvsadm {line}\n{}ours {line}\n{}", shown(&expected), shown(&actual)));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// The command lines, each with its standard input.
fn session() -> Vec<(&'static str, String)> {
    let mut session: Vec<(&str, String)> = Vec::new();
    for line in SESSION.lines() {
        match (line.strip_prefix('%'), session.last_mut()) {
            (Some(input), Some((_, inputs))) => *inputs += &format!("{}\n", input.trim_start()),
            _ => session.push((line, String::new())),
        }
    }
    session
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}
