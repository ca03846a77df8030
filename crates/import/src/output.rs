//! Where rows go: a recording that is written, or tables in memory.

use slowpath_recording::{Tables, WriteError, Writer};
use slowpath_tables::{
    BlockIo, CpuSample, Exec, Fault, File, Fork, Frame, Mapping, MemoryCall, OffCpu, Open, PageCache, Read, Stack,
    Symbol,
};

/// Takes rows in the order in which they become known.
pub trait Output {
    /// Takes a row.
    ///
    /// # Errors
    /// It could not be written.
    fn row(&mut self, row: Row) -> Result<(), WriteError>;
}

macro_rules! rows {
    ($($kind:ident: $field:ident),*) => {
        /// A row of any table that a trace of another tool can fill.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Row { $(#[doc = concat!("Of `", stringify!($field), "`.")] $kind($kind)),* }

        $(impl From<$kind> for Row {
            fn from(row: $kind) -> Self {
                Self::$kind(row)
            }
        })*

        impl Output for Tables {
            fn row(&mut self, row: Row) -> Result<(), WriteError> {
                match row { $(Row::$kind(row) => self.$field.push(row)),* }
                Ok(())
            }
        }

        impl Output for Writer {
            fn row(&mut self, row: Row) -> Result<(), WriteError> {
                match row { $(Row::$kind(row) => self.push([row])),* }
            }
        }
    };
}

rows!(
    BlockIo: block_io,
    CpuSample: cpu_samples,
    Exec: execs,
    Fault: faults,
    File: files,
    Fork: forks,
    Frame: frames,
    Mapping: mappings,
    MemoryCall: memory_calls,
    OffCpu: off_cpu,
    Open: opens,
    PageCache: page_cache,
    Read: reads,
    Stack: stacks,
    Symbol: symbols
);
