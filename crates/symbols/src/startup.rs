//! The files that a program maps before its first own instruction: itself, its interpreter, and the libraries that it names.

use object::read::elf::{FileHeader, ProgramHeader};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Interpreters of scripts that are scripts themselves are followed this far, as the kernel does (`BINPRM_MAX_RECURSION`).
const SCRIPTS: u32 = 4;

/// Bytes of a file that hold its program headers, or the first line of a script.
const HEAD: u64 = 64 << 10;

/// Files that `program` maps when it starts, as far as is known without running it. The libraries are those that the dynamic
/// loader itself lists (`ld.so --list`), so it is the user's own loader that is run, never the program.
pub fn files_of(program: &Path) -> Vec<PathBuf> {
    let mut program = program.to_owned();
    for _ in 0..SCRIPTS {
        let Some(head) = head(&program) else { return Vec::new() };
        match script_interpreter(&head) {
            Some(interpreter) => program = interpreter,
            None => {
                let loader = loader(&head);
                let listed = loader.as_ref().map(|loader| listed(loader, &program)).unwrap_or_default();
                return [program].into_iter().chain(loader).chain(listed).collect();
            }
        }
    }
    Vec::new()
}

fn head(path: &Path) -> Option<Vec<u8>> {
    // Neither a pipe nor a terminal may hold it up.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    file.metadata().ok().filter(|metadata| metadata.is_file())?;
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head).ok()?;
    Some(head)
}

/// What stands behind `#!`.
fn script_interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.split(|byte| byte.is_ascii_whitespace()).find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(word)))
}

/// The dynamic loader that an ELF file asks for (`PT_INTERP`).
fn loader(head: &[u8]) -> Option<PathBuf> {
    let header = object::elf::FileHeader64::<object::Endianness>::parse(head).ok()?;
    let endian = header.endian().ok()?;
    let segment = header
        .program_headers(endian, head)
        .ok()?
        .iter()
        .find(|segment| segment.p_type(endian) == object::elf::PT_INTERP)?;
    let name = segment.data(endian, head).ok()?.split(|byte| *byte == 0).next()?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

/// Entry for the fuzzers: the head of a program, and the list that a loader prints.
#[doc(hidden)]
pub fn parse(bytes: &[u8]) {
    script_interpreter(bytes);
    loader(bytes);
    paths(bytes);
}

fn listed(loader: &Path, program: &Path) -> Vec<PathBuf> {
    let list = Command::new(loader).arg("--list").arg(program).stdin(Stdio::null()).stderr(Stdio::null()).output();
    list.map(|output| paths(&output.stdout)).unwrap_or_default()
}

/// Paths in lines like `libm.so.6 => /lib/libm.so.6 (0x00007f)`.
fn paths(list: &[u8]) -> Vec<PathBuf> {
    let lines = list.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines
        .filter_map(|line| line.trim().rsplit_once(" (0x"))
        .map(|(before, _)| before.rsplit_once(" => ").map_or(before, |(_, path)| path))
        .filter(|path| path.starts_with('/'))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_the_loaders_list() {
        let list = b"\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/libm.so.6 (0x00007f)\n\t/lib64/ld.so (0x1)\n\tx => not found\n";
        assert_eq!(paths(list), [PathBuf::from("/lib/libm.so.6"), PathBuf::from("/lib64/ld.so")]);
    }

    #[test]
    fn a_program_has_itself_its_loader_and_its_libraries() {
        let own = std::env::current_exe().unwrap();
        let files = files_of(&own);
        assert_eq!(files[0], own);
        assert!(files.iter().any(|file| file.to_string_lossy().contains("libc")), "{files:?}");
    }

    #[test]
    fn a_script_has_the_files_of_its_interpreter() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("s");
        std::fs::write(&script, "#! /bin/sh -e\necho\n").unwrap();
        assert_eq!(files_of(&script)[0], PathBuf::from("/bin/sh"));
    }

    #[test]
    fn what_is_no_program_has_none() {
        assert!(files_of(Path::new("/nonexistent")).is_empty());
        assert!(files_of(Path::new("/dev/null")).is_empty());
    }
}
