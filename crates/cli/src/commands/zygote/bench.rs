//! `slowpath zygote bench`: the ways to have a child, in counterbalanced blocks, one child of each in each block.

use super::preload::preload;
use crate::arguments::zygote::ZygoteBenchArguments;
use crate::exit_code;
use crate::failure::{Failure, Kind, failed};
use crate::printing::show;
use slowpath_launch::Identity;
use slowpath_report::{progress::Progress, terminal};
use slowpath_session::{fresh_directory::FreshDirectory, interrupt};
use slowpath_verify::zygote_bench::{ZygoteBenchSettings, bench};
use std::process::ExitCode;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: &ZygoteBenchArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    let preload = preload(&arguments.preload)?;
    // Of this process's own user, who preloads too; what a killed one leaves, the next command removes.
    let identity = Identity::of_caller().map_err(failed(Kind::Machine))?;
    let place = FreshDirectory::new(&identity).map_err(failed(Kind::Machine))?;
    let settings = ZygoteBenchSettings {
        blocks: arguments.blocks,
        max_time: Duration::from_secs_f64(arguments.max_time),
        children: arguments.children,
        seed: arguments.seed,
    };
    let benchmark = bench(&preload, place.path(), &settings, &Progress::new(arguments.quiet));
    drop(place);
    let benchmark = benchmark?;
    show(arguments.json, &benchmark, terminal::benchmark);
    Ok(exit_code::after_launches(benchmark.arms.iter().map(|arm| arm.failed).sum(), "children"))
}
