//! The columns that hold one of a few words.

use crate::declare::words;

words! {
    /// How a fault ended, by the kernel's own classification.
    FaultKind {
        /// Served without waiting for storage.
        Minor = "minor",
        /// Waited for storage.
        Major = "major",
    }
}

words! {
    /// What a row of `mappings` did to the address space.
    MappingOp {
        /// Present when the program image began (exec).
        Exec = "exec",
        /// Mapped by the program.
        Map = "map",
        /// Unmapped by the program.
        Unmap = "unmap",
    }
}

words! {
    /// Whether pages entered or left the page cache.
    PageCacheOp {
        /// Inserted: a read from storage follows, unless the page is new data.
        Add = "add",
        /// Removed.
        Delete = "delete",
    }
}

words! {
    /// On whose behalf pages entered the page cache: what the task was doing at that moment.
    Asker {
        /// A page fault on a mapping.
        Fault = "fault",
        /// A read-like system call (read, pread, readv, sendfile, splice, copy_file_range).
        Read = "read",
        /// An advice (madvise, fadvise, readahead, MAP_POPULATE).
        Advice = "advice",
        /// The kernel loading a program (execve).
        Exec = "exec",
        /// Path lookup or directory listing (open, stat, getdents, readlink).
        Metadata = "metadata",
        /// A write-like system call: the pages are new data.
        Write = "write",
        /// A kernel thread or anything else.
        Other = "other",
    }
}

words! {
    /// Kind of an ELF section, by what it costs at start.
    SectionKind {
        /// Executable code.
        Text = "text",
        /// Read-only data.
        Rodata = "rodata",
        /// Relocation tables and dynamic-linking metadata read by the run-time linker.
        Relocations = "relocations",
        /// Writable data, including data that is read-only after relocation.
        Data = "data",
        /// Symbol and string tables, notes, unwind tables and headers.
        Metadata = "metadata",
        /// Anything else.
        Other = "other",
    }
}
