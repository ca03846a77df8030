//! Recorded mappings against the running kernel: rows replayed page by page are what the program made. Needs root; skips with
//! a reason otherwise.

use crate::targets::{held, root};
use slowpath_capture::{Options, Recorder, StackEvents, decode};
use slowpath_recording::Tables;
use slowpath_tables::{Mapping, MappingOp};
use std::collections::BTreeMap;

/// The calls of the C library, and a place where nothing else is mapped.
const CALLS: &str = "
import ctypes, mmap, os
libc = ctypes.CDLL(None)
word = ctypes.c_size_t
for call, arguments in ((libc.mmap, 6), (libc.mremap, 5), (libc.munmap, 2), (libc.mprotect, 3)):
    call.restype, call.argtypes = word, [word] * arguments
A, P, NONE = 0x100000000000, 4096, 2**64 - 1
fd = os.open('/usr/lib/os-release', os.O_RDONLY)
FIXED, ANONYMOUS, R, RW, RX = 0x12, 0x32, 1, 3, 5
def file(page, pages, prot, offset): assert libc.mmap(A + page * P, pages * P, prot, FIXED, fd, offset * P) == A + page * P
";

/// First byte of the place.
const PLACE: u64 = 0x1000_0000_0000;

fn recorded(options: Options, script: &str) -> (Tables, u32) {
    let mut recorder = Recorder::load(options).unwrap();
    let program = format!("{CALLS}{script}");
    let (child, release) = held(&["/usr/bin/python3", "-S", "-c", &program]);
    recorder.attach_tree(child.as_raw()).unwrap();
    nix::unistd::write(&release, b"x").unwrap();
    let status = nix::sys::wait::waitpid(child, None).unwrap();
    assert_eq!(status, nix::sys::wait::WaitStatus::Exited(child, 0));
    let raw = recorder.finish().unwrap();
    assert_eq!(raw.facts.losses.total(), 0, "{:?}", raw.facts.losses);
    assert!(raw.facts.unavailable.is_empty(), "{:?}", raw.facts.unavailable);
    (decode(&raw), child.as_raw() as u32)
}

/// Rows of a process that change the place, all in pages: what happened, first page, pages, offset in the file where there is one.
fn rows(out: &Tables, pid: u32) -> Vec<(MappingOp, u64, u64, Option<u64>)> {
    let in_place = |row: &&Mapping| row.pid == pid && (PLACE..PLACE + (1 << 32)).contains(&row.address);
    let page = |row: &Mapping| {
        let offset = row.ino.map(|_| row.offset.0 / 4096);
        (row.op, (row.address - PLACE) / 4096, row.length.0 / 4096, offset)
    };
    out.mappings.iter().filter(in_place).map(page).collect()
}

/// Pages of files at the end, as page of the place and of the file.
fn replayed(rows: &[(MappingOp, u64, u64, Option<u64>)]) -> BTreeMap<u64, u64> {
    let mut pages = BTreeMap::new();
    for &(op, first, length, offset) in rows {
        // What ended may be reported with the free space around it.
        pages.retain(|page, _| !(first..first + length).contains(page));
        if let (MappingOp::Map, Some(offset)) = (op, offset) {
            pages.extend((0..length).map(|page| (first + page, offset + page)));
        }
    }
    pages
}

fn ranges(parts: &[(u64, u64, u64)]) -> BTreeMap<u64, u64> {
    parts.iter().flat_map(|&(first, pages, offset)| (0..pages).map(move |page| (first + page, offset + page))).collect()
}

const CHANGES: &str = "
file(0, 16, RX, 1)
assert libc.mmap(A + 4 * P, 2 * P, RW, ANONYMOUS, NONE, 0) == A + 4 * P
assert libc.munmap(A + 8 * P, P) == 0
assert libc.mprotect(A + 10 * P, P, RW) == 0
# Between two others without a gap.
file(64, 2, R, 0); file(66, 2, RX, 9); file(68, 2, R, 0)
assert libc.munmap(A + 66 * P, 2 * P) == 0
# Nothing is there, and what cannot be.
assert libc.munmap(A + 90 * P, 2 * P) == 0
assert libc.munmap(A + 64 * P + 1, P) != 0
";

#[test]
fn mappings_of_files_replayed_are_what_the_program_made() {
    if !root() {
        return;
    }
    let expected = ranges(&[(0, 4, 1), (6, 2, 7), (9, 7, 10), (64, 2, 0), (68, 2, 0)]);
    for area_tree in [true, false] {
        let (out, pid) = recorded(Options { area_tree, ..Options::default() }, CHANGES);
        let rows = rows(&out, pid);
        assert_eq!(replayed(&rows), expected, "events of the tree {area_tree}: {rows:?}");
        // Those two exactly, and the call that was refused not at all.
        let unmapped: Vec<_> = rows.iter().filter(|row| row.0 == MappingOp::Unmap && row.1 < 90).collect();
        assert_eq!(unmapped, [&(MappingOp::Unmap, 8, 1, None), &(MappingOp::Unmap, 66, 2, None)]);
        // The mappings that a program begins with are recorded at once, not one by one.
        let first = out.mappings.iter().find(|row| row.pid == pid).unwrap();
        assert_eq!(first.op, MappingOp::Exec, "{first:?}");
    }
}

#[test]
fn a_mapping_that_is_moved_keeps_its_file_and_leaves_its_place() {
    if !root() {
        return;
    }
    // MREMAP_MAYMOVE and MREMAP_FIXED. The space that is left is recorded with what was free around it: behind page 0 here.
    let script = "
file(0, 1, R, 0)
file(8, 4, RX, 2)
assert libc.mremap(A + 8 * P, 4 * P, 4 * P, 3, A + 32 * P) == A + 32 * P
";
    let (out, pid) = recorded(Options::default(), script);
    let rows = rows(&out, pid);
    assert_eq!(replayed(&rows), ranges(&[(0, 1, 0), (32, 4, 2)]), "{rows:?}");
}

#[test]
fn a_child_tells_its_own_mappings_and_not_those_that_it_inherits() {
    if !root() {
        return;
    }
    let script = "
file(0, 4, RX, 0)
child = os.fork()
if child == 0:
    file(8, 1, R, 3)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
";
    let (out, pid) = recorded(Options::default(), script);
    let child = out.forks.iter().find(|fork| fork.parent_pid == pid && !fork.thread).unwrap().pid;
    assert_eq!(rows(&out, child), [(MappingOp::Map, 8, 1, Some(3))]);
    assert_eq!(rows(&out, pid), [(MappingOp::Map, 0, 4, Some(0))]);
}

#[test]
fn a_library_that_is_loaded_later_is_named_and_its_code_is_known() {
    if !root() {
        return;
    }
    for stacks in [false, true] {
        let stacks = StackEvents { faults: stacks, ..StackEvents::default() };
        let (out, pid) =
            recorded(Options { stacks, ..Options::default() }, "assert ctypes.CDLL('libutil.so.1') is not None");
        let library = out.files.iter().find(|file| file.path.ends_with("/libutil.so.1")).expect("it is named");
        let code = |row: &&Mapping| row.pid == pid && row.ino == Some(library.ino) && row.prot & 4 != 0;
        assert!(out.mappings.iter().any(|row| code(&row) && row.op == MappingOp::Map), "stacks {stacks:?}");
    }
}

/// Two functions with frame pointers, of which the first calls the second, which touches a fresh page: in an area of their own,
/// whose protections change as a whole, and in the middle of a larger one.
#[cfg(target_arch = "x86_64")]
#[test]
fn code_that_is_made_executable_later_is_walked_through() {
    if !root() {
        return;
    }
    let script = "
code = bytes.fromhex('554889e5e8170000005dc3') + b'\\xcc' * 21 + bytes.fromhex('554889e5c607015dc3')
fresh = libc.mmap(0, 8 * P, RW, 0x22, NONE, 0)
touch = A + (1 << 31)
def run(first, pages, at, fresh):
    assert libc.mmap(A + first * P, pages * P, RW, ANONYMOUS, NONE, 0) == A + first * P
    ctypes.memmove(A + at * P, code, len(code))
    if pages == 1: assert libc.mprotect(A + at * P, P, RX) == 0
    else: assert libc.mprotect(A + at * P, P, 7) == 0
    assert libc.mmap(fresh, P, RW, ANONYMOUS, NONE, 0) == fresh
    ctypes.CFUNCTYPE(None, word)(A + at * P)(fresh)
run(0, 1, 0, touch)
run(16, 3, 17, touch + P)
";
    for area_tree in [true, false] {
        let stacks = StackEvents { faults: true, ..StackEvents::default() };
        let (out, pid) = recorded(Options { area_tree, stacks, ..Options::default() }, script);
        let frames: BTreeMap<u32, _> = out.frames.iter().map(|frame| (frame.id, frame)).collect();
        let stacks: BTreeMap<u32, _> = out.stacks.iter().map(|stack| (stack.id, stack)).collect();
        for (page, code) in [(0, 0), (1, 17)] {
            let address = PLACE + (1 << 31) + page * 4096;
            let fault = out.faults.iter().find(|fault| fault.pid == pid && fault.address == address).unwrap();
            let chain = std::iter::successors(fault.stack, |id| stacks[id].parent);
            let generated = chain
                .map(|id| frames[&stacks[&id].frame])
                .filter(|one| one.kind == slowpath_tables::FrameKind::Generated);
            let offsets: Vec<u64> = generated.filter_map(|one| one.address).collect();
            let start = PLACE + code * 4096;
            let expected = [start + 0x24, start + 8];
            assert_eq!(offsets, expected, "events of the tree {area_tree}, page {code}");
        }
    }
}
