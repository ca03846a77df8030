//! From `.eh_frame` to rows that a program in the kernel can walk with.
//!
//! A table covers the executable part of one ELF file, by file offset. Per page of 4 KiB there is a range of rows, sorted; the
//! row that holds for an instruction is the last one whose `at` is not greater than its offset in the page. Every page begins
//! with a row at 0, so a search never leaves its page.

/// How the canonical frame address (CFA) is found; the return address stands 8 bytes below it (System V ABI, x86-64).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfaRule {
    /// No unwinding information covers the instruction.
    Unknown = 0,
    /// Stack pointer plus offset.
    StackPointer = 1,
    /// Frame pointer (rbp) plus offset.
    FramePointer = 2,
    /// The outermost frame: its return address is undefined.
    Outermost = 3,
    /// An entry of the procedure linkage table: stack pointer + 8, and 8 more from the instruction on that stands 11 bytes or
    /// more behind a multiple of 16 (the expression that GNU ld and lld emit for `.plt`).
    LinkageTable = 4,
    /// The trampoline that a signal handler returns to: the interrupted registers stand in the `ucontext` at the stack pointer.
    SignalFrame = 5,
    /// What stands in memory at frame pointer plus offset (a realigned stack).
    AtFramePointer = 6,
    /// A rule that rows cannot express.
    Unsupported = 7,
}

/// How the caller's frame pointer (rbp) is found.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePointerRule {
    /// It was not changed.
    Same = 0,
    /// Saved at CFA plus offset.
    AtCfa = 1,
    /// In memory at the frame pointer plus offset (a realigned stack).
    AtFramePointer = 2,
    /// It cannot be told.
    Unknown = 3,
}

/// One row: what holds from an instruction on, until the next row of the page.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Offset of the first instruction in its page of 4 KiB.
    pub at: u16,
    /// [`CfaRule`].
    pub cfa: u8,
    /// [`FramePointerRule`].
    pub frame_pointer: u8,
    /// Offset of the CFA rule in units of 8 bytes.
    pub cfa_offset: i16,
    /// Offset of the frame-pointer rule in units of 8 bytes.
    pub frame_pointer_offset: i16,
}

/// The unwinding table of one ELF file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindTable {
    /// File offset of the first page divided by 4096.
    pub first_page: u32,
    /// For each page the number of its first row; one more at the end, the number of all rows.
    pub pages: Vec<u32>,
    /// All rows.
    pub rows: Vec<Row>,
}
