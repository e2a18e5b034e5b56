//! The client against a scripted kernel: errors, and the order of requests.
#![forbid(unsafe_code)]

use sluicegate_ipvs::netlink::message::{Flags, Header, Messages, NLMSG_DONE, encode};
use sluicegate_ipvs::netlink::scripted::{self, Script};
use sluicegate_ipvs::netlink::{Error as NetlinkError, Transport, Wait, generic};
use sluicegate_ipvs::*;

/// The number of IPVS in the scripts.
const FAMILY: u16 = 0x1d;

fn web() -> ServiceId {
    ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80))
}

fn new_service(port: u16) -> Command {
    let id = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], port));
    Command::AddService { id, config: ServiceConfig::new(Scheduler::RR) }
}

/// Returns a client of a kernel with IPVS, to whose script `prepare` adds further answers.
fn client(prepare: impl FnOnce(&mut Script)) -> Client<Script> {
    let mut script = Script::new();
    script.expect_any().reply(generic::family_answer(1, FAMILY));
    prepare(&mut script);
    Client::with_transport(script).unwrap()
}

/// Answers the next datagram with errors for the messages with these indices, and acknowledges the last one.
fn refuse(script: &mut Script, errors: &[(usize, Errno)]) {
    let step = script.expect_any();
    for (index, errno) in errors {
        step.reply_to(*index, scripted::error(0, *errno, None, None));
    }
    step.reply_to_last(scripted::ack(0));
}

fn acknowledge(script: &mut Script) {
    refuse(script, &[]);
}

/// Answers the next datagram with these messages, whatever their sequence numbers.
fn answer(script: &mut Script, messages: &[u8]) {
    script.expect_any().reply_to_last(messages.to_vec());
}

/// Returns a message with this body.
fn message(kind: u16, flags: Flags, body: &[u8]) -> Vec<u8> {
    encode(Header { kind, flags, sequence: 0, port: 0 }, body)
}

fn done() -> Vec<u8> {
    scripted::done(0)
}

/// Returns the report of a service on this port.
fn service(port: u16, flags: Flags) -> Vec<u8> {
    let mut client = client(acknowledge);
    client.run(&new_service(port)).unwrap();
    let [_, sent] = client.transport().sent() else { panic!("two sends") };
    // A request to add a service has the attributes of a reported one.
    message(FAMILY, flags, &sent[16..])
}

const MULTI: Flags = Flags::MULTI;
const TORN: Flags = Flags::MULTI.union(Flags::DUMP_INTR);

#[test]
fn without_ipvs_in_the_kernel_the_error_names_the_module() {
    let mut script = Script::new();
    refuse(&mut script, &[(0, Errno::ENOENT)]);
    let error = Client::with_transport(script).unwrap_err();
    assert!(error.is_absent() && !error.is_not_found());
    assert!(error.to_string().contains("modprobe ip_vs"), "{error}");
}

#[test]
fn if_one_command_is_not_valid_none_is_sent() {
    let mut client = client(|_| {});
    let wrong = Command::AddService {
        id: ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 0)),
        config: ServiceConfig::new(Scheduler::RR),
    };
    let error = client.run_all(&[new_service(80), wrong]).unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!(client.transport().sent().len(), 1, "only the request for the family");
}

#[test]
fn refusals_have_the_indices_of_their_commands_over_all_datagrams() {
    let commands: Vec<_> = (1..=300).map(new_service).collect();
    let mut client = client(|script| {
        refuse(script, &[(3, Errno::EEXIST)]);
        acknowledge(script);
        refuse(script, &[(0, Errno::ENOENT), (43, Errno::EEXIST)]);
    });
    let error = client.run_all(&commands).unwrap_err();
    let places: Vec<_> = error
        .refusals()
        .iter()
        .map(|refusal| match &refusal.operation {
            Operation::Command { index, .. } => (*index, refusal.errno),
            Operation::Query(what) => panic!("{what}"),
        })
        .collect();
    assert_eq!(places, [(3, Errno::EEXIST), (256, Errno::ENOENT), (299, Errno::EEXIST)]);
    assert_eq!(client.transport().sent().len(), 4, "three datagrams of at most 128 commands");
}

#[test]
fn a_single_refusal_is_the_error_itself() {
    let mut client = client(|script| refuse(script, &[(0, Errno::EEXIST)]));
    let error = client.run(&new_service(80)).unwrap_err();
    assert!(matches!(error, Error::Refused(_)) && error.is_already_exists());
}

#[test]
fn lost_answers_are_an_error() {
    let mut lost_later = client(|script| {
        script.expect_any().reply_to_last(scripted::ack(0)).overrun();
    });
    // Here the acknowledgement comes first: the command succeeded, whatever is lost later.
    lost_later.run(&new_service(80)).unwrap();

    let mut lost = client(|script| {
        script.expect_any().overrun();
    });
    let error = lost.run_all(&[new_service(80), new_service(81)]).unwrap_err();
    assert!(matches!(&error, Error::SomeRefused { failed, more: true } if failed.is_empty()), "{error}");
}

#[test]
fn no_answer_is_an_error() {
    let mut client = client(|script| {
        script.expect_any();
    });
    let error = client.run(&new_service(80)).unwrap_err();
    assert_eq!(error.to_string(), "the kernel gave no answer to: add service TCP 10.0.0.1:80");
}

#[test]
fn after_an_unanswered_stop_the_daemons_are_listed() {
    let mut gone = client(|script| {
        script.expect_any();
        answer(script, &done());
    });
    gone.run(&Command::StopDaemon(DaemonRole::BACKUP)).unwrap();
}

#[test]
fn an_inconsistent_listing_is_requested_again() {
    let whole = [service(80, MULTI), service(81, MULTI), done()].concat();
    let flagged = [service(80, TORN), done()].concat();
    let repeated = [service(80, MULTI), service(80, MULTI), done()].concat();
    let flagged_at_the_end = [service(80, MULTI), message(NLMSG_DONE, TORN, &[0; 4])].concat();
    let mut client = client(|script| {
        [flagged, repeated, flagged_at_the_end, whole].iter().for_each(|listing| answer(script, listing));
    });
    assert_eq!(client.services().unwrap().len(), 2);
}

#[test]
fn a_listing_that_is_always_inconsistent_is_an_error() {
    let flagged = [service(80, TORN), done()].concat();
    let mut client = client(|script| (0..5).for_each(|_| answer(script, &flagged)));
    let error = client.services().unwrap_err();
    assert_eq!(error.to_string(), "the kernel's table changed during each of 5 attempts to list services");
}

#[test]
fn a_listing_without_an_end_is_an_error() {
    let mut client = client(|script| answer(script, &service(80, MULTI)));
    let error = client.services().unwrap_err();
    assert_eq!(error.to_string(), "the kernel gave no answer to: list services");
}

#[test]
fn after_an_empty_list_of_destinations_the_service_is_requested() {
    let mut client = client(|script| {
        answer(script, &done());
        refuse(script, &[(0, Errno::ESRCH)]);
    });
    let error = client.destinations(&web()).unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(error.to_string(), "list service TCP 10.0.0.1:80: there is no such service (ESRCH)");
}

#[test]
fn the_error_of_a_malformed_answer_has_the_offset() {
    let mut client = client(|script| {
        answer(script, &[message(FAMILY, MULTI, &[1, 1, 0, 0, 8, 0, 1, 0, 6, 0, 1, 0]), done()].concat());
        answer(script, &[service(80, MULTI), done()].concat());
    });
    let error = client.services().unwrap_err();
    assert_eq!(
        error.to_string(),
        "answer of the kernel: service: expected a valid length of nlattr at offset 24, where 4 bytes are left, \
         found 6"
    );
    // It was read to its end: the next request gets its own answer.
    assert_eq!(client.services().unwrap().len(), 1);
}

#[test]
fn the_missing_capability_is_named() {
    let mut client = client(|script| refuse(script, &[(0, Errno::EPERM)]));
    let error = client.services().unwrap_err();
    assert!(error.is_permission_denied());
    assert_eq!(
        error.to_string(),
        "list services: not permitted; this needs CAP_NET_ADMIN in the network namespace (EPERM)"
    );
}

#[test]
fn a_message_of_the_kernel_is_passed_on() {
    let mut client = client(|script| answer(script, &scripted::error(0, Errno::EINVAL, Some("why"), None)));
    let error = client.run(&Command::Flush).unwrap_err();
    assert!(error.to_string().ends_with(": why"), "{error}");
}

#[test]
fn sync_reads_then_sends_the_differences() {
    let mut desired = Table::new();
    desired.service(web(), ServiceConfig::new(Scheduler::WRR));
    let mut client = client(|script| {
        answer(script, &[service(80, MULTI), service(81, MULTI), done()].concat());
        answer(script, &done());
        acknowledge(script);
    });
    let others = |id: &ServiceId| *id == web();
    let commands = client.sync(&desired, others).unwrap();
    assert_eq!(commands.iter().map(ToString::to_string).collect::<Vec<_>>(), ["-E -t 10.0.0.1:80 -s wrr"]);
}

#[test]
fn encoding_a_message_needs_no_allocation() {
    /// Answers the request for the family, and acknowledges the last message of all other datagrams.
    #[derive(Default)]
    struct Agreeable(Option<Vec<u8>>);
    impl Transport for Agreeable {
        fn send(&mut self, messages: &[u8]) -> Result<(), NetlinkError> {
            let last = Messages::new(messages).last().unwrap()?.header;
            self.0 = Some(match last.kind {
                generic::GENL_ID_CTRL => generic::family_answer(last.sequence, FAMILY),
                _ => scripted::ack(last.sequence),
            });
            Ok(())
        }
        fn receive(&mut self, buffer: &mut Vec<u8>, _: Wait) -> Result<bool, NetlinkError> {
            buffer.clear();
            let answer = self.0.take();
            buffer.extend(answer.iter().flatten());
            Ok(answer.is_some())
        }
        fn send_limit(&mut self, _: usize) -> usize {
            usize::MAX
        }
    }
    let mut client = Client::with_transport(Agreeable::default()).unwrap();
    let commands: Vec<_> = (1..=6000).map(new_service).collect();
    let counted = allocation_counter::measure(|| {
        client.run_all(&commands).unwrap();
    });
    // Some for each of the 47 answers of the fake, and for the growth of one buffer.
    assert!(counted.count_total < 600, "{counted:?}");
}
