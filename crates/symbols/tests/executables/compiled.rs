//! Programs that were compiled just now: every byte of their text has the name that binutils give it.

use crate::program::{alone, at, compile, objcopy, offset_of, outermost, run, text_segments, text_symbols, unrecorded};
use slowpath_symbols::symbolize::{Debuginfod, Depth, Options};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const C: &str = "
volatile int sink;
static inline __attribute__((always_inline)) int innermost(int x) {
    sink = x;
    return x * sink + 3;
}
static inline __attribute__((always_inline)) int middle(int x) {
    int y = innermost(x + 1);
    sink = y;
    return y;
}
__attribute__((noinline)) int outer(int x) {
    int y = middle(x);
    sink = y + 1;
    return y;
}
static __attribute__((noinline)) int local(int x) { sink = x; return outer(x) + 1; }
int main(int count, char **arguments) { (void)arguments; return local(count); }
";

const CPP: &str = "
volatile int sink;
namespace shapes {
template <typename T> struct Square {
    T side;
    __attribute__((noinline)) T area(T scale) const { sink = (int)side; return side * side * scale; }
};
__attribute__((noinline)) int operator+(const Square<int> &one, const Square<long> &other) {
    return one.area(2) + (int)other.area(3);
}
}
int main(int count, char **) { return shapes::Square<int>{count} + shapes::Square<long>{count}; }
";

const RUST: &str = "
mod shapes {
    pub struct Square<T>(pub T);
    impl<T: Copy + std::ops::Mul<Output = T>> Square<T> {
        #[inline(never)]
        pub fn area(&self) -> T { std::hint::black_box(self.0) * self.0 }
    }
}
fn main() {
    let side = std::env::args().count() as u64;
    std::process::exit((shapes::Square(side).area() + shapes::Square(side as u32).area() as u64) as i32);
}
";

/// Start, middle and last byte of every symbol.
fn every_symbol_is_named(path: &Path, demangle: &[&str]) -> usize {
    let symbols = text_symbols(path, demangle).unwrap();
    let segments = text_segments(path);
    let text = |address: &u64| segments.iter().any(|(start, _, size)| (*start..start + size).contains(address));
    let mut checks: Vec<(u64, &Vec<String>)> = Vec::new();
    for ((address, size), names) in symbols.iter().filter(|((address, _), _)| text(address)) {
        checks.extend([*address, address + size / 2, address + size - 1].map(|address| (address, names)));
    }
    let offsets: Vec<u64> = checks.iter().map(|(address, _)| offset_of(&segments, *address)).collect();
    for (rows, (address, names)) in at(&unrecorded(path), &offsets, &alone()).iter().zip(&checks) {
        let name = outermost(rows).unwrap_or_else(|| panic!("{address:x} is in {names:?}: {rows:?}"));
        // Of a copy that the compiler specialised, debug information has the plain name, the symbol one with a suffix.
        let plain = |name: &str| name.split(" [clone").next().map(str::to_owned);
        let same = |expected: &String| plain(expected) == plain(name);
        assert!(names.iter().any(same), "{address:x}: {name} is none of {names:?}");
    }
    checks.len()
}

#[test]
fn every_symbol_of_a_c_program_has_its_name_at_start_middle_and_last_byte() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["-O2"][..], &["-O2", "-g"], &["-O1", "-g", "-gz=zlib"], &["-O2", "-g", "-static-pie"]] {
        let Some(path) = compile(directory.path(), "cc", "a.c", C, arguments) else { return };
        assert!(every_symbol_is_named(&path, &[]) >= 9, "{arguments:?}");
    }
}

#[test]
fn names_of_cpp_are_demangled_with_their_namespaces_and_parameters() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["-O2"][..], &["-O2", "-g"]] {
        let Some(path) = compile(directory.path(), "c++", "a.cc", CPP, arguments) else { return };
        assert!(every_symbol_is_named(&path, &["-C"]) >= 12, "{arguments:?}");
    }
}

#[test]
fn names_of_rust_are_demangled_without_their_hashes() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["-O"][..], &["-O", "-g"], &["-g", "-C", "symbol-mangling-version=v0"]] {
        let Some(path) = compile(directory.path(), "rustc", "a.rs", RUST, arguments) else { return };
        let segments = text_segments(&path);
        let symbols = text_symbols(&path, &[]).unwrap();
        let of = |part: &str| {
            let matching = symbols.iter().filter(move |(_, names)| names.iter().any(|name| name.contains(part)));
            matching.map(|((address, _), _)| *address).collect::<Vec<u64>>()
        };
        let areas = of("4area");
        assert_eq!(areas.len(), 2, "{arguments:?}");
        let offsets: Vec<u64> = areas.iter().map(|address| offset_of(&segments, *address)).collect();
        for rows in at(&unrecorded(&path), &offsets, &alone()) {
            let name = outermost(&rows).unwrap();
            let of_both_manglings =
                ["a::shapes::Square<T>::area", "<a::shapes::Square<u32>>::area", "<a::shapes::Square<u64>>::area"];
            assert!(of_both_manglings.contains(&name), "{arguments:?}: {name}");
        }
    }
}

/// Function, file name and line of each level, from the innermost, as addr2line prints them.
fn levels_of(path: &Path, addresses: &[u64]) -> Option<Vec<Vec<(String, String)>>> {
    let mut command = Command::new("addr2line");
    command.args(["-a", "-f", "-i", "-s", "-C", "-e"]).arg(path);
    let text = run(command.args(addresses.iter().map(|address| format!("{address:#x}"))))?;
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
        } else if let (Some(levels), Some(place)) = (all.last_mut(), lines.next()) {
            levels.push((line.to_owned(), place.split(' ').next().unwrap_or(place).to_owned()));
        }
    }
    Some(all)
}

fn rows_as_levels(rows: &[slowpath_tables::Symbol]) -> Vec<(String, String)> {
    let place = |row: &slowpath_tables::Symbol| {
        let file = row.source_file.as_deref().and_then(|file| file.rsplit('/').next()).unwrap_or("??");
        format!("{file}:{}", row.source_line.map_or("?".to_owned(), |line| line.to_string()))
    };
    rows.iter().map(|row| (row.function.clone().unwrap_or_default(), place(row))).collect()
}

#[test]
fn inlined_functions_are_levels_with_lines_at_every_byte_as_addr2line_has_them() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "cc", "a.c", C, &["-O2", "-g"]) else { return };
    let segments = text_segments(&path);
    let symbols = text_symbols(&path, &[]).unwrap();
    let ((start, size), _) = symbols.iter().find(|(_, names)| names.contains(&"outer".to_owned())).unwrap();
    let addresses: Vec<u64> = (*start..start + size).collect();
    let Some(expected) = levels_of(&path, &addresses) else { return };
    let offsets: Vec<u64> = addresses.iter().map(|address| offset_of(&segments, *address)).collect();

    let rows = at(&unrecorded(&path), &offsets, &alone());
    let levels: Vec<_> = rows.iter().map(|rows| rows_as_levels(rows)).collect();
    assert_eq!(levels, expected);
    let deepest = levels.iter().max_by_key(|levels| levels.len()).unwrap();
    let names: Vec<&str> = deepest.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["innermost", "middle", "outer"]);

    // Less depth: the same functions, fewer rows.
    for (depth, lines) in [(Depth::Lines, true), (Depth::Names, false)] {
        for rows in at(&unrecorded(&path), &offsets, &Options { depth, ..alone() }) {
            assert_eq!((rows.len(), outermost(&rows)), (1, Some("outer")));
            assert_eq!(rows[0].source_line.is_some(), lines, "{depth:?}");
        }
    }
}

/// A stripped program and its debug file.
struct Separate {
    directory: tempfile::TempDir,
    stripped: PathBuf,
    debug: PathBuf,
    offset: u64,
}

fn separate(linker: &str) -> Option<Separate> {
    let directory = tempfile::tempdir().unwrap();
    let path = compile(directory.path(), "cc", "a.c", C, &["-O2", "-g", linker])?;
    let symbols = text_symbols(&path, &[])?;
    let ((address, _), _) = symbols.iter().find(|(_, names)| names.contains(&"local".to_owned())).unwrap();
    let offset = offset_of(&text_segments(&path), *address);
    let (stripped, debug) = (directory.path().join("stripped"), directory.path().join("made.debug"));
    objcopy(&path, &debug, &["--only-keep-debug"])?;
    objcopy(&path, &stripped, &["--strip-all"])?;
    Some(Separate { directory, stripped, debug, offset })
}

fn reason_of(path: &Path, offset: u64, options: &Options) -> Result<(String, Option<u32>), String> {
    let rows = at(&unrecorded(path), &[offset], options).remove(0);
    let last = rows.into_iter().next_back().unwrap();
    last.function.map(|name| (name, last.source_line)).ok_or_else(|| last.reason.unwrap())
}

const STRIPPED: &str = "the file has no symbols";

/// `local` and the line that it begins in.
fn found() -> Result<(String, Option<u32>), String> {
    let line = C.lines().position(|line| line.contains("int local")).unwrap();
    Ok(("local".to_owned(), u32::try_from(line + 1).ok()))
}

fn build_id(path: &Path) -> String {
    let notes = run(Command::new("readelf").arg("-n").arg(path)).unwrap();
    notes.split("Build ID: ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_debug_file_is_found_by_build_id_and_one_of_another_build_is_not_taken() {
    let (Some(one), Some(other)) = (separate("-Wl,--build-id=0x0123456789abcdef"), separate("-Wl,--build-id=sha1"))
    else {
        return;
    };
    let dirs = tempfile::tempdir().unwrap();
    let options = Options { debug_dirs: vec![dirs.path().join("none"), dirs.path().to_owned()], ..Options::default() };
    assert_eq!(reason_of(&one.stripped, one.offset, &options), Err(STRIPPED.to_owned()));
    std::fs::create_dir_all(dirs.path().join(".build-id/01")).unwrap();
    let place = dirs.path().join(".build-id/01/23456789abcdef.debug");
    std::fs::copy(&other.debug, &place).unwrap();
    assert_eq!(reason_of(&one.stripped, one.offset, &options), Err(STRIPPED.to_owned()));
    std::fs::copy(&one.debug, &place).unwrap();
    assert_eq!(reason_of(&one.stripped, one.offset, &options), found());
}

#[test]
fn a_debug_file_is_found_by_link_beside_the_file_and_in_debug_directories() {
    let Some(made) = separate("-Wl,--build-id=none") else { return };
    let linked = made.directory.path().join("linked");
    let link = format!("--add-gnu-debuglink={}", made.debug.display());
    objcopy(&made.stripped, &linked, &[&link]).unwrap();
    assert_eq!(reason_of(&linked, made.offset, &alone()), found());

    let moved = made.directory.path().join(".debug");
    std::fs::create_dir(&moved).unwrap();
    std::fs::rename(&made.debug, moved.join("made.debug")).unwrap();
    assert_eq!(reason_of(&linked, made.offset, &alone()), found());

    let dirs = tempfile::tempdir().unwrap();
    let below = dirs.path().join(made.directory.path().strip_prefix("/").unwrap());
    std::fs::create_dir_all(&below).unwrap();
    std::fs::rename(moved.join("made.debug"), below.join("made.debug")).unwrap();
    assert_eq!(reason_of(&linked, made.offset, &alone()), Err(STRIPPED.to_owned()));
    let options = Options { debug_dirs: vec![dirs.path().to_owned()], ..Options::default() };
    assert_eq!(reason_of(&linked, made.offset, &options), found());

    // Without build-ids the checksum of the link decides.
    let mut bytes = std::fs::read(below.join("made.debug")).unwrap();
    bytes.push(0);
    std::fs::write(below.join("made.debug"), bytes).unwrap();
    assert_eq!(reason_of(&linked, made.offset, &options), Err(STRIPPED.to_owned()));
}

#[test]
fn a_pipe_in_the_place_of_a_debug_file_keeps_nobody_waiting() {
    let Some(made) = separate("-Wl,--build-id=0x0123456789abcdef") else { return };
    let linked = made.directory.path().join("linked");
    objcopy(&made.stripped, &linked, &[&format!("--add-gnu-debuglink={}", made.debug.display())]).unwrap();
    std::fs::remove_file(&made.debug).unwrap();
    let id = made.directory.path().join(".build-id/01");
    std::fs::create_dir_all(&id).unwrap();
    // The parser itself would look for these two: the package of DWARF beside the file, and the link of a file with DWARF.
    let whole = made.directory.path().join("a.c.out");
    let both = made.directory.path().join("both");
    std::fs::write(&made.debug, "").unwrap();
    objcopy(&whole, &both, &[&format!("--add-gnu-debuglink={}", made.debug.display())]).unwrap();
    std::fs::remove_file(&made.debug).unwrap();
    let package = made.directory.path().join("a.c.out.dwp");
    for pipe in [&made.debug, &id.join("23456789abcdef.debug"), &package] {
        nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let options = Options { debug_dirs: vec![made.directory.path().to_owned()], ..Options::default() };
    assert_eq!(reason_of(&linked, made.offset, &options), Err(STRIPPED.to_owned()));
    assert_eq!(reason_of(&whole, made.offset, &options), found());
    assert_eq!(reason_of(&both, made.offset, &options), Ok(("local".to_owned(), None)));
}

#[test]
fn debuginfod_is_asked_for_what_is_nowhere_else() {
    let Some(made) = separate("-Wl,--build-id=sha1") else { return };
    let command = made.directory.path().join("client");
    let id = build_id(&made.stripped);
    let script = format!("#!/bin/sh\n[ \"$1 $2\" = \"debuginfo {id}\" ] && echo {}\n", made.debug.display());
    // Written by another process: a child that another test forks meanwhile would have the file open for writing, and the kernel
    // executes no such file (ETXTBSY).
    let write = "printf %s \"$1\" > \"$0\" && chmod 700 \"$0\"";
    run(Command::new("sh").args(["-c", write]).arg(&command).arg(script)).unwrap();
    let debuginfod = Some(Debuginfod { command, patience: Duration::from_secs(30) });
    assert_eq!(reason_of(&made.stripped, made.offset, &alone()), Err(STRIPPED.to_owned()));
    assert_eq!(reason_of(&made.stripped, made.offset, &Options { debuginfod, ..alone() }), found());
}

#[test]
fn compressed_symbols_inside_a_stripped_file_are_read() {
    let Some(made) = separate("-Wl,--build-id=sha1") else { return };
    let (mini, with) = (made.directory.path().join("mini"), made.directory.path().join("with"));
    objcopy(&made.debug, &mini, &["--strip-debug"]).unwrap();
    if run(Command::new("xz").arg("--force").arg(&mini)).is_none() {
        return;
    }
    let section = format!("--add-section=.gnu_debugdata={}.xz", mini.display());
    objcopy(&made.stripped, &with, &[&section]).unwrap();
    assert_eq!(reason_of(&with, made.offset, &alone()), Ok(("local".to_owned(), None)));
}

#[test]
fn what_only_exports_says_so_and_stubs_of_the_linkage_table_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let source = "int puts(const char *);\nvolatile int sink;\n\
        static __attribute__((noinline)) void hidden(void) { sink = 1; }\n\
        int shown(void) { hidden(); hidden(); return puts(\"x\"); }\n";
    let arguments = ["-O1", "-fPIC", "-shared", "-Wl,-z,lazy", "-fno-ipa-sra"];
    let Some(path) = compile(directory.path(), "cc", "a.c", source, &arguments) else { return };
    let segments = text_segments(&path);
    let symbols = text_symbols(&path, &[]).unwrap();
    let of = |name: &str| {
        let ((address, _), _) = symbols.iter().find(|(_, names)| names.contains(&name.to_owned())).unwrap();
        offset_of(&segments, *address)
    };
    let sections = run(Command::new("readelf").arg("-SW").arg(&path)).unwrap();
    let words: Vec<&str> = sections.lines().find(|line| line.contains(" .plt ")).unwrap().split_whitespace().collect();
    let at_name = words.iter().position(|word| *word == ".plt").unwrap();
    let stub = u64::from_str_radix(words[at_name + 3], 16).unwrap() + 16;

    let stripped = directory.path().join("stripped");
    objcopy(&path, &stripped, &["--strip-all"]).unwrap();
    let only = Err("the file has exported symbols only, and none covers the address".to_owned());
    assert_eq!(reason_of(&stripped, of("hidden"), &alone()), only);
    assert_eq!(reason_of(&stripped, of("shown"), &alone()), Ok(("shown".to_owned(), None)));
    for file in [&path, &stripped] {
        assert_eq!(reason_of(file, stub, &alone()), Err("a stub of the linkage table".to_owned()));
        assert!(reason_of(file, u64::MAX, &alone()).is_err());
    }
}
