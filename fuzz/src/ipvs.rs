//! Answers of the kernel and texts of ipvsadm: no bytes make a panic, and what is read prints as something
//! that reads the same.
use sluicegate_ipvs::netlink::generic;
use sluicegate_ipvs::netlink::scripted::{self, Script};
use sluicegate_ipvs::{Client, Command, Endpoint, ServiceId, text};

pub(crate) fn run(data: &[u8]) {
    let Some((question, bytes)) = data.split_first() else { return };
    if let Ok(text) = std::str::from_utf8(bytes) {
        check_text(text);
    }
    let mut script = Script::new();
    let family = script.expect_any();
    if *question == 0 {
        family.reply_to_last(bytes.to_vec()).reply(scripted::ack(1));
    } else {
        family.reply(generic::family_answer(1, FAMILY));
    }
    // More than once: an interrupted listing is asked again, and an empty one leads to another question.
    for _ in 0..8 {
        script.expect_any().reply_to_last(bytes.to_vec());
    }
    let Ok(mut client) = Client::with_transport(script) else { return };
    let id = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80));
    match question % 6 {
        0 => drop(client.list(|_| true)),
        1 => drop(client.destinations(&id)),
        2 => drop(client.daemons()),
        3 => drop(client.timeouts()),
        4 => drop(client.info()),
        _ => drop(client.run_all(&[Command::DeleteService { id }, Command::Flush])),
    }
}

fn check_text(text: &str) {
    let _ = text::parse_args(&text.split('\0').collect::<Vec<_>>());
    let Ok(commands) = text::parse(text) else { return };
    let printed: String = commands.iter().map(|command| format!("{command}\n")).collect();
    assert_eq!(text::parse(&printed).expect("what we print"), commands);
}

/// The number of IPVS in the script: that of the corpus.
const FAMILY: u16 = 0x1d;
