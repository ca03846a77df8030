//! The memory of a traced program: where its files are mapped, and the breakpoints in them.
//!
//! Owns setting and taking them back. Whether one is set is always asked of the memory itself, never kept: it may be shared with a
//! process that was not known to share it.

use super::machine::{BREAKPOINT, Hook, SETTING, USER, WIDTH, call_behind};
use super::maps::CodeMapping;
use super::reader::{Code, Entry};
use slowpath_process::page_size;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Bytes that are read and written at once.
const PIECE: u64 = 1 << 20;
/// The largest page that aarch64 has, for which files are made. The kernel and run-time linkers map a part from the begin of the machine's
/// page that it begins in; a program that maps for itself may do so from the begin of one of this size.
const LARGEST_PAGE: u64 = 1 << 16;

/// What stands at the place of a breakpoint.
type Original = [u8; WIDTH];

/// A file whose functions are watched.
#[derive(Debug)]
pub struct Object {
    /// Its place in the trace.
    pub number: u32,
    /// Its number at the reader.
    pub at_reader: u32,
    /// Executable segments.
    pub code: Vec<Code>,
    /// Functions, sorted by the address of their breakpoint.
    pub entries: Vec<Entry>,
    /// Where its run-time linker says that something was loaded.
    pub hook: Option<Hook>,
    /// Where actions of signals are set, sorted.
    pub settings: Vec<u64>,
}

/// An executable mapping of an object.
#[derive(Clone, Debug)]
pub struct Load {
    /// Addresses.
    pub range: Range<u64>,
    /// What is added to an address of the file; wraps round.
    bias: u64,
    /// The object; none where the file is left out.
    object: Option<Rc<Object>>,
    inode: u64,
    offset: u64,
}

impl Load {
    /// A mapping that nothing is watched in.
    pub fn unwatched(mapping: &CodeMapping) -> Self {
        let CodeMapping { range, offset, inode, .. } = mapping;
        Self { range: range.clone(), bias: 0, object: None, inode: *inode, offset: *offset }
    }

    /// A mapping of an object; none where it is of no executable part.
    pub fn of(mapping: &CodeMapping, object: Rc<Object>) -> Option<Self> {
        let holds = |code: &&Code, page: u64| {
            let end = code.offset.saturating_add(code.size);
            (code.offset - code.offset % page..end).contains(&mapping.offset)
        };
        let of = |page| object.code.iter().find(|code| holds(code, page));
        let code = of(page_size()).or_else(|| of(LARGEST_PAGE))?;
        let stated = code.address.wrapping_add(mapping.offset.wrapping_sub(code.offset));
        let bias = mapping.range.start.wrapping_sub(stated);
        Some(Self { bias, object: Some(object), ..Self::unwatched(mapping) })
    }

    /// Whether it is this mapping.
    pub fn is(&self, mapping: &CodeMapping) -> bool {
        // A part whose protection was changed is split off: it is where it was.
        let within = self.range.start <= mapping.range.start && mapping.range.end <= self.range.end;
        let moved = mapping.range.start.wrapping_sub(self.range.start);
        within && self.inode == mapping.inode && self.offset.wrapping_add(moved) == mapping.offset
    }

    fn stated(&self, address: u64) -> u64 {
        address.wrapping_sub(self.bias)
    }

    fn mapped(&self, stated: u64) -> u64 {
        stated.wrapping_add(self.bias)
    }

    /// Its breakpoints, as sorted addresses in memory with what stands there.
    fn points(&self) -> Vec<(u64, Original)> {
        let settings = self.object.iter().flat_map(|object| &object.settings);
        let settings = settings.map(|at| (self.mapped(*at), SETTING));
        let entries = self.object.iter().flat_map(|object| &object.entries);
        let points = entries.map(|entry| (self.mapped(entry.at), entry.original)).chain(settings);
        let mut points: Vec<_> =
            points.filter(|(at, _)| at % WIDTH as u64 == 0 && self.range.contains(at) && USER.contains(at)).collect();
        points.sort_unstable();
        points.dedup_by_key(|(at, _)| *at);
        points
    }
}

/// What stands at an address where a thread stopped.
#[derive(Clone, Debug)]
pub enum Stop {
    /// A function of an object, by its number at the reader.
    Function {
        /// The object.
        object: Rc<Object>,
        /// The function.
        function: u32,
        /// What the breakpoint replaced.
        original: Original,
    },
    /// The run-time linker's word that something was mapped or removed; goes on at this address.
    Linker(u64),
    /// A call that sets the action of a signal.
    Setting,
    /// The first instruction of the program itself.
    Start(Original),
    /// Nothing of ours.
    Foreign,
}

/// The memory of a program, which all its threads share.
#[derive(Debug)]
pub struct Memory {
    file: File,
    loads: Vec<Load>,
    hook: Option<(u64, Original, u64)>,
    start: Option<(u64, Original)>,
}

impl Memory {
    /// That of a process.
    ///
    /// # Errors
    /// It is gone, or may not be looked into.
    pub fn of(pid: i32) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        Ok(Self { file, loads: Vec::new(), hook: None, start: None })
    }

    /// That of a process which was forked from the one with this memory.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn forked(&self, pid: i32) -> io::Result<Self> {
        Ok(Self { loads: self.loads.clone(), hook: self.hook, start: self.start, ..Self::of(pid)? })
    }

    /// Forgets mappings that are no longer there, and says which are new.
    pub fn reconcile(&mut self, now: &[CodeMapping]) -> Vec<CodeMapping> {
        let is_new = |mapping: &&CodeMapping| !self.loads.iter().any(|load| load.is(mapping));
        let new: Vec<_> = now.iter().filter(is_new).cloned().collect();
        self.loads.retain(|load| now.iter().any(|mapping| load.is(mapping)));
        new
    }

    /// Keeps a mapping, and sets the breakpoints in it.
    ///
    /// # Errors
    /// The kernel does not let it be written.
    pub fn add(&mut self, load: Load) -> io::Result<()> {
        let points = load.points();
        self.loads.push(load);
        self.replace(&points, |found, original| if found == original { BREAKPOINT } else { found })
    }

    /// Stops at the run-time linker's word, if the last mapping has it.
    ///
    /// # Errors
    /// The kernel does not let it be written.
    pub fn watch_linker(&mut self) -> io::Result<bool> {
        let of_load = |load: &Load| {
            let hook = load.object.as_ref()?.hook?;
            let (at, resume) = (load.mapped(hook.address), load.mapped(hook.resume));
            let is_inside = load.range.contains(&at) && load.range.contains(&resume);
            is_inside.then_some((at, hook.original, resume))
        };
        let Some((at, original, resume)) = self.loads.last().and_then(of_load) else { return Ok(false) };
        // Its own function may have its breakpoint at the same place.
        self.file.write_all_at(&BREAKPOINT, at)?;
        self.hook = Some((at, original, resume));
        Ok(true)
    }

    /// Stops at the first instruction of the program itself.
    ///
    /// # Errors
    /// The kernel does not let it be written.
    pub fn watch_start(&mut self, entry: u64) -> io::Result<()> {
        let mut original = [0; WIDTH];
        self.file.read_exact_at(&mut original, entry)?;
        if original == BREAKPOINT {
            // A function of the program: what stands there is known.
            original = match self.look_up(entry) {
                Stop::Function { original, .. } => original,
                _ => return Ok(()),
            };
        }
        self.file.write_all_at(&BREAKPOINT, entry)?;
        self.start = Some((entry, original));
        Ok(())
    }

    /// What stands at an address.
    pub fn look_up(&self, address: u64) -> Stop {
        if let Some((_, _, resume)) = self.hook.filter(|(at, ..)| *at == address) {
            return Stop::Linker(resume);
        }
        for load in self.loads.iter().filter(|load| load.range.contains(&address)) {
            let Some(object) = &load.object else { continue };
            if object.settings.binary_search(&load.stated(address)).is_ok() {
                return Stop::Setting;
            }
            if let Ok(place) = object.entries.binary_search_by_key(&load.stated(address), |entry| entry.at) {
                let Entry { function, original, .. } = object.entries[place];
                return Stop::Function { object: Rc::clone(object), function, original };
            }
        }
        match self.start {
            Some((at, original)) if at == address => Stop::Start(original),
            _ => Stop::Foreign,
        }
    }

    /// Whether an address is the first instruction of the program, also where a function of it has its breakpoint there. Told once.
    pub fn has_started(&mut self, address: u64) -> bool {
        self.start.take_if(|(at, _)| *at == address).is_some()
    }

    /// A system call instruction in it.
    pub fn call(&self) -> Option<u64> {
        self.loads.iter().find_map(|load| {
            let place = load.mapped(*load.object.as_ref()?.settings.first()?);
            load.range.contains(&call_behind(place)).then(|| call_behind(place))
        })
    }

    /// Reads it.
    ///
    /// # Errors
    /// The process is gone, or nothing is mapped there.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    /// Writes it.
    ///
    /// # Errors
    /// The process is gone, or nothing is mapped there.
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    /// Puts back what stood at an address.
    ///
    /// # Errors
    /// The process is gone.
    pub fn restore(&self, address: u64, original: Original) -> io::Result<()> {
        self.file.write_all_at(&original, address)
    }

    /// Takes all breakpoints back. No thread may run.
    ///
    /// # Errors
    /// The process is gone.
    pub fn restore_all(&mut self) -> io::Result<()> {
        let loads = std::mem::take(&mut self.loads);
        let restored = loads.iter().try_for_each(|load| {
            self.replace(&load.points(), |found, original| if found == BREAKPOINT { original } else { found })
        });
        for (at, original) in
            self.hook.take().map(|(at, original, _)| (at, original)).into_iter().chain(self.start.take())
        {
            self.restore(at, original)?;
        }
        restored
    }

    /// Replaces what stands at sorted addresses by what `change` makes of what is found and what should stand there. Only pages in which
    /// something changes are written.
    fn replace(&self, points: &[(u64, Original)], change: impl Fn(Original, Original) -> Original) -> io::Result<()> {
        // What the kernel copies when a byte of it is written.
        let page_size = page_size();
        let mut rest = points;
        let mut piece = Vec::new();
        while let Some((first, _)) = rest.first() {
            let from = first - first % page_size;
            let within = rest.partition_point(|(at, _)| *at < from + PIECE);
            let (now, later) = rest.split_at(within);
            rest = later;
            let last = now.last().map_or(from, |(at, _)| *at);
            let end = last - last % page_size + page_size;
            piece.resize((end - from) as usize, 0);
            self.file.read_exact_at(&mut piece, from)?;
            let mut changed: Vec<u64> = Vec::new();
            for (at, original) in now {
                // None straddles two pages: its address is a multiple of its width.
                let Some(found) = piece[(at - from) as usize..].first_chunk_mut::<WIDTH>() else { continue };
                let wanted = change(*found, *original);
                if *found != wanted {
                    *found = wanted;
                    let page = at - at % page_size;
                    if changed.last() != Some(&page) {
                        changed.push(page);
                    }
                }
            }
            // Runs of pages that follow each other.
            for run in changed.chunk_by(|one, next| one + page_size == *next) {
                let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
                self.file.write_all_at(&piece[(first - from) as usize..(last + page_size - from) as usize], *first)?;
            }
        }
        Ok(())
    }
}
