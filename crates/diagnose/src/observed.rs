//! What every diagnosis without a lab observes, of a warm launch as of what runs already.

use slowpath_analysis::Finding;
use slowpath_capture::{Options, StackEvents};
use slowpath_fix::Program;
use slowpath_fix::program::RunsAs;
use slowpath_recording::Tables;
use slowpath_tables::Bytes;

/// Samples a second: a number that no program's own rhythm is a multiple of.
const HERTZ: u32 = 997;

/// Most of the disk that the recording takes, as for `slowpath record`.
pub const MOST: Bytes = Bytes(4 << 30);

/// What the recorder is asked for.
pub fn options() -> Options {
    let stacks = StackEvents { faults: true, waits: true, memory_calls: true };
    Options { waits: true, memory_calls: true, stacks, cpu_hertz: Some(HERTZ), ..Options::default() }
}

/// The program that a finding is about, with a look at its files where it is known as whom it runs and these are the same here.
pub fn program(tables: &Tables, finding: &Finding, who: Option<RunsAs>) -> Program {
    let name = finding.subject.get("process").and_then(|name| name.as_str()).unwrap_or_default();
    let program = Program::recorded(tables, name);
    match who {
        Some(who) => program.look(who),
        None => program,
    }
}
