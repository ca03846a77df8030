//! Filters in real processes: what was installed is what the process has, and what the kernel shows of it.

use slowpath_seccomp::install::{Speculation, forbid_new_privileges, install};
use slowpath_seccomp::{ProcessError, Program, built_in, of_process};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

fn sleeper(programs: Vec<Program>) -> Child {
    let mut command = Command::new("/bin/sleep");
    command.arg("60").stdin(Stdio::null()).stdout(Stdio::null());
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            forbid_new_privileges()?;
            programs.iter().try_for_each(|program| install(program, Speculation::Allowed))
        });
    }
    command.spawn().unwrap()
}

fn ended<T>(mut child: Child, look: impl FnOnce(u32) -> T) -> T {
    let looked = look(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    looked
}

#[test]
fn the_filters_of_a_process_are_those_that_it_was_given_and_it_runs_on() {
    // SAFETY: takes and touches nothing.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: the kernel shows filters to root only");
        return;
    }
    let given = vec![
        built_in::checks_arguments(&[libc::SYS_getppid]).unwrap(),
        built_in::checks_arguments(&[libc::SYS_read, libc::SYS_openat]).unwrap(),
    ];
    let (read, state) = ended(sleeper(given.clone()), |pid| {
        let read = of_process(pid);
        let tracer = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        (read, tracer)
    });
    match read {
        Ok(read) => assert_eq!(read, given),
        Err(ProcessError::NotShown(_) | ProcessError::Privilege(_)) => {
            println!("skipped: this kernel shows no filters here")
        }
        Err(other) => panic!("{other}"),
    }
    assert!(state.contains("TracerPid:\t0"), "{state}");
    assert!(state.contains("Seccomp:\t2"), "{state}");
}

#[test]
fn a_process_without_a_filter_and_none_at_all_are_told_apart() {
    let plain = Command::new("/bin/sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    if std::fs::read_to_string("/proc/self/status").unwrap().contains("Seccomp:\t0") {
        assert!(matches!(ended(plain, of_process), Err(ProcessError::NoFilter(_))));
    } else {
        ended(plain, |_| println!("skipped: this test runs under a filter itself"));
    }
    assert!(matches!(of_process(4_194_305), Err(ProcessError::NoProcess(_))));
}

#[test]
fn an_allow_list_refuses_what_it_does_not_list() {
    let program = built_in::allow_list(&[libc::SYS_getppid, libc::SYS_exit_group]).unwrap();
    // SAFETY: the child makes system calls only, allocates nothing, and ends without running anything of the parent's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let installed = forbid_new_privileges().and_then(|()| install(&program, Speculation::AsTheKernelLikes)).is_ok();
        // SAFETY: calls that take and touch nothing.
        let (allowed, refused) = unsafe { (libc::syscall(libc::SYS_getppid), libc::syscall(libc::SYS_gettid)) };
        let is_right = installed && allowed > 0 && refused == -1;
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!is_right)) }
    }
    let mut status = 0;
    // SAFETY: the child is this process's own, and the kernel writes one integer.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (child, true, 0));
}
