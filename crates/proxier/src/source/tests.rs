//! What is read, where errors point, and their wording.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use super::*;
use crate::source::update::ObjectName;

fn read_all(name: &str, text: &str) -> Result<(Vec<Manifest>, Ignored), String> {
    let mut found = Vec::new();
    let ignored = read_str(name, text, |manifest| found.push(manifest)).map_err(|e| e.to_string())?;
    Ok((found, ignored))
}

/// Kind, name, document and line of each object.
fn outline(name: &str, text: &str) -> Vec<(&'static str, String, usize, usize)> {
    let (found, _) = read_all(name, text).unwrap();
    let named = |manifest: Manifest| {
        let (kind, metadata) = match manifest.object {
            Object::Service(object) => ("Service", object.metadata),
            Object::EndpointSlice(object) => ("EndpointSlice", object.metadata),
            Object::Node(object) => ("Node", object.metadata),
            Object::ServiceCidr(object) => ("ServiceCIDR", object.metadata),
        };
        (kind, metadata.name.unwrap_or_default(), manifest.origin.document, manifest.origin.line)
    };
    found.into_iter().map(named).collect()
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";

#[test]
fn documents_are_counted_as_a_person_counts_them() {
    let cases = [
        (SERVICE.to_owned(), vec![(1, 1)]),
        (format!("# a comment\n---\n{SERVICE}"), vec![(1, 3)]),
        (format!("---\n{SERVICE}"), vec![(1, 2)]),
        (format!("%YAML 1.2\n---\n{SERVICE}"), vec![(1, 3)]),
        (format!("{SERVICE}--- # next\n{SERVICE}"), vec![(1, 1), (2, 5)]),
        (format!("{SERVICE}---\n\n---\n{SERVICE}---\n"), vec![(1, 1), (3, 7)]),
        (format!("{SERVICE}---\r\n{SERVICE}"), vec![(1, 1), (2, 5)]),
        ("--- {apiVersion: v1, kind: Service, metadata: {name: web}}\n".to_owned(), vec![(1, 1)]),
        (
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  annotations:\n    note: |\n      ---\n"
                .to_owned(),
            vec![(1, 1)],
        ),
    ];
    for (text, expected) in cases {
        let places: Vec<_> = outline("f.yaml", &text).into_iter().map(|(_, _, d, l)| (d, l)).collect();
        assert_eq!(places, expected, "{text}");
    }
}

#[test]
fn lists_give_their_items_with_their_own_lines() {
    let yaml = "apiVersion: v1\nkind: List\nitems:\n\
        - apiVersion: v1\n  kind: Service\n  metadata: {name: a}\n\
        - apiVersion: discovery.k8s.io/v1\n  kind: EndpointSlice\n  metadata: {name: b}\n  addressType: \
        IPv4\n  endpoints: []\n- {apiVersion: v1, kind: Secret}\n";
    assert_eq!(
        outline("f.yaml", yaml),
        [("Service", "a".to_owned(), 1, 4), ("EndpointSlice", "b".to_owned(), 1, 7)]
    );
    let typed = "apiVersion: v1\nkind: ServiceList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n";
    assert_eq!(
        outline("f.yaml", typed),
        [("Service", "a".to_owned(), 1, 4), ("Service", "b".to_owned(), 1, 5)]
    );
    let json = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n  \
        {\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"a\"}},\n  \
        {\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n\"}}\n]}\n";
    assert_eq!(outline("f.json", json), [("Service", "a".to_owned(), 1, 2), ("Node", "n".to_owned(), 1, 3)]);
    assert_eq!(outline("f.yaml", json).len(), 2, "JSON is YAML");
    assert!(outline("f.yaml", "apiVersion: v1\nkind: ServiceList\nitems: []\n").is_empty());
    assert!(outline("f.yaml", "apiVersion: example.com/v1\nkind: AllowList\nspec: {}\n").is_empty());
}

#[test]
fn json_documents_may_follow_one_another() {
    let one = "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"\\ud83d\\ude00\"}}";
    let text = format!("{one}\n{one}");
    let places: Vec<_> = outline("stdin", &text).into_iter().map(|(_, name, d, l)| (name, d, l)).collect();
    assert_eq!(places, [("😀".to_owned(), 1, 1), ("😀".to_owned(), 2, 2)]);
}

/// As an editor's lock (a link that leads nowhere) and copies of other systems.
/// `-` and files of other names.
#[test]
fn text_in_braces_without_a_name_is_json_or_yaml_by_what_it_is() {
    let service = |name: &str| vec![("Service", name.to_owned(), 1, 1)];
    let json = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}"#;
    for text in [
        json.to_owned(),
        "{apiVersion: v1, kind: Service, metadata: {name: a}}".to_owned(),
        "\n{ apiVersion: v1,\n  kind: Service, metadata: {name: a}}\n".to_owned(),
        r#"{"apiVersion": v1, "kind": Service, "metadata": {"name": "a"}}"#.to_owned(),
        format!("{json} # the same"),
    ] {
        let mut found = outline("standard input", &text);
        found[0].3 = 1;
        assert_eq!(found, service("a"), "{text}");
    }
    let two = outline("standard input", &format!("{json}\n---\n{json}\n"));
    assert_eq!((two.len(), two[1].2), (2, 2), "{two:?}");
    // What is neither is told in the words of the one that it was meant as.
    let said = |text: &str| read_all("standard input", text).expect_err("an error");
    let (as_json, as_yaml) = (said(r#"{"kind": }{"#), said("{kind: [}"));
    assert!(as_json.contains("line 1") && as_json.contains("expected value"), "{as_json}");
    assert!(as_yaml.contains("line 1") && !as_yaml.contains("key must be a string"), "{as_yaml}");
}

#[test]
fn hidden_files_of_a_directory_are_no_manifests() {
    let directory = std::env::temp_dir().join(format!("sluicegate-hidden-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    std::os::unix::fs::symlink("me@here.1:2", directory.join(".#web.yaml")).unwrap();
    fs::write(directory.join("._web.yaml"), [0, 5, 22, 7]).unwrap();
    let text = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    fs::write(directory.join("web.yaml"), text).unwrap();
    let mut names = Vec::new();
    let read_all = read(&[&directory], |manifest| names.push(ObjectName::of(&manifest.object).to_string()));
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!((read_all.is_ok(), names), (true, vec!["Service default/web".to_owned()]));
}

#[test]
fn other_kinds_are_counted_by_name() {
    let text = "apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: v1\nkind: Secret\n---\n\
        apiVersion: v1\nkind: Secret\n---\napiVersion: serving.knative.dev/v1\nkind: Service\n---\napiVersion: \
        v1\nkind: Pod\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\n";
    let (found, ignored) = read_all("f.yaml", text).unwrap();
    assert!(found.is_empty());
    assert_eq!(
        ignored.to_string(),
        "1 apps/v1 Deployment, 1 networking.k8s.io/v1 Ingress, 1 serving.knative.dev/v1 Service, 1 v1 Pod, 2 v1 \
         Secret"
    );
}

#[test]
fn what_can_hardly_be_an_object_of_another_kind_is_a_fault() {
    let fault = |version: &str, kind: &str| {
        let yaml = format!("{{apiVersion: {version}, kind: {kind}, metadata: {{name: a}}}}");
        let json = format!("{{\"apiVersion\": \"{version}\", \"kind\": \"{kind}\", \"metadata\": {{}}}}");
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {yaml}\n");
        let said = |name, text: &str| read_all(name, text).err();
        let json = said("f.json", &json);
        assert_eq!(said("f.yaml", &list).is_some(), json.is_some(), "{version} {kind}");
        assert_eq!(said("f.yaml", &yaml).map(|text| text.replace(".yaml", ".json")), json);
        json.map(|text| text.replace("f.json, document 1, line 1: ", "")).unwrap_or_default()
    };
    for (version, kind, said) in [
        ("''", "Service", "expected apiVersion v1 of kind Service, found none"),
        ("V1", "Service", "expected apiVersion v1 of kind Service, found V1"),
        ("core/v1", "Service", "expected apiVersion v1 of kind Service, found core/v1"),
        ("v2", "ServiceList", "expected apiVersion v1 of kind Service, found v2"),
        ("v1", "Servce", "v1 has no kind Servce: did you mean Service?"),
        ("v1", "service", "v1 has no kind service: did you mean Service?"),
        ("v1", "Services", "v1 has no kind Services: did you mean Service?"),
        ("v1", "Svc", "v1 has no kind Svc"),
        ("v1", "Nod", "v1 has no kind Nod: did you mean Node?"),
        ("v1", "EndpointSlice", "expected apiVersion discovery.k8s.io/v1 of kind EndpointSlice, found v1"),
        (
            "discovery.k8s.io/v1beta1",
            "EndpointSlice",
            "expected apiVersion discovery.k8s.io/v1 of kind EndpointSlice, found discovery.k8s.io/v1beta1",
        ),
        (
            "discovery.k8s.io/v1",
            "EndpointSlce",
            "discovery.k8s.io/v1 has no kind EndpointSlce: did you mean EndpointSlice?",
        ),
        (
            "networking.k8s.io/v1",
            "ServiceCidr",
            "networking.k8s.io/v1 has no kind ServiceCidr: did you mean ServiceCIDR?",
        ),
    ] {
        if version == "''" || kind.ends_with("List") {
            let text = format!("{{apiVersion: {version}, kind: {kind}, items: [{{metadata: {{name: a}}}}]}}");
            assert!(read_all("f.yaml", &text).unwrap_err().contains(said), "{version} {kind}");
            continue;
        }
        assert_eq!(fault(version, kind), said);
    }
    for (version, kind) in
        [("v1", "Pod"), ("v1", "Secret"), ("apps/v1", "Deployment"), ("networking.k8s.io/v1", "Gateway")]
    {
        assert_eq!(fault(version, kind), "");
    }
    let item = "apiVersion: v1\nkind: List\nitems:\n- kind: Service\n  metadata: {name: a}\n";
    assert_eq!(
        read_all("f.yaml", item).unwrap_err(),
        "f.yaml, document 1, line 4: items[0]: expected apiVersion v1 of kind Service, found none"
    );
}

#[test]
fn what_does_not_parse_says_file_document_line_and_why() {
    let cases = [
        (
            "f.yaml",
            format!("{SERVICE}---\n{SERVICE}spec:\n  ports:\n  - port: 80\n  - port: eighty\n"),
            "f.yaml, document 2, line 11, column 11: spec.ports[1].port: invalid type: string \"eighty\", \
                expected i32",
        ),
        (
            "f.yaml",
            format!("{SERVICE}spec: {{ports: [{{port: 99999999999}}]}}\n"),
            "f.yaml, document 1, line 4, column 23: spec.ports[0].port: invalid value: integer \
                `99999999999`, expected i32",
        ),
        (
            "f.yaml",
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n name: web\n".to_owned(),
            "f.yaml, document 1, line 5, column 2: not YAML: ",
        ),
        (
            "f.yaml",
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: 80\n".to_owned(),
            "f.yaml, document 1, line 4, column 9: metadata.name: invalid type: integer `80`, expected a \
                string",
        ),
        (
            "f.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nmetadata: {name: b}\n".to_owned(),
            "f.yaml, document 1, line 4, column 1: the key metadata comes twice",
        ),
        ("f.yaml", "a: 1\n".to_owned(), "f.yaml, document 1, line 1: the document has no kind"),
        (
            "f.yaml",
            "- a\n".to_owned(),
            "f.yaml, document 1, line 1, column 3: expected an object with \
            apiVersion and kind",
        ),
        ("f.yaml", "- {a: 1}\n".to_owned(), "f.yaml, document 1, line 1: [0] has no kind"),
        (
            "f.json",
            "[\n1]".to_owned(),
            "f.json, document 1, line 2, column 1: invalid type: integer `1`, \
            expected an object with apiVersion and kind",
        ),
        (
            "f.json",
            "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\n\
                \"spec\":{\"clusterIP\":\"10.0.0.1\",\"clusterIP\":\"10.0.0.2\"}}"
                .to_owned(),
            "f.json, document 1, line 2, column 42: the key clusterIP comes twice",
        ),
        (
            "f.json",
            "{\"a\":1,\"\\u0061\":2}".to_owned(),
            "f.json, document 1, line 1, column 15: the key a \
            comes twice",
        ),
        (
            "f.yaml",
            "kind: List\napiVersion: v1\nitems:\n\
            - {a: 1}\n"
                .to_owned(),
            "f.yaml, document 1, line 4: items[0] has no kind",
        ),
        // What a writer leaves that stopped there.
        (
            "f.yaml",
            "apiVersion: v1\nkind: List\nitems:\n".to_owned(),
            "f.yaml, document 1, line 1: items: expected the list of List, found none",
        ),
        (
            "f.yaml",
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSliceList\nitem: []\n".to_owned(),
            "f.yaml, document 1, line 1: items: expected the list of EndpointSliceList, found none",
        ),
        (
            "f.json",
            r#"{"apiVersion": "v1", "kind": "ServiceList", "items": null}"#.to_owned(),
            "f.json, document 1, line 1: items: expected the list of ServiceList, found none",
        ),
        ("f.yaml", "a: *b\n".to_owned(), "f.yaml, document 1, line 1, column 4: not YAML: "),
        (
            "f.json",
            "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n \
                {\"apiVersion\":\"v1\",\"kind\":\"Service\",\n  \"spec\":{\"ports\":[{\"port\":\"x\"}]}}]}"
                .to_owned(),
            "f.json, document 1, line 3, column 30: items[0]: invalid type: string \"x\", expected i32",
        ),
        ("f.json", "{\n\"a\": }".to_owned(), "f.json, document 1, line 2, column 6: expected value"),
    ];
    for (name, text, expected) in cases {
        let message = read_all(name, &text).unwrap_err();
        assert!(message.starts_with(expected), "{text}\n     got: {message}\nexpected: {expected}");
    }
}

#[test]
fn long_documents_mean_the_same_as_short_ones() {
    let item = |name: &str| {
        format!(
            "- apiVersion: v1\n  kind: Service\n  metadata: {{name: {name}}}\n  spec: {{ports: [{{port: \
             80}}]}}\n"
        )
    };
    let headless = "- metadata: {name: a}\n- metadata: {name: b}\n";
    let [a, b] = [item("a"), item("b")];
    let cases = [
        // kubectl sorts the keys, so that the kind comes last.
        format!("apiVersion: v1\nitems:\n{a}{b}kind: List\nmetadata: {{}}\n"),
        format!("kind: ServiceList\napiVersion: v1\nitems:\n{headless}"),
        format!("apiVersion: v1\nitems:\n{headless}kind: ServiceList\n"),
        format!("apiVersion: v1\nitems:\n{headless}kind: List\n"),
        format!("apiVersion: v1\nkind: List\nitems:\n{a}- kind: Secret\n  apiVersion: v1\n- 1\n"),
        format!("{a}{b}"),
        headless.to_owned(),
        "- 1\n- []\n".to_owned(),
        "kind: List\napiVersion: v1\nitems:\n".to_owned(),
        "kind: List\napiVersion: v1\n".to_owned(),
        "kind: AllowList\napiVersion: example.com/v1\n".to_owned(),
        "kind: ServiceList\napiVersion: v1\nitems: []\n".to_owned(),
        "kind: List\napiVersion: v1\nitems: {a: b}\n".to_owned(),
        "kind: List\napiVersion: v1\nitems: text\n".to_owned(),
        format!("kind: List\napiVersion: v1\nitems:\n{a}kind: List\n"),
        format!("kind: List\napiVersion: v1\nitems:\n{a}items: []\n"),
        format!("kind: List\napiVersion: v1\nitems:\n{}", a.replace("80", "eighty")),
        format!("kind: List\napiVersion: v1\nitems:\n{}", a.replace("ports:", "a: 1, a: 2, ports:")),
        format!("kind: List\napiVersion: v1\nitems:\n{a}x: ]\n"),
        format!("kind: 1\napiVersion: v1\nitems:\n{a}"),
        format!("items:\n{a}"),
        format!("kind: List\napiVersion: v1\nitems:\n{a}---x\n"),
        // What the root has is told by an alias or a merge key.
        format!("x: &kind List\napiVersion: v1\nkind: *kind\nitems:\n{a}"),
        format!("kind: List\napiVersion: v1\nx: &items\n{a}items: *items\n"),
        format!("x: &head {{kind: List}}\n<<: *head\napiVersion: v1\nitems:\n{a}"),
        format!("kind: List\napiVersion: v1\nitems:\n- &one {}- *one\n", a.trim_start_matches("- ")),
        format!("kind: List\napiVersion: v1\nitems: &all\n{a}x: *all\n"),
        "kind: Service\napiVersion: v1\nmetadata: {name: a}\n".to_owned(),
        "kind: Secret\napiVersion: v1\ndata: {items: [a]}\n".to_owned(),
        "a: b\n".to_owned(),
        "text\n".to_owned(),
        "~\n".to_owned(),
        "# nothing\n".to_owned(),
    ];
    let comment = format!("# {}\n", "x".repeat(1 << 20));
    for text in cases {
        assert_eq!(read_all("f.yaml", &(text.clone() + &comment)), read_all("f.yaml", &text), "{text}");
    }
}

#[test]
fn every_bad_document_is_told_at_once() {
    let text = format!("kind: 1\n---\n{SERVICE}---\nkind: [\n");
    let message = read_all("f.yaml", &text).unwrap_err();
    assert_eq!(message.lines().count(), 2, "{message}");
    assert!(message.contains("document 1, line 1") && message.contains("document 3, line "), "{message}");
}

#[test]
fn aliases_and_merge_keys_work_but_cannot_explode() {
    let text = "apiVersion: v1\nkind: Service\nmetadata: &m {name: a, labels: {x: y}}\n\
        spec:\n  selector: {<<: {x: y, z: w}, x: v}\n";
    let (found, _) = read_all("f.yaml", text).unwrap();
    let Object::Service(service) = &found[0].object else { panic!("a service") };
    let selector = service.spec.as_ref().unwrap().selector.as_ref().unwrap();
    assert_eq!((selector["x"].as_str(), selector["z"].as_str()), ("v", "w"));

    let mut bomb = "kind: Service\napiVersion: v1\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let item = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![item; 10].join(", "));
    }
    assert!(read_all("f.yaml", &bomb).unwrap_err().contains("aliases expand to more"));
    let long = "x".repeat(100_000);
    let wide = format!("kind: Service\napiVersion: v1\na: &a {long}\nb: [{}]\n", vec!["*a"; 1000].join(", "));
    assert!(read_all("f.yaml", &wide).unwrap_err().contains("aliases expand to more"), "long text counts");
    let deep = "[".repeat(200);
    assert!(read_all("f.yaml", &deep).is_err());
}

#[test]
fn a_key_that_comes_twice_is_found_among_many() {
    let keys = |count: usize| (0..count).map(|n| format!("  k{n}: v\n")).collect::<String>();
    let text = |extra: &str| format!("kind: Secret\napiVersion: v1\ndata:\n{}{extra}", keys(50_000));
    assert!(read_all("f.yaml", &text("")).is_ok());
    let message = read_all("f.yaml", &text("  k7: v\n")).unwrap_err();
    assert_eq!(message, "f.yaml, document 1, line 50004, column 3: the key k7 comes twice");
}

#[test]
fn directories_are_read_in_order_and_files_whatever_their_name() {
    let dir = std::env::temp_dir().join(format!("sluicegate-source-{}", std::process::id()));
    fs::create_dir_all(dir.join("inner.yaml")).unwrap();
    for (file, name) in [("b.yml", "b"), ("a.yaml", "a"), ("c.json", "c"), ("d.txt", "d")] {
        let text = format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {{\"name\": \"{name}\"}}}}"
        );
        fs::write(dir.join(file), text).unwrap();
    }
    let mut names = Vec::new();
    let mut sink = |manifest: Manifest| {
        let Object::Service(service) = manifest.object else { return };
        names.extend(service.metadata.name);
    };
    read(&[dir.clone(), dir.join("d.txt")], &mut sink).unwrap();
    let missing = read(&[dir.join("none.yaml")], |_| {}).unwrap_err().to_string();
    fs::write(dir.join("e.yaml"), b"kind: Service\nname: \xff\n").unwrap();
    let binary = read(&[dir.join("e.yaml")], |_| {}).unwrap_err().to_string();
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(names, ["a", "b", "c", "d"]);
    assert!(missing.contains("none.yaml") && missing.contains("No such file"), "{missing}");
    assert!(binary.ends_with("e.yaml, document 1, line 2: expected UTF-8, found other bytes"), "{binary}");
}

#[test]
fn null_documents_are_empty_and_arrays_are_lists() {
    let service = "{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"a\"}}";
    let places = |name: &str, text: &str| -> Vec<_> {
        outline(name, text).into_iter().map(|(_, _, document, line)| (document, line)).collect()
    };
    assert_eq!(places("f.json", &format!("null\n{service}")), [(2, 2)]);
    assert_eq!(places("f.json", &format!("[{service},\n{service}]\n[]")), [(1, 1), (1, 2)]);
    assert_eq!(places("f.yaml", &format!("null\n---\n{service}\n---\n~\n")), [(2, 3)]);
    assert_eq!(places("f.yaml", &format!("- {service}\n- {service}\n")), [(1, 1), (1, 2)]);
}

#[test]
fn a_long_json_list_takes_time_in_proportion_to_its_length() {
    let text = |count: usize| {
        let port = "      {\n        \"port\": 80\n      }";
        let item = format!(
            "  {{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"Service\",\n    \"spec\": {{\"ports\": [\n\
                {port}\n    ]}}\n  }}"
        );
        format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{}\n]}}",
            vec![item; count].join(",\n")
        )
    };
    // The processor time of this thread, which others on the machine do not change much.
    let spent = || {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the thread's own usage");
        usage.user_time() + usage.system_time()
    };
    let time = |text: &str| {
        let once = || {
            let before = spent();
            read_all("f.json", text).unwrap();
            (spent() - before).num_microseconds()
        };
        (0..3).map(|_| once()).min().unwrap()
    };
    let (small, large) = (time(&text(500)), time(&text(8000)));
    // Sixteen times the text. Where each item scans the whole, it takes 256 times as long.
    assert!(large < 64 * small, "{small} us, then {large} us");
}

#[test]
fn what_is_not_a_regular_file_is_refused_at_once() {
    let dir = std::env::temp_dir().join(format!("sluicegate-fifo-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let fifo = dir.join("a.yaml");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let refused = |path: &Path| read(&[path], |_| {}).unwrap_err().to_string();
    let (named, within) = (refused(&fifo), refused(&dir));
    fs::remove_dir_all(&dir).unwrap();
    assert!(named.ends_with("a.yaml: expected a regular file, found a FIFO"), "{named}");
    assert_eq!(within, named);
    assert_eq!(refused(Path::new("/dev/zero")), "/dev/zero: expected a regular file, found a device");
}
