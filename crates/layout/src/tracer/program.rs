//! Programs and their files: what is watched in the memory of a process that has just executed, or whose run-time linker has mapped more.

use super::error::TraceError;
use super::maps::{CodeMapping, code_mappings};
use super::memory::{Load, Memory, Object};
use super::reader::Reader;
use super::rights::Rights;
use crate::trace_file::{LeftOut, LeftOutReason, TracedObject};
use slowpath_process::ProcessFiles;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::rc::Rc;

/// `AT_BASE` and `AT_ENTRY` of the auxiliary vector (include/uapi/linux/auxvec.h).
const BASE: u64 = 7;
const ENTRY: u64 = 9;

/// The most of a list of mappings that is read; 65530 mappings (vm.max_map_count) of some 150 bytes.
const MOST_MAPS: u64 = 64 << 20;
/// The most of an auxiliary vector, which has some 20 entries.
const MOST_AUXV: u64 = 4096;

/// A program that begins.
#[derive(Debug)]
pub(super) struct Begun {
    /// Its memory; none where it may not be looked into.
    pub memory: Option<Memory>,
    /// Whether its run-time linker is watched while it works.
    pub starting: bool,
    /// Its executable in the trace.
    pub object: Option<u32>,
}

/// All files that were met.
pub(super) struct Programs {
    /// Shared objects are watched too, not executables alone.
    all_objects: bool,
    pub reader: Reader,
    /// A process can hold the lock of its own memory map, for which a read of it waits.
    files: ProcessFiles,
    /// What the target may do.
    rights: Option<Rights>,
    /// By path, inode, and whether its functions are watched.
    known: HashMap<(String, u64, bool), Option<Rc<Object>>>,
    /// As the trace lists them.
    pub objects: Vec<TracedObject>,
    left_out: BTreeSet<(String, LeftOutReason)>,
}

impl Programs {
    pub fn new(all_objects: bool, reader: Reader, files: ProcessFiles, rights: Option<Rights>) -> Self {
        Self {
            all_objects,
            reader,
            files,
            rights,
            known: HashMap::new(),
            objects: Vec::new(),
            left_out: BTreeSet::new(),
        }
    }

    /// What could not be watched.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let left_out = self.left_out.iter();
        left_out.map(|(path, reason)| LeftOut { path: path.clone(), reason: *reason }).collect()
    }

    /// A process has executed a program; it is stopped before its first instruction.
    pub fn begin(&mut self, pid: i32) -> Result<Begun, TraceError> {
        let nothing = Begun { memory: None, starting: false, object: None };
        let Some((base, entry)) = self.start(pid) else { return Ok(nothing) };
        let mappings = self.mappings(pid).unwrap_or_default();
        let is_of_program = |mapping: &&CodeMapping| mapping.range.contains(&entry);
        let Some(program) = mappings.iter().find(is_of_program) else { return Ok(nothing) };
        let is_targets =
            self.rights.as_ref().is_some_and(|target| Rights::of(pid).is_some_and(|own| own.are_those_of(target)));
        let Some(mut memory) = is_targets.then(|| Memory::of(pid).ok()).flatten() else {
            self.leave_out(&program.path, LeftOutReason::Protected);
            return Ok(nothing);
        };
        let mut object = None;
        // The run-time linker is mapped beside it, and is one of all objects.
        for mapping in &mappings {
            let is_program = mapping.inode == program.inode && mapping.path == program.path;
            let added = self.add(mapping, &mut memory, is_program)?;
            if is_program {
                object = object.or(added);
            } else if self.all_objects && added.is_some() && !memory.watch_linker().unwrap_or(false) {
                self.leave_out(&mapping.path, LeftOutReason::LoaderUnknown);
            }
        }
        if let Some(traced) = object.and_then(|object| self.objects.get_mut(object as usize)) {
            traced.executed = true;
        }
        let starting = base != 0 && memory.watch_start(entry).is_ok();
        Ok(Begun { memory: Some(memory), starting, object })
    }

    /// Watches what was mapped since, and forgets what is gone.
    pub fn look(&mut self, pid: i32, memory: &mut Memory) -> Result<(), TraceError> {
        let Some(mappings) = self.mappings(pid) else { return Ok(()) };
        for mapping in memory.reconcile(&mappings) {
            self.add(&mapping, memory, false)?;
        }
        Ok(())
    }

    /// Watches the functions of a mapping; its object in the trace. Of a shared object that is not wanted only calls that set actions of
    /// signals are watched.
    fn add(&mut self, mapping: &CodeMapping, memory: &mut Memory, is_program: bool) -> Result<Option<u32>, TraceError> {
        let object = self.object(mapping, is_program || self.all_objects)?;
        let watched = object.and_then(|object| Some((object.number, Load::of(mapping, object)?)));
        let Some((number, load)) = watched else {
            memory.add(Load::unwatched(mapping)).ok();
            return Ok(None);
        };
        if memory.add(load).is_err() {
            self.leave_out(&mapping.path, LeftOutReason::Protected);
            return Ok(None);
        }
        Ok(Some(number))
    }

    fn object(&mut self, mapping: &CodeMapping, wanted: bool) -> Result<Option<Rc<Object>>, TraceError> {
        let key = (mapping.path.clone(), mapping.inode, wanted);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let answer = self.reader.file(&mapping.path, mapping.inode, wanted).map_err(TraceError::Reader)?;
        let object = match answer {
            Ok((facts, _)) if !wanted => {
                let object = Object {
                    number: u32::MAX,
                    at_reader: facts.object,
                    code: facts.code,
                    entries: Vec::new(),
                    hook: None,
                    settings: facts.settings,
                };
                Some(Rc::new(object))
            }
            // It is none of what was asked for.
            Err(_) if !wanted => None,
            Ok((facts, entries)) => {
                let number = u32::try_from(self.objects.len()).unwrap_or(u32::MAX);
                self.objects.push(TracedObject {
                    path: mapping.path.clone(),
                    device: facts.device,
                    inode: mapping.inode,
                    build_id: facts.build_id,
                    bytes: facts.bytes,
                    functions: entries.len() as u64,
                    function_bytes: facts.function_bytes,
                    code_bytes: facts.code.iter().map(|code| code.size).fold(0, u64::saturating_add),
                    executed: false,
                });
                let (at_reader, code, hook, settings) = (facts.object, facts.code, facts.hook, facts.settings);
                Some(Rc::new(Object { number, at_reader, code, entries, hook, settings }))
            }
            Err(reason) => {
                self.leave_out(&mapping.path, reason);
                None
            }
        };
        self.known.insert(key, object.clone());
        Ok(object)
    }

    fn leave_out(&mut self, path: &str, reason: LeftOutReason) {
        // As many as a trace can list.
        if self.left_out.len() < 1 << 16 {
            self.left_out.insert((path.to_owned(), reason));
        }
    }

    /// The code that a process has mapped; none once it is gone.
    fn mappings(&mut self, pid: i32) -> Option<Vec<CodeMapping>> {
        let text = self.files.read(Path::new(&format!("/proc/{pid}/maps")), MOST_MAPS).ok()?;
        Some(code_mappings(&text))
    }

    /// Where the run-time linker of a process is mapped (0: it has none), and the first instruction of its program.
    fn start(&mut self, pid: i32) -> Option<(u64, u64)> {
        let vector = self.files.read(Path::new(&format!("/proc/{pid}/auxv")), MOST_AUXV).ok()?;
        let words: Vec<u64> = vector.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let value = |wanted| words.as_chunks::<2>().0.iter().find(|[kind, _]| *kind == wanted).map(|[_, value]| *value);
        Some((value(BASE).unwrap_or(0), value(ENTRY)?))
    }
}
