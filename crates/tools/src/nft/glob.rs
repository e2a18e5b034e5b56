//! Expands paths with `*`, `?` and `[...]` into the matching files, in order.

use std::path::{Path, PathBuf};

/// Whether a path is a pattern.
pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// The files that match.
pub(crate) fn files(pattern: &str) -> Vec<PathBuf> {
    let (start, rest) = match pattern.strip_prefix('/') {
        Some(rest) => (PathBuf::from("/"), rest),
        None => (PathBuf::new(), pattern),
    };
    let mut found = vec![start];
    for part in rest.split('/').filter(|part| !part.is_empty()) {
        found = found.iter().flat_map(|directory| within(directory, part)).collect();
    }
    found.retain(|path| path.is_file());
    found
}

fn within(directory: &Path, part: &str) -> Vec<PathBuf> {
    if !is_pattern(part) {
        let path = directory.join(part);
        return if path.exists() { vec![path] } else { Vec::new() };
    }
    let listed = std::fs::read_dir(if directory.as_os_str().is_empty() { Path::new(".") } else { directory });
    let names =
        listed.into_iter().flatten().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let pattern: Vec<char> = part.chars().collect();
    let mut names: Vec<_> = names
        .filter(|name| part.starts_with('.') || !name.starts_with('.'))
        .filter(|name| matches(&pattern, &name.chars().collect::<Vec<_>>()))
        .collect();
    names.sort();
    names.into_iter().map(|name| directory.join(name)).collect()
}

fn matches(pattern: &[char], name: &[char]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), _) => {
            (0..=name.len()).any(|skip| name.get(skip..).is_some_and(|name| matches(rest, name)))
        }
        (Some(('?', rest)), Some((_, name))) => matches(rest, name),
        (Some(('[', rest)), Some((c, name))) => {
            let Some(end) = rest.iter().skip(1).position(|c| *c == ']').map(|at| at + 1) else {
                return *c == '[' && matches(rest, name);
            };
            let (class, rest) = rest.split_at(end);
            let (negated, class) = match class.split_first() {
                Some(('!' | '^', class)) => (true, class),
                _ => (false, class),
            };
            in_class(class, *c) != negated && matches(rest.get(1..).unwrap_or_default(), name)
        }
        (Some((p, rest)), Some((c, name))) => p == c && matches(rest, name),
        _ => false,
    }
}

fn in_class(class: &[char], c: char) -> bool {
    let mut at = 0;
    while let Some(low) = class.get(at) {
        if let (Some('-'), Some(high)) = (class.get(at + 1), class.get(at + 2)) {
            if (*low..=*high).contains(&c) {
                return true;
            }
            at += 3;
        } else {
            if *low == c {
                return true;
            }
            at += 1;
        }
    }
    false
}
