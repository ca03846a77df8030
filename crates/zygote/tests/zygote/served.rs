//! A zygote that runs for a test.

use slowpath_zygote::{Client, SpawnError, SpawnRequest, Spawned, Status};
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing here takes so long; a test that waits longer fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Served {
    pub place: TempDir,
    pub process: Child,
}

impl Served {
    /// Under this user, with this policy.
    pub fn new(user: Option<u32>, policy: &str) -> Self {
        Self::with(user, policy, |_| {})
    }

    pub fn with(user: Option<u32>, policy: &str, change: impl FnOnce(&mut Command)) -> Self {
        Self::begun(user, policy, change, drop)
    }

    /// Gives the connection that found it ready away.
    pub fn held(user: Option<u32>, policy: &str, first: impl FnOnce(Client)) -> Self {
        Self::begun(user, policy, |_| {}, first)
    }

    fn begun(user: Option<u32>, policy: &str, change: impl FnOnce(&mut Command), first: impl FnOnce(Client)) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        if let Some(user) = user {
            std::os::unix::fs::chown(place.path(), Some(user), Some(user)).unwrap();
        }
        // Where every user can execute it. Written by another process: one that another thread of this one forks meanwhile would have the
        // file open for writing, and the kernel executes no such file (ETXTBSY).
        let probe = place.path().join("probe");
        let copied =
            Command::new("install").arg("-m755").arg(env!("CARGO_BIN_EXE_zygote-probe")).arg(&probe).status().unwrap();
        assert!(copied.success());
        let mut command = Command::new(&probe);
        command.arg("serve").arg(place.path().join("s")).env("SLOWPATH_ZYGOTE_POLICY", policy);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        change(&mut command);
        let process = command.spawn().unwrap();
        let served = Self { place, process };
        let mut client = None;
        eventually(|| {
            client = served.client().ok();
            client.is_some()
        });
        first(client.unwrap());
        served
    }

    pub fn socket(&self) -> PathBuf {
        self.place.path().join("s")
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn spawn(&self, request: SpawnRequest) -> Result<Spawned, SpawnError> {
        self.client()?.spawn(request, &[])
    }

    /// A connection, also to the zygote of another user.
    pub fn client(&self) -> Result<Client, SpawnError> {
        let owner = fs::metadata(self.place.path()).unwrap().uid();
        Client::connect_to(&self.socket(), Some(owner))
    }

    pub fn status(&self) -> Status {
        self.client().unwrap().status().unwrap()
    }

    /// What a child says on its standard output, and how it ended.
    pub fn said(&self, words: &[&str], change: impl FnOnce(&mut SpawnRequest)) -> Result<String, SpawnError> {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        let mut request = job(words);
        request.descriptors = vec![1];
        change(&mut request);
        let child = self.client()?.spawn(request, &[writer.as_fd()])?;
        drop(writer);
        let text = read_all(reader);
        child.wait()?;
        Ok(text)
    }

    /// Asks as another user.
    pub fn asked_by(&self, user: u32, words: &[&str]) -> std::process::Output {
        let mut command = Command::new(self.place.path().join("probe"));
        command.arg("ask").arg(self.socket()).args(words).uid(user).gid(user);
        command.output().unwrap()
    }

    /// Waits for its end, and what it says then.
    pub fn ended(mut self) -> String {
        eventually(|| self.process.try_wait().unwrap().is_some());
        let mut text = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        text.trim_end().to_owned()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: takes integers; the process is this test's own and not reaped.
        unsafe { libc::kill(self.process.id().cast_signed(), signal) };
    }

    /// Processes whose parent it is.
    pub fn children(&self) -> Vec<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.process.id());
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }

    /// The descriptors that it has once it serves and nobody is connected. The connection that found it ready may still be open in it when
    /// [`Served::new`] returns.
    pub fn descriptors_unconnected(&self) -> usize {
        self.status();
        eventually(|| self.sockets() == 1);
        self.descriptors()
    }

    /// Sockets besides the standard descriptors, which are the caller's: the listener and the connections.
    fn sockets(&self) -> usize {
        let place = PathBuf::from(format!("/proc/{}/fd", self.process.id()));
        let numbers = fs::read_dir(&place).unwrap();
        let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let links = numbers
            .filter(|number| *number > 2)
            .filter_map(|number| fs::read_link(place.join(number.to_string())).ok());
        // One that has two numbers is one.
        links.filter(|to| to.to_string_lossy().starts_with("socket:")).collect::<BTreeSet<_>>().len()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn job(words: &[&str]) -> SpawnRequest {
    SpawnRequest { arguments: ["job"].iter().chain(words).map(Into::into).collect(), ..SpawnRequest::default() }
}

pub fn read_all(from: OwnedFd) -> String {
    let mut text = String::new();
    File::from(from).read_to_string(&mut text).unwrap();
    text
}

#[track_caller]
pub fn eventually(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
