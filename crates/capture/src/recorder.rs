//! Loads the probes, attaches them to one process tree, empties the ring, and hands over what was seen.

use crate::decode::RawCapture;
use crate::events;
use crate::mounts::{Mount, parse_mountinfo};
use crate::objects::{self, Loaded, SharedMaps};
use crate::perf::{self, FaultEvent};
use crate::ring::Ring;
use crate::tracefs::Tracefs;
use crate::walk;
use libbpf_rs::{Btf, Link, MapCore, MapFlags, ProgramMut};
use slowpath_recording::{Device, Probe, ProbeState};
use slowpath_tables::{Exit, FirstWait, Losses, Nanos, Unavailable};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// The programs of probe `fault` and their events.
const FAULT_PROGRAMS: [(&str, FaultEvent); 3] =
    [("fault_begin", FaultEvent::Begin), ("fault_minor", FaultEvent::Minor), ("fault_major", FaultEvent::Major)];

/// The device of a lab: its pages are recorded whoever asks for them, and its paths are the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabDevice {
    /// Device number as the kernel encodes it (`major << 20 | minor`).
    pub dev: u64,
}

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the ring between kernel and recorder; a power of two. 32 MiB hold half a million faults.
    pub ring_bytes: u32,
    /// The lab, where the launch runs in one.
    pub lab: Option<LabDevice>,
    /// Whether the tracepoints at the entry of a fault are used where the architecture has them. Without them an event
    /// tells the beginning, as on other architectures.
    pub fault_entry: bool,
    /// Whether it is recorded when each process waited for events for the first time, which costs every context switch of
    /// the machine some tens of ns.
    pub first_waits: bool,
    /// Whether it is recorded when threads do not run and why, which costs every context switch of the machine, with its
    /// wake-up, up to about 0.2 us.
    pub waits: bool,
    /// Whether system calls that change address spaces are recorded with their duration.
    pub memory_calls: bool,
    /// Processes only, and their first waits where those are asked for: no faults, files, reads.
    pub processes_only: bool,
    /// Whether processes that run already can be followed, see [`Recorder::attach_running`].
    pub running: bool,
}

/// Processes that run already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Running {
    /// These, and all that they start later.
    Processes(Vec<u32>),
    /// All but the recorder.
    System,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ring_bytes: 32 << 20,
            lab: None,
            fault_entry: true,
            first_waits: false,
            waits: false,
            memory_calls: false,
            processes_only: false,
            running: false,
        }
    }
}

/// Why recording failed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The kernel's type information cannot be read.
    #[error("the kernel's BTF could not be read")]
    Btf(#[source] libbpf_rs::Error),
    /// A probe was refused.
    #[error("probe {probe} could not be loaded")]
    Load {
        /// Which.
        probe: &'static str,
        /// The kernel's answer.
        #[source]
        source: libbpf_rs::Error,
    },
    /// A compiled probe is not what the recorder expects.
    #[error("probe {probe}: {problem}")]
    Program {
        /// Which.
        probe: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A probe could not be attached.
    #[error("probe {probe} could not be attached to {event}")]
    Attach {
        /// Which.
        probe: &'static str,
        /// To what.
        event: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The ring could not be read.
    #[error("the ring of events could not be read")]
    Ring(#[source] libbpf_rs::Error),
}

/// A loaded recorder. Everything in the kernel hangs on its descriptors: when the process dies, nothing remains.
pub struct Recorder {
    ring: Ring,
    shared: SharedMaps,
    loaded: Vec<Loaded>,
    links: Vec<Link>,
    options: Options,
    mounts: Vec<Mount>,
    probes: Vec<Probe>,
    unavailable: Vec<Unavailable>,
    started: Nanos,
}

/// `CLOCK_MONOTONIC` now.
pub fn monotonic_now() -> Nanos {
    // The clock exists on every Linux; a failure could only be a wrong constant.
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
        .unwrap_or_else(|_| nix::sys::time::TimeSpec::new(0, 0));
    Nanos(u64::try_from(now.tv_sec()).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec()).unwrap_or(0))
}

fn io_error(error: libbpf_rs::Error) -> io::Error {
    io::Error::other(error)
}

impl Recorder {
    /// Loads all probes and attaches those that concern the whole kernel; nothing is recorded before
    /// [`Recorder::attach_tree`].
    ///
    /// # Errors
    /// A probe without which a recording is none (process, fault, page_cache) is refused by the kernel.
    pub fn load(options: Options) -> Result<Self, CaptureError> {
        let btf = Btf::from_vmlinux().map_err(CaptureError::Btf)?;
        let tracefs = Tracefs::open();
        let mut shared: Option<SharedMaps> = None;
        let mut loaded = Vec::new();
        let mut links = Vec::new();
        let mut probes = Vec::new();
        let mut unavailable = Vec::new();
        let wanted = |probe: &objects::Probe| match probe.name {
            "process" => true,
            "first_wait" => options.first_waits,
            "present" => options.running,
            "off_cpu" => options.waits && !options.processes_only,
            "memory" => options.memory_calls && !options.processes_only,
            _ => !options.processes_only,
        };
        for probe in objects::all().into_iter().filter(wanted) {
            let essential = matches!(probe.name, "process" | "fault" | "page_cache" | "present");
            let attempt = objects::load(&probe, shared.as_ref(), &btf, &options)
                .and_then(|one| attach_whole(&one, tracefs.as_ref().ok(), &mut links).map(|gaps| (one, gaps)));
            let (one, gaps) = match attempt {
                Ok(done) => done,
                Err(error) if essential => return Err(error),
                Err(error) => {
                    unavailable.push(gap(probe.name, &chain(&error)));
                    probes.push(Probe { name: probe.name.to_owned(), state: ProbeState::Unavailable });
                    continue;
                }
            };
            let replaced = |section: &&String| section.starts_with(objects::FAULT_ENTRY);
            for section in one.missing.iter().filter(|section| !replaced(section)).chain(&gaps) {
                unavailable.push(gap(section, "this kernel has no such event"));
            }
            probes.push(Probe { name: probe.name.to_owned(), state: ProbeState::Attached });
            if shared.is_none() {
                shared = Some(objects::shared_maps(&one)?);
            }
            loaded.push(one);
        }
        if let Err(error) = tracefs {
            unavailable.push(Unavailable {
                what: "system-call tracepoints".to_owned(),
                reason: format!("tracefs could not be opened: {error}"),
                remedy: "a kernel with CONFIG_FTRACE_SYSCALLS".to_owned(),
            });
        }
        if options.waits {
            unavailable.extend(crate::off_cpu::Stealing::here(&btf).gap());
        }
        let shared = shared.ok_or(CaptureError::Program { probe: "process", problem: "not loaded".to_owned() })?;
        Ok(Self {
            ring: Ring::new(&shared.ring).map_err(CaptureError::Ring)?,
            shared,
            loaded,
            links,
            options,
            mounts: Vec::new(),
            probes,
            unavailable,
            started: monotonic_now(),
        })
    }

    /// Follows the process `pid`, which has not executed its program yet, from its first instruction on.
    ///
    /// # Errors
    /// The process is gone, or the kernel refuses its page-fault events.
    pub fn attach_tree(&mut self, pid: i32) -> Result<(), CaptureError> {
        let attach = |event: &str, source: io::Error| CaptureError::Attach {
            probe: "process",
            event: format!("{event} of process {pid}"),
            source,
        };
        let pidfd = pidfd(pid).map_err(|source| attach("pidfd", source))?;
        let state = [0u8; size_of::<events::task_state>()];
        self.shared
            .tree
            .update(&pidfd.as_raw_fd().to_ne_bytes(), &state, MapFlags::ANY)
            .map_err(|error| attach("task storage", io_error(error)))?;
        self.attach_faults()?;
        self.mounts = std::fs::read_to_string(format!("/proc/{pid}/mountinfo"))
            .map(|text| parse_mountinfo(&text))
            .unwrap_or_default();
        Ok(())
    }

    /// Follows processes that run already, with all their threads, and whatever they start from now on. Tells of each what it
    /// executes and maps.
    ///
    /// # Errors
    /// The kernel refuses the walk over its tasks, or page-fault events.
    pub fn attach_running(&mut self, which: &Running) -> Result<(), CaptureError> {
        // First, so that no fault of a marked task is missed.
        self.attach_faults()?;
        let missing = || CaptureError::Program { probe: "present", problem: "not loaded".to_owned() };
        let present = self.loaded("present").ok_or_else(missing)?;
        let attach = |source| CaptureError::Attach { probe: "present", event: "map wanted".to_owned(), source };
        let wanted = present.object.maps().find(|map| map.name() == "wanted").ok_or_else(missing)?;
        let all = [0];
        let (pids, meant): (&[u32], Vec<u32>) = match which {
            Running::Processes(pids) => (pids, pids.clone()),
            Running::System => (&all, processes()),
        };
        for pid in pids {
            wanted.update(&pid.to_ne_bytes(), &[1], MapFlags::ANY).map_err(|error| attach(io_error(error)))?;
        }
        // A child that was made behind the first walk's back is found by the second.
        walk::over_tasks(present, "tell_present", 2)?;
        if let Some(waits) = self.loaded("off_cpu") {
            walk::over_tasks(waits, "begin_waits", 1)?;
        }
        let left_out: Vec<u32> = meant.into_iter().filter(|pid| self.is_left_out(*pid)).collect();
        self.unavailable.extend(left_out.into_iter().map(|pid| Unavailable {
            what: format!("process {pid}"),
            reason: "the kernel's walk over its tasks leaves it out".to_owned(),
            remedy: "record it from its start: slowpath record -- COMMAND".to_owned(),
        }));
        self.mounts =
            std::fs::read_to_string("/proc/self/mountinfo").map(|text| parse_mountinfo(&text)).unwrap_or_default();
        Ok(())
    }

    fn loaded(&self, probe: &str) -> Option<&Loaded> {
        self.loaded.iter().find(|one| one.name == probe)
    }

    /// Whether a process lives and is not followed.
    fn is_left_out(&self, pid: u32) -> bool {
        let Some(pidfd) = i32::try_from(pid).ok().and_then(|pid| pidfd(pid).ok()) else { return false };
        let state = self.shared.tree.lookup(&pidfd.as_raw_fd().to_ne_bytes(), MapFlags::ANY);
        pid != std::process::id() && matches!(state, Ok(None))
    }

    /// Attaches the programs at the events of a page fault, on every processor.
    fn attach_faults(&mut self) -> Result<(), CaptureError> {
        let attach =
            |event: &str, source: io::Error| CaptureError::Attach { probe: "fault", event: event.to_owned(), source };
        let entry = self.loaded.iter().any(|one| one.name == "fault" && one.missing.is_empty());
        let processors = if self.options.processes_only { 0 } else { crate::machine::processors() };
        for cpu in 0..processors {
            for (name, event) in FAULT_PROGRAMS {
                if entry && event == FaultEvent::Begin {
                    continue;
                }
                match perf::fault_of_processor(event, cpu) {
                    Ok(fd) => self.attach_fault(name, fd)?,
                    // A processor that is off line.
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => break,
                    Err(error) => return Err(attach(name, error)),
                }
            }
        }
        Ok(())
    }

    fn attach_fault(&mut self, name: &str, fd: OwnedFd) -> Result<(), CaptureError> {
        let program = self
            .loaded
            .iter()
            .find(|one| one.name == "fault")
            .and_then(|one| one.object.progs_mut().find(|program| program.name() == name))
            .ok_or(CaptureError::Program { probe: "fault", problem: format!("program {name} is missing") })?;
        let link = attach_perf(&program, fd).map_err(|source| CaptureError::Attach {
            probe: "fault",
            event: name.to_owned(),
            source,
        })?;
        self.links.push(link);
        Ok(())
    }

    /// Moves what the kernel has put into the ring into memory; call it about every 20 ms.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn drain(&mut self) -> Result<(), CaptureError> {
        self.ring.drain().map_err(CaptureError::Ring)?;
        Ok(())
    }

    /// Moves the faults that processors still hold into memory; no program runs any more.
    fn take_batches(&self) {
        let object = self.loaded.iter().find(|one| one.name == "fault").map(|one| &one.object);
        let maps = object.into_iter().flat_map(|object| object.maps()).filter(|map| map.name() == "batches");
        for map in maps {
            let batches = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
            for batch in batches {
                // A processor that saw no fault has a batch of zeros.
                if events::record::<events::fault_event>(&batch).is_some_and(|batch| batch.count > 0) {
                    self.ring.add(&batch);
                }
            }
        }
    }

    /// The first wait of a task that is left, where it is still in it.
    fn first_wait(&self, survivor: &Exit, now: Nanos) -> Option<FirstWait> {
        let process = i32::try_from(survivor.pid).ok().filter(|pid| survivor.tid == *pid as u32)?;
        let pidfd = pidfd(process).ok()?;
        let state = self.shared.tree.lookup(&pidfd.as_raw_fd().to_ne_bytes(), MapFlags::ANY).ok()??;
        crate::first_wait::of_survivor(survivor, &state, now)
    }

    /// True when the memory for raw records is full: the recording must stop.
    pub fn is_full(&self) -> bool {
        self.ring.refused() > 0
    }

    /// Ends the recording and hands over what was seen. Tasks of the tree that still run are counted from `/proc`.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn finish(mut self) -> Result<RawCapture, CaptureError> {
        self.drain()?;
        let ended = monotonic_now();
        self.links.clear();
        self.ring.drain().map_err(CaptureError::Ring)?;
        if let Some(waits) = self.loaded("off_cpu") {
            walk::over_tasks(waits, "end_waits", 1)?;
            self.ring.drain().map_err(CaptureError::Ring)?;
        }
        self.take_batches();
        let mut losses = Losses::default();
        for kind in 0..events::EVENT_KINDS {
            let values = self.shared.lost.lookup_percpu(&kind.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let lost = values
                .iter()
                .flatten()
                .map(|bytes| bytes.as_slice().try_into().map(u64::from_ne_bytes).unwrap_or(0))
                .sum();
            losses.add(events::kind_name(kind), lost);
        }
        losses.add("over_memory_limit", self.ring.refused());
        let bytes = self.ring.take();
        let survivors = crate::process::survivors(&bytes, ended);
        let waiting = survivors.iter().filter_map(|one| self.first_wait(one, ended)).collect();
        let devices = devices_of(&self.mounts, self.options.lab.as_ref());
        Ok(RawCapture {
            bytes,
            survivors,
            waiting,
            mounts: self.mounts,
            devices,
            lab_dev: self.options.lab.map(|lab| lab.dev),
            losses,
            unavailable: self.unavailable,
            probes: self.probes,
            started: self.started,
            ended,
        })
    }
}

/// All processes that `/proc` shows.
fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A descriptor of a process.
fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as i32) })
}

/// The link takes the descriptor over and closes it (bpf_link_perf_detach in libbpf).
fn attach_perf(program: &ProgramMut<'_>, fd: OwnedFd) -> io::Result<Link> {
    let link = program.attach_perf_event(fd.as_raw_fd()).map_err(io_error)?;
    let _ = fd.into_raw_fd();
    Ok(link)
}

/// Attaches the programs that are not bound to one task. Returns the events that this kernel does not have.
fn attach_whole(one: &Loaded, tracefs: Option<&Tracefs>, links: &mut Vec<Link>) -> Result<Vec<String>, CaptureError> {
    let mut gaps = Vec::new();
    for program in one.object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        if one.missing.contains(&section) || section == "perf_event" || walk::is_walk(&section) {
            continue;
        }
        let attach = |source| CaptureError::Attach { probe: one.name, event: section.clone(), source };
        let Some(name) = section.strip_prefix("tracepoint/syscalls/") else {
            links.push(program.attach().map_err(|error| attach(io_error(error)))?);
            continue;
        };
        let Some(tracefs) = tracefs else { continue };
        // Some system calls do not exist on every architecture (open on arm64).
        match tracefs.id("syscalls", name) {
            Ok(id) => {
                let fd = perf::tracepoint(id).map_err(attach)?;
                links.push(attach_perf(&program, fd).map_err(attach)?);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => gaps.push(section),
            Err(error) => return Err(attach(error)),
        }
    }
    Ok(gaps)
}

fn gap(what: &str, reason: &str) -> Unavailable {
    Unavailable {
        what: format!("probe {what}"),
        reason: reason.to_owned(),
        remedy: "a newer kernel; `slowpath doctor` says which".to_owned(),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

fn devices_of(mounts: &[Mount], lab: Option<&LabDevice>) -> Vec<Device> {
    let mut devices: Vec<Device> = Vec::new();
    for mount in mounts {
        if devices.iter().any(|device| device.dev == mount.dev) {
            continue;
        }
        let (major, minor) = (mount.dev >> 20, mount.dev & 0xf_ffff);
        let read_ahead_kb = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/queue/read_ahead_kb"))
            .or_else(|_| std::fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")))
            .ok()
            .and_then(|text| text.trim().parse().ok());
        devices.push(Device {
            dev: mount.dev,
            name: mount.source.clone(),
            mount_point: mount.mount_point.clone(),
            fs: mount.fs.clone(),
            read_ahead_kb,
            lab: lab.is_some_and(|lab| lab.dev == mount.dev),
        });
    }
    devices
}
