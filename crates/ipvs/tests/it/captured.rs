//! Replays captured answers of two kernels (see the heads of `testdata/replies-*.hex`) to the client.
//!
//! The two differ only in the padding for alignment, which depends on the architecture.
#![forbid(unsafe_code)]

use sluicegate_ipvs::netlink::scripted::{self, Script};
use sluicegate_ipvs::*;

const KERNELS: [&str; 2] =
    [include_str!("../../testdata/replies-6.1.hex"), include_str!("../../testdata/replies-6.12.hex")];

/// Returns the bytes of a block.
fn block(text: &str, name: &str) -> Vec<u8> {
    let lines = text.lines().skip_while(|line| line.strip_prefix("> ") != Some(name)).skip(1);
    let bytes: Vec<_> = lines
        .take_while(|line| !line.starts_with('>'))
        .flat_map(str::split_whitespace)
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    assert!(!bytes.is_empty(), "no block {name}");
    bytes
}

/// Returns, for each kernel, a client whose next requests get these answers.
fn clients(names: &[&str]) -> [Client<Script>; 2] {
    KERNELS.map(|text| {
        let mut script = Script::new();
        script.expect_any().reply_to_last(block(text, "family")).reply(scripted::ack(1));
        for name in names {
            script.expect_any().reply_to_last(block(text, name));
        }
        Client::with_transport(script).unwrap()
    })
}

fn https() -> ServiceId {
    ServiceId::tcp(Endpoint::new([10, 0, 0, 4], 443))
}

#[test]
fn services_of_every_kind_are_decoded() {
    for mut client in clients(&["services"]) {
        let mut services: Vec<_> =
            client.services().unwrap().into_iter().map(|service| (service.id, service.config)).collect();
        services.sort_by_key(|(id, _)| *id);
        let sip = ServiceId::udp(Endpoint::new([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 5060));
        let persistence = |timeout, granularity| Persistence { timeout, granularity: Some(granularity) };
        assert_eq!(
            services,
            [
                (
                    https(),
                    ServiceConfig::new(Scheduler::SH)
                        .scheduler_flags(SchedulerFlags::PORT)
                        .persistence(persistence(400, Granularity::Netmask([255, 255, 255, 0].into())))
                ),
                (
                    sip,
                    ServiceConfig::new(Scheduler::RR)
                        .persistence(persistence(60, Granularity::Prefix(64)))
                        .engine(Engine::SIP)
                        .one_packet()
                ),
                (ServiceId::mark(7, Family::Ipv4).unwrap(), ServiceConfig::new(Scheduler::WLC)),
            ]
        );
    }
}

#[test]
fn a_destination_is_decoded_with_its_tunnel() {
    for mut client in clients(&["destinations of -t 10.0.0.4:443"]) {
        let gue = Tunnel::Gue { port: 6080, flags: TunnelFlags::CHECKSUM };
        let config = DestinationConfig::new(Forward::Tunnel(gue)).weight(5).thresholds(100, 50);
        let expected = Destination::new(Endpoint::new([192, 168, 1, 5], 443), config);
        assert_eq!(client.destinations(&https()).unwrap(), [expected]);
    }
}

#[test]
fn an_empty_dump_of_a_present_service_is_empty() {
    // After an empty list the client asks whether the service exists.
    for mut client in clients(&["destinations of -f 7", "services"]) {
        assert_eq!(client.destinations(&ServiceId::mark(7, Family::Ipv4).unwrap()).unwrap(), []);
    }
}

#[test]
fn timeouts_daemons_and_version_are_decoded() {
    for mut client in clients(&["timeouts", "daemons", "info"]) {
        assert_eq!(client.timeouts().unwrap(), Timeouts { tcp: 100, tcp_fin: 120, udp: 50 });
        let mut daemon = Daemon::new(DaemonRole::BACKUP, Interface::new("d0").unwrap());
        daemon.sync_id = 7;
        daemon.max_length = Some(1400);
        daemon.group = Some([224, 0, 0, 99].into());
        daemon.port = Some(9000);
        daemon.ttl = Some(3);
        assert_eq!(client.daemons().unwrap(), [daemon]);
        let info = client.info().unwrap();
        assert_eq!((info.version, info.connection_table_size), ((1, 2, 1), 4096));
    }
}

#[test]
fn the_number_of_the_family_is_found_among_other_attributes() {
    for text in KERNELS {
        let mut script = Script::new();
        script.expect_any().reply_to_last(block(text, "family")).reply(scripted::ack(1));
        script.expect_any().reply_to_last(scripted::ack(0));
        let mut client = Client::with_transport(script).unwrap();
        client.run(&Command::Flush).unwrap();
        let [_, flush] = client.transport().sent() else { panic!("two sends") };
        // The captured requests for services have this number.
        assert_eq!(flush[4..6], block(text, "services")[4..6]);
    }
}
