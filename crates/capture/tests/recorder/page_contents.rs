//! What pages hold when they are given back or their process ends, against the running kernel: a program that knows what it wrote
//! where. Needs root; skips with a reason otherwise.

use crate::targets::{held, root};
use slowpath_capture::{Options, Recorder, decode};
use slowpath_recording::Tables;
use slowpath_tables::{LookMoment, MappingOp, PAGE_SIZE};

/// Two areas of 64 pages, of which each page is looked at, with 64 between them. In both, of the first 16 pages each is written, the even
/// ones with zeros, and the others are not touched; the last byte of page 20 is not zero. And a mapped file of as many pages.
const PROGRAM: &str = "
import ctypes, mmap, os, signal, tempfile
libc = ctypes.CDLL(None)
word = ctypes.c_size_t
for call, arguments in ((libc.mmap, 6), (libc.munmap, 2)):
    call.restype, call.argtypes = word, [word] * arguments
A, P, NONE = 0x100000000000, 4096, 2**64 - 1
FIXED, ANONYMOUS, RW = 0x12, 0x32, 3
def fill(at):
    assert libc.mmap(at, 64 * P, RW, ANONYMOUS, NONE, 0) == at
    for page in range(16):
        ctypes.memset(at + page * P, page % 2, 64)
    ctypes.memset(at + 20 * P + P - 1, 1, 1)
fill(A)
fill(A + 128 * P)
with tempfile.TemporaryFile() as file:
    file.truncate(64 * P)
    assert libc.mmap(A + 256 * P, 64 * P, RW, FIXED, file.fileno(), 0) == A + 256 * P
    ctypes.memset(A + 256 * P, 0, 64 * P)
    assert libc.munmap(A + 256 * P, 64 * P) == 0
assert libc.munmap(A, 64 * P) == 0
";

/// First byte of the place.
const PLACE: u64 = 0x1000_0000_0000;
const PRESENT: u64 = 0x10_ffff;
const ZERO: u64 = 0x5555;

fn recorded(options: Options, then: &str) -> (Tables, u32) {
    let is_older = !options.exit_memory;
    let mut recorder = Recorder::load(Options { memory_calls: true, ..options }).unwrap();
    let program = format!("{PROGRAM}{then}");
    let (child, release) = held(&["/usr/bin/python3", "-S", "-c", &program]);
    recorder.attach_tree(child.as_raw()).unwrap();
    nix::unistd::write(&release, b"x").unwrap();
    nix::sys::wait::waitpid(child, None).unwrap();
    let raw = recorder.finish().unwrap();
    assert_eq!(raw.facts.losses.total(), 0, "{:?}", raw.facts.losses);
    let gaps: Vec<&str> = raw.facts.unavailable.iter().map(|gap| gap.what.as_str()).collect();
    let expected = if is_older { &["pages of processes that a signal ends"][..] } else { &[] };
    assert_eq!(gaps, expected);
    (decode(&raw), child.as_raw() as u32)
}

/// Looks at the place: when, first page, pages, which of them were there and which were zero.
fn looks(out: &Tables, pid: u32) -> Vec<(LookMoment, u64, u32, u64, u64)> {
    let in_place = |address: u64| (PLACE..PLACE + (1 << 32)).contains(&address);
    let rows = out.page_contents.iter().filter(|row| row.pid == pid && in_place(row.address));
    let pages = rows.inspect(|row| assert_eq!(row.stride.0, PAGE_SIZE));
    pages.map(|row| (row.moment, (row.address - PLACE) / PAGE_SIZE, row.pages, row.present, row.zero)).collect()
}

#[test]
fn pages_are_known_by_their_content_when_they_are_given_back_and_when_their_process_ends_and_none_is_brought() {
    if !root() {
        return;
    }
    let given_back = (LookMoment::Munmap, 0, 64, PRESENT, ZERO);
    let at_exit = (LookMoment::Exit, 128, 64, PRESENT, ZERO);
    let (out, pid) = recorded(Options::default(), "");
    assert_eq!(looks(&out, pid), [given_back, at_exit]);
    // Each page that was written was brought once, by the program.
    let faults =
        out.faults.iter().filter(|fault| fault.pid == pid && (PLACE..PLACE + 64 * PAGE_SIZE).contains(&fault.address));
    assert_eq!(faults.count(), 17);
    // The look at the area is not taken for the end of the munmap.
    let ends = out.mappings.iter().filter(|row| row.pid == pid && row.op == MappingOp::Unmap && row.address == PLACE);
    assert_eq!(ends.count(), 1);
    let call = out.memory_calls.iter().find(|call| call.address == PLACE && call.argument == 0).unwrap();
    assert!(out.page_contents.iter().any(|look| look.address == PLACE && look.ts + look.duration <= call.ts));

    // A signal ends it; older kernels do not tell then.
    let killed = "os.kill(os.getpid(), signal.SIGKILL)";
    let (out, pid) = recorded(Options::default(), killed);
    assert_eq!(looks(&out, pid), [given_back, at_exit]);
    let older = || Options { exit_memory: false, ..Options::default() };
    let (out, pid) = recorded(older(), "");
    assert_eq!(looks(&out, pid), [given_back, at_exit]);
    let (out, pid) = recorded(older(), killed);
    assert_eq!(looks(&out, pid), [given_back]);
}

#[test]
fn a_child_of_vfork_does_not_tell_of_its_parents_pages_and_a_process_that_lives_on_is_looked_at() {
    if !root() {
        return;
    }
    let then = "
import subprocess
subprocess.run(['/bin/true'], check=True)
if os.fork() == 0:
    os.setsid()
    import time
    time.sleep(20)
    os._exit(0)
";
    let (out, pid) = recorded(Options::default(), then);
    let children: Vec<u32> = out.forks.iter().map(|fork| fork.pid).filter(|child| *child != pid).collect();
    let of_children: Vec<_> = children.iter().flat_map(|child| looks(&out, *child)).collect();
    for alive in out.page_contents.iter().filter(|look| look.moment == LookMoment::End) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(alive.pid as i32), nix::sys::signal::Signal::SIGKILL);
    }
    // The one that lives on; it shares the pages with the parent that made it.
    assert_eq!(of_children, [(LookMoment::End, 128, 64, PRESENT, ZERO)]);
}
