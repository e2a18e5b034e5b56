//! `/readyz`: one line for each condition of a proxy that follows the cluster, in the form of other
//! components of Kubernetes.

use std::fmt;

use super::{Answer, PLAIN, answer};

/// A condition, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    name: &'static str,
    problem: Option<String>,
}

impl Condition {
    pub(super) const fn new(name: &'static str, problem: Option<String>) -> Self {
        Self { name, problem }
    }

    pub(super) const fn is_met(&self) -> bool {
        self.problem.is_none()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            None => write!(f, "[+]{} ok", self.name),
            // What a server said may have several lines.
            Some(problem) => write!(f, "[-]{} failed: {}", self.name, problem.replace(char::is_control, " ")),
        }
    }
}

/// Returns the response: 200, or 503 when a condition fails.
pub(super) fn reply(conditions: &[Condition]) -> Answer {
    let is_ready = conditions.iter().all(Condition::is_met);
    let lines: String = conditions.iter().map(|condition| format!("{condition}\n")).collect();
    let (status, verdict) = if is_ready { (200, "passed") } else { (503, "failed") };
    answer(status, PLAIN, format!("{lines}readyz check {verdict}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_condition_that_fails_fails_all_and_stays_in_its_line() {
        let fine = Condition::new("services", None);
        let bad = Condition::new("rules", Some("no\nroom".to_owned()));
        let all = reply(&[fine.clone(), bad]);
        assert_eq!(all.status(), 503);
        assert_eq!(all.body(), "[+]services ok\n[-]rules failed: no room\nreadyz check failed\n");
        assert_eq!(reply(&[fine]).status(), 200);
    }
}
