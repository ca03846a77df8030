//! What `slowpath android launch --trace` prints of one trace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Unavailable;

/// Name and version of what is printed.
pub const STARTUP_SCHEMA: &str = "slowpath-android-startup/1";

/// How an activity was launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartupKind {
    /// Its process was made for it.
    Cold,
    /// Its process was there, and the activity was made.
    Warm,
    /// The activity was there.
    Hot,
}

impl StartupKind {
    /// Its name, as in JSON and in `am start`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Hot => "hot",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Cold, Self::Warm, Self::Hot].into_iter().find(|kind| kind.name() == name)
    }
}

/// What `slowpath android launch --trace FILE --json` prints: startups and child starts of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceStartups {
    /// `slowpath-android-startup/1`.
    #[schemars(extend("const" = STARTUP_SCHEMA))]
    pub schema: String,
    /// The trace.
    pub trace: String,
    /// The API level, where the trace says it.
    pub api_level: Option<u32>,
    /// CPUs on which threads were switched; 0 where the trace has no switches.
    pub cpus: u32,
    /// Launches of activities, by begin.
    pub startups: Vec<Startup>,
    /// Starts of processes that a zygote made for apps, by begin.
    pub children: Vec<ChildStart>,
    /// What the trace does not hold.
    pub unavailable: Vec<Unavailable>,
    /// Why the trace was not read to its end; null where it was.
    pub problem: Option<String>,
}

/// The launch of an activity. Times are those of the trace's clock, durations are in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Startup {
    /// The package.
    pub package: String,
    /// Name of the process in which the activity was resumed; null where the trace does not show it.
    pub process: Option<String>,
    /// Its pid.
    pub pid: Option<u32>,
    /// How it was launched; null where the trace does not show it.
    pub kind: Option<StartupKind>,
    /// When the intent was received.
    pub intent_received: u64,
    /// When the first frame was drawn.
    pub first_frame: u64,
    /// From the intent to the first frame.
    pub duration_ns: u64,
    /// From the intent until the activity manager begins to launch the activity.
    pub activity_manager_ns: Option<u64>,
    /// From the intent until the app says that it is fully drawn.
    pub fully_drawn_ns: Option<u64>,
    /// The request to a zygote for the process: from the intent to it, and how long it took; null where the process was there.
    pub process_start: Option<ProcessStart>,
    /// Processes in which an activity of the package was resumed.
    pub hosting_processes: u32,
    /// Other processes that were made meanwhile.
    pub other_processes_made: u32,
    /// What the main thread did.
    pub main_thread: ThreadTimes,
    /// From the intent until a thread of the process runs; null where one ran at the intent.
    pub to_running_ns: Option<u64>,
    /// From the intent until the last begin of these slices on the main thread.
    pub milestones: Vec<Milestone>,
    /// Time in slices that say what the process did.
    pub phases: Vec<Phase>,
    /// CPU time of garbage collection.
    pub gc_cpu_ns: u64,
    /// CPU time of the threads that compile methods.
    pub jit_cpu_ns: u64,
    /// Methods that they compiled.
    pub jit_methods: u64,
    /// Calls over binder that threads of the process made.
    pub binder: BinderWaits,
    /// The classes whose verification took longest, up to five.
    pub verified_classes: Vec<VerifiedClass>,
    /// Which compiled code was taken, as ART says when it opens DEX files.
    pub code: Vec<OpenedCode>,
    /// Shared libraries that were loaded.
    pub libraries: Vec<String>,
    /// Other processes on a CPU meanwhile that took most of it, up to five.
    pub busy_others: Vec<BusyProcess>,
}

/// A request to a zygote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStart {
    /// From the intent to it.
    pub before_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
}

/// States of a thread in a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadTimes {
    /// It ran.
    pub running_ns: u64,
    /// It could have run.
    pub runnable_ns: u64,
    /// It slept (`S`).
    pub interruptible_ns: u64,
    /// It waited in the kernel (`D`).
    pub uninterruptible_ns: u64,
    /// Of this, what the kernel says to be for storage.
    pub storage_ns: u64,
    /// Of this, what the kernel says not to be for storage.
    pub not_storage_ns: u64,
}

/// A moment in a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Milestone {
    /// Its name.
    pub name: String,
    /// From the intent.
    pub after_ns: u64,
}

/// Time in slices of a kind. Slices of several threads, and slices within slices of the same kind, are added up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// How many slices.
    pub count: u64,
    /// Their time.
    pub duration_ns: u64,
    /// Their time on the main thread.
    pub main_thread_ns: u64,
}

/// Calls over binder whose sender waits for the reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BinderWaits {
    /// How many.
    pub count: u64,
    /// Their time, all threads.
    pub duration_ns: u64,
    /// Their time on the main thread.
    pub main_thread_ns: u64,
    /// Those of 20 ms and more, by begin, up to 64.
    pub long: Vec<LongCall>,
}

/// A long call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LongCall {
    /// The thread that waits.
    pub thread: Option<String>,
    /// Whether it is the main thread.
    pub is_main_thread: bool,
    /// The process that was called.
    pub to_process: String,
    /// Its thread that served the call.
    pub to_thread: Option<String>,
    /// How long.
    pub duration_ns: u64,
}

/// A class that was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedClass {
    /// Its name.
    pub name: String,
    /// How long.
    pub duration_ns: u64,
}

/// Compiled code that ART opened or did not find.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct OpenedCode {
    /// The file.
    pub location: String,
    /// Its state.
    pub status: String,
    /// The compile filter.
    pub filter: String,
    /// Why it was compiled.
    pub reason: String,
}

/// A process that ran beside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BusyProcess {
    /// Its name.
    pub name: String,
    /// Its CPU time.
    pub running_ns: u64,
}

/// The start of a process by a zygote. Durations are in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildStart {
    /// Its name.
    pub process: String,
    /// What kind of process it is: its name behind the package and `:`, without numbers and classes; `main` for none.
    pub kind: String,
    /// Its pid.
    pub pid: u32,
    /// Whether its user is an isolated one; null where the trace does not say its user.
    pub is_isolated: Option<bool>,
    /// When it was asked for, else when it was made, else when it began to load the app.
    pub begin: u64,
    /// From the request until it was made; null where the trace has not both.
    pub to_fork_ns: Option<u64>,
    /// How long the activity manager took to ask for it.
    pub request_ns: Option<u64>,
    /// Loading the app (`bindApplication`).
    pub bind_application_ns: u64,
    /// What it was started for: `activity`, `service`, `broadcast`, else `provider`.
    pub reason: String,
    /// The component that it was started for; null for a provider.
    pub component: Option<String>,
    /// Making that component.
    pub component_ns: Option<u64>,
    /// From its begin until that component is made.
    pub duration_ns: u64,
    /// What its main thread did from then on.
    pub main_thread: ThreadTimes,
    /// Time in slices that say what the process did, until then.
    pub phases: Vec<Phase>,
    /// Calls over binder, until then.
    pub binder: BinderWaits,
    /// Which compiled code was taken, as ART says when it opens DEX files.
    pub code: Vec<OpenedCode>,
}
