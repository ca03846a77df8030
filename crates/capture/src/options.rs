//! What a recorder is asked for: which processes, which events, and how.

use crate::owner::Owner;

/// The device of a lab: its pages are recorded whoever asks for them, and its paths are the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabDevice {
    /// Device number as the kernel encodes it (`major << 20 | minor`).
    pub dev: u64,
}

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose the recording is: what that user could not see otherwise is withheld.
    pub owner: Owner,
    /// Size of the ring between kernel and recorder; a power of two. 32 MiB hold half a million faults.
    pub ring_bytes: u32,
    /// The lab, where the launch runs in one.
    pub lab: Option<LabDevice>,
    /// Whether the tracepoints at the entry of a fault are used where the architecture has them. Without them an event
    /// reports the beginning, as on other architectures.
    pub fault_entry: bool,
    /// Whether the events of the tree of an address space's areas are used where the kernel has them. Without them tracepoints of
    /// system calls tell what is mapped, as on older kernels.
    pub area_tree: bool,
    /// Whether opens and reads are recorded, which makes every system call of the machine some 120 ns more expensive: a tracepoint of
    /// any puts all tasks on the slow path of all, and two programs see all calls.
    pub files: bool,
    /// Whether it is recorded when each process waited for events for the first time, which costs every context switch of
    /// the machine some tens of ns.
    pub first_waits: bool,
    /// Whether it is recorded when threads do not run and why, which costs every context switch of the machine, with its
    /// wake-up, up to about 0.2 us.
    pub waits: bool,
    /// Whether the event of the end of a process is used to look at what it held, where its memory is there still. Without it a
    /// tracepoint of a system call is, as on older kernels: processes that a signal ends are not looked at then.
    pub exit_memory: bool,
    /// Whether system calls that change address spaces are recorded with their duration, at the same price as files; and what pages
    /// held that are given back, or that a process has at its end.
    pub memory_calls: bool,
    /// Processes only, and their first waits where those are asked for: no faults, files, reads.
    pub processes_only: bool,
    /// Which events are recorded with their call stacks.
    pub stacks: StackEvents,
    /// Samples of running threads a second, on each CPU.
    pub cpu_hertz: Option<u32>,
    /// Of how many walks of a CPU one is copied with the stack's memory, to be compared with another unwinder's; 0 for none.
    pub copy_every: u32,
    /// Whether processes that run already can be followed, see [`Recorder::attach_running`].
    pub running: bool,
    /// A process of the recorder's own, which writes what is recorded: when everything is followed, it is not.
    pub writer: Option<u32>,
}

/// Events that have call stacks where those are asked for; CPU samples always have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackEvents {
    /// Page faults.
    pub faults: bool,
    /// Intervals in which threads do not run.
    pub waits: bool,
    /// System calls that change address spaces.
    pub memory_calls: bool,
}

impl Options {
    /// Whether any event is recorded with its call stack.
    pub fn walks_stacks(&self) -> bool {
        self.stacks != StackEvents::default() || self.cpu_hertz.is_some()
    }
}

/// Processes that run already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Running {
    /// These, and all that they start later.
    Processes(Vec<u32>),
    /// All but the recorder and its writer.
    System,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            owner: Owner::default(),
            ring_bytes: 32 << 20,
            lab: None,
            fault_entry: true,
            area_tree: true,
            exit_memory: true,
            files: true,
            first_waits: false,
            waits: false,
            memory_calls: false,
            processes_only: false,
            stacks: StackEvents::default(),
            cpu_hertz: None,
            copy_every: 0,
            running: false,
            writer: None,
        }
    }
}
