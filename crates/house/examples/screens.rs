//! Puts what commands print today under those that a page shows: `make screens`.
//!
//!     screens DIRECTORY PAGE [LINE...]
//!
//! `DIRECTORY` holds the program. The blocks of `PAGE` run in their order in one new directory, as the tests run them; of those that take
//! long, the ones whose fence is one of the lines. To be started by root: as an ordinary user would see them, commands run as nobody, and
//! those behind `sudo` as sudo from nobody.

use slowpath_house::readme::{Block, Run, blocks, with_output};
use std::error::Error;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// User and group "nobody" and "nogroup" of Debian.
const NOBODY: u32 = 65534;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(directory), Some(page)) = (words.next(), words.next()) else {
        return Err("usage: screens DIRECTORY PAGE [LINE...]".into());
    };
    let long = words.map(|word| word.parse()).collect::<Result<Vec<usize>, _>>()?;
    let path = format!("{}:{}", std::path::absolute(directory)?.display(), std::env::var("PATH")?);
    let text = std::fs::read_to_string(&page)?;
    let known: Vec<usize> =
        blocks(&text)?.iter().filter(|block| block.run == Run::Long).map(|block| block.line).collect();
    if let Some(line) = long.iter().find(|line| !known.contains(line)) {
        return Err(format!("{page} has no long block at line {line}, but at {known:?}").into());
    }
    let here = tempfile::tempdir()?;
    chown(here.path(), Some(NOBODY), Some(NOBODY))?;
    let printed = |block: &Block, command: &str| -> Result<String, String> {
        let by_sudo = command.strip_prefix("sudo ");
        let mut bash = Command::new("bash");
        bash.args(["-euc", &format!("exec 2>&1\n{}", by_sudo.unwrap_or(command))]);
        bash.current_dir(&here).env("PATH", &path).env("HOME", here.path()).stdin(Stdio::null());
        match by_sudo {
            Some(_) => bash.env("SUDO_UID", NOBODY.to_string()).env("SUDO_GID", NOBODY.to_string()),
            None => bash.uid(NOBODY).gid(NOBODY),
        };
        let output = bash.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(format!("line {}: `{command}` ended with {}\n{text}", block.line, output.status));
        }
        Ok(text.replace(&here.path().display().to_string(), "/tmp"))
    };
    let wanted = |block: &Block| block.run != Run::Long || long.contains(&block.line);
    let made = with_output(&text, wanted, printed)?;
    Ok(std::fs::write(page, made)?)
}
