//! `cargo xtask book`: the guide as a site, by mdBook, and no link in it that leads nowhere.
//!
//! The links are checked here, in the HTML that was made, and not by a checker for mdBook: those that are kept would
//! be compiled from source beside mdBook, with a client for HTTP, to look at files on a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::session::{Session, works};

/// The version that the pages were looked at with.
const VERSION: &str = "0.5.4";

/// Builds the site in `target/book`, and fails if a link in it is broken.
pub(crate) fn build(session: &Session) -> Result<(), String> {
    if !works("mdbook", &["--version"]) {
        return Err(format!(
            "mdbook is not installed: `cargo install --locked mdbook@{VERSION}` compiles it in some minutes, or take \
             the archive of that release"
        ));
    }
    let site = session.target().join("book");
    session.run(
        Command::new("mdbook").current_dir(&session.root).args(["build", "guide", "--dest-dir"]).arg(&site),
    )?;
    let mut pages = BTreeMap::new();
    read(&site, &mut pages)?;
    let (links, broken) = check(&site, &pages);
    if !broken.is_empty() {
        return Err(format!("broken links:\n{}", broken.join("\n")));
    }
    println!("{} pages, {links} links, none broken: {}", pages.len(), site.join("index.html").display());
    Ok(())
}

/// Reads all pages of a folder and those below.
fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            read(&path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            let text = fs::read_to_string(&path).map_err(failed)?;
            pages.insert(path, text);
        }
    }
    Ok(())
}

/// Returns the number of links within the site, and what is wrong with some.
fn check(site: &Path, pages: &BTreeMap<PathBuf, String>) -> (usize, Vec<String>) {
    let anchors: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(page, text)| (page.as_path(), values(text, " id=\"").collect())).collect();
    let (mut links, mut broken) = (0, Vec::new());
    for (page, text) in pages {
        // All chapters on one page, whose links lead to the others; and the page for what is not found, whose links
        // begin where the site will be.
        if page.ends_with("print.html") || page.ends_with("404.html") {
            continue;
        }
        for link in values(text, " href=\"").chain(values(text, " src=\"")) {
            if link.contains(':') || link.starts_with('/') {
                continue;
            }
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = file.split('?').next().unwrap_or_default();
            let target = match file {
                "" => page.clone(),
                file => tidy(&page.parent().unwrap_or(site).join(file)),
            };
            let is_there = match anchors.get(target.as_path()) {
                Some(known) => anchor.is_empty() || known.contains(anchor),
                None => target.is_file(),
            };
            if !is_there {
                broken.push(format!("{}: {link}", page.strip_prefix(site).unwrap_or(page).display()));
            }
        }
    }
    (links, broken)
}

/// The values of an attribute.
fn values<'t>(text: &'t str, attribute: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next())
}

/// The path without `..`.
fn tidy(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut tidy, part| {
        match part.as_os_str().to_str() {
            Some("..") => drop(tidy.pop()),
            _ => tidy.push(part),
        }
        tidy
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let site = Path::new("/site");
        let page = |path: &str, text: &str| (site.join(path), text.to_owned());
        let pages = BTreeMap::from([
            page(
                "a.html",
                "<h1 id=\"top\"> <a href=\"#top\"> <a href=\"b/c.html#x\"> <a href=\"https://e.org\">",
            ),
            page(
                "b/c.html",
                "<p id=\"x\"> <a href=\"../a.html#none\"> <img src=\"../no.svg\"> <a href=\"../a.html\">",
            ),
        ]);
        let (links, broken) = check(site, &pages);
        assert_eq!(
            (links, broken),
            (5, vec!["b/c.html: ../a.html#none".into(), "b/c.html: ../no.svg".into()])
        );
    }
}
