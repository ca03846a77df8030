//! The first sentences about processes that were recorded while they ran.

use super::escape::escape;
use super::figures;
use super::style::Style;
use slowpath_diagnose::printed::{Diagnosis, RunningSummary};

/// What they used in that time, and what hides in it.
pub(super) fn answer(running: &RunningSummary, diagnosis: &Diagnosis, style: &Style) -> String {
    let who = escape(&running.processes, style.unicode);
    let watched = figures::value(&running.watched, style);
    let used = diagnosis.time.first().map(|time| figures::value(&figures::readable(time.cpu), style));
    let used = used.map_or_else(
        || format!("{who} was recorded for {watched}."),
        |cpu| format!("{who} used {cpu} of CPU time in {watched}."),
    );
    match diagnosis.findings.as_slice() {
        [] => format!("{used} No hidden cost was found."),
        [first] => format!("{used} {}.", first.title),
        [first, others @ ..] => {
            let more =
                if others.len() == 1 { "1 more finding".to_owned() } else { format!("{} more findings", others.len()) };
            format!("{used} {}, and {more}.", first.title)
        }
    }
}
