//! The built library from C, C++ and Python: a zygote in each, and a client in each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The shared library that cargo built for these tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let beside = test.parent().unwrap();
    let built = [beside.join("libslowpath_zygote_c.so"), beside.join("../libslowpath_zygote_c.so")];
    let built = built.into_iter().filter(|path| path.exists());
    let newest = built.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    newest.unwrap_or_else(|| panic!("no libslowpath_zygote_c.so at {}", beside.display()))
}

fn ran(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

fn said(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn compiled(place: &Path, language: &str) -> PathBuf {
    let (program, directory) = (place.join(format!("program-{}", language.len())), library());
    let directory = directory.parent().unwrap();
    let mut command = Command::new("cc");
    command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-x", language]);
    command.arg(here("tests/program.c")).args(["-x", "none", "-I"]).arg(here("include"));
    command.arg("-L").arg(directory).arg(format!("-Wl,-rpath,{}", directory.display()));
    ran(command.args(["-lslowpath_zygote_c", "-o"]).arg(&program));
    program
}

/// A zygote that ends with the test.
struct Zygote(Child);

impl Zygote {
    fn start(command: &mut Command, socket: &Path) -> Self {
        let mut process = command.stdin(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while !socket.exists() {
            assert!(process.try_wait().unwrap().is_none(), "it ended");
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(process)
    }

    /// Tells it to end, and gives its exit code.
    fn ended(mut self) -> Option<i32> {
        ran(Command::new("kill").arg(self.0.id().to_string()));
        self.0.wait().unwrap().code()
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn place() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("s");
    (place, socket)
}

#[test]
fn a_program_in_c_and_one_in_cpp_serve_and_ask() {
    for language in ["c", "c++"] {
        let (place, socket) = place();
        let program = compiled(place.path(), language);
        let zygote = Zygote::start(Command::new(&program).arg("serve").arg(&socket), &socket);
        let lines = said(&ran(Command::new(&program).arg("ask").arg(&socket)));
        assert_eq!(lines[..3], ["blue 1 0 1 1", "exited 0", "exited 7"], "{language}: {lines:?}");
        assert_eq!(lines[3], "signal 9");
        assert!(lines[4].starts_with("3 no zygote answers at /none/s"), "{lines:?}");
        assert_eq!(zygote.ended(), Some(0));
        assert!(!socket.exists());
    }
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let symbols = ran(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let exported: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.rsplit(' ').next())
        .filter(|name| name.starts_with("slowpath_"))
        .collect();
    let header = fs::read_to_string(here("include/slowpath_zygote.h")).unwrap();
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|line| line.ends_with(';') && line.contains('(') && !line.starts_with(' '))
        .filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next())
        .collect();
    assert_eq!(declared, exported);
}

const SERVES: &str = "
import random, sys, slowpath_zygote
random.seed(1)
def main(arguments):
    if arguments[1] == 'say':
        import os
        print(os.environ['COLOUR'], arguments[2], flush=True)
    elif arguments[1] == 'random':
        print(random.random())
    elif arguments[1] == 'raise':
        raise ValueError('on purpose')
    elif arguments[1] == 'threads':
        import threading
        thread = threading.Thread(target=print, args=('from a thread',))
        thread.start(); thread.join()
    elif arguments[1] == 'fork':
        import os, subprocess
        subprocess.run(['/bin/echo', 'executed'], check=True)
    else:
        sys.exit(int(arguments[1]))
slowpath_zygote.serve(sys.argv[1], main)
";

const ASKS: &str = "
import os, sys, slowpath_zygote
def said(*words, **more):
    reader, writer = os.pipe()
    with slowpath_zygote.spawn(sys.argv[1], ['job', *words], fds={1: writer}, **more) as child:
        os.close(writer)
        text = os.fdopen(reader).read().strip()
        return text, child.wait()
print(*said('say', 'it', env={'COLOUR': 'green'}))
print(*said('5'))
print(*said('raise'))
print(*said('threads'))
print(*said('fork'))
print(said('random')[0] != said('random')[0])
child = slowpath_zygote.spawn(sys.argv[1], ['job', 'say', 'x'])
print(child.fileno() > 2, child.pid > 0)
child.close()
for wrong in (dict(uid=1), dict(namespaces=['colour']), dict(seccomp=b'x')):
    try:
        slowpath_zygote.spawn(sys.argv[1], ['job'], **wrong)
    except slowpath_zygote.ZygoteError as error:
        print(error.code)
";

fn python() -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.env("PYTHONPATH", here("../zygote/python")).env("SLOWPATH_ZYGOTE_LIBRARY", library()).args(["-B", "-c"]);
    command
}

#[test]
fn python_serves_and_asks_and_its_children_are_whole_interpreters() {
    if !Path::new("/usr/bin/python3").exists() {
        println!("skipped: there is no /usr/bin/python3");
        return;
    }
    let (_place, socket) = place();
    let zygote = Zygote::start(python().arg(SERVES).arg(&socket).stderr(Stdio::null()), &socket);
    let output = ran(python().arg(ASKS).arg(&socket));
    let lines = said(&output);
    assert_eq!(
        lines,
        ["green it 0", " 5", " 1", "from a thread 0", "executed 0", "True", "True True", "2", "2", "2"],
        "{output:?}"
    );
    assert_eq!(zygote.ended(), Some(0));
    let threads = "import threading, slowpath_zygote, sys
threading.Thread(target=threading.Event().wait, daemon=True).start()
slowpath_zygote.serve(sys.argv[1], print)";
    let refused = python().arg(threads).arg(&socket).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && text.contains("ZygoteError") && text.contains("2 threads"), "{text}");
}

#[test]
fn a_wheel_is_built_and_works_without_a_word_about_the_library() {
    let root = here("../..");
    let pip = root.join("target/fleet-venv/bin/pip");
    if !pip.exists() {
        println!("skipped: no target/fleet-venv, which scripts/fleet-python.sh makes");
        return;
    }
    let (place, socket) = place();
    let wheels = place.path().join("wheels");
    ran(Command::new(root.join("scripts/zygote-wheel.sh")).arg(library()).arg(&wheels));
    let built: Vec<PathBuf> = fs::read_dir(&wheels).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(built.len() == 1 && built[0].to_str().unwrap().contains("-py3-none-linux_"), "{built:?}");
    let installed = place.path().join("installed");
    ran(Command::new(pip)
        .args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--target"])
        .arg(&installed)
        .arg(&built[0]));
    let python = |code: &str| {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", code]).arg(&socket).env("PYTHONPATH", &installed).env_remove("SLOWPATH_ZYGOTE_LIBRARY");
        command
    };
    let serve = "import sys, slowpath_zygote; slowpath_zygote.serve(sys.argv[1], lambda words: int(words[1]))";
    let zygote = Zygote::start(&mut python(serve), &socket);
    let ask = "import sys, slowpath_zygote; print(slowpath_zygote.spawn(sys.argv[1], ['job', '17']).wait())";
    assert_eq!(said(&ran(&mut python(ask))), ["17"]);
    zygote.ended();
}
