//! What `make install` puts beside the program: man pages that man reads, completions that a shell loads.

use crate::running::place;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slowpath");

fn make(target: &str, destination: &Path) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let destination = format!("DESTDIR={}", destination.display());
    let program = format!("PROGRAM={PROGRAM}");
    Command::new("make")
        .args(["--no-print-directory", "-C"])
        .arg(root)
        .args([target, "PREFIX=/usr", &destination, &program])
        .env_remove("MAKEFLAGS")
        .output()
        .unwrap()
}

/// All files below a directory, without their common beginning.
fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![below.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { found.push(path.strip_prefix(below).unwrap().to_owned()) }
        }
    }
    found.sort();
    found
}

/// Names of the commands that `--help` lists, with those below them: `launch`, `launch-ladder`.
fn commands(before: &[&str]) -> Vec<String> {
    let help = Command::new(PROGRAM).args(before).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split_once(' '));
    let names = names.filter(|(name, _)| !name.is_empty() && *name != "help").map(|(name, _)| name.to_owned());
    let mut all = Vec::new();
    for name in names {
        let path = [before, &[name.as_str()]].concat();
        all.push(path.join("-"));
        // `fleet --help` is answered by the Python package.
        if name != "fleet" {
            all.extend(commands(&path));
        }
    }
    all
}

#[test]
fn installing_puts_a_page_for_every_command_beside_the_program_and_uninstalling_leaves_nothing() {
    let place = place();
    let destination = place.path().join("stage");
    let done = make("install", &destination);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let there = files(&destination);
    for name in [
        "usr/bin/slowpath",
        "usr/share/bash-completion/completions/slowpath",
        "usr/share/zsh/site-functions/_slowpath",
        "usr/share/fish/vendor_completions.d/slowpath.fish",
        "usr/share/man/man1/slowpath.1",
    ] {
        assert!(there.contains(&PathBuf::from(name)), "no {name} in {there:?}");
    }
    // It is built with all of the workspace, not with the command alone.
    let is_built = Path::new(PROGRAM).with_file_name("slowpath-preload").is_file();
    assert_eq!(there.contains(&PathBuf::from("usr/bin/slowpath-preload")), is_built, "{there:?}");
    let commands = commands(&[]);
    assert!(commands.len() > 20 && commands.contains(&"lab-run".to_owned()), "{commands:?}");
    for command in commands {
        let page = format!("usr/share/man/man1/slowpath-{command}.1");
        assert!(there.contains(&PathBuf::from(&page)), "no {page}");
    }
    let done = make("uninstall", &destination);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(files(&destination), [] as [PathBuf; 0]);
}

#[test]
fn man_reads_every_page_without_a_warning() {
    if Command::new("man").arg("--version").output().is_err() {
        println!("skipped: no man here");
        return;
    }
    let place = place();
    let done = Command::new(PROGRAM).arg("man").arg(place.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut pages = 0;
    for page in files(place.path()) {
        let read = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
            .arg(place.path().join(&page))
            .env("LC_ALL", "C.UTF-8")
            .env("MANROFFSEQ", "")
            .env("MANWIDTH", "80")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success() && said.is_empty(), "{}: {said}", page.display());
        pages += 1;
    }
    assert!(pages > 20, "{pages} pages");
}

#[test]
fn bash_completes_commands_options_and_names_to_explain() {
    let script = r#"
        source <("$SLOWPATH" completions bash)
        completed() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            "$(complete -p slowpath | sed 's/.*-F \([^ ]*\).*/\1/')" slowpath "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            echo "${COMPREPLY[*]}"
        }
        completed slowpath diag
        completed slowpath lab ru
        completed slowpath record --mem
        completed slowpath explain cold_file
    "#;
    let done = Command::new("bash").args(["--norc", "-ec", script]).env("SLOWPATH", PROGRAM).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "diagnose\nrun\n--memory-calls\ncold_file_reads\n");
}

#[test]
fn a_directory_that_cannot_be_made_is_wrong_usage() {
    let done = Command::new(PROGRAM).args(["man", "/dev/null/pages"]).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("/dev/null/pages cannot be written") && said.contains("hint:"), "{said}");
}
