//! Why a launch could not be made. A target that ran and was not ready in time is an outcome, not an error.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Limit, MountStep};

/// The error type of hooks.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a launch could not be made or completed.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The specification contradicts itself or names something impossible.
    #[error("invalid launch: {0}")]
    InvalidSpec(String),
    /// The launcher program could not be started.
    #[error("cannot start the launcher `{}`", program.display())]
    Spawn {
        /// The program that should have become the launcher.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A step before the exec failed.
    #[error("cannot {stage}")]
    Setup {
        /// The step.
        stage: SetupStage,
        /// What the kernel said.
        source: io::Error,
    },
    /// The command could not be executed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// [`crate::Hooks::before_release`] refused.
    #[error("the launch was abandoned before its start")]
    Hook(#[source] BoxError),
    /// [`crate::Hooks::stop_requested`] was true before the command was released.
    #[error("the launch was stopped on request before its start")]
    StoppedBeforeStart,
    /// A process of the launcher was killed from outside; the tree was ended all the same.
    #[error("the launcher ended before the launch did: {detail}")]
    LauncherDied {
        /// Which process, and how.
        detail: String,
    },
    /// Processes of the tree were still there after the time allowed for ending it.
    #[error("the process tree could not be ended: {detail}")]
    TreeSurvived {
        /// Which processes are left.
        detail: String,
    },
    /// The channel between main and launcher failed.
    #[error("the channel to the launcher failed: {context}")]
    Channel {
        /// The operation.
        context: String,
        /// Why.
        source: io::Error,
    },
}

/// Why `execve` of the command failed.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// No such file, also not in `PATH`.
    #[error("command not found: {program}")]
    NotFound {
        /// The command as given.
        program: String,
    },
    /// The file is there, but what it needs to run (`#!` interpreter, ELF loader) is not.
    #[error("{program} exists, but its interpreter or loader does not")]
    MissingInterpreter {
        /// The command as given.
        program: String,
    },
    /// A directory, a file without execute permission for anybody, or of a format that the kernel does not know.
    #[error("{program} is not an executable file")]
    NotExecutable {
        /// The command as given.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The target's user may not execute it, or may not pass a directory on the way to it.
    #[error("no permission to execute {program} as this user")]
    PermissionDenied {
        /// The command as given.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Anything else (argument list too long, out of memory, text file busy).
    #[error("cannot execute {program}")]
    Other {
        /// The command as given.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// The step before the exec that failed. Displayed after "cannot ".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum SetupStage {
    /// Reading the specification.
    #[error("read the specification of the launch")]
    Specification,
    /// Opening or joining a cgroup.
    #[error("join the cgroup behind {}", path.display())]
    Cgroup {
        /// The `cgroup.procs` file.
        path: PathBuf,
    },
    /// Leaving the mount or pid namespace of the caller.
    #[error("enter a {what} of its own")]
    Namespace {
        /// Which namespace.
        what: String,
    },
    /// A mount step.
    #[error("carry out mount step {index} ({step})")]
    Mount {
        /// Its position in [`crate::LaunchSpec::mounts`].
        index: usize,
        /// The step.
        step: MountStep,
    },
    /// Mounting the `/proc` of the pid namespace.
    #[error("mount /proc in the pid namespace")]
    Proc,
    /// Creating a process of the launcher, or its pipes and descriptors.
    #[error("create the processes of the launcher ({what})")]
    Process {
        /// What was being made.
        what: String,
    },
    /// A session or process group of its own.
    #[error("give the command its session")]
    Session,
    /// Standard input, output or error.
    #[error("set up standard input and output")]
    Stdio,
    /// The socket for DevTools.
    #[error("give the command the socket for DevTools")]
    Devtools,
    /// A resource limit.
    #[error("set the resource limit {limit}")]
    Limit {
        /// The limit.
        limit: Limit,
    },
    /// Taking on user and groups.
    #[error("become the target's user (uid {uid}, gid {gid})")]
    Identity {
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
    },
    /// Entering the working directory as the target's user.
    #[error("enter the working directory {}", path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A step of the execution context ([`crate::ContextStep`]).
    #[error("{step}")]
    Context {
        /// The step in words.
        step: String,
    },
    /// Preparing the observation of readiness.
    #[error("observe the ready condition `{condition}`")]
    Ready {
        /// The condition as written on the command line.
        condition: String,
    },
}
