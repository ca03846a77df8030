//! What the description of one frame says, read with gimli's own tables and evaluated with its own machine.

use crate::walk::Registers;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, Encoding, EndianSlice, EvaluationResult, LittleEndian, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection, Value, X86_64,
};
use std::sync::Arc;

/// Operations after which an expression is given up.
const MAX_OPERATIONS: u32 = 1000;

/// The unwinding sections of a mapped file.
pub(super) struct Sections {
    /// `.eh_frame` and its stated address.
    pub frames: (Arc<[u8]>, u64),
    /// `.eh_frame_hdr` and its stated address.
    pub header: Option<(Arc<[u8]>, u64)>,
    /// What is added to a stated address.
    pub bias: u64,
}

/// How the caller of a frame is found.
pub(super) enum Next {
    /// No description, or one that cannot be followed.
    Uncovered,
    /// There is no caller.
    Outermost,
    /// Registers and offsets only: framehop's business.
    Plain,
    /// The caller's registers, and whether they are of an interrupted instruction.
    Evaluated(Registers, bool),
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl Sections {
    /// What holds at an address of the process.
    pub fn next(&self, address: u64, registers: Registers, read: &mut dyn FnMut(u64) -> Option<u64>) -> Next {
        self.follow(address, registers, read).unwrap_or(Next::Uncovered)
    }

    fn follow(&self, address: u64, registers: Registers, read: &mut dyn FnMut(u64) -> Option<u64>) -> Option<Next> {
        let stated = address.checked_sub(self.bias)?;
        let mut bases = BaseAddresses::default().set_eh_frame(self.frames.1);
        let mut section = EhFrame::new(&self.frames.0, LittleEndian);
        section.set_address_size(8);
        let description = match &self.header {
            Some((bytes, at)) => {
                bases = bases.set_eh_frame_hdr(*at);
                let header = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok()?;
                header.table()?.fde_for_address(&section, &bases, stated, EhFrame::cie_from_offset).ok()?
            }
            None => section.fde_for_address(&bases, stated, EhFrame::cie_from_offset).ok()?,
        };
        let mut context = UnwindContext::new();
        let row = description.unwind_info_for_address(&section, &bases, &mut context, stated).ok()?;
        let return_address = row.register(X86_64::RA);
        if return_address == Some(RegisterRule::Undefined) {
            return Some(Next::Outermost);
        }
        // At the `ret` of a function that realigned its stack, GCC's description still calls rbp the function's own.
        let returning = *row.cfa() == CfaRule::RegisterAndOffset { register: X86_64::RSP, offset: 8 };
        let evaluated = |rule: &Option<RegisterRule<usize>>| {
            matches!(rule, Some(RegisterRule::Expression(_) | RegisterRule::ValExpression(_)))
        };
        let pointer = row.register(X86_64::RBP);
        if returning && evaluated(&pointer) {
            return Some(Next::Evaluated(
                Registers { ip: read(registers.sp)?, sp: registers.sp.wrapping_add(8), bp: registers.bp },
                false,
            ));
        }
        let interrupted = description.is_signal_trampoline();
        // On any other register framehop would fall back to the frame pointer, and not say so.
        let plain_cfa = matches!(row.cfa(), CfaRule::RegisterAndOffset { register: X86_64::RSP | X86_64::RBP, .. });
        if plain_cfa && !interrupted && !evaluated(&pointer) && !evaluated(&return_address) {
            return Some(Next::Plain);
        }
        let mut machine = Machine { section, encoding: description.cie().encoding(), registers, read };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                machine.register(*register)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => machine.evaluate(expression, None)?,
        };
        let ip = machine.restore(return_address?, cfa, registers.ip)?;
        let bp = match pointer {
            Some(rule) => machine.restore(rule, cfa, registers.bp)?,
            None => registers.bp,
        };
        Some(Next::Evaluated(Registers { ip, sp: cfa, bp }, interrupted))
    }
}

struct Machine<'a, 'r> {
    section: EhFrame<Slice<'a>>,
    encoding: Encoding,
    registers: Registers,
    read: &'r mut dyn FnMut(u64) -> Option<u64>,
}

impl Machine<'_, '_> {
    fn register(&self, register: gimli::Register) -> Option<u64> {
        match register {
            X86_64::RSP => Some(self.registers.sp),
            X86_64::RBP => Some(self.registers.bp),
            X86_64::RA => Some(self.registers.ip),
            _ => None,
        }
    }

    fn restore(&mut self, rule: RegisterRule<usize>, cfa: u64, now: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => Some(now),
            RegisterRule::Offset(offset) => (self.read)(cfa.wrapping_add_signed(offset)),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(offset)),
            RegisterRule::Register(register) => self.register(register),
            RegisterRule::Expression(expression) => {
                let address = self.evaluate(&expression, Some(cfa))?;
                (self.read)(address)
            }
            RegisterRule::ValExpression(expression) => self.evaluate(&expression, Some(cfa)),
            _ => None,
        }
    }

    fn evaluate(&mut self, expression: &UnwindExpression<usize>, initial: Option<u64>) -> Option<u64> {
        let expression = expression.get(&self.section).ok()?;
        let mut evaluation = expression.evaluation(self.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(value) = initial {
            evaluation.set_initial_value(value);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                    evaluation.resume_with_memory(Value::Generic((self.read)(address)?)).ok()?
                }
                _ => return None,
            };
        }
        evaluation.value_result()?.to_u64(u64::MAX).ok()
    }
}
