//! Tables of files for AArch64, assembled here; walking with them is for machines of that kind (`bench/accept/kernels-aarch64`).

use object::{Object, ObjectSegment, ObjectSymbol};
use slowpath_symbols::unwind_table::{CfaRule as C, FramePointerRule as F, UnwindTable};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Functions with every form of frame that compilers make; each instruction has four bytes.
const FUNCTIONS: &str = "
        .text
        .macro function name
        .globl \\name
        .type \\name, %function
\\name:
        .cfi_startproc
        .endm
        function framed
        stp x29, x30, [sp, -32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        mov x29, sp
        .cfi_def_cfa_register 29
        nop
        ldp x29, x30, [sp], 32
        .cfi_restore 30
        .cfi_restore 29
        .cfi_def_cfa 31, 0
        ret
        .cfi_endproc
        function signed_one
        nop
        .cfi_negate_ra_state
        str x30, [sp, -16]!
        .cfi_def_cfa_offset 16
        .cfi_offset 30, -16
        ret
        .cfi_endproc
        function pointer_only
        str x29, [sp, -16]!
        .cfi_def_cfa_offset 16
        .cfi_offset 29, -16
        ret
        .cfi_endproc
        function far_apart
        sub sp, sp, 64
        .cfi_def_cfa_offset 64
        .cfi_offset 29, -64
        .cfi_offset 30, -8
        ret
        .cfi_endproc
        function first
        .cfi_undefined 30
        nop
        .cfi_endproc
";

/// The bytes of a shared library with these functions; `None` without a compiler for it.
fn assembled(place: &Path) -> Option<Vec<u8>> {
    let library = place.join("functions.so");
    let words = ["-nostdlib", "-shared", "-x", "assembler", "-", "-o"];
    let compiler = Command::new("aarch64-linux-gnu-gcc").args(words).arg(&library).stdin(Stdio::piped()).spawn();
    let Ok(mut compiler) = compiler else {
        println!("skipped: no aarch64-linux-gnu-gcc");
        return None;
    };
    compiler.stdin.take().unwrap().write_all(FUNCTIONS.as_bytes()).unwrap();
    assert!(compiler.wait().unwrap().success());
    Some(std::fs::read(library).unwrap())
}

#[test]
fn frame_records_single_words_signed_addresses_and_the_first_frame_of_aarch64_are_rows() {
    let place = tempfile::tempdir().unwrap();
    let Some(bytes) = assembled(place.path()) else { return };
    let table = UnwindTable::of_elf(&bytes).unwrap();
    let file = object::File::parse(bytes.as_slice()).unwrap();
    let rule = |name: &str, instruction: u64| {
        let address = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address();
        let holds = |segment: &object::Segment<'_, '_>| {
            (segment.address()..segment.address() + segment.size()).contains(&address)
        };
        let segment = file.segments().find(holds).unwrap();
        let row = table.lookup(address - segment.address() + segment.file_range().0 + instruction * 4);
        (row.cfa_rule(), row.cfa_offset, row.frame_pointer_rule(), row.frame_pointer_offset)
    };
    assert_eq!(rule("framed", 0), (C::StackPointer, 0, F::Same, 0));
    assert_eq!(rule("framed", 1), (C::StackPointer, 4, F::AtCfa, -4));
    assert_eq!(rule("framed", 2), (C::FramePointer, 4, F::AtCfa, -4));
    assert_eq!(rule("framed", 4), (C::StackPointer, 0, F::Same, 0));
    assert_eq!(rule("signed_one", 1), (C::StackPointer, 0, F::Same, 0));
    assert_eq!(rule("signed_one", 2), (C::StackPointer, 2, F::ReturnAddressAtCfa, -2));
    assert_eq!(rule("pointer_only", 1), (C::StackPointer, 2, F::OnlyAtCfa, -2));
    // Two places do not fit into a row, and one of them would be wrong.
    assert_eq!(rule("far_apart", 1).0, C::Unsupported);
    assert_eq!(rule("first", 0).0, C::Outermost);
}
