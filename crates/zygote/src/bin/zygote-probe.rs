//! A zygote and clients for tests: `zygote-probe serve SOCKET`, whose forks take `ZYGOTE_PROBE_FORK_MS` longer; `zygote-probe ask SOCKET UID
//! GID WORD...` (`-` for no identity); `zygote-probe connect SOCKET`, which connects again and again and asks for nothing.

use slowpath_zygote::listener::Bound;
use slowpath_zygote::{AskedIdentity, Child, Client, Policy, Preloaded, SpawnRequest, readiness, serve};
use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// The work of children, and what a fork takes longer.
struct Jobs(Duration);

impl Preloaded for Jobs {
    fn before_fork(&mut self) {
        std::thread::sleep(self.0);
    }

    fn run(&mut self, child: &Child) -> i32 {
        let words: Vec<String> =
            child.arguments.iter().map(|word| String::from_utf8_lossy(&word.0).into_owned()).collect();
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        match words[..] {
            ["exit", code] => code.parse().unwrap_or(99),
            ["show"] => shown(),
            ["seed"] => said(&format!("{:?}\n", child.seed)),
            ["env", name] => said(&format!("{}\n", std::env::var(name).unwrap_or_default())),
            ["sleep", ..] => loop {
                std::thread::park();
            },
            ["panic"] => std::panic::resume_unwind(Box::new(())),
            // SAFETY: getppid takes nothing and touches no memory.
            ["getppid"] => unsafe { libc::getppid() },
            _ => 98,
        }
    }
}

fn said(text: &str) -> i32 {
    i32::from(std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()).is_err())
}

/// What the kernel has of the process.
fn shown() -> i32 {
    let mut text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for name in ["mnt", "net", "ipc", "uts", "cgroup", "pid", "user"] {
        let link = fs::read_link(format!("/proc/self/ns/{name}")).unwrap_or_default();
        let _ = writeln!(text, "ns {name} {}", link.display());
    }
    // Its own descriptor of the directory is the last of the list, and gone when it is read.
    let numbers = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<String> = numbers.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    for number in numbers {
        if let Ok(link) = fs::read_link(format!("/proc/self/fd/{number}")) {
            let _ = writeln!(text, "fd {number} {}", link.display());
        }
    }
    said(&text)
}

fn main() -> ExitCode {
    // As a program in C has it, and an exec leaves it to its children.
    // SAFETY: the default runs no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["serve", socket] => served(socket),
        ["connect", socket] => loop {
            let _ = Client::connect_to_anybody(Path::new(socket));
        },
        ["ask", socket, uid, gid, ref words @ ..] => asked(socket, uid, gid, words),
        _ => Err("usage".into()),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
            eprintln!("{error}{cause}");
            ExitCode::from(3)
        }
    }
}

fn served(socket: &str) -> Result<u8, Box<dyn std::error::Error>> {
    let policy = Policy::parse(&std::env::var(readiness::POLICY).unwrap_or_default())?;
    let bound = Bound::at(Path::new(socket))?;
    let fork = std::env::var("ZYGOTE_PROBE_FORK_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut jobs = Jobs(Duration::from_millis(fork));
    let (end, status) = serve(bound.socket().try_clone()?, &policy, &mut jobs)?;
    println!("{end:?} {} {} {}", status.started, status.failed, status.refused);
    Ok(0)
}

fn asked(socket: &str, uid: &str, gid: &str, words: &[&str]) -> Result<u8, Box<dyn std::error::Error>> {
    let identity = match (uid.parse(), gid.parse()) {
        (Ok(uid), Ok(gid)) => Some(AskedIdentity { uid, gid, groups: Vec::new() }),
        _ => None,
    };
    let arguments = ["job"].iter().chain(words).map(Into::into).collect();
    let request = SpawnRequest { arguments, identity, descriptors: vec![0, 1, 2], ..SpawnRequest::default() };
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let given = [input.as_fd(), output.as_fd(), error.as_fd()];
    // The tests' zygotes are those of other users too.
    let owner = fs::metadata(socket)?.uid();
    let child = Client::connect_to(Path::new(socket), Some(owner))?.spawn(request, &given)?;
    println!("{}", child.wait()?);
    Ok(0)
}
