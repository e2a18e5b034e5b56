//! The files of a release beside the packages, and what must be so before one: RELEASING.md has the steps.
//!
//! The check `package` asks [`inconsistencies`], and the check `image` has [`gather`] make the files of the
//! program that it built, so that each step was made before somebody needs it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::children;
use crate::session::{Session, on_path, shown};

/// Returns what is wrong with the versions, the order and the changelog of a release.
pub(crate) fn inconsistencies(session: &Session) -> Result<Vec<String>, String> {
    let changelog = fs::read_to_string(session.root.join("CHANGELOG.md"))
        .map_err(|error| format!("CHANGELOG.md: {error}"))?;
    let packages: Vec<_> = session.published().collect();
    let mut wrong = inconsistencies_of(&packages, &changelog);
    // Whoever has no tags has no release to compare with.
    let mut git = Command::new("git");
    git.current_dir(&session.root).args(["tag", "--list", "v*"]).stderr(Stdio::null());
    if let Ok(tags) = output(&mut git)
        && let Some(version) = packages.first().and_then(|package| package["version"].as_str())
        && tags.lines().any(|tag| tag == format!("v{version}"))
        && changelog.contains("(unreleased)")
    {
        wrong.push(format!("v{version} is a tag, and CHANGELOG.md says that it is not released"));
    }
    Ok(wrong)
}

/// Compares the packages with each other and with the changelog.
fn inconsistencies_of(packages: &[&Value], changelog: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut wrong = Vec::new();
    let versions: BTreeSet<_> = packages.iter().map(|package| text(&package["version"])).collect();
    let [version] = &versions.iter().collect::<Vec<_>>()[..] else {
        return vec![format!("the packages have one version, found {versions:?}")];
    };
    let names: BTreeSet<_> = packages.iter().map(|package| text(&package["name"])).collect();
    for package in packages {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let (name, is_dev) = (text(&dependency["name"]), dependency["kind"] == "dev");
            let ours = name.starts_with("sluicegate-");
            // Cargo leaves out of a published manifest what is for tests and has no version.
            if ours && !is_dev && !names.contains(&name) {
                wrong.push(format!("{} needs {name}, which is not published", text(&package["name"])));
            }
            if ours && names.contains(&name) && !is_dev && dependency["req"] != format!("^{version}") {
                let found = text(&dependency["req"]);
                wrong.push(format!("{} needs {name} {found}, not {version}", text(&package["name"])));
            }
        }
    }
    if let Err(left) = order(packages) {
        wrong.push(format!("no order in which to publish {left:?}: each needs another"));
    }
    let section = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap_or_default();
    if section.split(' ').next() != Some(version.as_str()) {
        wrong.push(format!("the first section of CHANGELOG.md is of {version}, found {section:?}"));
    }
    wrong
}

/// Returns the packages in an order in which each comes after those that it needs, or those for which there
/// is none.
fn order(packages: &[&Value]) -> Result<Vec<String>, Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut left: Vec<_> = packages.to_vec();
    let mut ordered: Vec<String> = Vec::new();
    while !left.is_empty() {
        let names: BTreeSet<_> = left.iter().map(|package| text(&package["name"])).collect();
        let waits = |package: &Value| {
            let needed = package["dependencies"].as_array().into_iter().flatten();
            needed.filter(|of| of["kind"] != "dev").any(|of| names.contains(&text(&of["name"])))
        };
        let (later, now): (Vec<_>, Vec<_>) = left.into_iter().partition(|package| waits(package));
        if now.is_empty() {
            return Err(names.into_iter().collect());
        }
        ordered.extend(now.iter().map(|package| text(&package["name"])));
        left = later;
    }
    Ok(ordered)
}

/// Writes the files of a release into `release-files` of the target directory: each program and its image, with what it
/// prints for packages (man pages, completion), the documents that the images have, and the checksums of all.
pub(crate) fn gather(
    session: &Session,
    programs: &[(&Path, &Path)],
    documents: &[(String, Vec<u8>)],
) -> Result<PathBuf, String> {
    let directory = session.target().join("release-files");
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(|error| failed(&directory, error))?;
    }
    fs::create_dir_all(&directory).map_err(|error| failed(&directory, error))?;
    let write = |name: &str, content: &[u8]| {
        let path = directory.join(name);
        let folder = path.parent().unwrap_or(&directory);
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        fs::write(&path, content).map_err(|error| failed(&path, error))
    };
    for (name, content) in documents {
        write(name, content)?;
    }
    for (program, image) in programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (from, to) in [(program, name.as_str()), (image, &format!("{name}.tar"))] {
            let to = directory.join(to);
            fs::copy(from, &to).map_err(|error| failed(&to, error))?;
        }
        let pages = pages(program)?;
        for (page, content) in &pages {
            write(page, content)?;
        }
        let scripts = pages.iter().filter(|(page, _)| page.starts_with("completions/"));
        for (script, _) in scripts {
            let shell = shell_of(script);
            // Not every shell is everywhere; bash is.
            if shell == "bash" || on_path(shell) {
                session.run(Command::new(shell).arg("-n").arg(directory.join(script)))?;
            }
        }
    }
    let mut sums = Command::new("sh");
    // Of a file that is empty something went wrong before.
    let script = "[ -z \"$(find . -type f -empty)\" ] && \
                  find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > ../release-sums && \
                  mv ../release-sums SHA256SUMS && sha256sum --quiet --check SHA256SUMS";
    session.run(sums.current_dir(&directory).args(["-c", script]))?;
    Ok(directory)
}

/// Returns the man pages and completions that a program prints, by the names that systems look for.
pub(crate) fn pages(program: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let said = |words: &[&str]| output(Command::new(program).args(words)).map(String::into_bytes);
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut pages = vec![(format!("man1/{name}.1"), said(&["man"])?)];
    // A program of tools has no subcommands: the tools have pages of their own, of whoever wrote them.
    for subcommand in subcommands(&String::from_utf8_lossy(&said(&["--help"])?)) {
        pages.push((format!("man1/{name}-{subcommand}.1"), said(&["man", &subcommand])?));
    }
    // The function that zsh loads has the name of its file.
    let scripts = [("bash", name.clone()), ("zsh", format!("_{name}")), ("fish", format!("{name}.fish"))];
    for (shell, file) in scripts {
        pages.push((format!("completions/{file}"), said(&["completions", shell])?));
    }
    Ok(pages)
}

/// Returns where a system has a file of [`pages`], below `/usr/share`.
pub(crate) fn installed(page: &str) -> String {
    let Some(script) = page.strip_prefix("completions/") else { return format!("man/{page}") };
    match shell_of(page) {
        "fish" => format!("fish/vendor_completions.d/{script}"),
        "zsh" => format!("zsh/site-functions/{script}"),
        _ => format!("bash-completion/completions/{script}"),
    }
}

/// Returns the shell that reads a script of [`pages`].
fn shell_of(script: &str) -> &'static str {
    if script.ends_with(".fish") {
        "fish"
    } else if script.starts_with("completions/_") {
        "zsh"
    } else {
        "bash"
    }
}

/// Returns the subcommands that a help of clap lists.
fn subcommands(help: &str) -> Vec<String> {
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A description goes on below, further to the right.
    let words = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    words.filter(|word| !word.is_empty() && *word != "help").map(str::to_owned).collect()
}

fn output(command: &mut Command) -> Result<String, String> {
    command.stdout(Stdio::piped());
    let output = children::output(command).map_err(|error| format!("{}: {error}", shown(command)))?;
    if !output.status.success() {
        return Err(format!("`{}`: {}", shown(command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("`{}`: {error}", shown(command)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, version: &str, needs: &[(&str, &str)]) -> Value {
        let needs: Vec<_> = needs.iter().map(|(name, req)| json!({"name": name, "req": req})).collect();
        json!({"name": name, "version": version, "dependencies": needs})
    }

    #[test]
    fn packages_of_one_version_have_an_order() {
        let (upper, lower) = (
            package("sluicegate-b", "1.2.3", &[("sluicegate-a", "^1.2.3"), ("serde", "^1")]),
            package("sluicegate-a", "1.2.3", &[]),
        );
        assert_eq!(inconsistencies_of(&[&upper, &lower], "# Changelog\n\n## 1.2.3 (unreleased)\n"), [""; 0]);
        assert_eq!(order(&[&upper, &lower]).unwrap(), ["sluicegate-a", "sluicegate-b"]);
    }

    #[test]
    fn what_would_stop_a_release_is_told() {
        let a = package("sluicegate-a", "1.2.3", &[("sluicegate-b", "^1.2.2"), ("sluicegate-c", "^1.2.3")]);
        let b = package("sluicegate-b", "1.2.3", &[("sluicegate-a", "^1.2.3")]);
        let wrong = inconsistencies_of(&[&a, &b], "## 1.2.2\n").join("\n");
        for expected in [
            "sluicegate-a needs sluicegate-b ^1.2.2, not 1.2.3",
            "sluicegate-a needs sluicegate-c, which is not published",
            "no order in which to publish",
            "the first section of CHANGELOG.md is of 1.2.3, found \"1.2.2\"",
        ] {
            assert!(wrong.contains(expected), "{expected}: {wrong}");
        }
        let other = package("sluicegate-b", "1.2.4", &[]);
        assert!(inconsistencies_of(&[&a, &other], "").join("").contains("one version"));
    }

    #[test]
    fn pages_are_installed_where_systems_look_for_them() {
        for (page, place) in [
            ("man1/p-run.1", "man/man1/p-run.1"),
            ("completions/p", "bash-completion/completions/p"),
            ("completions/_p", "zsh/site-functions/_p"),
            ("completions/p.fish", "fish/vendor_completions.d/p.fish"),
        ] {
            assert_eq!(installed(page), place);
        }
    }

    #[test]
    fn subcommands_are_those_of_the_help() {
        let help = "What it is\n\nCommands:\n  render  Print\n          more\n  help    Print this\n\nOptions:\n  -h\n";
        assert_eq!(subcommands(help), ["render"]);
    }
}
