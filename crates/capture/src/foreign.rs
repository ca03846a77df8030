//! Entries for the fuzzers to parsers that are private to this crate; nothing else calls them.

use crate::{fault_counters, page_content};

/// Files of `/proc/PID` and `/proc/vmstat`.
pub fn proc_text(text: &str) {
    fault_counters::faults_of_machine(text);
    page_content::held::areas(text.as_bytes());
}

/// The sections and the build-id of an ELF file.
pub fn sections(file: &std::fs::File) {
    crate::examine::elf_facts(file, 1, 1);
}
