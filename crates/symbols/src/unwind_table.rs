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
mod error;
mod expand;
mod hand_over;
mod program;
mod row;
mod rule;
mod table;
mod undescribed;
mod vdso;

pub(crate) use elf::{Architecture, FrameSource, Image};
pub use error::UnwindTableError;
pub use row::{CfaRule, FramePointerRule, Row};
pub use table::{MAX_ROWS, PAGE, UnwindTable};
pub use vdso::vdso;
