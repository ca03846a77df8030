//! The conditions of one launch.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{ContextStep, Identity, LaunchError, Limit, MountStep, ReadyWhen, os_text};

/// Everything that decides how one launch runs. Nothing is taken from the caller's process silently: environment,
/// working directory and identity are given in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// Put before [`Self::argv`]: for a program that prepares something and then execs its arguments. A first word
    /// of `/proc/self/exe` names the calling program itself (the target is a fork of its image until the exec).
    #[serde(with = "os_text::list")]
    pub wrapper: Vec<OsString>,
    /// The command and its arguments. A first word without `/` is looked up in the `PATH` of [`Self::env`], as the
    /// target's user, within the measured interval (as a shell would). Under [`ReadyWhen::Browser`] every `{url}`
    /// is replaced by the page's address, or the address is appended when no argument has one.
    #[serde(with = "os_text::list")]
    pub argv: Vec<OsString>,
    /// The whole environment; see [`Identity::environment`]. `NOTIFY_SOCKET` is added under [`ReadyWhen::Notify`].
    #[serde(with = "os_text::pairs")]
    pub env: Vec<(OsString, OsString)>,
    /// Who the target runs as.
    pub identity: Identity,
    /// The working directory, entered as the target's user.
    #[serde(with = "os_text::path")]
    pub cwd: PathBuf,
    /// The file mode mask; `None` keeps the caller's. A target of another user than the caller's does not let others write: it gets
    /// the caller's with 022 added, as sudo(8) does.
    pub umask: Option<u32>,
    /// Resource limits to set; others stay the caller's. See [`crate::current_limits`].
    pub limits: Vec<Limit>,
    /// `cgroup.procs` files that the target joins before its identity is taken on. The observer stays outside, so
    /// that a throttle on the target does not delay the observation.
    pub cgroups: Vec<PathBuf>,
    /// What the target sets for itself before its exec: in this order, but for what can only be done before its identity is taken
    /// on, only after, or only last.
    pub context: Vec<ContextStep>,
    /// A descriptor of the calling process, of [`crate::MountNamespace`]: the launch begins with copies of the mounts there, in a mount
    /// namespace of its own. Needs root.
    pub within: Option<i32>,
    /// Mounts in a private mount namespace, in this order. Not empty: the launch gets such a namespace.
    pub mounts: Vec<MountStep>,
    /// A pid namespace of its own (and a mount namespace, for its `/proc`): then the kernel enforces that the tree
    /// ends with the launcher. Needs root; not with [`EndPolicy::LeaveRunning`].
    pub pid_namespace: bool,
    /// A session (and process group) of its own. Else the target joins the caller's process group, unless it is another user's: that
    /// has a session of its own in any case, and with it no part in the caller's terminal.
    pub session: bool,
    /// Standard input, output and error.
    pub stdio: StdioPolicy,
    /// A socket for DevTools: its one end becomes descriptors 3 and 4 of the target, where Chromium reads commands and writes answers
    /// (`--remote-debugging-pipe`), the other is given to [`crate::Hooks::on_devtools`]. No other process holds them, but what the
    /// target starts before it executes the browser.
    pub devtools: bool,
    /// When the target counts as ready.
    pub ready: ReadyWhen,
    /// How long readiness may take from the release; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// Whether the memory of every process is looked at when the target is ready; takes some ms, after the interval.
    pub memory: bool,
    /// What becomes of the tree.
    pub end: EndPolicy,
    /// How long ending the tree may take before [`LaunchError::TreeSurvived`].
    pub kill_timeout: Duration,
}

/// What becomes of the target once it is ready (or cannot become ready any more, or the launch is stopped).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndPolicy {
    /// Every process of the tree is killed (SIGKILL) and waited for, daemons included.
    KillTree,
    /// The target lives on, also when the caller is killed before it is ready. When its output goes through the
    /// launcher (`line:`, [`StdioPolicy::Capture`]), the observer stays behind as a small pump until the output is
    /// closed; after the launch captured output is discarded.
    LeaveRunning,
    /// The launch goes on until the target itself has exited; whatever else of its tree runs is left alone (unless
    /// there is a pid namespace, which ends with the launch). A stop request, a time-out or the death of the caller
    /// leave the target running.
    WaitExit,
}

/// Where standard output and error go. Standard input is `/dev/null` except under [`StdioPolicy::Inherit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdioPolicy {
    /// The caller's. Under [`ReadyWhen::Line`] output passes through the observer, byte for byte.
    Inherit,
    /// `/dev/null`.
    Null,
    /// Read by the observer; the last 4 KiB of each are in the outcome.
    Capture,
}

impl LaunchSpec {
    /// A launch of `argv` as `identity` with `env`: current working directory, no namespaces, output captured, ready
    /// at exit, 60 s time-out, tree killed afterwards.
    pub fn new(argv: Vec<OsString>, identity: Identity, env: Vec<(OsString, OsString)>) -> Self {
        LaunchSpec {
            wrapper: Vec::new(),
            argv,
            env,
            identity,
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            umask: None,
            limits: Vec::new(),
            cgroups: Vec::new(),
            context: Vec::new(),
            within: None,
            mounts: Vec::new(),
            pid_namespace: false,
            session: false,
            stdio: StdioPolicy::Capture,
            devtools: false,
            ready: ReadyWhen::Exit,
            timeout: Some(Duration::from_secs(60)),
            memory: false,
            end: EndPolicy::KillTree,
            kill_timeout: Duration::from_secs(10),
        }
    }

    /// Checks what can be checked before a process is started.
    ///
    /// # Errors
    /// [`LaunchError::InvalidSpec`].
    pub fn validate(&self) -> Result<(), LaunchError> {
        let invalid = |why: String| Err(LaunchError::InvalidSpec(why));
        if self.argv.first().is_none_or(|program| program.is_empty()) {
            return invalid("no command was given".into());
        }
        let words =
            self.wrapper.iter().chain(&self.argv).chain(self.env.iter().flat_map(|(name, value)| [name, value]));
        for word in words {
            if word.as_encoded_bytes().contains(&0) {
                return invalid(format!("{word:?} contains a zero byte"));
            }
        }
        if let Some((name, _)) =
            self.env.iter().find(|(name, _)| name.is_empty() || name.as_encoded_bytes().contains(&b'='))
        {
            return invalid(format!("{name:?} is not a name of an environment variable"));
        }
        self.identity.credentials().validate().map_err(|error| LaunchError::InvalidSpec(error.to_string()))?;
        if !self.cwd.is_absolute() {
            return invalid(format!("the working directory {} is not absolute", self.cwd.display()));
        }
        if self.pid_namespace && self.end == EndPolicy::LeaveRunning {
            return invalid(
                "a target in a pid namespace cannot be left running: the namespace ends with the launcher".into(),
            );
        }
        for (index, step) in self.mounts.iter().enumerate() {
            step.validate().map_err(|why| LaunchError::InvalidSpec(format!("mount step {index}: {why}")))?;
        }
        for step in &self.context {
            step.validate(self.session).map_err(|why| LaunchError::InvalidSpec(format!("cannot {step}: {why}")))?;
        }
        self.ready.validate().map_err(|error| LaunchError::InvalidSpec(error.to_string()))
    }
}
