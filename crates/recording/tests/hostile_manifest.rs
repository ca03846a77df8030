//! The memory that a hostile manifest takes. Alone in its process, whose peak is measured.

use slowpath_recording::{MANIFEST_FILE, Recording};

/// Memory of this process at its peak so far, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn a_manifest_of_nested_or_repeated_values_is_an_error_in_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(MANIFEST_FILE);
    std::fs::write(&file, "[".repeat(20 << 20)).unwrap();
    std::fs::write(dir.path().join("zeros"), "0,".repeat(10 << 20)).unwrap();
    for (before, after) in [("", ""), ("{\"schema_version\":[", "0]}"), ("{\"schema_version\":1,\"x\":[", "0]}")] {
        if !before.is_empty() {
            let zeros = std::fs::read_to_string(dir.path().join("zeros")).unwrap();
            std::fs::write(&file, [before, &zeros, after].concat()).unwrap();
        }
        let reached = peak();
        assert!(Recording::open(dir.path()).is_err());
        // The text itself has 20 MiB, which vectors that grow hold twice; as a tree of values it would take 320.
        assert!(peak() - reached < 100, "{} MiB more than {reached}", peak() - reached);
    }
}
