//! The launcher of these tests, and what it launches.

use slowpath_launch::{Identity, LAUNCHER_ARGUMENT, LaunchSpec, LauncherProgram, ProcessLauncher};

pub fn launcher() -> ProcessLauncher {
    let path = env!("CARGO_BIN_EXE_context-probe").into();
    ProcessLauncher::new(LauncherProgram { path, args: vec![LAUNCHER_ARGUMENT.into()] })
}

/// `sleep`, as the caller, in a small environment.
pub fn command() -> LaunchSpec {
    let env = [("PATH", "/usr/bin:/bin"), ("HOME", "/")].map(|(name, value)| (name.into(), value.into()));
    let mut spec =
        LaunchSpec::new(["/bin/sleep", "60"].map(Into::into).into(), Identity::of_caller().unwrap(), env.into());
    spec.timeout = Some(std::time::Duration::from_secs(20));
    spec
}
