//! A real program, one instruction after the other: at each of them the walk must give the callers that the calls and returns
//! executed so far have left. Calls and returns of x86-64: other architectures keep the return address in a register.

use crate::tracing::{Stop, Tracee};
use slowpath_symbols::audit::{Agreement, Mapping, Oracle, compare};
use slowpath_symbols::unwind_table::{UnwindTable, vdso};
use slowpath_symbols::walk::{Code, Registers, Walk, WalkEnd, walk};
use std::path::Path;
use std::process::Command;

/// A place on the stack that leads to a caller.
enum Caller {
    /// A return address and where it stands.
    Return { slot: u64, address: u64 },
    /// What a signal interrupted.
    Interrupted { ip: u64, sp: u64 },
}

/// What the executed instructions say of the stack, kept without any unwinding information.
struct Truth(Vec<Caller>);

impl Truth {
    fn frames(&self, ip: u64) -> Vec<u64> {
        let callers = self.0.iter().rev().map(|caller| match caller {
            Caller::Return { address, .. } => *address,
            Caller::Interrupted { ip, .. } => *ip,
        });
        std::iter::once(ip).chain(callers).collect()
    }

    /// After one instruction. A call pushes the address of the next instruction and goes elsewhere; what stands below the
    /// stack pointer has been returned from.
    fn step(&mut self, before: Registers, after: Registers, top: u64) {
        loop {
            match self.0.last() {
                Some(Caller::Return { slot, .. }) if *slot < after.sp && before.sp == *slot => self.0.pop(),
                Some(Caller::Interrupted { ip, sp }) if (*ip, *sp) == (after.ip, after.sp) => self.0.pop(),
                _ => break,
            };
        }
        let next = before.ip + 2..=before.ip + 7;
        if after.sp == before.sp.wrapping_sub(8) && next.contains(&top) && (top != after.ip) {
            // A push of what happens to be a near address does not jump.
            let jumped = !(before.ip + 1..=before.ip + 15).contains(&after.ip) || after.ip < before.ip;
            if jumped {
                self.0.push(Caller::Return { slot: after.sp, address: top });
            }
        }
    }
}

struct Modules {
    mappings: Vec<(Mapping, Option<UnwindTable>)>,
}

impl Modules {
    fn of(tracee: &Tracee) -> Self {
        let maps = tracee.maps();
        let executable = maps.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (start, end) = words[0].split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            let path = words.get(5).copied().unwrap_or_default();
            let mapping =
                Mapping { path: path.into(), addresses: number(start)?..number(end)?, offset: number(words[2])? };
            words[1].contains('x').then_some(mapping)
        });
        let table = |mapping: &Mapping| match mapping.path.to_str() {
            Some("[vdso]") => vdso(),
            _ => UnwindTable::of_elf(&std::fs::read(&mapping.path).ok()?).ok(),
        };
        Self { mappings: executable.map(|mapping| (mapping.clone(), table(&mapping))).collect() }
    }

    fn code(&self, address: u64) -> Code<'_> {
        match self.mappings.iter().find(|(mapping, _)| mapping.addresses.contains(&address)) {
            None => Code::NotExecutable,
            Some((mapping, None)) if mapping.path.is_absolute() => Code::NoTable,
            Some((_, None)) => Code::Generated,
            Some((mapping, Some(table))) => Code::Table(table, address - mapping.addresses.start + mapping.offset),
        }
    }

    fn walk(&self, tracee: &Tracee, registers: Registers) -> Walk {
        walk(registers, |address| self.code(address), |address| tracee.word(address))
    }
}

#[derive(Debug, Default)]
struct Counts {
    instructions: usize,
    whole: usize,
    in_the_loader: usize,
    cut: usize,
    audited: usize,
    same: usize,
    truncated: usize,
    unknown: usize,
    signals: usize,
    deepest: usize,
}

/// Steps from the first breakpoint to the second; `every` how many instructions the oracle is asked.
fn follow(program: &Path, every: usize) -> Option<Counts> {
    let Some(mut tracee) = Tracee::start(program, &[]) else {
        println!("skipped: no ptrace here");
        return None;
    };
    assert_eq!(tracee.go_on(), Stop::Signal(libc::SIGTRAP));
    let modules = Modules::of(&tracee);
    let mappings: Vec<Mapping> = modules.mappings.iter().map(|(mapping, _)| mapping.clone()).collect();
    let mut oracle = Oracle::new(&mappings);
    let stack_end = tracee.stack_end();

    let mut before = tracee.registers();
    let start = modules.walk(&tracee, before);
    assert_eq!(start.end, WalkEnd::Outermost, "{start:x?}");
    // main was called by __libc_start_call_main, that by __libc_start_main, that by the program's own _start.
    let own = modules.mappings.iter().find(|(mapping, _)| mapping.path == program).unwrap();
    assert!(start.frames.len() == 4 && own.0.addresses.contains(&start.frames[3]), "{start:x?}");
    let callers = start.frames[1..].iter().rev();
    let mut truth = Truth(callers.map(|&address| Caller::Return { slot: u64::MAX, address }).collect());

    let (mut counts, mut signal) = (Counts::default(), 0);
    loop {
        match tracee.step(signal) {
            Stop::Signal(libc::SIGTRAP) => {}
            Stop::Signal(number) => {
                signal = number;
                continue;
            }
            Stop::Ended => panic!("ended before the second breakpoint: {counts:?}"),
        }
        let registers = tracee.registers();
        let top = tracee.word(registers.sp).unwrap();
        if signal != 0 {
            counts.signals += 1;
            truth.0.push(Caller::Interrupted { ip: before.ip, sp: before.sp });
            truth.0.push(Caller::Return { slot: registers.sp, address: top });
            signal = 0;
        } else if tracee.word(before.ip).is_some_and(|code| code & 0xff == 0xcc) {
            return Some(counts);
        } else {
            truth.step(before, registers, top);
        }
        before = registers;
        counts.instructions += 1;
        let known = truth.frames(registers.ip);
        counts.deepest = counts.deepest.max(known.len());
        let walked = modules.walk(&tracee, registers);
        let place = || {
            let at = modules.mappings.iter().find(|(mapping, _)| mapping.addresses.contains(&registers.ip));
            format!("{at:x?}").chars().take(200).collect::<String>()
        };
        if walked.end == WalkEnd::Outermost {
            assert_eq!(walked.frames, known, "{registers:x?} in {}", place());
            counts.whole += 1;
        } else {
            assert!(known.starts_with(&walked.frames), "{walked:x?}, not {known:x?} in {}", place());
            let last =
                walked.frames.last().and_then(|at| modules.mappings.iter().find(|one| one.0.addresses.contains(at)));
            // The resolver of the lazy linkage table saves registers in an area of unknown size: its frame hangs on rbx.
            let loader = last.is_some_and(|(mapping, _)| mapping.path.to_string_lossy().contains("/ld-linux"));
            assert_eq!(walked.end, WalkEnd::BadRule, "{walked:x?}, {known:x?} in {}", place());
            *if loader { &mut counts.in_the_loader } else { &mut counts.cut } += 1;
        }
        if counts.instructions.is_multiple_of(every) {
            let copy = tracee.copy(registers.sp, stack_end);
            let second = oracle.unwind(registers, &copy);
            assert!(known.starts_with(&second.frames), "{second:x?}, not {known:x?} in {}", place());
            assert!(!second.complete || known == second.frames, "{second:x?} is not all of {known:x?}");
            counts.audited += 1;
            match compare(&walked.frames, walked.end, &second) {
                Agreement::Same => counts.same += 1,
                Agreement::Truncated => counts.truncated += 1,
                Agreement::Unknown => counts.unknown += 1,
                Agreement::Wrong => panic!("{walked:x?}, {second:x?}, {known:x?}"),
            }
        }
    }
}

#[test]
fn at_every_instruction_the_walk_gives_the_callers_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/stacks.c");
    let mut compilers = 0;
    for compiler in ["cc", "clang"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            println!("skipped: no {compiler}");
            continue;
        }
        let program = folder.path().join(compiler);
        let mut command = Command::new(compiler);
        command.args(["-O2", "-fomit-frame-pointer", "-Wl,-z,lazy"]).arg(&source).arg("-o").arg(&program);
        assert!(command.status().unwrap().success());
        let Some(counts) = follow(&program, 5) else { return };
        println!("{compiler}: {counts:?}");
        assert!(counts.instructions > 3000 && counts.signals == 2 && counts.deepest > 12, "{counts:?}");
        // Cut are the few instructions that realign a stack, where the frame hangs on r10.
        assert!(counts.cut * 50 < counts.whole, "{counts:?}");
        assert!(counts.same + counts.unknown == counts.audited && counts.same * 3 > counts.audited, "{counts:?}");
        compilers += 1;
    }
    assert!(compilers > 0 || Command::new("cc").output().is_err());
}

/// Deep recursion, sorting with a key, text and dictionaries, from where it stops itself.
const SCRIPT: &str = "
import os, re, signal
f = lambda n: n and len(str(f(n - 1))) + n
os.kill(os.getpid(), signal.SIGTRAP)
while True:
    sorted(range(9), key=lambda n: f(n))
    {str(n): re.sub('[a-c]+', lambda m: str(f(9)), 'xabcx') for n in range(5)}
";

#[test]
fn an_interpreter_looked_at_here_and_there_agrees_with_the_oracle() {
    let program = Path::new("/usr/bin/python3");
    let tracee = program.exists().then(|| Tracee::start(program, &["-c", SCRIPT])).flatten();
    let Some(mut tracee) = tracee else {
        println!("skipped: no python3, or no ptrace");
        return;
    };
    assert_eq!(tracee.go_on(), Stop::Signal(libc::SIGTRAP));
    let modules = Modules::of(&tracee);
    let mappings: Vec<Mapping> = modules.mappings.iter().map(|(mapping, _)| mapping.clone()).collect();
    let mut oracle = Oracle::new(&mappings);
    let (stack_end, mut counts) = (tracee.stack_end(), Counts::default());
    while counts.audited < 300 {
        // A prime, so that no loop of the interpreter is always met at the same place.
        for _ in 0..211 {
            assert_eq!(tracee.step(0), Stop::Signal(libc::SIGTRAP));
        }
        let registers = tracee.registers();
        let walked = modules.walk(&tracee, registers);
        let second = oracle.unwind(registers, &tracee.copy(registers.sp, stack_end));
        counts.audited += 1;
        counts.deepest = counts.deepest.max(walked.frames.len());
        match compare(&walked.frames, walked.end, &second) {
            Agreement::Same => counts.same += 1,
            Agreement::Truncated => counts.truncated += 1,
            Agreement::Unknown => counts.unknown += 1,
            Agreement::Wrong => panic!("{walked:x?}, {second:x?}"),
        }
    }
    println!("{counts:?}");
    assert!(counts.same * 10 > counts.audited * 9 && counts.deepest > 15, "{counts:?}");
}
