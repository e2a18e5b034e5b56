//! The answers of the guide's ten tasks print what the page shows.
//!
//! `SLUICEGATE_UPDATE=1 cargo test -p sluicegate-cookbook` writes what they print to the page: read the
//! change before it is committed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::links::root;

/// The page.
fn page() -> PathBuf {
    root().join("guide/ten-tasks.md")
}

/// Returns the blocks of a language, with the offsets where each begins and ends in the text.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<(usize, usize, &'t str)> {
    let fence = format!("\n```{language}\n");
    let from = text.match_indices(&fence).map(|(at, fence)| at + fence.len());
    from.map(|from| {
        let block = &text[from..];
        // An empty block ends where it begins.
        let end = if block.starts_with("```") { 0 } else { block.find("\n```").expect("a fence") + 1 };
        (from, from + end, &block[..end])
    })
    .collect()
}

/// Makes a directory with links to the programs, as a reader has it. `None` where one is not built: the tests
/// of the workspace build all.
fn programs(directory: &Path) -> Option<()> {
    let built = Path::new(env!("CARGO_BIN_EXE_sluicegate-cookbook")).parent().expect("a folder");
    for name in ["sluicegate-cookbook", "sluicegate-proxier", "sluicegate-tools"] {
        let program = built.join(name);
        if !program.is_file() {
            testns::skip(&format!("not built: {name} (`cargo build --workspace --bins`)"));
            return None;
        }
        symlink(program, directory.join(name)).expect("a link");
    }
    let install = Command::new(directory.join("sluicegate-tools")).arg("install").arg(directory).output();
    assert!(install.is_ok_and(|output| output.status.success()), "the links of the tools");
    Some(())
}

/// Runs an answer in a namespace and a directory of its own, and returns all that it prints.
fn run(answer: &str, manifests: &str, number: usize) -> Option<String> {
    let directory = std::env::temp_dir().join(format!("sluicegate-task-{}-{number}", std::process::id()));
    let bin = directory.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let printed = programs(&bin).map(|()| {
        fs::write(directory.join("web.yaml"), manifests).expect("web.yaml");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        // As on a terminal: what goes wrong is among what is printed.
        shell.args(["-e", "-c", &format!("exec 2>&1\n{answer}")]).env("PATH", path).current_dir(&directory);
        let output = shell.env_remove("COLUMNS").output().expect("a shell");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success(), "task {number}: {}: {text}", output.status);
        text
    });
    fs::remove_dir_all(&directory).expect("the folder");
    printed
}

#[test]
fn the_answers_print_what_the_page_shows() {
    let text = fs::read_to_string(page()).expect("the page");
    let (answers, shown) = (blocks(&text, "sh"), blocks(&text, "text"));
    assert_eq!((answers.len(), shown.len()), (10, 10), "each task has an answer and what it prints");
    let manifests = blocks(&text, "yaml")[0].2;
    let mut updated = text.clone();
    let mut wrong = Vec::new();
    // From the last, as the offsets of those before stay.
    for (number, ((_, _, answer), (from, to, shown))) in answers.iter().zip(&shown).enumerate().rev() {
        let Some(namespace) = testns::Netns::new() else { return };
        let Some(printed) = namespace.run(|| run(answer, manifests, number + 1)) else { return };
        if printed != *shown {
            updated.replace_range(from..to, &printed);
            wrong.push(format!("task {}:\n{printed}", number + 1));
        }
    }
    if std::env::var_os("SLUICEGATE_UPDATE").is_some() {
        fs::write(page(), updated).expect("the page");
    } else {
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn blocks_are_found_by_their_language() {
    let text = "a\n```sh\nx\ny\n```\n\n```text\n```\n```sh,install\nz\n```\n";
    assert_eq!(blocks(text, "sh"), [(8, 12, "x\ny\n")]);
    assert_eq!(blocks(text, "text").iter().map(|(.., block)| *block).collect::<Vec<_>>(), [""]);
}
