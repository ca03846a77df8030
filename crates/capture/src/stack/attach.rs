//! What the recorder does for stacks: learning which files need tables, loading those, and sampling.

use super::loader::problem;
use super::{NewModule, TableParts, Tables};
use crate::capture_error::CaptureError;
use crate::events::{ANY_GENERATION, AREAS, FIRST_MODULE, MODULES, record, view, walk_counts};
use crate::options::Running;
use crate::recorder::Recorder;
use libbpf_rs::{MapCore, MapFlags};
use slowpath_tables::missing::declared;
use slowpath_tables::{FileKey, Unavailable};
use std::os::fd::{AsRawFd, BorrowedFd};

impl Recorder {
    /// Samples a second, where they are taken.
    pub fn cpu_hertz(&self) -> Option<u32> {
        self.options.cpu_hertz
    }

    /// Files that followed processes mapped executable since the last call, each once in a recording.
    pub fn new_modules(&self) -> Vec<NewModule> {
        self.ring.new_modules()
    }

    /// Has a file reported by [`Recorder::new_modules`] once more when a process maps it again: it could not be opened.
    pub fn forget_module(&mut self, module: u32) {
        self.ring.forgets_module(module);
    }

    /// The number of a file that no process mapped yet, so that its table can be loaded before one does. Only before processes are
    /// followed: their files are numbered by the kernel's programs. With the generation of its inode (`FS_IOC_GETVERSION` of ioctl_fs(2)),
    /// where its file system reports one: a later file with the same inode is another then.
    ///
    /// # Errors
    /// There are too many files, processes are followed already, or the kernel refuses.
    pub fn register_module(&mut self, file: FileKey, generation: Option<u32>) -> Result<u32, CaptureError> {
        if self.follows {
            return Err(problem("it was made too late"));
        }
        let object = self.loaded("code_area").map(|one| &one.object);
        let missing = || problem("the probe code_area is not loaded");
        let map =
            |name: &str| object.and_then(|object| object.maps().find(|map| map.name() == name)).ok_or_else(missing);
        let (modules, counts) = (map("modules")?, map("walk_counts")?);
        let key: Vec<u8> = [file.dev, file.ino, generation.map_or(ANY_GENERATION, u64::from)]
            .iter()
            .flat_map(|part| part.to_ne_bytes())
            .collect();
        if let Some(known) = modules.lookup(&key, MapFlags::ANY).map_err(problem)? {
            return known.as_slice().try_into().map(u32::from_ne_bytes).map_err(problem);
        }
        let first = 0u32.to_ne_bytes();
        let bytes = counts.lookup(&first, MapFlags::ANY).map_err(problem)?.unwrap_or_default();
        let mut count: walk_counts = record(&bytes).ok_or_else(missing)?;
        let number = FIRST_MODULE + count.modules;
        if number >= MODULES {
            return Err(problem("too many files"));
        }
        count.modules += 1;
        counts.update(&first, view(&count), MapFlags::ANY).map_err(problem)?;
        modules.update(&key, &number.to_ne_bytes(), MapFlags::ANY).map_err(problem)?;
        self.ring.knows_module(number);
        Ok(number)
    }

    /// Gives the kernel the table of a file. It goes on in a thread: [`Recorder::tables_arrived`] reports its end, and
    /// [`Recorder::settle_tables`] waits for it. No process may be forked before.
    ///
    /// # Errors
    /// The table contradicts itself, or no thread can be started.
    pub fn load_table(&mut self, module: u32, parts: &TableParts) -> Result<(), CaptureError> {
        self.tables.as_mut().map_or(Ok(()), |tables| tables.load(module, parts))
    }

    /// Takes note of the tables that have arrived in the kernel; returns those that it did not take.
    pub fn tables_arrived(&mut self) -> Vec<CaptureError> {
        self.tables.as_mut().map(Tables::arrived).unwrap_or_default()
    }

    /// Waits until all tables are in the kernel, some 20 ms; returns those that it did not take.
    pub fn settle_tables(&mut self) -> Vec<CaptureError> {
        self.tables.as_mut().map(Tables::settle).unwrap_or_default()
    }

    /// A descriptor for an edge-triggered `epoll`: it becomes readable at the moment at which a file is mapped executable for the
    /// first time, and has to be drained then. Other records wake nobody.
    pub fn new_modules_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    /// Finds out which files processes that run already map executable, before they are followed: their tables can be loaded
    /// before the first stack is walked.
    ///
    /// # Errors
    /// The kernel refuses the walk over its tasks.
    pub fn survey(&mut self, which: &Running) -> Result<(), CaptureError> {
        self.walk_tasks(which, "code_area", "areas_of_present", 1)?;
        self.drain()
    }

    /// Makes the room for the executable mappings of a process that is about to be followed, where stacks are walked. The program at its exec
    /// would make it, but samples can interrupt that one, and none of them could be walked until it is done.
    pub(crate) fn prepare_areas(&self, process: &impl AsRawFd) {
        let maps = self.loaded("code_area").into_iter().flat_map(|one| one.object.maps());
        for spaces in maps.filter(|map| map.name() == "spaces") {
            let nothing = vec![0; spaces.value_size() as usize];
            // Where the kernel has no memory at this moment, the program at the exec tries once more.
            let _ = spaces.update(&process.as_raw_fd().to_ne_bytes(), &nothing, MapFlags::NO_EXIST);
        }
    }

    /// What the programs that keep executable mappings have counted so far; zeros where they are not loaded.
    pub(crate) fn walk_counts(&self) -> walk_counts {
        let maps = self.loaded("code_area").into_iter().flat_map(|one| one.object.maps());
        let bytes = maps
            .filter(|map| map.name() == "walk_counts")
            .find_map(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        bytes.and_then(|bytes| record(&bytes)).unwrap_or_default()
    }

    /// Code in which stacks end because there was no room to keep where it is.
    pub(crate) fn unknown_code(&self) -> Vec<Unavailable> {
        let count = self.walk_counts();
        let files = (FIRST_MODULE + count.modules).saturating_sub(MODULES);
        let gap = |number: u64, what: &str, limit: u32| {
            (number > 0).then(|| {
                let reason = format!("no more than {limit} are kept");
                declared::STACKS_BEYOND.of(&[&number, &what], reason, "record fewer processes at once")
            })
        };
        let areas = gap(count.areas_beyond.saturating_sub(self.areas_counted_twice), "executable mappings", AREAS - 1);
        areas.into_iter().chain(gap(files.into(), "files with code", MODULES - FIRST_MODULE)).collect()
    }
}
