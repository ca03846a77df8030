//! Autogroups -> nice values that count inside a session only: two programs with different nice values in two sessions get the same.

use super::chain::{Chain, Link, Side};
use crate::reading::{Reading, Value};
use crate::remedy::Remedy;
use crate::snapshot::Snapshot;

fn known<'a>(snapshot: &'a Snapshot, factor: &str) -> Option<&'a Value> {
    snapshot.reading(factor).and_then(Reading::value)
}

fn number(value: &Value, part: &str) -> Option<i64> {
    value.part(part)?.parse().ok()
}

/// The chain, where both are in sessions of their own on a kernel that groups them.
pub(super) fn find(a: &Snapshot, b: &Snapshot) -> Option<Chain> {
    let (group_a, group_b) = (known(a, "autogroup")?, known(b, "autogroup")?);
    let enabled = |group: &Value| group.part("enabled") == Some("yes");
    if !enabled(group_a) || !enabled(group_b) || group_a.part("group") == group_b.part("group") {
        return None;
    }
    let (nice_a, nice_b) = (number(known(a, "scheduling")?, "nice")?, number(known(b, "scheduling")?, "nice")?);
    let (session_a, session_b) = (number(group_a, "nice")?, number(group_b, "nice")?);
    if nice_a == nice_b || session_a != session_b {
        return None;
    }
    Some(Chain {
        title: "nice values that have no effect between sessions".to_owned(),
        slower: if nice_a > nice_b { Side::A } else { Side::B },
        links: vec![
            Link {
                factor: "autogroup".to_owned(),
                seen: format!(
                    "{} against {}, both with nice {session_a}",
                    group_a.part("group").unwrap_or_default(),
                    group_b.part("group").unwrap_or_default()
                ),
                why: "the scheduler divides a CPU between sessions first".to_owned(),
            },
            Link {
                factor: "scheduling".to_owned(),
                seen: format!("nice {nice_a} against {nice_b}"),
                why: "it counts against threads of the same session only, so it does not explain a difference to another session".to_owned(),
            },
        ],
        cost: "none by these nice values as long as the sessions hold nothing else".to_owned(),
        remedies: vec![Remedy {
            what: "write the nice value to /proc/PID/autogroup, or switch autogroups off (kernel.sched_autogroup_enabled=0)".to_owned(),
            price: "fairness: one session can then get more than the others".to_owned(),
        }],
        sources: vec!["sched(7), \"The autogroup feature\"".to_owned()],
    })
}
