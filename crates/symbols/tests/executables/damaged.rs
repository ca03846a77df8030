//! Files that somebody made to do harm, or that are damaged: every frame still gets its row.

use crate::program::{alone, at, compile, unrecorded};
use proptest::prelude::*;
use slowpath_symbols::symbolize::Options;
use std::path::Path;

const C: &str = "
static inline __attribute__((always_inline)) int inner(volatile int *x) { return *x * *x + 3; }
__attribute__((noinline)) int outer(volatile int *x) { return inner(x) + 1; }
int main(int count, char **arguments) { (void)arguments; volatile int x = count; return outer(&x); }
";

/// Offsets all over a small file.
fn everywhere(bytes: usize) -> Vec<u64> {
    (0..bytes as u64).step_by(64).chain([u64::MAX, 1 << 40]).collect()
}

fn asked(directory: &Path, bytes: &[u8]) {
    let path = directory.join("damaged");
    std::fs::write(&path, bytes).unwrap();
    let options = Options { debug_dirs: vec![directory.to_owned()], ..Options::default() };
    let offsets = everywhere(bytes.len());
    assert_eq!(at(&unrecorded(&path), &offsets, &options).len(), offsets.len());
}

#[test]
fn a_file_that_ends_anywhere_still_gives_a_row_for_every_frame() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "cc", "a.c", C, &["-O2", "-g"]) else { return };
    let bytes = std::fs::read(path).unwrap();
    for length in [0, 1, 4, 63, 64, 65, 1000, bytes.len() / 2, bytes.len() - 64, bytes.len() - 1] {
        asked(directory.path(), &bytes[..length]);
    }
}

#[test]
fn bytes_changed_anywhere_still_give_a_row_for_every_frame() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "cc", "a.c", C, &["-O2", "-g"]) else { return };
    let bytes = std::fs::read(path).unwrap();
    let length = bytes.len();
    // The headers and the tables of sections decide most, so half of the changes go there.
    let place = prop_oneof![0..length, 0..1024usize, length - 2500..length];
    let changes = prop::collection::vec((place, any::<u8>()), 1..12);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 200, ..ProptestConfig::default() });
    runner
        .run(&changes, |changes| {
            let mut bytes = bytes.clone();
            for (place, byte) in changes {
                bytes[place] = byte;
            }
            asked(directory.path(), &bytes);
            Ok(())
        })
        .unwrap();
}

/// Where the header of a section stands in a 64-bit little-endian file.
fn header_of(bytes: &[u8], wanted: &[u8]) -> usize {
    let number = |at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0usize, |number, byte| number << 8 | usize::from(*byte))
    };
    let (table, count, names) = (number(40, 8), number(60, 2), number(62, 2));
    let strings = number(table + names * 64 + 24, 8);
    let is_wanted = |header: &usize| bytes[strings + number(*header, 4)..].starts_with(wanted);
    (0..count).map(|index| table + index * 64).find(is_wanted).unwrap()
}

#[test]
fn a_section_that_claims_to_unpack_to_more_than_there_is_memory_is_not_unpacked() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["-O2", "-g", "-gz=zlib"];
    // Long enough that the section is compressed at all.
    let source =
        format!("{C}{}", (0..200).map(|n| format!("int f{n}(int a{n}) {{ return a{n}; }}\n")).collect::<String>());
    let Some(path) = compile(directory.path(), "cc", "a.c", &source, &arguments) else { return };
    let mut bytes = std::fs::read(&path).unwrap();
    let header = header_of(&bytes, b".debug_info\0");
    assert_eq!(bytes[header + 9] & 8, 8, "SHF_COMPRESSED");
    let content = usize::try_from(u64::from_le_bytes(bytes[header + 24..header + 32].try_into().unwrap())).unwrap();
    // `ch_size` of `Elf64_Chdr`.
    bytes[content + 8..content + 16].copy_from_slice(&(1u64 << 50).to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    let row = at(&unrecorded(&path), &[0x1000], &alone()).remove(0).remove(0);
    assert_eq!(row.reason.as_deref(), Some("the file's symbols could not be read"));
}
