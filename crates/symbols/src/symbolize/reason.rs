//! Why a frame has no name: the closed set of words in `symbols.reason`.

/// Why there is no name. The words are part of the format of recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The frame is the end of a stack that could not be followed; `frames.truncation` says why.
    TruncatedStack,
    /// The row of the frame lacks what its kind needs.
    NoPlace,
    /// No path of the file is known.
    UnknownFile,
    /// There is nothing at the path any more.
    FileMissing,
    /// This user may not read the file.
    PermissionDenied,
    /// A pipe, a device, a directory stands at the path.
    NotRegular,
    /// Any other error of the system.
    FileUnreadable,
    /// Its build-id, or where there is none its size or modification time, is another.
    FileChanged,
    /// It is no ELF file: a script that was mapped, a cache of compiled code.
    NotElf,
    /// The file, or what it says about itself, is damaged, or larger than what is read.
    Damaged,
    /// Stripped, and no debug file was found.
    NoSymbols,
    /// Stripped but for what it exports, and no debug file was found.
    OnlyExported,
    /// It has symbols, and none covers the address.
    NotCovered,
    /// A stub of the procedure linkage table: a few instructions that jump to a function of another file.
    LinkageStub,
    /// The kernel's list of symbols shows no addresses to who opened it.
    KernelHidden,
    /// Addresses of the kernel and its vdso hold for one boot.
    OtherBoot,
    /// The kernel maps no vdso into this process, or it could not be read.
    NoVdso,
    /// The process left no perf map.
    NoPerfMap,
    /// The perf map could not be opened or read, or is larger than what is read.
    PerfMapUnreadable,
    /// The perf map names other addresses.
    NotInPerfMap,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::TruncatedStack,
        Self::NoPlace,
        Self::UnknownFile,
        Self::FileMissing,
        Self::PermissionDenied,
        Self::NotRegular,
        Self::FileUnreadable,
        Self::FileChanged,
        Self::NotElf,
        Self::Damaged,
        Self::NoSymbols,
        Self::OnlyExported,
        Self::NotCovered,
        Self::LinkageStub,
        Self::KernelHidden,
        Self::OtherBoot,
        Self::NoVdso,
        Self::NoPerfMap,
        Self::PerfMapUnreadable,
        Self::NotInPerfMap,
    ];

    /// As it stands in the table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::TruncatedStack => "truncated stack",
            Self::NoPlace => "the frame says no place",
            Self::UnknownFile => "the path of the file is not known",
            Self::FileMissing => "the file could not be opened: it is gone",
            Self::PermissionDenied => "the file could not be opened: permission denied",
            Self::NotRegular => "the file could not be opened: not a regular file",
            Self::FileUnreadable => "the file could not be opened: input or output error",
            Self::FileChanged => "the file changed since it was recorded",
            Self::NotElf => "the file is not an ELF file",
            Self::Damaged => "the file's symbols could not be read",
            Self::NoSymbols => "the file has no symbols",
            Self::OnlyExported => "the file has exported symbols only, and none covers the address",
            Self::NotCovered => "no symbol covers the address",
            Self::LinkageStub => "a stub of the linkage table",
            Self::KernelHidden => "the kernel's symbols are hidden from this user",
            Self::OtherBoot => "recorded before this machine was booted",
            Self::NoVdso => "the vdso could not be read",
            Self::NoPerfMap => "no perf map of the process",
            Self::PerfMapUnreadable => "the perf map could not be read",
            Self::NotInPerfMap => "the perf map does not cover the address",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_reason_has_words_of_its_own() {
        let words: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.words()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
    }
}
