//! `slowpath layout try`: variants of a build, built and launched.

use crate::arguments::layout::LayoutTryArguments;
use crate::exit_code;
use crate::failure::{Failure, Kind};
use crate::printing::show;
use slowpath_layout::order::FORMATS;
use slowpath_layout::trial::variants::{Variant, variant};
use slowpath_layout::trial::{self, Coolness, Trial};
use slowpath_report::{progress::Progress, terminal};
use slowpath_session::interrupt;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &LayoutTryArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    let options = &arguments.options;
    if options.export.is_some() {
        return Err(Failure::new(Kind::Usage, "a trial has no export").hint("`--json` prints all launches"));
    }
    let unknown = |name: &String| Failure::new(Kind::Usage, format!("there is no variant {name:?}"));
    let variants = arguments.variants.iter().map(|name| variant(name).ok_or_else(|| unknown(name)));
    let variants = variants.collect::<Result<Vec<&'static Variant>, Failure>>()?;
    let linker = FORMATS.iter().find(|one| one.name == arguments.linker);
    let linker =
        linker.ok_or_else(|| Failure::new(Kind::Usage, format!("there is no linker `{}`", arguments.linker)))?;
    let trial = Trial {
        build: arguments.build.clone(),
        variants,
        linker,
        traces: arguments.trace.clone(),
        command: arguments.command.clone(),
        invocation: (&options.invocation).into(),
        coolness: match options.cold {
            Some(coldness) => Coolness::Cold(coldness),
            None if options.warm => Coolness::Warm,
            None => Coolness::Both,
        },
    };
    let progress = Progress::new(options.quiet);
    let tried = trial::run(&trial, &options.settings(), &progress)?;
    progress.done();
    show(options.json, &tried, terminal::layout_trial);
    let arms = tried.cold.iter().chain(&tried.warm).flat_map(|benchmark| &benchmark.arms);
    Ok(exit_code::after_launches(arms.map(|arm| arm.failed).sum(), "launches"))
}
