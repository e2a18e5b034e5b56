//! Lists sets as `ipset list` and `ipset save` do, byte for byte.
//!
//! There are three intended differences, as ipset 7.17 writes text that cannot be read back: names with
//! spaces are quoted in the save format; in XML, `<` and `&` are escaped; and control characters or quotes
//! inside the text of another program are replaced. `forceadd` is omitted as in ipset 7.17, although the
//! kernel reports it: [`SetInfo::spec`](crate::SetInfo::spec) has it.

use std::fmt::{self, Write};

use crate::entry::print::Hosts;
use crate::set_type::Method;
use crate::sort;
use crate::spec::each_option;
use crate::text::Output;
use crate::{CreateOptions, Entry, Listing, SetInfo, SetName};

/// The options of a listing.
///
/// ```no_run
/// use sluicegate_ipset::{Client, Style, text::Output};
///
/// let listings = Client::open()?.list(None)?;
/// let mut saved = String::new();
/// Style::new(Output::Save).write(&mut saved, &listings)?; // what `ipset save` prints
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Style<'a> {
    /// The format.
    pub output: Output,
    /// Whether the entries of hashes are in the order of `ipset -sorted` instead of the kernel's.
    pub sorted: bool,
    /// Whether entries are omitted.
    pub terse: bool,
    /// The host names of addresses (`ipset -resolve`).
    pub hosts: Option<Hosts<'a>>,
}

impl fmt::Debug for Style<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Style")
            .field("output", &self.output)
            .field("sorted", &self.sorted)
            .field("terse", &self.terse)
            .field("hosts", &self.hosts.is_some())
            .finish()
    }
}

impl Style<'_> {
    /// Returns the style for a complete listing in the kernel's order.
    #[must_use]
    pub fn new(output: Output) -> Self {
        Self { output, sorted: false, terse: false, hosts: None }
    }

    /// Writes sets.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write, sets: &[Listing]) -> fmt::Result {
        if self.output == Output::Xml {
            out.write_str("<ipsets>\n")?;
        }
        for (place, set) in sets.iter().enumerate() {
            if place > 0 && self.output == Output::Plain {
                out.write_str("\n")?;
            }
            self.set(out, set)?;
        }
        if self.output == Output::Xml { out.write_str("</ipsets>\n") } else { Ok(()) }
    }

    /// Writes the names of sets only. As the save format has no such form, the plain one is used for it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_names(&self, out: &mut dyn Write, names: &[SetName]) -> fmt::Result {
        if self.output != Output::Xml {
            return names.iter().try_for_each(|name| writeln!(out, "{name}"));
        }
        out.write_str("<ipsets>\n")?;
        for name in names {
            writeln!(out, "<ipset name=\"{}\"/>", Escaped(name))?;
        }
        out.write_str("</ipsets>\n")
    }

    fn set(&self, out: &mut dyn Write, set: &Listing) -> fmt::Result {
        match self.output {
            Output::Plain => plain_header(out, &set.info, self.terse)?,
            Output::Save => save_header(out, &set.info)?,
            Output::Xml => xml_header(out, &set.info, self.terse)?,
        }
        if !self.terse {
            self.entries(out, set)?;
        }
        match (self.output, self.terse) {
            (Output::Xml, false) => out.write_str("</members>\n</ipset>\n"),
            (Output::Xml, true) => out.write_str("</ipset>\n"),
            _ => Ok(()),
        }
    }

    fn entries(&self, out: &mut dyn Write, set: &Listing) -> fmt::Result {
        let prefix = match self.output {
            Output::Plain => String::new(),
            Output::Save => format!("add {} ", set.info.name.quoted()),
            Output::Xml => "<member><elem>".to_owned(),
        };
        // Bitmaps and lists have an order of their own.
        if !self.sorted || set.info.kind.method() != Method::Hash {
            for entry in &set.entries {
                out.write_str(&prefix)?;
                self.entry(out, entry)?;
            }
            return Ok(());
        }
        let mut lines = Vec::with_capacity(set.entries.len());
        for entry in &set.entries {
            let mut line = String::new();
            self.entry(&mut line, entry)?;
            lines.push(line);
        }
        let lines = if self.hosts.is_some() { sort::by_text(lines) } else { sort::by_numbers(lines) };
        lines.iter().try_for_each(|line| write!(out, "{prefix}{line}"))
    }

    fn entry(&self, out: &mut dyn Write, entry: &Entry) -> fmt::Result {
        if self.output != Output::Xml {
            entry.element().write(out, self.hosts)?;
            return writeln!(out, "{}", entry.options());
        }
        let mut element = String::new();
        entry.element().write(&mut element, self.hosts)?;
        write!(out, "{}</elem>", Escaped(&element))?;
        entry.options().each(|name, value| match value {
            Some(value) => write!(out, "<{name}>{}</{name}>", Escaped(&value)),
            None => write!(out, "<{name}/>"),
        })?;
        out.write_str("</member>\n")
    }
}

fn plain_header(out: &mut dyn Write, info: &SetInfo, terse: bool) -> fmt::Result {
    write!(out, "Name: {}\nType: {}\nRevision: {}\nHeader:", info.name, info.kind, info.revision)?;
    options(info, |name, value| match value {
        Some(value) => write!(out, " {name} {value}"),
        None => write!(out, " {name}"),
    })?;
    write!(out, "\nSize in memory: {}\nReferences: {}\n", info.memory, info.references)?;
    if let Some(entries) = info.entries {
        writeln!(out, "Number of entries: {entries}")?;
    }
    if terse { Ok(()) } else { out.write_str("Members:\n") }
}

fn save_header(out: &mut dyn Write, info: &SetInfo) -> fmt::Result {
    write!(out, "create {} {}", info.name.quoted(), info.kind)?;
    options(info, |name, value| match value {
        Some(value) => write!(out, " {name} {value}"),
        None => write!(out, " {name}"),
    })?;
    out.write_str("\n")
}

fn xml_header(out: &mut dyn Write, info: &SetInfo, terse: bool) -> fmt::Result {
    write!(
        out,
        "<ipset name=\"{}\">\n<type>{}</type>\n<revision>{}</revision>\n<header>",
        Escaped(&info.name),
        info.kind,
        info.revision
    )?;
    options(info, |name, value| match value {
        Some(value) => write!(out, "<{name}>{value}</{name}>"),
        None => write!(out, "<{name}/>"),
    })?;
    write!(out, "\n<memsize>{}</memsize>\n<references>{}</references>\n", info.memory, info.references)?;
    if let Some(entries) = info.entries {
        writeln!(out, "<numentries>{entries}</numentries>")?;
    }
    out.write_str(if terse { "</header>\n" } else { "</header>\n<members>\n" })
}

fn options(
    info: &SetInfo,
    write: impl FnMut(&'static str, Option<&dyn fmt::Display>) -> fmt::Result,
) -> fmt::Result {
    let shown = CreateOptions { forceadd: false, ..info.options.clone() };
    each_option(info.kind, info.family, &shown, write)
}

/// Prints text with the escapes of XML.
struct Escaped<T>(T);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaper(f), "{}", self.0)
    }
}

struct Escaper<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '<' => self.0.write_str("&lt;")?,
                '&' => self.0.write_str("&amp;")?,
                c => self.0.write_char(c)?,
            }
        }
        Ok(())
    }
}
