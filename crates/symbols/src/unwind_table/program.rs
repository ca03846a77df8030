//! The program of one frame description: what its instructions make of the rules for the frame, the return address and the frame
//! pointer.
//!
//! The other registers are left alone: no caller is found with them, but for the few instructions of a function that realigns
//! its stack in which the frame hangs on r10, which rows cannot express.

use super::{Architecture, CfaRule, FramePointerRule, Row};
use gimli::{
    AArch64, CallFrameInstruction, CommonInformationEntry, EndianSlice, LittleEndian, Operation, Register,
    UnwindExpression, UnwindSection, X86_64,
};

/// Little-endian bytes of the file.
pub(super) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Deeper nesting of `DW_CFA_remember_state` is taken for an error; compilers nest once.
const REMEMBERED: usize = 16;

/// The threshold that [`CfaRule::LinkageTable`] has built in.
const USUAL_THRESHOLD: u8 = 11;

/// Rules at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    cfa: Cfa,
    return_address: ReturnAddress,
    frame_pointer: FramePointer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cfa {
    Register(Register, i64),
    /// Stack pointer + 8, and 8 more from this offset in 16 bytes on.
    LinkageTable(u8),
    AtFramePointer(i64),
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReturnAddress {
    /// Where the caller left it.
    Same,
    AtCfa(i64),
    Undefined,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramePointer {
    Same,
    AtCfa(i64),
    /// In memory at the frame pointer plus offset.
    InFrame(i64),
    Unknown,
}

/// What a row, or more than one, is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// One row.
    Row(Row),
    /// Stack pointer + 8, and 8 more from this offset in each 16 bytes on: rows of their own for every entry, because the
    /// threshold is not the one of [`CfaRule::LinkageTable`] (linkers use others where entries begin with `endbr64` or `bnd`).
    Alternating(u8),
}

/// Rules before a CIE's first instruction.
pub(super) const NOTHING: Rules =
    Rules { cfa: Cfa::Other, return_address: ReturnAddress::Same, frame_pointer: FramePointer::Same };

impl Architecture {
    /// The register that descriptions name for the return address.
    pub(super) fn return_address(self) -> Register {
        match self {
            Self::X86_64 => X86_64::RA,
            Self::AArch64 => AArch64::X30,
        }
    }

    fn frame_pointer(self) -> Register {
        match self {
            Self::X86_64 => X86_64::RBP,
            Self::AArch64 => AArch64::X29,
        }
    }
}

impl Rules {
    /// The rule in the form of the table.
    pub fn rule(&self, architecture: Architecture) -> Rule {
        if self.return_address == ReturnAddress::Undefined {
            return Rule::Row(Row::OUTERMOST);
        }
        match architecture {
            Architecture::X86_64 => self.x86_64(),
            Architecture::AArch64 => Rule::Row(self.aarch64()),
        }
    }

    /// Frame pointer and return address are a record of two words, or one of them is saved by itself.
    fn aarch64(&self) -> Row {
        let (pointer, offset) = match (self.return_address, self.frame_pointer) {
            (ReturnAddress::Same, FramePointer::Same) => (FramePointerRule::Same, 0),
            (ReturnAddress::AtCfa(address), FramePointer::AtCfa(pointer)) if address == pointer.saturating_add(8) => {
                (FramePointerRule::AtCfa, pointer)
            }
            (ReturnAddress::AtCfa(address), FramePointer::Same) => (FramePointerRule::ReturnAddressAtCfa, address),
            (ReturnAddress::Same, FramePointer::AtCfa(pointer)) => (FramePointerRule::OnlyAtCfa, pointer),
            _ => return Row::UNSUPPORTED,
        };
        let row = match self.cfa {
            Cfa::Register(AArch64::SP, at) => Row::new(CfaRule::StackPointer, at, pointer, offset),
            Cfa::Register(AArch64::X29, at) => Row::new(CfaRule::FramePointer, at, pointer, offset),
            _ => return Row::UNSUPPORTED,
        };
        // With the place of the return address the row has lost what it is for.
        if row.frame_pointer_rule() == pointer { row } else { Row::UNSUPPORTED }
    }

    fn x86_64(&self) -> Rule {
        if self.return_address != ReturnAddress::AtCfa(-8) {
            return Rule::Row(Row::UNSUPPORTED);
        }
        let (pointer, pointer_offset) = match self.frame_pointer {
            FramePointer::Same => (FramePointerRule::Same, 0),
            FramePointer::AtCfa(offset) => (FramePointerRule::AtCfa, offset),
            // Nothing but the return address is left of the frame, so rbp is the caller's again. GCC forgets to say so at the
            // end of functions that realign the stack, and the rule would read through the caller's rbp.
            FramePointer::InFrame(_) if self.cfa == Cfa::Register(X86_64::RSP, 8) => (FramePointerRule::Same, 0),
            FramePointer::InFrame(offset) => (FramePointerRule::AtFramePointer, offset),
            FramePointer::Unknown => (FramePointerRule::Unknown, 0),
        };
        Rule::Row(match self.cfa {
            Cfa::Register(X86_64::RSP, offset) => Row::new(CfaRule::StackPointer, offset, pointer, pointer_offset),
            Cfa::Register(X86_64::RBP, offset) => Row::new(CfaRule::FramePointer, offset, pointer, pointer_offset),
            Cfa::AtFramePointer(offset) => Row::new(CfaRule::AtFramePointer, offset, pointer, pointer_offset),
            Cfa::LinkageTable(USUAL_THRESHOLD) => Row::new(CfaRule::LinkageTable, 0, pointer, pointer_offset),
            // Entries of the linkage table touch no register; one that claims so is none.
            Cfa::LinkageTable(threshold) if self.frame_pointer == FramePointer::Same => {
                return Rule::Alternating(threshold);
            }
            Cfa::LinkageTable(_) | Cfa::Register(..) | Cfa::Other => Row::UNSUPPORTED,
        })
    }
}

/// The rules while a program runs.
#[derive(Debug)]
pub(super) struct Machine {
    architecture: Architecture,
    /// What holds now.
    pub rules: Rules,
    /// What the CIE left; `DW_CFA_restore` goes back to it.
    initial: Option<Rules>,
    remembered: Vec<Rules>,
    /// Whether rax and rdx were saved: only functions that end in `__builtin_eh_return` do it, to give them to a handler.
    saves: [bool; 2],
}

impl Machine {
    /// Before the instructions of a CIE (`initial` none) or of an FDE.
    pub fn new(architecture: Architecture, initial: Option<Rules>) -> Self {
        Self { architecture, rules: initial.unwrap_or(NOTHING), initial, remembered: Vec::new(), saves: [false; 2] }
    }

    /// Whether the frame has been given up for a handler's: it hangs on the register in which the handler's stack pointer comes.
    pub fn hands_over(&self) -> bool {
        let elsewhere = |register| register != X86_64::RSP && register != X86_64::RBP;
        self.saves == [true; 2] && matches!(self.rules.cfa, Cfa::Register(register, _) if elsewhere(register))
    }

    /// Runs an instruction that does not move the location. None: it makes no sense here.
    pub fn apply<'a, S: UnwindSection<Bytes<'a>>>(
        &mut self,
        instruction: &CallFrameInstruction<usize>,
        cie: &CommonInformationEntry<Bytes<'a>>,
        section: &S,
    ) -> Option<()> {
        use CallFrameInstruction as I;
        let scaled = |factored: i64| factored.checked_mul(cie.data_alignment_factor());
        let unsigned = |factored: u64| scaled(i64::try_from(factored).ok()?);
        match *instruction {
            I::DefCfa { register, offset } => self.rules.cfa = Cfa::Register(register, i64::try_from(offset).ok()?),
            I::DefCfaSf { register, factored_offset } => {
                self.rules.cfa = Cfa::Register(register, scaled(factored_offset)?);
            }
            I::DefCfaRegister { register } => match &mut self.rules.cfa {
                Cfa::Register(held, _) => *held = register,
                _ => return None,
            },
            I::DefCfaOffset { offset } => *self.cfa_offset()? = i64::try_from(offset).ok()?,
            I::DefCfaOffsetSf { factored_offset } => *self.cfa_offset()? = scaled(factored_offset)?,
            I::DefCfaExpression { expression } => self.rules.cfa = cfa_expression(section, cie, &expression)?,
            I::Undefined { register } => self.set(register, ReturnAddress::Undefined, FramePointer::Unknown),
            I::SameValue { register } => self.set(register, ReturnAddress::Same, FramePointer::Same),
            I::Offset { register, factored_offset } => {
                let offset = unsigned(factored_offset)?;
                self.set(register, ReturnAddress::AtCfa(offset), FramePointer::AtCfa(offset));
            }
            I::OffsetExtendedSf { register, factored_offset } => {
                let offset = scaled(factored_offset)?;
                self.set(register, ReturnAddress::AtCfa(offset), FramePointer::AtCfa(offset));
            }
            I::ValOffset { register, .. } | I::ValOffsetSf { register, .. } => {
                self.set(register, ReturnAddress::Other, FramePointer::Unknown);
            }
            I::Register { dest_register, src_register } => {
                let same = dest_register == src_register;
                let pointer = if same { FramePointer::Same } else { FramePointer::Unknown };
                self.set(dest_register, ReturnAddress::Other, pointer);
            }
            I::Expression { register, expression } => {
                let pointer = match shape(section, cie, &expression)? {
                    Shape::FramePointer(offset) => FramePointer::InFrame(offset),
                    _ => FramePointer::Unknown,
                };
                self.set(register, ReturnAddress::Other, pointer);
            }
            I::ValExpression { register, expression } => {
                let pointer = match shape(section, cie, &expression)? {
                    Shape::AtFramePointer(offset) => FramePointer::InFrame(offset),
                    _ => FramePointer::Unknown,
                };
                self.set(register, ReturnAddress::Other, pointer);
            }
            I::Restore { register } => {
                let initial = self.initial?;
                self.set(register, initial.return_address, initial.frame_pointer);
            }
            I::RememberState if self.remembered.len() < REMEMBERED => self.remembered.push(self.rules),
            I::RememberState => return None,
            I::RestoreState => self.rules = self.remembered.pop()?,
            I::ArgsSize { .. } | I::NegateRaState | I::Nop => {}
            // Moving is the caller's; what gimli will know one day is not known here.
            _ => return None,
        }
        Some(())
    }

    fn cfa_offset(&mut self) -> Option<&mut i64> {
        match &mut self.rules.cfa {
            Cfa::Register(_, offset) => Some(offset),
            _ => None,
        }
    }

    fn set(&mut self, register: Register, return_address: ReturnAddress, frame_pointer: FramePointer) {
        let is_saved = matches!(frame_pointer, FramePointer::AtCfa(_)) && self.architecture == Architecture::X86_64;
        match register {
            _ if register == self.architecture.return_address() => self.rules.return_address = return_address,
            _ if register == self.architecture.frame_pointer() => self.rules.frame_pointer = frame_pointer,
            X86_64::RAX | X86_64::RDX if is_saved => self.saves[usize::from(register == X86_64::RDX)] = true,
            _ => {}
        }
    }
}

/// What an expression computes.
enum Shape {
    /// rbp + offset.
    FramePointer(i64),
    /// What stands in memory at rbp + offset.
    AtFramePointer(i64),
    Other,
}

/// None where the expression cannot be read.
fn shape<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    cie: &CommonInformationEntry<Bytes<'a>>,
    expression: &UnwindExpression<usize>,
) -> Option<Shape> {
    let mut operations = expression.get(section).ok()?.operations(cie.encoding());
    let mut next = || operations.next().ok();
    let (first, second, third) = (next()?, next()?, next()?);
    Some(match (first, second, third) {
        (Some(Operation::RegisterOffset { register: X86_64::RBP, offset, .. }), None, None) => {
            Shape::FramePointer(offset)
        }
        (
            Some(Operation::RegisterOffset { register: X86_64::RBP, offset, .. }),
            Some(Operation::Deref { size: 8, space: false, .. }),
            None,
        ) => Shape::AtFramePointer(offset),
        _ => Shape::Other,
    })
}

fn cfa_expression<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    cie: &CommonInformationEntry<Bytes<'a>>,
    expression: &UnwindExpression<usize>,
) -> Option<Cfa> {
    if let Some(threshold) = linkage_threshold(expression.get(section).ok()?.0.slice()) {
        return Some(Cfa::LinkageTable(threshold));
    }
    Some(match shape(section, cie, expression)? {
        Shape::AtFramePointer(offset) => Cfa::AtFramePointer(offset),
        // Written as an expression what the plain rule says.
        Shape::FramePointer(offset) => Cfa::Register(X86_64::RBP, offset),
        Shape::Other => Cfa::Other,
    })
}

/// The expression that GNU ld, gold and others emit for the lazy linkage table, by its operations (DWARF 5, 7.7.1):
/// `breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus`, that is rsp + 8 + ((rip & 15) >= N) * 8. Returns N.
fn linkage_threshold(expression: &[u8]) -> Option<u8> {
    const LIT0: u8 = 0x30;
    match *expression {
        [0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, literal @ LIT0..=0x3f, 0x2a, 0x33, 0x24, 0x22] => Some(literal - LIT0),
        _ => None,
    }
}
