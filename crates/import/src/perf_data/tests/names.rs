//! Names that perf.data lacks, from files of this machine: by build id and nothing else.

use super::*;
use crate::foreign::import_bytes_with_names;
use slowpath_symbols::binary::Binary;
use slowpath_tables::Unavailable;
use std::path::{Path, PathBuf};

/// Where the files of the tests are mapped, one after the other.
const BASE: u64 = 0x7f00_0000_0000;
/// Bytes of each mapping: all of the file.
const LENGTH: u64 = 1 << 24;

/// The C library of this process: a file with a build id, which exports its functions. Its path, build id, and the offset of `malloc`.
fn c_library() -> (String, Vec<u8>, u64) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let path = paths.into_iter().find(|path| path.contains("/libc.so.6")).unwrap();
    let binary = Binary::of_elf(&std::fs::read(path).unwrap()).unwrap();
    let malloc = binary.functions.iter().find(|function| function.name.as_deref() == Some("malloc")).unwrap();
    let id = binary.build_id.as_deref().unwrap();
    let id = (0..id.len() / 2).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()).collect();
    (path.to_owned(), id, binary.offset_of(malloc.address).unwrap())
}

/// A file that a process has mapped with this build id, and a sample 4 bytes behind this offset of it; `at` counts them.
fn sampled(at: u64, path: &Path, id: &[u8], offset: u64) -> Vec<u8> {
    let from = BASE + at * LENGTH;
    let mut body = words(&[100 | 100 << 32, from, LENGTH, 0]);
    body.extend([id.len() as u8, 0, 0, 0]);
    body.extend(id.iter().chain(&[0; 20]).take(20));
    body.extend(words(&[5 | 2 << 32]));
    body.extend(padded(path.to_str().unwrap()));
    let taken = At { id: CLOCK, tid: 100, ts: 10 * SECOND + at, cpu: 0 };
    [other(10, 2 | 1 << 14, &body, 0), sample(taken, (2, 0), &[IN_USER, from + offset + 4], &[])].concat()
}

/// Name of a frame, or the reason that it has none.
type Name = (Option<String>, Option<String>);

/// What each frame is called, and what the recording says of names.
fn names(records: &[u8], symbols: &[PathBuf]) -> (Vec<Name>, Option<Unavailable>) {
    let (mut tables, problem) = import_bytes_with_names("perf-data", &pipe(records), symbols);
    assert_eq!(problem, None);
    tables.symbols.retain(|row| row.level == 0);
    tables.symbols.sort_by_key(|row| row.frame);
    assert_eq!(tables.symbols.len(), tables.frames.len(), "each frame has a name or a reason");
    let gap = tables.manifest.unavailable.into_iter().find(|gap| gap.what.contains("the names of functions"));
    (tables.symbols.into_iter().map(|row| (row.function, row.reason)).collect(), gap)
}

fn is_malloc((name, reason): &Name) -> bool {
    name.as_deref().is_some_and(|name| name.contains("malloc")) && reason.is_none()
}

#[test]
fn a_function_is_named_by_the_local_file_that_has_the_build_id_and_by_no_other() {
    let (path, id, malloc) = c_library();
    let (path, other_id) = (Path::new(&path), [0xbb; 20]);
    let records = [
        sampled(0, path, &id, malloc),
        sampled(1, path, &other_id, malloc),
        sampled(2, Path::new("/nowhere/libc.so.6"), &id, malloc),
    ]
    .concat();
    let (found, gap) = names(&records, &[]);
    assert!(is_malloc(&found[0]), "{found:?}");
    let reasons = found[1..].iter().map(|(name, reason)| (name.as_deref(), reason.as_deref().unwrap()));
    let expected = ["the file changed since it was recorded", "the file could not be opened: it is gone"];
    assert_eq!(reasons.collect::<Vec<_>>(), expected.map(|reason| (None, reason)));
    let gap = gap.unwrap();
    assert!(gap.reason.starts_with("2 of 3 CPU samples and 2 of 3 frames "), "{gap:?}");
    assert!(gap.reason.contains("/nowhere/libc.so.6, 1 and 1: "), "{gap:?}");
    assert!(gap.remedy.contains("--symbols") && gap.remedy.contains("perf archive"), "{gap:?}");
    assert_eq!(names(&sampled(0, path, &id, malloc), &[]).1, None, "nothing is missing");
}

#[test]
fn a_directory_has_files_by_build_id_or_path_and_the_build_id_must_be_theirs() {
    let (path, id, malloc) = c_library();
    let digits = slowpath_symbols::symbolize::hexadecimal(&id);
    let gone = sampled(0, Path::new("/nowhere/lib/gone.so"), &id, malloc);
    for name in [
        format!(".build-id/{}/{}", &digits[..2], &digits[2..]),
        format!(".build-id/{}/{}/elf", &digits[..2], &digits[2..]),
        "nowhere/lib/gone.so".to_owned(),
        "gone.so".to_owned(),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join(&name);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(&path, &copy).unwrap();
        let dirs = [PathBuf::from("/none"), dir.path().to_owned()];
        assert!(is_malloc(&names(&gone, &dirs).0[0]), "{name}");
        let other = sampled(0, Path::new("/nowhere/lib/gone.so"), &[0xbb; 20], malloc);
        assert_eq!(names(&other, &dirs).0[0].0, None, "{name}: another build id");
        std::fs::write(&copy, b"\x7fELF and nothing else").unwrap();
        assert_eq!(names(&gone, &dirs).0[0].0, None, "{name}: no such file any more");
    }
}

#[test]
fn what_is_no_regular_file_is_not_opened_and_costs_its_names_alone() {
    let (path, id, malloc) = c_library();
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let paths = [pipe.as_path(), Path::new("/dev/zero"), Path::new("/proc/kmsg"), dir.path(), Path::new("../../etc")];
    let records: Vec<u8> = (0..).zip(paths).flat_map(|(at, path)| sampled(at, path, &id, malloc)).collect();
    let records = [records, sampled(9, Path::new(&path), &id, malloc)].concat();
    let (found, gap) = names(&records, &[]);
    assert!(is_malloc(&found[paths.len()]), "{found:?}");
    assert!(found[..paths.len()].iter().all(|(name, reason)| name.is_none() && reason.is_some()), "{found:?}");
    assert!(gap.is_some_and(|gap| gap.reason.starts_with("5 of 6 CPU samples")));
}

#[test]
fn without_a_build_id_no_path_is_believed() {
    let (path, _, malloc) = c_library();
    let mut body = words(&[100 | 100 << 32, BASE, LENGTH, 0, 0xfe | 1 << 32, 77, 0, 5 | 2 << 32]);
    body.extend(padded(&path));
    let taken = At { id: CLOCK, tid: 100, ts: 10 * SECOND, cpu: 0 };
    let records = [other(10, 2, &body, 0), sample(taken, (2, 0), &[IN_USER, BASE + malloc + 4], &[])].concat();
    let (found, gap) = names(&records, &[]);
    assert_eq!(found, [(None, Some("the imported trace has no name for it".to_owned()))]);
    assert!(gap.is_some_and(|gap| gap.reason.contains(&path)));
}

#[test]
fn of_another_kernel_no_address_has_a_name() {
    let kernel = |symbol: &str, address: u64| {
        let body = [
            words(&[u64::from(u32::MAX), 0xffff_ffff_8100_0000, 0x100_0000, address]),
            padded(&format!("[kernel.kallsyms]{symbol}")),
        ]
        .concat();
        other(1, 1, &body, 0)
    };
    let taken = At { id: CLOCK, tid: 100, ts: 10 * SECOND, cpu: 0 };
    let sampled = sample(taken, (1, 0), &[IN_KERNEL, 0xffff_ffff_8100_0010], &[]);
    for records in [sampled.clone(), [kernel("_text", 0xffff_ffff_8100_0000), sampled.clone()].concat()] {
        let (found, gap) = names(&records, &[]);
        assert_eq!(found.iter().filter(|(name, _)| name.is_some()).count(), 0, "{found:?}");
        assert!(gap.is_some_and(|gap| gap.reason.contains("the kernel, 1 and 1: ")));
    }
}
