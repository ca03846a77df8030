//! A copy of a binary whose file reads well: what `slowpath layout repack` makes and prints.

use crate::inputs;
use crate::repack::prelink::prelink;
use crate::repack::{RepackError, repack, unmoved};
use crate::work::Work;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_fix::preload_plan::PreloadPlan;
use slowpath_fix::preload_plan::file::{self, PlanFileError};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::whole_file;
use slowpath_symbols::binary::Binary;
use slowpath_tables::PAGE_SIZE;
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The largest plan or trace that is read.
const MOST_ORDER: u64 = crate::trace_file::MOST_BYTES;

/// Name and version of what is printed.
const SCHEMA: &str = "slowpath-layout-repack/1";

/// What is copied, and by what.
#[derive(Clone, Debug)]
pub struct RepackWanted {
    /// The binary.
    pub binary: PathBuf,
    /// Preload plans and traces; pages of the first come first. None: its pages stay where they are.
    pub orders: Vec<PathBuf>,
    /// Whether the relocations of a program are done in the copy.
    pub prelink: bool,
    /// Most program headers of the copy.
    pub most_headers: usize,
    /// The copy.
    pub output: PathBuf,
}

/// What `slowpath layout repack --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repacked {
    /// `slowpath-layout-repack/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The binary.
    pub binary: String,
    /// Its copy.
    pub output: String,
    /// Relocations that are done in the copy; null where that was not asked for.
    pub relocations: Option<u64>,
    /// Pages (4 KiB) of memory that they wrote at each start.
    pub relocated_pages: Option<u64>,
    /// Whether the order knows code alone: it is made of traces, which know functions. False without an order.
    pub code_only: bool,
    /// Pages (4 KiB) that the order needs, and the first one; 0 without an order.
    pub needed_pages: u64,
    /// Pages that stand together in the copy: those, and small holes between them.
    pub moved_pages: u64,
    /// Runs of consecutive pages that they are in the binary.
    pub runs: u64,
    /// Program headers of the binary.
    pub headers_before: u64,
    /// Program headers of the copy: each further one is a mapping more.
    pub headers: u64,
    /// Bytes of the binary.
    pub bytes_before: u64,
    /// Bytes of the copy.
    pub bytes: u64,
}

/// Pages of a file by first use, each once: what comes from a plan or a trace may name one a million times.
struct FirstUses {
    unused: BTreeSet<u64>,
    order: Vec<u64>,
}

impl FirstUses {
    fn of_file(length: u64) -> Self {
        Self { unused: (0..length.div_ceil(PAGE_SIZE)).collect(), order: Vec::new() }
    }

    fn add(&mut self, pages: Range<u64>) {
        let fresh: Vec<u64> = if pages.is_empty() { Vec::new() } else { self.unused.range(pages).copied().collect() };
        for page in fresh {
            self.unused.remove(&page);
            self.order.push(page);
        }
    }
}

/// Adds the pages of the binary that a plan reads, in its order.
///
/// # Errors
/// It has no page of this file, or was made for another.
fn add_plan(
    to: &mut FirstUses,
    plan: &PreloadPlan,
    path: &Path,
    length: u64,
    build_id: Option<&str>,
) -> Result<(), String> {
    let path = path.to_string_lossy();
    let Some(number) = plan.files.iter().position(|file| file.path == path) else {
        return Err(format!("the plan has no page of {path}"));
    };
    let planned = &plan.files[number];
    if planned.size != length || planned.build_id.as_deref().is_some_and(|id| build_id != Some(id)) {
        return Err(format!("{path} is not the file any more that the plan was made for"));
    }
    let ranges = plan.ranges.iter().filter(|range| range.file as usize == number);
    ranges.for_each(|range| to.add(range.page.0..range.page.0 + range.pages.0));
    Ok(())
}

/// Adds the pages of the functions of a trace, in the order of their first use.
fn add_works(to: &mut FirstUses, works: &[Work], binary: &Binary) {
    for used in works.iter().flatten() {
        let Some(segment) = binary.code_at(used.address) else { continue };
        let from = segment.offset + (used.address - segment.address);
        let end = from.saturating_add(used.size.max(1)).min(segment.offset + segment.size);
        to.add(from / PAGE_SIZE..end.div_ceil(PAGE_SIZE));
    }
}

/// Writes the copy, as the user whose files they are.
///
/// # Errors
/// The binary or an order cannot be read, no order knows the binary, it is of a kind that cannot be copied so, or the copy cannot be
/// written.
pub fn make(wanted: &RepackWanted) -> Result<Repacked, Failure> {
    let usage = |why: String| Failure::new(Kind::Usage, why);
    let path = std::fs::canonicalize(&wanted.binary).map_err(|error| inputs::unreadable(&wanted.binary, &error))?;
    let bytes = inputs::bytes_of(&path, inputs::MOST_BINARY)?;
    let binary = Binary::of_elf(&bytes).map_err(|error| inputs::unreadable(&path, &error))?;
    if std::fs::canonicalize(&wanted.output).is_ok_and(|output| output == path) {
        return Err(usage(format!("{} is the binary itself", wanted.output.display())).hint("`-o` names another file"));
    }
    let prelinked = wanted.prelink.then(|| prelink(&bytes)).transpose().map_err(|error| {
        usage(format!("{} cannot be prelinked: {error}", path.display()))
            .hint("only programs are, each at an address of its own; libraries share the addresses of a process")
    })?;
    let mut uses = FirstUses::of_file(bytes.len() as u64);
    let mut code_only = !wanted.orders.is_empty();
    for order in &wanted.orders {
        let text = inputs::bytes_of(order, MOST_ORDER)?;
        match file::read(text.as_slice()) {
            Ok(plan) => {
                code_only = false;
                let added = add_plan(&mut uses, &plan, &path, bytes.len() as u64, binary.build_id.as_deref());
                added.map_err(|why| {
                    usage(why).hint("`slowpath preload plan DIR -o PLAN` makes a plan of the cold diagnosis in DIR")
                })?;
            }
            Err(PlanFileError::NotAPlan) => {
                let traced = inputs::works(&path, &binary, std::slice::from_ref(order))?;
                add_works(&mut uses, &traced.works, &binary);
            }
            Err(error) => return Err(inputs::unreadable(order, &error)),
        }
    }
    let source = prelinked.as_ref().map_or(bytes.as_slice(), |prelinked| &prelinked.bytes);
    let copied = match wanted.orders.as_slice() {
        [] => unmoved(source),
        _ => repack(source, &uses.order, wanted.most_headers),
    };
    let made = copied.map_err(|error| {
        let failure = usage(format!("{} cannot be repacked: {error}", path.display()));
        match error {
            RepackError::Nothing => failure.hint("the order may be of another file of the command"),
            _ => failure.hint("`slowpath preload run PLAN -- CMD` needs no other file"),
        }
    })?;
    // A copy has no privilege of its own.
    let mode = std::fs::metadata(&path).map_or(0o755, |metadata| metadata.permissions().mode() & 0o755);
    whole_file::replace(&wanted.output, mode, &made.bytes)?;
    Ok(Repacked {
        schema: SCHEMA.to_owned(),
        binary: path.to_string_lossy().into_owned(),
        output: wanted.output.to_string_lossy().into_owned(),
        relocations: prelinked.as_ref().map(|prelinked| prelinked.relocations),
        relocated_pages: prelinked.as_ref().map(|prelinked| prelinked.pages),
        code_only,
        needed_pages: made.needed,
        moved_pages: made.moved,
        runs: made.runs,
        headers_before: made.headers.0,
        headers: made.headers.1,
        bytes_before: bytes.len() as u64,
        bytes: made.bytes.len() as u64,
    })
}
