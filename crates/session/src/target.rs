//! The target of a command: who it runs as, its environment, when it is ready, and the placeholders in its words.

use crate::failure::{Failure, Kind, failed};
use crate::fresh_directory::FreshDirectory;
use slowpath_launch::{
    ContextStep, EndPolicy, ExecError, Identity, LaunchError, LaunchOutcome, LaunchSpec, LauncherProgram, Limit,
    LimitKind, MountNamespace, MountStep, ProcessLauncher, ReadyWhen, StdioPolicy, current_limits,
};
use slowpath_process::{Deadline, LIMIT};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// Everything that stays the same for all launches of a target.
#[derive(Clone)]
pub struct Target {
    /// The command as given.
    pub command: Vec<OsString>,
    /// Who it runs as.
    pub identity: Identity,
    /// What the user should know about that.
    pub warnings: Vec<String>,
    /// When it is ready.
    pub ready: ReadyWhen,
    /// How it sees files otherwise than they are.
    mounts: Vec<MountStep>,
    /// Whose mounts it begins with.
    within: Option<MountNamespace>,
    /// Whether executing gives it no privileges.
    gains_nothing: bool,
    extra: Vec<(OsString, OsString)>,
    /// What it inherits; [`Self::extra`] comes on top.
    environment: Vec<(OsString, OsString)>,
    timeout: Option<Duration>,
}

/// A launch that takes longer than this is given up by commands that launch many times, unless `--timeout` says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The limits that slowpath raises for itself: of locked memory (libbpf does, before Linux 5.11), of descriptors and of message queues
/// (`ipc`). Only these are read at each launch; all of them would be 16 system calls. A test of `house` knows who sets limits.
const RAISED: [LimitKind; 3] = [LimitKind::Memlock, LimitKind::Msgqueue, LimitKind::Nofile];

/// The limits of [`RAISED`] when this process began.
static LIMITS: OnceLock<Vec<Limit>> = OnceLock::new();

/// Remembers the limits that targets get, before anything raises one.
pub fn remember_limits() {
    LIMITS.get_or_init(|| current_limits(&RAISED));
}

/// Those that this process has changed since.
fn changed_limits() -> Vec<Limit> {
    let now = current_limits(&RAISED);
    LIMITS.get().into_iter().flatten().filter(|limit| !now.contains(limit)).copied().collect()
}

const PLACEHOLDER: &[u8] = b"{tmp}";

fn substituted(word: &OsStr, directory: Option<&Path>) -> OsString {
    let Some(directory) = directory else { return word.to_owned() };
    let bytes = word.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(PLACEHOLDER) {
            out.extend_from_slice(directory.as_os_str().as_bytes());
            at += PLACEHOLDER.len();
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    OsString::from_vec(out)
}

fn has_placeholder(word: &OsStr) -> bool {
    word.as_bytes().windows(PLACEHOLDER.len()).any(|window| window == PLACEHOLDER)
}

/// How the user wants a target to be launched.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Who it runs as: a name or a uid; without one the user who called sudo, else the caller.
    pub user: Option<String>,
    /// When it is ready.
    pub ready: ReadyWhen,
    /// A launch that is not ready after so many seconds is given up.
    pub timeout: Option<f64>,
    /// Variables of its environment, `NAME=VALUE`.
    pub env: Vec<OsString>,
}

impl Target {
    /// `command`, launched so.
    ///
    /// # Errors
    /// There is no such user, or a variable has no name.
    pub fn of(
        invocation: impl Into<Invocation>,
        command: Vec<OsString>,
        default_timeout: Option<Duration>,
    ) -> Result<Self, Failure> {
        let invocation = invocation.into();
        let variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let (identity, warnings) =
            Identity::for_invocation(invocation.user.as_deref(), borrowed).map_err(failed(Kind::Usage))?;
        let mut extra = Vec::new();
        for pair in &invocation.env {
            let bytes = pair.as_bytes();
            let at = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at > 0).ok_or_else(|| {
                Failure::new(Kind::Usage, format!("--env {}: expected NAME=VALUE", pair.to_string_lossy()))
            })?;
            extra.push((OsStr::from_bytes(&bytes[..at]).to_owned(), OsStr::from_bytes(&bytes[at + 1..]).to_owned()));
        }
        Ok(Self {
            command,
            environment: identity.environment(variables),
            identity,
            warnings: warnings.iter().map(ToString::to_string).collect(),
            ready: invocation.ready,
            mounts: Vec::new(),
            within: None,
            gains_nothing: false,
            extra,
            timeout: invocation.timeout.map(Duration::from_secs_f64).or(default_timeout),
        })
    }

    /// The conditions of one launch, and the fresh directory that must outlive it.
    pub fn spec(&self, end: EndPolicy, stdio: StdioPolicy) -> Result<(LaunchSpec, Option<FreshDirectory>), Failure> {
        let wanted =
            self.command.iter().chain(self.extra.iter().map(|(_, value)| value)).any(|word| has_placeholder(word));
        let fresh = wanted.then(|| FreshDirectory::new(&self.identity)).transpose().map_err(|error| {
            Failure::new(Kind::Machine, format!("cannot create a fresh directory for {{tmp}}: {error}"))
        })?;
        let directory = fresh.as_ref().map(FreshDirectory::path);
        let argv = self.command.iter().map(|word| substituted(word, directory)).collect();
        let mut env = self.environment.clone();
        for (name, value) in &self.extra {
            env.retain(|(present, _)| present != name);
            env.push((name.clone(), substituted(value, directory)));
        }
        let mut spec = LaunchSpec::new(argv, self.identity.clone(), env);
        spec.ready = self.ready.clone();
        spec.end = end;
        spec.stdio = stdio;
        spec.timeout = self.timeout;
        spec.limits = changed_limits();
        spec.mounts.clone_from(&self.mounts);
        spec.within = self.within.as_ref().map(MountNamespace::descriptor);
        spec.context.extend(self.gains_nothing.then_some(ContextStep::NoNewPrivileges));
        Ok((spec, fresh))
    }

    /// The same target with variables in its environment, instead of what it has under their names.
    #[must_use]
    pub fn with(&self, variables: &[(OsString, OsString)]) -> Self {
        let mut changed = self.clone();
        changed.extra.retain(|(present, _)| !variables.iter().any(|(name, _)| name == present));
        changed.extra.extend_from_slice(variables);
        changed
    }

    /// The same target in mounts of its own.
    #[must_use]
    pub fn seeing(&self, mounts: Vec<MountStep>) -> Self {
        Self { mounts, ..self.clone() }
    }

    /// The same target in mounts that begin as copies of those of another launch.
    #[must_use]
    pub fn within(&self, namespace: &MountNamespace) -> Self {
        Self { within: Some(namespace.clone()), ..self.clone() }
    }

    /// The same target, but that no program which it executes gives it privileges: for launches that see files which its own user made
    /// where others' are.
    #[must_use]
    pub fn gaining_nothing(&self) -> Self {
        Self { gains_nothing: true, ..self.clone() }
    }

    /// Another command in the place of this one, which is ready when it has ended.
    #[must_use]
    pub fn running(&self, command: Vec<OsString>) -> Self {
        Self { command, ready: ReadyWhen::Exit, ..self.clone() }
    }

    /// Whether it has mounts of its own.
    pub fn has_mounts(&self) -> bool {
        self.within.is_some() || !self.mounts.is_empty()
    }

    /// Its environment, with placeholders as they are.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let is_kept = |present: &OsString| !self.extra.iter().any(|(name, _)| name == present);
        let kept = self.environment.iter().filter(|(name, _)| is_kept(name));
        kept.chain(&self.extra).cloned().collect()
    }

    /// The file that the command runs, as its own search path finds it; the bare word where it finds none, or a directory of that path
    /// does not answer.
    pub fn program(&self) -> PathBuf {
        let word = self.command.first().map(PathBuf::from).unwrap_or_default();
        if word.as_os_str().as_bytes().contains(&b'/') {
            return word;
        }
        let path = self.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let places = path.iter().flat_map(std::env::split_paths).map(|directory| directory.join(&word));
        // A child looks: a directory of a user's path can lie on a file system that never answers.
        let mut looking = Deadline::new(LIMIT, |file: &[u8]| {
            let is_file = Path::new(OsStr::from_bytes(file)).is_file();
            Ok((vec![u8::from(is_file)], None))
        });
        for file in places {
            match looking.ask(file.as_os_str().as_bytes()) {
                Ok((answer, _)) if answer == [1] => return file,
                Ok(_) => {}
                // What stands behind it is not what the command would run.
                Err(_) => break,
            }
        }
        word
    }

    /// The command as text, for the manifest.
    pub fn words(&self) -> Vec<String> {
        self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// The user whose files are read and written when no target is launched: the one who called sudo, else the caller.
///
/// # Errors
/// There is no such user.
pub fn invoker() -> Result<Identity, Failure> {
    let variables: Vec<_> = std::env::vars_os().collect();
    let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    Identity::for_invocation(None, borrowed).map(|(identity, _)| identity).map_err(failed(Kind::Usage))
}

/// The launcher: this very program, once more.
pub fn launcher() -> ProcessLauncher {
    ProcessLauncher::new(LauncherProgram::this_program())
}

/// The failure of a launch that could not be made.
pub fn launch_failure(error: &LaunchError) -> Failure {
    let kind = match error {
        LaunchError::Exec(_) => Kind::Target,
        LaunchError::InvalidSpec(_) => Kind::Usage,
        LaunchError::StoppedBeforeStart => Kind::Interrupted,
        _ => Kind::Machine,
    };
    let failure = Failure::from_error(kind, error);
    match error {
        LaunchError::StoppedBeforeStart => Failure::new(kind, "interrupted before the command was started"),
        LaunchError::Exec(ExecError::NotFound { .. }) => {
            failure.hint("give the command after `--`, the program first; it is looked up in PATH as the target's user")
        }
        LaunchError::Exec(ExecError::PermissionDenied { .. }) => {
            failure.hint("`--user` says who the target runs as; that user must be able to reach and execute the file")
        }
        _ => failure,
    }
}

/// The failure of a launch that ran and was not ready.
pub fn not_ready(outcome: &LaunchOutcome) -> Option<Failure> {
    let error = outcome.require_ready().err()?;
    // Ctrl-C at a terminal reaches the target too, which may die of it first.
    if outcome.stop == slowpath_launch::StopReason::Requested || crate::interrupt::requested() {
        return Some(Failure::new(Kind::Interrupted, "interrupted before the command was ready"));
    }
    let failure = Failure::from_error(Kind::Target, &error);
    Some(if outcome.timed_out() {
        failure.hint("`--timeout SECONDS` allows more; `--ready WHEN` says what ready means")
    } else {
        failure
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hanging::Hanging;
    use slowpath_process::MountPoint;

    /// `true`, to be found in these directories.
    fn searched(path: &str) -> Target {
        let invocation = Invocation { user: None, ready: ReadyWhen::Exit, timeout: None, env: Vec::new() };
        let target = Target::of(invocation, vec!["true".into()], None).unwrap();
        Target { environment: vec![("PATH".into(), path.into())], ..target }
    }

    #[test]
    fn a_program_is_the_first_file_of_its_name_in_the_search_path() {
        assert_eq!(searched("/none:/proc:/usr/bin:/bin").program(), Path::new("/usr/bin/true"));
        assert_eq!(searched("/none").program(), Path::new("true"));
    }

    #[test]
    fn a_directory_of_the_search_path_that_never_answers_costs_a_deadline() {
        // It answers no look-up (FUSE_LOOKUP) after that of its own file.
        let Some(hanging) = Hanging::start("hanging_file.py", &["1"]) else { return };
        let pid = hanging.line.split(' ').next().expect("the file is mapped").to_owned();
        let mounts = MountPoint::parse(&std::fs::read(format!("/proc/{pid}/mountinfo")).unwrap());
        let at = mounts.into_iter().rfind(|mount| mount.kind == "fuse").expect("it is mounted").at;
        let target = searched(&format!("/none:/proc/{pid}/root{}:/usr/bin", at.display()));
        // In a thread that the test need not wait for.
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(target.program()));
        let result = receiver.recv_timeout(Duration::from_secs(60));
        drop(hanging);
        assert_eq!(result.expect("who looks is not held up for ever"), Path::new("true"));
    }

    #[test]
    fn every_placeholder_of_a_word_is_replaced() {
        let word = substituted(OsStr::new("--dir={tmp}/a:{tmp}/b"), Some(Path::new("/t")));
        assert_eq!(word, "--dir=/t/a:/t/b");
    }

    #[test]
    fn a_limit_that_slowpath_changed_for_itself_is_not_the_targets() {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        remember_limits();
        let (soft, hard) = getrlimit(Resource::RLIMIT_MSGQUEUE).unwrap();
        setrlimit(Resource::RLIMIT_MSGQUEUE, soft / 2, hard).unwrap();
        let changed = changed_limits();
        setrlimit(Resource::RLIMIT_MSGQUEUE, soft, hard).unwrap();
        assert_eq!(changed, [Limit { kind: LimitKind::Msgqueue, soft, hard }]);
        assert_eq!(changed_limits(), []);
    }

    #[test]
    fn a_treated_target_has_the_new_value_once_and_the_other_keeps_its_own() {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let arguments = Invocation {
            user: None,
            ready: ReadyWhen::Exit,
            timeout: None,
            env: vec!["TREATED_A=old".into(), "TREATED_B=b".into()],
        };
        let target = Target::of(arguments, vec!["true".into()], None).unwrap();
        let treated = target.with(&[pair("TREATED_A", "new"), pair("TREATED_C", "c")]);
        let own = |target: &Target| {
            let all = target.variables();
            all.into_iter().filter(|(name, _)| name.to_string_lossy().starts_with("TREATED_")).collect::<Vec<_>>()
        };
        let of_spec = |target: &Target| {
            let (spec, _) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture).unwrap();
            spec.env.into_iter().filter(|(name, _)| name.to_string_lossy().starts_with("TREATED_")).collect::<Vec<_>>()
        };
        let treated_has = [pair("TREATED_B", "b"), pair("TREATED_A", "new"), pair("TREATED_C", "c")];
        assert_eq!((own(&treated), of_spec(&treated)), (treated_has.to_vec(), treated_has.to_vec()));
        assert_eq!(own(&target), [pair("TREATED_A", "old"), pair("TREATED_B", "b")]);
    }
}
