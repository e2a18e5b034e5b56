//! Whatever fails: nothing is lost, nothing is half told, and the server is not stormed.

use std::time::{Duration, Instant};

use serde_json::json;
use sluicegate_proxier::source::kube::{Server, Source, Tuning};
use sluicegate_proxier::source::update::Kind;

use crate::kube::server::{ApiServer, Fault, PORT, Verb};
use crate::kube::watching::{Watching, fill, service, slice, source, tuning};

/// A server, and a source that knows all of it.
fn settled(test: impl FnOnce(&ApiServer, &mut Watching) + Send) {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        let mut watching = Watching::start();
        watching.settle(&server);
        watching.until("everything is watched", |_| {
            ["services", "endpointslices", "nodes", "servicecidrs"]
                .iter()
                .all(|resource| server.requests(resource).iter().any(|target| target.contains("watch=true")))
        });
        test(&server, &mut watching);
    });
}

/// The same, after which a change of services has to arrive however the watch failed, without a new list.
fn watch_fails(fault: &Fault, lists: usize) {
    settled(|server, watching| {
        // The watch that runs is cut, the next one has the fault.
        server.fail("services", Verb::Watch, fault.clone());
        server.down();
        server.up();
        (0..5).for_each(|n| server.put("services", service(&format!("svc-{n}"))));
        server.delete("services", "demo", "web");
        watching.settle(server);
        watching.until("the fault happened", |_| server.has_failed());
        server.put("services", service("last"));
        watching.settle(server);
        assert!(watching.has("last") && !watching.has("web"));
        assert_eq!(watching.lists(Kind::Service), lists, "{fault:?}");
        assert_eq!(watching.lists(Kind::EndpointSlice), 1, "the others are not disturbed");
    });
}

/// A first list that fails: nothing is told of services until it is whole.
fn list_fails(fault: &Fault, verb: Verb) {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        (0..6).for_each(|n| server.put("services", service(&format!("svc-{n}"))));
        server.fail("services", verb, fault.clone());
        let mut tuning = tuning();
        tuning.page = 3;
        tuning.answer = Duration::from_millis(500);
        let mut watching = Watching::with(source(tuning));
        watching.until("services are listed", |watching| watching.lists(Kind::Service) > 0);
        assert!(server.has_failed(), "{fault:?}");
        assert!(watching.holds(&server), "the list is whole after {fault:?}");
        server.put("services", service("last"));
        watching.settle(&server);
    });
}

#[test]
fn a_server_that_is_not_up_yet_is_waited_for() {
    testns::netns(|| {
        let server = ApiServer::new();
        fill(&server);
        let mut watching = Watching::start();
        watching.until("warning is told", |watching| watching.warning("Connection refused"));
        watching.idle(Duration::from_millis(500));
        assert_eq!(watching.warnings.len(), 1, "once for all kinds: {:?}", watching.warnings);
        assert!(
            watching.warnings[0].starts_with("the API server http://127.0.0.1:6443/: "),
            "{:?}",
            watching.warnings
        );
        assert!(watching.lists.is_empty() && watching.held.is_empty());
        server.up();
        watching.settle(&server);
    });
}

#[test]
fn a_server_that_was_gone_for_a_while_tells_what_was_missed() {
    settled(|server, watching| {
        server.down();
        watching.until("it is asked again", |watching| watching.warning("Connection refused"));
        watching.idle(Duration::from_millis(300));
        assert_eq!(watching.held.len(), 4, "what is known stays");
        server.delete("services", "demo", "web");
        server.put("services", service("new"));
        server.put("endpointslices", slice("new-1"));
        server.up();
        watching.settle(server);
        assert!(watching.has("new") && !watching.has("web"));
        assert!(
            watching.lists.values().all(|lists| *lists == 1),
            "nothing is listed anew: {:?}",
            watching.lists
        );
    });
}

#[test]
fn a_deletion_that_the_server_forgot_is_seen_in_a_new_list() {
    settled(|server, watching| {
        server.down();
        server.delete("services", "demo", "web");
        server.put("services", service("new"));
        server.forget();
        server.up();
        watching
            .until("everything is listed anew", |watching| watching.lists.values().all(|lists| *lists == 2));
        watching.settle(server);
        assert!(watching.has("new") && !watching.has("web"));
    });
}

#[test]
fn a_version_that_is_gone_by_status_is_listed_anew() {
    watch_fails(&Fault::Status(410, None), 2);
}

#[test]
fn a_version_that_is_gone_by_event_is_listed_anew() {
    watch_fails(&Fault::error(410), 2);
}

#[test]
fn other_error_events_go_on_from_the_last_version() {
    watch_fails(&Fault::error(500), 1);
}

#[test]
fn a_connection_cut_in_the_middle_of_an_event_loses_nothing() {
    watch_fails(&Fault::Cut, 1);
}

#[test]
fn half_a_line_loses_nothing() {
    watch_fails(&Fault::HalfLine, 1);
}

#[test]
fn a_line_that_makes_no_sense_is_a_reason_to_list_anew() {
    watch_fails(&Fault::Line("<html>502 Bad Gateway</html>".to_owned()), 2);
    watch_fails(&Fault::Line(json!({"type": "RENAMED", "object": {}}).to_string()), 2);
}

#[test]
fn a_watch_that_ends_at_once_is_begun_again() {
    watch_fails(&Fault::End, 1);
}

#[test]
fn a_watch_that_is_refused_is_begun_again() {
    for code in [500, 503, 403, 401] {
        watch_fails(&Fault::Status(code, None), 1);
    }
    watch_fails(&Fault::Status(400, None), 2);
}

#[test]
fn a_page_for_people_is_not_taken_for_an_answer() {
    watch_fails(&Fault::Page, 2);
    list_fails(&Fault::Page, Verb::List);
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        (0..2).for_each(|_| server.fail("services", Verb::List, Fault::Page));
        let mut watching = Watching::with(source(tuning()));
        watching.settle(&server);
        let warning = watching.warnings.iter().find(|warning| warning.contains("text/html"));
        let warning = warning.unwrap_or_else(|| panic!("{:?}", watching.warnings));
        let end = "expected JSON, found text/html; charset=utf-8: is this the address of an API server?";
        assert!(warning.starts_with("Services from the API server ") && warning.ends_with(end), "{warning}");
    });
}

#[test]
fn a_list_is_told_whole_or_not_at_all() {
    for verb in [Verb::List, Verb::Continue] {
        list_fails(&Fault::Cut, verb);
        list_fails(&Fault::Hang, verb);
        for code in [401, 403, 404, 410, 429, 500, 504] {
            list_fails(&Fault::Status(code, None), verb);
        }
    }
}

#[test]
fn a_list_whose_pages_expired_is_asked_for_at_once() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        (0..6).for_each(|n| server.put("services", service(&format!("svc-{n}"))));
        server.fail("services", Verb::Continue, Fault::Status(410, None));
        let mut tuning = tuning();
        tuning.page = 3;
        let mut watching = Watching::with(source(tuning));
        watching.settle(&server);
        let requests = server.requests("services");
        assert!(requests[0].contains("limit=3") && requests[1].contains("continue="), "{requests:?}");
        assert!(!requests[2].contains("limit=") && !requests[2].contains("continue="), "{requests:?}");
        assert_eq!(watching.warnings, Vec::<String>::new(), "that happens");
    });
}

#[test]
fn the_server_says_when_it_wants_to_be_asked_again() {
    for code in [429, 503] {
        testns::netns(|| {
            let server = ApiServer::started();
            fill(&server);
            server.fail("services", Verb::List, Fault::Status(code, Some(1)));
            let began = Instant::now();
            let mut watching = Watching::start();
            watching.settle(&server);
            assert!(began.elapsed() >= Duration::from_secs(1), "not before");
            assert!(watching.warning(&format!("told to answer {code}")), "{:?}", watching.warnings);
            let lists =
                server.requests("services").iter().filter(|target| !target.contains("watch=true")).count();
            assert_eq!(lists, 2);
        });
    }
}

#[test]
fn a_server_that_fails_for_long_is_not_stormed() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        (0..1_000).for_each(|_| server.fail("services", Verb::List, Fault::Status(500, None)));
        let began = Instant::now();
        let mut watching = Watching::start();
        watching.until("many requests failed", |_| server.requests("services").len() >= 10);
        let requests = server.requests("services").len();
        // Pauses of at least 10, 20, 40 and 80 ms, and then of 100 ms, were between them, however busy the
        // machine is.
        let pauses =
            Duration::from_millis(150) + Duration::from_millis(100) * (u32::try_from(requests).unwrap() - 5);
        let took = began.elapsed();
        assert!(took >= pauses, "{requests} requests in {took:?}");
        assert_eq!(watching.warnings.len(), 1, "told once: {:?}", watching.warnings);
        server.mend();
        watching.settle(&server);
    });
}

#[test]
fn a_watch_that_goes_silent_is_given_up() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        server.fail("services", Verb::Watch, Fault::Hang);
        let mut tuning = tuning();
        tuning.answer = Duration::from_millis(300);
        let mut watching = Watching::with(source(tuning));
        watching.settle(&server);
        server.put("services", service("later"));
        watching.settle(&server);
        assert!(watching.warning("no answer within 300ms"), "{:?}", watching.warnings);
    });
}

#[test]
fn an_object_that_cannot_be_read_is_named_and_harms_no_other() {
    settled(|server, watching| {
        let mut odd = service("odd");
        odd["spec"]["ports"] = json!("eighty");
        server.put("services", odd);
        server.put("services", service("fine"));
        watching.until("the service after it is there", |watching| watching.has("fine"));
        assert!(watching.warning("Service demo/odd cannot be read: invalid type"), "{:?}", watching.warnings);
        assert!(!watching.has("odd"));
        let mut web = service("web");
        web["spec"]["ports"] = json!("eighty");
        server.put("services", web);
        server.put("services", service("after"));
        watching.until("the service after it is there", |watching| watching.has("after"));
        assert!(watching.has("web"), "it stays as it was");
        // In a list.
        server.down();
        server.forget();
        server.up();
        watching.until("everything is listed anew", |watching| watching.lists(Kind::Service) == 2);
        assert!(watching.has("fine") && watching.has("after") && !watching.has("odd"));
        assert!(watching.has("web"), "what was known of it stays: the list has it");
        // Whoever has no name that can be read may be any of them.
        server.down();
        server.delete("services", "demo", "after");
        server.put("services", json!({"metadata": {"namespace": "demo", "name": 7}}));
        server.forget();
        server.up();
        watching.until("everything is listed anew", |watching| watching.lists(Kind::Service) == 3);
        assert!(["fine", "after", "web"].iter().all(|name| watching.has(name)));
    });
}

#[test]
fn a_node_that_cannot_be_listed_does_not_hold_up_services_for_ever() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        (0..1_000).for_each(|_| server.fail("nodes", Verb::List, Fault::Status(403, None)));
        let mut tuning = tuning();
        tuning.node = Duration::from_millis(500);
        let began = Instant::now();
        let mut watching = Watching::with(source(tuning));
        watching.until("services are listed", |watching| watching.lists(Kind::Service) == 1);
        assert!(began.elapsed() >= Duration::from_millis(500), "it is waited for");
        assert!(watching.warning("Nodes from the API server"), "{:?}", watching.warnings);
    });
}

#[test]
fn a_configuration_that_changes_is_read_again() {
    testns::netns(|| {
        let config = |port: u16| {
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                    contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
                 clusters: [{{name: k, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n\
                 users: [{{name: u, user: {{token: t}}}}]\n"
            )
        };
        let path = std::env::temp_dir().join(format!("sluicegate-kubeconfig-moved-{}", std::process::id()));
        std::fs::write(&path, config(1)).expect("a temporary file");
        let server = ApiServer::started();
        fill(&server);
        let source =
            Source { server: Server { kubeconfig: Some(path.clone()), master: None }, ..source(tuning()) };
        let mut watching = Watching::with(source);
        watching.until("warning is told", |watching| watching.warning("http://127.0.0.1:1/"));
        std::fs::write(&path, "apiVersion: v1\nkind: ").expect("a temporary file");
        watching.idle(Duration::from_millis(200));
        std::fs::write(&path, config(PORT)).expect("a temporary file");
        watching.settle(&server);
        std::fs::remove_file(&path).expect("it was there");
    });
}

#[test]
fn a_response_without_end_is_given_up() {
    let tuning = |list_bytes: usize| Tuning { list_bytes, ..tuning() };
    for (fault, told) in [
        (Fault::Endless(200), "the response is longer than 1000000 bytes"),
        (Fault::Endless(500), "500 Internal Server Error"),
    ] {
        for verb in [Verb::List, Verb::Watch] {
            testns::netns(|| {
                let server = ApiServer::started();
                fill(&server);
                server.fail("services", verb, fault.clone());
                let mut watching = Watching::with(source(tuning(1_000_000)));
                watching.settle(&server);
                watching.until("the fault happened", |_| server.has_failed());
                server.put("services", service("last"));
                watching.settle(&server);
                // A watch has lines without end, one at a time.
                let is_line = verb == Verb::Watch && matches!(fault, Fault::Endless(200));
                let told = if is_line { "a line of the watch is longer" } else { told };
                assert!(watching.warning(told), "{:?}", watching.warnings);
            });
        }
    }
    // Pages count together.
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        (0..20).for_each(|n| server.put("services", service(&format!("svc-{n}"))));
        let mut watching = Watching::with(source(Tuning { page: 3, ..tuning(2000) }));
        watching.until("warning is told", |watching| watching.warning("the response is longer than"));
        assert_eq!(watching.lists(Kind::Service), 0);
    });
}

#[test]
fn a_server_cannot_ask_to_wait_for_ever() {
    // An ERROR event with a time out of range ends the watch as any other.
    for seconds in [i32::MAX, -1] {
        let status = json!({"kind": "Status", "code": 500, "message": "x".repeat(100_000), "details": {"retryAfterSeconds": seconds}});
        let line = json!({"type": "ERROR", "object": status}).to_string();
        testns::netns(|| {
            let server = ApiServer::started();
            fill(&server);
            server.fail("services", Verb::Watch, Fault::Line(line.clone()));
            let mut watching = Watching::start();
            watching.until("warning is told", |watching| watching.warning("500 : xxx"));
            assert!(watching.warnings.iter().all(|warning| warning.len() < 2000), "clipped");
        });
    }
}

#[test]
fn an_outage_is_told_once_whatever_fails_in_it() {
    settled(|server, watching| {
        server.down();
        watching.until("warning is told", |watching| watching.warning("Connection refused"));
        for resource in ["services", "endpointslices", "nodes", "servicecidrs"] {
            (0..3).for_each(|_| server.fail(resource, Verb::Watch, Fault::Status(403, None)));
            server.fail(resource, Verb::Watch, Fault::Status(410, None));
        }
        server.put("services", service("new"));
        server.up();
        watching.settle(server);
        watching.until("the faults happened", |_| server.has_failed());
        assert_eq!(watching.warnings.len(), 1, "{:?}", watching.warnings);
    });
}

#[test]
fn a_watch_that_the_server_does_not_end_is_given_up() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        server.fail("services", Verb::Watch, Fault::Deaf);
        let short = Duration::from_millis(300);
        let mut watching = Watching::with(source(Tuning { silence: short, ping_answer: short, ..tuning() }));
        watching.until("services are listed", |watching| watching.lists(Kind::Service) == 1);
        watching.until("the deaf watch began", |_| server.has_failed());
        server.put("services", service("later"));
        watching.settle(&server);
        assert_eq!(watching.lists(Kind::Service), 1);
    });
}

#[test]
fn a_server_that_hangs_is_noticed_within_45_seconds() {
    let Tuning { silence, ping_answer, answer, .. } = Tuning::default();
    let limit = Duration::from_secs(45);
    assert!(silence + ping_answer <= limit && answer <= limit);
}

#[test]
fn what_was_never_allowed_is_given_up_and_what_was_is_not() {
    for (resource, is_needed) in [("endpointslices", true), ("nodes", false)] {
        testns::netns(|| {
            let server = ApiServer::started();
            fill(&server);
            (0..1_000).for_each(|_| server.fail(resource, Verb::List, Fault::Status(403, None)));
            let give_up = Duration::from_millis(300);
            let mut watching = Watching::with(source(Tuning { give_up, ..tuning() }));
            if is_needed {
                watching.until("there is no hope", |watching| !watching.hopeless.is_empty());
                assert!(
                    watching.hopeless[0].starts_with("EndpointSlices from the API server: 403 Forbidden")
                );
            } else {
                watching.idle(Duration::from_secs(1));
                assert_eq!(watching.hopeless, Vec::<String>::new());
            }
        });
    }
    settled(|server, watching| {
        (0..1_000).for_each(|_| server.fail("services", Verb::List, Fault::Status(403, None)));
        server.forget();
        server.down();
        server.up();
        watching.idle(Duration::from_secs(1));
        assert_eq!(watching.hopeless, Vec::<String>::new(), "the rules of before work");
    });
}
