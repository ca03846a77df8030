//! Tables of the machine's own libraries, row by row against what binutils' `readelf` says.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSegment, SegmentFlags};
use slowpath_symbols::unwind_table::{CfaRule, FramePointerRule, Row, UnwindTable};
use std::path::Path;
use std::process::Command;

/// One line of `readelf`: from an address on, the CFA, rbp and the return address in its words.
#[derive(Clone, Debug)]
struct Line {
    address: u64,
    cfa: String,
    pointer: Option<String>,
    return_address: String,
}

#[derive(Clone, Debug, Default)]
struct Description {
    start: u64,
    end: u64,
    signal: bool,
    lines: Vec<Line>,
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

/// Parses `--debug-dump=frames-interp`. A description without lines holds the line of its CIE throughout.
fn descriptions(text: &str) -> Vec<Description> {
    let mut commons = std::collections::HashMap::new();
    let (mut found, mut columns, mut common) = (Vec::<Description>::new(), Vec::<String>::new(), None::<String>);
    // A register kept in another one is written in two words.
    let text = text.replace(" (", "(");
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.get(3) == Some(&"CIE") {
            let signal = words[4].trim_matches('"').contains('S');
            commons.insert(words[0].to_owned(), (signal, None::<Line>));
            common = Some(words[0].to_owned());
        } else if words.get(3) == Some(&"FDE") {
            let cie = words[4].strip_prefix("cie=").unwrap();
            let (start, end) = words[5].strip_prefix("pc=").unwrap().split_once("..").unwrap();
            let (start, end) = (hex(start), hex(end));
            let (signal, line) = commons[cie].clone();
            let lines = line.map(|line| Line { address: start, ..line }).into_iter().collect();
            found.push(Description { start, end, signal, lines });
            common = None;
        } else if words.first() == Some(&"LOC") {
            columns = words.iter().map(|&word| word.to_owned()).collect();
            if common.is_none() {
                found.last_mut().unwrap().lines.clear();
            }
        } else if words.len() > 1 && words.len() == columns.len() && words[0].len() == 16 {
            let column = |name: &str| columns.iter().position(|column| column == name).map(|at| words[at].to_owned());
            let line = Line {
                address: hex(words[0]),
                cfa: column("CFA").unwrap(),
                pointer: column("rbp"),
                return_address: column("ra").unwrap(),
            };
            match &common {
                Some(name) => commons.get_mut(name).unwrap().1 = Some(line),
                None => found.last_mut().unwrap().lines.push(line),
            }
        }
    }
    found
}

/// What is wrong with a row, if anything.
fn difference(row: Row, line: &Line) -> Option<String> {
    let number = |text: &str, prefix: &str| text.strip_prefix(prefix)?.parse::<i64>().ok();
    let offset = i64::from(row.cfa_offset) * 8;
    let pointer_offset = i64::from(row.frame_pointer_offset) * 8;
    let cfa = match row.cfa_rule() {
        CfaRule::Outermost => return (line.return_address != "u").then(|| "not outermost".into()),
        // What readelf can say plainly must not be unsupported, but for frames that hang on other registers.
        CfaRule::Unsupported => {
            let plain = ["rsp+", "rbp+"].iter().any(|prefix| number(&line.cfa, prefix).is_some_and(|at| at % 8 == 0));
            return (plain && line.return_address == "c-8").then(|| "could be expressed".into());
        }
        CfaRule::StackPointer => number(&line.cfa, "rsp+") == Some(offset) || line.cfa == "exp",
        CfaRule::FramePointer => number(&line.cfa, "rbp+") == Some(offset),
        CfaRule::LinkageTable | CfaRule::AtFramePointer => line.cfa == "exp",
        // Where the unwinder installs a handler's frame, descriptions are not believed: the test of those says where.
        CfaRule::HandsOver | CfaRule::HandingOver => return None,
        CfaRule::Unknown | CfaRule::SignalFrame => false,
    };
    if !cfa || line.return_address != "c-8" {
        return Some("another frame".into());
    }
    let pointer = match (row.frame_pointer_rule(), line.pointer.as_deref()) {
        // readelf writes "u" for a register that was not told of yet, and for one that is undefined.
        (FramePointerRule::Same, None | Some("u" | "s")) => true,
        // What GCC leaves standing behind the end of a realigned frame.
        (FramePointerRule::Same, Some("exp" | "vexp")) => line.cfa == "rsp+8",
        (FramePointerRule::AtCfa, Some(text)) => number(text, "c") == Some(pointer_offset),
        (FramePointerRule::AtFramePointer, Some(text)) => text == "exp" || text == "vexp",
        (FramePointerRule::Unknown, Some(text)) => !text.starts_with('c') && text != "s",
        _ => false,
    };
    (!pointer).then(|| "another frame pointer".into())
}

/// How many rows were compared.
fn compare(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let table = UnwindTable::of_elf(&bytes).unwrap();
    let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
    let executable: Vec<_> = file
        .segments()
        .filter(|one| matches!(one.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X)))
        .map(|one| (one.address()..one.address() + one.size(), one.file_range().0))
        .collect();
    let offset = |address: u64| {
        let (range, offset) = executable.iter().find(|(range, _)| range.contains(&address)).unwrap();
        offset + (address - range.start)
    };
    let output = Command::new("readelf").args(["--wide", "--debug-dump=frames-interp"]).arg(path).output().unwrap();
    let mut known = descriptions(&String::from_utf8_lossy(&output.stdout));
    known.sort_by_key(|one| one.start);
    let (mut compared, mut wrong) = (0, Vec::new());
    for (index, one) in known.iter().enumerate() {
        if one.start == one.end {
            continue;
        }
        for (line, next) in one.lines.iter().zip(one.lines.iter().skip(1).map(Some).chain([None])) {
            let end = next.map_or(one.end, |next| next.address);
            if end <= line.address {
                continue;
            }
            for address in [line.address, end - 1] {
                let row = table.lookup(offset(address));
                let found = match one.signal {
                    true => (row != Row { at: row.at, ..Row::SIGNAL_FRAME }).then(|| "no signal frame".into()),
                    false => difference(row, line),
                };
                if let Some(found) = found {
                    wrong.push(format!("{address:#x}: {found}: {row:?} {line:?}"));
                }
            }
            compared += 1;
        }
        let next = known.get(index + 1).map_or(u64::MAX, |next| next.start);
        let behind = executable.iter().any(|(range, _)| range.contains(&one.end));
        if behind && next > one.end {
            let row = table.lookup(offset(one.end));
            if row.cfa_rule() != CfaRule::Unknown {
                wrong.push(format!("{:#x}: behind a function: {row:?}", one.end));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}: {} of {compared}:\n{}",
        path.display(),
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    compared
}

fn readelf_is_here() -> bool {
    let found = Command::new("readelf").arg("--version").output().is_ok();
    if !found {
        println!("skipped: no readelf");
    }
    found
}

#[test]
fn every_row_of_the_libraries_here_is_what_readelf_says() {
    if !readelf_is_here() {
        return;
    }
    let libraries = "/lib/x86_64-linux-gnu";
    let files = [
        (format!("{libraries}/libc.so.6"), 10_000),
        ("/lib64/ld-linux-x86-64.so.2".to_owned(), 1000),
        ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6".to_owned(), 10_000),
        ("/usr/bin/python3.11".to_owned(), 10_000),
    ];
    let mut tried = 0;
    for (path, least) in files.iter().filter(|(path, _)| Path::new(path).exists()) {
        let compared = compare(Path::new(path));
        println!("{path}: {compared} rows");
        assert!(compared > *least, "{path}: only {compared} rows: readelf's output was not understood");
        tried += 1;
    }
    if tried == 0 {
        println!("skipped: none of the files is here");
    }
}

#[test]
fn a_debug_frame_and_stripped_section_headers_give_the_same_rows() {
    if !readelf_is_here() || Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: no compiler");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("one.c");
    std::fs::write(&source, "int g(int *); int f(int a) { int b[9]; b[0] = a; return g(b) + b[1]; }\n").unwrap();
    let build = |name: &str, options: &[&str]| {
        let path = folder.path().join(name);
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O2", "-g", "-nostdlib"]).args(options);
        assert!(cc.arg(&source).arg("-o").arg(&path).status().unwrap().success());
        path
    };
    let usual = build("usual.so", &["-Wl,-z,noseparate-code"]);
    assert!(compare(&usual) >= 3);
    let bytes = std::fs::read(&usual).unwrap();
    let table = UnwindTable::of_elf(&bytes).unwrap();
    let mut stripped = bytes.clone();
    // e_shoff, e_shnum and e_shstrndx.
    stripped[40..48].fill(0);
    stripped[60..64].fill(0);
    assert_eq!(UnwindTable::of_elf(&stripped).unwrap(), table);

    let debug = build("debug.so", &["-fno-asynchronous-unwind-tables", "-Wl,--no-ld-generated-unwind-info"]);
    let text = Command::new("readelf").args(["-SW"]).arg(&debug).output().unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(".debug_frame") && !text.contains(" .eh_frame "), "{text}");
    assert!(compare(&debug) >= 3);
}
