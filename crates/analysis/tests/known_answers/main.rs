//! Recordings written by hand, or generated, whose answer is known: what each finding and each table of `analysis` makes of them.

mod artifacts_of_known_families;
mod background_reclaim;
mod buffer_copied_back;
mod call_stacks;
mod cold_file_reads;
mod heap_trim_churn;
mod huge_page_spans;
mod loader_findings;
mod memory_blocks;
mod memory_findings;
mod memory_rows;
mod metrics;
mod released_pages;
mod repeated_child_work;
mod slow_ipc_reply;
mod stale_and_missing_artifacts;
mod thp_missed;
mod timed_wait;
mod transient_large_allocation;
mod unreadable_artifact;
mod unused_touched_pages;
