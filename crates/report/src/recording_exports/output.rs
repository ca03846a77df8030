//! Where an export goes: a file, or standard output.

use slowpath_session::failure::{Failure, Kind};
use slowpath_session::whole_file::{WholeFile, buffered, unwritable};
use std::io::{self, ErrorKind, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};

/// Exports are for everybody whom the user's mask does not exclude.
pub const MODE: u32 = 0o666;

/// An open output.
pub enum Output {
    /// A file.
    File(WholeFile, PathBuf),
    /// Standard output.
    Standard(Stdout),
}

impl Output {
    /// Opens the file, or standard output where there is none.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open(file: Option<&Path>) -> Result<Self, Failure> {
        match file {
            None => Ok(Self::Standard(io::stdout())),
            Some(path) => match WholeFile::begin(path, MODE) {
                Ok(file) => Ok(Self::File(file, path.to_owned())),
                Err(error) => Err(unwritable(&path.to_string_lossy(), &error)),
            },
        }
    }

    /// As [`Self::open`], for what is no text.
    ///
    /// # Errors
    /// Also that it would fill a terminal.
    pub fn for_programs(file: Option<&Path>) -> Result<Self, Failure> {
        let output = Self::open(file)?;
        if output.is_terminal() {
            let problem = "this format is for programs, not for a terminal";
            return Err(Failure::new(Kind::Usage, problem).hint("name a file with -o"));
        }
        Ok(output)
    }

    /// Whether somebody looks at it.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::File(file, _) => file.is_terminal(),
            Self::Standard(out) => out.is_terminal(),
        }
    }

    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            Self::File(_, path) => path.to_string_lossy().into_owned(),
            Self::Standard(_) => "standard output".to_owned(),
        }
    }

    /// Has `work` write; null when the reader of standard output went away, which is its own choice.
    ///
    /// # Errors
    /// The disk is full or the like; a file that was there before stays then.
    pub fn write<T>(self, work: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> Result<Option<T>, Failure> {
        let name = self.name();
        let is_standard = matches!(self, Self::Standard(_));
        let written = match self {
            Self::File(file, _) => file.write(work),
            Self::Standard(out) => buffered(out.lock(), work),
        };
        match written {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_standard && error.kind() == ErrorKind::BrokenPipe => Ok(None),
            Err(error) => Err(unwritable(&name, &error)),
        }
    }
}
