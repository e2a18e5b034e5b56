//! Files on disk that change in all the ways that files change.

use std::os::unix::fs::symlink;

use tokio::sync::mpsc::{self, Receiver};

use super::*;

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
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            if let Ok(update) = self.0.try_recv() {
                return describe(&update);
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("nothing is seen");
    }

    /// The first lists, of which there is one for each kind.
    fn first(&mut self) -> Vec<String> {
        Kind::ALL.map(|_| self.next()).into()
    }

    fn is_silent_for(&mut self, ms: u64) {
        thread::sleep(Duration::from_millis(ms));
        if let Ok(update) = self.0.try_recv() {
            panic!("{}", describe(&update));
        }
    }
}

fn describe(update: &Update) -> String {
    let object = |object: &Object| match object {
        Object::Service(service) => {
            let port = service.spec.as_ref().and_then(|spec| Some(spec.ports.as_ref()?.first()?.port));
            format!("{} port {}", ObjectName::of(object), port.unwrap_or_default())
        }
        _ => ObjectName::of(object).to_string(),
    };
    match update {
        Update::Apply(applied) => format!("apply {}", object(applied)),
        Update::Delete(name) => format!("delete {name}"),
        Update::Replace(kind, objects) => {
            format!("all of {kind}: {}", objects.iter().map(object).collect::<Vec<_>>().join(", "))
        }
        Update::Warning(warning) => format!("warning: {warning}"),
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
    let warnings = [seen.next(), seen.next()];
    assert!(warnings[0].contains("b.yaml, document 1, line "), "{warnings:?}");
    assert!(warnings[1].ends_with("later: No such file or directory (os error 2)"), "{warnings:?}");
    seen.is_silent_for(300);
    directory.write("b.yaml", &service("b", 1));
    seen.is_silent_for(300);
    fs::create_dir(directory.file("later")).unwrap();
    assert!(seen.first()[3].ends_with("Service default/a port 1, Service default/b port 1"));
}

#[test]
fn of_an_object_that_two_files_have_the_first_is_used_and_the_second_when_that_is_gone() {
    let directory = Directory::new("twice");
    directory.write("a.yaml", &service("same", 1));
    directory.write("b.yaml", &service("same", 2));
    let mut seen = Seen::of(std::slice::from_ref(&directory.0));
    let warning = seen.next();
    assert!(warning.contains("b.yaml, document 1, line 1: Service default/same is a duplicate"), "{warning}");
    assert!(seen.first()[3].ends_with("default/same port 1"));
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
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// A file with so many services.
fn many(count: usize) -> String {
    (0..count).map(|n| service(&format!("s{n}"), 80) + "---\n").collect()
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
    assert_eq!(manifests.scan().len(), Kind::ALL.len());
    // The file becomes a directory.
    fs::remove_file(directory.file("all.yaml")).unwrap();
    fs::create_dir(directory.file("all.yaml")).unwrap();
    let warning = "warning: 30 of 31 Services are gone from the manifests at once; looking again in 5s before \
                   they are deleted";
    assert_eq!(described(&manifests.scan()), [warning]);
    assert!(!manifests.is_well(), "it is looked at often");
    // Others change meanwhile.
    directory.write("more.yaml", &service("more", 82));
    assert_eq!(described(&manifests.scan()), ["apply Service default/more port 82"]);
    // It comes back, without one.
    fs::remove_dir(directory.file("all.yaml")).unwrap();
    directory.write("all.yaml", &many(29));
    assert_eq!(manifests.scan().len(), 29);
    manifests.doubted.as_mut().unwrap().since -= SECOND_LOOK;
    let deleted = [
        "warning: 1 object is still gone from the manifests, and is deleted now",
        "delete Service default/s29",
    ];
    assert_eq!(described(&manifests.scan()), deleted);
    assert!(manifests.is_well());
    // It stays away.
    directory.write("all.yaml", "");
    assert_eq!(manifests.scan().len(), 1);
    manifests.doubted.as_mut().unwrap().since -= SECOND_LOOK;
    assert_eq!(manifests.scan().len(), 1 + 29);
    assert_eq!(manifests.scan(), []);
}

#[test]
fn half_of_the_services_are_deleted_at_once() {
    let directory = Directory::new("halves");
    directory.write("a.yaml", &many(15));
    directory.write("b.yaml", &many(30));
    let mut manifests = Manifests::new(vec![directory.0.clone()]);
    manifests.scan();
    fs::remove_file(directory.file("b.yaml")).unwrap();
    assert_eq!(manifests.scan().len(), 15);
}
