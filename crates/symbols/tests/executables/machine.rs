//! This machine's own libraries, kernel and vdso, with binutils and the kernel as cross-checks.

use crate::program::{at, frame, offset_of, run, text_segments, text_symbols, unrecorded};
use slowpath_symbols::symbolize::{Located, Options, Sources, symbolize};
use slowpath_tables::{Bytes, Frame, FrameKind, Nanos};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names without the spaces that demanglers set differently, and without what the compiler says of a piece or a copy
/// (`.cold`, `.part.0`): debug information has the function's name.
fn dense(name: &str) -> String {
    let plain = name.split(" [clone").next().unwrap_or(name);
    let plain = if plain.contains('(') { plain } else { plain.split('.').next().unwrap_or(plain) };
    plain.chars().filter(|letter| !letter.is_whitespace()).collect()
}

/// Addresses in the text that look random and are the same in every run.
fn scattered(segments: &[(u64, u64, u64)], count: u64) -> Vec<u64> {
    let (start, _, size) = *segments.iter().max_by_key(|(_, _, size)| *size).unwrap();
    (1..=count).map(|number| start + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % size).collect()
}

/// How often, of so many, our name is one that nm gives to that address. Where nm has none, we must have none, and the other
/// way round.
fn agreement_with_nm(path: &Path, tables: &[(&Path, &[&str])]) -> (usize, usize) {
    let segments = text_segments(path);
    let addresses = scattered(&segments, 200);
    let offsets: Vec<u64> = addresses.iter().map(|address| offset_of(&segments, *address)).collect();
    let symbols: Vec<_> = tables.iter().filter_map(|(path, arguments)| text_symbols(path, arguments)).collect();
    let mut agreed = 0;
    for (rows, address) in at(&unrecorded(path), &offsets, &Options::default()).iter().zip(&addresses) {
        let covers = |(start, size): &(u64, u64)| (*start..start + size).contains(address);
        let all = symbols.iter().flatten().filter(|(range, _)| covers(range)).flat_map(|(_, names)| names);
        let expected: BTreeSet<String> = all.map(|name| dense(name)).collect();
        let agrees = match rows.last().and_then(|row| row.function.as_deref()) {
            Some(name) => expected.contains(&dense(name)),
            None => expected.is_empty(),
        };
        let named = rows.iter().any(|row| row.function.is_some());
        assert_eq!(named, !expected.is_empty(), "{address:x}: {rows:?}, nm: {expected:?}");
        if !agrees {
            println!("{}: {address:x}: {:?}, nm: {expected:?}", path.display(), rows.last());
        }
        agreed += usize::from(agrees);
    }
    println!("{}: {agreed} of {} as nm has them", path.display(), addresses.len());
    (agreed, addresses.len())
}

fn first_of(paths: &[&str]) -> Option<PathBuf> {
    let found = paths.iter().map(PathBuf::from).find(|path| path.exists());
    if found.is_none() {
        println!("skipped: there is none of {paths:?}");
    }
    found.and_then(|path| path.canonicalize().ok())
}

const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

#[test]
fn exported_names_of_large_libraries_are_those_of_nm() {
    for paths in [[&format!("{LIBRARIES}/libstdc++.so.6"), "/usr/lib64/libstdc++.so.6"], ["/usr/bin/python3", ""]] {
        let Some(path) = first_of(&paths) else { continue };
        if run(Command::new("nm").arg("--version")).is_none() {
            return;
        }
        let (agreed, of) = agreement_with_nm(&path, &[(&path, &["-D", "-C"])]);
        // Two demanglers write a few names of C++ differently (`std::istream` or what it stands for).
        assert!(agreed * 100 >= of * 95, "{agreed} of {of}");
    }
}

#[test]
fn names_of_the_c_library_come_from_its_debug_file_with_lines_as_addr2line_has_them() {
    let libc = format!("{LIBRARIES}/libc.so.6");
    let Some(path) = first_of(&[&libc]) else { return };
    let notes = run(Command::new("readelf").arg("-n").arg(&path)).unwrap();
    let id = notes.split("Build ID: ").nth(1).unwrap().split_whitespace().next().unwrap();
    let debug = PathBuf::from(format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    if !debug.exists() {
        println!("skipped: the package libc6-dbg of this libc is not installed");
        return;
    }
    let (agreed, of) = agreement_with_nm(&path, &[(&debug, &[]), (&path, &["-D"])]);
    assert!(agreed * 100 >= of * 97, "{agreed} of {of}");

    let segments = text_segments(&path);
    let addresses = scattered(&segments, 200);
    let mut command = Command::new("addr2line");
    command.arg("-e").arg(&debug).args(addresses.iter().map(|address| format!("{address:#x}")));
    let lines = run(&mut command).unwrap();
    let offsets: Vec<u64> = addresses.iter().map(|address| offset_of(&segments, *address)).collect();
    let rows = at(&unrecorded(&path), &offsets, &Options::default());
    let (mut agreed, mut named) = (0, 0);
    // Lines only: addr2line names the including file where code stands in an included one. And not behind the end of a
    // function, where padding has a line and no name.
    let functions = rows.iter().zip(lines.lines()).zip(&addresses).filter(|((rows, _), _)| rows[0].function.is_some());
    for ((rows, place), address) in functions {
        let number = place.split(' ').next().unwrap().rsplit(':').next().unwrap();
        let expected = number.parse::<u32>().ok();
        if rows[0].source_line != expected {
            println!("{address:x}: {:?}, addr2line: {place}", rows[0]);
        }
        named += 1;
        agreed += usize::from(rows[0].source_line == expected);
    }
    println!("{agreed} of {named} lines as addr2line has them");
    assert!(named >= 190 && agreed * 100 >= named * 98, "{agreed} of {named}");
}

fn kernel_frame(id: u32, address: u64) -> Frame {
    Frame { kind: FrameKind::Kernel, address: Some(address), dev: None, ino: None, offset: None, ..frame(id, 0) }
}

fn vdso_frame(id: u32, offset: u64) -> Frame {
    Frame { kind: FrameKind::Vdso, dev: None, ino: None, offset: Some(Bytes(offset)), ..frame(id, 0) }
}

fn generated_frame(id: u32, pid: u32, address: u64) -> Frame {
    let (pid, start, address) = (Some(pid), Some(Nanos(1)), Some(address));
    Frame { kind: FrameKind::Generated, pid, start, address, dev: None, ino: None, offset: None, ..frame(id, 0) }
}

fn rows(frames: &[Frame], kernel: Option<&File>, this_boot: bool) -> Vec<Result<String, String>> {
    let sources = Sources { file: &|_| None, kernel, this_boot, perf_maps: &|_, _| Vec::new() };
    let rows = symbolize(frames, &sources, &Options::default());
    assert_eq!(rows.len(), frames.len());
    rows.into_iter().map(|row| row.function.ok_or_else(|| row.reason.unwrap())).collect()
}

/// Functions of the kernel that stand once in its list.
fn kernel_functions() -> Option<Vec<(u64, String)>> {
    let list = std::fs::read_to_string("/proc/kallsyms").ok()?;
    let functions: Vec<(u64, String)> = ["vfs_read", "do_exit", "schedule"]
        .iter()
        .filter_map(|wanted| {
            let line = list.lines().find(|line| line.ends_with(&format!(" T {wanted}")))?;
            let address = u64::from_str_radix(line.split(' ').next()?, 16).ok()?;
            (address != 0).then(|| (address, (*wanted).to_owned()))
        })
        .collect();
    if functions.len() < 3 {
        println!("skipped: /proc/kallsyms shows no addresses here");
    }
    (functions.len() == 3).then_some(functions)
}

#[test]
fn functions_of_the_kernel_have_their_own_names_and_only_in_this_boot() {
    let Some(functions) = kernel_functions() else { return };
    let list = File::open("/proc/kallsyms").unwrap();
    let frames: Vec<Frame> =
        (0u32..).zip(&functions).flat_map(|(id, (at, _))| [kernel_frame(id, *at), kernel_frame(id, at + 5)]).collect();
    let expected: Vec<_> = functions.iter().flat_map(|(_, name)| [Ok(name.clone()), Ok(name.clone())]).collect();
    assert_eq!(rows(&frames, Some(&list), true), expected);
    let other = Err("recorded before this machine was booted".to_owned());
    assert_eq!(rows(&frames[..1], Some(&list), false), [other]);
    let hidden = Err("the kernel's symbols are hidden from this user".to_owned());
    assert_eq!(rows(&frames[..1], None, true), [hidden]);
}

/// The vdso's image, from another interface than the one under test, in a file.
fn vdso(directory: &Path) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
    let mut bytes = vec![0u8; usize::try_from(to - from).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, from).ok()?;
    let path = directory.join("vdso");
    std::fs::write(&path, bytes).ok()?;
    Some(path)
}

fn clock_gettime(directory: &Path) -> Option<u64> {
    let symbols = text_symbols(&vdso(directory)?, &["-D"])?;
    let ((address, _), _) =
        symbols.iter().find(|(_, names)| names.iter().any(|name| name == "__vdso_clock_gettime"))?;
    Some(*address)
}

fn is_clock_gettime(name: &Result<String, String>) -> bool {
    name.as_deref().is_ok_and(|name| name.ends_with("clock_gettime"))
}

#[test]
fn functions_of_the_vdso_are_named_from_the_image_of_this_kernel() {
    let directory = tempfile::tempdir().unwrap();
    let Some(offset) = clock_gettime(directory.path()) else {
        println!("skipped: no vdso with __vdso_clock_gettime here");
        return;
    };
    let found = rows(&[vdso_frame(0, offset), vdso_frame(1, offset + 3)], None, true);
    assert!(found.iter().all(is_clock_gettime), "{found:?}");
    let other = Err("recorded before this machine was booted".to_owned());
    assert_eq!(rows(&[vdso_frame(0, offset)], None, false), [other]);
}

#[test]
fn the_unprivileged_process_names_what_it_was_handed_and_says_what_it_may_not_read() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can take on another user's rights");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let secret = directory.path().join("secret");
    std::fs::copy("/bin/true", &secret).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let functions = kernel_functions();
    let list = File::open("/proc/kallsyms").unwrap();
    let offset = clock_gettime(directory.path());
    // As after setuid: /proc/self belongs to root, and only this thread has another user's rights.
    nix::sys::prctl::set_dumpable(false).unwrap();
    let thread = std::thread::spawn(move || {
        nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65534));
        assert_eq!(File::open(&secret).unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
        let refused = at(&unrecorded(&secret), &[0x2000], &Options::default()).remove(0).remove(0).reason;
        assert_eq!(refused.as_deref(), Some("the file could not be opened: permission denied"));
        let named = at(&unrecorded(Path::new("/bin/true")), &[0x2000], &Options::default()).remove(0).remove(0);
        assert_ne!(named.reason.as_deref(), Some("the file's symbols could not be read"));
        if let Some(functions) = functions {
            let found = rows(&[kernel_frame(0, functions[0].0)], Some(&list), true);
            assert_eq!(found, [Ok(functions[0].1.clone())]);
        }
        if let Some(offset) = offset {
            assert!(is_clock_gettime(&rows(&[vdso_frame(0, offset)], None, true)[0]));
        }
    });
    let result = thread.join();
    nix::sys::prctl::set_dumpable(true).unwrap();
    result.unwrap();
}

#[test]
fn generated_code_has_the_names_of_the_first_perf_map_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let map = directory.path().join("perf-7.map");
    std::fs::write(&map, "1000 20 LazyCompile:~f\u{1b}[2J a.js:1\ngarbage\n1020 10 g\n").unwrap();
    let pipe = directory.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let maps = |pid, start| match pid {
        7 if start == Nanos(1) => vec![directory.path().join("gone"), map.clone()],
        8 => vec![pipe.clone()],
        _ => Vec::new(),
    };
    let sources = Sources { file: &|_| None, kernel: None, this_boot: true, perf_maps: &maps };
    let places = [(7, 0x101f), (7, 0x102f), (7, 0x1030), (8, 0x1000), (9, 0x1000)];
    let frames: Vec<Frame> = (0u32..).zip(places).map(|(id, (pid, at))| generated_frame(id, pid, at)).collect();
    let found: Vec<_> = symbolize(&frames, &sources, &Options::default())
        .into_iter()
        .map(|row| row.function.or(row.reason).unwrap())
        .collect();
    let expected = [
        "LazyCompile:~f\u{1b}[2J a.js:1",
        "g",
        "the perf map does not cover the address",
        "the perf map could not be read",
        "no perf map of the process",
    ];
    assert_eq!(found, expected);
}

#[test]
fn frames_without_code_and_rows_without_a_place_say_so() {
    let truncated = Frame { kind: FrameKind::Truncated, truncation: Some("x".into()), ..kernel_frame(0, 0) };
    let frames = [truncated, Frame { offset: None, ..frame(1, 0) }, frame(2, 0)];
    let reasons = ["truncated stack", "the frame says no place", "the path of the file is not known"];
    assert_eq!(rows(&frames, None, true), reasons.map(|reason| Err(reason.to_owned())));
}

#[test]
fn a_file_that_changed_is_not_taken_for_the_recorded_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    let metadata = path.metadata().unwrap();
    let mtime = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
    let recorded = |size, mtime| Located { path: path.clone(), size: Some(size), mtime: Some(mtime), build_id: None };
    let reason = |located: &Located| at(located, &[0], &Options::default())[0][0].reason.clone().unwrap();
    assert_eq!(reason(&recorded(10, mtime)), "the file is not an ELF file");
    assert_eq!(reason(&recorded(11, mtime)), "the file changed since it was recorded");
    assert_eq!(reason(&recorded(10, mtime - 1)), "the file changed since it was recorded");
}
