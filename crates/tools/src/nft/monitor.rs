//! `monitor`: what happens to the ruleset, and what traced packets meet.

use sluicegate_nftables::json::Value;
use sluicegate_nftables::monitor::{Event, Follower, GROUP, Monitor, TRACE_GROUP, Trace, TraceStep};
use sluicegate_nftables::netlink::NetlinkFamily;
use sluicegate_nftables::netlink::text::encode;
use sluicegate_nftables::{Family, ListOptions, MonitorEvent, MonitorFilter, MonitorObject};

use super::arguments::Arguments;
use super::error::CommandError;
use super::names::{list_options, open, with_hosts};
use super::packet::packet;

pub(crate) fn monitor(filter: MonitorFilter, arguments: &Arguments) -> Result<(), CommandError> {
    let options = list_options(arguments)?;
    let mut listener = open(NetlinkFamily::NETFILTER)?;
    let traces = matches!(filter.object, None | Some(MonitorObject::Trace));
    let changes = filter.object != Some(MonitorObject::Trace);
    // Join first and read then: events that are older than the copy are ignored.
    if changes {
        listener.join(GROUP).map_err(CommandError::cause)?;
    }
    if traces {
        listener.join(TRACE_GROUP).map_err(CommandError::cause)?;
    }
    let mut requests = open(NetlinkFamily::NETFILTER)?;
    let mut read = || Follower::read(&mut requests, Family::UNSPEC).map_err(CommandError::cause);
    let mut follower = read()?;
    let mut monitor = Monitor::with_transport(listener);
    let as_json = arguments.json || filter.json;
    loop {
        for event in monitor.events().map_err(CommandError::cause)? {
            if let Event::Trace(trace) = &event {
                let lines = [packet(trace, &options), traced(trace, &follower, &options)];
                let text: String = lines.into_iter().flatten().map(|line| line + "\n").collect();
                if !shown(&with_hosts(text, arguments))? {
                    return Ok(());
                }
                continue;
            }
            let commit = match follower.apply(event) {
                Ok(Some(commit)) => commit,
                Ok(None) => continue,
                Err(lost) => {
                    crate::output::tell(format_args!("# ERROR: {lost}"));
                    follower = read()?;
                    continue;
                }
            };
            let mut text = String::new();
            if as_json {
                let list = commit.to_json(&options);
                // JSON cannot hold such bytes; what else happens is still told.
                list.iter().filter_map(Value::string_of_bytes).for_each(|text| {
                    crate::output::tell_bytes(&encode(&format!("# ERROR: \"{text}\" is not UTF-8")));
                });
                let list = list.iter().filter(|value| value.string_of_bytes().is_none());
                let lines = list.map(ToString::to_string);
                for line in lines.filter(|line| is_wanted(line, filter, true)) {
                    text.push_str(&format!("{line}\n"));
                }
            } else {
                for line in commit.lines(&options).iter().filter(|line| is_wanted(line, filter, false)) {
                    text.push_str(&format!("{line}\n"));
                }
            }
            // nft prints without looking, and is ended by SIGPIPE.
            if !shown(&text)? {
                return Ok(());
            }
        }
    }
}

/// Prints, and returns false when the reader has gone away.
fn shown(text: &str) -> Result<bool, CommandError> {
    crate::output::stream(encode(text)).map_err(CommandError::cause)
}

/// A step of a traced packet, with the words of the rule as it was when it was read. Ends of chains' rules,
/// which nft 1.0.6 leaves out, are left out.
fn traced(trace: &Trace, follower: &Follower, options: &ListOptions) -> Option<String> {
    let line = trace.to_string();
    let Some(handle) = trace.rule.filter(|_| trace.step == TraceStep::Rule) else {
        // Behind these nft has a blank.
        return (trace.step != TraceStep::Rule).then(|| line + " ");
    };
    let content = follower.ruleset().content();
    let table =
        content.iter().find(|of| of.table.id.family == trace.family && of.table.id.name == trace.table);
    let mut rules = table.into_iter().flat_map(|of| &of.chains).flat_map(|(_, rules)| rules);
    let rule = rules.find(|rule| rule.handle == Some(handle));
    let words = rule.map(|rule| format!("rule {}", rule.body_with(options)));
    Some(match words {
        Some(words) => line.replacen(&format!("rule handle {handle}"), &words, 1),
        None => line,
    })
}

/// Whether a line is about what is asked for. The generation is said where all is.
fn is_wanted(line: &str, filter: MonitorFilter, as_json: bool) -> bool {
    if line.starts_with('#') {
        return filter.event.is_none() && matches!(filter.object, None | Some(MonitorObject::Ruleset));
    }
    let words: Vec<&str> = match as_json {
        true => line.split('"').skip(1).step_by(2).take(2).collect(),
        false => line.split(' ').take(2).collect(),
    };
    let [verb, object] = words.as_slice() else { return true };
    let event = match filter.event {
        None => true,
        Some(MonitorEvent::New) => *verb != "delete",
        Some(MonitorEvent::Destroy) => *verb == "delete",
    };
    let about = match filter.object {
        Some(MonitorObject::Tables) => *object == "table",
        Some(MonitorObject::Chains) => *object == "chain",
        Some(MonitorObject::Rules) => *object == "rule",
        Some(MonitorObject::Sets) => matches!(*object, "set" | "map"),
        Some(MonitorObject::Elements) => *object == "element",
        // With an event, nft does not say what happens to objects and flowtables.
        _ => {
            filter.event.is_none()
                || matches!(*object, "table" | "chain" | "rule" | "set" | "map" | "element")
        }
    };
    event && about
}
