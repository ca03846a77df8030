//! What stacks are called, and what becomes of damaged ones.

use proptest::prelude::*;
use slowpath_analysis::stacks::call_stacks::{CallStacks, CodeFrame, DEEPEST, FramePlace, UNKNOWN};
use slowpath_recording::Tables;
use slowpath_tables::{Frame, FrameKind, Stack, Symbol};

const EVERY_KIND: &str = r#"
== stacks
id parent frame
0 - 0
1 0 1
2 1 2
3 2 3
4 - 4
5 4 5
6 5 6
== frames
id kind dev ino offset pid start address truncation
0 truncated - - - - - - "no table"
1 file 7340032 42 0x1234 - - - -
2 file 7340032 43 0x10 - - - -
3 kernel - - - - - 0xffffffff81000010 -
4 generated - - - 8 11 0x7f00 -
5 vdso - - 0x20 - - - -
6 file 7340032 42 0x2000 - - - -
== symbols
frame level function source_file source_line reason
6 1 "outer(int)" /src/b.cc 9 -
6 0 inlined /src/a.h 7 -
1 0 - - - "no symbols"
== files
dev ino path
7340032 42 /usr/lib/libfoo.so
"#;

fn names(stacks: &CallStacks, stack: Option<u32>) -> Vec<String> {
    let Some(path) = stacks.path(stack) else { return Vec::new() };
    let frames = stacks.outermost_first(path).into_iter().map(|number| &stacks.frames()[number as usize]);
    frames.flat_map(|frame| frame.functions.iter().rev().map(|function| function.name.to_string())).collect()
}

fn innermost<'s, 'a>(stacks: &'s CallStacks<'a>, stack: u32) -> &'s CodeFrame<'a> {
    &stacks.frames()[stacks.frame_number(stacks.path(Some(stack)).unwrap()) as usize]
}

#[test]
fn every_kind_of_frame_has_a_name_and_inlined_functions_are_inside_their_own() {
    let tables = Tables::from_text(EVERY_KIND).unwrap();
    let stacks = CallStacks::new(&tables);
    assert_eq!(
        names(&stacks, Some(3)),
        ["[truncated: no table]", "libfoo.so+0x1234", "[file 7:0/43]+0x10", "[kernel]+0xffffffff81000010"]
    );
    assert_eq!(names(&stacks, Some(6)), ["[generated 0x7f00]", "[vdso]+0x20", "outer(int)", "inlined"]);
    assert_eq!(names(&stacks, Some(1)), names(&stacks, Some(3))[..2], "a caller's stack is the outer part");
    assert_eq!(stacks.path(None), None, "no stack was recorded");
    let inner = &innermost(&stacks, 6).functions[0];
    assert_eq!((inner.source_file, inner.source_line, inner.named), (Some("/src/a.h"), Some(7), true));
}

#[test]
fn rows_may_be_in_any_order_and_numbers_may_have_gaps() {
    let tables = Tables::from_text(
        "== stacks\nid parent frame\n4000000000 70 9\n70 - 8\n\
         == frames\nid kind address\n9 kernel 2\n8 kernel 1\n",
    )
    .unwrap();
    let stacks = CallStacks::new(&tables);
    assert_eq!(names(&stacks, Some(4_000_000_000)), ["[kernel]+0x1", "[kernel]+0x2"]);
}

#[test]
fn a_stack_that_is_damaged_anywhere_is_unknown_as_a_whole() {
    let tables = Tables::from_text(
        "== stacks\nid parent frame\n0 - 0\n1 1 0\n2 3 0\n3 2 0\n4 99 0\n5 0 99\n6 5 0\n7 - 0\n7 0 0\n8 0 0\n8 0 0\n9 0 1\n\
         == frames\nid kind address dev\n0 kernel 1 -\n1 file 5 7\n2 kernel 1 -\n2 kernel 2 -\n\
         == symbols\nframe level function\n0 0 one\n0 0 other\n1 0 claimed\n",
    )
    .unwrap();
    let stacks = CallStacks::new(&tables);
    // Its own caller, a cycle, a caller or frame that is not there, what these call, two meanings, and no row at all.
    for stack in [1, 2, 3, 4, 5, 6, 7, 10, u32::MAX] {
        assert_eq!(stacks.path(Some(stack)), Some(UNKNOWN), "stack {stack}");
    }
    assert_eq!(names(&stacks, Some(1)), ["[unknown]"]);
    assert_eq!(names(&stacks, Some(0)), ["[kernel]+0x1"], "two names at one level are none");
    assert_eq!(names(&stacks, Some(8)), ["[kernel]+0x1", "[kernel]+0x1"], "the same row twice has one meaning");
    assert_eq!(names(&stacks, Some(9)), ["[kernel]+0x1", "[unknown]"], "a file frame without its file");
    assert_eq!(innermost(&stacks, 9).place, FramePlace::Unknown);
}

#[test]
fn a_stack_deeper_than_any_walk_is_unknown() {
    let deep = u32::from(DEEPEST);
    let stacks = (0..deep + 5).map(|id| Stack { id, parent: id.checked_sub(1), frame: 0 }).collect();
    let tables = Tables { stacks, ..Tables::from_text("== frames\nid kind address\n0 kernel 1\n").unwrap() };
    let stacks = CallStacks::new(&tables);
    assert_eq!(names(&stacks, Some(deep - 1)).len(), deep as usize);
    assert_eq!(names(&stacks, Some(deep)), ["[unknown]"]);
}

fn frame(id: u32, kind: usize, number: Option<u64>) -> Frame {
    let kind = FrameKind::ALL[kind];
    let offset = number.map(slowpath_tables::Bytes);
    Frame { id, kind, dev: number, ino: number, offset, pid: None, start: None, address: number, truncation: None }
}

proptest! {
    #[test]
    fn any_rows_resolve_without_a_loop_and_every_path_ends(
        stacks in proptest::collection::vec((0u32..20, proptest::option::of(0u32..20), 0u32..12), 0..30),
        frames in proptest::collection::vec((0u32..12, 0usize..5, proptest::option::of(any::<u64>())), 0..12),
        symbols in proptest::collection::vec((0u32..12, 0u32..3, proptest::option::of("[a-c]?")), 0..12),
    ) {
        let tables = Tables {
            stacks: stacks.into_iter().map(|(id, parent, frame)| Stack { id, parent, frame }).collect(),
            frames: frames.into_iter().map(|(id, kind, number)| frame(id, kind, number)).collect(),
            symbols: symbols
                .into_iter()
                .map(|(frame, level, function)| Symbol { frame, level, function, source_file: None, source_line: None, reason: None })
                .collect(),
            ..Tables::default()
        };
        let stacks = CallStacks::new(&tables);
        for id in 0..25 {
            let path = stacks.path(Some(id)).unwrap();
            prop_assert!(stacks.caller(path).is_none_or(|caller| caller < path));
            let names = names(&stacks, Some(id));
            prop_assert!(!names.is_empty() && names.iter().all(|name| !name.is_empty()));
        }
    }
}
