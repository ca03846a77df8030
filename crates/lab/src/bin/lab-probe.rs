//! The test program of this crate: the launcher under its hidden argument, and a process that builds a lab of some
//! files below a directory and launches in it for ever (`lab-probe hold BASE FILE...`), to be killed at any moment.

use slowpath_lab::{Closure, Image, Lab, Settings, Throttle};
use slowpath_launch::{Identity, LAUNCHER_ARGUMENT, LaunchSpec, Launcher, LauncherProgram, NoHooks, ProcessLauncher};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some(LAUNCHER_ARGUMENT) => slowpath_launch::launcher_main(),
        Some("hold") if args.len() > 3 => hold(Path::new(&args[2]), &args[3..]),
        _ => Err("usage: lab-probe hold BASE FILE...".into()),
    }
}

fn hold(base: &Path, files: &[String]) -> Result<(), Box<dyn Error>> {
    let throttle = Some(Throttle { iops: 100_000, bytes_per_second: 0 });
    loop {
        let image = Image::build(&Closure::from_paths(files), base, Vec::new())?;
        let lab = Lab::new(image, Settings { throttle, ..Settings::default() })?;
        for _ in 0..3 {
            let argv = ["/bin/sh", "-c", "/bin/sleep 0.05"].map(Into::into).to_vec();
            let mut spec = LaunchSpec::new(argv, Identity::of_caller()?, Vec::new());
            (spec.mounts, spec.cgroups, spec.pid_namespace) = (lab.mounts(), lab.cgroups(), true);
            lab.prepare_cold()?;
            ProcessLauncher::new(LauncherProgram::this_program()).launch(&spec, &mut NoHooks)?;
        }
    }
}
