//! A command that waits, and its context.

use slowpath_context::Snapshot;
use slowpath_launch::{
    BoxError, Hooks, Identity, LAUNCHER_ARGUMENT, LaunchSpec, Launcher, LauncherProgram, ProcessLauncher,
};

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

pub fn one_processor() -> bool {
    std::thread::available_parallelism().is_ok_and(|count| count.get() == 1)
}

/// The context of a launch, once the command sleeps.
pub fn read(spec: &LaunchSpec) -> Snapshot {
    let mut look = Look { pid: 0, context: None };
    launcher().launch(spec, &mut look).unwrap();
    look.context.unwrap_or_else(|| panic!("{spec:?} was not read"))
}

struct Look {
    pid: u32,
    context: Option<Snapshot>,
}

impl Hooks for Look {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        self.pid = u32::try_from(pid)?;
        Ok(())
    }

    fn on_tick(&mut self) {
        let file = |pid: u32, name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        // A wrapper may start it as a child of its own.
        let children = file(self.pid, &format!("task/{}/children", self.pid));
        let ours = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        let sleeping = std::iter::once(self.pid).chain(ours).find(|pid| {
            let call = file(*pid, "syscall");
            // clock_nanosleep, on whichever architecture: neither running nor the wait of a shell.
            file(*pid, "comm").trim() == "sleep" && !call.is_empty() && !call.starts_with("running")
        });
        if let Some(pid) = sleeping {
            let mut context = Snapshot::of_process(pid).unwrap();
            context.read_filters();
            context.examine_objects();
            self.context = Some(context);
        }
    }

    fn stop_requested(&self) -> bool {
        self.context.is_some()
    }
}
