//! Prints an explanation for people.

use std::fmt::{self, Write as _};

use sluicegate_services::Scheduler;

use super::{Choice, Explanation, Verdict};

impl fmt::Display for Explanation {
    /// Prints the packet, what each field decides, every endpoint, and the verdict, each on its own line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let question = &self.question;
        writeln!(
            f,
            "{} -> {}/{} on node {}, {} mode; the client is {}",
            question.from, question.to, question.protocol, self.node, self.mode, self.client
        )?;
        for decision in &self.decisions {
            let (object, field) = (&decision.object, decision.field);
            writeln!(f, "  {object}, {field}: {} -> {}", decision.value, decision.effect)?;
        }
        for considered in &self.endpoints {
            let mut place = considered.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
            if !considered.slices.is_empty() {
                let _ = write!(place, " (EndpointSlice {})", considered.slices.join(", "));
            }
            let mark = if considered.is_used { '+' } else { '-' };
            writeln!(f, "  {mark} {}{place}: {}", considered.address, considered.reason)?;
        }
        writeln!(f, "{}", self.verdict)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forwarded { choices: all, sticky, scheduler } => {
                let choices: Vec<_> = all.iter().map(ToString::to_string).collect();
                write!(f, "forwarded to {}", choices.join(", or "))?;
                match sticky {
                    Some(seconds) => write!(f, "; always the same for a client within {seconds} s"),
                    None => f.write_str(match (scheduler, all.len()) {
                        (None | Some(Scheduler::Random), _) => "",
                        (Some(Scheduler::RoundRobin), _) => "; one after the other",
                        (Some(Scheduler::SourceHash), _) => {
                            "; always the same for a client, as long as the endpoints are the same"
                        }
                        (Some(Scheduler::Maglev(_)), 1) => {
                            "; always the same for this address and port of the client"
                        }
                        (Some(Scheduler::Maglev(_)), _) => "; the port of the client decides which",
                    }),
                }
            }
            Self::Refused(why) | Self::Dropped(why) => write!(f, "{}: {why}", self.as_str()),
            Self::Untouched(why) => write!(f, "not changed by any rule of the proxy: {why}"),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)?;
        if let Some(probability) = self.probability {
            write!(f, " ({:.1} %)", probability * 100.0)?;
        }
        write!(f, ", whose source address is {}", self.source)
    }
}

impl fmt::Display for super::Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.is_pod, self.is_node) {
            (true, true) => "this node, with an address of its pods' network",
            (true, false) => "a pod",
            (false, true) => "this node",
            (false, false) => "not known as a pod",
        })
    }
}
