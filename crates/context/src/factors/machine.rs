//! Factors that all processes of a machine have in common.

pub(super) mod hardware;
pub(super) mod kernel;
pub(super) mod memory;
pub(super) mod mitigations;
pub(super) mod proactive_reclaim;
pub(super) mod scheduler;
pub(super) mod selinux;

use crate::kernel_files::KernelFiles;
use crate::reading::{Reading, Value};

/// Parts, each the trimmed text of a file of the kernel; files that this kernel does not have are left out, and a machine without any
/// has none of it.
fn parts_of_files(kernel_files: &KernelFiles, files: &[(&str, &str)], absent: &str) -> Reading {
    let mut parts = Vec::new();
    let mut missing = None;
    for (name, path) in files {
        match kernel_files.read(path) {
            Ok(text) => parts.push((*name, text.trim().to_owned())),
            Err(why) => missing = Some(why),
        }
    }
    match missing {
        Some(missing) if parts.is_empty() => Reading::missing(&missing, absent),
        _ => Reading::known(Value::table(parts)),
    }
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text.trim(), |(word, _)| word)
}
