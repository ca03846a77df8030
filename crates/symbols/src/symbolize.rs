//! Names of frames: functions, inlined ones too, with source lines where debug information allows.
//!
//! Owns: which source a name comes from, in which order, and why there is none. Leaves to the caller where a file, the kernel's
//! list and a perf map are to be found, and showing names: a name is data of a stranger and may hold any character.
//!
//! Every frame gets at least one row. Frames of one file are looked up together; the sources of a file are asked in this order,
//! and each only for what those before it could not name:
//!
//! 1. debug information (DWARF) in the file itself,
//! 2. where it has none, a separate debug file: by build-id in a debug directory (`.build-id/xx/yyyy.debug`), by
//!    `.gnu_debuglink` (beside the file, in `.debug`, in a debug directory; build-id or checksum must agree), and from
//!    debuginfod, through its own client, where the user has set it up,
//! 3. symbols of the file itself: `.symtab`, or else the compressed one in `.gnu_debugdata` (MiniDebugInfo), then `.dynsym`.
//!
//! Code in the vdso has the image that the kernel maps into this very process, code of the kernel has the kernel's list of
//! symbols, and code that was generated at run time has the perf map that the process wrote. Where nothing is found, the one row
//! of the frame has no function and a reason out of [`Reason`]. A `truncated` frame is no code; its row says so.
//!
//! A file that is gone from its path, or another one by now, is looked for by its build-id in directories of files and debug files.
//!
//! What is read here is foreign. Nothing but a regular file is opened, none that the kernel makes up, and never by a name that
//! stands in another file without the same check; a parser that panics costs the names of one file. It is meant to run without privilege.

mod debug_files;
mod debuginfod;
mod elf;
mod image;
mod kernel;
mod names;
mod opened;
mod options;
mod perf_map;
mod reason;
mod vdso;

pub use debuginfod::Debuginfod;
pub use image::hexadecimal;
pub use kernel::{RecordedKernel, running_code};
pub use opened::Located;
pub use options::{Depth, Options};
pub use perf_map::PerfMap;
pub use reason::Reason;
pub use vdso::vdso_image;

use names::Names;
use slowpath_tables::{FileKey, Frame, FrameKind, Nanos, Symbol};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

/// Where names come from.
pub struct Sources<'a> {
    /// Where the file of frames is, as this process can open it, and what identified its content when it was recorded.
    pub file: &'a dyn Fn(FileKey) -> Option<Located>,
    /// The kernel's list of symbols, `/proc/kallsyms`. The kernel decides at `open` whether a reader sees addresses: it must
    /// have been opened with privilege, and may be read without. None where it could not be opened.
    pub kernel: Option<&'a File>,
    /// Whether the recording was made since this machine was booted. Otherwise its kernel is another one, or lies elsewhere.
    pub this_boot: bool,
    /// Files that may be the perf map of a process (pid and start), the likeliest first; see [`PerfMap::paths`].
    pub perf_maps: &'a dyn Fn(u32, Nanos) -> Vec<PathBuf>,
}

/// What is called by its place in a file, the kernel or a process, and the frames that are there.
type Places<K> = BTreeMap<K, BTreeMap<u64, Names>>;

/// Where the code of a frame is.
enum CodeLocation {
    File(FileKey, u64),
    Vdso(u64),
    Generated((u32, Nanos), u64),
    Kernel(u64),
}

fn place(frame: &Frame) -> Result<CodeLocation, Reason> {
    let of = match frame.kind {
        FrameKind::File => frame
            .dev
            .zip(frame.ino)
            .zip(frame.offset)
            .map(|((dev, ino), offset)| CodeLocation::File(FileKey { dev, ino }, offset.0)),
        FrameKind::Vdso => frame.offset.map(|offset| CodeLocation::Vdso(offset.0)),
        FrameKind::Generated => frame
            .pid
            .zip(frame.start)
            .zip(frame.address)
            .map(|(process, address)| CodeLocation::Generated(process, address)),
        FrameKind::Kernel => frame.address.map(CodeLocation::Kernel),
        FrameKind::Truncated => return Err(Reason::TruncatedStack),
    };
    of.ok_or(Reason::NoPlace)
}

/// The rows of table `symbols` for these frames, in their order. Reads files; never fails as a whole: what could not be read
/// is the reason of the frames that needed it.
pub fn symbolize(frames: &[Frame], sources: &Sources<'_>, options: &Options) -> Vec<Symbol> {
    let mut files: Places<FileKey> = BTreeMap::new();
    let mut generated: Places<(u32, Nanos)> = BTreeMap::new();
    let (mut kernel, mut vdso) = (BTreeMap::new(), BTreeMap::new());
    for frame in frames {
        let open = Err(Reason::NotCovered);
        match place(frame) {
            Ok(CodeLocation::File(file, offset)) => drop(files.entry(file).or_default().insert(offset, open)),
            Ok(CodeLocation::Generated(process, address)) => {
                drop(generated.entry(process).or_default().insert(address, open));
            }
            Ok(CodeLocation::Vdso(offset)) => drop(vdso.insert(offset, open)),
            Ok(CodeLocation::Kernel(address)) => drop(kernel.insert(address, open)),
            Err(_) => {}
        }
    }
    let mut lookup = elf::Lookup::new(options);
    for (key, offsets) in &mut files {
        let located = (sources.file)(*key);
        lookup.file(located.as_ref(), offsets);
    }
    for (&(pid, start), addresses) in &mut generated {
        perf_map::name(&(sources.perf_maps)(pid, start), addresses);
    }
    if !vdso.is_empty() {
        vdso::name(sources.this_boot, &mut lookup, &mut vdso);
    }
    if !kernel.is_empty() {
        kernel::name(sources.this_boot, sources.kernel, &mut kernel);
    }
    let mut rows = Vec::with_capacity(frames.len());
    for frame in frames {
        let names = match place(frame) {
            Ok(CodeLocation::File(file, offset)) => files.get(&file).and_then(|places| places.get(&offset)),
            Ok(CodeLocation::Generated(process, address)) => {
                generated.get(&process).and_then(|places| places.get(&address))
            }
            Ok(CodeLocation::Vdso(offset)) => vdso.get(&offset),
            Ok(CodeLocation::Kernel(address)) => kernel.get(&address),
            Err(reason) => {
                rows.push(unnamed(frame.id, reason));
                continue;
            }
        };
        match names {
            Some(Ok(functions)) => rows.extend((0u32..).zip(functions).map(|(level, function)| Symbol {
                frame: frame.id,
                level,
                function: Some(function.name.clone()),
                source_file: function.source_file.clone(),
                source_line: function.source_line,
                reason: None,
            })),
            Some(Err(reason)) => rows.push(unnamed(frame.id, *reason)),
            None => rows.push(unnamed(frame.id, Reason::NotCovered)),
        }
    }
    rows
}

fn unnamed(frame: u32, reason: Reason) -> Symbol {
    Symbol {
        frame,
        level: 0,
        function: None,
        source_file: None,
        source_line: None,
        reason: Some(reason.words().to_owned()),
    }
}
