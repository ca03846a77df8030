//! Puts what commands print today under those that a page shows: `make screens`.
//!
//!     screens DIRECTORY PAGE [LINE...]
//!
//! `DIRECTORY` holds the program. The blocks of `PAGE` run in their order in one new directory, as the tests run them; of those that take
//! long, the ones whose fence is one of the lines.

use slowpath_house::readme::{Block, Run, with_output};
use std::error::Error;
use std::process::{Command, Stdio};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(directory), Some(page)) = (words.next(), words.next()) else {
        return Err("usage: screens DIRECTORY PAGE [LINE...]".into());
    };
    let long = words.map(|word| word.parse()).collect::<Result<Vec<usize>, _>>()?;
    let path = format!("{}:{}", std::path::absolute(directory)?.display(), std::env::var("PATH")?);
    let here = tempfile::tempdir()?;
    let printed = |block: &Block, command: &str| -> Result<String, String> {
        let command = command.strip_prefix("sudo ").unwrap_or(command);
        let mut bash = Command::new("bash");
        bash.args(["-euc", &format!("exec 2>&1\n{command}")])
            .current_dir(&here)
            .env("PATH", &path)
            .stdin(Stdio::null());
        let output = bash.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(format!("line {}: `{command}` ended with {}\n{text}", block.line, output.status));
        }
        Ok(text.replace(&here.path().display().to_string(), "/tmp"))
    };
    let wanted = |block: &Block| block.run != Run::Long || long.contains(&block.line);
    let made = with_output(&std::fs::read_to_string(&page)?, wanted, printed)?;
    Ok(std::fs::write(page, made)?)
}
