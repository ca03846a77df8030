//! A filter as the kernel takes it.

use crate::error::FilterError;
use crate::instruction::{Instruction, MOST_INSTRUCTIONS, SIZE};

/// A program: 1 to [`MOST_INSTRUCTIONS`] instructions. Whether they make sense, the kernel says when it is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

impl Program {
    /// Of instructions.
    ///
    /// # Errors
    /// There are none, or too many.
    pub fn new(instructions: Vec<Instruction>) -> Result<Self, FilterError> {
        match instructions.len() {
            1..=MOST_INSTRUCTIONS => Ok(Self(instructions)),
            other => Err(FilterError::Length(other.saturating_mul(SIZE))),
        }
    }

    /// Of `struct sock_filter` after `struct sock_filter`, in this machine's order of bytes.
    ///
    /// # Errors
    /// Their number is no whole one, 0, or too large.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FilterError> {
        let (whole, rest) = bytes.as_chunks::<SIZE>();
        if !rest.is_empty() || whole.len() > MOST_INSTRUCTIONS {
            return Err(FilterError::Length(bytes.len()));
        }
        Self::new(whole.iter().map(Instruction::from_bytes).collect())
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }

    /// The same as [`Program::from_bytes`] reads.
    pub fn bytes(&self) -> Vec<u8> {
        self.0
            .iter()
            .flat_map(|one| {
                let (code, k) = (one.code.to_ne_bytes(), one.k.to_ne_bytes());
                [code[0], code[1], one.jt, one.jf, k[0], k[1], k[2], k[3]]
            })
            .collect()
    }
}
