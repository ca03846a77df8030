//! Every parser of foreign data as one function of bytes.
//!
//! Owns the list of them ([`TARGETS`]) and how bytes become the input of each. A function here returns, whatever the bytes
//! are; it panics where a parser breaks a promise. `fuzz/` gives each one to a coverage-guided fuzzer; a test of this crate runs
//! all that the fuzzers kept and found (`fuzz/corpus`, `fuzz/regressions`) through the same functions. Leaves the parsers
//! themselves to their crates.

mod code;
mod documents;
mod machine;
mod messages;
mod recordings;
pub mod rows;

/// A parser, or some that read the same text.
pub struct Target {
    /// Name of the fuzzer, of its corpus and of its regressions.
    pub name: &'static str,
    /// What is parsed, and who writes it.
    pub reads: &'static str,
    /// Runs bytes through it.
    pub run: fn(&[u8]),
    /// Bytes that an input has at most. What more would show only repeats.
    pub longest: usize,
}

const fn target(name: &'static str, longest: usize, run: fn(&[u8]), reads: &'static str) -> Target {
    Target { name, reads, run, longest }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target(
        "ring_records",
        65_536,
        messages::ring_records,
        "records of the ring: names, paths and numbers of the target",
    ),
    target("recording", 65_536, recordings::directory, "a recording's directory: manifest and one Parquet segment"),
    target("manifest", 16_384, recordings::manifest, "a recording's manifest without rows"),
    target("rows", 16_384, recordings::rows, "rows of all tables, to every finding, report and export"),
    target("elf", 262_144, code::elf, "an ELF file of the target: unwind table, debug links, sections, names"),
    target("unwind_entries", 16_384, code::unwind_entries, "`.eh_frame` inside an ELF file that is otherwise sound"),
    target("startup_file", 65_536, code::startup_file, "the head of a program: interpreter line or PT_INTERP"),
    target("perf_map", 65_536, code::perf_map, "a perf map that a process writes of its generated code"),
    target("layout_trace", 65_536, slowpath_layout::foreign::trace, "a trace of first uses, and orders made of it"),
    target("layout_order", 16_384, slowpath_layout::foreign::order, "an order of functions for a linker"),
    target("layout_repack", 65_536, slowpath_layout::foreign::copy, "an ELF file that is copied with other segments"),
    target(
        "layout_tracer",
        16_384,
        slowpath_layout::foreign::tracer_input,
        "/proc/PID/maps, and messages of the process that reads the traced files",
    ),
    target("art_file", 16_384, art_file, "a file of Android's runtime: oat, vdex, dex, dm, profile"),
    target("device_text", 16_384, device_text, "what an Android device or adb prints: dumpsys, pm, getprop, ps, unzip"),
    target("artifact_file", 16_384, artifact_file, "an artifact's header, list of libraries or modules, or its ACL"),
    target("file_listing", 16_384, file_listing, "`ls -lanRZ` of another machine"),
    target("field_state", 16_384, field_state, "states of artifacts for `artifacts age`: TOML, or an audit's JSON"),
    target("guard_policy", 16_384, guard_policy, "the policy of `artifacts guard`"),
    target("guard_tries", 16_384, slowpath_guard::foreign::tries, "its record of what was tried"),
    target("preload_plan", 16_384, documents::preload_plan, "a preload plan"),
    target("saved_context", 65_536, documents::saved_context, "two contexts that `context save` wrote"),
    target("context_files", 32_768, machine::context_files, "a directory of copied files of /proc and /sys"),
    target("seccomp_profile", 32_768, documents::seccomp_profile, "a seccomp filter: JSON or raw instructions"),
    target("mountinfo", 16_384, machine::mountinfo, "/proc/PID/mountinfo, whose paths a user chooses"),
    target(
        "proc_text",
        16_384,
        machine::proc_text,
        "/proc/PID/{stat,status,smaps_rollup,maps}, with names that a user chooses",
    ),
    target(
        "kernel_trace",
        32_768,
        machine::kernel_trace,
        "the text of a trace instance, with names that other programs chose",
    ),
    target("import_strace", 16_384, import_strace, "`strace -f -T -ttt`, with paths and names of the traced programs"),
    target("import_perf", 16_384, import_perf, "`perf script`, with names of programs, functions and files"),
    target("import_perf_data", 16_384, import_perf_data, "perf.data, with names of programs and files"),
    target("import_ftrace", 16_384, import_ftrace, "the text of ftrace, with names of programs and files"),
    target("import_xperf", 16_384, import_xperf, "the text of `xperf -a dumper`"),
    target("import_wpa_csv", 16_384, import_wpa_csv, "CSV that Windows Performance Analyzer exported"),
    target("import_perfetto", 16_384, import_perfetto, "a Perfetto trace"),
    target("import_simpleperf", 16_384, import_simpleperf, "`simpleperf report-sample --protobuf`"),
    target("startup_trace", 16_384, startup_trace, "a Perfetto trace of a device, for launches of apps"),
    target("devtools", 16_384, messages::devtools, "answers of a browser over DevTools"),
    target(
        "http",
        16_384,
        messages::http,
        "requests and answers over HTTP of the target, and the page of a browser launch",
    ),
    target(
        "changed_file",
        8_192,
        documents::changed_file,
        "a desktop file or a file of variables that a fix is kept in",
    ),
    target("diagnosis", 65_536, documents::diagnosis, "diagnosis.json"),
    target("budget", 8_192, documents::budget, "the budget of `slowpath check`"),
    target("page_list", 8_192, documents::page_list, "the list of pages of a scenario"),
    target("launcher_message", 16_384, messages::launcher, "messages between slowpath and its launcher"),
    target("unwind_table_message", 8_192, messages::unwind_table, "messages of the child that makes unwind tables"),
    target("zygote_message", 16_384, slowpath_zygote::foreign::message, "requests to a zygote, and its answers"),
    target("zygote_policy", 8_192, slowpath_zygote::foreign::policy, "the policy of `zygote serve`"),
    target("writer_message", 16_384, messages::writer, "messages of the process that writes a recording"),
];

fn import_strace(bytes: &[u8]) {
    recordings::imported("strace", bytes);
}

fn import_perf(bytes: &[u8]) {
    recordings::imported("perf", bytes);
}

fn import_perf_data(bytes: &[u8]) {
    recordings::imported("perf-data", bytes);
}

fn import_ftrace(bytes: &[u8]) {
    recordings::imported("ftrace", bytes);
}

fn import_xperf(bytes: &[u8]) {
    recordings::imported("xperf", bytes);
}

fn import_wpa_csv(bytes: &[u8]) {
    recordings::imported("wpa-csv", bytes);
}

fn import_perfetto(bytes: &[u8]) {
    recordings::imported("perfetto", bytes);
}

fn import_simpleperf(bytes: &[u8]) {
    recordings::imported("simpleperf", bytes);
}

fn startup_trace(bytes: &[u8]) {
    slowpath_android::foreign::startup_trace(bytes);
}

fn art_file(bytes: &[u8]) {
    slowpath_android::foreign::art_file(bytes);
}

fn device_text(bytes: &[u8]) {
    slowpath_android::foreign::device_text(&String::from_utf8_lossy(bytes));
}

fn artifact_file(bytes: &[u8]) {
    slowpath_artifacts::foreign::artifact_file(bytes);
}

fn field_state(bytes: &[u8]) {
    slowpath_artifacts::foreign::field_state(bytes);
}

fn guard_policy(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        slowpath_guard::foreign::policy(text);
    }
}

fn file_listing(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(slowpath_artifacts::foreign::file_listing(bytes) <= lines, "more files than lines");
}

/// The target of this name.
///
/// # Panics
/// There is none: a fuzzer was renamed and its target not.
pub fn named(name: &str) -> &'static Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("{name} is not in the list of targets"))
}
