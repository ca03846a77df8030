//! Stacks that two processes have alike, and whose they are. Needs root; skips with a reason otherwise.

use crate::targets::{held, root};
use slowpath_capture::{Options, Recorder, StackEvents, decode};
use slowpath_tables::{FrameKind, ProcessKey};
use std::time::Duration;

/// Runs generated code at the same address twice: in a child, and when that has ended, in another with the same pid (clone3(2),
/// `set_tid`). The code writes to pages that are not there: each write is a fault with its stack.
const TWICE: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
if len(sys.argv) > 1:
    at = libc.mmap(0x100000000000, 4096, 7, 0x100022, -1, 0)
    assert at == 0x100000000000, hex(at)
    ctypes.memmove(at, bytes([0xc6, 0x07, 1, 0xc3]), 4) # mov byte [rdi], 1; ret
    write = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(at)
    pages = libc.mmap(None, 64 << 12, 3, 0x22, -1, 0)
    libc.madvise(ctypes.c_void_p(pages), 64 << 12, 15) # no huge pages
    for page in range(64): write(pages + (page << 12))
    sys.exit()
again = [sys.executable, '-S', '-c', sys.argv[0] if sys.argv[0] != '-c' else os.environ['SCRIPT'], 'child']
first = os.fork()
if not first: os.execv(again[0], again)
assert os.waitpid(first, 0)[1] == 0
wanted = (ctypes.c_int * 1)(first)
clone = ctypes.create_string_buffer(struct.pack('11Q', 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(wanted), 1, 0))
second = libc.syscall(435, clone, 88)
if second == 0: os.execv(again[0], again)
assert second == first, ctypes.get_errno()
assert os.waitpid(second, 0)[1] == 0
";

#[test]
fn a_process_that_gets_a_pid_anew_does_not_get_the_stacks_of_the_one_that_had_it() {
    if !root() {
        return;
    }
    let options = Options { stacks: StackEvents { faults: true, ..Default::default() }, ..Options::default() };
    let mut recorder = Recorder::load(options).unwrap();
    let script = format!("SCRIPT={TWICE}");
    let (child, release) = held(&["/usr/bin/env", &script, "/usr/bin/python3", "-S", "-c", TWICE]);
    recorder.attach_tree(child.as_raw()).unwrap();
    nix::unistd::write(&release, b"x").unwrap();
    loop {
        recorder.drain().unwrap();
        match nix::sys::wait::waitpid(child, Some(nix::sys::wait::WaitPidFlag::WNOHANG)).unwrap() {
            nix::sys::wait::WaitStatus::StillAlive => std::thread::sleep(Duration::from_millis(5)),
            nix::sys::wait::WaitStatus::Exited(_, 0) => break,
            other => panic!("{other:?}"),
        }
    }
    let out = decode(&recorder.finish().unwrap());
    let generated = |row: u32| {
        let stack = out.stacks.iter().find(|stack| stack.id == row)?;
        let frame = out.frames.iter().find(|frame| frame.id == stack.frame)?;
        (frame.kind == FrameKind::Generated).then_some(ProcessKey { pid: frame.pid?, start: frame.start? })
    };
    let mut seen: Vec<ProcessKey> = Vec::new();
    let at_code = out.faults.iter().filter(|fault| fault.ip == 0x1000_0000_0000);
    for fault in at_code {
        let of = fault.stack.and_then(generated).expect("the innermost frame is generated code");
        assert_eq!(of, ProcessKey { pid: fault.pid, start: fault.start }, "a stack of another process");
        if !seen.contains(&of) {
            seen.push(of);
        }
    }
    assert!(seen.len() == 2 && seen[0].pid == seen[1].pid, "{seen:?}");
}
