//! One recording from begin to end.
//!
//! Owns what happens around the recorder: the target and its launch under observation ([`target`], [`recorded_launch`], [`recorded_command`]), or processes that run already ([`running`]); the process
//! that writes a recording while it is made ([`streamed_recording`], [`recording_writer`]), the processes that make unwinding tables
//! for it ([`unwind_tables`]), what memory costs here (`memory_cost`), the directories that are made for a user
//! ([`output_directory`], [`fresh_directory`]) and files that are there whole or not at all ([`whole_file`]), files that others may have made ([`foreign_file`]), reading a recording with
//! what is whole in it ([`open_recording`]), which work is done without privilege ([`unprivileged`]), ctrl-C ([`interrupt`]), and
//! how all of that fails ([`failure`]).
//!
//! Leaves to others: what is recorded and decoded (`capture`), how a launch is made (`launch`) and a process is confined (`process`),
//! the files of a recording (`recording`), what it means, and screens; of JSON, what `record` prints is here ([`printed`]).

pub mod failure;
pub mod fleet_package;
pub mod fresh_directory;
#[cfg(test)]
#[path = "../../process/tests/hanging/mod.rs"]
mod hanging;
pub mod interrupt;
mod memory_cost;
pub mod open_recording;
pub mod output_directory;
pub mod printed;
pub mod progress;
pub mod recorded_command;
pub mod recorded_launch;
pub mod recording_writer;
pub mod running;
pub mod streamed_recording;
pub mod target;
pub mod unprivileged;
pub mod unwind_tables;
pub mod whole_file;

pub use progress::Progress;
pub use slowpath_process::foreign_file;
