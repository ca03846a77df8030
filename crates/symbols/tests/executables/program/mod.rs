//! Programs that tests compile, and what binutils say of them, as a cross-check.

use slowpath_symbols::symbolize::{Located, Options, Sources, symbolize};
use slowpath_tables::{Bytes, Frame, FrameKind, Symbol};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a command prints, or a line that says why the test is skipped.
pub fn run(command: &mut Command) -> Option<String> {
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            println!("skipped: {command:?}: {error}");
            None
        }
    }
}

/// Compiles a program; None where there is no such compiler.
pub fn compile(directory: &Path, compiler: &str, name: &str, source: &str, arguments: &[&str]) -> Option<PathBuf> {
    let (from, to) = (directory.join(name), directory.join(format!("{name}.out")));
    std::fs::write(&from, source).unwrap();
    run(Command::new(compiler).args(arguments).arg(&from).arg("-o").arg(&to))?;
    Some(to)
}

/// A copy of a file, changed by objcopy.
pub fn objcopy(from: &Path, to: &Path, arguments: &[&str]) -> Option<()> {
    run(Command::new("objcopy").args(arguments).arg(from).arg(to)).map(|_| ())
}

/// Names by address and size, of all symbols of the text that nm lists.
pub fn text_symbols(path: &Path, arguments: &[&str]) -> Option<BTreeMap<(u64, u64), Vec<String>>> {
    let list = run(Command::new("nm").args(["--defined-only", "-S"]).args(arguments).arg(path))?;
    let mut symbols: BTreeMap<(u64, u64), Vec<String>> = BTreeMap::new();
    for line in list.lines() {
        let mut words = line.splitn(4, ' ');
        let number = |word: Option<&str>| u64::from_str_radix(word?, 16).ok();
        let (Some(address), Some(size)) = (number(words.next()), number(words.next())) else { continue };
        let (Some(kind), Some(name)) = (words.next(), words.next()) else { continue };
        if matches!(kind, "t" | "T" | "w" | "W" | "i") && size > 0 {
            // Versions of exported symbols are no part of their names.
            let name = name.split('@').next().unwrap_or(name);
            symbols.entry((address, size)).or_default().push(name.to_owned());
        }
    }
    Some(symbols)
}

/// Address, offset and size in the file of what is mapped executable, as readelf lists it.
pub fn text_segments(path: &Path) -> Vec<(u64, u64, u64)> {
    let list = run(Command::new("readelf").arg("-lW").arg(path)).unwrap();
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let lines = list.lines().filter(|line| line.trim_start().starts_with("LOAD") && line.contains(" R E "));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (number(words[2]), number(words[1]), number(words[4]))
        })
        .collect()
}

/// Offset in the file of an address in its text.
pub fn offset_of(segments: &[(u64, u64, u64)], address: u64) -> u64 {
    let holds = |(start, _, size): &&(u64, u64, u64)| (*start..*start + *size).contains(&address);
    let (start, offset, _) = segments.iter().find(holds).expect("in the text");
    address - start + offset
}

/// A row of frames in a file.
pub fn frame(id: u32, offset: u64) -> Frame {
    Frame {
        id,
        kind: FrameKind::File,
        dev: Some(1),
        ino: Some(2),
        offset: Some(Bytes(offset)),
        pid: None,
        start: None,
        address: None,
        truncation: None,
    }
}

/// The rows of each of these offsets in a file.
pub fn at(located: &Located, offsets: &[u64], options: &Options) -> Vec<Vec<Symbol>> {
    let frames: Vec<Frame> = (0u32..).zip(offsets).map(|(id, offset)| frame(id, *offset)).collect();
    let file = |_| Some(located.clone());
    let sources = Sources { file: &file, kernel: None, this_boot: true, perf_maps: &|_, _| Vec::new() };
    let mut rows = vec![Vec::new(); offsets.len()];
    for symbol in symbolize(&frames, &sources, options) {
        rows[symbol.frame as usize].push(symbol);
    }
    for rows in &rows {
        assert!(!rows.is_empty(), "every frame has a row");
        assert!(rows.iter().zip(0u32..).all(|(row, level)| row.level == level), "levels are counted from 0: {rows:?}");
        let named = rows.iter().all(|row| row.function.is_some() && row.reason.is_none());
        assert!(named || (rows.len() == 1 && rows[0].reason.is_some() && rows[0].function.is_none()), "{rows:?}");
    }
    rows
}

/// A file of which nothing was recorded.
pub fn unrecorded(path: &Path) -> Located {
    Located { path: path.to_owned(), ..Located::default() }
}

/// Name of the outermost function.
pub fn outermost(rows: &[Symbol]) -> Option<&str> {
    rows.last()?.function.as_deref()
}

/// Looks at no directory of the machine.
pub fn alone() -> Options {
    Options { debug_dirs: Vec::new(), ..Options::default() }
}
