//! The command line of `slowpath zygote`.

use super::target::InvocationArguments;
use super::units::seconds;
use clap::{ArgGroup, Args, Subcommand};
use slowpath_zygote::Namespace;
use slowpath_zygote::policy::duration;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `slowpath zygote`.
#[derive(Debug, Args)]
pub struct ZygoteArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: ZygoteCommand,
}

/// What can be done with zygotes.
#[derive(Debug, Subcommand)]
pub enum ZygoteCommand {
    /// Preload, then fork isolated children for permitted clients. Ends with ctrl-C; SIGHUP preloads again.
    #[command(after_help = SERVE_AFTER_HELP)]
    Serve(Box<ZygoteServeArguments>),
    /// Request a child from a zygote and wait for it. Exits with its exit code (128 + the signal number if a signal killed it).
    #[command(after_help = SPAWN_AFTER_HELP)]
    Spawn(Box<ZygoteSpawnArguments>),
    /// Show a zygote's state: children, spares, demand.
    Status(ZygoteStatusArguments),
    /// Measure what a zygote saves: posix_spawn, a pool of spare processes, a zygote, one with spares, and Python's fork server, in one
    /// interleaved run.
    Bench(ZygoteBenchArguments),
    /// Show whether a zygote would pay for a program: whether child starts would become at least 20 % shorter. Records the program with the
    /// variables that `serve --preload python:` sets, or takes a recording.
    #[command(after_help = ADVISE_AFTER_HELP)]
    Advise(ZygoteAdviseArguments),
}

/// What is preloaded.
#[derive(Debug, Args)]
pub struct ZygotePreloadArguments {
    /// What is preloaded: a shared library (lib.so), modules of Python (python:MODULE,...), or a program that serves by itself with the
    /// library (exec:PROGRAM).
    #[arg(long, value_name = "WHAT")]
    pub preload: OsString,
    /// What children call: a function of the library as a main (default slowpath_zygote_main), or MODULE:FUNCTION of Python (default: as
    /// `python3 ARGS` does).
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// The interpreter for python: (default: python3 of PATH; for root /usr/bin/python3).
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
}

/// `slowpath zygote serve`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("where").args(["socket", "activated"]).required(true)))]
pub struct ZygoteServeArguments {
    /// What.
    #[command(flatten)]
    pub preload: ZygotePreloadArguments,
    /// Listen at this path; it is removed at the end.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Use the socket passed by a service manager (systemd: ListenSequentialPacket=).
    #[arg(long)]
    pub activated: bool,
    /// Who may ask for what, and how many (TOML, docs/zygote.md).
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Exit after this time without a connection, such as 5s; overrides the policy.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub idle: Option<Duration>,
    /// Keep at least this many spare children ready; overrides the policy.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    pub spares: Option<u32>,
    /// Who the zygote runs as: a name or a uid (default: the user who called sudo, else the caller). Only a zygote that runs as root can
    /// give children other users.
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Print one JSON object at the end.
    #[arg(long)]
    pub json: bool,
    /// Do not report starts.
    #[arg(long)]
    pub quiet: bool,
}

/// `slowpath zygote spawn`.
#[derive(Debug, Args)]
pub struct ZygoteSpawnArguments {
    /// Where the zygote listens.
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// The zygote may also be this user's (default: root's or the caller's alone).
    #[arg(long, value_name = "UID")]
    pub zygote_uid: Option<u32>,
    /// The child's user id (default: the caller's, or the zygote's if that does not run as root).
    #[arg(long, value_name = "UID", requires = "gid")]
    pub uid: Option<u32>,
    /// The child's group id.
    #[arg(long, value_name = "GID", requires = "uid")]
    pub gid: Option<u32>,
    /// A supplementary group of the child (default: none). Repeatable.
    #[arg(long, value_name = "GID", requires = "uid")]
    pub group: Vec<u32>,
    /// Install this seccomp filter in the child as the last step: seccompiler JSON, a container runtime's profile, or raw instructions.
    #[arg(long, value_name = "FILE")]
    pub seccomp: Option<PathBuf>,
    /// Install it with SECCOMP_FILTER_FLAG_SPEC_ALLOW: faster on some kernels, with a security trade-off (docs/zygote.md).
    #[arg(long, requires = "seccomp")]
    pub allow_speculation: bool,
    /// New namespaces for the child: mount, network, ipc, uts, cgroup, pid, user.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Namespace::named)]
    pub namespaces: Vec<Namespace>,
    /// Set a variable in the child's environment. Repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// Pass this file descriptor under the same number, besides 0, 1 and 2. Repeatable.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=255))]
    pub fd: Vec<u32>,
    /// Print one JSON object; what the child prints goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Arguments for the child.
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<OsString>,
}

/// `slowpath zygote status`.
#[derive(Debug, Args)]
pub struct ZygoteStatusArguments {
    /// Where the zygote listens.
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `slowpath zygote bench`.
#[derive(Debug, Args)]
pub struct ZygoteBenchArguments {
    /// What.
    #[command(flatten)]
    pub preload: ZygotePreloadArguments,
    /// Blocks, each with one child of every arm.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(6..=10_000))]
    pub blocks: u32,
    /// Time limit (30, 30s, 10m), checked after each block.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "300")]
    pub max_time: f64,
    /// Number of children alive at once when memory is measured.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub children: u32,
    /// Seed of the order.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object, as `slowpath launch`.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

/// `slowpath zygote advise`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["recording", "command"]).required(true)))]
pub struct ZygoteAdviseArguments {
    /// A recording of the program and its children.
    #[arg(conflicts_with_all = ["command", "output", "duration", "user", "ready", "timeout", "env"])]
    pub recording: Option<PathBuf>,
    /// Keep the recording of CMD in this directory.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Record CMD for at most this time (30, 30s, 10m).
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub duration: Option<f64>,
    /// How CMD is launched.
    #[command(flatten)]
    pub invocation: InvocationArguments,
    /// The program, which is recorded until it is ready or ends.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

const ADVISE_AFTER_HELP: &str = "Examples:
  sudo slowpath zygote advise -- python3 jobs.py
  sudo slowpath record --child-startup --off-cpu -o recording -- CMD
  slowpath zygote advise recording";

const SERVE_AFTER_HELP: &str = "Examples:
  slowpath zygote serve --preload python:pandas --socket $XDG_RUNTIME_DIR/z
  slowpath zygote spawn --socket $XDG_RUNTIME_DIR/z -- -c 'import pandas; print(pandas.__version__)'
  sudo slowpath zygote serve --user root --preload /usr/lib/shop/librender.so --socket /run/shop/zygote --policy /etc/shop/zygote.toml";

const SPAWN_AFTER_HELP: &str = "Examples:
  slowpath zygote spawn --socket $XDG_RUNTIME_DIR/z -- job.py 17
  sudo slowpath zygote spawn --socket /run/shop/zygote --uid 99001 --gid 99001 --namespaces network,ipc --seccomp render.json -- render";

#[cfg(test)]
mod tests {
    use super::super::Arguments;
    use clap::Parser;

    #[test]
    fn a_socket_is_made_or_taken_and_ids_go_together() {
        let parses = |words: &str| Arguments::try_parse_from(words.split(' ')).is_ok();
        assert!(parses("slowpath zygote serve --preload lib.so --socket /s"));
        assert!(parses("slowpath zygote serve --preload lib.so --activated --idle 5s"));
        assert!(!parses("slowpath zygote serve --preload lib.so"));
        assert!(!parses("slowpath zygote serve --preload lib.so --socket /s --activated"));
        assert!(parses(
            "slowpath zygote spawn --socket /s --uid 1 --gid 1 --group 2 --namespaces mount,network -- a --json"
        ));
        for wrong in ["--uid 1", "--gid 1", "--group 1", "--allow-speculation", "--fd 2", "--namespaces colour"] {
            assert!(!parses(&format!("slowpath zygote spawn --socket /s {wrong}")), "{wrong}");
        }
        assert!(parses("slowpath zygote advise recording") && parses("slowpath zygote advise -o kept -- program"));
        for wrong in ["", " recording -- program", " recording -o kept", " recording --user u"] {
            assert!(!parses(&format!("slowpath zygote advise{wrong}")), "{wrong}");
        }
    }
}
