//! What of a context a command is given, on a terminal.

use super::escape_terminal;
use slowpath_context::Plan;
use slowpath_launch::LaunchSpec;

/// What of the context the command will not have, and why.
pub fn context_not_applied(plan: &Plan) -> Vec<String> {
    let lacking = plan.lacking.iter().map(|one| {
        format!(
            "{} stays {} and does not become {}: {}",
            one.name,
            quoted(&one.slow),
            quoted(&one.fast),
            escape_terminal(&one.why)
        )
    });
    // A context is read as both sides of a comparison: each gap is reported twice.
    let unread = plan.unavailable.iter().filter_map(|gap| {
        let reason = gap.reason.strip_prefix("in the fast context: ")?;
        Some(format!("{} is not known: {}", gap.what, escape_terminal(reason)))
    });
    lacking.chain(unread).collect()
}

/// What of a context a launch will have that it has not by itself.
pub fn context_applied(plan: &Plan, base: &LaunchSpec) -> Vec<String> {
    let changes = plan.applied_to(base);
    if changes.is_empty() {
        return vec!["nothing differs from the caller's own context".to_owned()];
    }
    changes
        .iter()
        .map(|one| format!("{}: {} (here {})", escape_terminal(&one.name), quoted(&one.value), quoted(&one.own)))
        .collect()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escape_terminal(text))
}
