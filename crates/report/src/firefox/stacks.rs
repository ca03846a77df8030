//! Call stacks as the profile holds them: a tree a thread, of frames in libraries.
//!
//! The function that a frame's code belongs to is in the library of its file. What the compiler inlined into it, and code in
//! no file, are labels: the format's writer knows no inlined functions.

use super::categories::Categories;
use fxprof_processed_profile::debugid::DebugId;
use fxprof_processed_profile::{
    CategoryHandle, Frame, FrameFlags, FrameInfo, LibraryHandle, LibraryInfo, Profile, StackHandle, Symbol,
    SymbolTable, ThreadHandle,
};
use slowpath_analysis::stacks::call_stacks::{CallStacks, CodeFrame, FramePlace, Function, StackPath, file_name};
use slowpath_tables::{File, FileKey};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The stacks of all threads.
pub(super) struct StackTables<'t> {
    stacks: &'t CallStacks<'t>,
    /// By frame number, the outermost function first.
    frames: Vec<Vec<FrameInfo>>,
    known: HashMap<(ThreadHandle, StackPath), StackHandle>,
}

impl<'t> StackTables<'t> {
    pub(super) fn new(stacks: &'t CallStacks<'t>, categories: Categories, profile: &mut Profile) -> Self {
        let libraries = libraries(stacks, profile);
        let frames = stacks.frames().iter().map(|frame| infos(frame, &libraries, categories, profile)).collect();
        Self { stacks, frames, known: HashMap::new() }
    }

    /// The stack of a row on its thread; null where none was recorded.
    pub(super) fn get(
        &mut self,
        profile: &mut Profile,
        thread: ThreadHandle,
        stack: Option<u32>,
    ) -> Option<StackHandle> {
        let path = self.stacks.path(stack)?;
        if let Some(known) = self.known.get(&(thread, path)) {
            return Some(*known);
        }
        let mut missing = Vec::new();
        let mut handle = None;
        for path in std::iter::successors(Some(path), |path| self.stacks.caller(*path)) {
            handle = self.known.get(&(thread, path)).copied();
            if handle.is_some() {
                break;
            }
            missing.push(path);
        }
        for path in missing.into_iter().rev() {
            for info in &self.frames[self.stacks.frame_number(path) as usize] {
                let frame = profile.intern_frame(thread, info.clone());
                handle = Some(profile.intern_stack(thread, handle, frame));
            }
            if let Some(handle) = handle {
                self.known.insert((thread, path), handle);
            }
        }
        handle
    }
}

/// The function that the code at a place belongs to, and its offset, for a frame in a file.
fn in_library<'a, 'f>(frame: &'f CodeFrame<'a>) -> Option<(FileKey, Option<&'a File>, u32, &'f Function<'a>)> {
    let FramePlace::File { key, file, offset: Some(offset) } = frame.place else { return None };
    // The format has 32 bits.
    Some((key, file, u32::try_from(offset).ok()?, frame.functions.last()?))
}

/// A library for each file that has frames, with the names of these.
fn libraries(stacks: &CallStacks, profile: &mut Profile) -> HashMap<FileKey, LibraryHandle> {
    let mut found: BTreeMap<FileKey, (Option<&File>, Vec<Symbol>)> = BTreeMap::new();
    for (key, file, address, function) in stacks.frames().iter().filter_map(in_library) {
        // Where the function begins is not recorded, so each place is one of its own; the same names are one function.
        let symbol = Symbol { address, size: Some(1), name: function.name.to_string() };
        found.entry(key).or_insert((file, Vec::new())).1.push(symbol);
    }
    let mut handles = HashMap::new();
    for (key, (file, symbols)) in found {
        let handle = profile.add_lib(library(key, file));
        profile.set_lib_symbol_table(handle, Arc::new(SymbolTable::new(symbols)));
        handles.insert(key, handle);
    }
    handles
}

fn library(key: FileKey, file: Option<&File>) -> LibraryInfo {
    let name = file_name(key, file).into_owned();
    let path = file.map_or_else(|| name.clone(), |file| file.path.clone());
    let build_id = file.and_then(|file| file.build_id.clone());
    LibraryInfo {
        debug_name: name.clone(),
        debug_path: path.clone(),
        debug_id: build_id.as_deref().and_then(debug_id).unwrap_or_default(),
        code_id: build_id,
        arch: None,
        symbol_table: None,
        name,
        path,
    }
}

/// A build-id as Breakpad writes it: the first 16 bytes as a GUID of little-endian fields, age 0.
fn debug_id(build_id: &str) -> Option<DebugId> {
    let mut bytes = [0; 16];
    for (index, byte) in bytes.iter_mut().enumerate() {
        // A shorter id is filled up with zeros.
        let Some(digits) = build_id.get(2 * index..2 * index + 2) else { break };
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    DebugId::from_guid_age(&bytes, 0).ok()
}

fn infos(
    frame: &CodeFrame,
    libraries: &HashMap<FileKey, LibraryHandle>,
    categories: Categories,
    profile: &mut Profile,
) -> Vec<FrameInfo> {
    let category = match frame.place {
        FramePlace::File { .. } | FramePlace::Vdso(_) => categories.user,
        FramePlace::Generated(_) => categories.generated,
        FramePlace::Kernel(_) => categories.kernel,
        FramePlace::Unknown | FramePlace::Truncated(_) => CategoryHandle::OTHER,
    };
    let info = |frame| FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() };
    let outermost = in_library(frame).and_then(|(key, _, address, _)| {
        // The recorder stores the instruction before the one that is returned to, so this is where the call is.
        Some(Frame::RelativeAddressFromInstructionPointer(*libraries.get(&key)?, address))
    });
    let mut functions = frame.functions.iter().rev();
    let mut infos = Vec::with_capacity(frame.functions.len());
    if let Some(outermost) = outermost {
        functions.next();
        infos.push(info(outermost));
    }
    infos.extend(functions.map(|function| info(Frame::Label(profile.intern_string(&function.name)))));
    infos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_written_as_breakpad_does() {
        let id = debug_id("0123456789abcdef0123456789abcdef01234567").unwrap();
        assert_eq!(id.breakpad().to_string(), "67452301AB89EFCD0123456789ABCDEF0");
        assert_eq!(
            debug_id("ab12").unwrap().breakpad().to_string(),
            "000012AB000000000000000000000000".to_owned() + "0"
        );
        assert_eq!((debug_id("no hex here"), debug_id("é")), (None, None));
    }
}
