//! CPU samples of code that copies memory, and where it copies from and to.
//!
//! Owns which code that is. Either the instruction itself says so (`copies` of a sample: `rep movs` of x86-64, whichever function
//! it is in); or the innermost function is one that copies, by its name. The arguments of a sample are the two places then:
//!
//! - x86-64: rdi is where it writes to, rsi where it reads from. `rep movs` moves both along. The loops of glibc's
//!   `sysdeps/x86_64/multiarch/memmove-vec-unaligned-erms.S` move both along forwards (by four vectors, by pages without the cache);
//!   backwards rsi moves and rdi stays at the beginning. Those of `memmove-ssse3.S` and of musl (`src/string/x86_64/memcpy.s`,
//!   `memmove.s`) do either. Copies of less than 16 bytes load data into rsi: it points nowhere then.
//! - arm64: x0 stays at the beginning of the destination; x1 moves along, or stays (glibc's `sysdeps/aarch64/memcpy.S`).
//!
//! So an address that lies in a block says that the block is read or written, and about where. A sample in the kernel has the
//! registers with which user code entered it: of a page fault in a copy, those of the copy.

use crate::integer_hash::IntegerMap;
use crate::memory::memory_blocks::{ArgumentPlaces, BlockPlace, MemoryBlocks};
use crate::stacks::call_stacks::{CallStacks, FramePlace};
use slowpath_recording::Tables;
use slowpath_tables::{CpuSample, Nanos, ProcessKey};

/// Functions of C libraries that copy from their second argument to the first (memcpy(3), memmove(3), mempcpy(3)).
const COPYING: [&str; 3] = ["memcpy", "memmove", "mempcpy"];

/// Beginnings of the names that glibc gives to what these are for a CPU, or with a check of the size
/// (`sysdeps/x86_64/multiarch/ifunc-impl-list.c`, `sysdeps/aarch64/multiarch/ifunc-impl-list.c`, `debug/memcpy_chk.c`).
const COPYING_VARIANTS: [&str; 3] = ["__memcpy_", "__memmove_", "__mempcpy_"];

/// A sample of code that copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copying {
    /// Row of `cpu_samples`.
    pub sample: usize,
    /// When.
    pub ts: Nanos,
    /// Its process.
    pub process: ProcessKey,
    /// Its call stack: `stacks.id`.
    pub stack: Option<u32>,
    /// Whether the kernel ran: a fault of the copy, mostly.
    pub in_kernel: bool,
    /// Where it wrote to, in a block.
    pub to: Option<BlockPlace>,
    /// Where it read from, in a block.
    pub from: Option<BlockPlace>,
}

/// The samples that copied into or out of blocks, in the order of time, but for those that moved data inside one.
pub(crate) fn copies(tables: &Tables, blocks: &MemoryBlocks, call_stacks: &CallStacks<'_>) -> Vec<Copying> {
    let mut by_name = IntegerMap::default();
    let mut copying = |row: &CpuSample| {
        let named = |stack| *by_name.entry(stack).or_insert_with(|| is_in_copying_function(call_stacks, stack));
        row.copies == Some(true) || row.stack.is_some_and(named)
    };
    let copy = |places: &ArgumentPlaces| {
        let row = tables.cpu_samples.get(places.sample)?;
        let (to, from) = (places.first, places.second);
        let is_inside = to.zip(from).is_some_and(|(to, from)| to.block == from.block);
        (!is_inside && copying(row)).then(|| Copying {
            sample: places.sample,
            ts: row.ts,
            process: row.process(),
            stack: row.stack,
            in_kernel: row.kernel,
            to,
            from,
        })
    };
    blocks.arguments.iter().filter_map(copy).collect()
}

/// Whether the innermost function of user code copies. What a frame's code was compiled as counts, not what was inlined into it: the
/// registers of an inlined copy hold anything.
fn is_in_copying_function(call_stacks: &CallStacks<'_>, stack: u32) -> bool {
    let mut path = call_stacks.path(Some(stack));
    while let Some(at) = path {
        let Some(frame) = call_stacks.frames().get(call_stacks.frame_number(at) as usize) else { return false };
        if !matches!(frame.place, FramePlace::Kernel(_)) {
            return frame.functions.last().is_some_and(|function| function.named && is_copying(&function.name));
        }
        path = call_stacks.caller(at);
    }
    false
}

fn is_copying(name: &str) -> bool {
    // glibc's own aliases (`__GI_memcpy`), and versions of symbols (`memcpy@GLIBC_2.2.5`).
    let name = name.split('@').next().unwrap_or(name);
    let bare = name.trim_start_matches("__GI_").trim_start_matches('_');
    COPYING.contains(&bare) || COPYING_VARIANTS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_c_libraries_that_copy_are_known_by_their_names_and_others_are_not() {
        let copying = [
            "memcpy",
            "__memmove_avx_unaligned_erms",
            "__memmove_evex_unaligned_erms",
            "__memcpy_ssse3",
            "__mempcpy_sse2_unaligned",
            "__memcpy_chk",
            "__GI_memmove",
            "memcpy@GLIBC_2.2.5",
            "__memcpy_generic",
        ];
        assert!(copying.iter().all(|name| is_copying(name)));
        let others =
            ["memset", "__memset_avx2_erms", "memcmp", "__memcmp_evex_movbe", "memcpy_rows", "copy_frame", "strcpy"];
        assert!(!others.iter().any(|name| is_copying(name)));
    }
}
