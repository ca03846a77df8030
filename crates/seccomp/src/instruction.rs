//! One instruction of a filter as the kernel has it, and how many a program has. Owns these facts; programs are
//! [`crate::Program`]'s.

/// Instructions of a program at most (`BPF_MAXINSNS`, include/uapi/linux/bpf_common.h).
pub const MOST_INSTRUCTIONS: usize = 4096;

/// Bytes of an instruction.
pub(crate) const SIZE: usize = size_of::<Instruction>();

/// One instruction of classic BPF (`struct sock_filter`, include/uapi/linux/filter.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What is done.
    pub code: u16,
    /// Instructions that are passed over when a comparison holds.
    pub jt: u8,
    /// The same when it does not hold.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

impl Instruction {
    /// Of one `struct sock_filter`, in this machine's order of bytes.
    pub(crate) fn from_bytes(bytes: &[u8; SIZE]) -> Self {
        let [a, b, jt, jf, k @ ..] = *bytes;
        Self { code: u16::from_ne_bytes([a, b]), jt, jf, k: u32::from_ne_bytes(k) }
    }
}

impl From<seccompiler::sock_filter> for Instruction {
    fn from(one: seccompiler::sock_filter) -> Self {
        Self { code: one.code, jt: one.jt, jf: one.jf, k: one.k }
    }
}
