//! Asks the kernel for the ranges of a plan, in order.
//!
//! Owns pipelines, limits and the report. A request is `posix_fadvise(WILLNEED)`, which starts reads and returns without
//! waiting for the data. The kernel cuts such a request at the larger of the device's readahead window and its largest
//! request (`force_page_cache_ra` in `mm/readahead.c`), silently; longer ranges are therefore split.

use crate::preload_plan::open::{Mounts, SkipReason, open_planned};
use crate::preload_plan::{PlannedFile, PreloadPlan};
use nix::errno::Errno;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Bytes, Nanos, PAGE_SIZE};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Limits of a replay; they come from the user, not from the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayLimits {
    /// Most bytes that are asked for.
    pub bytes: u64,
    /// Whether files on network file systems are read.
    pub network: bool,
}

impl Default for ReplayLimits {
    /// 2 GiB, local file systems.
    fn default() -> Self {
        Self { bytes: 2 << 30, network: false }
    }
}

/// Files and ranges that were left out for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Files with such a range.
    pub files: u64,
    /// Ranges.
    pub ranges: u64,
}

/// What a replay did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayReport {
    /// Ranges asked for, whole.
    pub ranges: u64,
    /// Bytes of these.
    pub bytes: Bytes,
    /// System calls this took.
    pub requests: u64,
    /// What was left out, by reason.
    pub skipped: BTreeMap<SkipReason, Skipped>,
    /// From the first to the last request; the data may still be on their way.
    pub elapsed_ns: Nanos,
    /// Until the data of the last range were there; null where nobody waited for them (`preload run`).
    pub arrived_ns: Option<Nanos>,
}

/// A range that the kernel cuts nowhere: the default readahead window (`VM_READAHEAD_PAGES`). Used where sysfs does not
/// tell the device's limits (overlay, btrfs).
const UNCUT_REQUEST: u64 = 128 * 1024;

/// The longest request that the kernel does not cut, for a device (`st_dev`).
fn longest_request(dev: u64) -> u64 {
    let (major, minor) = (nix::sys::stat::major(dev), nix::sys::stat::minor(dev));
    let kib = |path: String| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // A partition has no queue of its own, its disk has.
    let disk = kib(format!("/sys/dev/block/{major}:{minor}/queue/max_sectors_kb"))
        .or_else(|| kib(format!("/sys/dev/block/{major}:{minor}/../queue/max_sectors_kb")));
    let window = disk.and_then(|_| kib(format!("/sys/dev/block/{major}:{minor}/bdi/read_ahead_kb")));
    match disk.max(window) {
        Some(kib) => kib.saturating_mul(1024).max(PAGE_SIZE) / PAGE_SIZE * PAGE_SIZE,
        None => UNCUT_REQUEST,
    }
}

/// A file that is ready for requests, with the longest one its device takes.
struct Opened {
    file: File,
    request: u64,
}

/// The files of a plan, each opened once by whoever comes first.
struct Shelf<'a> {
    planned: &'a [PlannedFile],
    opened: Vec<OnceLock<Result<Opened, SkipReason>>>,
    requests: Mutex<HashMap<u64, u64>>,
    mounts: Mounts,
}

impl Shelf<'_> {
    fn get(&self, index: usize) -> &Result<Opened, SkipReason> {
        // The parser guarantees that ranges name files of the plan; a plan built in memory gets a skip instead.
        const NO_SUCH_FILE: &Result<Opened, SkipReason> = &Err(SkipReason::Missing);
        let (Some(slot), Some(planned)) = (self.opened.get(index), self.planned.get(index)) else {
            return NO_SUCH_FILE;
        };
        slot.get_or_init(|| {
            let (file, status) = open_planned(planned, &self.mounts)?;
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            let request = *requests.entry(status.st_dev).or_insert_with(|| longest_request(status.st_dev));
            Ok(Opened { file, request })
        })
    }
}

/// What one pipeline did.
#[derive(Default)]
struct Tally {
    ranges: u64,
    bytes: u64,
    requests: u64,
    skipped: BTreeMap<SkipReason, (BTreeSet<u32>, u64)>,
}

impl Tally {
    fn skip(&mut self, reason: SkipReason, file: u32) {
        let (files, ranges) = self.skipped.entry(reason).or_default();
        files.insert(file);
        *ranges += 1;
    }
}

/// The ranges of one pipeline that were asked for and may still be on their way, oldest first.
struct Window<'a> {
    most: Option<u64>,
    bytes: u64,
    ranges: VecDeque<(&'a File, u64, u64)>,
}

impl<'a> Window<'a> {
    fn new(most: Option<u64>) -> Self {
        Self { most, bytes: 0, ranges: VecDeque::new() }
    }

    /// Waits for the oldest ranges until `length` more bytes fit, or nothing is on its way.
    fn make_room(&mut self, length: u64) {
        let Some(most) = self.most else { return };
        while self.bytes.saturating_add(length) > most
            && let Some((file, from, to)) = self.ranges.pop_front()
        {
            await_last_page(file, from, to);
            self.bytes -= to - from;
        }
    }

    fn push(&mut self, file: &'a File, from: u64, to: u64) {
        if self.most.is_some() {
            self.bytes += to - from;
            self.ranges.push_back((file, from, to));
        }
    }
}

/// Waits until the last page of a range is in memory: reading a page that is on its way waits for it.
fn await_last_page(file: &File, from: u64, to: u64) {
    if from < to {
        // An error of the device concerns the program that needs the page, not the prefetcher.
        let _ = file.read_at(&mut [0u8], to - 1);
    }
}

struct Replay<'a> {
    plan: &'a PreloadPlan,
    shelf: Shelf<'a>,
    next: AtomicUsize,
    bytes: AtomicU64,
    limit: u64,
}

impl Replay<'_> {
    /// Takes ranges from the common list until it is empty.
    fn pipeline(&self) -> Tally {
        let mut tally = Tally::default();
        let threads = u64::from(self.plan.options.threads.max(1));
        let mut window = Window::new(self.plan.options.in_flight_bytes.map(|bytes| bytes / threads));
        while let Some(range) = self.plan.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let (from, to) = self.plan.byte_range(range);
            // Threads may reserve at once, so the limit is checked on the reserved total.
            let reserved = self.bytes.fetch_add(to - from, Ordering::Relaxed).saturating_add(to - from);
            if reserved > self.limit {
                self.bytes.fetch_sub(to - from, Ordering::Relaxed);
                tally.skip(SkipReason::OverByteCap, range.file);
                continue;
            }
            let asked = match self.shelf.get(range.file as usize) {
                Ok(opened) => {
                    window.make_room(to - from);
                    let asked = ask(opened, from, to, &mut tally.requests);
                    window.push(&opened.file, from, to);
                    asked
                }
                Err(reason) => Err(*reason),
            };
            match asked {
                Ok(()) => {
                    tally.ranges += 1;
                    tally.bytes += to - from;
                }
                Err(reason) => {
                    self.bytes.fetch_sub(to - from, Ordering::Relaxed);
                    tally.skip(reason, range.file);
                }
            }
        }
        tally
    }

    /// Waits for the last page of every range that fits the limit. A read of a page under way ends when it is there.
    fn wait(&self) {
        let mut bytes = 0u64;
        for range in &self.plan.ranges {
            let (from, to) = self.plan.byte_range(range);
            let Ok(opened) = self.shelf.get(range.file as usize) else { continue };
            bytes = bytes.saturating_add(to - from);
            if bytes <= self.limit {
                await_last_page(&opened.file, from, to);
            }
        }
    }
}

fn since(begun: Instant) -> Nanos {
    Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

fn ask(opened: &Opened, from: u64, to: u64, requests: &mut u64) -> Result<(), SkipReason> {
    let mut at = from;
    while at < to {
        let length = (to - at).min(opened.request);
        let (Ok(offset), Ok(bytes)) = (i64::try_from(at), i64::try_from(length)) else {
            return Err(SkipReason::Failed);
        };
        *requests += 1;
        match posix_fadvise(&opened.file, offset, bytes, PosixFadviseAdvice::POSIX_FADV_WILLNEED) {
            Ok(()) | Err(Errno::EINTR) => {}
            Err(_) => return Err(SkipReason::Failed),
        }
        at += length;
    }
    Ok(())
}

/// Asks for every range of a plan, in the plan's order, as the calling user.
///
/// Never fails as a whole: what cannot be asked for is left out and counted.
pub fn replay(plan: &PreloadPlan, limits: &ReplayLimits) -> ReplayReport {
    run(plan, limits, false)
}

/// The same, and waits until the data of all ranges are there: a dry run that measures what prefetching costs.
///
/// Waiting reads one byte of every range, in order; a range cut by memory pressure meanwhile is read again.
pub fn replay_and_wait(plan: &PreloadPlan, limits: &ReplayLimits) -> ReplayReport {
    run(plan, limits, true)
}

fn run(plan: &PreloadPlan, limits: &ReplayLimits, wait: bool) -> ReplayReport {
    let begun = Instant::now();
    let replay = Replay {
        plan,
        shelf: Shelf {
            planned: &plan.files,
            opened: (0..plan.files.len()).map(|_| OnceLock::new()).collect(),
            requests: Mutex::default(),
            mounts: Mounts::now(limits.network),
        },
        next: AtomicUsize::new(0),
        bytes: AtomicU64::new(0),
        limit: limits.bytes,
    };
    let others = plan.options.threads.clamp(1, crate::preload_plan::file::MAX_THREADS) - 1;
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        if plan.options.metadata {
            // In the order of first use: files are listed in it.
            spawn(scope, || {
                for index in 0..plan.files.len() {
                    let _ = replay.shelf.get(index);
                }
                Tally::default()
            });
        }
        let pipelines: Vec<_> = (0..others).filter_map(|_| spawn(scope, || replay.pipeline())).collect();
        let own = replay.pipeline();
        // A pipeline that panicked loses its counts, nothing else.
        std::iter::once(own).chain(pipelines.into_iter().filter_map(|pipeline| pipeline.join().ok())).collect()
    });
    let asked = since(begun);
    let mut report = ReplayReport::default();
    let mut skipped: BTreeMap<SkipReason, (BTreeSet<u32>, u64)> = BTreeMap::new();
    for tally in tallies {
        report.ranges += tally.ranges;
        report.bytes += Bytes(tally.bytes);
        report.requests += tally.requests;
        for (reason, (files, ranges)) in tally.skipped {
            let total = skipped.entry(reason).or_default();
            total.0.extend(files);
            total.1 += ranges;
        }
    }
    report.skipped = skipped
        .into_iter()
        .map(|(reason, (files, ranges))| (reason, Skipped { files: files.len() as u64, ranges }))
        .collect();
    report.elapsed_ns = asked;
    report.arrived_ns = wait.then(|| {
        replay.wait();
        since(begun)
    });
    report
}

/// A thread of the scope; `None` where the system grants none: the calling thread then does the work alone.
fn spawn<'scope, 'env>(
    scope: &'scope std::thread::Scope<'scope, 'env>,
    work: impl FnOnce() -> Tally + Send + 'scope,
) -> Option<std::thread::ScopedJoinHandle<'scope, Tally>> {
    std::thread::Builder::new().name("preload".to_owned()).spawn_scoped(scope, work).ok()
}
