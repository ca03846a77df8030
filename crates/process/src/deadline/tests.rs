use super::*;
use crate::ProcessFiles;
use nix::unistd::{geteuid, pipe};
use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::path::PathBuf;

#[test]
fn one_child_answers_any_number_of_requests_with_bytes_descriptors_and_errors() {
    let mut deadline = Deadline::new(LIMIT, |request: &[u8]| match request {
        b"pid" => Ok((std::process::id().to_ne_bytes().to_vec(), None)),
        b"none" => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        size => Ok((vec![7; size.len() << 20], Some(File::open("/proc/self/comm")?.into()))),
    });
    let first = deadline.ask(b"pid").unwrap().0;
    assert_ne!(first, std::process::id().to_ne_bytes());
    let (bytes, file) = deadline.ask(&[1; 4]).unwrap();
    assert_eq!((bytes.len(), file.is_some()), (4 << 20, true));
    let failed = deadline.ask(b"none").unwrap_err();
    assert!(matches!(&failed, DeadlineError::Failed(error) if error.kind() == io::ErrorKind::NotFound), "{failed:?}");
    assert_eq!(deadline.ask(b"pid").unwrap().0, first);
}

#[test]
fn a_child_that_hangs_is_left_and_the_next_request_gets_another() {
    let (gate, _opener) = pipe().unwrap();
    let gate = gate.as_raw_fd();
    // The next child is forked and answers within it, also on a busy machine.
    let mut deadline = Deadline::new(Duration::from_secs(1), move |request: &[u8]| {
        if request == b"hang" {
            std::thread::sleep(Duration::from_secs(3600));
        }
        // The parent's descriptors are not there.
        // SAFETY: fcntl takes integers.
        let is_open = unsafe { libc::fcntl(gate, libc::F_GETFD) } >= 0 && gate > 3;
        Ok((vec![u8::from(is_open)], None))
    });
    for round in 1..=2 {
        let error = deadline.ask(b"hang").unwrap_err();
        assert!(matches!(error, DeadlineError::Late(_)), "{error:?}");
        assert_eq!((deadline.hangs(), deadline.ask(b"go on").unwrap().0), (round, vec![0]));
    }
}

#[test]
fn a_child_that_ends_is_an_error_and_not_a_hang() {
    let mut deadline = Deadline::new(LIMIT, |_: &[u8]| -> io::Result<DeadlineAnswer> {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) }
    });
    assert!(matches!(deadline.ask(b""), Err(DeadlineError::Helper { .. })));
    assert_eq!(deadline.hangs(), 0);
}

#[test]
fn only_regular_files_are_opened_and_a_pipe_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let (fifo, plain) = (directory.path().join("fifo"), directory.path().join("plain"));
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    File::create(&plain).unwrap().write_all(b"12345").unwrap();
    let mut files = ProcessFiles::default();
    let opened = files.open(&plain).unwrap();
    let own = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&plain).unwrap());
    assert_eq!((opened.ino, opened.size, opened.uid), (own, 5, geteuid().as_raw()));
    let mut text = String::new();
    File::from(opened.file).read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), files.read(&plain, 3).unwrap()), ("12345", b"123".to_vec()));
    for other in [fifo, directory.path().to_owned(), PathBuf::from("/dev/null"), PathBuf::from("/nowhere")] {
        assert!(matches!(files.open(&other), Err(DeadlineError::Failed(_))), "{}", other.display());
    }
}

/// `_IOWR(0xAA, ..)` of include/uapi/linux/userfaultfd.h.
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;

/// A process with a page that nobody serves, and its address: who reads it waits until the process ends. `None` where this user may make
/// none.
fn unserved() -> Option<(Pid, usize)> {
    let (ready, report) = pipe().ok()?;
    // SAFETY: at a place that the kernel chooses.
    let page = unsafe {
        let (read, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        libc::mmap(std::ptr::null_mut(), 4096, read, private, -1, 0)
    };
    // SAFETY: the child calls system calls only, and ends without a destructor.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => {
            drop(report);
            let mut byte = [0];
            let is_there = File::from(ready).read(&mut byte).is_ok_and(|read| read == 1) && byte[0] == 1;
            if is_there {
                return Some((child, page as usize));
            }
            let _ = kill(child, Signal::SIGKILL);
            let _ = waitpid(child, None);
            None
        }
        ForkResult::Child => {
            // SAFETY: system calls on structures of their sizes and on a page of ours, which this process does not read.
            let done = unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let descriptor = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) as i32;
                let mut api = [0xaau64, 0, 0];
                // UFFDIO_REGISTER_MODE_MISSING
                let mut register = [page as u64, 4096, 1, 0];
                descriptor >= 0
                    && libc::ioctl(descriptor, UFFDIO_API, api.as_mut_ptr()) == 0
                    && libc::ioctl(descriptor, UFFDIO_REGISTER, register.as_mut_ptr()) == 0
            };
            let _ = nix::unistd::write(&report, &[u8::from(done)]);
            loop {
                nix::unistd::pause();
            }
        }
    }
}

#[test]
fn memory_that_nobody_serves_is_late_and_the_next_read_is_not() {
    let Some((hung, page)) = unserved() else {
        println!("skipped: no userfaultfd(2) for the kernel's own faults here");
        return;
    };
    let mut deadline = Deadline::new(LIMIT, move |request: &[u8]| {
        let own = [0u8; 16];
        let (pid, base) =
            if request == b"hung" { (hung, page) } else { (nix::unistd::getpid(), own.as_ptr() as usize) };
        let mut read = [1u8; 16];
        let remote = [nix::sys::uio::RemoteIoVec { base, len: 16 }];
        let length = nix::sys::uio::process_vm_readv(pid, &mut [IoSliceMut::new(&mut read)], &remote)?;
        Ok((read[..length].to_vec(), None))
    });
    let began = Instant::now();
    let (late, own) = (deadline.ask(b"hung"), deadline.ask(b"own"));
    let took = began.elapsed();
    kill(hung, Signal::SIGKILL).unwrap();
    waitpid(hung, None).unwrap();
    assert!(matches!(late, Err(DeadlineError::Late(_))), "{late:?}");
    assert_eq!((own.unwrap().0, deadline.hangs()), (vec![0; 16], 1));
    assert!(took < Duration::from_secs(60), "{took:?}");
    drop(deadline);
}
