//! Entries for the fuzzers to parsers that are private to this crate; nothing else calls them.

use crate::{alive, fault_counters, memory_threads, page_content};

/// Files of `/proc/PID` and `/proc/vmstat`, as bytes and as text.
pub fn proc_text(bytes: &[u8], text: &str) {
    alive::parse(text.as_bytes());
    fault_counters::faults_of_process(bytes);
    fault_counters::faults_of_machine(text);
    memory_threads::name_of_thread(bytes);
    page_content::held::areas(text);
}

/// The sections and the build-id of an ELF file.
pub fn sections(file: &std::fs::File) {
    crate::examine::elf_facts(file, 1, 1);
}
