//! Properties: text and bytes are read back as they were written, and no input makes a panic.
#![forbid(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::option;
use proptest::prelude::*;
use sluicegate_ipvs::netlink::generic;
use sluicegate_ipvs::netlink::scripted::{self, Script};
use sluicegate_ipvs::*;

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from(bits).into()),
        any::<u128>().prop_map(|bits| { Ipv6Addr::from(bits).into() })
    ]
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    (address(), any::<u16>()).prop_map(|(address, port)| Endpoint::new(address, port))
}

fn service_id() -> impl Strategy<Value = ServiceId> {
    let family = prop_oneof![Just(Family::Ipv4), Just(Family::Ipv6)];
    prop_oneof![
        endpoint().prop_map(ServiceId::tcp),
        endpoint().prop_map(ServiceId::udp),
        endpoint().prop_map(ServiceId::sctp),
        (1u32.., family).prop_map(|(mark, family)| ServiceId::mark(mark, family).unwrap()),
    ]
}

fn scheduler() -> impl Strategy<Value = Scheduler> {
    prop_oneof![
        Just(Scheduler::RR),
        Just(Scheduler::SH),
        Just(Scheduler::MH),
        "[a-z]{1,15}".prop_map(|name| Scheduler::new(&name).unwrap()),
    ]
}

fn service() -> impl Strategy<Value = (ServiceId, ServiceConfig)> {
    let persistence = option::of((1..=Persistence::MAX_TIMEOUT, option::of(0u32..=31)));
    let engine = option::of("[a-z]{1,15}".prop_map(|name| Engine::new(&name).unwrap()));
    (service_id(), scheduler(), 0u32..8, persistence, engine, any::<bool>()).prop_map(
        |(id, scheduler, flags, persistence, engine, one_packet)| {
            let granularity = |length: u32| match id.family() {
                Family::Ipv4 => Granularity::Netmask((!(u32::MAX >> length)).into()),
                Family::Ipv6 => Granularity::Prefix(length + 1),
            };
            let persistence = persistence
                .map(|(timeout, length)| Persistence { timeout, granularity: length.map(granularity) });
            let mut config = ServiceConfig::new(scheduler);
            config.scheduler_flags = SchedulerFlags::from_bits_truncate(flags << 3);
            config.persistence = persistence;
            config.engine = engine;
            config.one_packet = one_packet;
            (id, config)
        },
    )
}

fn forward() -> impl Strategy<Value = Forward> {
    let flags = prop_oneof![Just(TunnelFlags::empty()), Just(TunnelFlags::CHECKSUM)];
    prop_oneof![
        Just(Forward::Masquerade),
        Just(Forward::DirectRoute),
        Just(Forward::Tunnel(Tunnel::Ipip)),
        (1u16.., flags.clone()).prop_map(|(port, flags)| Forward::Tunnel(Tunnel::Gue { port, flags })),
        flags.prop_map(|flags| Forward::Tunnel(Tunnel::Gre { flags })),
    ]
}

fn destination() -> impl Strategy<Value = (Endpoint, DestinationConfig)> {
    (endpoint(), forward(), 0..1u32 << 31, 0..1u32 << 31, any::<u32>()).prop_map(
        |(id, forward, weight, upper, lower)| {
            let lower = lower.checked_rem(upper).unwrap_or(0);
            (id, DestinationConfig::new(forward).weight(weight).thresholds(upper, lower))
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        service().prop_map(|(id, config)| Command::AddService { id, config }),
        service().prop_map(|(id, config)| Command::EditService { id, config }),
        service_id().prop_map(|id| Command::DeleteService { id }),
        (service_id(), destination()).prop_map(|(service, (id, config))| Command::AddDestination {
            service,
            id,
            config
        }),
        (service_id(), destination()).prop_map(|(service, (id, config))| Command::EditDestination {
            service,
            id,
            config
        }),
        (service_id(), endpoint()).prop_map(|(service, id)| Command::DeleteDestination { service, id }),
        service_id().prop_map(|id| Command::ZeroService { id }),
        Just(Command::ZeroAll),
        Just(Command::Flush),
    ]
    .prop_filter("what can work", |command| command.check().is_ok())
    .prop_map(canonical)
}

/// Returns the command in the form in which it is read back: a full prefix length is left out, and
/// destinations of direct routing have the port of the service.
fn canonical(mut command: Command) -> Command {
    if let Command::AddService { id, config } | Command::EditService { id, config } = &mut command
        && let Some(persistence) = &mut config.persistence
    {
        let whole = match id.family() {
            Family::Ipv4 => Granularity::Netmask(Ipv4Addr::BROADCAST),
            Family::Ipv6 => Granularity::Prefix(128),
        };
        persistence.granularity = persistence.granularity.filter(|it| *it != whole);
    }
    use Command::{AddDestination, EditDestination};
    if let AddDestination { service, id, config } | EditDestination { service, id, config } = &mut command
        && config.forward.keeps_port()
    {
        id.port = service.port().unwrap_or(id.port);
    }
    command
}

/// Returns the body of the message for a command.
fn sent(command: &Command) -> Vec<u8> {
    let mut client = answered(&scripted::ack(0));
    client.run(command).unwrap();
    client.transport().sent()[1].clone()
}

/// Returns a client whose next requests are answered by these bytes: a listing may be requested five times.
fn answered(bytes: &[u8]) -> Client<Script> {
    let mut script = Script::new();
    script.expect_any().reply(generic::family_answer(1, 0x1d));
    for _ in 0..8 {
        script.expect_any().reply_to_last(bytes.to_vec());
    }
    Client::with_transport(script).unwrap()
}

fn with_end(mut message: Vec<u8>) -> Vec<u8> {
    message.extend([20, 0, 0, 0, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    message
}

proptest! {
    #[test]
    fn a_command_is_read_as_it_is_printed(command in command()) {
        let printed = command.to_string();
        let read = text::parse(&printed);
        prop_assert!(read.is_ok(), "{printed}: {read:?}");
        prop_assert_eq!(read.unwrap(), [command], "{}", printed);
    }

    #[test]
    fn a_service_is_reported_as_it_was_added(
        (id, config) in service().prop_filter("what can work", |(id, config)| config.check(id).is_ok()),
    ) {
        let command = canonical(Command::AddService { id, config });
        let Command::AddService { id, config } = command else { unreachable!() };
        let mut client = answered(&with_end(sent(&Command::AddService { id, config })));
        let [service] = client.services().unwrap().try_into().unwrap();
        prop_assert_eq!((service.id, service.config), (id, config));
    }

    #[test]
    fn a_destination_is_reported_as_it_was_added(
        (service, (id, config)) in (service_id(), destination())
            .prop_filter("what can work", |(service, (id, config))| config.check(service, id).is_ok()),
    ) {
        let mut client = answered(&with_end(sent(&Command::AddDestination { service, id, config })));
        let [destination] = client.destinations(&service).unwrap().try_into().unwrap();
        prop_assert_eq!((destination.id, destination.config), (id, config));
    }

    #[test]
    fn no_text_makes_a_panic(
        text in concat!(
            "(-[AEDaedLSRZCtufpsMrgimwxyno6bX]{1,3}|--[a-z-]{1,12}|",
            "[0-9.:\\[\\]]{1,20}|\\PC{0,5}|[ \n]){0,12}",
        ),
    ) {
        let _ = text::parse(&text);
        let _ = text::parse_args(&text.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn no_answer_makes_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), question in 0..6) {
        let mut client = answered(&bytes);
        let id = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80));
        match question {
            0 => drop(client.services()),
            1 => drop(client.destinations(&id)),
            2 => drop(client.daemons()),
            3 => drop(client.timeouts()),
            4 => drop(client.info()),
            _ => drop(client.run(&Command::Flush)),
        }
    }

    #[test]
    fn a_plan_makes_what_is_wanted(
        desired in prop::collection::vec((service(), prop::collection::vec(destination(), 0..4)), 0..5),
        actual in prop::collection::vec((service(), prop::collection::vec(destination(), 0..4)), 0..5),
        shared in 0usize..4,
    ) {
        let table = |services: &[Wanted]| {
            let mut table = Table::new();
            for ((id, config), destinations) in services {
                let entry = table.service(*id, *config);
                destinations.iter().for_each(|(id, config)| { entry.destination(*id, *config); });
            }
            table
        };
        let mixed: Vec<_> = desired.iter().take(shared).chain(&actual).cloned().collect();
        let (desired, mut actual) = (table(&desired), table(&mixed));
        for command in diff(&desired, &actual) {
            apply(&mut actual, command);
        }
        prop_assert_eq!(actual, desired);
    }
}

/// A service with its destinations.
type Wanted = ((ServiceId, ServiceConfig), Vec<(Endpoint, DestinationConfig)>);

/// Applies a command as the kernel does, and panics on one that it refuses.
fn apply(table: &mut Table, command: Command) {
    match command {
        Command::AddService { id, config } => {
            assert!(table.get(&id).is_none());
            table.service(id, config);
        }
        Command::EditService { id, config } => {
            assert!(table.get(&id).is_some());
            table.service(id, config);
        }
        Command::DeleteService { id } => assert!(table.remove(&id).is_some()),
        Command::AddDestination { service, id, config } => {
            let of_service = table.get(&service).unwrap().config;
            assert!(table.service(service, of_service).destinations.insert(id, config).is_none());
        }
        Command::EditDestination { service, id, config } => {
            let of_service = table.get(&service).unwrap().config;
            assert!(table.service(service, of_service).destinations.insert(id, config).is_some());
        }
        Command::DeleteDestination { service, id } => {
            let of_service = table.get(&service).unwrap().config;
            assert!(table.service(service, of_service).destinations.remove(&id).is_some());
        }
        other => panic!("{other}"),
    }
}
