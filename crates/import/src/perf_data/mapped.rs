//! Records of mappings, and what code lies behind an address of a call chain.

use super::little_endian::Fields;
use super::sample::Mode;
use crate::code_file::CodeFile;
use crate::mappings::Mappings;
use crate::problem::ImportError;
use crate::stacks::CodePlace;
use crate::trace::{KERNEL, Trace};
use slowpath_symbols::symbolize::hexadecimal;
use slowpath_tables::{FileKey, FrameKind, ProcessKey};

/// `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const HAS_BUILD_ID: u16 = 1 << 14;

/// What is mapped.
#[derive(Clone, Copy, Debug)]
pub enum Code {
    /// A file.
    File(FileKey),
    /// What the kernel maps into programs, besides the vdso.
    Kernel,
    /// The vdso.
    Vdso,
    /// Memory without a file.
    Generated,
}

/// A record of a mapping.
#[derive(Debug)]
pub struct Mapped {
    /// Of this process; 0 for the kernel's own code.
    pub pid: u32,
    /// First address and bytes.
    range: (u64, u64),
    offset: u64,
    file: Option<FileKey>,
    build_id: Option<String>,
    path: String,
}

impl Mapped {
    /// The mapping of a record (`PERF_RECORD_MMAP`, or `MMAP2`, which knows the file); none where it is cut.
    pub fn of(body: &[u8], knows_file: bool, misc: u16) -> Option<Self> {
        let mut fields = Fields(body);
        let (pid, _tid) = (fields.task()?, fields.task()?);
        let range = (fields.u64()?, fields.u64()?);
        let offset = fields.u64()?;
        let (mut file, mut build_id) = (None, None);
        if knows_file {
            // A build id with its length before it, or device, inode and generation: 24 bytes.
            let mut identity = Fields(fields.take(24)?);
            if misc & HAS_BUILD_ID != 0 {
                let length = identity.take(4)?.first().copied()?;
                build_id = Some(hexadecimal(identity.take(u64::from(length))?));
            } else {
                let dev = u64::from(identity.u32()?) << 20 | u64::from(identity.u32()?);
                file = Some(FileKey { dev, ino: identity.u64()? });
            }
            let _protection_and_flags = fields.u64()?;
        }
        let path = fields.text()?;
        Some(Self { pid, range, offset, file, build_id, path })
    }

    /// Takes what it says of the kernel's own code: the build id, and behind the name a symbol whose address stands as offset
    /// (`perf_event__synthesize_kernel_mmap` of perf).
    pub fn of_kernel(self, trace: &mut Trace<'_>) {
        let Some(symbol) = self.path.strip_prefix(KERNEL) else { return };
        if let Some(id) = self.build_id {
            trace.built(KERNEL, id);
        }
        trace.kernel_symbol(symbol, self.offset);
    }

    /// Adds it to the mappings of its process.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn add(self, mappings: &mut Mappings<Code>, trace: &mut Trace<'_>) -> Result<(), ImportError> {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        let code = match CodeFile::of(path) {
            CodeFile::At(path) => Code::File(match (self.build_id, self.file.filter(|file| file.ino != 0)) {
                (Some(id), _) => trace.file_with_build_id(&path, &id)?,
                (None, Some(file)) => trace.identify(&path, file)?,
                (None, None) => trace.file(&path)?,
            }),
            CodeFile::Kernel => Code::Kernel,
            CodeFile::Vdso => Code::Vdso,
            CodeFile::Generated | CodeFile::Inlined => Code::Generated,
        };
        mappings.map(self.pid, self.range, self.offset, code);
        Ok(())
    }
}

/// Where an address of a process's call chain is.
pub fn place(mappings: &Mappings<Code>, process: ProcessKey, mode: Mode, address: u64) -> CodePlace {
    let none = CodePlace { kind: FrameKind::Generated, file: None, offset: None, process: None, address: None };
    let found = match mode {
        Mode::Kernel => Some((Code::Kernel, 0)),
        Mode::User => mappings.at(process.pid, address),
    };
    match found {
        Some((Code::File(file), offset)) => {
            CodePlace { kind: FrameKind::File, file: Some(file), offset: Some(offset), ..none }
        }
        Some((Code::Kernel, _)) => CodePlace { kind: FrameKind::Kernel, address: Some(address), ..none },
        Some((Code::Vdso, offset)) => CodePlace { kind: FrameKind::Vdso, offset: Some(offset), ..none },
        Some((Code::Generated, _)) | None => CodePlace { process: Some(process), address: Some(address), ..none },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_that_claims_to_be_longer_than_its_place_is_damage() {
        let of = |length: u8, misc| {
            let mut body = vec![0; 32];
            body.extend([length, 0, 0, 0]);
            body.extend([0xab; 20]);
            body.extend([0; 8]);
            body.extend(b"/a\0");
            Mapped::of(&body, true, misc).map(|mapped| (mapped.build_id, mapped.path))
        };
        assert_eq!(of(2, HAS_BUILD_ID), Some((Some("abab".to_owned()), "/a".to_owned())));
        assert_eq!((of(21, HAS_BUILD_ID), of(255, HAS_BUILD_ID)), (None, None));
        assert_eq!(of(255, 0), Some((None, "/a".to_owned())));
    }
}
