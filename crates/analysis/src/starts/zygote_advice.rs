//! Whether a zygote pays for a program: a rule on what a recording shows of its children. Pure.
//!
//! The saving of a child ([`crate::findings::repeated_child_work`]) is set against the child's whole start. A zygote is a change of how a
//! program is built, so a few percent are none.

use crate::findings::{self, repeated_child_work};
use crate::launch_facts::LaunchFacts;
use crate::starts::children::child_launches;
use crate::starts::repeated_starts::siblings;
use crate::time::recording_times::RecordingTimes;
use crate::{Confidence, Finding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slowpath_recording::Tables;
use slowpath_tables::{Losses, Nanos, OffCpuReason, ProcessKey, Quantity, Unavailable, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Version of what `slowpath zygote advise --json` prints.
const SCHEMA: &str = "slowpath-zygote-advise/1";

/// What `slowpath zygote advise --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ZygoteAdvice {
    /// `slowpath-zygote-advise/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Whether a zygote pays.
    pub answer: Answer,
    /// CPU time that all children but one would save together; null where none is predicted.
    pub predicted_saving: Option<Quantity>,
    /// The same of one child, over its whole start.
    pub share_of_start: Option<Quantity>,
    /// The program whose children would save it.
    pub process: Option<String>,
    /// Why.
    pub reasons: Vec<String>,
    /// Events lost by kind.
    pub losses: Losses,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
}

impl ZygoteAdvice {
    /// What a recording says.
    pub fn of_tables(tables: &Tables) -> Self {
        let facts = LaunchFacts::new(tables);
        let repeated = findings::of_declaration(&repeated_child_work::FINDING, std::slice::from_ref(&facts));
        let until = repeated_until(&facts);
        let starts = repeated.iter().filter_map(|finding| start(finding, tables, &until));
        let starts: Vec<RepeatedStart> = starts.collect();
        let Advice { answer, share, best, reasons } = advise(&starts, &missing(tables));
        let best = best.and_then(|index| starts.into_iter().nth(index));
        Self {
            schema: SCHEMA.to_owned(),
            answer,
            predicted_saving: best.as_ref().map(|start| start.saving),
            share_of_start: share.map(|share| Quantity::exact(share * 100.0, Unit::Percent)),
            process: best.map(|start| start.name),
            reasons,
            losses: tables.manifest.losses.clone(),
            unavailable: tables.manifest.unavailable.clone(),
        }
    }
}

/// What shows children and was not recorded.
fn missing(tables: &Tables) -> Vec<String> {
    let lacks = [
        (tables.opens.is_empty(), "no opens were recorded: record without --no-files"),
        (tables.off_cpu.is_empty(), "no waits were recorded: record with --off-cpu"),
        (tables.manifest.ended.is_none(), "the recording has not ended in order"),
    ];
    lacks.into_iter().filter(|(lacks, _)| *lacks).map(|(_, text)| text.to_owned()).collect()
}

/// Least share of a child's start that a zygote has to save, to be advised.
const LEAST_SHARE: f64 = 0.2;

/// Below this percentage it is said that threads keep work from being handed on.
const SINGLE_THREADED: f64 = 95.0;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A child's start becomes shorter by 20 % or more.
    Yes,
    /// It does not.
    No,
    /// What was recorded does not decide it.
    Unknown,
}

/// Children of one program that repeat a start.
#[derive(Clone, Debug, PartialEq)]
struct RepeatedStart {
    /// What they are called together.
    name: String,
    /// How many.
    children: u64,
    /// CPU time that all but one would save together, in ms.
    saving: Quantity,
    /// What the whole start of each takes, ms: from its fork until it waits for events, or ends, without waiting for a CPU.
    starts_ms: Vec<f64>,
    /// The children took very different times for the same steps, or rows were lost.
    is_doubtful: bool,
    /// Percent of what they repeat that comes before they start threads.
    percent_before_threads: f64,
}

/// The answer with its reasons.
#[derive(Clone, Debug, PartialEq)]
struct Advice {
    answer: Answer,
    /// The share of a child's start that would be saved, of the program that gains most; none where no start is repeated.
    share: Option<f64>,
    /// Of which program, by its place in the list.
    best: Option<usize>,
    reasons: Vec<String>,
}

impl RepeatedStart {
    /// The share of a child's start that is saved: what one child saves, over the start of one in the middle.
    fn share(&self) -> Option<f64> {
        let mut starts = self.starts_ms.clone();
        starts.sort_by(f64::total_cmp);
        let start = starts.get(starts.len().checked_sub(1)? / 2).copied().filter(|start| *start > 0.0)?;
        let each = self.saving.value / self.children.saturating_sub(1).max(1) as f64;
        // What runs on several CPUs at once is more than the time that passes.
        Some((each / start).clamp(0.0, 1.0))
    }
}

/// Advises from the repeated starts of a program, and from what was not recorded.
fn advise(starts: &[RepeatedStart], missing: &[String]) -> Advice {
    let shares = starts.iter().enumerate().filter_map(|(index, start)| Some((index, start.share()?)));
    let best = shares.max_by(|one, other| one.1.total_cmp(&other.1));
    let Some((index, share)) = best else {
        let (answer, reason) = match (starts.is_empty(), missing.is_empty()) {
            (true, true) => (Answer::No, "no three children of one program repeat a start that is worth it"),
            (true, false) => (Answer::Unknown, "no repeated start is seen, and not all that shows one was recorded"),
            (false, _) => (
                Answer::Unknown,
                "a start is repeated, and how long the children take as a whole is not in the recording",
            ),
        };
        let reasons = std::iter::once(reason.to_owned()).chain(missing.iter().cloned()).collect();
        return Advice { answer, share: None, best: None, reasons };
    };
    let start = &starts[index];
    let mut reasons = vec![format!(
        "{} {} processes repeat a start: without it a child's would be shorter by {:.0} % ({:.0} % or more is worth a zygote)",
        start.children,
        start.name,
        share * 100.0,
        LEAST_SHARE * 100.0
    )];
    if start.percent_before_threads < SINGLE_THREADED {
        reasons.push(format!(
            "{:.0} % of what they repeat comes after they have started threads, and a process with threads cannot be forked soundly: if \
             the threads can be started later, ask again with that",
            100.0 - start.percent_before_threads
        ));
    }
    let answer = match (share >= LEAST_SHARE, start.is_doubtful) {
        (true, false) => Answer::Yes,
        (false, _) => Answer::No,
        (true, true) => {
            reasons.push("how much they repeat is in doubt: `slowpath analyze` of the recording says why".to_owned());
            Answer::Unknown
        }
    };
    Advice { answer, share: Some(share), best: Some(index), reasons }
}

/// When each child has done the last of what its siblings do too.
fn repeated_until(facts: &LaunchFacts<'_>) -> BTreeMap<ProcessKey, Nanos> {
    let all = siblings(facts);
    all.iter().flat_map(|group| &group.starts).map(|start| (start.process, start.until)).collect()
}

/// The children of a finding: by their kinds, which stand in its evidence, and how long each took until it was ready, or ended. One whose main
/// thread waits while another thread does what all children do is not ready yet.
fn start(finding: &Finding, tables: &Tables, repeated: &BTreeMap<ProcessKey, Nanos>) -> Option<RepeatedStart> {
    let rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    let percent = rows.clone().find_map(|row| row.get("percent_before_threads").and_then(Value::as_f64));
    let kinds: BTreeSet<&str> = rows.filter_map(|row| row.get("kind").and_then(Value::as_str)).collect();
    let ends: BTreeMap<_, _> = tables.exits.iter().map(|exit| (exit.process(), exit.ts)).collect();
    // What others took of the CPUs belongs to no start, nor what recording took: with it, the same program would be answered otherwise on
    // a busy machine, and with call stacks.
    let mut waited: BTreeMap<ProcessKey, Vec<(Nanos, Nanos)>> = BTreeMap::new();
    for row in tables.off_cpu.iter().filter(|row| row.tid == row.pid) {
        let others = if row.reason == OffCpuReason::Stolen { row.duration } else { row.runnable };
        waited.entry(row.process()).or_default().push((row.ts, others));
    }
    let recording = RecordingTimes::new(tables);
    let of_kind = child_launches(tables).into_iter().filter(|child| kinds.contains(child.kind.as_str()));
    let starts_ms = of_kind
        .filter_map(|child| {
            let until = child.ready.or_else(|| ends.get(&child.process).copied())?;
            let until = repeated.get(&child.process).map_or(until, |repeated| until.max(*repeated));
            let waited = waited.get(&child.process).map_or(0, |waits| {
                let is_in = |wait: &&(Nanos, Nanos)| child.forked <= wait.0 && wait.0 <= until;
                waits.iter().filter(is_in).map(|wait| wait.1.0).sum()
            });
            let recording = recording.between(child.process, child.process.pid, child.forked, until).0;
            let others = u64::saturating_add(waited, recording);
            Some(until.0.saturating_sub(child.forked.0).saturating_sub(others) as f64 / 1e6)
        })
        .collect();
    Some(RepeatedStart {
        name: finding.subject.get("process").and_then(Value::as_str)?.to_owned(),
        children: finding.subject.get("processes").and_then(Value::as_u64)?,
        saving: finding.predicted_saving?,
        starts_ms,
        is_doubtful: finding.confidence == Confidence::Low,
        percent_before_threads: percent.unwrap_or(100.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(saving_ms: f64, starts_ms: &[f64]) -> RepeatedStart {
        RepeatedStart {
            name: "worker".into(),
            children: 5,
            saving: Quantity::exact(saving_ms, Unit::Ms),
            starts_ms: starts_ms.to_vec(),
            is_doubtful: false,
            percent_before_threads: 100.0,
        }
    }

    #[test]
    fn a_fifth_of_a_childs_start_is_worth_it_and_less_is_not() {
        for (saving, answer) in [(400.0, Answer::Yes), (80.0, Answer::Yes), (79.0, Answer::No), (0.0, Answer::No)] {
            let advice = advise(&[start(saving, &[100.0, 90.0, 5000.0])], &[]);
            assert_eq!(advice.answer, answer, "{saving}: {advice:?}");
        }
        let advice = advise(&[start(4.0, &[100.0]), start(300.0, &[100.0])], &[]);
        assert_eq!((advice.answer, advice.best, advice.share), (Answer::Yes, Some(1), Some(0.75)));
    }

    #[test]
    fn a_child_whose_main_thread_waits_for_another_is_not_ready_while_that_starts() {
        let ms = 1_000_000u64;
        let mut text = "== manifest\n{\"command\": [\"/bin/app\"], \"started\": 0, \"ended\": 1000000000}\n\
                        == execs\nts pid start filename command_line dev ino\n1 7 1 /bin/app /bin/app 1 1\n"
            .to_owned();
        // The main thread opens /lib/a at 5 ms, starts a thread and waits; that opens /lib/b at 15 ms and /lib/c at 40 ms.
        for pid in [11, 12, 13] {
            text += &format!(
                "== forks\nts pid start tid parent_pid parent_start thread\n2 {pid} 2 {pid} 7 1 false\n{} {pid} 2 99 {pid} 2 true\n\
                 == execs\nts pid start filename command_line dev ino\n3 {pid} 2 /bin/worker w 1 2\n\
                 == first_waits\nts pid start waited syscall command_line\n{} {pid} 2 2000000 202 w\n\
                 == opens\nts pid start tid path flags result dev ino\n{} {pid} 2 {pid} /lib/a 0 3 1 8\n{} {pid} 2 99 /lib/b 0 3 1 9\n\
                 {} {pid} 2 99 /lib/c 0 3 1 10\n== exits\nts pid start tid last run_time\n{} {pid} 2 {pid} true {}\n",
                6 * ms,
                7 * ms,
                5 * ms,
                15 * ms,
                40 * ms,
                60 * ms,
                40 * ms
            );
        }
        let advice = ZygoteAdvice::of_tables(&Tables::from_text(&text).unwrap());
        // 5 ms of 40 can be handed on; until the main thread waits it would be 5 of 7.
        assert_eq!(advice.share_of_start.map(|share| share.value.round()), Some(12.0), "{advice:?}");
        assert_eq!(advice.answer, Answer::No);
        // Of the 40 ms to /lib/c recording took 15.
        for pid in [11, 12, 13] {
            text += &format!(
                "== faults\nts duration pid start tid kind recording\n{} 9 {pid} 2 {pid} minor {}\n",
                20 * ms,
                15 * ms
            );
        }
        let advice = ZygoteAdvice::of_tables(&Tables::from_text(&text).unwrap());
        assert_eq!(advice.share_of_start.map(|share| share.value.round()), Some(20.0), "{advice:?}");
    }

    #[test]
    fn what_is_not_known_is_said_and_not_guessed() {
        let missing = ["opens were not recorded".to_owned()];
        assert_eq!(advise(&[], &[]).answer, Answer::No);
        let advice = advise(&[], &missing);
        assert!(advice.answer == Answer::Unknown && advice.reasons.contains(&missing[0]));
        assert_eq!(advise(&[start(400.0, &[])], &[]).answer, Answer::Unknown);
        let doubtful = RepeatedStart { is_doubtful: true, ..start(400.0, &[100.0]) };
        assert_eq!(advise(&[doubtful], &[]).answer, Answer::Unknown);
        let threaded = RepeatedStart { percent_before_threads: 10.0, ..start(40.0, &[100.0]) };
        let advice = advise(&[threaded], &[]);
        assert_eq!((advice.answer, advice.reasons.len()), (Answer::No, 2));
        assert!(advice.reasons[1].starts_with("90 % of what they repeat comes after they have started threads"));
    }
}
