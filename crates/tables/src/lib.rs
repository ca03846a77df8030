//! Every table of a recording, declared once: row type, Arrow schema and documentation, plus the unit types and
//! the few words (quantity, losses, unavailable) that every command prints.
//!
//! Owns: names, types, units and meaning of all columns. Leaves files and directories to `recording`, filling the
//! rows to `capture`, reading sense into them to `analysis`.

mod column;
mod declare;
mod quantity;
mod rows;
mod units;

pub use column::{Column, ColumnError};
pub use declare::{ColumnDoc, Table, TableDoc};
pub use quantity::{Losses, Quantity, Unavailable, Unit};
pub use rows::{
    Asker, BlockIo, Exec, Exit, Fault, FaultKind, File, FirstWait, Fork, Mapping, MappingOp, Open, PageCache,
    PageCacheOp, Read, Readahead, Section, SectionKind, all_tables,
};
pub use units::{Bytes, FileKey, Nanos, PAGE_SIZE, Pages, ProcessKey};
