//! The manifest: what was recorded, on which machine, with which losses, and which segments are whole.

use crate::MANIFEST_FILE;
use crate::huge_pages::HugePages;
use crate::memory_cost::MemoryCost;
use crate::memory_threads::MemoryThreads;
use crate::read_error::{OpenError, Why};
use crate::segment_limits::MOST_SEGMENTS;
use schemars::JsonSchema;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use slowpath_tables::missing::declared;
use slowpath_tables::{Bytes, Losses, Nanos, Unavailable, escape_json, page_of_kernel};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// Version of the tables and of the manifest that this program writes and knows to read.
pub const SCHEMA_VERSION: u32 = 1;

/// Counter of a manifest: CPU samples a second on each CPU, as asked for.
pub const CPU_SAMPLE_HZ: &str = "cpu_sample_hz";

/// Everything about a recording that is not a row of a table.
///
/// Points of time are `CLOCK_MONOTONIC`; [`Clock`] maps them to the time of day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`] of the program that wrote the recording.
    pub schema_version: u32,
    /// When the recording was created, RFC 3339, UTC.
    pub created: String,
    /// The machine.
    pub host: Host,
    /// Relation of the recording's clock to the time of day when recording began.
    pub clock: Clock,
    /// The same when it ended; null where it did not end in order. Where the two differ, see [`Manifest::clock_step`].
    #[serde(default)]
    pub clock_at_end: Option<Clock>,
    /// The process that records; what it is when it lives and recording has not ended is [`Manifest::progress`].
    #[serde(default)]
    pub recorder: Option<RecorderProcess>,
    /// Command line of the recorded program; empty when running processes were recorded.
    pub command: Vec<String>,
    /// User id the program ran under.
    pub uid: u32,
    /// Working directory of the program.
    pub cwd: String,
    /// The launch, when the recording holds one from its first instruction.
    pub launch: Option<Launch>,
    /// When recording began.
    pub started: Nanos,
    /// When recording ended; null while it goes on and for ever when the recorder was killed.
    pub ended: Option<Nanos>,
    /// Why recording ended, where it was not the end of the program.
    pub stop_reason: Option<String>,
    /// Page faults of the whole machine meanwhile; null while recording goes on, and where they are not known.
    #[serde(default)]
    pub machine_faults: Option<MachineFaults>,
    /// What the kernel's threads for memory did meanwhile; null while recording goes on, where they are not seen (`unavailable` says
    /// why), and in recordings that lack the field.
    #[serde(default)]
    pub memory_threads: Option<MemoryThreads>,
    /// What mapping, touching and releasing memory costs, measured just before recording; null where memory calls were not recorded,
    /// where it could not be measured (`unavailable` says why), and in recordings that lack the field.
    #[serde(default)]
    pub memory_cost: Option<MemoryCost>,
    /// Devices that the tables name.
    pub devices: Vec<Device>,
    /// Probes that were asked for.
    pub probes: Vec<Probe>,
    /// Events and rows that were lost, by kind.
    pub losses: Losses,
    /// What could not be observed here.
    pub unavailable: Vec<Unavailable>,
    /// Further counts, by name (kernel oracles, cost of the recorder).
    pub counters: BTreeMap<String, u64>,
    /// The segments that are whole, in the order of writing.
    pub segments: Vec<Segment>,
}

/// The version of a manifest, whatever else it holds.
#[derive(Deserialize)]
struct Version {
    #[serde(default, deserialize_with = "number")]
    schema_version: Option<u64>,
}

/// A number; none for anything else, of which nothing is kept.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    struct Number;
    impl<'de> Visitor<'de> for Number {
        type Value = Option<u64>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }
        fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
            Ok(Some(number))
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            while from.next_element::<IgnoredAny>()?.is_some() {}
            Ok(None)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            while from.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(None)
        }
    }
    from.deserialize_any(Number)
}

/// The machine a recording was made on; without its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Release of the kernel (`uname -r`).
    pub kernel: String,
    /// Architecture (`uname -m`).
    pub machine: String,
    /// Bytes of a page of its kernel; tables count in pages of 4 KiB, whatever this is.
    pub page_size: u64,
    /// CPUs on line.
    pub cpus: u32,
    /// Memory in bytes (`MemTotal`).
    pub memory_bytes: u64,
    /// Transparent huge pages; null where the kernel has none, and in recordings that lack the field.
    #[serde(default)]
    pub huge_pages: Option<HugePages>,
}

impl Host {
    /// Bytes of a page of its kernel: what one page fault brings. 4 KiB where a recording does not say.
    pub fn page(&self) -> u64 {
        page_of_kernel(self.page_size)
    }

    /// Bytes of a huge page: a page table is a page of entries of eight bytes, one of which maps that much.
    pub fn huge_page(&self) -> Bytes {
        Bytes(self.page() / 8 * self.page())
    }
}

/// One moment on two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// `CLOCK_MONOTONIC`.
    pub monotonic: Nanos,
    /// `CLOCK_REALTIME`, ns since 1970.
    pub realtime: i64,
}

/// A process by pid and start time: pids are used again, the pair is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecorderProcess {
    /// Pid.
    pub pid: u32,
    /// Start in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start: u64,
}

/// Page faults that the kernel counted on the whole machine from just before the first process was followed until just after the
/// last was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFaults {
    /// All (`pgfault` of `/proc/vmstat`): also those of tasks that are not recorded, those that the kernel took itself for a task
    /// (`get_user_pages`), which raise no event, and those that failed, which no task counts (`mm_account_fault` in mm/memory.c).
    pub faults: u64,
    /// Those that read a page (`pgmajfault`). Tasks also count as major what had to be tried again, so theirs may be more.
    pub major: u64,
    /// Of `faults`, those of the recorder and of the process that writes for it (`/proc/PID/stat`).
    pub recorder: u64,
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It ended in order.
    Ended,
    /// Its recorder lives: there will be more.
    InProgress,
    /// Its recorder was killed: this is all.
    Killed,
}

/// The recorded launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Launch {
    /// When exec was released.
    pub released: Nanos,
    /// When the program was ready; null when it never was.
    pub ready: Option<Nanos>,
    /// What counted as ready, in words.
    pub ready_when: String,
    /// How the launch ended, in words (`ready`, `exited 1`, `timed out`).
    pub outcome: String,
}

/// A block device or file system that rows name by number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Number as the tables hold it (`major << 20 | minor`).
    pub dev: u64,
    /// Name of the block device or the source of the mount.
    pub name: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Type of the file system.
    pub fs: String,
    /// Readahead window in KiB; null where the device has none.
    pub read_ahead_kb: Option<u64>,
    /// True for a device made by the lab.
    pub lab: bool,
}

/// A probe that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Name of the probe.
    pub name: String,
    /// Whether it ran.
    pub state: ProbeState,
}

/// Whether a probe ran; the reason why not stands in [`Manifest::unavailable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeState {
    /// It recorded.
    Attached,
    /// It could not be attached.
    Unavailable,
}

/// Why what a probe records is not in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRecorded<'a> {
    /// It did not run; with the recorder's words for it, where there are some.
    Refused(Option<&'a Unavailable>),
    /// Nobody asked for it.
    NotAskedFor,
}

/// A whole file of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// Name of the table.
    pub table: String,
    /// File, relative to the recording: `<table>/<number>.parquet`.
    pub file: String,
    /// Rows in it.
    pub rows: u64,
    /// Size of the file.
    pub bytes: Bytes,
}

impl Default for Manifest {
    /// An empty manifest of the present version; every field is for the caller to fill.
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            created: String::new(),
            host: Host::default(),
            clock: Clock::default(),
            clock_at_end: None,
            recorder: None,
            command: Vec::new(),
            uid: 0,
            cwd: String::new(),
            launch: None,
            started: Nanos(0),
            ended: None,
            stop_reason: None,
            machine_faults: None,
            memory_threads: None,
            memory_cost: None,
            devices: Vec::new(),
            probes: Vec::new(),
            losses: Losses::default(),
            unavailable: Vec::new(),
            counters: BTreeMap::new(),
            segments: Vec::new(),
        }
    }
}

impl Manifest {
    /// Reads a manifest from its JSON.
    ///
    /// # Errors
    /// `NotARecording` for JSON of something else (other programs have a `manifest.json` too), `Newer` for a later
    /// version, `Damaged` for text that is no JSON or that lacks what its version promises.
    pub fn parse(json: &[u8]) -> Result<Self, OpenError> {
        let damaged = |why| OpenError::Damaged { file: MANIFEST_FILE.to_owned(), why };
        // The version alone comes first: a newer manifest may have any other shape. Nothing else is kept meanwhile: as a tree of
        // values a manifest would take sixteen times its size.
        let version: Version = serde_json::from_slice(json).map_err(|e| damaged(Why::Json(e)))?;
        let Some(found) = version.schema_version else {
            return Err(OpenError::NotARecording { why: format!("{MANIFEST_FILE} has no schema_version") });
        };
        if found > u64::from(SCHEMA_VERSION) {
            return Err(OpenError::Newer { found, known: SCHEMA_VERSION });
        }
        let manifest: Self = serde_json::from_slice(json).map_err(|e| damaged(Why::Json(e)))?;
        let found = manifest.segments.len();
        if found > MOST_SEGMENTS {
            return Err(damaged(Why::TooLarge { what: "segments", found: found as u64, most: MOST_SEGMENTS as u64 }));
        }
        let mut files = HashSet::with_capacity(found);
        // A segment that is read twice would count twice, and a small recording could fill the memory by naming one file often.
        match manifest.segments.iter().find(|segment| !files.insert(segment.file.as_str())) {
            Some(twice) => Err(OpenError::Damaged { file: twice.file.clone(), why: Why::Twice }),
            None => Ok(manifest),
        }
    }

    /// The manifest as indented JSON with a final newline.
    pub fn to_json(&self) -> String {
        // Strings, integers and maps with string keys: nothing here can fail to serialize.
        let mut text = escape_json(&serde_json::to_string_pretty(self).unwrap_or_default());
        text.push('\n');
        text
    }

    /// Rows of a table, by the list of whole segments.
    pub fn rows(&self, table: &str) -> u64 {
        self.segments.iter().filter(|segment| segment.table == table).fold(0, |sum, s| sum.saturating_add(s.rows))
    }

    /// Why what a probe records is not here; `None` where it ran.
    pub fn not_recorded(&self, probe: &str) -> Option<NotRecorded<'_>> {
        match self.probes.iter().find(|one| one.name == probe).map(|one| one.state) {
            Some(ProbeState::Attached) => None,
            Some(ProbeState::Unavailable) => {
                let what = declared::PROBE.of(&[&probe], "", "").what;
                Some(NotRecorded::Refused(self.unavailable.iter().find(|one| one.what == what)))
            }
            None => Some(NotRecorded::NotAskedFor),
        }
    }

    /// Whether a probe was asked for and ran.
    pub fn ran(&self, probe: &str) -> bool {
        self.not_recorded(probe).is_none()
    }

    /// How far the recording is; `is_alive` says whether a process lives.
    pub fn progress(&self, is_alive: impl FnOnce(RecorderProcess) -> bool) -> Progress {
        match self.recorder {
            _ if self.ended.is_some() => Progress::Ended,
            Some(recorder) if is_alive(recorder) => Progress::InProgress,
            _ => Progress::Killed,
        }
    }

    /// By how many ns the time of day went ahead of the recording's clock between the two moments of which both are known;
    /// `None` where it did by no more than a clock that is being disciplined does: 500 ppm (adjtimex(2)), and 10 ms for the
    /// reading. A sleep of the machine shows too: the recording's clock stands still in it.
    pub fn clock_step(&self) -> Option<i64> {
        let end = self.clock_at_end?;
        let passed = i128::from(end.monotonic.0) - i128::from(self.clock.monotonic.0);
        let step = i128::from(end.realtime) - i128::from(self.clock.realtime) - passed;
        (step.abs() > passed.abs() / 2_000 + 10_000_000).then(|| i64::try_from(step).unwrap_or(i64::MAX))
    }

    /// Samples a second on each CPU, as they were asked for; `None` without, and for a number that is no rate.
    pub fn cpu_sample_hz(&self) -> Option<u64> {
        self.counters.get(CPU_SAMPLE_HZ).copied().filter(|rate| (1..=1_000_000_000).contains(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_clock_is_told_from_a_disciplined_one() {
        let second = 1_000_000_000;
        let at = |monotonic: u64, realtime: i64| Clock { monotonic: Nanos(monotonic), realtime };
        let step = |realtime: i64| {
            let clock_at_end = Some(at(1000 * second as u64, realtime));
            Manifest { clock: at(0, 7), clock_at_end, ..Manifest::default() }.clock_step()
        };
        assert_eq!(step(1000 * second + 7), None);
        assert_eq!(step(1000 * second + 7 + second / 2), None);
        assert_eq!(step(4600 * second + 7), Some(3600 * second));
        assert_eq!(step(999 * second + 7), Some(-second));
        assert_eq!(Manifest::default().clock_step(), None);
    }

    #[test]
    fn a_host_has_pages_of_a_size_that_kernels_have() {
        let host = |page_size| Host { page_size, ..Host::default() };
        let sizes =
            [0, 4096, 16384, 65536, 12288, 1 << 30].map(|size| (host(size).page(), host(size).huge_page().0 >> 20));
        assert_eq!(sizes, [(4096, 2), (4096, 2), (16384, 32), (65536, 512), (4096, 2), (4096, 2)]);
    }

    #[test]
    fn a_manifest_from_before_a_field_was_added_opens_without_it() {
        let machine_faults = Some(MachineFaults { faults: 7, major: 1, recorder: 2 });
        let memory_cost = Some(MemoryCost { took: Nanos(9), blocks: Vec::new() });
        let memory_threads = Some(MemoryThreads::default());
        let manifest = Manifest { machine_faults, memory_threads, memory_cost, ..Manifest::default() };
        let mut value = serde_json::to_value(&manifest).unwrap();
        assert_eq!(Manifest::parse(value.to_string().as_bytes()).unwrap(), manifest);
        value["host"].as_object_mut().unwrap().remove("huge_pages").unwrap();
        for added in ["machine_faults", "memory_threads", "memory_cost", "recorder", "clock_at_end"] {
            value.as_object_mut().unwrap().remove(added).unwrap();
        }
        assert_eq!(Manifest::parse(value.to_string().as_bytes()).unwrap(), Manifest::default());
    }

    #[test]
    fn a_recording_without_an_end_is_in_progress_while_its_recorder_lives() {
        let mut manifest = Manifest { recorder: Some(RecorderProcess { pid: 7, start: 9 }), ..Manifest::default() };
        assert_eq!(manifest.progress(|process| process.start == 9), Progress::InProgress);
        assert_eq!(manifest.progress(|_| false), Progress::Killed);
        assert_eq!(Manifest::default().progress(|_| true), Progress::Killed);
        manifest.ended = Some(Nanos(1));
        assert_eq!(manifest.progress(|_| true), Progress::Ended);
    }
}
