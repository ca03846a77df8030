//! The critical path on a screen: all of it, and the threads with most of it.

use super::figures;
use super::ledger::{Row, heading};
use super::line::{Line, Paint};
use super::sections::Section;
use super::style::Style;
use crate::CriticalPath;

/// Threads with a row of their own where there is room, and beside other things about a launch.
const THREADS: usize = 6;
const BESIDE_A_LAUNCH: usize = 2;

/// The path where it is part of the main content.
pub(super) fn section(path: Option<&CriticalPath>, style: &Style) -> Section {
    path.map(|path| of_path(path, THREADS, style)).unwrap_or_default()
}

/// The same in few lines.
pub(super) fn beside_a_launch(path: Option<&CriticalPath>, style: &Style) -> Section {
    path.map(|path| of_path(path, BESIDE_A_LAUNCH, style)).unwrap_or_default()
}

fn of_path(path: &CriticalPath, most: usize, style: &Style) -> Section {
    let end = if path.ready { "ready" } else { "the end" };
    let threads = if path.threads.len() == 1 { "thread" } else { "threads" };
    let words = format!(
        "critical path to {end}: {} through {} {threads}, followed back through wake-ups",
        figures::value(&path.time, style),
        path.threads.len()
    );
    let unexplained = path.unexplained_share.map(|share| share.value);
    let all = Row { name: "all", id: None, time: &path.time, unexplained, rows: &path.rows };
    let shown = path.threads.iter().take(if path.threads.len() > 1 { most } else { 0 });
    let of_thread = shown.map(|one| {
        let share = if one.time.value > 0.0 { one.unexplained.value / one.time.value } else { 0.0 };
        let name = one.thread.as_deref().unwrap_or(&one.process);
        Row { name, id: Some(one.tid), time: &one.time, unexplained: Some(share), rows: &one.rows }
    });
    Section {
        head: vec![Line::of(Paint::Quiet, &words, style), heading("thread", "tid", "on path", style)],
        items: std::iter::once(all).chain(of_thread).map(|row| row.item(style)).collect(),
        what: "threads",
        spaced: true,
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Rest, screen};
    use crate::{critical_path_of, usage_of};
    use slowpath_recording::Tables;

    /// A parent that waits for its child, which waits for a timer.
    const TEXT: &str = r#"
== manifest
{"launch": {"released": 1000000, "ready": 11000000, "ready_when": "exit", "outcome": "ready"}}
== execs
ts      pid start filename
1000000 7   1     "a\u001b[31m"
== forks
ts      parent_pid parent_start pid start   tid thread
2000000 7          1            9   2000000 9   false
== exits
ts       pid start   tid last
11000000 7   1       7   true
9000000  9   2000000 9   true
== off_cpu
ts      duration pid start   tid reason runnable waker_pid waker_tid
2500000 6500000  7   1       7   child  500000   9         9
3000000 4000000  9   2000000 9   timer  0        -         -
"#;

    fn printed(most: impl Fn(Option<&CriticalPath>, &Style) -> Section) -> String {
        let tables = Tables::from_text(TEXT).unwrap();
        let path = critical_path_of(&tables, &usage_of(&tables));
        let style = Style { lines: usize::MAX, ..Style::PLAIN };
        screen(vec![most(path.as_ref(), &style)], Rest::InJson, &style)
    }

    #[test]
    fn the_path_has_all_of_its_time_and_then_its_threads() {
        let text = printed(section);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        assert!(lines[0].starts_with("critical path to ready: 10.0 ms through 2 threads"), "{text}");
        assert_eq!(lines[2], "all 10.0 ms 0.0 % user or kernel 55 %, timers 40 %,", "{text}");
        assert_eq!(lines[3], "runnable 5.0 %");
        assert!(lines[4].contains("9 6.50 ms") && lines[4].contains("timers 62 %"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80) && !text.contains('\u{1b}'), "{text}");
        assert!(printed(beside_a_launch).contains("timers 62 %"));
    }

    #[test]
    fn without_a_path_there_is_nothing() {
        let empty = section(None, &Style::PLAIN);
        assert!(empty.head.is_empty() && empty.items.is_empty());
    }
}
