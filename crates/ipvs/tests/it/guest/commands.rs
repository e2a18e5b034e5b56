//! Every command and every request for objects, against the kernel.

use std::os::unix::process::CommandExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluicegate_ipvs::netlink::{Error as NetlinkError, NetlinkFamily, Options, Socket, Transport, Wait};
use sluicegate_ipvs::*;

use crate::guest::in_guest;

pub(crate) fn web() -> ServiceId {
    ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80))
}

fn server(last: u8) -> Endpoint {
    Endpoint::new([192, 168, 1, last], 8080)
}

fn new_service(id: ServiceId) -> Command {
    Command::AddService { id, config: ServiceConfig::new(Scheduler::RR) }
}

fn new_destination(service: ServiceId, id: Endpoint) -> Command {
    Command::AddDestination { service, id, config: DestinationConfig::new(Forward::Masquerade) }
}

fn client() -> Client {
    Client::open().expect("the guest has IPVS")
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_service_is_added_changed_read_and_deleted() {
    in_guest(|| {
        let mut client = client();
        assert_eq!(client.services().unwrap(), []);
        client.run(&new_service(web())).unwrap();
        let granularity = Some(Granularity::Netmask([255, 255, 255, 0].into()));
        let config = ServiceConfig::new(Scheduler::SH)
            .scheduler_flags(SchedulerFlags::PORT | SchedulerFlags::FALLBACK)
            .persistence(Persistence { timeout: 77, granularity });
        client.run(&Command::EditService { id: web(), config }).unwrap();
        assert_eq!(client.service(&web()).unwrap().config, config);
        // All options can be removed again.
        let plain = ServiceConfig::new(Scheduler::WRR);
        client.run(&Command::EditService { id: web(), config: plain }).unwrap();
        assert_eq!(client.service(&web()).unwrap().config, plain);
        client.run(&Command::DeleteService { id: web() }).unwrap();
        assert!(client.service(&web()).unwrap_err().is_not_found());
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_destination_is_added_changed_read_and_deleted() {
    in_guest(|| {
        let mut client = client();
        client.run_all(&[new_service(web()), new_destination(web(), server(1))]).unwrap();
        let config = DestinationConfig::new(Forward::Masquerade);
        let config = config.weight(i32::MAX.unsigned_abs()).thresholds(100, 50);
        client.run(&Command::EditDestination { service: web(), id: server(1), config }).unwrap();
        let [destination] = client.destinations(&web()).unwrap().try_into().unwrap();
        assert_eq!((destination.id, destination.config), (server(1), config));
        client.run(&Command::DeleteDestination { service: web(), id: server(1) }).unwrap();
        assert_eq!(client.destinations(&web()).unwrap(), []);
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn errors_have_the_documented_names_and_predicates() {
    in_guest(|| {
        let mut client = client();
        client.run_all(&[new_service(web()), new_destination(web(), server(1))]).unwrap();
        let other = ServiceId::udp(Endpoint::new([10, 0, 0, 2], 53));
        let nosuch = ServiceConfig::new(Scheduler::new("nosuch").unwrap());
        let engine = ServiceConfig::new(Scheduler::RR).engine(Engine::new("nosuch").unwrap());
        let config = DestinationConfig::new(Forward::Masquerade);
        for (command, errno, text) in [
            (new_service(web()), Errno::EEXIST, "the service exists already"),
            (new_destination(web(), server(1)), Errno::EEXIST, "the destination exists already"),
            (
                Command::AddService { id: other, config: nosuch },
                Errno::ENOENT,
                "no such scheduler or persistence engine",
            ),
            (
                Command::AddService { id: other, config: engine },
                Errno::ENOENT,
                "no such scheduler or persistence engine",
            ),
            (Command::EditService { id: other, config: engine }, Errno::ESRCH, "there is no such service"),
            (Command::DeleteService { id: other }, Errno::ESRCH, "there is no such service"),
            (Command::ZeroService { id: other }, Errno::ESRCH, "there is no such service"),
            (new_destination(other, server(1)), Errno::ESRCH, "there is no such service"),
            (
                Command::EditDestination { service: web(), id: server(9), config },
                Errno::ENOENT,
                "no such destination",
            ),
            (
                Command::DeleteDestination { service: web(), id: server(9) },
                Errno::ENOENT,
                "no such destination",
            ),
            (Command::StopDaemon(DaemonRole::MASTER), Errno::ESRCH, "no such daemon runs"),
            (
                Command::StartDaemon(Daemon::new(DaemonRole::MASTER, Interface::new("nosuch0").unwrap())),
                Errno::ENODEV,
                "no such interface",
            ),
        ] {
            let error = client.run(&command).unwrap_err();
            assert_eq!(error.refusals()[0].errno, errno, "{error}");
            assert!(error.to_string().contains(text), "{error}");
            assert_eq!(error.is_already_exists(), errno == Errno::EEXIST);
            assert_eq!(error.is_not_found(), matches!(errno, Errno::ENOENT | Errno::ESRCH));
        }
        assert!(client.destinations(&other).unwrap_err().is_not_found(), "the kernel returns an empty list");
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn many_commands_in_a_datagram_succeed_or_fail_alone() {
    in_guest(|| {
        let mut client = client();
        let ids: Vec<_> =
            (0..1000).map(|port| ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 1000 + port))).collect();
        let mut commands: Vec<_> = ids.iter().map(|id| new_service(*id)).collect();
        commands.insert(500, new_service(ids[3]));
        commands.insert(900, Command::DeleteService { id: web() });
        let error = client.run_all(&commands).unwrap_err();
        let indices: Vec<_> = error
            .refusals()
            .iter()
            .map(|refusal| match &refusal.operation {
                Operation::Command { index, command } => (*index, **command, refusal.errno),
                Operation::Query(what) => panic!("{what}"),
            })
            .collect();
        assert_eq!(
            indices,
            [
                (500, new_service(ids[3]), Errno::EEXIST),
                (900, Command::DeleteService { id: web() }, Errno::ESRCH)
            ]
        );
        assert_eq!(client.services().unwrap().len(), 1000);

        // Each of 1000 refusals is answered, and the client can still be used.
        let again: Vec<_> = ids.iter().map(|id| new_service(*id)).collect();
        let error = client.run_all(&again).unwrap_err();
        assert!(
            matches!(&error, Error::SomeRefused { failed, more: false } if failed.len() == 1000),
            "{error}"
        );
        assert_eq!(client.services().unwrap().len(), 1000);
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn timeouts_are_set_and_zero_leaves_one_as_it_is() {
    in_guest(|| {
        let mut client = client();
        let before = client.timeouts().unwrap();
        client.run(&Command::SetTimeouts(Timeouts { tcp: 100, tcp_fin: 0, udp: 50 })).unwrap();
        assert_eq!(client.timeouts().unwrap(), Timeouts { tcp: 100, tcp_fin: before.tcp_fin, udp: 50 });
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn the_version_is_read() {
    in_guest(|| {
        let info = client().info().unwrap();
        assert_eq!(info.version, (1, 2, 1));
        assert!(info.connection_table_size >= 256, "{info:?}");
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn daemons_start_list_and_stop() {
    in_guest(|| {
        if !testns::have(&["ip"]) {
            return;
        }
        // First, because it loads ip_vs and with it IPv6.
        let mut client = client();
        let _ = testns::sh(
            "ip link add d0 type dummy && ip link set d0 up multicast on && ip addr add 10.9.9.9/24 dev d0 &&
             ip addr add fd00::9/64 dev d0 nodad && ip route add 224.0.0.0/4 dev d0",
        );
        assert_eq!(client.daemons().unwrap(), []);
        let device = Interface::new("d0").unwrap();
        let mut master = Daemon::new(DaemonRole::MASTER, device);
        master.sync_id = 5;
        let mut backup = Daemon::new(DaemonRole::BACKUP, device);
        backup.sync_id = 255;
        backup.max_length = Some(1400);
        backup.group = Some("ff02::99".parse().unwrap());
        backup.port = Some(9000);
        backup.ttl = Some(3);
        client.run_all(&[Command::StartDaemon(master), Command::StartDaemon(backup)]).unwrap();
        let mut daemons = client.daemons().unwrap();
        daemons.sort_by_key(|daemon| daemon.role);
        let mut filled = master;
        filled.max_length = Some(1472);
        filled.group = Some([224, 0, 0, 81].into());
        filled.port = Some(8848);
        filled.ttl = Some(1);
        assert_eq!(daemons, [filled, backup]);
        assert!(client.run(&Command::StartDaemon(master)).unwrap_err().is_already_exists());

        client.run(&Command::StopDaemon(DaemonRole::MASTER)).unwrap();
        assert_eq!(client.daemons().unwrap(), [backup]);
        client.run(&Command::StopDaemon(DaemonRole::BACKUP)).unwrap();
        assert_eq!(client.daemons().unwrap(), []);
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_flush_deletes_everything_of_this_namespace_only() {
    in_guest(|| {
        let mut outer = client();
        outer.run(&new_service(web())).unwrap();
        testns::netns(|| {
            let mut inner = client();
            inner.run(&new_service(web())).unwrap();
            inner.run(&Command::Flush).unwrap();
            assert_eq!(inner.services().unwrap(), []);
        });
        assert_eq!(outer.services().unwrap().len(), 1);
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_large_listing_is_complete() {
    in_guest(|| {
        let mut client = client();
        let mut commands = vec![new_service(web())];
        commands
            .extend((0..2000).map(|port| new_destination(web(), Endpoint::new([192, 168, 1, 1], 1 + port))));
        client.run_all(&commands).unwrap();
        assert_eq!(client.destinations(&web()).unwrap().len(), 2000);
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn sync_sends_only_differences_and_keeps_services_of_others() {
    in_guest(|| {
        let mut client = client();
        let others = ServiceId::udp(Endpoint::new([10, 9, 9, 9], 53));
        client.run(&new_service(others)).unwrap();
        let ours = |id: &ServiceId| *id != others;

        let mut desired = Table::new();
        for port in [80, 443] {
            let id = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], port));
            let entry = desired.service(id, ServiceConfig::new(Scheduler::RR).persistent(60));
            entry.destination(server(1), DestinationConfig::new(Forward::Masquerade));
            entry.destination(server(2), DestinationConfig::new(Forward::Masquerade));
        }
        assert_eq!(client.sync(&desired, ours).unwrap().len(), 6);
        assert_eq!(client.sync(&desired, ours).unwrap(), []);

        let entry = desired.service(web(), ServiceConfig::new(Scheduler::RR).persistent(60));
        entry.destinations.remove(&server(1));
        entry.destination(server(3), DestinationConfig::new(Forward::Masquerade).weight(7));
        let id = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 443));
        desired.remove(&id);
        let shown: Vec<_> = client.sync(&desired, ours).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "-a -t 10.0.0.1:80 -r 192.168.1.3:8080 -m -w 7",
                "-d -t 10.0.0.1:80 -r 192.168.1.1:8080",
                "-D -t 10.0.0.1:443",
            ]
        );
        let actual: Table = client.list(ours).unwrap().into_iter().collect();
        assert_eq!(actual, desired);
        assert_eq!(client.services().unwrap().len(), 2);
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn without_the_capability_the_error_is_permission_denied() {
    in_guest(|| {
        // Runs the test program again as nobody: it prints the client's error.
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "guest::commands::ask_as_nobody", "--ignored", "--nocapture"])
            .env("IPVS_TEST_NOBODY", "1")
            .gid(65534)
            .uid(65534)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.contains("permission denied: true"), "{output}");
        assert!(output.contains("CAP_NET_ADMIN"), "{output}");
    });
}

/// Runs as nobody in a child process of the test above.
#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn ask_as_nobody() {
    if std::env::var_os("IPVS_TEST_NOBODY").is_some() {
        let error = Client::open().unwrap().services().unwrap_err();
        println!("permission denied: {}: {error}", error.is_permission_denied());
    }
}

/// A socket of which one answer cannot be read, after so many others.
struct Deaf {
    socket: Socket,
    after: Arc<Mutex<Option<u32>>>,
}

impl Transport for Deaf {
    fn send(&mut self, datagram: &[u8]) -> Result<(), NetlinkError> {
        self.socket.send(datagram)
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, NetlinkError> {
        let mut after = self.after.lock().unwrap();
        let (now, then) = match *after {
            Some(0) => (true, None),
            Some(more) => (false, Some(more - 1)),
            None => (false, None),
        };
        *after = then;
        if now {
            return Err(NetlinkError::TimedOut(Duration::ZERO));
        }
        self.socket.receive(buffer, wait)
    }

    fn send_limit(&mut self, size: usize) -> usize {
        self.socket.send_limit(size)
    }

    fn port(&self) -> Option<u32> {
        self.socket.port()
    }
}

// The kernel refuses a dump on a socket with EBUSY while another is not read to its end.
#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_listing_that_failed_does_not_prevent_the_next() {
    in_guest(|| {
        client().run_all(&[new_service(web()), new_destination(web(), server(1))]).unwrap();
        let socket = Socket::open(NetlinkFamily::GENERIC, &Options::default()).unwrap();
        let after = Arc::default();
        let mut client = Client::with_transport(Deaf { socket, after: Arc::clone(&after) }).unwrap();
        for unread in 0..4 {
            *after.lock().unwrap() = Some(unread);
            assert!(client.list(|_| true).is_err(), "answer {unread} is not read");
            assert_eq!(client.list(|_| true).unwrap().len(), 1, "answer {unread} was not read");
        }
    });
}
