//! Memory calls of a program that says what it calls.

use crate::held::{facts, recorded};
use crate::targets::root;
use slowpath_capture::Options;
use slowpath_tables::{MemoryCall, MemoryCallKind};

const CALLS: &str = "
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for name in ('mmap', 'mremap', 'sbrk'): getattr(libc, name).restype = ctypes.c_void_p
word = ctypes.c_void_p
facts = open(sys.argv[1], 'w')
def fact(name, number): facts.write(f'{name} {number}\\n')
PRIVATE_ANONYMOUS, MAYMOVE, DONTNEED = 0x22, 1, 4
at = libc.mmap(None, word(3 << 20), 3, PRIVATE_ANONYMOUS, -1, word(0))
fact('mapped', at)
ctypes.memset(at, 1, 3 << 20)
assert libc.madvise(word(at), word(1 << 20), DONTNEED) == 0
larger = libc.mremap(word(at), word(3 << 20), word(5 << 20), MAYMOVE)
fact('larger', larger)
assert libc.munmap(word(larger), word(5 << 20)) == 0
assert libc.madvise(word(larger), word(4096), DONTNEED) == -1
assert libc.mmap(None, word(0), 3, PRIVATE_ANONYMOUS, -1, word(0)) == word(-1).value
assert libc.munmap(word(4097), word(4096)) == -1
end = libc.sbrk(0)
fact('heap', end)
assert libc.brk(word(end + (7 << 20))) == 0
assert libc.brk(word(end + (2 << 20))) == 0
assert libc.brk(word(1 << 46)) == -1
assert libc.prctl(15, b'name', 0, 0, 0) == 0
for refused in (1, 0): assert libc.prctl(41, refused, 0, 0, 0) == 0
facts.close()
";

fn record(script: &str) -> (Vec<MemoryCall>, std::collections::HashMap<String, u64>) {
    let directory = tempfile::tempdir().unwrap();
    let said = directory.path().join("facts");
    let options = Options { memory_calls: true, ..Options::default() };
    let out = recorded(options, &["/usr/bin/python3", "-c", script, said.to_str().unwrap()], |_| ());
    (out.memory_calls, facts(&said))
}

#[test]
fn calls_are_reported_with_what_they_were_given_and_what_came_of_it() {
    if !root() {
        return;
    }
    let (calls, said) = record(CALLS);
    use MemoryCallKind::{Brk, Madvise, Mmap, Mremap, Munmap, Prctl};
    let one = |call: MemoryCallKind, address: u64, length: u64, result: i32| {
        let same =
            |row: &&MemoryCall| (row.call, row.address, row.length.0, row.result) == (call, address, length, result);
        let found: Vec<_> = calls.iter().filter(same).collect();
        assert_eq!(found.len(), 1, "{call:?} {address:#x} {length} {result}: {found:?} of {calls:#?}");
        found[0]
    };
    let (at, larger, heap) = (said["mapped"], said["larger"], said["heap"]);
    let in_order = [
        one(Mmap, at, 3 << 20, 0),
        one(Madvise, at, 1 << 20, 0),
        one(Mremap, larger, 5 << 20, 0),
        one(Munmap, larger, 5 << 20, 0),
        one(Madvise, larger, 4096, -libc::ENOMEM),
        one(Mmap, 0, 0, -libc::EINVAL),
        one(Munmap, 4097, 4096, -libc::EINVAL),
        one(Brk, heap + (7 << 20), 7 << 20, 0),
        one(Brk, heap + (2 << 20), 5 << 20, 0),
        one(Brk, heap + (2 << 20), 0, -libc::ENOMEM),
    ];
    assert!(in_order.windows(2).all(|pair| pair[0].ts.0 + pair[0].duration.0 <= pair[1].ts.0));
    assert_eq!((in_order[0].argument, in_order[1].argument), (0x22, 4));
    assert_eq!((in_order[2].argument, in_order[2].old_length.map(|length| length.0)), (1, Some(3 << 20)));
    assert_eq!((in_order[2].old_address, in_order[3].old_address), (Some(at), None));
    assert_eq!(in_order.map(|row| row.shrinks).iter().filter(|shrinks| **shrinks).count(), 1);
    assert!(in_order[8].shrinks);
    // What names a thread is not recorded.
    let refusals: Vec<(u32, i32)> =
        calls.iter().filter(|row| row.call == Prctl).map(|row| (row.argument, row.result)).collect();
    assert_eq!(refusals, [(1, 0), (0, 0)]);
}

/// `name(...) = result <duration>` of strace: calls and their results in order, by name.
fn straced(text: &str, name: &str) -> Vec<i64> {
    let result = |line: &str| {
        let result = line.rsplit_once(" = ")?.1.split_whitespace().next()?;
        match result.strip_prefix("0x") {
            Some(address) => i64::from_str_radix(address, 16).ok(),
            None => result.parse().ok(),
        }
    };
    let called = |line: &&str| line.split_whitespace().any(|word| word.starts_with(&format!("{name}(")));
    text.lines().filter(called).filter_map(result).collect()
}

#[test]
fn an_independent_tracer_sees_the_same_calls() {
    if !root() {
        return;
    }
    if !std::path::Path::new("/usr/bin/strace").exists() {
        println!("skipped: strace is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (said, trace) = (directory.path().join("facts"), directory.path().join("trace"));
    let options = Options { memory_calls: true, ..Options::default() };
    let traced = "trace=mmap,munmap,mremap,brk,madvise";
    let command =
        ["/usr/bin/strace", "-f", "-T", "-e", traced, "-o", trace.to_str().unwrap(), "/usr/bin/python3", "-c"];
    let out = recorded(options, &[&command[..], &[CALLS, said.to_str().unwrap()]].concat(), |_| ());
    let target = out.execs.iter().find(|exec| exec.filename.contains("python3")).unwrap();
    let text = std::fs::read_to_string(&trace).unwrap();
    use MemoryCallKind::{Brk, Madvise, Mmap, Mremap, Munmap};
    let calls = [(Mmap, "mmap"), (Munmap, "munmap"), (Mremap, "mremap"), (Brk, "brk"), (Madvise, "madvise")];
    for (call, name) in calls {
        let of = out.memory_calls.iter().filter(|row| row.pid == target.pid && row.ts >= target.ts && row.call == call);
        let recorded: Vec<(i64, bool)> = of.map(|row| (row.address as i64, row.result == 0)).collect();
        let seen = straced(&text, name);
        println!("{name}: {} recorded, {} traced", recorded.len(), seen.len());
        assert!(!seen.is_empty() && recorded.len() == seen.len(), "{name}: {recorded:?} {seen:?}");
        for ((address, succeeded), result) in recorded.iter().zip(seen) {
            match call {
                // Strace tells -1 for an error, and the end of the heap for a refused brk.
                Brk => assert_eq!(*address, result),
                _ if !succeeded => assert_eq!(result, -1),
                Mmap | Mremap => assert_eq!(*address, result),
                _ => assert_eq!(result, 0),
            }
        }
    }
}
