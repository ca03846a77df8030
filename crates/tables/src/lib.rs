//! Every table of a recording, declared once: row type, Arrow schema and documentation, plus the unit types and
//! the few words (quantity, losses, unavailable) that every command prints.
//!
//! Owns: names, types, units and meaning of all columns. Leaves files and directories to `recording`, filling the
//! rows to `capture`, reading sense into them to `analysis`.

mod column;
mod declare;
mod file_problem;
mod foreign_text;
mod linking;
mod milestone;
pub mod missing;
pub mod name_pattern;
mod profile;
mod quantity;
mod rows;
mod time_of_day;
mod units;
mod vocabulary;
pub mod written;

pub use column::{Column, ColumnError};
pub use declare::{ColumnDoc, Table, TableDoc};
pub use file_problem::FileProblem;
pub use foreign_text::{EscapedJson, escape_json, is_dangerous};
pub use linking::FileRelocations;
pub use milestone::{Milestone, Visit};
pub use profile::{
    CpuEvent, CpuSample, Frame, MemoryCall, MemoryWork, OffCpu, PageContent, Stack, Symbol, ThreadCounters,
};
pub use quantity::{Losses, Quantity, Unavailable, Unit};
pub use rows::{
    BlockIo, Exec, Exit, Fault, File, FirstWait, Fork, Mapping, Open, PageCache, Read, Readahead, Section, all_tables,
};
pub use time_of_day::rfc3339;
pub use units::{Bytes, FileKey, Nanos, PAGE_SIZE, Pages, ProcessKey, page_of_kernel};
pub use vocabulary::{
    Asker, CpuEventKind, FaultKind, FrameKind, LookMoment, MappingOp, MemoryCallKind, MemoryWorkKind, OffCpuReason,
    PageCacheOp, RefusedCall, SectionKind,
};
