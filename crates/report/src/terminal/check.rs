//! The summary of a check on a terminal. Text of the target is escaped here.

use super::escape_terminal;
use slowpath_budget::Check;
use slowpath_budget::outcome::{launches, shown};
use slowpath_budget::responsible::Responsible;

/// The summary, with a newline after every line.
pub fn check(check: &Check) -> String {
    let mut rows = vec![["limit", "budget", "measured", "verdict"].map(str::to_owned)];
    for limit in &check.limits {
        let verdict = match &limit.reason {
            Some(reason) => format!("{}: {}", limit.verdict.words(), escape_terminal(reason)),
            None => limit.verdict.words().to_owned(),
        };
        let written = escape_terminal(&limit.written);
        rows.push([escape_terminal(&limit.name), written, limit.measured(), verdict]);
    }
    let widths: Vec<usize> =
        (0..3).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for [name, budget, measured, verdict] in &rows {
        text.push_str(&format!(
            "{name:<0$}  {budget:>1$}  {measured:<2$}  {verdict}\n",
            widths[0], widths[1], widths[2]
        ));
    }
    for responsible in &check.responsible {
        text.push_str(&responsible_text(responsible));
    }
    for gap in &check.unavailable {
        let shown = format!("unavailable: {}: {}; {}", gap.what, gap.reason, gap.remedy);
        text.push_str(&format!("{}\n", escape_terminal(&shown)));
    }
    for reason in &check.reasons {
        text.push_str(&format!("not counted: {}\n", escape_terminal(reason)));
    }
    let last = format!("{}, ready: {}; {}.", launches(check.launches.len()), check.ready, check.ended);
    text.push_str(&format!("{}\n", escape_terminal(&last)));
    for condition in &check.conditions {
        text.push_str(&format!("  {}\n", escape_terminal(condition)));
    }
    text
}

fn responsible_text(responsible: &Responsible) -> String {
    let limit = escape_terminal(&responsible.limit);
    let mut lines: Vec<String> = Vec::new();
    if let Some(note) = &responsible.note {
        lines.push(note.clone());
    }
    for share in &responsible.named {
        lines.push(format!("{:>8}  {}", shown(share.amount.value, share.amount.unit), escape_terminal(&share.name)));
    }
    if let Some(rest) = responsible.rest {
        lines.push(format!("{:>8}  {} others", shown(rest.value, rest.unit), responsible.others));
    }
    lines.into_iter().map(|line| format!("responsible: {limit}: {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_budget::responsible::Share;
    use slowpath_tables::{Quantity, Unit};

    #[test]
    fn text_of_the_target_cannot_move_the_cursor() {
        let named = vec![Share { name: "/a\x1b[2J\n/b".to_owned(), amount: Quantity::exact(3.0, Unit::Count) }];
        let rest = Some(Quantity::exact(2.0, Unit::Count));
        let text =
            responsible_text(&Responsible { limit: "denied_opens".to_owned(), named, others: 2, rest, note: None });
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\x1b') && text.contains("responsible: denied_opens:        3  /a\\u{1b}[2J"), "{text}");
    }
}
