//! The commands of the README and of the tour work.

use slowpath_house::readme::{Block, Run, blocks};
use slowpath_house::root;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Pages whose commands are run.
const PAGES: [&str; 2] = ["README.md", "docs/tour.md"];

fn commands_of(page: &str) -> Vec<Block> {
    blocks(&std::fs::read_to_string(root().join(page)).unwrap()).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Directory of the built program: this test stands in `<target>/<profile>/deps`. The program is another package's, so
/// cargo builds it only when asked. Asked for as all tests are, with this one, it is there already: for the package alone cargo
/// would choose other features of crates from elsewhere, and compile ten of our crates a second time.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let bin = test.parent().and_then(|deps| deps.parent()).unwrap().to_owned();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args("build --quiet --locked --workspace --bin slowpath --test readme --target-dir".split(' '));
    cargo.arg(bin.parent().unwrap());
    if bin.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.current_dir(root()).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "the program does not build");
    bin
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    effective == Some("0")
}

#[test]
fn every_command_block_says_whether_it_is_run_and_some_are() {
    for page in PAGES {
        assert!(commands_of(page).iter().any(|block| block.run != Run::Long), "no command of {page} is ever run");
    }
}

/// Whoever opens it for the first time reads all of it.
#[test]
fn the_readme_is_short() {
    let lines = std::fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 150, "README.md has {lines} lines: details belong to docs/tour.md");
}

#[test]
fn the_commands_of_the_readme_and_of_the_tour_succeed() {
    let path = format!("{}:{}", built().display(), std::env::var("PATH").unwrap_or_default());
    PAGES.iter().for_each(|page| run(page, &path));
}

/// One directory for all blocks of a page, in their order: it goes on with what its earlier commands made.
fn run(page: &str, path: &str) {
    let root_user = is_root();
    let here = tempfile::tempdir().unwrap();
    for block in commands_of(page) {
        match block.run {
            Run::Long => continue,
            Run::NeedsRoot if !root_user => {
                println!("skipped: {page} line {}: needs root", block.line);
                continue;
            }
            Run::Yes | Run::NeedsRoot => {}
        }
        for command in &block.commands {
            // As root there need be no sudo, and the commands are the same.
            let command = if root_user { command.strip_prefix("sudo ").unwrap_or(command) } else { command };
            let output = Command::new("bash")
                .args(["-euc", command])
                .current_dir(&here)
                .env("PATH", path)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let streams = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            assert!(
                output.status.success(),
                "{page} line {}: `{command}` ended with {}\n{}",
                block.line,
                output.status,
                streams.join("\n")
            );
        }
    }
}
