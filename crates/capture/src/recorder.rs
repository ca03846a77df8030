//! Loads the probes, attaches them to the processes that are meant, empties the ring, and hands over what was seen.

use crate::capture_error::CaptureError;
use crate::clock::monotonic_now;
use crate::decode::{Facts, RawCapture};
use crate::events;
use crate::kernel_events::{Kernel, is_at_calls};
use crate::kernel_symbols::KernelSymbols;
use crate::kernel_types::KernelTypes;
use crate::machine::{has_area_walk, no_walk};
use crate::machine_counters::MachineCounters;
use crate::memory_threads::MemoryThreadPids;
use crate::mounts::{Mount, mounts_of};
use crate::not_run;
use crate::objects::{self, SharedMaps};
use crate::options::{LabDevice, Options, Running};
use crate::owner::secret;
use crate::probe::Loaded;
use crate::probes;
use crate::record_kinds::kind_name;
use crate::ring::Ring;
use crate::running_processes::{pidfd, processes};
use crate::stack::Tables;
use crate::system_calls;
use crate::walk;
use libbpf_rs::{Btf, Link, MapCore, MapFlags, MapHandle, PerfEventOpts, ProgramMut};
use slowpath_recording::{Device, Probe, ProbeState};
use slowpath_tables::missing::declared;
use slowpath_tables::{Losses, Nanos, Unavailable};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

/// A loaded recorder. Everything in the kernel hangs on its descriptors: when the process dies, nothing remains.
pub struct Recorder {
    pub(crate) ring: Ring,
    pub(crate) tree: MapHandle,
    lost: MapHandle,
    /// Counters of what the owner of the recording is not shown.
    pub(crate) withheld: MapHandle,
    /// Where stacks are recorded.
    pub(crate) tables: Option<Tables>,
    pub(crate) loaded: Vec<Loaded>,
    pub(crate) links: Vec<Link>,
    /// Events of a CPU, by its number.
    pub(crate) cpu_links: BTreeMap<u32, Vec<Link>>,
    pub(crate) cpus_checked: Nanos,
    /// Whether processes are followed.
    pub(crate) follows: bool,
    pub(crate) options: Options,
    mounts: Vec<Mount>,
    probes: Vec<Probe>,
    pub(crate) unavailable: Vec<Unavailable>,
    /// When probes were ready; of processes that run already, when they began to be followed.
    started: Nanos,
    memory_threads: MemoryThreadPids,
    /// Before the first process was followed.
    counters_before: Option<MachineCounters>,
    /// Executable mappings without room that the second survey counted once more.
    pub(crate) areas_counted_twice: u64,
}

pub(crate) fn io_error(error: libbpf_rs::Error) -> io::Error {
    io::Error::other(error)
}

impl Recorder {
    /// Loads all probes and attaches those that concern the whole kernel; nothing is recorded before
    /// [`Recorder::attach_tree`] or [`Recorder::attach_running`].
    ///
    /// # Errors
    /// A probe without which a recording is none (process, fault, page_cache) is refused by the kernel, or one without which it is
    /// not the one that was asked for (present, code_area, cpu_sample).
    pub fn load(options: Options) -> Result<Self, CaptureError> {
        let btf = Btf::from_vmlinux().map_err(CaptureError::Btf)?;
        let kernel = Kernel::of(&btf, &options);
        let wanted: Vec<_> = probes::ALL.iter().filter(|one| (one.probe.is_wanted)(&options)).collect();
        let types = KernelTypes::of_this_kernel(&wanted.iter().map(|one| one.object(&options)).collect::<Vec<_>>());
        let mut shared = SharedMaps::new(secret().map_err(CaptureError::Secret)?);
        let mut loaded = Vec::new();
        let mut links = Vec::new();
        let mut states = Vec::new();
        let mut unavailable = Vec::new();
        for compiled in wanted {
            let probe = compiled.probe;
            if probe.walks_areas && !has_area_walk(&btf) {
                unavailable.extend(no_walk(&declared::PROBE, &[&probe.name]));
                states.push(Probe { name: probe.name.to_owned(), state: ProbeState::Unavailable });
                continue;
            }
            if probe.is_handed_calls && !loaded.iter().any(|one: &Loaded| one.name == system_calls::PROBE.name) {
                unavailable.push(gap(probe.name, "without the probe system_calls it sees no system call"));
                states.push(Probe { name: probe.name.to_owned(), state: ProbeState::Unavailable });
                continue;
            }
            // A probe of which only a part can be attached is not attached at all.
            let mut of_probe = Vec::new();
            let attempt = objects::load(compiled, &mut shared, &btf, kernel, &types, &options)
                .and_then(|one| attach_whole(&one, &mut of_probe).map(|()| one));
            let one = match attempt {
                Ok(done) => done,
                Err(error) if probe.is_essential => return Err(error),
                Err(error) => {
                    unavailable.push(gap(probe.name, &chain(&error)));
                    states.push(Probe { name: probe.name.to_owned(), state: ProbeState::Unavailable });
                    continue;
                }
            };
            for section in &one.missing {
                unavailable.push(gap(section, "this kernel has no such event"));
            }
            unavailable.extend(probe.gap.and_then(|gap| gap(&one)));
            links.append(&mut of_probe);
            states.push(Probe { name: probe.name.to_owned(), state: ProbeState::Attached });
            loaded.push(one);
        }
        let memory_threads =
            if options.processes_only { MemoryThreadPids::default() } else { MemoryThreadPids::find() };
        if !options.processes_only {
            unavailable.extend(memory_threads.gap());
        }
        if options.waits {
            unavailable.extend(crate::off_cpu::Stealing::here(&btf).gap());
        }
        let hides = (!options.owner.is_root()).then(|| match options.cpu_hertz {
            Some(_) => KernelSymbols::of_this_kernel(),
            // No other event has a stack in the kernel.
            None => KernelSymbols::default(),
        });
        if options.cpu_hertz.is_some() && hides.as_ref().is_some_and(KernelSymbols::is_empty) {
            unavailable.push(no_kernel_names());
        }
        let tables = options
            .walks_stacks()
            .then(|| Tables::enable(shared.copy("unwind_tables")?, shared.copy("walk_settings")?, options.copy_every));
        Ok(Self {
            ring: Ring::new(shared.get("ring")?, hides).map_err(CaptureError::Ring)?,
            tables: tables.transpose()?,
            tree: shared.copy("tree")?,
            lost: shared.copy("lost")?,
            withheld: shared.copy("withheld")?,
            loaded,
            links,
            cpu_links: BTreeMap::new(),
            cpus_checked: monotonic_now(),
            follows: false,
            options,
            mounts: Vec::new(),
            probes: states,
            unavailable,
            started: monotonic_now(),
            memory_threads,
            counters_before: None,
            areas_counted_twice: 0,
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
        self.follows = true;
        self.counters_before = Some(self.machine_counters());
        self.prepare_areas(&pidfd);
        let state = [0u8; size_of::<events::task_state>()];
        self.tree
            .update(&pidfd.as_raw_fd().to_ne_bytes(), &state, MapFlags::ANY)
            .map_err(|error| attach("task storage", io_error(error)))?;
        self.attach_cpus()?;
        self.mounts = mounts_of(&pid.to_string());
        Ok(())
    }

    /// Follows processes that run already, with all their threads, and whatever they start from now on. Tells of each what it
    /// executes and maps.
    ///
    /// # Errors
    /// The kernel refuses the walk over its tasks, or page-fault events.
    pub fn attach_running(&mut self, which: &Running) -> Result<(), CaptureError> {
        self.follows = true;
        // First, so that no fault of a marked task is missed.
        self.attach_cpus()?;
        self.started = monotonic_now();
        self.counters_before = Some(self.machine_counters());
        // A child that was made behind the first walk's back is found by the second.
        self.walk_tasks(which, "present", "emit_present", 2)?;
        if self.options.walks_stacks() {
            // What it has no room for is counted once more.
            self.areas_counted_twice = self.walk_counts().areas_beyond;
            self.survey(which)?;
        }
        if let Some(waits) = self.loaded("off_cpu") {
            walk::over_tasks(waits, "begin_waits", 1)?;
        }
        let meant = match which {
            Running::Processes(pids) => pids.clone(),
            Running::System => processes(),
        };
        let left_out: Vec<u32> = meant.into_iter().filter(|pid| self.is_left_out(*pid)).collect();
        self.unavailable.extend(left_out.into_iter().map(|pid| {
            let remedy = "record it from its start: slowpath record -- COMMAND";
            declared::PROCESS.of(&[&pid], "the kernel's task iterator (iter/task) does not report it", remedy)
        }));
        self.mounts = mounts_of("self");
        Ok(())
    }

    /// Runs an iterator over all tasks, for the processes that are meant.
    pub(crate) fn walk_tasks(
        &self,
        which: &Running,
        probe: &'static str,
        program: &str,
        times: usize,
    ) -> Result<(), CaptureError> {
        let missing = || CaptureError::Program { probe, problem: "not loaded".to_owned() };
        let one = self.loaded(probe).ok_or_else(missing)?;
        let attach = |source| CaptureError::Attach { probe, event: "map wanted".to_owned(), source };
        let wanted = one.object.maps().find(|map| map.name() == "wanted").ok_or_else(missing)?;
        let pids: &[u32] = match which {
            Running::Processes(pids) => pids,
            Running::System => &[0],
        };
        for pid in pids {
            wanted.update(&pid.to_ne_bytes(), &[1], MapFlags::ANY).map_err(|error| attach(io_error(error)))?;
        }
        walk::over_tasks(one, program, times)
    }

    fn machine_counters(&self) -> MachineCounters {
        MachineCounters::now(self.options.writer, &self.memory_threads)
    }

    pub(crate) fn loaded(&self, probe: &str) -> Option<&Loaded> {
        self.loaded.iter().find(|one| one.name == probe)
    }

    /// Moves what the kernel has put into the ring into memory; call it about every 20 ms.
    ///
    /// # Errors
    /// The ring cannot be read, or the kernel refuses the events of a CPU that came on line.
    pub fn drain(&mut self) -> Result<(), CaptureError> {
        self.ring.drain().map_err(CaptureError::Ring)?;
        self.follow_cpus()
    }

    /// Moves the faults that CPUs still hold into memory; no program runs any more.
    fn take_batches(&self) {
        let object = self.loaded.iter().find(|one| one.name == "fault").map(|one| &one.object);
        let maps = object.into_iter().flat_map(|object| object.maps()).filter(|map| map.name() == "batches");
        for map in maps {
            let batches = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
            for batch in batches {
                // A CPU that saw no fault has a batch of zeros.
                if events::record::<events::fault_event>(&batch).is_some_and(|batch| batch.count > 0) {
                    self.ring.add(&batch);
                }
            }
        }
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
            let values = self.lost.lookup_percpu(&kind.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let lost = values
                .iter()
                .flatten()
                .map(|bytes| bytes.as_slice().try_into().map(u64::from_ne_bytes).unwrap_or(0))
                .sum();
            losses.add(kind_name(kind), lost);
        }
        for (kind, missed) in self.loaded.iter().flat_map(not_run::of_probe) {
            losses.add(&kind, missed);
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
            unavailable: self.unavailable.iter().cloned().chain(self.options.owner.gap(&self.withheld)).collect(),
            probes: self.probes.clone(),
            started: self.started,
            ended: monotonic_now(),
            machine_faults: None,
            memory_threads: None,
        }
    }

    /// Ends the recording and hands over what was seen. Of tasks of the tree that still run, what they are in is reported as far as it
    /// goes, and their counters.
    ///
    /// # Errors
    /// The kernel refuses a walk over its tasks, or the ring cannot be read.
    pub fn finish(self) -> Result<RawCapture, CaptureError> {
        self.finish_with(|_| ())
    }

    /// The same, and calls `loaded` while the programs are there still and follow nobody any more. All that was recorded can be taken
    /// then ([`Self::take`]), but for the last faults of each CPU; what others on the machine do from then on is left out.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_with(mut self, loaded: impl FnOnce(&mut Self)) -> Result<RawCapture, CaptureError> {
        self.look_at_held();
        // After these walks no task is followed.
        // The probe that all hang on comes last.
        for one in self.loaded.iter().rev() {
            if let Some(program) = one.probe.end_walk {
                walk::over_tasks(one, program, 1)?;
            }
        }
        let ended = monotonic_now();
        let after = self.machine_counters();
        let before = self.counters_before.as_ref();
        let machine_faults = before.and_then(|before| after.faults_since(before));
        let memory_threads = before.and_then(|before| after.memory_since(before));
        // Until they are detached the programs tell who has the kernel's threads work for memory, on the whole machine.
        self.ring.end(ended);
        self.ring.drain().map_err(CaptureError::Ring)?;
        loaded(&mut self);
        self.links.clear();
        self.cpu_links.clear();
        self.ring.drain().map_err(CaptureError::Ring)?;
        self.take_batches();
        self.unavailable.extend(self.unknown_code());
        Ok(RawCapture {
            bytes: self.ring.take(),
            facts: Facts { ended, machine_faults, memory_threads, ..self.facts() },
        })
    }
}

/// The link takes the descriptor over and closes it (bpf_link_perf_detach in libbpf). A program can ask for the cookie
/// (`bpf_get_attach_cookie`).
pub(crate) fn attach_perf(program: &ProgramMut<'_>, cookie: u32, fd: OwnedFd) -> io::Result<Link> {
    let options = PerfEventOpts { cookie: cookie.into(), ..PerfEventOpts::default() };
    let link = program.attach_perf_event_with_opts(fd.as_raw_fd(), options).map_err(io_error)?;
    let _ = fd.into_raw_fd();
    Ok(link)
}

/// Attaches the programs that are not bound to one task.
fn attach_whole(one: &Loaded, links: &mut Vec<Link>) -> Result<(), CaptureError> {
    for program in one.object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let is_loaded = !one.missing.contains(&section) && !one.replaced.contains(&section);
        let is_handed_calls = one.probe.is_handed_calls && is_at_calls(&section);
        if !is_loaded || is_handed_calls || section == "perf_event" || walk::is_walk(&section) {
            continue;
        }
        let attached = program.attach();
        links.push(attached.map_err(|error| CaptureError::Attach {
            probe: one.name,
            event: section,
            source: io_error(error),
        })?);
    }
    Ok(())
}

fn no_kernel_names() -> Unavailable {
    declared::KERNEL_NAMES
        .because("the kernel shows no addresses of its functions", "kernel.kptr_restrict=0 or 1 (sysctl)")
}

fn gap(what: &str, reason: &str) -> Unavailable {
    declared::PROBE.of(&[&what], reason, "a newer kernel; `slowpath doctor` says which")
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
