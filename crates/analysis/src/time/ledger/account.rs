//! The rows of a ledger, and how much time each has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{Nanos, OffCpuReason};

macro_rules! categories {
    ($( $(#[doc = $doc:literal])* $name:ident = $words:literal, )*) => {
        /// What a thread did with its time. Each moment belongs to one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Category { $( $(#[doc = $doc])* $name, )* }

        impl Category {
            /// All, in display order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The category as a reader reads it.
            pub fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }
        }
    };
}

categories! {
    /// Ran in user mode.
    User = "user",
    /// Ran in the kernel, other than in page faults and, where they were recorded, memory calls.
    Kernel = "kernel",
    /// Ran in either of these two: too little is known to tell them apart.
    OnCpu = "user or kernel",
    /// Ran in minor faults.
    MinorFault = "minor faults",
    /// Ran in major faults, or waited for storage in a fault.
    MajorFault = "major faults",
    /// Ran in mmap, munmap, mremap, brk or madvise, where these were recorded; else they are part of `kernel`.
    MemoryCall = "memory calls",
    /// Waited for storage in a system call.
    OtherIo = "other I/O",
    /// Waited on a futex: for a lock, a condition, another thread's end.
    Lock = "locks",
    /// Waited in a read or write for a pipe, a socket, a terminal or the like.
    PipeOrSocket = "pipes, sockets",
    /// Waited for one of several events (poll, epoll, select) or for a signal.
    Events = "events",
    /// Slept until a time.
    Timer = "timers",
    /// Waited for a child process.
    Child = "children",
    /// Waited for a lock inside the kernel, or for anything else there.
    KernelWait = "kernel waits",
    /// Could run; another task had the CPU.
    Runnable = "runnable",
    /// Could run; its cgroup had used up its quota.
    Throttled = "throttled",
    /// Was stopped by a signal, a tracer or a freezer.
    Stopped = "stopped",
    /// Ran, as far as this system knows; a hypervisor had taken the CPU away.
    Stolen = "stolen",
}

impl Category {
    /// Where the time goes in which a thread waited for this, before it was woken.
    pub fn of_wait(reason: OffCpuReason) -> Self {
        match reason {
            OffCpuReason::FaultIo => Self::MajorFault,
            OffCpuReason::OtherIo => Self::OtherIo,
            OffCpuReason::Futex => Self::Lock,
            OffCpuReason::PipeOrSocket => Self::PipeOrSocket,
            OffCpuReason::Poll => Self::Events,
            OffCpuReason::Timer => Self::Timer,
            OffCpuReason::Child => Self::Child,
            OffCpuReason::Kernel => Self::KernelWait,
            OffCpuReason::Runnable => Self::Runnable,
            OffCpuReason::Throttled => Self::Throttled,
            OffCpuReason::Stopped => Self::Stopped,
            OffCpuReason::Stolen => Self::Stolen,
        }
    }

    /// Whether a thread that has nothing to do spends its time so: it waits for what somebody else will do. A futex is one of them:
    /// threads of a pool wait for work on it; and kernel threads wait for theirs in the kernel.
    pub fn is_idle(self) -> bool {
        matches!(
            self,
            Self::Lock
                | Self::PipeOrSocket
                | Self::Events
                | Self::Timer
                | Self::Child
                | Self::KernelWait
                | Self::Stopped
        )
    }
}

/// Time of one category, as pages have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryTime {
    /// The category.
    pub category: Category,
    /// Its time, ns.
    pub time_ns: Nanos,
}

/// Time by category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    times: [Nanos; Category::ALL.len()],
}

impl Account {
    /// Time of a category.
    pub fn get(&self, category: Category) -> Nanos {
        self.times[category as usize]
    }

    /// Adds time to a category.
    pub fn add(&mut self, category: Category, time: Nanos) {
        self.times[category as usize] += time;
    }

    /// Takes the time of a category out.
    pub fn take(&mut self, category: Category) -> Nanos {
        std::mem::take(&mut self.times[category as usize])
    }

    /// Adds all of another account.
    pub fn merge(&mut self, other: &Self) {
        for (time, more) in self.times.iter_mut().zip(other.times) {
            *time += more;
        }
    }

    /// Time of all categories together.
    pub fn total(&self) -> Nanos {
        self.times.iter().copied().sum()
    }

    /// Time in which something was done, or in which the machine kept it from being done: all but what [`Category::is_idle`].
    pub fn busy(&self) -> Nanos {
        self.iter().filter(|(category, _)| !category.is_idle()).map(|(_, time)| time).sum()
    }

    /// The categories that have time, in their order.
    pub fn times(&self) -> Vec<CategoryTime> {
        let some = self.iter().filter(|(_, time)| time.0 > 0);
        some.map(|(category, time)| CategoryTime { category, time_ns: time }).collect()
    }

    /// All categories in their order, those without time too.
    pub fn iter(&self) -> impl Iterator<Item = (Category, Nanos)> + '_ {
        Category::ALL.iter().copied().zip(self.times)
    }
}
