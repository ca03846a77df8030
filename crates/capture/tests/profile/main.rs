//! Waits and memory calls against the running kernel: programs that know what they wait for, and the kernel's own accounts of
//! time as the witness. Needs root; skips with a reason otherwise.

mod held;
mod memory;
mod reasons;
mod sums;
#[path = "../recorder/targets/mod.rs"]
mod targets;
