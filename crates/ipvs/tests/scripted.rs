//! The client against a kernel that plays a script: what goes wrong, and in which order.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io;

use sluicegate_ipvs::*;

fn web() -> ServiceId {
    ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80))
}

fn new_service(port: u16) -> Command {
    let id = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], port));
    Command::NewService { id, config: ServiceConfig::new(Scheduler::RR) }
}

fn client(prepare: impl FnOnce(&mut Script)) -> Client<Script> {
    let mut script = Script::new();
    prepare(&mut script);
    Client::over(script).unwrap()
}

/// A message of the family with this body; `flags` of the netlink header.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut message = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

const MULTI: u16 = 2;
const DUMP_INTR: u16 = 0x10;
const DONE: u16 = 3;

fn done() -> Vec<u8> {
    message(DONE, MULTI, &[0; 4])
}

/// The report of a service on this port.
fn service(port: u16, flags: u16) -> Vec<u8> {
    let mut script = client(Script::acknowledge);
    script.run(&new_service(port)).unwrap();
    let [_, sent] = script.transport().sent() else { panic!("two sends") };
    // A request to add a service has all that the report of one has.
    message(Script::FAMILY, flags, &sent[16..])
}

#[test]
fn a_kernel_without_ipvs_is_absent_and_says_what_to_do() {
    let error = Client::over(Script::without_ipvs()).unwrap_err();
    assert!(error.is_absent() && !error.is_not_found());
    assert!(error.to_string().contains("modprobe ip_vs"), "{error}");
}

#[test]
fn what_cannot_work_is_not_sent_and_neither_is_the_rest() {
    let mut client = client(|_| {});
    let wrong = Command::NewService {
        id: ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 0)),
        config: ServiceConfig::new(Scheduler::RR),
    };
    let error = client.run_all(&[new_service(80), wrong]).unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!(client.transport().sent().len(), 1, "only the question for the family");
}

#[test]
fn refusals_have_the_places_of_their_commands_over_all_sends() {
    let commands: Vec<_> = (1..=300).map(new_service).collect();
    let mut client = client(|script| {
        script.refuse(&[(3, 17)]);
        script.acknowledge();
        script.refuse(&[(0, 2), (43, 17)]);
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
    assert_eq!(places, [(3, 17), (256, 2), (299, 17)]);
    assert_eq!(client.transport().sent().len(), 4, "three sends of at most 128 commands");
}

#[test]
fn a_single_refusal_is_the_error_itself() {
    let mut client = client(|script| script.refuse(&[(0, 17)]));
    let error = client.run(&new_service(80)).unwrap_err();
    assert!(matches!(error, Error::Refused(_)) && error.is_already_exists());
}

#[test]
fn lost_answers_are_not_taken_for_success() {
    let mut client = client(|script| {
        script.acknowledge();
        script.fail(io::Error::from_raw_os_error(105));
    });
    // The acknowledgement comes first here: all is well, whatever is lost later.
    client.run(&new_service(80)).unwrap();

    let mut script = Script::new();
    script.answer(&[]);
    script.fail(io::Error::from_raw_os_error(105));
    let mut client = Client::over(script).unwrap();
    let error = client.run_all(&[new_service(80), new_service(81)]).unwrap_err();
    assert!(matches!(&error, Error::SomeRefused { failed, more: true } if failed.is_empty()), "{error}");
}

#[test]
fn no_answer_is_an_error() {
    let mut client = client(|_| {});
    let error = client.run(&new_service(80)).unwrap_err();
    assert_eq!(error.to_string(), "the kernel gave no answer to: new service TCP 10.0.0.1:80");
}

#[test]
fn a_daemon_that_was_stopped_without_an_answer_is_looked_for() {
    let mut gone = client(|script| {
        script.answer(&[]);
        script.answer(&done());
    });
    gone.run(&Command::StopDaemon(DaemonRole::BACKUP)).unwrap();
}

#[test]
fn a_torn_listing_is_asked_again() {
    let whole = [service(80, MULTI), service(81, MULTI), done()].concat();
    let flagged = [service(80, MULTI | DUMP_INTR), done()].concat();
    let repeated = [service(80, MULTI), service(80, MULTI), done()].concat();
    let flagged_at_the_end = [service(80, MULTI), message(DONE, MULTI | DUMP_INTR, &[0; 4])].concat();
    let mut client = client(|script| {
        [flagged, repeated, flagged_at_the_end, whole].iter().for_each(|answer| script.answer(answer));
    });
    assert_eq!(client.services().unwrap().len(), 2);
}

#[test]
fn a_listing_that_is_always_torn_is_an_error() {
    let flagged = [service(80, MULTI | DUMP_INTR), done()].concat();
    let mut client = client(|script| (0..5).for_each(|_| script.answer(&flagged)));
    let error = client.services().unwrap_err();
    assert_eq!(error.to_string(), "the kernel's table changed during each of 5 attempts to list services");
}

#[test]
fn a_listing_without_an_end_is_no_listing() {
    let mut client = client(|script| script.answer(&service(80, MULTI)));
    let error = client.services().unwrap_err();
    assert_eq!(error.to_string(), "the kernel gave no answer to: list services");
}

#[test]
fn an_empty_list_of_destinations_is_doubted() {
    let mut client = client(|script| {
        script.answer(&done());
        script.refuse(&[(0, 3)]);
    });
    let error = client.destinations(&web()).unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(error.to_string(), "list service TCP 10.0.0.1:80: there is no such service (errno 3)");
}

#[test]
fn an_answer_that_makes_no_sense_says_where() {
    let mut client = client(|script| {
        script.answer(
            &[message(Script::FAMILY, MULTI, &[1, 1, 0, 0, 8, 0, 1, 0, 6, 0, 1, 0]), done()].concat(),
        );
        script.answer(&[service(80, MULTI), done()].concat());
    });
    let error = client.services().unwrap_err();
    assert_eq!(error.to_string(), "answer of the kernel: service: a length of 6 in 4 bytes");
    // It was read to its end: the next question gets its own answer.
    assert_eq!(client.services().unwrap().len(), 1);
}

#[test]
fn the_right_that_is_missing_is_named() {
    let mut client = client(|script| script.refuse(&[(0, 1)]));
    let error = client.services().unwrap_err();
    assert!(error.is_permission_denied());
    assert_eq!(
        error.to_string(),
        "list services: not permitted: CAP_NET_ADMIN in this network namespace is needed (errno 1)"
    );
}

#[test]
fn a_message_of_the_kernel_is_passed_on() {
    // NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, EINVAL, header of the request, NLMSGERR_ATTR_MSG
    let mut body = (-22i32).to_ne_bytes().to_vec();
    body.extend([0; 16]);
    body.extend([8, 0, 1, 0]);
    body.extend(b"why\0");
    let mut client = client(|script| script.answer(&message(2, 0x300, &body)));
    let error = client.run(&Command::Flush).unwrap_err();
    assert!(error.to_string().ends_with(": why"), "{error}");
}

#[test]
fn sync_reads_then_sends_what_differs() {
    let mut desired = Table::new();
    desired.service(web(), ServiceConfig::new(Scheduler::WRR));
    let mut client = client(|script| {
        script.answer(&[service(80, MULTI), service(81, MULTI), done()].concat());
        script.answer(&done());
        script.acknowledge();
    });
    let others = |id: &ServiceId| *id == web();
    let commands = client.sync(&desired, others).unwrap();
    assert_eq!(commands.iter().map(ToString::to_string).collect::<Vec<_>>(), ["-E -t 10.0.0.1:80 -s wrr"]);
}

#[test]
fn encoding_costs_no_allocation_a_message() {
    /// Says the number of the family, and agrees to the last message of every other send.
    #[derive(Default)]
    struct Agreeable(Vec<u8>);
    impl Transport for Agreeable {
        fn send(&mut self, messages: &[u8]) -> io::Result<()> {
            self.0 = match messages[4] {
                16 => message(16, 0, &[1, 2, 0, 0, 6, 0, 1, 0, 0x1d, 0, 0, 0]),
                _ => message(2, 0, &[0; 20]),
            };
            let mut at = 0;
            while let Some(next) =
                messages.get(at..at + 4).map(|it| u32::from_ne_bytes(it.try_into().unwrap()))
            {
                self.0[8..12].copy_from_slice(&messages[at + 8..at + 12]);
                at += next as usize;
            }
            Ok(())
        }
        fn receive(&mut self) -> io::Result<&[u8]> {
            Ok(&self.0)
        }
    }
    let mut client = Client::over(Agreeable::default()).unwrap();
    let commands: Vec<_> = (1..=6000).map(new_service).collect();
    let counted = allocation_counter::measure(|| {
        client.run_all(&commands).unwrap();
    });
    // Some for each of the 47 answers of the fake, and for the growth of one buffer.
    assert!(counted.count_total < 600, "{counted:?}");
}
