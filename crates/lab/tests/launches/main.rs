//! Cold launches through the launcher, and what is left after a lab went in any way. Needs root.

mod cold;
mod remains;

use slowpath_lab::{Closure, DEFAULT_BASE, Image, Lab, Settings};
use slowpath_launch::{LAUNCHER_ARGUMENT, LauncherProgram};
use std::path::Path;
use std::process::Command;

/// The program that the launcher re-executes.
const PROBE: &str = env!("CARGO_BIN_EXE_lab-probe");

/// Says why a test did not run.
#[macro_export]
macro_rules! needs_root {
    () => {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root for loop devices and mounts");
            return;
        }
    };
}

fn launcher_program() -> LauncherProgram {
    LauncherProgram { path: PROBE.into(), args: vec![LAUNCHER_ARGUMENT.into()] }
}

/// The files that a small Python program maps and imports.
fn python_closure() -> Closure {
    let script = "import json, decimal, sys\n\
        for m in list(sys.modules.values()):\n print(getattr(m, '__file__', '')); print(getattr(m, '__cached__', ''))\n\
        for l in open('/proc/self/maps'):\n print(l.split(None, 5)[5].strip() if len(l.split(None, 5)) > 5 else '')";
    let output = Command::new("/usr/bin/python3").args(["-S", "-c", script]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let paths = text.lines().filter(|line| line.starts_with('/')).chain(["/etc/ld.so.cache", "/usr/bin/python3"]);
    Closure::from_paths(paths)
}

fn lab_of(closure: &Closure) -> Lab {
    Lab::new(Image::build(closure, Path::new(DEFAULT_BASE), Vec::new()).unwrap(), Settings::default()).unwrap()
}
