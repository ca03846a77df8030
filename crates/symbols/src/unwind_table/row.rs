//! A row of a table: how the frame of an instruction is left. Which row holds where is for [`super::UnwindTable`].

/// How the canonical frame address (CFA) is found. On x86-64 the return address stands 8 bytes below it (System V ABI); on AArch64
/// [`FramePointerRule`] says where.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfaRule {
    /// No unwinding information covers the instruction.
    Unknown = 0,
    /// Stack pointer plus offset.
    StackPointer = 1,
    /// Frame pointer (rbp, x29) plus offset.
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
    /// The exception unwinder hands over to a handler: parts of the frames around it are those of the handler already, and no
    /// description says which.
    HandsOver = 8,
    /// Frame pointer plus offset, unless the return address stands once more above the frame: then it is the handler's already.
    HandingOver = 9,
}

/// How the caller's frame pointer (rbp, x29) is found, and on AArch64 the return address.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePointerRule {
    /// It was not changed. On AArch64 the return address is still in x30: of a function that has not called any other.
    Same = 0,
    /// Saved at CFA plus offset; on AArch64 with the return address in the word above.
    AtCfa = 1,
    /// In memory at the frame pointer plus offset (a realigned stack).
    AtFramePointer = 2,
    /// It cannot be determined.
    Unknown = 3,
    /// AArch64: it was not changed, and the return address stands at CFA plus offset.
    ReturnAddressAtCfa = 4,
    /// AArch64: saved at CFA plus offset, and the return address is still in x30.
    OnlyAtCfa = 5,
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
