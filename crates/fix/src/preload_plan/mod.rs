//! The fix `preload_plan`: tell the kernel early, and in the right order, which pages a launch will need.
//!
//! - `plan`: the plan itself, [`PreloadPlan`];
//! - `fix`: what people should know of it, [`FIX`], and the description of one plan;
//! - [`build`]: demand of trainings -> ordered ranges;
//! - [`file`]: the plan as a file, written for people and read as hostile input;
//! - [`check`]: which files of a plan are still those it was made for;
//! - [`open`]: opening a planned file as the user, regular files only;
//! - [`replay`]: asking the kernel for the ranges;
//! - [`printed`]: what checks and replays print as JSON;
//! - [`beside`]: replaying beside a command that takes this process's place;
//! - [`program`]: the program that does that;
//! - `reader`: who does that, and what such a process may do.

pub mod beside;
pub mod build;
pub mod check;
pub mod file;
mod fix;
pub mod open;
mod plan;
pub mod printed;
pub mod program;
mod reader;
pub mod replay;

pub use fix::{FIX, NAME};
pub use plan::{Order, PlanOptions, PlannedFile, PlannedRange, PreloadPlan, Provenance};
