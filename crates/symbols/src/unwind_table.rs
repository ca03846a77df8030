//! From `.eh_frame` to rows that a program in the kernel can walk with.
//!
//! A table covers the executable part of one ELF file, by file offset. Per page of 4 KiB there is a range of rows, sorted; the
//! row that holds for an instruction is the last one whose `at` is not greater than its offset in the page. Every page begins
//! with a row at 0, so a search never leaves its page.
//!
//! Owns: the form of the table, making it from the bytes of a file ([`UnwindTable::of_elf`]) or from the running kernel's vdso
//! ([`vdso`]), and the search ([`UnwindTable::lookup`]). Leaves opening files and telling which mapping belongs to which to the
//! caller, walking to [`crate::walk`] and to the recorder's program in the kernel. The files are foreign: any bytes give a table
//! or an error, in bounded memory and time.

mod builder;
mod elf;
mod expand;
mod hand_over;
mod program;
mod rule;
mod undescribed;
mod vdso;

pub(crate) use elf::{Architecture, FrameSource, Image};
pub use vdso::vdso;

/// Bytes of a page of the table: the smallest page, whatever the machine maps files with.
pub const PAGE: u64 = 4096;

/// More rows than this are refused: 128 MiB, six times what the largest library known here (Firefox's libxul) needs.
pub const MAX_ROWS: usize = 16 << 20;

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum UnwindTableError {
    /// The headers cannot be read.
    #[error("not a readable ELF file: {0}")]
    NotElf(#[source] object::Error),
    /// A file for another machine.
    #[error(
        "ELF file of {bits} bits for machine {machine}; known are 64 bits of machine 62 (x86-64) and, for tables, 183 (AArch64)"
    )]
    Architecture {
        /// `e_machine` of the file.
        machine: u16,
        /// Bits of its class.
        bits: u8,
    },
    /// Nothing in the file is mapped executable.
    #[error("no executable segment")]
    NoExecutableSegment,
    /// Neither `.eh_frame` nor `.debug_frame`.
    #[error("no unwinding information (.eh_frame, .debug_frame)")]
    NoUnwindInformation,
    /// Not one frame description could be read.
    #[error("unwinding information cannot be read: {0}")]
    BadUnwindInformation(#[source] gimli::Error),
    /// The file claims more than any real program has.
    #[error("more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many are accepted.
        limit: u64,
    },
}

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

impl UnwindTable {
    /// Makes the table of an ELF file for x86-64 or AArch64. `bytes` may be a mapping of the file; apart from the headers and the frame
    /// descriptions, only gaps between functions are looked at.
    ///
    /// Code that no description covers gets [`CfaRule::Unknown`]; where descriptions overlap, the one that begins last holds, as
    /// in the search of `.eh_frame_hdr`. What cannot be read behind the first good description is left out.
    ///
    /// # Errors
    ///
    /// All of [`UnwindTableError`].
    pub fn of_elf(bytes: &[u8]) -> Result<Self, UnwindTableError> {
        expand::table(&Image::parse(bytes)?)
    }

    /// The row that holds at a file offset; [`Row::UNKNOWN`] outside of the table.
    ///
    /// This is the reference of the search that the program in the kernel does.
    pub fn lookup(&self, offset: u64) -> Row {
        self.find(offset).unwrap_or(Row::UNKNOWN)
    }

    fn find(&self, offset: u64) -> Option<Row> {
        let page = usize::try_from((offset / PAGE).checked_sub(u64::from(self.first_page))?).ok()?;
        let first = usize::try_from(*self.pages.get(page)?).ok()?;
        let end = usize::try_from(*self.pages.get(page.checked_add(1)?)?).ok()?;
        let rows = self.rows.get(first..end)?;
        let later = rows.partition_point(|row| u64::from(row.at) <= offset % PAGE);
        rows.get(later.checked_sub(1)?).copied()
    }

    /// Bytes that the table takes in memory.
    pub fn size(&self) -> u64 {
        (size_of_val(self.rows.as_slice()) + size_of_val(self.pages.as_slice())) as u64
    }
}
