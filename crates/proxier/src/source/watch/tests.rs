//! Files on disk that change in all the ways that files change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use tokio::sync::mpsc::{self, Receiver};

use super::events::QUIET;
use super::files::{LARGE, SECOND_LOOK, STEPS};
use super::*;
use crate::source::Object;
use crate::source::update::{Kind, ObjectName};

/// A directory of its own for a test, removed with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sluicegate-watch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The updates of a watch, which runs on a thread of its own.
struct Seen(Receiver<Update>);

impl Seen {
    fn of(paths: &[PathBuf]) -> Self {
        let (sender, receiver) = mpsc::channel(1000);
        let paths = paths.to_vec();
        thread::spawn(move || watch(&paths, &sender));
        Self(receiver)
    }

    fn next(&mut self) -> String {
        describe(&self.update())
    }

    fn update(&mut self) -> Update {
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            if let Some(update) = self.try_update() {
                return update;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("nothing is seen");
    }

    /// Returns the next update that is there, but for [`Update::Unusable`], which only follows warnings.
    fn try_update(&mut self) -> Option<Update> {
        std::iter::from_fn(|| self.0.try_recv().ok()).find(|update| !matches!(update, Update::Unusable(_)))
    }

    /// Returns what cannot be used when that has changed.
    fn unusable(&mut self) -> Vec<String> {
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            match self.0.try_recv() {
                Ok(Update::Unusable(files)) => return files,
                Ok(_) => {}
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
        panic!("it has not changed");
    }

    /// The first lists: what was sent until all kinds were listed.
    fn first(&mut self) -> Vec<String> {
        let mut lists = Kind::ALL.map(|kind| (kind, BTreeMap::new()));
        let mut listed = Vec::new();
        while listed.len() < Kind::ALL.len() {
            let (kind, name, object) = match self.update() {
                Update::Listed(kind) => {
                    listed.push(kind);
                    continue;
                }
                Update::Apply(object) => {
                    let name = ObjectName::of(&object);
                    (name.kind(), name, Some(describe_object(&object)))
                }
                Update::Delete(name) => (name.kind(), name, None),
                other => panic!("{}", describe(&other)),
            };
            let (_, list) = lists.iter_mut().find(|(of, _)| *of == kind).unwrap();
            list.remove(&name);
            list.extend(object.map(|object| (name, object)));
        }
        assert_eq!(listed, Kind::ALL);
        let text = |(kind, list): (Kind, BTreeMap<ObjectName, String>)| {
            format!("all of {kind}: {}", list.into_values().collect::<Vec<_>>().join(", "))
        };
        lists.map(text).into()
    }

    fn is_silent_for(&mut self, ms: u64) {
        thread::sleep(Duration::from_millis(ms));
        if let Some(update) = self.try_update() {
            panic!("{}", describe(&update));
        }
    }
}

fn describe_object(object: &Object) -> String {
    match object {
        Object::Service(service) => {
            let port = service.spec.as_ref().and_then(|spec| Some(spec.ports.as_ref()?.first()?.port));
            format!("{} port {}", ObjectName::of(object), port.unwrap_or_default())
        }
        _ => ObjectName::of(object).to_string(),
    }
}

fn describe(update: &Update) -> String {
    match update {
        Update::Apply(applied) => format!("apply {}", describe_object(applied)),
        Update::Delete(name) => format!("delete {name}"),
        Update::Replace(kind, _) | Update::Listing(kind) | Update::Listed(kind) => format!("all of {kind}"),
        Update::Unreadable(.., reason) => reason.clone(),
        Update::Warning(warning) => format!("warning: {warning}"),
        Update::Unusable(files) => format!("unusable: {files:?}"),
        Update::Hopeless(reason) => format!("hopeless: {reason}"),
    }
}

fn service(name: &str, port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
            spec: {{clusterIP: 10.96.0.1, ports: [{{port: {port}}}]}}\n"
    )
}

#[test]
fn the_first_lists_are_whole_and_later_only_what_changed_is_told() {
    let directory = Directory::new("first");
    directory.write("a.yaml", &service("a", 1));
    directory.write("b.yaml", &service("b", 2));
    directory.write("notes.txt", "none of ours");
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    assert_eq!(
        seen.first(),
        [
            "all of Node: ",
            "all of ServiceCIDR: ",
            "all of EndpointSlice: ",
            "all of Service: Service default/a port 1, Service default/b port 2"
        ]
    );
    directory.write("b.yaml", &service("b", 3));
    assert_eq!(seen.next(), "apply Service default/b port 3");
    // Renamed over, as editors and most tools do.
    directory.write("b.tmp", &service("b", 4));
    fs::rename(directory.file("b.tmp"), directory.file("b.yaml")).unwrap();
    assert_eq!(seen.next(), "apply Service default/b port 4");
    directory.write("c.yaml", &service("c", 5));
    assert_eq!(seen.next(), "apply Service default/c port 5");
    fs::remove_file(directory.file("a.yaml")).unwrap();
    assert_eq!(seen.next(), "delete Service default/a");
    directory.write("notes.txt", "still none of ours");
    seen.is_silent_for(200);
}

#[test]
fn the_swap_of_a_config_map_is_one_change() {
    let directory = Directory::new("configmap");
    for (version, port) in [("..1", 1), ("..2", 2)] {
        fs::create_dir(directory.file(version)).unwrap();
        directory.write(&format!("{version}/a.yaml"), &service("a", port));
        directory.write(&format!("{version}/b.yaml"), &service("b", port));
    }
    symlink("..1", directory.file("..data")).unwrap();
    symlink("..data/a.yaml", directory.file("a.yaml")).unwrap();
    symlink("..data/b.yaml", directory.file("b.yaml")).unwrap();
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    assert!(seen.first()[3].contains("default/a port 1, Service default/b port 1"));
    symlink("..2", directory.file("..data_tmp")).unwrap();
    fs::rename(directory.file("..data_tmp"), directory.file("..data")).unwrap();
    assert_eq!(seen.next(), "apply Service default/a port 2");
    assert_eq!(seen.next(), "apply Service default/b port 2");
    fs::remove_dir_all(directory.file("..1")).unwrap();
    seen.is_silent_for(200);
}

#[test]
fn a_file_that_does_not_parse_keeps_what_it_held_and_says_where_it_is_wrong() {
    let directory = Directory::new("broken");
    directory.write("a.yaml", &service("a", 1));
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    seen.first();
    directory.write("a.yaml", "apiVersion: v1\nkind: Service\nmetadata: [\n");
    let warning = seen.next();
    assert!(warning.contains("a.yaml, document 1, line "), "{warning}");
    assert!(warning.ends_with("a.yaml stay in use"), "{warning}");
    seen.is_silent_for(1500);
    directory.write("a.yaml", &service("a", 2));
    assert_eq!(seen.next(), "apply Service default/a port 2");
}

#[test]
fn what_cannot_be_used_is_told_while_it_cannot_be() {
    let directory = Directory::new("unusable");
    directory.write("a.yaml", "kind: [");
    let mut seen = Seen::of(&[directory.0.clone(), directory.file("later")]);
    let ends = |files: &[String], ends: &[&str]| {
        assert_eq!(files.len(), ends.len(), "{files:?}");
        assert!(files.iter().zip(ends).all(|(file, end)| file.contains(end)), "{files:?}");
    };
    ends(&seen.unusable(), &["a.yaml, document 1, line", "later: No such file"]);
    directory.write("a.yaml", &service("a", 1));
    ends(&seen.unusable(), &["later: No such file"]);
    fs::create_dir(directory.file("later")).unwrap();
    ends(&seen.unusable(), &[]);
    // What has the name of a manifest and is none keeps what it was.
    fs::remove_file(directory.file("a.yaml")).unwrap();
    fs::create_dir(directory.file("a.yaml")).unwrap();
    ends(&seen.unusable(), &["a.yaml: expected a regular file, found a directory; the last objects of"]);
    fs::remove_dir(directory.file("a.yaml")).unwrap();
    ends(&seen.unusable(), &[]);
    // A duplicate has a warning, and its file is used.
    directory.write("b.yaml", &service("b", 1));
    directory.write("c.yaml", &service("b", 2));
    directory.write("d.yaml", "kind: [");
    ends(&seen.unusable(), &["d.yaml, document 1"]);
}

#[test]
fn nothing_is_read_while_a_writer_has_not_closed_the_file() {
    use std::io::Write as _;
    let directory = Directory::new("partial");
    directory.write("a.yaml", &format!("{}---\n{}", service("a", 1), service("b", 1)));
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    seen.first();
    // A first half that would parse: without the wait it would look as if b had been deleted.
    let mut file = fs::File::create(directory.file("a.yaml")).unwrap();
    file.write_all(service("a", 2).as_bytes()).unwrap();
    seen.is_silent_for(600);
    file.write_all(format!("---\n{}", service("b", 2)).as_bytes()).unwrap();
    drop(file);
    assert_eq!(seen.next(), "apply Service default/a port 2");
    assert_eq!(seen.next(), "apply Service default/b port 2");
}

#[test]
fn what_a_file_had_stays_while_a_writer_keeps_it_open_and_others_are_followed_meanwhile() {
    use std::io::Write as _;
    let directory = Directory::new("stalled");
    directory.write("a.yaml", &format!("{}---\n{}", service("a", 1), service("b", 1)));
    directory.write("c.yaml", &service("c", 1));
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    seen.first();
    let mut file = fs::File::create(directory.file("a.yaml")).unwrap();
    file.write_all(service("a", 2).as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(100));
    directory.write("c.yaml", &service("c", 2));
    assert_eq!(seen.next(), "apply Service default/c port 2", "it waits for the other file");
    // After three seconds the first half is used; the second may still come.
    assert_eq!(seen.next(), "apply Service default/a port 2");
    seen.is_silent_for(300);
    file.write_all(format!("---\n{}", service("b", 2)).as_bytes()).unwrap();
    assert_eq!(seen.next(), "apply Service default/b port 2");
    // An empty one says nothing, open or closed. One that is closed with less has lost the rest.
    file.set_len(0).unwrap();
    let warning = seen.next();
    assert!(warning.contains("a.yaml, document 1, line 1: the file is empty"), "{warning}");
    drop(file);
    seen.is_silent_for(300);
    directory.write("a.yaml", &service("b", 2));
    assert_eq!(seen.next(), "delete Service default/a");
}

#[test]
fn an_emptied_file_keeps_its_objects_and_a_removed_one_does_not() {
    let directory = Directory::new("emptied");
    directory.write("a.yaml", &service("a", 1));
    directory.write("b.json", "");
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    assert_eq!(scan(&mut manifests).len(), 1 + Kind::ALL.len());
    for text in ["", "\n \n", "# nothing\n", "---\n", "null\n---\n# nothing"] {
        directory.write("a.yaml", text);
        let updates = described(&scan(&mut manifests));
        assert!(updates.len() <= 1 && updates.iter().all(|update| update.contains("a.yaml")), "{updates:?}");
    }
    // What a file says is taken over.
    directory.write("a.yaml", "apiVersion: v1\nkind: List\nitems: []\n");
    assert_eq!(described(&scan(&mut manifests)), ["delete Service default/a"]);
    directory.write("a.yaml", &service("a", 1));
    assert_eq!(scan(&mut manifests).len(), 1);
    fs::remove_file(directory.file("a.yaml")).unwrap();
    assert_eq!(described(&scan(&mut manifests)), ["delete Service default/a"]);
}

#[test]
fn what_the_next_second_brings_back_is_not_deleted() {
    let (a, both) = (service("a", 1), service("b", 2) + "---\n" + &service("c", 3));
    type Act = fn(&Directory);
    let list = |directory: &Directory| directory.write("b.yaml", "apiVersion: v1\nkind: List\nitems: []\n");
    let cut = |directory: &Directory| directory.write("b.yaml", &service("b", 2));
    let spoilt =
        |directory: &Directory| directory.write("a.yaml", &service("a", 1).replace("10.96.0.1", "10.96"));
    let accidents: [(&str, Act); 9] = [
        ("removed", |directory| fs::remove_file(directory.file("b.yaml")).unwrap()),
        ("renamed", |directory| fs::rename(directory.file("a.yaml"), directory.file("a.bak")).unwrap()),
        ("cut between two documents", cut),
        ("an empty list", list),
        ("an address that is none", spoilt),
        ("an object of another kind", |directory| {
            directory.write("a.yaml", "apiVersion: v1\nkind: Secret\n");
        }),
        ("a link that leads nowhere", |directory| {
            fs::remove_file(directory.file("a.yaml")).unwrap();
            symlink(directory.file("nowhere"), directory.file("a.yaml")).unwrap();
        }),
        ("a directory in its place", |directory| {
            fs::remove_file(directory.file("a.yaml")).unwrap();
            fs::create_dir(directory.file("a.yaml")).unwrap();
        }),
        ("everything", |directory| {
            fs::remove_file(directory.file("a.yaml")).unwrap();
            fs::remove_file(directory.file("b.yaml")).unwrap();
        }),
    ];
    let accident = |happen: fn(&Directory)| {
        let directory = Directory::new("accident");
        directory.write("a.yaml", &a);
        directory.write("b.yaml", &both);
        let mut seen = Seen::of(std::slice::from_ref(&directory.0));
        seen.first();
        let began = Instant::now();
        happen(&directory);
        thread::sleep(delayed::WAIT / 8);
        let _ = fs::remove_dir(directory.file("a.yaml"));
        let _ = fs::remove_file(directory.file("a.yaml"));
        directory.write("a.yaml", &a);
        directory.write("b.yaml", &both);
        (began.elapsed(), directory, seen)
    };
    for (what, happen) in accidents {
        // Where this thread had to stand still, what went has not come back in time.
        let in_time = |took: &Duration| *took < delayed::WAIT * 3 / 4;
        let (_, _directory, mut seen) =
            (0..30).map(|_| accident(happen)).find(|(took, ..)| in_time(took)).expect("a moment of calm");
        thread::sleep(delayed::WAIT * 3 / 2);
        while let Some(update) = seen.try_update() {
            let text = describe(&update);
            assert!(matches!(update, Update::Apply(_) | Update::Warning(_)), "{what}: {text}");
            if let Update::Apply(object) = &update {
                assert!(!format!("{object:?}").contains("\"10.96\""), "{what}: {text}");
            }
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_and_a_directory_in_place_of_a_file_keep_its_objects() {
    let directory = Directory::new("nowhere");
    for name in ["a", "b"] {
        directory.write(&format!("{name}.yaml"), &service(name, 1));
    }
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    seen.first();
    fs::remove_file(directory.file("a.yaml")).unwrap();
    symlink(directory.file("nowhere"), directory.file("a.yaml")).unwrap();
    assert!(seen.next().contains("a.yaml: No such file"));
    fs::remove_file(directory.file("b.yaml")).unwrap();
    fs::create_dir(directory.file("b.yaml")).unwrap();
    assert!(seen.next().contains("b.yaml: expected a regular file, found a directory"));
    seen.is_silent_for(2500);
}

#[test]
fn fields_that_a_kind_does_not_have_are_told_once() {
    let directory = Directory::new("unknown");
    directory.write("a.yaml", &service("a", 1).replace("{port: 1}", "{port: 1, prot: UDP}"));
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    let told = described(&scan(&mut manifests));
    assert!(
        told.iter().any(|update| update.ends_with("no such field: spec.ports[0].prot (the rest is used)")),
        "{told:?}"
    );
    assert_eq!(scan(&mut manifests), []);
    directory.write("a.yaml", &service("a", 12).replace("{port: 12}", "{port: 12, prot: UDP}"));
    assert_eq!(scan(&mut manifests).len(), 2);
    assert!(manifests.is_well());
}

#[test]
fn looking_at_one_file_does_what_a_scan_does() {
    let directory = Directory::new("one-of-many");
    for number in 0..20 {
        directory.write(&format!("{number}.yaml"), &service(&format!("s{number}"), 1));
    }
    directory.write("twice.yaml", &service("s3", 9));
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    scan(&mut manifests);
    let look = |manifests: &mut Manifests, names: &[&str]| {
        let mut updates = Vec::new();
        manifests.look_at(
            &names.iter().map(|name| directory.file(name)).collect(),
            &mut |update| match update {
                Update::Unusable(_) => {}
                update => updates.push(describe(&update)),
            },
        );
        updates
    };
    directory.write("5.yaml", &service("s5", 2));
    directory.write("6.yaml", &service("s6", 2));
    assert_eq!(look(&mut manifests, &["5.yaml"]), ["apply Service default/s5 port 2"]);
    assert_eq!(look(&mut manifests, &["6.yaml", "new.yaml"]), ["apply Service default/s6 port 2"]);
    // Another file has it too.
    fs::remove_file(directory.file("3.yaml")).unwrap();
    assert_eq!(look(&mut manifests, &["3.yaml"]), ["apply Service default/s3 port 9"]);
    assert!(manifests.is_well());
    directory.write("7.yaml", "kind: [");
    let warning = look(&mut manifests, &["7.yaml"]);
    assert!(warning.len() == 1 && warning[0].contains("7.yaml"), "{warning:?}");
    assert_eq!(look(&mut manifests, &["5.yaml"]), [""; 0]);
    assert!(!manifests.is_well());
    fs::remove_file(directory.file("7.yaml")).unwrap();
    assert_eq!(look(&mut manifests, &["7.yaml"]), ["delete Service default/s7"]);
    assert_eq!(scan(&mut manifests), []);
    assert!(manifests.is_well());
}

#[test]
fn a_change_is_read_soon_after_the_file_is_closed_and_what_went_has_a_moment_to_come_back() {
    let directory = Directory::new("soon");
    directory.write("a.yaml", &service("a", 0));
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    seen.first();
    // The shortest of several, as others use this machine.
    let shortest = (1..=20).map(|port| {
        directory.write("a.yaml", &service("a", port));
        let written = Instant::now();
        while seen.0.is_empty() {
            thread::sleep(Duration::from_micros(200));
        }
        let took = written.elapsed();
        assert_eq!(seen.next(), format!("apply Service default/a port {port}"));
        took
    });
    let shortest = shortest.min().unwrap();
    // By the event of the file, and not when the folder is looked at all the same, a second later.
    assert!(shortest < Duration::from_millis(500), "{shortest:?}");

    for port in 21..=40 {
        fs::remove_file(directory.file("a.yaml")).unwrap();
        thread::sleep(2 * QUIET);
        directory.write("a.yaml", &service("a", port));
        let next = seen.next();
        // A machine that stops for a while misses the moment; not each time.
        if next == format!("apply Service default/a port {port}") {
            return;
        }
        assert_eq!(
            (next, seen.next()),
            ("delete Service default/a".into(), format!("apply Service default/a port {port}"))
        );
    }
    panic!("what was written again after 20 ms was told as deleted each time");
}

#[test]
fn a_named_file_or_directory_that_vanishes_keeps_its_objects_until_it_is_back() {
    let directory = Directory::new("vanish");
    fs::create_dir(directory.file("d")).unwrap();
    directory.write("d/a.yaml", &service("a", 1));
    directory.write("one.yaml", &service("one", 1));
    let mut seen = Seen::of(&[directory.file("d"), directory.file("one.yaml")]);
    seen.first();
    fs::rename(directory.file("d"), directory.file("elsewhere")).unwrap();
    let warning = seen.next();
    assert!(warning.starts_with("warning: ") && warning.contains("stay in use"), "{warning}");
    fs::remove_file(directory.file("one.yaml")).unwrap();
    let warning = seen.next();
    assert!(warning.contains("one.yaml") && warning.contains("stay in use"), "{warning}");
    fs::create_dir(directory.file("d")).unwrap();
    directory.write("d/a.yaml", &service("a", 2));
    let back = seen.next();
    // Between its making and its filling the new directory is empty, which may be seen or not.
    let back = if back == "delete Service default/a" { seen.next() } else { back };
    assert_eq!(back, "apply Service default/a port 2");
    directory.write("one.yaml", &service("one", 2));
    assert_eq!(seen.next(), "apply Service default/one port 2");
}

#[test]
fn nothing_is_listed_before_everything_could_be_read() {
    let directory = Directory::new("start");
    directory.write("a.yaml", &service("a", 1));
    directory.write("b.yaml", "kind: [");
    let mut seen = Seen::of(&[directory.0.clone(), directory.file("later")]);
    assert_eq!(seen.next(), "apply Service default/a port 1");
    let warnings = [seen.next(), seen.next()];
    assert!(warnings[0].contains("b.yaml, document 1, line "), "{warnings:?}");
    assert!(
        warnings[1].contains("later: No such file or directory (os error 2); nothing is programmed before"),
        "{warnings:?}"
    );
    seen.is_silent_for(300);
    directory.write("b.yaml", &service("b", 1));
    assert_eq!(seen.next(), "apply Service default/b port 1");
    seen.is_silent_for(300);
    fs::create_dir(directory.file("later")).unwrap();
    assert_eq!(seen.first(), Kind::ALL.map(|kind| format!("all of {kind}: ")));
}

#[test]
fn of_an_object_that_two_files_have_the_first_is_used_and_the_second_when_that_is_gone() {
    let directory = Directory::new("twice");
    directory.write("a.yaml", &service("same", 1));
    directory.write("b.yaml", &service("same", 2));
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    assert_eq!(seen.next(), "apply Service default/same port 1");
    let warning = seen.next();
    assert!(warning.contains("b.yaml, document 1, line 1: Service default/same is a duplicate"), "{warning}");
    seen.first();
    fs::remove_file(directory.file("a.yaml")).unwrap();
    assert_eq!(seen.next(), "apply Service default/same port 2");
    seen.is_silent_for(200);
}

#[test]
fn without_inotify_changes_are_found_all_the_same() {
    let directory = Directory::new("no-inotify");
    directory.write("a.yaml", &service("a", 80));
    let (sender, receiver) = mpsc::channel(1000);
    let paths = vec![directory.0.clone()];
    thread::spawn(move || follow(&paths, &sender, || Err(Errno::EMFILE)));
    let mut seen = Seen(receiver);
    let warning = seen.next();
    assert!(warning.contains("watching files with inotify: Too many open files"), "{warning}");
    seen.first();
    directory.write("a.yaml", &service("a", 81));
    assert_eq!(seen.next(), "apply Service default/a port 81");
}

#[test]
fn events_of_other_files_do_not_hold_up_a_deadline() {
    let directory = Directory::new("others");
    let mut watches = Watches::new(std::slice::from_ref(&directory.0));
    let open = || Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC);
    assert_eq!(watches.renew(std::slice::from_ref(&directory.0), &open), None);
    let done = std::sync::atomic::AtomicBool::new(false);
    let took = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                directory.write("other.txt", "x");
            }
        });
        let began = Instant::now();
        assert!(!watches.read(began + Duration::from_millis(300)));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        began.elapsed()
    });
    assert!(took < Duration::from_secs(30), "{took:?}");
}

/// A file with so many services.
fn many(count: usize) -> String {
    (0..count).map(|n| service(&format!("s{n}"), 80) + "---\n").collect()
}

fn scan(manifests: &mut Manifests) -> Vec<Update> {
    let mut updates = Vec::new();
    manifests.scan(&mut |update| match update {
        // It only follows warnings.
        Update::Unusable(_) => {}
        update => updates.push(update),
    });
    updates
}

fn described(updates: &[Update]) -> Vec<String> {
    updates.iter().map(describe).collect()
}

#[test]
fn most_of_all_services_are_deleted_only_after_a_second_look() {
    let directory = Directory::new("shrinks");
    directory.write("all.yaml", &many(30));
    directory.write("more.yaml", &service("more", 81));
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    assert_eq!(scan(&mut manifests).len(), 31 + Kind::ALL.len());
    fs::remove_file(directory.file("all.yaml")).unwrap();
    let warning = "warning: 30 of 31 Services are gone from the manifests at once; looking again in 5s before \
                   they are deleted";
    assert_eq!(described(&scan(&mut manifests)), [warning]);
    assert!(!manifests.is_well(), "it is looked at often");
    // Others change meanwhile.
    directory.write("more.yaml", &service("more", 82));
    assert_eq!(described(&scan(&mut manifests)), ["apply Service default/more port 82"]);
    // It comes back, without one.
    directory.write("all.yaml", &many(29));
    assert_eq!(scan(&mut manifests).len(), 29);
    manifests.pending.as_mut().unwrap().since -= SECOND_LOOK;
    let deleted = [
        "warning: 1 object is still gone from the manifests, and is deleted now",
        "delete Service default/s29",
    ];
    assert_eq!(described(&scan(&mut manifests)), deleted);
    assert!(manifests.is_well());
    // It stays away.
    fs::remove_file(directory.file("all.yaml")).unwrap();
    assert_eq!(scan(&mut manifests).len(), 1);
    manifests.pending.as_mut().unwrap().since -= SECOND_LOOK;
    assert_eq!(scan(&mut manifests).len(), 1 + 29);
    assert_eq!(scan(&mut manifests), []);
}

#[test]
fn half_of_the_services_are_deleted_at_once() {
    let directory = Directory::new("halves");
    directory.write("a.yaml", &many(15));
    directory.write("b.yaml", &many(30));
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    scan(&mut manifests);
    fs::remove_file(directory.file("b.yaml")).unwrap();
    assert_eq!(scan(&mut manifests).len(), 15);
}

/// A text that is for others to read, long enough for a large file.
fn rest() -> String {
    let long = "x".repeat(usize::try_from(LARGE).unwrap());
    format!("kind: ConfigMap\napiVersion: v1\ndata: {{text: {long}}}\n---\n")
}

/// Scans, and takes the large file that is read then to its end.
fn scan_all(manifests: &mut Manifests) -> Vec<Update> {
    let mut updates = scan(manifests);
    while manifests.is_reading() {
        if manifests.proceed(&mut |update| updates.push(update)) == ReadProgress::End {
            updates.extend(scan(manifests));
        }
        thread::yield_now();
    }
    updates
}

fn deleted(updates: &[String]) -> usize {
    updates.iter().filter(|update| update.starts_with("delete")).count()
}

#[test]
fn a_large_file_is_taken_over_when_all_of_it_can_be_read() {
    let directory = Directory::new("large");
    let rest = rest();
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    directory.write("large.yaml", &(many(20) + &rest + "kind: ["));
    let updates = described(&scan(&mut manifests));
    assert!(updates.len() == 1 && updates[0].contains("large.yaml, document 22, line "), "{updates:?}");

    directory.write("large.yaml", &(many(20) + &rest));
    assert_eq!(scan(&mut manifests).len(), 20 + Kind::ALL.len(), "the first time it is read at once");
    directory.write("other.yaml", &service("s0", 90));
    let updates = described(&scan(&mut manifests));
    assert!(updates.len() == 1 && updates[0].contains("s0 is a duplicate"), "{updates:?}");

    directory.write("large.yaml", &(many(20) + &rest + "kind: ["));
    let updates = described(&scan_all(&mut manifests));
    assert!(updates.len() == 1 && updates[0].contains("stay in use"), "{updates:?}");
    assert_eq!(scan_all(&mut manifests), [], "it is not read again");

    directory.write("large.yaml", &(service("new", 80) + "---\n" + &many(20).replace("s0", "s20") + &rest));
    let updates = described(&scan_all(&mut manifests));
    let changed = ["apply Service default/new port 80", "apply Service default/s20 port 80"];
    assert_eq!(updates[..2], changed);
    assert_eq!(updates[2..], ["apply Service default/s0 port 90"], "the one in the other file");

    directory.write("large.yaml", &(many(15) + &rest));
    let updates = described(&scan_all(&mut manifests));
    assert_eq!((updates.len(), deleted(&updates)), (1 + 7, 7), "{updates:?}");
    assert!(updates[0].contains("s0 is a duplicate"), "{updates:?}");
}

#[test]
fn other_files_are_followed_while_a_large_one_is_read() {
    let directory = Directory::new("meanwhile");
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    directory.write("small.yaml", &service("small", 1));
    scan(&mut manifests);
    let count = 4 * STEPS;
    directory.write("large.yaml", &(many(count) + &rest()));
    assert_eq!(scan(&mut manifests), [], "it is being read");
    let mut updates = Vec::new();
    while updates.is_empty() {
        assert_ne!(manifests.proceed(&mut |update| updates.push(update)), ReadProgress::End);
    }
    assert!(updates.len() < STEPS, "{}", updates.len());
    directory.write("small.yaml", &service("small", 2));
    assert_eq!(described(&scan(&mut manifests)), ["apply Service default/small port 2"]);
    // A second large file waits for its turn, and what it has for the first one.
    directory.write("more.yaml", &(service("s0", 81) + "---\n" + &service("more", 81) + "---\n" + &rest()));
    assert_eq!(scan(&mut manifests), []);
    updates.extend(scan_all(&mut manifests));
    let updates = described(&updates);
    assert_eq!(updates.len(), count + 2, "{:?}", updates.last());
    assert_eq!(updates[count], "apply Service default/more port 81");
    assert!(updates[count + 1].contains("s0 is a duplicate"), "{:?}", updates.last());

    // What one loses while the other is read stays until it is told whether that has it.
    directory.write("more.yaml", &(service("s0", 81) + "---\n" + &rest()));
    assert_eq!(scan(&mut manifests), []);
    directory.write("large.yaml", &(many(count).replace("name: s0}", "name: t0}") + &rest()));
    let updates = described(&scan_all(&mut manifests));
    assert_eq!(
        updates[..],
        [
            "delete Service default/more",
            "apply Service default/t0 port 80",
            "apply Service default/s0 port 81"
        ]
    );
}

#[test]
fn a_large_file_that_changes_while_it_is_read_is_read_anew() {
    let directory = Directory::new("anew");
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    directory.write("large.yaml", &(service("old", 80) + "---\n" + &rest()));
    scan(&mut manifests);
    let text = many(3 * STEPS) + &rest();
    directory.write("large.yaml", &text);
    let mut updates = scan(&mut manifests);
    while updates.is_empty() {
        assert_ne!(manifests.proceed(&mut |update| updates.push(update)), ReadProgress::End);
    }
    assert_eq!(describe(&updates[0]), "apply Service default/s0 port 80");
    // Nothing that was taken of the first content is forgotten, nor what was there before.
    directory.write("large.yaml", &text.replace("name: s0}", "name: t0}").replace("port: 80", "port: 81"));
    let updates = described(&scan_all(&mut manifests));
    let applied = updates.iter().filter(|update| update.ends_with("port 81")).count();
    assert_eq!((applied, deleted(&updates), updates.len()), (3 * STEPS, 2, 3 * STEPS + 2));
    directory.write("large.yaml", &text.replace("port: 80", "port: 81"));
    let updates = described(&scan_all(&mut manifests));
    assert_eq!(updates, ["apply Service default/s0 port 81", "delete Service default/t0"]);
    // It goes while it is read.
    directory.write("large.yaml", &text);
    scan(&mut manifests);
    fs::remove_file(directory.file("large.yaml")).unwrap();
    scan(&mut manifests);
    manifests.pending.as_mut().unwrap().since -= SECOND_LOOK;
    assert_eq!(deleted(&described(&scan_all(&mut manifests))), 3 * STEPS);
}

#[test]
fn changes_arrive_between_the_steps_of_a_large_file() {
    let directory = Directory::new("between");
    directory.write("small.yaml", &service("small", 1));
    let (sender, receiver) = mpsc::channel(1);
    let paths = vec![directory.0.clone()];
    thread::spawn(move || watch(&paths, &sender));
    let mut seen = Seen(receiver);
    seen.first();
    directory.write("large.yaml", &(many(40 * STEPS) + &rest()));
    assert_eq!(seen.next(), "apply Service default/s0 port 80");
    directory.write("small.yaml", &service("small", 2));
    // No more is passed on than one round, what the channel holds, and what waits to be sent; another round
    // where the first one ended with the file.
    let later = (0..40 * STEPS).position(|_| seen.next() == "apply Service default/small port 2");
    assert!(later.is_some_and(|later| later <= 2 * STEPS + 2), "{later:?}");
}

/// Otherwise both would claim the address until the end of the file, and a second beyond.
#[test]
fn what_takes_the_place_of_another_in_a_large_file_comes_after_its_deletion() {
    let directory = Directory::new("place");
    let web = |name: &str| {
        format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, spec: {{clusterIP: 10.96.0.1, ports: \
             [{{port: 80}}]}}}}\n---\n"
        )
    };
    let others = many(2 * STEPS) + &rest();
    directory.write("large.yaml", &(web("a") + &others));
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    seen.first();
    directory.write("large.yaml", &(web("b") + &others.replacen("port: 80", "port: 81", 1)));
    let expected =
        ["apply Service default/s0 port 81", "delete Service default/a", "apply Service default/b port 80"];
    assert_eq!([seen.next(), seen.next(), seen.next()], expected);
    seen.is_silent_for(100);
}

#[test]
fn only_documents_that_changed_are_parsed_and_told() {
    let directory = Directory::new("documents");
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    directory.write("a.yaml", &many(100));
    scan(&mut manifests);
    directory.write("a.yaml", &many(100).replace("name: s7}", "name: t7}"));
    let updates = described(&scan(&mut manifests));
    assert_eq!(updates, ["delete Service default/s7", "apply Service default/t7 port 80"]);
    // Others may have moved.
    directory.write("a.yaml", &("# a comment\n---\n".to_owned() + &many(100)));
    let updates = described(&scan(&mut manifests));
    assert_eq!(updates, ["delete Service default/t7", "apply Service default/s7 port 80"]);
    directory.write("a.yaml", &many(100));
    assert_eq!(scan(&mut manifests), []);
    // Of two objects of one name the first is used, also when they change places.
    let (one, two) = (service("twice", 1), service("twice", 2));
    directory.write("a.yaml", &(many(100) + &one + "---\n" + &two));
    let updates = described(&scan(&mut manifests));
    assert!(
        updates[0].contains("document 102, line 506: Service default/twice is a duplicate"),
        "{updates:?}"
    );
    assert_eq!(updates[1], "apply Service default/twice port 1");
    directory.write("a.yaml", &(many(100) + &two + "---\n" + &one));
    let updates = described(&scan(&mut manifests));
    assert_eq!(updates.last().unwrap(), "apply Service default/twice port 2");
    directory.write("a.yaml", &(many(100) + &one));
    assert_eq!(described(&scan(&mut manifests)), ["apply Service default/twice port 1"]);
}
