//! Perfetto on the device: its configuration, on standard input, and where the trace is.

/// Where Perfetto may write and adb's shell may read (docs/quickstart/android-tracing.md of Perfetto).
const DIRECTORY: &str = "/data/misc/perfetto-traces";

/// Most of a trace, MiB; adb copies it.
const MOST_FILE: u64 = 64;

/// Bytes of a trace that are copied: twice what is asked for, because Perfetto adds to each packet, and the device may send anything.
pub const MOST_COPIED: u64 = 2 * (MOST_FILE << 20);

/// The configuration of a trace of one launch, which ends by itself after `most_ms` where nobody ends it.
pub fn config(packages: &[String], most_ms: u64) -> String {
    let apps: String = packages.iter().map(|package| format!("      atrace_apps: \"{package}\"\n")).collect();
    format!(
        "buffers {{ size_kb: {buffer} fill_policy: RING_BUFFER }}
buffers {{ size_kb: 4096 fill_policy: RING_BUFFER }}
duration_ms: {most_ms}
max_file_size_bytes: {file}
data_sources {{
  config {{
    name: \"linux.ftrace\"
    target_buffer: 0
    ftrace_config {{
      ftrace_events: \"sched/sched_switch\"
      ftrace_events: \"sched/sched_waking\"
      ftrace_events: \"sched/sched_blocked_reason\"
      ftrace_events: \"sched/sched_process_free\"
      ftrace_events: \"task/task_newtask\"
      ftrace_events: \"task/task_rename\"
      ftrace_events: \"binder/binder_transaction\"
      ftrace_events: \"binder/binder_transaction_received\"
      atrace_categories: \"am\"
      atrace_categories: \"dalvik\"
      atrace_categories: \"view\"
      atrace_categories: \"wm\"
{apps}    }}
  }}
}}
data_sources {{
  config {{
    name: \"linux.process_stats\"
    target_buffer: 1
    process_stats_config {{ scan_all_processes_on_start: true record_thread_names: true }}
  }}
}}
data_sources {{
  config {{
    name: \"android.packages_list\"
    target_buffer: 1
  }}
}}
",
        buffer = (MOST_FILE - 8) << 10,
        file = MOST_FILE << 20,
    )
}

/// The file of one launch on the device.
pub fn device_file(number: usize) -> String {
    format!("{DIRECTORY}/slowpath-launch-{number}.perfetto-trace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_its_braces_and_its_packages() {
        let text = config(&["com.example".to_owned(), "org.other".to_owned()], 60_000);
        assert_eq!(text.matches('{').count(), text.matches('}').count());
        assert!(text.contains("atrace_apps: \"com.example\"") && text.contains("atrace_apps: \"org.other\""));
        assert!(text.contains("duration_ms: 60000"));
    }
}
