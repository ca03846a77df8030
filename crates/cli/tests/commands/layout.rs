//! `slowpath layout`: traces of real programs, orders that real linkers take, and scores against the rebuilt binary.

use crate::running::*;
use crate::traces::{command_name, processes_with};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Functions of the program.
const FUNCTIONS: usize = 320;
/// Every so many of them is used.
const STEP: usize = 8;

/// A program of many functions with a body of some hundred bytes; it uses every eighth, last ones first. With an argument it uses others.
fn source() -> String {
    let mut text = "#include <stdio.h>\nvolatile unsigned sink;\n".to_owned();
    for n in 0..FUNCTIONS {
        let body: String = (0..24).map(|line| format!("  sink = sink * {} + {n};\n", 3 + line * 2)).collect();
        text.push_str(&format!("__attribute__((noinline)) void work{n}(void) {{\n{body}}}\n"));
    }
    let calls =
        |from: usize| -> String { (from..FUNCTIONS).step_by(STEP).rev().map(|n| format!("work{n}(); ")).collect() };
    text.push_str(&format!(
        "int main(int argc, char **argv) {{ (void)argv; if (argc > 1) {{ {} }} else {{ {} }}\n printf(\"%u\\n\", sink); return 3; }}\n",
        calls(1),
        calls(0)
    ));
    text
}

fn built(place: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let (code, program) = (place.join("program.c"), place.join(name));
    fs::write(&code, source()).unwrap();
    let done = Command::new("gcc").args(["-ffunction-sections", "-o"]).arg(&program).arg(&code).args(flags).output();
    let Ok(done) = done else {
        println!("skipped: there is no gcc");
        return None;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(program)
}

fn traced(trace: &Path, options: &[&str], command: &[&str]) -> Done {
    run(slowpath(["layout", "trace", "-o"]).arg(trace).args(options).arg("--").args(command))
}

/// Pages of the first order of a score.
fn pages(score: &serde_json::Value, name: &str, of: &str) -> f64 {
    let orders = score["orders"].as_array().unwrap();
    orders.iter().find(|order| order["name"] == name).unwrap()[of]["pages"].as_f64().unwrap()
}

fn score(binary: &Path, traces: &[&Path], more: &[&str]) -> serde_json::Value {
    let done = run(slowpath(["layout", "score", "--json"]).arg(binary).args(traces).args(more));
    done.succeeds();
    done.json()
}

#[test]
fn an_order_brings_the_pages_that_were_scored_before_the_rebuild_with_every_linker() {
    let place = place();
    let Some(before) = built(place.path(), "before", &[]) else { return };
    let trace = place.path().join("trace");
    let done = traced(&trace, &[], &[before.to_str().unwrap()]);
    let plain = Command::new(&before).output().unwrap();
    assert_eq!(
        (done.code(), done.stdout.as_bytes()),
        (3, plain.stdout.as_slice()),
        "status and output are the program's"
    );
    let predicted = score(&before, &[&trace], &[]);
    let (now, then) = (pages(&predicted, "current", "train"), pages(&predicted, "first-use", "train"));
    assert!(then < now * 0.4, "{then} of {now} pages");
    for (linker, option) in
        [("gold", "-Wl,--section-ordering-file="), ("bfd", "-Wl,-T,"), ("lld", "-Wl,--symbol-ordering-file=")]
    {
        if Command::new(format!("ld.{linker}")).arg("--version").output().is_err() {
            println!("skipped: there is no {linker}");
            continue;
        }
        let order = place.path().join(linker);
        let done = run(slowpath(["layout", "order", "--json", "--for", linker, "-o"]).arg(&order).arg(&trace));
        done.succeeds();
        let made = done.json();
        assert_eq!((&made["stale"], &made["held_out"]), (&0.into(), &false.into()));
        let flags = [format!("-fuse-ld={linker}"), format!("{option}{}", order.display())];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let after = built(place.path(), &format!("after-{linker}"), &flags).unwrap();
        let again = place.path().join("again");
        let rebuilt = traced(&again, &[], &[after.to_str().unwrap()]);
        assert_eq!((rebuilt.code(), rebuilt.stdout.as_bytes()), (3, plain.stdout.as_slice()));
        let counted = pages(&score(&after, &[&again], &[]), "current", "train");
        println!("{linker}: {now} pages before, {then} predicted, {counted} after");
        // GNU ld's functions stand in a section of their own, which begins a page.
        assert!((counted - then).abs() <= (then * 0.05).max(2.0), "{linker}: {counted} pages, {then} predicted");
    }
}

#[test]
fn other_work_is_held_out_and_the_best_order_chosen_by_it() {
    let place = place();
    let Some(program) = built(place.path(), "program", &[]) else { return };
    let name = program.to_str().unwrap();
    let (one, other) = (place.path().join("one"), place.path().join("other"));
    traced(&one, &["--quiet"], &[name]);
    traced(&other, &["--quiet"], &[name, "other"]);
    let scored = score(&program, &[&one, &other], &[]);
    assert_eq!(scored["traces"], 2);
    let (train, held_out) = (pages(&scored, "common-first", "train"), pages(&scored, "common-first", "held_out"));
    // The works share little but the C run-time: an order of one says nothing of the other.
    assert!(train < held_out, "{train} pages trained, {held_out} held out");
    let order = place.path().join("order");
    let done = run(slowpath(["layout", "order", "--json", "--for", "lld", "-o"]).arg(&order).args([&one, &other]));
    assert_eq!((&done.json()["held_out"], &done.json()["traces"]), (&true.into(), &2.into()));
    let given = score(&program, &[&one], &["--order", order.to_str().unwrap()]);
    assert_eq!(given["stale"], 0);
    assert!(pages(&given, "given", "train") < pages(&given, "current", "train"));
}

#[test]
fn a_target_that_is_traced_already_is_refused_with_the_reason() {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: there is no strace");
        return;
    }
    let place = place();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=none", "-o", "/dev/null", SLOWPATH, "layout", "trace", "-o"]);
    let done = run(command.arg(place.path().join("trace")).args(["--", "/bin/true"]));
    done.fails_with(3, &["is already traced by process", "outside of the other tracer"]);
    assert!(!place.path().join("trace").exists());
}

fn is_shell(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sh\n")
}

/// A shell that says that it runs, and goes on until there is a file `go`.
fn waiting(place: &Path) -> String {
    let place = place.display();
    format!(
        "trap '' INT; echo > {place}/runs; n=0; while [ ! -e {place}/go ] && [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.1; done; \
         cat /proc/self/status > {place}/status; exit 5"
    )
}

#[test]
fn after_an_interrupt_the_trace_is_kept_and_the_command_goes_on_untraced() {
    let place = place();
    let trace = place.path().join("trace");
    let mut command = slowpath(["layout", "trace", "--all-objects", "-o"]);
    let (name, mark) = mark();
    command.arg(&trace).args(["--", "/bin/sh", "-c", &waiting(place.path())]).env(name, &mark);
    let mut running = start(&mut command);
    assert!(soon(|| place.path().join("runs").exists()), "the target runs");
    let pid = running.child.id();
    running.signal(libc::SIGINT);
    // The target holds the pipes that this test reads, so the end is seen in the process table.
    assert!(soon(|| !processes_with(&mark).contains(&pid)));
    assert!(processes_with(&mark).iter().any(|pid| is_shell(*pid)), "the target lives on");
    fs::write(place.path().join("go"), "").unwrap();
    assert!(soon(|| place.path().join("status").exists()));
    let done = running.wait();
    done.fails_with(130, &["what was traced until then is kept"]);
    let status = fs::read_to_string(place.path().join("status")).unwrap();
    assert!(status.contains("TracerPid:\t0\n"), "{status}");
    let kept: serde_json::Value = serde_json::from_slice(&fs::read(&trace).unwrap()).unwrap();
    assert_eq!(kept["ended"], "stopped");
    assert!(kept["first_uses"].as_array().unwrap().len() > 10);
}

/// A child of vfork(2) that ends when a file appears, and executes nothing.
const VFORKED: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    if (count != 3)
        return 2;
    if (vfork() == 0) {
        close(open(words[1], O_CREAT | O_WRONLY, 0600));
        for (int i = 0; i < 600 && access(words[2], F_OK); i++)
            usleep(100000);
        _exit(0);
    }
    int status;
    return wait(&status) < 0;
}
"#;

#[test]
fn an_interrupt_while_the_command_waits_for_a_child_that_has_its_memory_ends_the_trace() {
    let place = place();
    let path = |name: &str| place.path().join(name);
    fs::write(path("vforked.c"), VFORKED).unwrap();
    run(Command::new("cc").args(["-O1", "-o"]).args([path("vforked"), path("vforked.c")])).succeeds();
    let mut command = slowpath(["layout", "trace", "-o"]);
    let (name, mark) = mark();
    command.arg(path("trace")).arg("--").args([path("vforked"), path("runs"), path("go")]).env(name, &mark);
    let mut running = start(&mut command);
    assert!(soon(|| path("runs").exists()), "the target runs");
    running.signal(libc::SIGINT);
    let is_untraced = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        command_name(pid) == "vforked" && status.contains("TracerPid:\t0\n")
    };
    assert!(soon(|| processes_with(&mark).into_iter().any(is_untraced)), "the child is let go");
    // It sees the file, and ends; before that, its parent cannot be let go.
    fs::write(path("go"), "").unwrap();
    running.wait().fails_with(130, &["what was traced until then is kept"]);
}

#[test]
fn a_killed_tracer_takes_the_command_along() {
    let place = place();
    let mut command = slowpath(["layout", "trace", "-o"]);
    let (name, mark) = mark();
    command.arg(place.path().join("trace")).args(["--", "/bin/sh", "-c", &waiting(place.path())]).env(name, &mark);
    let mut running = start(&mut command);
    assert!(soon(|| place.path().join("runs").exists()), "the target runs");
    running.signal(libc::SIGKILL);
    assert!(soon(|| processes_with(&mark).is_empty()), "left: {:?}", processes_with(&mark));
    running.wait();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "only what the target made is there");
}

#[test]
fn another_users_command_is_traced_as_that_user_and_what_it_cannot_read_is_named() {
    if !root() {
        return;
    }
    let place = place();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let Some(program) = built(place.path(), "shielded", &[]) else { return };
    fs::set_permissions(&program, fs::Permissions::from_mode(0o711)).unwrap();
    let trace = place.path().join("trace");
    let script = format!("id -u; {}; echo $?", program.display());
    let plain = Command::new(&program).output().unwrap();
    let done = traced(&trace, &["--user", "65534"], &["/bin/sh", "-c", &script]);
    assert_eq!((done.code(), done.stdout), (0, format!("65534\n{}3\n", String::from_utf8(plain.stdout).unwrap())));
    assert!(done.stderr.contains("cannot read it"), "{}", done.stderr);
    assert_eq!(fs::metadata(&trace).unwrap().uid(), 65534);
    assert_eq!(fs::metadata(&trace).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_failing_command_fails_as_it_does_alone_and_json_is_one_object() {
    let place = place();
    let trace = place.path().join("trace");
    assert_eq!(traced(&trace, &["--quiet"], &["/bin/sh", "-c", "kill -TERM $$"]).code(), 128 + 15);
    traced(&trace, &[], &["/no/such/program"]).fails_with(4, &["command not found"]);
    let done = traced(&trace, &["--json"], &["/bin/sh", "-c", "echo text; exit 6"]);
    assert_eq!(done.code(), 6);
    let summary = done.json();
    assert_eq!((&summary["status"], &summary["ended"]), (&6.into(), &"command_ended".into()));
    assert!(done.stderr.contains("text"));
    fs::write(&trace, "{}").unwrap();
    run(slowpath(["layout", "score", "/bin/sh"]).arg(&trace)).fails_with(2, &["is not a trace", "hint:"]);
}

fn tried(variants: &str, build: &str, more: &[&str], command: &[&str]) -> Done {
    let options = ["--warm", "--json", "--quiet", "--blocks", "2", "--variants", variants, "--build", build];
    run(slowpath(["layout", "try"]).args(options).args(more).arg("--").args(command))
}

#[test]
fn variants_are_built_with_their_flags_launched_and_compared() {
    let place = place();
    let code = place.path().join("program.c");
    fs::write(&code, source().replace("return 3", "return 0") + "int x; int *table[40000] = { [0 ... 39999] = &x };\n")
        .unwrap();
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("skipped: there is no gcc");
        return;
    }
    let build = format!("gcc -O1 -fPIE $SLOWPATH_CFLAGS {} -pie $SLOWPATH_LDFLAGS -o $SLOWPATH_OUTPUT", code.display());
    let done = tried("order,relr,both,now", &build, &[], &["{binary}"]);
    done.succeeds();
    let said = done.json();
    let variants = said["variants"].as_array().unwrap();
    let names: Vec<&str> = variants.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["baseline", "order", "relr", "both", "now"]);
    let file = |number: usize, key: &str| variants[number]["file"][key].as_u64().unwrap();
    assert!(file(0, "relative") >= 40_000 && file(0, "packed") == 0, "{variants:#?}");
    assert!(file(2, "packed") >= 40_000 && file(2, "relative") == 0, "{variants:#?}");
    assert!(file(2, "table_bytes") * 10 < file(0, "table_bytes"), "{variants:#?}");
    assert!(said["ordered_functions"].as_u64().unwrap() as usize >= FUNCTIONS / STEP, "{said:#}");
    let flags = variants[3]["variables"]["SLOWPATH_LDFLAGS"].as_str().unwrap();
    assert!(flags.contains("-fuse-ld=bfd -Wl,-T,") && flags.contains("pack-relative-relocs"), "{flags}");
    let arms = said["warm"]["arms"].as_array().unwrap();
    let launched = variants.iter().filter(|one| one["state"] == "built").count();
    assert!(arms.len() == launched && launched >= 4, "{said:#}");
    for arm in arms {
        assert!(arm["medians"]["wall"]["value"].as_f64().unwrap() > 0.0 && arm["failed"] == 0, "{arm:#}");
        assert!(arm["medians"]["minor_faults"]["value"].as_f64().unwrap() > 80.0, "{arm:#}");
    }
    // The binaries are gone with the trial.
    let output = variants[0]["variables"]["SLOWPATH_OUTPUT"].as_str().unwrap();
    assert!(!Path::new(output).exists() && !Path::new(output).parent().unwrap().exists());
}

#[test]
fn a_build_that_fails_or_ignores_its_flags_is_said_and_a_command_without_a_binary_is_refused() {
    let build = "cp /bin/true $SLOWPATH_OUTPUT";
    let done = tried("relr,lazy", build, &[], &["{binary}"]);
    assert_eq!(done.code(), 2, "{done:?}");
    assert!(done.stdout.contains("no variant differs") || done.stderr.contains("no variant differs"), "{done:?}");
    let fails = "test $SLOWPATH_VARIANT != relr || { echo no such flag >&2; exit 1; }; cp /bin/$(test $SLOWPATH_VARIANT = lazy && echo ls || echo true) $SLOWPATH_OUTPUT";
    let done = tried("relr,lazy", fails, &[], &["{binary}"]);
    done.succeeds();
    let said = done.json();
    let relr = &said["variants"][1];
    assert_eq!((&relr["name"], &relr["state"]), (&"relr".into(), &"failed".into()), "{said:#}");
    assert!(relr["reason"].as_str().unwrap().contains("no such flag"), "{relr:#}");
    assert_eq!(said["warm"]["arms"].as_array().unwrap().len(), 2);
    let done = tried("relr", "exit 7", &[], &["{binary}"]);
    assert_eq!(done.code(), 4, "{done:?}");
    assert_eq!(tried("relr", build, &[], &["/bin/true"]).code(), 2);
    if root() {
        // Builds have no more rights than launches.
        let build = "test $(id -u) = 65534 || exit 1; cp /bin/$(test $SLOWPATH_VARIANT = lazy && echo ls || echo true) $SLOWPATH_OUTPUT";
        tried("lazy", build, &["--user", "65534"], &["{binary}"]).succeeds();
    }
}

#[test]
fn cold_launches_of_packed_relocations_read_less() {
    if !root() {
        return;
    }
    let place = place();
    let code = place.path().join("program.c");
    fs::write(&code, "int x; int *table[200000] = { [0 ... 199999] = &x }; int main(void) { return 0; }\n").unwrap();
    let build = format!("gcc -fPIE {} -pie $SLOWPATH_LDFLAGS -o $SLOWPATH_OUTPUT", code.display());
    let options = ["--json", "--quiet", "--blocks", "2", "--variants", "relr", "--build", &build, "--", "{binary}"];
    let done = run(slowpath(["layout", "try"]).args(options));
    done.succeeds();
    let said = done.json();
    assert!(said["linker"].is_null() && said["warm"]["arms"].as_array().unwrap().len() == 2, "{said:#}");
    let read = |number: usize| said["cold"]["arms"][number]["medians"]["bytes_read"]["value"].as_f64().unwrap();
    // The table of 200,000 entries has 4.8 MB, the packed one 25 kB.
    assert!(read(1) + 4e6 < read(0), "{said:#}");
}
