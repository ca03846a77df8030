//! What is put in front of PYTHONPATH for a trial of `preload_in_zygote`, run by the Python that is here.

use slowpath_fix::preload_in_zygote::python;
use slowpath_fix::{Treatment, Word};
use std::path::Path;
use std::process::Command;

/// Starts eight children at once, by the method that it is given, and prints what they are like, each kind once.
const PROGRAM: &str = r#"
import multiprocessing, os, sys, threading

def child(queue, main):
    was_run = getattr(sys, "hidden_was_run", False)
    left = [name for name in os.environ if name == "SLOWPATH_PATH_OF_PARENT"] + [one for one in sys.path if "preload" in one]
    queue.put(("colorsys" in sys.modules, was_run, os.getppid() == main, left))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    children = [context.Process(target=child, args=(queue, os.getpid())) for _ in range(8)]
    threads = [threading.Thread(target=one.start) for one in children]
    for one in threads: one.start()
    for one in threads: one.join()
    seen = [queue.get() for _ in children]
    for one in children: one.join()
    print(sorted({repr(one) for one in seen}), {one.exitcode for one in children})
"#;

/// The folder in which the library of this Python has `colorsys`, which nothing else here imports.
fn library() -> String {
    let done = Command::new("python3").args(["-c", "import os; print(os.path.dirname(os.__file__))"]).output().unwrap();
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn children(place: &Path, method: &str, spawned: bool, modules: &[String]) -> String {
    let preload = place.join("preload");
    std::fs::create_dir_all(&preload).unwrap();
    let modules = modules.iter().map(|module| Word::from(module.as_str())).collect();
    for (name, content) in python::files(&Treatment::PythonPreload { spawned, modules }).unwrap() {
        std::fs::write(preload.join(name), content).unwrap();
    }
    let hidden = place.join("own");
    std::fs::create_dir_all(&hidden).unwrap();
    std::fs::write(hidden.join("sitecustomize.py"), "import sys\nsys.hidden_was_run = True\n").unwrap();
    std::fs::write(place.join("program.py"), PROGRAM).unwrap();
    let (name, value) = python::variable(&preload, Some(hidden.as_os_str())).unwrap();
    let done = Command::new("python3").arg(place.join("program.py")).arg(method).env(name, value).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success() && done.stderr.is_empty(), "{}", text(&done.stderr));
    text(&done.stdout)
}

#[test]
fn children_come_from_one_that_has_imported_and_what_the_file_hides_is_run() {
    let place = tempfile::tempdir().unwrap();
    let modules = [format!("{}/colorsys", library()), "/nowhere/module".to_owned()];
    let spawned = children(place.path(), "spawn", true, &modules);
    assert_eq!(spawned, "['(True, True, False, [])'] {0}\n");
    assert_eq!(children(place.path(), "fork", false, &modules), "['(True, True, True, [])'] {0}\n");
    // A fork server imports before its own first fork.
    assert_eq!(children(place.path(), "forkserver", false, &modules), "['(True, True, False, [])'] {0}\n");
}

#[test]
fn a_module_that_cannot_be_imported_is_left_to_the_child() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("broken.py"), "raise RuntimeError('set up first')\n").unwrap();
    let modules = [place.path().join("broken").to_str().unwrap().to_owned()];
    for (method, spawned) in [("fork", false), ("spawn", true)] {
        let seen = children(place.path(), method, spawned, &modules);
        assert!(seen.starts_with("['(False, True, ") && seen.ends_with(" {0}\n"), "{seen}");
    }
}
