//! The command as its users run it: real processes, exit codes, what stands on standard output and error, and what is
//! left on the machine afterwards. Most need root; they skip with a reason otherwise.

mod attached;
mod browsers;
mod check;
mod children;
mod compare;
mod critical_path;
mod exports;
mod forks;
mod heap_trim;
mod hostile_names;
mod interruptions;
mod json;
mod kills;
mod launch;
mod ledger;
mod long_recordings;
mod machines;
mod outputs;
mod oversized_touch;
mod pages;
mod preload;
mod readiness;
mod running;
mod shares;
mod stack_audit;
mod targets;
mod traces;
mod transient_blocks;
mod truth;
mod users;
mod waits;
mod warm_diagnosis;
