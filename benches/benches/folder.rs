//! A folder of manifests, one file a service: how long a change of one file takes until its object is told,
//! and what processor time it costs. The wait of 10 ms for a moment without events is part of the former.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use benches::manifests::{service, slice};
use benches::record::{Unit, keep};
use benches::timing::{is_measuring, process_time};
use sluicegate_proxier::source;
use sluicegate_proxier::source::update::{Kind, Update};
use tokio::sync::mpsc::{self, Receiver};

fn main() {
    let (sizes, rounds): (&[u32], u32) =
        if is_measuring() { (&[100, 1_000, 10_000], 21) } else { (&[10], 1) };
    for size in sizes {
        let folder = Folder::new(*size);
        let (sender, mut updates) = mpsc::channel(1024);
        let paths = vec![folder.0.clone()];
        thread::spawn(move || source::watch(&paths, &sender));
        until(&mut updates, |update| *update == Update::Listed(Kind::Service));
        let (mut told, mut busy) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let index = round * (size / rounds).max(1) % size;
            let (began, before) = (Instant::now(), process_time());
            folder.write(index, 1 + round);
            until(&mut updates, |update| matches!(update, Update::Apply(_)));
            told.push(began.elapsed().as_secs_f64() * 1e9);
            busy.push((process_time() - before).as_secs_f64() * 1e9);
        }
        println!("{size} files:");
        for (what, mut samples) in [("until it is told", told), ("processor time", busy)] {
            keep(AREA, "change a file", what, *size, Unit::Nanoseconds, &samples);
            samples.sort_by(f64::total_cmp);
            println!("  {what}: {:.2} ms", samples[samples.len() / 2] / 1e6);
        }
    }
}

/// Takes updates until one that is asked for.
fn until(updates: &mut Receiver<Update>, is_it: impl Fn(&Update) -> bool) {
    while !is_it(&updates.blocking_recv().expect("the watch goes on")) {}
}

/// A directory with a file for each service and its slice, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(files: u32) -> Self {
        let path = std::env::temp_dir().join(format!("sluicegate-bench-folder-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        let folder = Self(path);
        (0..files).for_each(|index| folder.write(index, 0));
        folder
    }

    fn write(&self, index: u32, version: u32) {
        let text = format!("{}---\n{}", service(index), slice(index, version));
        fs::write(Path::new(&self.0).join(format!("{index}.yaml")), text).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left in the directory of temporary files harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

const AREA: &str = "folder";
