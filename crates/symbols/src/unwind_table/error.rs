//! Why there is no table of a file.

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
