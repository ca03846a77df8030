//! `slowpath zygote advise`: records a program, or takes a recording of it, and hands what that shows of its children to the rule. The rule
//! is `slowpath_zygote::advice`'s.

use crate::arguments::ZygoteAdviseArguments;
use crate::commands::{analyze, invoker, print_json};
use crate::failure::{Failure, Kind, failed};
use crate::fresh_directory::FreshDirectory;
use crate::output_directory::unless_empty;
use crate::progress::Progress;
use crate::standard_output::OutputToError;
use crate::target::{Target, not_ready};
use crate::unprivileged::{Work, as_user};
use crate::{interrupt, output_directory, recorded_launch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slowpath_analysis::children::child_launches;
use slowpath_analysis::findings::{self, repeated_child_work};
use slowpath_analysis::{Confidence, Finding};
use slowpath_capture::Options;
use slowpath_launch::{EndPolicy, Identity, StdioPolicy};
use slowpath_recording::Tables;
use slowpath_session::recorded_command;
use slowpath_session::running::Wanted;
use slowpath_tables::{Bytes, Losses, Nanos, OffCpuReason, ProcessKey, Quantity, Unavailable, Unit};
use slowpath_zygote::advice::{Advice, Answer, RepeatedStart, advise};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Most that a recording takes of the disk.
const MOST: u64 = 4 << 30;

/// What `slowpath zygote advise --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ZygoteAdvice {
    /// `slowpath-zygote-advise/1`.
    schema: &'static str,
    /// Whether a zygote pays.
    answer: Answer,
    /// CPU time that all children but one would save together; null where none is predicted.
    predicted_saving: Option<Quantity>,
    /// The same of one child, over its whole start.
    share_of_start: Option<Quantity>,
    /// The program whose children would save it.
    process: Option<String>,
    /// Why.
    reasons: Vec<String>,
    /// Events lost by kind.
    losses: Losses,
    /// What could not be observed.
    unavailable: Vec<Unavailable>,
}

/// What a recording shows.
#[derive(Serialize, Deserialize)]
struct Shown {
    starts: Vec<Start>,
    missing: Vec<String>,
    losses: Losses,
    unavailable: Vec<Unavailable>,
}

#[derive(Serialize, Deserialize)]
struct Start {
    name: String,
    children: u64,
    saving: Quantity,
    starts_ms: Vec<f64>,
    is_doubtful: bool,
}

/// Runs the command.
pub fn run(arguments: &ZygoteAdviseArguments) -> Result<ExitCode, Failure> {
    let shown = match &arguments.recording {
        Some(directory) => shown(directory, &invoker()?)?,
        None => unless_empty(|| recorded(arguments))?,
    };
    let starts: Vec<RepeatedStart> = shown.starts.iter().map(Start::repeated).collect();
    let advice = advise(&starts, &shown.missing);
    if arguments.json {
        print_json(&printed(advice, shown));
    } else {
        print!("{}", text(&advice, &shown));
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(directory: &Path, user: &Identity) -> Result<Shown, Failure> {
    as_user(user, &Work::reading("reading the recording"), || of_recording(directory))
}

/// Records the command, in a directory that goes with this command unless it is to be kept.
fn recorded(arguments: &ZygoteAdviseArguments) -> Result<Shown, Failure> {
    recorded_launch::require("zygote advise", [])?;
    let target = Target::of(&arguments.invocation, arguments.command.clone(), None)?;
    for warning in &target.warnings {
        eprintln!("slowpath: warning: {warning}");
    }
    let fresh = FreshDirectory::new(&target.identity).map_err(failed(Kind::Machine))?;
    let place = arguments.output.clone().unwrap_or_else(|| fresh.path().join("recording"));
    let directory = output_directory::prepare(&place, &target.identity)?;
    interrupt::watch();
    let wanted = Wanted {
        options: Options { files: true, first_waits: true, waits: true, ..Options::default() },
        most: Bytes(MOST),
        duration: arguments.duration.map(Duration::from_secs_f64),
    };
    let recorded = {
        let _elsewhere = arguments.json.then(OutputToError::divert).transpose()?;
        let progress = Progress::new(arguments.quiet);
        recorded_command::record(&target, wanted, &directory, EndPolicy::KillTree, StdioPolicy::Inherit, &progress)?
    };
    if let Some(failure) = not_ready(&recorded.outcome).filter(|_| recorded.stop.is_none()) {
        return Err(failure);
    }
    if interrupt::requested() {
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    }
    shown(&directory, &target.identity)
}

impl Start {
    fn repeated(&self) -> RepeatedStart {
        RepeatedStart {
            name: self.name.clone(),
            children: self.children,
            saving_ms: self.saving.value,
            starts_ms: self.starts_ms.clone(),
            is_doubtful: self.is_doubtful,
        }
    }
}

fn printed(advice: Advice, shown: Shown) -> ZygoteAdvice {
    let best = advice.best.and_then(|index| shown.starts.into_iter().nth(index));
    ZygoteAdvice {
        schema: "slowpath-zygote-advise/1",
        answer: advice.answer,
        predicted_saving: best.as_ref().map(|start| start.saving),
        share_of_start: advice.share.map(|share| Quantity::exact(share * 100.0, Unit::Percent)),
        process: best.map(|start| start.name),
        reasons: advice.reasons,
        losses: shown.losses,
        unavailable: shown.unavailable,
    }
}

fn text(advice: &Advice, shown: &Shown) -> String {
    use std::fmt::Write;
    let answer = match advice.answer {
        Answer::Yes => "yes: a zygote pays",
        Answer::No => "no: a zygote does not pay",
        Answer::Unknown => "unknown: this recording does not decide it",
    };
    let mut text = format!("{answer}\n");
    for reason in &advice.reasons {
        let _ = writeln!(text, "  {}", crate::printing::escape_terminal(reason));
    }
    if let Some(start) = advice.best.and_then(|index| shown.starts.get(index)) {
        let saving = &start.saving;
        let interval =
            saving.low.zip(saving.high).map_or_else(String::new, |(low, high)| format!(" ({low:.1} to {high:.1})"));
        let _ =
            writeln!(text, "  predicted saving: {:.1} ms{interval} of CPU time, all children together", saving.value);
    }
    text
}

fn of_recording(directory: &Path) -> Result<Shown, Failure> {
    let tables = analyze::open(directory)?;
    let found = findings::of_recordings(&[&tables], None);
    let repeated = found.iter().filter(|finding| finding.name == repeated_child_work::NAME);
    let starts = repeated.filter_map(|finding| start(finding, &tables)).collect();
    let mut missing = Vec::new();
    if tables.opens.is_empty() {
        missing.push("no opens were recorded: record without --no-files".to_owned());
    }
    if tables.off_cpu.is_empty() {
        missing.push("no waits were recorded: record with --off-cpu".to_owned());
    }
    if tables.manifest.ended.is_none() {
        missing.push("the recording has not ended in order".to_owned());
    }
    let manifest = tables.manifest;
    Ok(Shown { starts, missing, losses: manifest.losses, unavailable: manifest.unavailable })
}

/// The children of a finding: by their kinds, which stand in its evidence, and how long each took until it was ready, or ended.
fn start(finding: &Finding, tables: &Tables) -> Option<Start> {
    let rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    let kinds: BTreeSet<&str> = rows.filter_map(|row| row.get("kind").and_then(Value::as_str)).collect();
    let ends: BTreeMap<_, _> = tables.exits.iter().map(|exit| (exit.process(), exit.ts)).collect();
    // What others took of the CPUs belongs to no start: with it, the same program would be answered otherwise on a busy machine.
    let mut waited: BTreeMap<ProcessKey, Vec<(Nanos, Nanos)>> = BTreeMap::new();
    for row in tables.off_cpu.iter().filter(|row| row.tid == row.pid) {
        let others = if row.reason == OffCpuReason::Stolen { row.duration } else { row.runnable };
        waited.entry(row.process()).or_default().push((row.ts, others));
    }
    let of_kind = child_launches(tables).into_iter().filter(|child| kinds.contains(child.kind.as_str()));
    let starts_ms = of_kind
        .filter_map(|child| {
            let until = child.ready.or_else(|| ends.get(&child.process).copied())?;
            let waited = waited.get(&child.process).map_or(0, |waits| {
                let is_in = |wait: &&(Nanos, Nanos)| child.forked <= wait.0 && wait.0 <= until;
                waits.iter().filter(is_in).map(|wait| wait.1.0).sum()
            });
            Some(until.0.saturating_sub(child.forked.0).saturating_sub(waited) as f64 / 1e6)
        })
        .collect();
    Some(Start {
        name: finding.subject.get("process").and_then(Value::as_str)?.to_owned(),
        children: finding.subject.get("processes").and_then(Value::as_u64)?,
        saving: finding.predicted_saving?,
        starts_ms,
        is_doubtful: finding.confidence == Confidence::Low,
    })
}
