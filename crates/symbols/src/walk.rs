//! Walking a stack of x86-64 with unwinding tables: the reference of what the recorder's program in the kernel does, step by step.
//!
//! Owns: the rules by which one frame leads to the next, and how a walk ends. Pure: memory and mappings come from closures.
//! Leaves making tables to [`crate::unwind_table`], and names to [`crate::symbolize`].

use crate::unwind_table::{CfaRule, FramePointerRule, UnwindTable};

/// Frames of a walk, the first included; deeper stacks are cut.
pub const MAX_FRAMES: usize = 127;

/// Farther than this, in bytes, a frame pointer does not lead where no table helps: it is then more likely to be something else.
pub const FRAME_POINTER_REACH: u64 = 1 << 20;

/// Bytes above the exception unwinder's frame in which the frame of a handler is looked for.
pub const HANDLER_REACH: u64 = 16 << 10;

/// Offset of rbp in the `ucontext` at the stack pointer of a signal's trampoline (the kernel's
/// `arch/x86/include/uapi/asm/ucontext.h`: 40 bytes before `uc_mcontext`; `sigcontext.h`, `struct sigcontext_64`).
const UCONTEXT_BP: u64 = 120;
/// Offset of rsp there.
const UCONTEXT_SP: u64 = 160;
/// Offset of rip there.
const UCONTEXT_IP: u64 = 168;

/// The registers that a walk needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// rip.
    pub ip: u64,
    /// rsp.
    pub sp: u64,
    /// rbp; 0 where it cannot be determined.
    pub bp: u64,
}

/// What is mapped at an address.
#[derive(Clone, Copy, Debug)]
pub enum Code<'t> {
    /// Nothing that can be executed.
    NotExecutable,
    /// Executable from a file, and no table is known.
    NoTable,
    /// Executable, and of no file: generated at run time.
    Generated,
    /// Executable from a file: its table, and the address as offset in the file.
    Table(&'t UnwindTable, u64),
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkEnd {
    /// At the outermost frame: the stack is whole.
    Outermost,
    /// In code that nothing describes, and the frame pointer leads nowhere; or in a file without a table.
    NoTable,
    /// At a rule that rows cannot express, or that leads back down the stack.
    BadRule,
    /// At memory that cannot be read.
    Unreadable,
    /// While the exception unwinder hands over to a handler.
    HandsOver,
    /// After [`MAX_FRAMES`].
    TooDeep,
}

/// A stack, innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The instruction pointer, then return addresses (behind a signal frame: the interrupted instruction).
    pub frames: Vec<u64>,
    /// How it ended.
    pub end: WalkEnd,
}

/// Walks the stack of a thread.
///
/// `code` returns what is mapped at an address, `read` the eight bytes there; none where they cannot be read.
///
/// The first frame is looked up by its instruction pointer, a caller by its return address less one, so that a call at the very
/// end of a function is not taken for the next one; what a signal interrupted again as it is. The return address stands 8 bytes
/// below the CFA, which is the caller's stack pointer and lies above the present one (a signal may have come on a stack of
/// its own). A return address of 0 is the end of the stack, whatever else could be read. Where rbp cannot be determined, 0 stands for
/// it, and a rule that needs it fails.
pub fn walk<'t>(
    start: Registers,
    mut code: impl FnMut(u64) -> Code<'t>,
    mut read: impl FnMut(u64) -> Option<u64>,
) -> Walk {
    let mut frames = Vec::new();
    let (mut registers, mut exact) = (start, true);
    while frames.len() < MAX_FRAMES {
        frames.push(registers.ip);
        match step(registers, exact, &mut code, &mut read) {
            Ok((caller, interrupted)) => (registers, exact) = (caller, interrupted),
            Err(end) => return Walk { frames, end },
        }
    }
    Walk { frames, end: WalkEnd::TooDeep }
}

/// The caller's registers, and whether they are of an instruction that was interrupted instead of one behind a call.
fn step<'t>(
    start: Registers,
    exact: bool,
    code: &mut impl FnMut(u64) -> Code<'t>,
    read: &mut impl FnMut(u64) -> Option<u64>,
) -> Result<(Registers, bool), WalkEnd> {
    let Registers { ip, sp, bp } = start;
    let row = match code(if exact { ip } else { ip.wrapping_sub(1) }) {
        Code::Table(table, offset) => table.lookup(offset),
        // Most code that has a table uses the frame pointer for other things: by it, callers would be left out.
        Code::NoTable => return Err(WalkEnd::NoTable),
        Code::Generated | Code::NotExecutable => return undescribed_step(start, exact, code, read),
    };
    let mut memory = |address| read(address).ok_or(WalkEnd::Unreadable);
    let offset = |units: i16| i64::from(units) * 8;
    let cfa = match row.cfa_rule() {
        CfaRule::Unknown => return undescribed_step(start, exact, code, read),
        CfaRule::Outermost => return Err(WalkEnd::Outermost),
        CfaRule::Unsupported => return Err(WalkEnd::BadRule),
        CfaRule::HandsOver => return Err(WalkEnd::HandsOver),
        CfaRule::HandingOver => {
            let cfa = bp.wrapping_add_signed(offset(row.cfa_offset));
            if is_handed_over(cfa, &mut memory) {
                return Err(WalkEnd::HandsOver);
            }
            cfa
        }
        CfaRule::SignalFrame => {
            let ip = memory(sp.wrapping_add(UCONTEXT_IP))?;
            if ip == 0 {
                return Err(WalkEnd::Outermost);
            }
            let (sp, bp) = (memory(sp.wrapping_add(UCONTEXT_SP))?, memory(sp.wrapping_add(UCONTEXT_BP))?);
            return Ok((Registers { ip, sp, bp }, true));
        }
        CfaRule::StackPointer => sp.wrapping_add_signed(offset(row.cfa_offset)),
        CfaRule::FramePointer => bp.wrapping_add_signed(offset(row.cfa_offset)),
        CfaRule::LinkageTable => sp.wrapping_add(if ip % 16 >= 11 { 16 } else { 8 }),
        CfaRule::AtFramePointer => memory(bp.wrapping_add_signed(offset(row.cfa_offset)))?,
    };
    if cfa <= sp {
        return Err(WalkEnd::BadRule);
    }
    let return_address = memory(cfa.wrapping_sub(8))?;
    if return_address == 0 {
        return Err(WalkEnd::Outermost);
    }
    let pointer_offset = offset(row.frame_pointer_offset);
    let bp = match row.frame_pointer_rule() {
        FramePointerRule::Same => bp,
        FramePointerRule::AtCfa => memory(cfa.wrapping_add_signed(pointer_offset))?,
        FramePointerRule::AtFramePointer => memory(bp.wrapping_add_signed(pointer_offset))?,
        // The last two are of AArch64, whose stacks are walked by the recorder's program alone.
        FramePointerRule::Unknown | FramePointerRule::ReturnAddressAtCfa | FramePointerRule::OnlyAtCfa => 0,
    };
    Ok((Registers { ip: return_address, sp: cfa, bp }, false))
}

/// Whether the return address below `cfa` is a handler's: it was copied from a place above, where it still stands, or could, if that
/// is farther away than is looked.
fn is_handed_over(cfa: u64, memory: &mut impl FnMut(u64) -> Result<u64, WalkEnd>) -> bool {
    let Ok(address) = memory(cfa.wrapping_sub(8)) else { return true };
    for word in 0..HANDLER_REACH / 8 {
        match memory(cfa.wrapping_add(word * 8)) {
            Ok(other) if other == address => return true,
            Ok(_) => {}
            // The end of the stack.
            Err(_) => return false,
        }
    }
    true
}

/// Lowest address that a program may map (`vm.mmap_min_addr` of all distributions), and the first that no program has with
/// four levels of page tables.
const CODE_ADDRESSES: std::ops::Range<u64> = 1 << 16..1 << 47;

/// Whether a call may stand before this address.
fn is_caller<'t>(address: u64, code: &mut impl FnMut(u64) -> Code<'t>) -> bool {
    CODE_ADDRESSES.contains(&address) && !matches!(code(address - 1), Code::NotExecutable)
}

/// Where nothing is known: by the instructions at the border of a function, and then by the frame pointer.
fn undescribed_step<'t>(
    Registers { ip, sp, bp }: Registers,
    exact: bool,
    code: &mut impl FnMut(u64) -> Code<'t>,
    read: &mut impl FnMut(u64) -> Option<u64>,
) -> Result<(Registers, bool), WalkEnd> {
    if let Some(pushed) = exact.then(|| pushed_at_border(ip, read)).flatten()
        && let Some(caller) = read(sp.wrapping_add(pushed))
        && is_caller(caller, code)
    {
        return Ok((Registers { ip: caller, sp: sp.wrapping_add(pushed + 8), bp }, false));
    }
    frame_pointer_step(sp, bp, code, read)
}

/// Bytes above the stack pointer at which the return address stands, where a function is about to make its frame or has just given
/// it back: before `push %rbp; mov %rsp, %rbp` (in its two encodings), between the two, and before `ret`.
fn pushed_at_border(ip: u64, read: &mut impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    let code = read(ip.wrapping_sub(1))?.to_le_bytes();
    match code[1..] {
        [0x48, 0x89, 0xe5, ..] | [0x48, 0x8b, 0xec, ..] if code[0] == 0x55 => Some(8),
        [0xc3, ..] | [0x55, 0x48, ..] => Some(0),
        _ => None,
    }
}

/// Where nothing is known, rbp may still be a frame pointer: it is believed when it leads up the stack, not far, to something
/// that can be a return address.
fn frame_pointer_step<'t>(
    sp: u64,
    bp: u64,
    code: &mut impl FnMut(u64) -> Code<'t>,
    read: &mut impl FnMut(u64) -> Option<u64>,
) -> Result<(Registers, bool), WalkEnd> {
    if bp < sp || bp - sp >= FRAME_POINTER_REACH || !bp.is_multiple_of(8) {
        return Err(WalkEnd::NoTable);
    }
    let ip = read(bp.wrapping_add(8)).ok_or(WalkEnd::NoTable)?;
    let caller_bp = read(bp).ok_or(WalkEnd::NoTable)?;
    if !is_caller(ip, code) {
        return Err(WalkEnd::NoTable);
    }
    Ok((Registers { ip, sp: bp.wrapping_add(16), bp: caller_bp }, false))
}
