//! The recorded launches of a diagnosis: at readahead 0, which shows what is needed page by page, and one under the
//! conditions asked for, which shows what is read. When a launch misses the lab, the lab is built again larger.

use crate::directory::COLD;
use slowpath_capture::{LabDevice, Options, RawCapture, decode};
use slowpath_lab::{Lab, PageRun, Settings, lab_misses};
use slowpath_launch::{EndPolicy, LaunchOutcome, StdioPolicy};
use slowpath_session::Progress;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::interrupt;
use slowpath_session::recorded_launch::{self, RecorderHooks, RecordingSubject};
use slowpath_session::target::{Target, launcher, not_ready};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_tables::{Asker, Bytes, Exec, FileKey, PageCache, PageCacheOp};
use slowpath_verify::{cold, lab_session};
use std::collections::BTreeSet;
use std::path::Path;

/// Launches at readahead 0: enough to leave one out when predicting, and for a majority per page.
const TRAININGS: usize = 3;
/// `PROT_EXEC`: mapped to be executed.
const PROT_EXEC: u32 = 4;
/// Launches to get a cold one, and labs to get one that holds everything.
const ATTEMPTS: usize = 3;

/// Counter of a manifest: bytes that the block layer delivered from the lab's device during the recording.
pub const LAB_DEVICE_BYTES: &str = "lab_device_bytes";

/// What the trainings gave.
#[derive(Debug)]
pub struct Trained {
    /// Number of recordings `needed-1` ... in the directory.
    pub recordings: usize,
    /// What launches read of the lab.
    pub read: ReadByLaunches,
    /// Bytes of lab misses, as a share of all, in the recorded cold launch.
    pub misses: f64,
    /// Launches that were not cold.
    pub discarded: usize,
}

/// What launches read of the lab's files.
#[derive(Clone, Debug)]
pub struct ReadByLaunches {
    /// The least that one needs: the smallest training until ready.
    pub at_least: Bytes,
    /// Pages that any of them read, also after it was ready and by readahead, and what was in memory after a warm launch that read more.
    pub pages: Vec<PageRun>,
}

enum Attempt {
    Done(Trained),
    /// The lab lacks files.
    Missing {
        /// Files that the launch used.
        used: Vec<String>,
        /// Programs and libraries that ran from outside the lab.
        outside: Vec<String>,
    },
}

/// Builds a lab that holds what the target needs and records the trainings in it.
pub fn in_a_fitting_lab(
    target: &Target,
    settings: Settings,
    directory: &Path,
    progress: &dyn Progress,
) -> Result<(Lab, Trained), Failure> {
    let mut files: BTreeSet<String> = lab_session::first_look(target, progress)?;
    let mut missing = Vec::new();
    let mut left_out = None;
    for _ in 0..ATTEMPTS {
        files.extend(missing);
        let mut lab = lab_session::build(&files, settings, true, progress)?;
        match record_all(target, &mut lab, settings, directory, progress)? {
            Attempt::Done(trained) => return Ok((lab, trained)),
            Attempt::Missing { used, outside } => {
                left_out = outside.first().cloned();
                missing = used;
            }
        }
    }
    Err(match left_out {
        Some(file) => {
            Failure::new(Kind::Machine, format!("{file} runs from outside the lab, so no launch would be cold"))
        }
        None => Failure::new(Kind::Machine, "launches keep reading more than 1 % from outside the lab")
            .hint("the files that the command reads are not the same from launch to launch"),
    })
}

fn record_all(
    target: &Target,
    lab: &mut Lab,
    settings: Settings,
    directory: &Path,
    progress: &dyn Progress,
) -> Result<Attempt, Failure> {
    let mut discarded = 0;
    lab.set_settings(Settings::page_by_page()).map_err(failed(Kind::Machine))?;
    let mut recorded: Vec<(String, RecordedCold)> = Vec::new();
    for number in 1..=TRAININGS {
        progress.count("recording at readahead 0: which pages are needed?", number, TRAININGS);
        let launch = recorded_cold(target, lab, Options::default(), &mut discarded)?;
        recorded.push((format!("needed-{number}"), launch));
    }
    lab.set_settings(settings).map_err(failed(Kind::Machine))?;
    progress.step("recording a cold launch: what is read?");
    let options = Options { waits: true, first_waits: true, ..Options::default() };
    let cold = recorded_cold(target, lab, options, &mut discarded)?;
    let used = used_files(target, lab, &cold.raw, cold.outcome.ready_at)?;
    if used.misses > slowpath_lab::PAST_LAB_AT_MOST || !used.outside.is_empty() {
        return Ok(Attempt::Missing { used: used.used, outside: used.outside });
    }
    let trainings = recorded.iter().map(|(_, launch)| read_by(target, launch)).collect::<Result<Vec<_>, _>>()?;
    let at_least = trainings.iter().map(|read| read.until_ready).min().unwrap_or_default();
    let pages = trainings.into_iter().flat_map(|read| read.pages).chain(used.read);
    let read = ReadByLaunches { at_least, pages: PageRun::joined(pages.collect()) };
    recorded.push((COLD.to_owned(), cold));
    for (name, launch) in &recorded {
        let counters = [(LAB_DEVICE_BYTES, launch.device_bytes.0)];
        let subject = RecordingSubject::launched(target, &launch.outcome);
        recorded_launch::write(subject, &directory.join(name), &launch.raw, None, &counters)?;
    }
    Ok(Attempt::Done(Trained { recordings: TRAININGS, read, misses: used.misses, discarded }))
}

/// A recorded launch that was cold.
struct RecordedCold {
    outcome: LaunchOutcome,
    raw: RawCapture,
    /// What the block layer counted for the lab's device: a cross-check of the page-cache rows.
    device_bytes: Bytes,
}

fn recorded_cold(target: &Target, lab: &Lab, options: Options, discarded: &mut usize) -> Result<RecordedCold, Failure> {
    for _ in 0..ATTEMPTS {
        if interrupt::requested() {
            return Err(Failure::new(Kind::Interrupted, "interrupted"));
        }
        let lab_device = Some(LabDevice { dev: lab.device().dev() });
        let options = Options { lab: lab_device, ..options };
        let mut hooks = RecorderHooks::load(options, &target.identity)?;
        let (spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
        let launched = cold(lab, &mut launcher(), spec, &mut hooks, None, false).map_err(lab_session::lab_failure)?;
        let (raw, _) = hooks.finish()?;
        if let Some(failure) = not_ready(&launched.outcome) {
            return Err(failure);
        }
        if launched.not_as_meant.is_none() {
            return Ok(RecordedCold { outcome: launched.outcome, raw, device_bytes: launched.io.bytes });
        }
        *discarded += 1;
    }
    Err(Failure::new(Kind::Machine, format!("no launch in the lab was cold in {ATTEMPTS} attempts")))
}

/// What a recorded launch read of the lab's files.
#[derive(serde::Serialize, serde::Deserialize)]
struct Read {
    until_ready: Bytes,
    pages: Vec<PageRun>,
}

fn read_by(target: &Target, launch: &RecordedCold) -> Result<Read, Failure> {
    let (raw, ready) = (&launch.raw, launch.outcome.ready_at);
    as_user(&target.identity, &Work::reading("reading a recorded launch"), || {
        let decoded = decode(raw);
        let early = from_lab(&decoded.page_cache, raw).filter(|row| ready.is_none_or(|ready| row.ts.0 <= ready));
        let until_ready = early.map(|row| row.pages).sum::<slowpath_tables::Pages>().bytes();
        Ok(Read { until_ready, pages: pages_from_lab(&decoded.page_cache, raw) })
    })
}

/// What came into memory from the lab's files.
fn from_lab<'a>(rows: &'a [PageCache], raw: &'a RawCapture) -> impl Iterator<Item = &'a PageCache> {
    rows.iter().filter(|row| row.op == PageCacheOp::Add && Some(row.dev) == raw.facts.lab_dev)
}

fn pages_from_lab(rows: &[PageCache], raw: &RawCapture) -> Vec<PageRun> {
    let run = |row: &PageCache| PageRun { file: row.file(), first: row.page, pages: row.pages };
    PageRun::joined(from_lab(rows, raw).map(run).collect())
}

/// What a launch took from outside the lab.
#[derive(serde::Serialize, serde::Deserialize)]
struct UsedFiles {
    /// Share of lab misses in the bytes read until ready.
    misses: f64,
    /// Files that the launch used and did not write.
    used: Vec<String>,
    /// Programs, and files mapped for execution, that did not come from the lab: pages of theirs that are in memory
    /// already are read by nobody, so the share alone would not show them.
    outside: Vec<String>,
    /// Pages that it read of the lab's files.
    read: Vec<PageRun>,
}

fn used_files(target: &Target, lab: &Lab, raw: &RawCapture, ready: Option<u64>) -> Result<UsedFiles, Failure> {
    let dev = lab.device().dev();
    as_user(&target.identity, &Work::reading("reading a recorded launch"), || {
        let decoded = decode(raw);
        let paths: std::collections::BTreeMap<_, _> =
            decoded.files.iter().map(|file| (file.file(), file.path.as_str())).collect();
        let reads = decoded
            .page_cache
            .iter()
            .filter(|row| row.op == PageCacheOp::Add && row.asker != Asker::Write && row.asker != Asker::Other)
            .filter(|row| ready.is_none_or(|ready| row.ts.0 <= ready))
            .map(|row| (row.dev, paths.get(&row.file()).copied().unwrap_or("?"), row.pages.bytes()));
        let misses = lab_misses(dev, reads);
        let used: Vec<String> = lab_session::files_used(raw).into_iter().collect();
        let mut outside: Vec<String> = decoded
            .mappings
            .iter()
            .filter(|mapping| mapping.prot & PROT_EXEC != 0)
            .filter_map(|mapping| Some(FileKey { dev: mapping.dev?, ino: mapping.ino? }))
            .chain(decoded.execs.iter().map(Exec::file))
            // Major 0 is for file systems without a device: shared memory and the like, which is no file to be read.
            .filter(|file| file.dev != dev && file.device().0 != 0)
            .filter_map(|file| paths.get(&file).copied())
            .filter(|path| path.starts_with('/') && used.iter().any(|one| one == path))
            .map(str::to_owned)
            .collect();
        outside.sort();
        outside.dedup();
        Ok(UsedFiles { misses, used, outside, read: pages_from_lab(&decoded.page_cache, raw) })
    })
}
