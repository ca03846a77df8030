//! Finding what a name stands for, as people write names.

use slowpath_report::explain::{likely, named};

#[test]
fn names_are_found_as_people_write_them() {
    let first = |name: &str| named(name)[0].name.clone();
    assert_eq!(first("cold-file-reads"), "cold_file_reads");
    assert_eq!(first("python-bytecode"), "python_bytecode");
    assert_eq!(first("Not shown"), "not_shown");
    assert_eq!(first("probe first_wait"), "probe <name>");
    assert_eq!(first("whole_files"), "whole_files");
    assert_eq!(first("readahead_size 512"), "readahead_size");
    assert_eq!(first("readahead_512k"), "readahead_size");
    assert_eq!(first("reuse_buffer 2"), "reuse_buffer");
    for (name, found) in [
        ("control_groups cpu.max", "control_groups"),
        ("system-call tracepoints", "opens, reads and memory calls"),
        ("first page faults on processor 3", "first page faults on CPU <cpu>"),
        ("not_written.faults", "lost events"),
        ("perf.any", "lost events"),
    ] {
        assert_eq!(first(name), found);
    }
    for name in
        ["acl_mask", "cpu_busy", "filter_speculation_allowed", "futex-shm", "strace", "hot-cold", "no-pie", "PASS"]
    {
        assert_eq!(first(name), name);
    }
    assert!(named("reuse_buffer x").is_empty() && named("reuse_buffer 2 3").is_empty());
    assert_eq!(first("time ledger"), "time ledger");
}

#[test]
fn an_unknown_name_leads_to_likely_ones() {
    assert!(named("file_reads").is_empty());
    let likely = likely("file_reads");
    assert!(likely.contains(&"cold_file_reads".to_owned()) && likely.len() <= 5, "{likely:?}");
}
