//! Loads the probes, attaches them to one process tree, empties the ring, and hands over what was seen.

use crate::capture_error::CaptureError;
use crate::decode::{Facts, RawCapture};
use crate::events;
use crate::mounts::{Mount, parse_mountinfo};
use crate::objects::{self, Loaded, SharedMaps};
use crate::perf::{self, FaultEvent};
use crate::processors;
use crate::ring::Ring;
use crate::tracefs::Tracefs;
use libbpf_rs::{Btf, Link, MapCore, MapFlags, ProgramMut};
use slowpath_recording::{Device, Probe, ProbeState};
use slowpath_tables::{Losses, Nanos, Unavailable};
use std::collections::BTreeMap;
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
    /// Processes only, and their first waits where those are asked for: no faults, files, reads.
    pub processes_only: bool,
    /// Whether processes that run already can be followed, see [`Recorder::attach_running`].
    pub running: bool,
    /// A process of the recorder's own, which writes what is recorded: when everything is followed, it is not.
    pub writer: Option<u32>,
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
            ring_bytes: 32 << 20,
            lab: None,
            fault_entry: true,
            first_waits: false,
            processes_only: false,
            running: false,
            writer: None,
        }
    }
}

/// A loaded recorder. Everything in the kernel hangs on its descriptors: when the process dies, nothing remains.
pub struct Recorder {
    ring: Ring,
    shared: SharedMaps,
    loaded: Vec<Loaded>,
    links: Vec<Link>,
    /// Events of page faults, by processor.
    fault_links: BTreeMap<u32, Vec<Link>>,
    processors_checked: Nanos,
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
        let shared = shared.ok_or(CaptureError::Program { probe: "process", problem: "not loaded".to_owned() })?;
        Ok(Self {
            ring: Ring::new(&shared.ring).map_err(CaptureError::Ring)?,
            shared,
            loaded,
            links,
            fault_links: BTreeMap::new(),
            processors_checked: monotonic_now(),
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
        let object = &self.loaded.iter().find(|one| one.name == "present").ok_or_else(missing)?.object;
        let attach = |source| CaptureError::Attach { probe: "present", event: "iter/task".to_owned(), source };
        let wanted = object.maps().find(|map| map.name() == "wanted").ok_or_else(missing)?;
        let all = [0];
        let (pids, meant): (&[u32], Vec<u32>) = match which {
            Running::Processes(pids) => (pids, pids.clone()),
            Running::System => (&all, processes()),
        };
        for pid in pids {
            wanted.update(&pid.to_ne_bytes(), &[1], MapFlags::ANY).map_err(|error| attach(io_error(error)))?;
        }
        let program = object.progs_mut().find(|program| program.name() == "tell_present").ok_or_else(missing)?;
        let link = program.attach().map_err(|error| attach(io_error(error)))?;
        // A child that was made behind the first walk's back is found by the second.
        for _ in 0..2 {
            let mut walk = libbpf_rs::Iter::new(&link).map_err(|error| attach(io_error(error)))?;
            io::copy(&mut walk, &mut io::sink()).map_err(attach)?;
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

    /// Whether a process lives and is not followed.
    fn is_left_out(&self, pid: u32) -> bool {
        let Some(pidfd) = i32::try_from(pid).ok().and_then(|pid| pidfd(pid).ok()) else { return false };
        let state = self.shared.tree.lookup(&pidfd.as_raw_fd().to_ne_bytes(), MapFlags::ANY);
        let is_own = pid == std::process::id() || Some(pid) == self.options.writer;
        !is_own && matches!(state, Ok(None))
    }

    /// Attaches the programs at the events of a page fault, on every processor.
    fn attach_faults(&mut self) -> Result<(), CaptureError> {
        if self.options.processes_only {
            return Ok(());
        }
        let all = processors::on_line().unwrap_or_else(|| (0..crate::machine::processors().unsigned_abs()).collect());
        all.into_iter().try_for_each(|cpu| self.attach_faults_of(cpu))
    }

    fn attach_faults_of(&mut self, cpu: u32) -> Result<(), CaptureError> {
        let attach =
            |event: &str, source: io::Error| CaptureError::Attach { probe: "fault", event: event.to_owned(), source };
        let entry = self.loaded.iter().any(|one| one.name == "fault" && one.missing.is_empty());
        let mut links = Vec::new();
        for (name, event) in FAULT_PROGRAMS {
            if entry && event == FaultEvent::Begin {
                continue;
            }
            match perf::fault_of_processor(event, cpu as i32) {
                Ok(fd) => links.push(self.attach_fault(name, fd)?),
                // A processor that is off line.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(()),
                Err(error) => return Err(attach(name, error)),
            }
        }
        self.fault_links.insert(cpu, links);
        Ok(())
    }

    fn attach_fault(&self, name: &str, fd: OwnedFd) -> Result<Link, CaptureError> {
        let program = self
            .loaded
            .iter()
            .find(|one| one.name == "fault")
            .and_then(|one| one.object.progs_mut().find(|program| program.name() == name))
            .ok_or(CaptureError::Program { probe: "fault", problem: format!("program {name} is missing") })?;
        attach_perf(&program, fd).map_err(|source| CaptureError::Attach {
            probe: "fault",
            event: name.to_owned(),
            source,
        })
    }

    /// Looks once a second whether processors came or went. The events of one that goes off line end with it; one that comes
    /// gets its own, and what it did before is told as missing.
    fn follow_processors(&mut self) -> Result<(), CaptureError> {
        let now = monotonic_now();
        let since = now.0.saturating_sub(self.processors_checked.0);
        if since < 1_000_000_000 || self.fault_links.is_empty() {
            return Ok(());
        }
        self.processors_checked = now;
        let Some(on_line) = processors::on_line() else { return Ok(()) };
        let (went, came) = processors::changes(&self.fault_links.keys().copied().collect(), &on_line);
        for cpu in went {
            self.fault_links.remove(&cpu);
        }
        for cpu in came {
            self.attach_faults_of(cpu)?;
            self.unavailable.push(Unavailable {
                what: format!("first page faults on processor {cpu}"),
                reason: format!("it came on line while recording went on: up to {} ms of it", since / 1_000_000),
                remedy: "record again with all processors on line".to_owned(),
            });
        }
        Ok(())
    }

    /// Moves what the kernel has put into the ring into memory; call it about every 20 ms.
    ///
    /// # Errors
    /// The ring cannot be read, or the kernel refuses the events of a processor that came on line.
    pub fn drain(&mut self) -> Result<(), CaptureError> {
        self.ring.drain().map_err(CaptureError::Ring)?;
        self.follow_processors()
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
    fn first_wait(&self, survivor: &events::exit_event, now: Nanos) -> Option<events::first_wait_event> {
        let (pid, tid) = (survivor.header.pid, survivor.header.tid);
        let pidfd = pidfd(i32::try_from(pid).ok().filter(|_| pid == tid)?).ok()?;
        let state = self.shared.tree.lookup(&pidfd.as_raw_fd().to_ne_bytes(), MapFlags::ANY).ok()??;
        crate::first_wait::of_survivor(survivor, &state, now)
    }

    /// True when the memory for raw records is full: the recording must stop.
    pub fn is_full(&self) -> bool {
        self.ring.refused().total() > 0
    }

    /// The records that were moved into memory and not taken before: whole ones, for [`crate::Decoder::feed`].
    pub fn take(&mut self) -> Vec<u8> {
        self.ring.take()
    }

    /// Events that were lost so far, by kind.
    pub fn losses(&self) -> Losses {
        let mut losses = self.ring.refused();
        for kind in 0..events::EVENT_KINDS {
            let values = self.shared.lost.lookup_percpu(&kind.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let lost = values
                .iter()
                .flatten()
                .map(|bytes| bytes.as_slice().try_into().map(u64::from_ne_bytes).unwrap_or(0))
                .sum();
            losses.add(events::kind_name(kind), lost);
        }
        losses
    }

    /// What is known now besides the records.
    pub fn facts(&self) -> Facts {
        Facts {
            mounts: self.mounts.clone(),
            devices: devices_of(&self.mounts, self.options.lab.as_ref()),
            lab_dev: self.options.lab.as_ref().map(|lab| lab.dev),
            losses: self.losses(),
            unavailable: self.unavailable.clone(),
            probes: self.probes.clone(),
            started: self.started,
            ended: monotonic_now(),
        }
    }

    /// Ends the recording and hands over what was seen. Tasks of the tree that still run are counted from `/proc`.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn finish(mut self) -> Result<RawCapture, CaptureError> {
        self.drain()?;
        let ended = monotonic_now();
        self.links.clear();
        self.fault_links.clear();
        self.ring.drain().map_err(CaptureError::Ring)?;
        self.take_batches();
        for survivor in self.ring.survivors(ended) {
            self.ring.add(&events::bytes_of(&survivor));
            if let Some(wait) = self.first_wait(&survivor, ended) {
                self.ring.add(&events::bytes_of(&wait));
            }
        }
        Ok(RawCapture { bytes: self.ring.take(), facts: Facts { ended, ..self.facts() } })
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
        if one.missing.contains(&section) || section == "perf_event" || section == "iter.s/task" {
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
