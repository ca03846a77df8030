//! A diagnosis of processes that run already: recorded for a while, without trials.
//!
//! Nothing of the processes is changed, and what a fix sets holds from the next launch on: so fixes are described and none is tried.

use crate::arm_summary::not_tried;
use crate::denied_files::with_changes;
use crate::directory::RUNNING;
use crate::observed;
use crate::printed::{DIAGNOSE_SCHEMA, Diagnosis, LaunchSummary, RunningSummary, Verdict};
use serde::{Deserialize, Serialize};
use slowpath_analysis::Finding;
use slowpath_analysis::printed::looked_for::{self, LookedFor};
use slowpath_analysis::printed::round_trips::{ReplyPair, of_tables as round_trips_of};
use slowpath_analysis::printed::time_spent::{Condition, TimeSpent, of_tables as time_spent_of};
use slowpath_capture::Options;
use slowpath_fix::program::RunsAs;
use slowpath_fix::{Machine, Proposal, propose};
use slowpath_launch::Identity;
use slowpath_process::{Duty, ProcessFiles, shares_files, status_field};
use slowpath_session::Progress;
use slowpath_session::failure::Failure;
use slowpath_session::open_recording::open;
use slowpath_session::output_directory;
use slowpath_session::running::{self, Meant};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_tables::missing::declared;
use slowpath_tables::{Losses, Quantity, Unavailable, Unit};
use slowpath_verify::Metric;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

/// Time that is recorded where none is asked for.
const USUAL: Duration = Duration::from_secs(10);
/// Bytes that are read of an environment and of a command line: as many as the kernel takes at an exec by default (execve(2)).
const LONGEST: u64 = 2 << 20;

/// What the recording shows.
#[derive(Serialize, Deserialize)]
struct RecordedProcesses {
    findings: Vec<Finding>,
    looked_for: LookedFor,
    proposals: Vec<Proposal>,
    time: Option<TimeSpent>,
    round_trips: Vec<ReplyPair>,
    watched: Quantity,
    losses: Losses,
    unavailable: Vec<Unavailable>,
}

/// What is known of a process before it is recorded: it may end meanwhile.
struct Seen {
    pid: u32,
    command_line: Vec<u8>,
    /// `None` where it could not be read.
    environment: Option<Vec<u8>>,
    who: RunsAs,
    /// Whether the paths that it uses lead to the same files here.
    shares_files: bool,
}

/// Which processes, and for whom.
pub struct Wanted<'a> {
    /// The processes.
    pub meant: &'a Meant,
    /// Their numbers, as the user named them.
    pub pids: &'a [u32],
    /// Where the diagnosis goes: there, and the user's.
    pub directory: &'a Path,
    /// Whose the diagnosis is.
    pub identity: &'a Identity,
    /// How long is recorded, where that was asked for.
    pub duration: Option<Duration>,
}

/// Records processes that run already, and says what they hide.
///
/// # Errors
/// The kernel refuses, or the recording cannot be written or read.
pub fn diagnose(wanted: &Wanted<'_>, progress: &dyn Progress) -> Result<Diagnosis, Failure> {
    let Wanted { meant, pids, directory, identity, duration } = *wanted;
    let place = directory.join(RUNNING);
    output_directory::prepare(&place, identity)?;
    let seen: Vec<Seen> = pids.iter().filter_map(|pid| look(*pid)).collect();
    let options = Options { running: true, files: true, ..observed::options() };
    let recorded = running::Wanted { options, most: observed::MOST, duration: Some(duration.unwrap_or(USUAL)) };
    let recorded = running::record(meant, recorded, &place, identity, progress)?;
    progress.step("looking for hidden costs");
    let machine = as_user(identity, &Work::new("looking at the machine", Duty::Run), || Ok(Machine::look()))?;
    let mut found =
        as_user(identity, &Work::reading("looking for hidden costs"), || found(&place, &seen, &machine, progress))?;
    // The paths of a process with other mounts lead elsewhere.
    if seen.iter().all(|one| one.shares_files) {
        found.proposals = with_changes(found.proposals, &found.findings, None)?;
    }
    Ok(summarize(&place, meant.words.clone(), recorded.stop, &seen, found))
}

/// `None` where the process has ended, or its files cannot be read.
fn look(pid: u32) -> Option<Seen> {
    // What lies in its memory its user may let wait for ever.
    let mut files = ProcessFiles::default();
    let mut read = |name: &str| files.read(Path::new(&format!("/proc/{pid}/{name}")), LONGEST).ok();
    let (status, command_line, environment) = (read("status")?, read("cmdline")?, read("environ"));
    let shares_files = shares_files(pid).unwrap_or(false);
    Some(Seen { pid, command_line, environment, who: real_ids(&String::from_utf8_lossy(&status))?, shares_files })
}

/// The first ids of the lines `Uid:` and `Gid:` of proc_pid_status(5): a program that is set-uid is known by its effective one.
fn real_ids(status: &str) -> Option<RunsAs> {
    let first = |name: &str| status_field(status, name)?.split_whitespace().next()?.parse().ok();
    Some(RunsAs { uid: first("Uid")?, gid: first("Gid")? })
}

/// Reads the recording, and makes the fixes. As the invoker.
fn found(
    directory: &Path,
    seen: &[Seen],
    machine: &Machine,
    progress: &dyn Progress,
) -> Result<RecordedProcesses, Failure> {
    let tables = open(directory, |text| progress.warn(text))?;
    let mut unavailable = tables.manifest.unavailable.clone();
    let (findings, looked_for) = looked_for::search(&tables, None, Condition::Running);
    let elsewhere = seen.iter().find(|one| !one.shares_files);
    if let Some(one) = elsewhere {
        unavailable.push(declared::FILES_OF_PROCESS.of(
            &[&one.pid],
            "it has another root directory or mount namespace: the same paths lead to other files here",
            "run slowpath inside the container; fixes are proposed without a look at programs and libraries",
        ));
    }
    let who = match seen {
        [one] if one.shares_files => Some(one.who),
        _ => None,
    };
    let program = |finding: &Finding| observed::program(&tables, finding, who);
    // What this machine has installed is not what a container has.
    let none = Machine::default();
    let machine = if elsewhere.is_some() { &none } else { machine };
    let environment = match seen {
        [Seen { environment: Some(environment), .. }] => variables(environment),
        _ => {
            unavailable.push(declared::ENVIRONMENT.because(
                "there are several processes, or theirs cannot be read: what fixes set leaves out what they have already",
                "diagnose one process at a time, as root",
            ));
            Vec::new()
        }
    };
    let proposals = propose(&findings, program, &environment, machine, 1.0);
    let time = time_spent_of(&tables, Condition::Running, &mut unavailable);
    let ended = tables.manifest.ended.unwrap_or(tables.manifest.started);
    let watched = Quantity::exact((ended - tables.manifest.started).as_ms() / 1e3, Unit::S);
    let round_trips = round_trips_of(&tables);
    Ok(RecordedProcesses {
        findings,
        looked_for,
        proposals,
        time,
        round_trips,
        watched,
        losses: tables.manifest.losses.clone(),
        unavailable,
    })
}

/// The variables of proc_pid_environ(5): `NAME=VALUE`, each ended by NUL.
fn variables(environment: &[u8]) -> Vec<(OsString, OsString)> {
    let pair = |text: &[u8]| {
        let at = text.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        Some((OsString::from_vec(text[..at].to_vec()), OsString::from_vec(text[at + 1..].to_vec())))
    };
    environment.split(|byte| *byte == 0).filter_map(pair).collect()
}

/// The words of proc_pid_cmdline(5), as a shell would take them. Foreign text.
fn command_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(bytes)).into_owned();
    // That of a kernel thread.
    if text.is_empty() {
        return None;
    }
    shlex::try_join(text.split('\0')).ok()
}

fn summarize(place: &Path, words: String, stop: String, seen: &[Seen], found: RecordedProcesses) -> Diagnosis {
    let line = seen.first().and_then(|seen| command_line(&seen.command_line)).unwrap_or_else(|| "COMMAND".to_owned());
    let again = format!("slowpath diagnose --warm -- {line}");
    let verdict = |proposal: &Proposal| -> Verdict {
        let plan = &proposal.plan;
        let why = match plan.trial.possible {
            true => "a trial needs launches".to_owned(),
            false => plan.trial.how.clone(),
        };
        not_tried(&plan.name, Some(&plan.fix), Metric::Cpu, proposal.predicted, why)
    };
    let mut notes = vec![format!("recording ended: {stop}")];
    if found.proposals.iter().any(|proposal| proposal.plan.trial.possible) {
        notes.push(format!("to try the fixes, launch what does the same work and ends or gets ready: {again}"));
    }
    if found.findings.is_empty() {
        notes.push(looked_for::list(std::slice::from_ref(&found.looked_for)));
    }
    let gaps = found.proposals.iter().filter_map(|proposal| proposal.gap.clone());
    Diagnosis {
        schema: DIAGNOSE_SCHEMA.to_owned(),
        warm: true,
        running: Some(RunningSummary { processes: words.clone(), watched: found.watched }),
        other: None,
        command: vec![words],
        recording: place.to_string_lossy().into_owned(),
        launch: LaunchSummary {
            ready: "nothing was launched".to_owned(),
            seed: 0,
            blocks: 0,
            conditions: Vec::new(),
            judged_by: Metric::Cpu,
            error_rate: None,
            interval_level: None,
            arms: Vec::new(),
        },
        time: found.time.into_iter().collect(),
        looked_for: vec![found.looked_for],
        round_trips: found.round_trips,
        findings: found.findings,
        shared_findings: 0,
        verdicts: found.proposals.iter().map(verdict).collect(),
        unavailable: found.unavailable.iter().cloned().chain(gaps).collect(),
        fixes: found.proposals.into_iter().map(|proposal| proposal.plan).collect(),
        share_of_gap_removed: Vec::new(),
        hidden_by_root: None,
        losses: found.losses,
        notes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_words_of_any_bytes_are_read() {
        let read = variables(b"A=1\0PATH=/a:/b=c\0broken\0=x\0B=\0\xff=\xfe");
        let names: Vec<_> =
            read.iter().map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy())).collect();
        let expected = [("A", "1"), ("PATH", "/a:/b=c"), ("B", ""), ("\u{fffd}", "\u{fffd}")];
        assert_eq!(names, expected.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(command_line(b"sh\0-c\0echo a b\0").as_deref(), Some("sh -c 'echo a b'"));
        assert_eq!(command_line(b""), None);
    }

    #[test]
    fn a_process_is_who_started_it_and_not_whose_its_program_is() {
        let status = "Name:\tsu\nUid:\t1000\t0\t0\t0\nGid:\t1001\t0\t0\t0\n";
        assert_eq!(real_ids(status).map(|who| (who.uid, who.gid)), Some((1000, 1001)));
        assert!(real_ids("Name:\tsu\n").is_none());
    }
}
