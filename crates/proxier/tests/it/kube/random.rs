//! Whatever changes, and whatever fails meanwhile: in the end what is held is what the server has.

use proptest::prelude::*;
use serde_json::json;

use crate::kube::server::{ApiServer, Fault, Verb};
use crate::kube::watching::{Watching, fill, service, slice, source, tuning};

#[derive(Clone, Debug)]
enum Step {
    Put(u8),
    PutSlice(u8),
    Hide(u8),
    Delete(u8),
    Fail(Verb, Fault),
    Cut,
    Forget,
    Bookmark,
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![
        prop::sample::select(vec![401, 403, 404, 410, 429, 500]).prop_map(|code| Fault::Status(code, None)),
        Just(Fault::Cut),
        Just(Fault::HalfLine),
        Just(Fault::End),
        prop::sample::select(vec![410, 500]).prop_map(Fault::error),
        Just(Fault::Line("{".to_owned())),
    ];
    let verb = prop::sample::select(vec![Verb::List, Verb::Continue, Verb::Watch]);
    prop_oneof![
        4 => (0..12_u8).prop_map(Step::Put),
        2 => (0..12_u8).prop_map(Step::PutSlice),
        1 => (0..12_u8).prop_map(Step::Hide),
        2 => (0..12_u8).prop_map(Step::Delete),
        3 => (verb, fault).prop_map(|(verb, fault)| Step::Fail(verb, fault)),
        1 => Just(Step::Cut),
        1 => Just(Step::Forget),
        1 => Just(Step::Bookmark),
        1 => Just(Step::Settle),
    ]
}

fn take(server: &ApiServer, watching: &mut Watching, step: Step) {
    match step {
        Step::Put(n) => server.put("services", service(&format!("svc-{n}"))),
        Step::PutSlice(n) => server.put("endpointslices", slice(&format!("slice-{n}"))),
        Step::Hide(n) => {
            let mut hidden = service(&format!("svc-{n}"));
            hidden["metadata"]["labels"] = json!({"service.kubernetes.io/service-proxy-name": "other"});
            server.put("services", hidden);
        }
        Step::Delete(n) => server.delete("services", "demo", &format!("svc-{n}")),
        Step::Fail(verb, fault) => server.fail("services", verb, fault),
        Step::Cut => {
            server.down();
            server.up();
        }
        Step::Forget => server.forget(),
        Step::Bookmark => server.bookmark(),
        Step::Settle => watching.settle(server),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_held_becomes_what_the_server_has(steps in prop::collection::vec(step(), 1..40)) {
        testns::netns(|| {
            let server = ApiServer::started();
            fill(&server);
            let mut tuning = tuning();
            tuning.page = 4;
            let mut watching = Watching::with(source(tuning));
            for step in steps {
                take(&server, &mut watching, step);
            }
            watching.settle(&server);
        });
    }
}
