//! `list`: the ruleset of the kernel, or a part of it.

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::json::{Value, ruleset};
use sluicegate_nftables::netlink::NetlinkFamily;
use sluicegate_nftables::{ListOptions, Name, SetFlags, SetId, Subject, TableContent, Within, read};

use super::arguments::Arguments;
use super::error::CommandError;
use super::names::{list_options, open, with_hosts};
use super::report::Fault;
use super::run::{print, print_json};
use super::{debug, scope};

pub(crate) fn list(subject: &Subject, arguments: &Arguments) -> Result<(), Fault> {
    let options = list_options(arguments)?;
    if let Subject::Hooks { family, device } = subject {
        let device = device.as_ref().map(sluicegate_nftables::InterfaceName::as_str);
        let hooks = read::hooks(&mut open(NetlinkFamily::NETFILTER)?, *family, device)?;
        // A kernel that cannot tell: nft says nothing.
        return Ok(print(&hooks.map(|hooks| read::HookListing(&hooks).to_string()).unwrap_or_default())?);
    }
    let within = scope::within(subject);
    let mut socket = open(NetlinkFamily::NETFILTER)?;
    let mut ruleset = match arguments.debug_netlink {
        true => read::ruleset(&mut socket, &within)?,
        false => scope::read(&mut socket, subject, &within, arguments.terse)?,
    };
    if arguments.debug_netlink {
        print(&debug::listed(&ruleset, &within)?)?;
    }
    if matches!(subject, Subject::Meters(_) | Subject::Meter(_)) {
        only_meters(&mut ruleset);
    }
    let mut content = ruleset.content();
    if let Within::Table(table) = &within {
        content.retain(|content| content.table.id == *table);
        if content.is_empty() {
            return Err(Fault::Missing(table.name.to_string()));
        }
    }
    if arguments.terse {
        content.iter_mut().flat_map(|table| &mut table.sets).for_each(|(_, elements)| elements.clear());
    }
    let shown = Part::of(subject).select(content)?;
    Ok(shown.print(&options, arguments)?)
}

/// Keeps only the sets of meters, which belong to a rule although they have a name.
fn only_meters(ruleset: &mut read::Ruleset) {
    let is_meter = |set: &read::Set| set.flags.contains(SetFlags::ANONYMOUS | SetFlags::DYNAMIC);
    ruleset.sets.retain(|(set, _)| is_meter(set));
    ruleset.sets.iter_mut().for_each(|(set, _)| set.flags.remove(SetFlags::ANONYMOUS));
    ruleset.rules.clear();
}

/// Which part of the tables is listed.
pub(crate) enum Part<'a> {
    Whole,
    Names,
    Chains { only: Option<&'a Name>, rules: bool },
    Sets { maps: bool },
    Set(&'a SetId),
    Meters(Option<&'a Name>),
    Flowtables(Option<&'a Name>),
    Objects(ObjectKind, Option<&'a Name>),
}

impl<'a> Part<'a> {
    pub(crate) fn of(subject: &'a Subject) -> Self {
        match subject {
            Subject::Tables(_) => Self::Names,
            Subject::Chains(_) => Self::Chains { only: None, rules: false },
            Subject::Chain(chain) | Subject::RulesOf(chain) => {
                Self::Chains { only: Some(&chain.name), rules: true }
            }
            Subject::Rule(rule) => Self::Chains { only: Some(&rule.chain.name), rules: true },
            Subject::Rules(_) => Self::Chains { only: None, rules: true },
            Subject::Sets(_) => Self::Sets { maps: false },
            Subject::Maps(_) => Self::Sets { maps: true },
            Subject::Set(set) => Self::Set(set),
            Subject::Elements(elements) => Self::Set(&elements.set),
            Subject::Meters(_) => Self::Meters(None),
            Subject::Meter(meter) => Self::Meters(Some(&meter.name)),
            Subject::Flowtables(_) => Self::Flowtables(None),
            Subject::Flowtable(of) => Self::Flowtables(Some(&of.name)),
            Subject::Objects(kind, _) => Self::Objects(*kind, None),
            Subject::Object(of) => Self::Objects(of.kind, Some(&of.name)),
            _ => Self::Whole,
        }
    }

    /// Leaves that part.
    pub(crate) fn select(self, mut content: Vec<TableContent>) -> Result<Shown, Fault> {
        if matches!(self, Self::Objects(..)) {
            // nft does not name tables that have no object at all.
            content.retain(|table| !table.objects.is_empty());
        }
        let mut missing = None;
        for table in &mut content {
            let keep = |only: Option<&Name>, name: &Name| only.is_none_or(|only| only == name);
            let (mut chains, mut sets, mut flowtables, mut objects) = Default::default();
            match &self {
                Self::Whole | Self::Names => continue,
                Self::Chains { only, rules } => {
                    sets = std::mem::take(&mut table.sets);
                    sets.iter_mut().for_each(|(_, elements)| elements.clear());
                    chains = std::mem::take(&mut table.chains);
                    chains.retain(|(chain, _)| keep(*only, &chain.id.name));
                    if !rules {
                        chains.iter_mut().for_each(|(_, rules)| rules.clear());
                    }
                    missing = only.filter(|_| chains.is_empty()).map(Name::to_string);
                }
                Self::Sets { maps } => {
                    sets = std::mem::take(&mut table.sets);
                    sets.retain(|(set, _)| set.data.is_some() == *maps);
                }
                Self::Set(only) => {
                    sets = std::mem::take(&mut table.sets);
                    sets.retain(|(set, _)| set.id.name == only.name && set.data.is_some() == only.map);
                    missing = sets.is_empty().then(|| only.name.to_string());
                }
                Self::Meters(only) => {
                    sets = std::mem::take(&mut table.sets);
                    sets.retain(|(set, _)| keep(*only, &set.id.name));
                    missing = only.filter(|_| sets.is_empty()).map(Name::to_string);
                }
                Self::Flowtables(only) => {
                    flowtables = std::mem::take(&mut table.flowtables);
                    flowtables.retain(|of| keep(*only, &of.id.name));
                    missing = only.filter(|_| flowtables.is_empty()).map(Name::to_string);
                }
                Self::Objects(kind, only) => {
                    objects = std::mem::take(&mut table.objects);
                    objects.retain(|of| of.id.kind == *kind && keep(*only, &of.id.name));
                    missing = only.filter(|_| objects.is_empty()).map(Name::to_string);
                }
            }
            (table.chains, table.sets, table.flowtables, table.objects) = (chains, sets, flowtables, objects);
            if let Some(missing) = &missing {
                return Err(Fault::Missing(missing.clone()));
            }
        }
        let kind = match self {
            Self::Whole => Kind::Whole,
            Self::Names => Kind::Names,
            Self::Meters(_) => Kind::Meters,
            _ => Kind::Part,
        };
        Ok(Shown { content, kind, hides_sets: matches!(self, Self::Chains { .. }) })
    }
}

/// What is printed.
pub(crate) struct Shown {
    pub(crate) content: Vec<TableContent>,
    pub(crate) kind: Kind,
    /// Whether the sets are only there for the types of what rules add to them.
    pub(crate) hides_sets: bool,
}

impl Shown {
    /// Some of what is in tables.
    pub(crate) fn part(content: Vec<TableContent>) -> Self {
        Self { content, kind: Kind::Part, hides_sets: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Whole,
    /// Of tables their names.
    Names,
    /// Some of what is in them.
    Part,
    /// Sets of meters, which are called so.
    Meters,
}

impl Shown {
    pub(crate) fn print(self, options: &ListOptions, arguments: &Arguments) -> Result<(), CommandError> {
        if arguments.json {
            return self.print_json(options);
        }
        let mut text = String::new();
        for mut table in self.content {
            if table.uses_xtables() && self.kind != Kind::Names {
                let id = &table.table.id;
                crate::output::tell(format_args!(
                    "# Warning: table {id} is managed by iptables-nft, do not touch!"
                ));
            }
            match self.kind {
                Kind::Names => text.push_str(&format!("table {}\n", table.table.id)),
                Kind::Whole => text.push_str(&table.display(options).to_string()),
                Kind::Part | Kind::Meters => {
                    (table.table.comment, table.table.flags) = (None, Default::default());
                    // Without the handle of the table, and empty lines between what is in it.
                    let listed = table.display(options).to_string();
                    let mut within_hidden = false;
                    let mut lines = listed.lines().filter(|line| {
                        let starts = line.starts_with("\tset ") || line.starts_with("\tmap ");
                        within_hidden |= self.hides_sets && starts;
                        let is_shown = !line.is_empty() && !within_hidden;
                        within_hidden &= *line != "\t}";
                        is_shown
                    });
                    let first =
                        lines.next().unwrap_or_default().split(" # handle").next().unwrap_or_default();
                    text.push_str(&format!("{first}\n"));
                    lines.for_each(|line| match line.strip_prefix("\tset ") {
                        Some(set) if self.kind == Kind::Meters => text.push_str(&format!("\tmeter {set}\n")),
                        _ => text.push_str(&format!("{line}\n")),
                    });
                }
            }
        }
        print(&with_hosts(text, arguments))
    }

    fn print_json(self, options: &ListOptions) -> Result<(), CommandError> {
        let mut list: Vec<Value> = Vec::new();
        let empty = ruleset(&[], options);
        list.extend(empty.get("nftables").and_then(Value::as_array).into_iter().flatten().cloned());
        for table in &self.content {
            let objects = table.to_json(options);
            let is_table = |object: &Value| object.get("table").is_some();
            let is_hidden = |object: &Value| {
                self.hides_sets && (object.get("set").is_some() || object.get("map").is_some())
            };
            match self.kind {
                Kind::Whole => list.extend(objects),
                Kind::Names => list.extend(objects.into_iter().filter(is_table)),
                Kind::Part => {
                    list.extend(objects.into_iter().filter(|object| !is_table(object) && !is_hidden(object)));
                }
                Kind::Meters => {
                    let sets = objects.into_iter().filter_map(|object| object.get("set").cloned());
                    list.extend(sets.map(|set| Value::Object(vec![("meter".into(), set)])));
                }
            }
        }
        print_json(&Value::Object(vec![("nftables".into(), list.into())]))
    }
}
