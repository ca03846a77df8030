//! Recordings written by hand, or generated, whose answer is known: what each finding and each table of `analysis` makes of them.

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
mod slow_ipc_reply;
mod thp_missed;
mod timed_wait;
mod transient_large_allocation;
mod unused_touched_pages;
