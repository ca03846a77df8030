//! Where an export goes: a file, or standard output.

use crate::arguments::ExportArguments;
use crate::failure::{Failure, Kind};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::path::PathBuf;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// An open output.
pub enum Output {
    /// A file that was made or emptied.
    File(File, PathBuf),
    /// Standard output.
    Standard(Stdout),
}

impl Output {
    /// Opens what the arguments name.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open(arguments: &ExportArguments) -> Result<Self, Failure> {
        match &arguments.output {
            None => Ok(Self::Standard(io::stdout())),
            Some(path) => match File::create(path) {
                Ok(file) => Ok(Self::File(file, path.clone())),
                Err(error) => Err(unwritable(&path.to_string_lossy(), &error)),
            },
        }
    }

    /// As [`Self::open`], for what is no text.
    ///
    /// # Errors
    /// Also that it would fill a terminal.
    pub fn for_programs(arguments: &ExportArguments) -> Result<Self, Failure> {
        let output = Self::open(arguments)?;
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
    /// The disk is full or the like; nothing of a file stays then.
    pub fn write<T>(self, work: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> Result<Option<T>, Failure> {
        let name = self.name();
        let (written, path) = match self {
            Self::File(file, path) => (through(file, work), Some(path)),
            Self::Standard(out) => (through(out.lock(), work), None),
        };
        match (written, path) {
            (Ok(value), _) => Ok(Some(value)),
            (Err(error), None) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
            (Err(error), path) => {
                if let Some(path) = path.filter(|path| path.is_file()) {
                    let _ = fs::remove_file(path);
                }
                Err(unwritable(&name, &error))
            }
        }
    }
}

fn through<T>(out: impl Write, work: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    let mut out = BufWriter::with_capacity(BUFFER, out);
    let value = work(&mut out)?;
    out.flush()?;
    Ok(value)
}

fn unwritable(name: &str, error: &io::Error) -> Failure {
    Failure::new(Kind::Usage, format!("{name} cannot be written: {error}"))
}
