//! Rules to instructions. The compiler is seccompiler's, which knows one action a program; programs are joined where there are several.

use crate::error::FilterError;
use crate::instruction::Instruction;
use crate::program::Program;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch};
use std::collections::BTreeMap;

/// What must hold of a call's arguments: any of the rules; none: the number alone decides.
pub type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Ends with an action (`BPF_RET | BPF_K`).
const RETURN: u16 = 0x06;
/// Goes on later (`BPF_JMP | BPF_JA`).
const JUMP: u16 = 0x05;
/// Instructions at the beginning that compare the architecture.
const HEAD: usize = 3;

/// This machine's architecture.
pub(crate) fn architecture() -> Result<TargetArch, FilterError> {
    Ok(TargetArch::try_from(std::env::consts::ARCH)?)
}

/// A program that takes the action of the first group with a rule that holds, else `default`.
///
/// # Errors
/// There are more instructions than the kernel takes, or nothing is known of this architecture.
pub fn compile(groups: Vec<(SeccompAction, Rules)>, default: &SeccompAction) -> Result<Program, FilterError> {
    // What a group ends with where none of its rules holds: an action that none has.
    let taken = |number: &u32| groups.iter().all(|(action, _)| *action != SeccompAction::Trace(*number));
    let onward = SeccompAction::Trace((0..=u16::MAX.into()).find(taken).unwrap_or_default());
    let mut joined: Vec<Instruction> = Vec::new();
    for (action, rules) in groups {
        let filter = SeccompFilter::new(rules, onward.clone(), action, architecture()?)?;
        let mut program: Vec<Instruction> = BpfProgram::try_from(filter)?.into_iter().map(Instruction::from).collect();
        let end = program.len();
        for (place, one) in program.iter_mut().enumerate() {
            if one.code == RETURN && one.k == u32::from(onward.clone()) {
                let over = u32::try_from(end - place - 1).unwrap_or_default();
                *one = Instruction { code: JUMP, jt: 0, jf: 0, k: over };
            }
        }
        // The architecture is compared once.
        let known = joined.get(..HEAD).is_some_and(|head| program.starts_with(head));
        joined.extend_from_slice(program.get(if known { HEAD } else { 0 }..).unwrap_or_default());
    }
    joined.push(Instruction { code: RETURN, jt: 0, jf: 0, k: u32::from(default.clone()) });
    Program::new(joined)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition};

    /// What a program says of a call: the instructions that these programs have, as the kernel runs them.
    pub(crate) fn run(program: &Program, number: u32, arguments: [u64; 6]) -> u32 {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => 0xc000_003e,
            _ => 0xc000_00b7,
        };
        let word = |offset: u32| match offset {
            0 => number,
            4 => architecture,
            other => {
                let argument = arguments[(other as usize - 16) / 8];
                if other % 8 == 0 { argument as u32 } else { (argument >> 32) as u32 }
            }
        };
        let (mut at, mut accumulator) = (0, 0u32);
        loop {
            let one = program.instructions()[at];
            let holds = match one.code {
                0x20 => {
                    accumulator = word(one.k);
                    None
                }
                0x54 => {
                    accumulator &= one.k;
                    None
                }
                JUMP => {
                    at += one.k as usize;
                    None
                }
                0x15 => Some(accumulator == one.k),
                0x25 => Some(accumulator > one.k),
                0x35 => Some(accumulator >= one.k),
                RETURN => return one.k,
                other => panic!("no such instruction: {other:#x}"),
            };
            at += 1 + match holds {
                Some(true) => usize::from(one.jt),
                Some(false) => usize::from(one.jf),
                None => 0,
            };
        }
    }

    fn equal(argument: u8, value: u64) -> SeccompRule {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, value).unwrap();
        SeccompRule::new(vec![condition]).unwrap()
    }

    #[test]
    fn groups_are_asked_in_their_order_and_none_is_the_default() {
        let groups = vec![
            (SeccompAction::Errno(1), Rules::from([(7, vec![equal(0, 3), equal(1, 1 << 40)])])),
            (SeccompAction::Allow, Rules::from([(7, vec![]), (9, vec![])])),
            (SeccompAction::Trace(0), Rules::from([(11, vec![])])),
        ];
        let program = compile(groups, &SeccompAction::KillProcess).unwrap();
        let (errno, allow, trace, kill) = (0x0005_0001, 0x7fff_0000, 0x7ff0_0000, 0x8000_0000);
        let said = |number, arguments: [u64; 2]| run(&program, number, [arguments[0], arguments[1], 0, 0, 0, 0]);
        assert_eq!((said(7, [3, 0]), said(7, [0, 1 << 40])), (errno, errno));
        assert_eq!((said(7, [0, 0]), said(9, [3, 0]), said(11, [0, 0])), (allow, allow, trace));
        assert_eq!(said(8, [3, 0]), kill);
    }

    #[test]
    fn without_groups_the_default_is_all() {
        let program = compile(Vec::new(), &SeccompAction::Allow).unwrap();
        assert_eq!((program.instructions().len(), run(&program, 1, [0; 6])), (1, 0x7fff_0000));
    }
}
