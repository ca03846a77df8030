//! Names of frames that a trace does not name, from files of this machine.
//!
//! Owns which file of this machine is the recorded one: that with the build id which the trace has of it, whatever its path. It is looked
//! for at the recorded path, in directories that the user names, in perf's cache (`~/.debug`) and in the system's directory of debug
//! files. Addresses of the kernel have names where the trace is of the running kernel, with the same build id and at the same place.
//! Says what has no name, why, and how many CPU samples that are. Leaves reading files to `symbols`, which opens none that is not
//! regular, and the identity of who reads them to the command.

use crate::files::Files;
use crate::stacks::Stacks;
use slowpath_symbols::symbolize::{Located, Options, RecordedKernel, Sources, running_code, symbolize};
use slowpath_tables::{FileKey, Frame, FrameKind, Symbol};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::PathBuf;

/// Files in which names are looked up; those with the most CPU samples come first.
const MOST_FILES: usize = 4096;
/// Places without names that a gap lists.
const SHOWN: usize = 5;
/// Characters of a path that a gap shows, from its end.
const SHOWN_PATH: usize = 120;

const NOT_IN_TRACE: &str = "the imported trace has no name for it";
const OTHER_KERNEL: &str = "the trace is of another kernel or boot, or this user does not see the kernel's addresses";

/// Where code may be that a trace names by its build id.
pub struct LocalCode<'a> {
    options: Options,
    is_wanted: &'a dyn Fn() -> bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Looked {
    /// Rows for all frames that the trace does not name.
    pub symbols: Vec<Symbol>,
    /// What has no name and why; none where everything has one.
    pub gap: Option<String>,
}

impl<'a> LocalCode<'a> {
    /// Code at its path, in these directories and among the system's debug files. No more is looked up once it is not wanted.
    pub fn new(dirs: &[PathBuf], is_wanted: &'a dyn Fn() -> bool) -> Self {
        Self { options: Options { image_dirs: dirs.to_vec(), ..Options::default() }, is_wanted }
    }

    /// The same, and code in the cache that perf keeps for a user.
    #[must_use]
    pub fn and_cache_of_perf(mut self) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        self.options.image_dirs.extend(home.map(|home| home.join(".debug")));
        self
    }

    fn look(&self, frames: &[Frame], located: Option<&Located>, kernel: Option<&File>) -> Vec<Symbol> {
        let file = |_: FileKey| located.cloned();
        let sources = Sources { file: &file, kernel, this_boot: kernel.is_some(), perf_maps: &|_, _| Vec::new() };
        symbolize(frames, &sources, &self.options)
    }
}

/// Names what the trace of these stacks and files does not name; without `local`, with the reason alone.
pub fn name(stacks: &Stacks, files: &Files, kernel: Option<&RecordedKernel>, local: Option<&LocalCode<'_>>) -> Looked {
    let frames = stacks.unnamed();
    let Some(local) = local else {
        return Looked { symbols: frames.iter().map(|frame| unnamed(frame, NOT_IN_TRACE)).collect(), gap: None };
    };
    let mut symbols = Vec::with_capacity(frames.len());
    let (mut of_files, mut of_kernel): (BTreeMap<FileKey, Vec<Frame>>, Vec<Frame>) = Default::default();
    for frame in &frames {
        match (frame.kind, frame.dev.zip(frame.ino)) {
            (FrameKind::File, Some((dev, ino))) if frame.offset.is_some() => {
                of_files.entry(FileKey { dev, ino }).or_default().push(frame.clone());
            }
            (FrameKind::Kernel, _) if frame.address.is_some() => of_kernel.push(frame.clone()),
            (FrameKind::Vdso, _) if frame.offset.is_some() => of_kernel.push(frame.clone()),
            _ => symbols.push(unnamed(frame, NOT_IN_TRACE)),
        }
    }
    let paths = files.paths();
    let mut of_files: Vec<_> = of_files.into_iter().collect();
    of_files.sort_by_key(|(_, frames)| Reverse(frames.iter().map(|frame| stacks.samples_of(frame.id)).sum::<u64>()));
    for (at, (key, frames)) in of_files.iter().enumerate() {
        let located = paths.get(key).zip(files.build_id(*key)).map(|(path, build_id)| Located {
            path: PathBuf::from(path),
            build_id: Some(build_id.to_owned()),
            ..Located::default()
        });
        match located.filter(|_| at < MOST_FILES && (local.is_wanted)()) {
            Some(located) => symbols.extend(local.look(frames, Some(&located), None)),
            None => symbols.extend(frames.iter().map(|frame| unnamed(frame, NOT_IN_TRACE))),
        }
    }
    symbols.extend(in_kernel(of_kernel, kernel, local));
    let gap = gap(&frames, &symbols, stacks, &paths);
    Looked { symbols, gap }
}

/// Names frames of the kernel and its vdso, where they are of the running one. Of modules nothing says that they are where they were.
fn in_kernel(frames: Vec<Frame>, kernel: Option<&RecordedKernel>, local: &LocalCode<'_>) -> Vec<Symbol> {
    if frames.is_empty() {
        return Vec::new();
    }
    let list = File::open("/proc/kallsyms").ok().filter(|_| (local.is_wanted)());
    let code = kernel.zip(list.as_ref()).and_then(|(kernel, list)| running_code(kernel, list));
    let is_there = |frame: &Frame| {
        let code = code.as_ref();
        code.is_some_and(|code| frame.address.is_none_or(|address| code.contains(&address)))
    };
    let (found, other): (Vec<Frame>, Vec<Frame>) = frames.into_iter().partition(is_there);
    let mut symbols = if found.is_empty() { Vec::new() } else { local.look(&found, None, list.as_ref()) };
    let reason = if code.is_some() { NOT_IN_TRACE } else { OTHER_KERNEL };
    symbols.extend(other.iter().map(|frame| unnamed(frame, reason)));
    symbols
}

fn unnamed(frame: &Frame, reason: &str) -> Symbol {
    Symbol {
        frame: frame.id,
        level: 0,
        function: None,
        source_file: None,
        source_line: None,
        reason: Some(reason.to_owned()),
    }
}

/// What has no name, by file and reason, the one with the most samples first.
fn gap(frames: &[Frame], symbols: &[Symbol], stacks: &Stacks, paths: &HashMap<FileKey, &str>) -> Option<String> {
    let mut places: HashMap<(String, &str), (u64, u64)> = HashMap::new();
    let (mut samples, mut count) = (0, 0);
    for symbol in symbols.iter().filter(|symbol| symbol.function.is_none()) {
        let Ok(at) = frames.binary_search_by_key(&symbol.frame, |frame| frame.id) else { continue };
        let of_frame = stacks.samples_of(symbol.frame);
        let place = (place(&frames[at], paths), symbol.reason.as_deref().unwrap_or(NOT_IN_TRACE));
        let sums = places.entry(place).or_default();
        *sums = (sums.0 + of_frame, sums.1 + 1);
        (samples, count) = (samples + of_frame, count + 1);
    }
    if count == 0 {
        return None;
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by(|(one, sums), (other, others)| others.cmp(sums).then_with(|| one.cmp(other)));
    let listed = places.iter().take(SHOWN);
    let listed: Vec<String> =
        listed.map(|((place, why), (samples, count))| format!("{place}, {samples} and {count}: {why}")).collect();
    let further = places.len().saturating_sub(SHOWN);
    let further = if further > 0 { format!("; and {further} more") } else { String::new() };
    Some(format!(
        "{samples} of {} CPU samples and {count} of {} frames are in code that no file of this machine names ({}{further})",
        stacks.samples(),
        stacks.frame_count(),
        listed.join("; ")
    ))
}

fn place(frame: &Frame, paths: &HashMap<FileKey, &str>) -> String {
    let file = frame.dev.zip(frame.ino).and_then(|(dev, ino)| paths.get(&FileKey { dev, ino }));
    match (frame.kind, file) {
        (_, Some(path)) => {
            let skipped = path.chars().count().saturating_sub(SHOWN_PATH);
            path.chars().skip(skipped).collect()
        }
        (FrameKind::Kernel, None) => "the kernel".to_owned(),
        (FrameKind::Vdso, None) => "the vdso".to_owned(),
        _ => "code in no file".to_owned(),
    }
}
