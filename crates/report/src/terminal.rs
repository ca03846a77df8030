//! The answer on a screen: what makes the launch slow, what was tried, and how far to trust it. Other commands have 80x24, a
//! diagnosis 30 lines.
//!
//! Owns the choice and the order of what a screen shows. Everything left out stands in the JSON and the HTML page.

mod android;
mod android_launch;
mod artifacts_audit;
mod benchmark;
mod check;
mod children;
mod context;
mod context_bisect;
mod context_run;
mod critical_path;
mod doctor;
mod escape;
mod explain;
pub(crate) mod figures;
mod guarded;
mod hidden_by_root;
mod imported;
mod item;
mod kept_fixes;
mod lab_launches;
mod layout;
mod layout_trial;
mod ledger;
mod line;
mod looked_for;
mod preload;
mod recorded;
mod recording_comparison;
mod round_trips;
mod running;
mod scenario;
mod sections;
mod selftest;
mod stack_audit;
mod style;
mod syscall_cost;
mod time_spent;
mod tried;
mod usage;
mod warm;
mod zygote_advice;

pub use android::{android_audit, android_collected, android_repaired};
pub use android_launch::{android_launches, android_startups};
pub use artifacts_audit::artifacts_audit;
pub use benchmark::benchmark;
pub use check::check;
pub use children::children;
pub use context::{context, context_comparison};
pub(crate) use context_bisect::change;
pub use context_bisect::context_bisection;
pub use context_run::{context_applied, context_not_applied};
pub use doctor::doctor;
pub use escape::{escape_terminal, screen_of};
pub use explain::{explained, names};
pub(crate) use figures::value;
pub use figures::with_interval;
pub use guarded::guarded;
pub use imported::imported;
pub use kept_fixes::{fix_applied, fix_list, fix_shown, fix_undone};
pub use lab_launches::{lab_launches, lab_list};
pub use layout::{layout_order, layout_repacked, layout_score, layout_trace_doubts, layout_traced, layout_why};
pub use layout_trial::layout_trial;
pub use preload::{plan_checked, plan_replayed};
pub use recorded::recorded;
pub use recording_comparison::recording_comparison;
pub(crate) use recording_comparison::words as measure_words;
pub use scenario::scenario;
pub use selftest::selftest;
pub use stack_audit::stack_audit;
pub use style::Style;
pub use syscall_cost::syscall_cost;
pub use zygote_advice::zygote_advice;

use crate::Analysis;
use item::Item;
use line::{Line, Paint};
use sections::Section;
use slowpath_diagnose::printed::Diagnosis;

/// Lines of a diagnosis, with those that the command prints below the summary.
const DIAGNOSIS_LINES: usize = 30;

/// What `diagnose` prints, with a newline after every line: the summary, where the page is, and the `commands` that keep a proved
/// fix. These are for copying, so they are not shortened; the summary has what they leave of the screen.
pub fn diagnosis_screen(diagnosis: &Diagnosis, page: &str, commands: &[String], style: &Style) -> String {
    let mut below = vec![format!("report: {}", escape_terminal(page))];
    below.extend(commands.iter().map(|command| format!("next: {}", escape_terminal(command))));
    let taken: usize = below.iter().map(|text| line::width(text).div_ceil(style.columns.max(1))).sum();
    let mut printed = summary(diagnosis, taken, style);
    for text in &below {
        printed.push_str(text);
        printed.push('\n');
    }
    printed
}

/// The summary of a diagnosis, with a newline after every line.
pub fn diagnosis(diagnosis: &Diagnosis, style: &Style) -> String {
    summary(diagnosis, 0, style)
}

/// `taken`: lines of the screen that stand below it.
fn summary(diagnosis: &Diagnosis, taken: usize, style: &Style) -> String {
    let style = &Style { lines: style.lines.max(DIAGNOSIS_LINES).saturating_sub(taken), ..*style };
    let halves: Vec<Diagnosis> = std::iter::once(diagnosis.leading()).chain(diagnosis.following()).collect();
    let mut sections: Vec<Section> = halves.iter().map(|half| answer(half, style)).collect();
    let arms = if diagnosis.warm { warm::arms } else { sections::arms };
    sections.push(arms(&diagnosis.launch, style));
    sections.push(time_spent::section(&diagnosis.time, &halves, style));
    if diagnosis.running.is_some() {
        sections.push(round_trips::beside_a_launch(&diagnosis.round_trips, style));
    }
    sections.push(sections::findings(&diagnosis.findings, style));
    let verdicts = |half: &Diagnosis| (if half.warm { warm::verdicts } else { sections::verdicts })(half, style);
    sections.extend(halves.iter().map(verdicts));
    sections.push(hidden_by_root::section(diagnosis.hidden_by_root.as_ref(), style));
    sections.push(looked_for::section(&diagnosis.looked_for, style));
    sections.push(sections::doubts(&diagnosis.losses, &diagnosis.unavailable, &diagnosis.notes, style));
    sections.push(sections::recording(&diagnosis.recording, &diagnosis.losses, style));
    screen(sections, Rest::InReport, style)
}

fn answer(half: &Diagnosis, style: &Style) -> Section {
    let lines = line::wrap(&escape::escape(&answer_text(half, style), style.unicode), sections::ANSWER_LINES, style);
    Section { head: lines.iter().map(|line| Line::of(Paint::Bold, line, style)).collect(), ..Section::default() }
}

/// What a diagnosis of cold launches or of warm ones says, in a few sentences. Names of a target are in it as they are.
pub fn sentences(half: &Diagnosis) -> String {
    answer_text(half, &Style { unicode: true, ..Style::PLAIN })
}

fn answer_text(half: &Diagnosis, style: &Style) -> String {
    if let Some(running) = &half.running {
        return running::answer(running, half, style);
    }
    if half.warm { warm::answer(half, style) } else { sections::answer(half, style) }
}

/// The summary of the analysis of one recording, with a newline after every line.
pub fn analysis(analysis: &Analysis, style: &Style) -> String {
    let usage = &analysis.usage;
    if analysis.time_to_ready.is_none() {
        return without_launch(analysis, style);
    }
    let sections = vec![
        sections::recorded(analysis, style),
        sections::findings(&analysis.findings, style),
        usage::beside_a_launch(usage, style),
        critical_path::beside_a_launch(analysis.critical_path.as_ref(), style),
        round_trips::beside_a_launch(&analysis.round_trips, style),
        ledger::beside_a_launch(analysis.ledger.as_ref(), style),
        sections::doubts(&analysis.losses, &analysis.unavailable, &ledger::notes(analysis.ledger.as_ref()), style),
        sections::recording(&analysis.recording, &analysis.losses, style),
    ];
    screen(sections, Rest::InJson, style)
}

/// The summary of a recording that holds no launch, or one that never got ready: who used what. Every row stays: the table is
/// what was asked for, and no page has what a screen would leave out.
fn without_launch(analysis: &Analysis, style: &Style) -> String {
    let style = &Style { lines: usize::MAX, ..*style };
    let usage = &analysis.usage;
    let mut notes = vec!["the recording holds no launch that got ready".to_owned()];
    if usage.without_counters > 0 && !usage.processes.is_empty() {
        let text = "the kernel's counters are not known, and missing in CPU times and in faults without an event";
        notes.push(format!("of {} processes {text}", usage.without_counters));
    }
    notes.extend(ledger::notes(analysis.ledger.as_ref()));
    let self_only = "own, not of what they called";
    let findings = sections::findings(&analysis.findings, style);
    let mut sections = vec![usage::answer(analysis, style), usage::processes(usage, style)];
    sections.push(critical_path::section(analysis.critical_path.as_ref(), style));
    sections.push(round_trips::section(&analysis.round_trips, style));
    sections.extend(ledger::sections(analysis.ledger.as_ref(), style));
    sections.extend([
        usage::functions(
            &format!("functions with most time in faults ({self_only})"),
            usage.functions_by_fault_time.as_deref(),
            style,
        ),
        usage::functions(
            &format!("functions with most CPU samples ({self_only})"),
            usage.functions_by_cpu_samples.as_deref(),
            style,
        ),
        findings,
        sections::doubts(&analysis.losses, &analysis.unavailable, &notes, style),
        sections::recording(&analysis.recording, &analysis.losses, style),
    ]);
    screen(sections, Rest::InJson, style)
}

/// Where what a screen leaves out can be read.
#[derive(Clone, Copy)]
enum Rest {
    /// The command wrote a page.
    InReport,
    /// It wrote none.
    InJson,
}

/// Puts sections below each other. What does not fit gives way in this order: empty lines, long remarks, the last items of the
/// longest list (those that are needed last), and the later lines of what is left. Where a report has them, whole tables follow:
/// first the context, then remarks, verdicts and findings.
fn screen(mut sections: Vec<Section>, rest: Rest, style: &Style) -> String {
    sections.retain(|section| section.lines() > 0);
    let total = |sections: &[Section]| {
        sections.iter().map(Section::lines).sum::<usize>() + sections.iter().skip(1).filter(|s| s.spaced).count()
    };
    while total(&sections) > style.lines {
        if let Some(spaced) = sections.iter_mut().skip(1).rev().find(|section| section.spaced) {
            spaced.spaced = false;
        } else if let Some(section) = sections.iter_mut().rfind(|section| section.drops_whole()) {
            section.drop_long();
        } else if let Some(longest) = longest(&mut sections, Section::drops_unneeded) {
            longest.drop_last();
        } else if let Some(longest) = longest(&mut sections, Section::drops_last) {
            longest.drop_last();
        } else if let Some(long) = sections.iter_mut().flat_map(|s| &mut s.items).rfind(|item| item.lines() > 1) {
            long.cut();
        } else if let Some(section) = least_needed(&mut sections, rest) {
            section.leave_out();
        } else {
            break;
        }
    }
    let mut printed = String::new();
    for section in &sections {
        if section.spaced && !printed.is_empty() {
            printed.push('\n');
        }
        let dropped = section.dropped_note(rest, style);
        let items = section.items.iter().flat_map(|item| std::iter::once(&item.first).chain(&item.more));
        for line in section.head.iter().chain(items).chain(&dropped) {
            printed.push_str(&line.print(style));
            printed.push('\n');
        }
    }
    printed
}

/// The section with most items of those that can lose one.
fn longest(sections: &mut [Section], can: impl Fn(&Section) -> bool) -> Option<&mut Section> {
    sections.iter_mut().filter(|section| can(section)).max_by_key(|section| section.items.len())
}

/// The section that is left out next, if one can be.
fn least_needed(sections: &mut [Section], rest: Rest) -> Option<&mut Section> {
    let can = |section: &Section| matches!(rest, Rest::InReport) && section.can_leave_out();
    let at = sections
        .iter()
        .rposition(|section| section.is_context && can(section))
        .or_else(|| sections.iter().rposition(can))?;
    sections.get_mut(at)
}

impl Section {
    fn lines(&self) -> usize {
        self.head.len() + self.items.iter().map(Item::lines).sum::<usize>() + usize::from(self.dropped > 0)
    }

    fn drops_whole(&self) -> bool {
        self.whole_or_not && self.items.iter().any(|item| item.lines() > 1)
    }

    /// Leaves out the last item of more than one line.
    fn drop_long(&mut self) {
        if let Some(at) = self.items.iter().rposition(|item| item.lines() > 1) {
            self.items.remove(at);
            self.dropped += 1;
        }
    }

    /// Whether one is left then, and a line is saved although the note takes one.
    fn drops_last(&self) -> bool {
        let is_long = self.items.last().is_some_and(|item| item.lines() > 1);
        self.items.len() > 1 && (self.dropped > 0 || self.items.len() > 2 || is_long)
    }

    /// The same, and all that are needed are left.
    fn drops_unneeded(&self) -> bool {
        let lost = if self.dropped == 0 && self.items.len() > 2 { 2 } else { 1 };
        self.drops_last() && self.items.len() >= self.needed + lost
    }

    fn drop_last(&mut self) {
        self.items.pop();
        self.dropped += 1;
        // The note about what is left out takes a line itself.
        if self.dropped == 1 && self.items.len() > 1 {
            self.items.pop();
            self.dropped += 1;
        }
    }

    /// Whether a note in its place takes fewer lines.
    fn can_leave_out(&self) -> bool {
        let head = if self.is_table { 0 } else { self.head.len() };
        (self.is_table || self.whole_or_not) && self.lines() > head + 1
    }

    /// Leaves nothing but the note, and a head that is no heading.
    fn leave_out(&mut self) {
        // A table that is all head has its rows there.
        let rows = if self.items.is_empty() { self.head.len().saturating_sub(1) } else { self.items.len() };
        self.dropped += rows;
        self.items.clear();
        if self.is_table {
            self.head.clear();
        }
    }

    fn dropped_note(&self, rest: Rest, style: &Style) -> Option<Line> {
        let place = match rest {
            Rest::InReport => "in the report",
            Rest::InJson => "with --json",
        };
        let more = if self.items.is_empty() { "" } else { " more" };
        let what = if self.dropped == 1 { singular(self.what) } else { self.what };
        let note = || Line::of(Paint::Quiet, &format!("  {}{more} {what} {place}", self.dropped), style);
        (self.dropped > 0).then(note)
    }
}

/// `process` of `processes`, `verdict` of `verdicts`.
fn singular(plural: &str) -> &str {
    match plural.strip_suffix("es") {
        Some(stem) if stem.ends_with("ss") => stem,
        _ => plural.strip_suffix('s').unwrap_or(plural),
    }
}
