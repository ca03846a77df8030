//! Filters that are made for a measurement: each kind costs what filters of its kind cost.

use crate::compile::{Rules, compile};
use crate::error::FilterError;
use crate::program::Program;
use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// Arguments of a system call.
const ARGUMENTS: u8 = 6;

/// What no argument of any call is: neither a descriptor nor a length, an address of a program or a negative error.
const NO_ARGUMENT: u64 = 0x5157_0bad_5157_0bad;

/// Allows the calls with these numbers and refuses all others (EPERM): no look at arguments, which kernels from 5.11 on answer from a
/// map of bits without running the program (kernel/seccomp.c, `seccomp_cache_check_allow`).
///
/// # Errors
/// Nothing is known of this architecture.
pub fn allow_list(numbers: &[i64]) -> Result<Program, FilterError> {
    let rules: Rules = numbers.iter().map(|number| (*number, Vec::new())).collect();
    compile(vec![(SeccompAction::Allow, rules)], &SeccompAction::Errno(libc::EPERM.unsigned_abs()))
}

/// Compares all six arguments of the calls with these numbers with a value that none has, and allows everything.
///
/// # Errors
/// Nothing is known of this architecture.
pub fn checks_arguments(numbers: &[i64]) -> Result<Program, FilterError> {
    let rule = |argument| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, NO_ARGUMENT)?;
        SeccompRule::new(vec![condition])
    };
    let rules = (0..ARGUMENTS).map(rule).collect::<Result<Vec<SeccompRule>, _>>()?;
    let rules: Rules = numbers.iter().map(|number| (*number, rules.clone())).collect();
    compile(vec![(SeccompAction::Errno(libc::EPERM.unsigned_abs()), rules)], &SeccompAction::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::run;

    const ALLOW: u32 = 0x7fff_0000;
    const REFUSE: u32 = 0x0005_0001;

    #[test]
    fn an_allow_list_allows_what_it_lists() {
        let program = allow_list(&[3, 39, 110]).unwrap();
        assert_eq!([3, 39, 110].map(|number| run(&program, number, [1; 6])), [ALLOW; 3]);
        assert_eq!([2, 4, 40, 400].map(|number| run(&program, number, [1; 6])), [REFUSE; 4]);
    }

    #[test]
    fn every_argument_is_looked_at_and_everything_is_allowed() {
        let program = checks_arguments(&[39, 110]).unwrap();
        assert_eq!(run(&program, 39, [u64::MAX, 0, 1, 2, 3, 4]), ALLOW);
        assert_eq!(run(&program, 41, [NO_ARGUMENT; 6]), ALLOW);
        for argument in 0..6 {
            let mut arguments = [7; 6];
            arguments[argument] = NO_ARGUMENT;
            assert_eq!(run(&program, 110, arguments), REFUSE, "argument {argument}");
        }
    }
}
