//! The README's commands work.

use slowpath_house::readme::{Block, Run, blocks};
use slowpath_house::root;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn readme() -> Vec<Block> {
    blocks(&std::fs::read_to_string(root().join("README.md")).unwrap())
        .unwrap_or_else(|error| panic!("README.md: {error}"))
}

/// Directory of the built program: this test stands in `<target>/<profile>/deps`. The program is another package's, so
/// cargo builds it only when asked.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let bin = test.parent().and_then(|deps| deps.parent()).unwrap().to_owned();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "-p", "slowpath-cli", "--bin", "slowpath", "--target-dir"]);
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
    assert!(readme().iter().any(|block| block.run != Run::Long), "no command of the README is ever run");
}

/// One directory for all blocks, in their order: the tour goes on with what its earlier commands made.
#[test]
fn the_commands_of_the_readme_succeed() {
    let root_user = is_root();
    let here = tempfile::tempdir().unwrap();
    let path = format!("{}:{}", built().display(), std::env::var("PATH").unwrap_or_default());
    for block in readme() {
        match block.run {
            Run::Long => continue,
            Run::NeedsRoot if !root_user => {
                println!("skipped: README.md line {}: needs root", block.line);
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
                .env("PATH", &path)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let streams = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            assert!(
                output.status.success(),
                "README.md line {}: `{command}` ended with {}\n{}",
                block.line,
                output.status,
                streams.join("\n")
            );
        }
    }
}
