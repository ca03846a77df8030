//! Small programs under the tracer: what they used, and that nothing of them changed.

use super::{TraceHooks, Traced, Wanted, serve};
use crate::trace_file::{Ended, LeftOutReason, Trace};
use slowpath_launch::Hooks;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Runs a command under the tracer. `until`: stops the trace once it is true.
fn traced(mut command: Command, all_objects: bool, until: impl Fn() -> bool + 'static) -> (Output, Traced) {
    let (pid_in, pid_out) = nix::unistd::pipe().unwrap();
    let (waits, release) = nix::unistd::pipe().unwrap();
    let (pid_fd, gate) = (pid_out.as_raw_fd(), waits.as_raw_fd());
    // SAFETY: system calls on descriptors that are open, in a process of one thread. The target is a grandchild: the end of a child is
    // reported to a tracer of the same process alone.
    unsafe {
        command.pre_exec(move || {
            let target = libc::fork();
            if target != 0 {
                libc::close_range(3, libc::c_uint::MAX, 0);
                let mut status = 0;
                libc::waitpid(target, &raw mut status, 0);
                libc::_exit(if libc::WIFEXITED(status) {
                    libc::WEXITSTATUS(status)
                } else {
                    128 + libc::WTERMSIG(status)
                });
            }
            let pid = libc::getpid().to_ne_bytes();
            let mut byte = [0u8];
            if libc::write(pid_fd, pid.as_ptr().cast(), 4) == 4 && libc::read(gate, byte.as_mut_ptr().cast(), 1) == 1 {
                return Ok(());
            }
            Err(std::io::Error::last_os_error())
        })
    };
    let running = std::thread::spawn(move || command.output());
    let mut pid = [0; 4];
    File::from(pid_in).read_exact(&mut pid).unwrap();
    let (ours, others) = UnixStream::pair().unwrap();
    std::thread::spawn(move || serve(others));
    let mut hooks = TraceHooks::new(Wanted { all_objects }, ours, Box::new(until), || false);
    hooks.before_release(i32::from_ne_bytes(pid)).unwrap();
    File::from(release).write_all(&[1]).unwrap();
    let began = Instant::now();
    while hooks.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && began.elapsed() < Duration::from_secs(60)
    {
        hooks.on_tick();
        std::thread::sleep(Duration::from_millis(5));
    }
    let traced = hooks.finish().unwrap();
    drop((pid_out, waits));
    (running.join().unwrap().unwrap(), traced)
}

fn never() -> bool {
    false
}

/// A program of C, or none without a compiler.
fn compiled(place: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (code, program) = (place.join(format!("{name}.c")), place.join(name));
    std::fs::write(&code, source).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-fno-inline", "-fno-ipa-icf", "-pthread", "-o"]).arg(&program).arg(&code).args(flags);
    let Ok(done) = compiler.output() else {
        println!("skipped: there is no gcc");
        return None;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(program)
}

/// Names of the first uses in a file, by its name.
fn used<'a>(trace: &'a Trace, file: &str) -> Vec<&'a str> {
    let is_of_it = |object: u32| trace.objects[object as usize].path.ends_with(file);
    let uses = trace.first_uses.iter().filter(|used| is_of_it(used.object));
    uses.filter_map(|used| used.name.as_deref()).collect()
}

/// Those of `names` that were used, in the order of their first use.
fn among<'a>(used: &[&'a str], names: &[&str]) -> Vec<&'a str> {
    used.iter().copied().filter(|name| names.contains(name)).collect()
}

const CALLS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int sink;
void never_called(void) { sink = 9; }
void second(void) { sink++; }
void first(void) { sink++; }
void in_thread(void) { __atomic_fetch_add(&sink, 1, __ATOMIC_RELAXED); }
void in_child(void) { sink++; }
void last(void) { sink++; }
void *thread(void *unused) { for (int i = 0; i < 1000; i++) in_thread(); return unused; }
int main(void) {
    for (int i = 0; i < 100000; i++) { first(); second(); }
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, thread, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    pid_t pid = fork();
    if (!pid) { in_child(); first(); _exit(3); }
    int status = 0;
    waitpid(pid, &status, 0);
    last();
    printf("%d %d\n", sink, WEXITSTATUS(status));
    return 7;
}
"#;

#[test]
fn functions_are_seen_once_in_the_order_of_their_first_use_in_threads_and_children() {
    let place = tempfile::tempdir().unwrap();
    for (name, flags) in
        [("pie", &["-pie"][..]), ("fixed", &["-no-pie"]), ("static", &["-static"]), ("cet", &["-fcf-protection=full"])]
    {
        let Some(program) = compiled(place.path(), name, CALLS, flags) else { return };
        let (output, Traced { trace, released }) = traced(Command::new(&program), false, never);
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()),
            (Some(7), "204001 3\n"),
            "{name}"
        );
        assert_eq!((trace.ended, released, trace.lost), (Ended::CommandEnded, 0, 0));
        let expected = ["main", "first", "second", "thread", "in_thread", "in_child", "last"];
        let names = used(&trace, name);
        assert_eq!(among(&names, &[&expected[..], &["never_called"]].concat()), expected, "{name}");
        let child = trace.first_uses.iter().find(|used| used.name.as_deref() == Some("in_child")).unwrap();
        assert_ne!(child.pid, trace.first_uses[0].pid);
        assert!(trace.first_uses.is_sorted_by_key(|used| used.time), "{name}: times do not go back");
    }
}

#[test]
fn a_stripped_program_is_traced_by_its_frame_descriptions() {
    let place = tempfile::tempdir().unwrap();
    let Some(whole) = compiled(place.path(), "whole", CALLS, &[]) else { return };
    let Some(stripped) = compiled(place.path(), "stripped", CALLS, &["-s"]) else { return };
    let addresses = |program: &Path| {
        let (output, Traced { trace, .. }) = traced(Command::new(program), false, never);
        assert_eq!(output.status.code(), Some(7));
        // What the C run-time brings has no descriptions, and symbols of its own.
        let own = |name: &Option<String>| {
            name.as_ref()
                .is_none_or(|name| !name.starts_with('_') && !name.contains("tm_clones") && name != "frame_dummy")
        };
        let own = trace.first_uses.iter().filter(|used| own(&used.name) && used.size > 0);
        own.map(|used| (used.address, used.size)).collect::<Vec<_>>()
    };
    let (by_symbols, by_descriptions) = (addresses(&whole), addresses(&stripped));
    assert!(by_symbols.len() >= 7);
    for function in by_symbols {
        assert!(by_descriptions.contains(&function), "{function:x?} in {by_descriptions:x?}");
    }
}

#[test]
fn what_is_loaded_later_is_traced_with_all_other_objects() {
    let place = tempfile::tempdir().unwrap();
    let library = "int helper(int x) { return x * 3; }\nint entry(int x) { return helper(x) + 1; }\nint unused(int x) { return x; }";
    if compiled(place.path(), "late.so", library, &["-shared", "-fPIC"]).is_none() {
        return;
    }
    let source = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        int (*entry)(int) = (int (*)(int))dlsym(library, "entry");
        sum += entry(i);
        dlclose(library);
    }
    printf("%d\n", sum);
    return argc;
}
"#;
    let program = compiled(place.path(), "loads", source, &[]).unwrap();
    let mut command = Command::new(&program);
    command.arg(place.path().join("late.so"));
    let (output, Traced { trace, .. }) = traced(command, true, never);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b"12\n"[..]));
    let late = among(&used(&trace, "late.so"), &["entry", "helper", "unused"]);
    assert_eq!(late, ["entry", "helper"]);
    assert!(used(&trace, "libc.so.6").contains(&"printf"), "the C library is one of all objects");
    let files: Vec<&str> = trace.objects.iter().map(|object| object.path.as_str()).collect();
    assert!(files.iter().any(|path| path.contains("ld-linux")), "{files:?}");
    assert_eq!(trace.left_out, []);
}

const SIGNALS: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
volatile int handled, sink;
void on_trap(int signal) { handled++; }
void fresh_while_blocked(void) { sink++; }
void fresh_before_own_breakpoint(void) { sink++; }
int main(void) {
    signal(SIGTRAP, on_trap);
    raise(SIGTRAP);
    printf("handled %d\n", handled);
    fresh_before_own_breakpoint();
    __asm__ volatile("int3");
    printf("handled %d\n", handled);
    sigset_t all, pending, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    fresh_while_blocked();
    kill(getpid(), SIGTRAP);
    sigpending(&pending);
    sigprocmask(SIG_BLOCK, 0, &all);
    printf("blocked %d pending %d handled %d\n", sigismember(&all, SIGTRAP), sigismember(&pending, SIGTRAP), handled);
    fflush(stdout);
    return 0;
}
"#;

#[test]
fn a_program_keeps_its_own_traps_and_its_blocked_signals() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled(place.path(), "signals", SIGNALS, &[]) else { return };
    let plain = Command::new(&program).output().unwrap();
    let (output, Traced { trace, .. }) = traced(Command::new(&program), false, never);
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&plain.stdout));
    assert_eq!(output.status, plain.status);
    let names = used(&trace, "signals");
    assert_eq!(among(&names, &["fresh_before_own_breakpoint", "fresh_while_blocked"]).len(), 2);
}

#[test]
fn programs_that_children_execute_are_traced_each_from_its_beginning() {
    let place = tempfile::tempdir().unwrap();
    let source = r#"
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
volatile int sink;
void work(void) { sink++; }
int main(int argc, char **argv) {
    work();
    if (argc > 1) return system(argv[1]) == 0 ? 5 : 6;
    return 0;
}
"#;
    let Some(program) = compiled(place.path(), "again", source, &[]) else { return };
    let mut command = Command::new(&program);
    command.arg(&program);
    let (output, Traced { trace, .. }) = traced(command, false, never);
    assert_eq!(output.status.code(), Some(5));
    let works: Vec<u32> =
        trace.first_uses.iter().filter(|used| used.name.as_deref() == Some("work")).map(|used| used.pid).collect();
    assert_eq!(works.len(), 2, "once in each process that executed the program");
    assert!(trace.programs.len() >= 2 && trace.objects.iter().filter(|object| object.executed).count() >= 1);
}

#[test]
fn a_stopped_trace_leaves_the_program_whole_and_running() {
    let place = tempfile::tempdir().unwrap();
    let source = r#"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
volatile int sink, go;
void early(void) { sink++; }
void late(void) { sink += 2; }
void late_in_thread(void) { sink += 3; }
void *thread(void *unused) { while (!go) early(); late_in_thread(); return unused; }
int main(int argc, char **argv) {
    char tracer[4096] = "";
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
    FILE *started = fopen(argv[1], "w");
    fclose(started);
    for (;;) {
        FILE *status = fopen("/proc/self/status", "r");
        size_t length = fread(tracer, 1, sizeof tracer - 1, status);
        tracer[length] = 0;
        fclose(status);
        if (strstr(tracer, "TracerPid:\t0\n")) break;
        usleep(1000);
    }
    late();
    go = 1;
    pthread_join(other, 0);
    printf("whole\n");
    return 9;
}
"#;
    let Some(program) = compiled(place.path(), "goes-on", source, &[]) else { return };
    let started = place.path().join("started");
    let mut command = Command::new(&program);
    command.arg(&started);
    let (output, Traced { trace, released }) = traced(command, true, move || started.exists());
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(9), &b"whole\n"[..]));
    assert_eq!((trace.ended, released), (Ended::Stopped, 1));
    let names = used(&trace, "goes-on");
    assert!(names.contains(&"main") && !names.contains(&"late"), "{names:?}");
}

#[test]
fn a_stopped_trace_lets_a_process_go_whose_first_thread_has_ended() {
    let place = tempfile::tempdir().unwrap();
    let source = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
volatile int sink;
void late(void) { sink++; }
char *started;
static int says(const char *name, const char *what) {
    char text[4096];
    FILE *file = fopen(name, "r");
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = 0;
    fclose(file);
    return strstr(text, what) != 0;
}
void *thread(void *unused) {
    while (!says("/proc/self/status", "State:\tZ")) usleep(1000);
    fclose(fopen(started, "w"));
    while (!says("/proc/thread-self/status", "TracerPid:\t0\n")) usleep(1000);
    late();
    write(1, "whole\n", 6);
    exit(6);
    return unused;
}
int main(int argc, char **argv) {
    pthread_t other;
    started = argv[1];
    pthread_create(&other, 0, thread, 0);
    pthread_exit(0);
}
"#;
    let Some(program) = compiled(place.path(), "headless", source, &[]) else { return };
    let started = place.path().join("started");
    let mut command = Command::new(&program);
    command.arg(&started);
    let (output, Traced { trace, .. }) = traced(command, false, move || started.exists());
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(6), &b"whole\n"[..]));
    assert_eq!(trace.ended, Ended::Stopped);
}

#[test]
fn a_child_that_outlives_the_command_is_let_go_whole() {
    let place = tempfile::tempdir().unwrap();
    let source = r#"
#include <stdio.h>
#include <unistd.h>
volatile int sink;
void late(void) { sink++; }
int main(void) {
    int gate[2];
    if (pipe(gate)) return 1;
    if (!fork()) {
        char byte;
        close(gate[1]);
        // Ends when the command has ended.
        if (read(gate[0], &byte, 1) < 0) return 1;
        usleep(200000);
        late();
        write(1, "child\n", 6);
        return 0;
    }
    write(1, "command\n", 8);
    return 4;
}
"#;
    let Some(program) = compiled(place.path(), "leaves", source, &[]) else { return };
    let (output, Traced { trace, released }) = traced(Command::new(&program), false, never);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(4), &b"command\nchild\n"[..]));
    assert_eq!((trace.ended, released), (Ended::CommandEnded, 1));
}

#[test]
fn a_script_is_traced_as_its_interpreter_and_a_file_without_functions_is_named() {
    let place = tempfile::tempdir().unwrap();
    let source = "void _start(void) { __asm__ volatile(\"mov $60, %eax\\n xor %edi, %edi\\n syscall\"); }";
    let flags = ["-nostdlib", "-static", "-s", "-fno-asynchronous-unwind-tables", "-Wl,--build-id=none"];
    let Some(program) = compiled(place.path(), "bare", source, &flags) else { return };
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("{}; echo done", program.display()));
    let (output, Traced { trace, .. }) = traced(shell, false, never);
    assert_eq!(output.stdout, b"done\n");
    let left_out: Vec<_> = trace.left_out.iter().map(|one| (one.path.as_str(), one.reason)).collect();
    assert_eq!(left_out, [(program.to_str().unwrap(), LeftOutReason::NoFunctions)]);
    assert!(trace.program().is_some());
}

#[test]
fn nothing_is_written_into_a_program_with_rights_that_its_user_has_not() {
    use std::os::unix::fs::PermissionsExt;
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: a set-user-ID program of root's needs root");
        return;
    }
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let source = r#"
#include <stdio.h>
#include <unistd.h>
int shown(void) { return printf("%d\n", (int)geteuid()); }
int main(void) { return shown() < 0; }
"#;
    let Some(program) = compiled(place.path(), "powerful", source, &[]) else { return };
    for (mode, is_traced, said) in [(0o755, true, "65534\n"), (0o4755, false, "0\n")] {
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("/usr/bin/env");
        command.arg(&program).uid(65534).gid(65534);
        let (output, traced) = traced(command, false, never);
        assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{mode:o}");
        assert_eq!(among(&used(&traced.trace, "powerful"), &["main", "shown"]).len(), if is_traced { 2 } else { 0 });
        let left_out = traced.trace.left_out.iter();
        let mut left_out = left_out.filter(|one| one.path.ends_with("powerful")).map(|one| one.reason);
        assert_eq!(left_out.next(), (!is_traced).then_some(LeftOutReason::Protected), "{mode:o}");
    }
}
