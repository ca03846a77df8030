//! From the tables of a recording to findings. Pure: no clock, no file, no process.
//!
//! Owns what rows mean, in folders: what was read ([`io`]), memory ([`memory`]), where time went ([`time`]), call stacks ([`stacks`]), how
//! processes start ([`starts`]), and the findings ([`findings`]). Beside them: processes ([`processes`]), what a recording cost as another
//! one can be laid beside it ([`metrics`]), sets of recordings laid beside each other ([`recording_comparison`]), and how all of that is
//! printed ([`printed`]). Leaves recording to `capture`, plans on disk and trials to `fix` and `verify`, inference to `experiment`.
//!
//! [`launch_facts::LaunchFacts`] derives everything of one recording once; the others take it from there.

pub mod declaration;
mod evidence;
pub mod finding;
pub mod findings;
pub mod fix_inputs;
mod integer_hash;
pub mod interval;
pub mod io;
pub mod launch_facts;
pub mod memory;
pub mod metrics;
pub mod needs;
pub mod not_recorded;
pub mod printed;
pub mod processes;
pub mod recording_comparison;
pub mod stacks;
pub mod starts;
pub mod threshold;
pub mod time;

pub use declaration::{Declaration, ShowsIn};
pub use finding::{Confidence, Evidence, Finding};
pub use io::demand::{Demand, NeededUnknown};
pub use io::io_map::IoMap;
pub use io::merge::{MergedDemand, merge};
pub use launch_facts::LaunchFacts;
