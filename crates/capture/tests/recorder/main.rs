//! The recorder on real programs, beside what the kernel itself counts.

mod address_spaces;
mod hostile_names;
mod keyed_sum;
mod live;
mod page_contents;
#[cfg(target_arch = "x86_64")]
mod stack_numbers;
mod targets;
mod withheld;
