//! System call filters of a process as the kernel runs them, in a form that can be saved. Reading them is [`slowpath_seccomp`]'s.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_seccomp::{ProcessError, Program, of_process};

/// Hexadecimal digits of an instruction.
const DIGITS: usize = 16;

/// One filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Filter(
    /// Its program, 8 bytes an instruction (`struct sock_filter` of the machine's byte order), in hexadecimal digits. Foreign.
    String,
);

impl Filter {
    fn new(program: &Program) -> Self {
        Self(program.bytes().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The program; none where the text is none.
    pub fn program(&self) -> Option<Program> {
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Vec<u8> = self.0.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?;
        let is_whole = self.0.len().is_multiple_of(DIGITS);
        Program::from_bytes(&bytes).ok().filter(|_| is_whole)
    }

    /// How many instructions it has.
    pub fn instructions(&self) -> usize {
        self.0.len() / DIGITS
    }
}

/// All filters of a thread, the first one that was put on first.
///
/// # Errors
/// The caller is no administrator, or the thread cannot be traced.
pub(crate) fn read(tid: u32) -> Result<Vec<Filter>, ProcessError> {
    Ok(of_process(tid)?.iter().map(Filter::new).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_the_same_program_after_it_was_saved() {
        let program = Program::from_bytes(&[0x15, 0, 3, 0, 0, 0x70, 9, 0x51]).unwrap();
        let filter = Filter::new(&program);
        assert_eq!((filter.program(), filter.instructions()), (Some(program), 1));
        for wrong in ["", "00", "zz00000000000000", "+0+0+0+0+0+0+0+0+", &"0".repeat(DIGITS * 4097)] {
            assert_eq!(Filter(wrong.to_owned()).program(), None, "{wrong}");
        }
    }

    #[test]
    fn a_thread_that_cannot_be_traced_has_no_filters_to_tell() {
        assert!(read(u32::MAX).is_err());
        // Nobody traces itself.
        assert!(read(std::process::id()).is_err());
    }
}
