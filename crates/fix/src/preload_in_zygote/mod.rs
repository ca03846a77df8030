//! The fix `preload_in_zygote`: one process does the common start of the children once, and forks them.
//!
//! Owns saying up to which file they start alike, and what a copy of a process brings with it. It is a change of how the program starts
//! its children, so in general slowpath predicts what it saves and does not try it. It does where the finding says that the process that
//! forks them can be brought to load what they load from outside ([`Way`]): Python by a file that [`python`] makes, other programs by
//! `LD_PRELOAD`. Leaves launching to who tries it.

pub mod python;

use crate::case::Case;
use crate::declaration::Declaration;
use crate::path_list::before;
use crate::plan::{Change, FixPlan, Scope, Trial};
use crate::program::Program;
use crate::proposal::{Proposal, predicted};
use crate::proposal_per_finding::number;
use crate::replace_allocator::VARIABLE;
use crate::source_place::plan_in_source;
use crate::treatment::Treatment;
use crate::word::Word;
use serde_json::Value;
use slowpath_analysis::Finding;
use slowpath_analysis::findings::repeated_child_work::PRELOAD_IN_ZYGOTE;
use slowpath_analysis::starts::inherited_loads::{InheritedLoads, Way};
use std::ffi::OsStr;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: PRELOAD_IN_ZYGOTE,
    former: &[],
    title: "children are forked from a process that has started once",
    what: "One process (a zygote) loads, relocates and initialises what all children need, and then waits; each child is a fork of it \
           instead of a program that is executed.",
    why: "A fork inherits what was done: libraries stay mapped and relocated, files read, tables built. A child pays for the copy of the \
        page \
          tables, and for the pages that it writes.",
    price: "the zygote stays in memory, though its pages are shared with the children; what is preloaded must be able to be forked: no threads, \
            no open connections, random seeds drawn anew in each child",
    by_hand: "`slowpath zygote advise -- CMD` says whether it pays, `slowpath zygote serve` is one; in Python: \
              multiprocessing.set_start_method(\"forkserver\") with set_forkserver_preload, or os.fork after the imports; Android and \
              Chromium have a zygote of their own",
    trial: "in warm launches, for children of Python's multiprocessing, for copies of a Python process that import the same, and for copies \
            of another process that load the same libraries; else not by slowpath: it is a change of how the program starts its children",
    propose: Some(proposals),
};

/// One proposal a finding: each is about the children of another program.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    let all = case.findings.iter().zip(case.programs).enumerate();
    all.map(|(at, (one, program))| proposal(case, one, program, &number(at, case.findings.len()))).collect()
}

fn proposal(case: &Case<'_>, one: &(usize, &Finding), program: &Program, number: &str) -> Proposal {
    // The steps of a start are timed as they were recorded.
    let predicted = predicted(&[*one]).map(|predicted| predicted * case.unrecorded);
    let finding = one.1;
    let advice = advice(finding, number);
    let Some(InheritedLoads { way, loads }) = finding.fix_inputs.inherited_loads.clone() else {
        return Proposal { plan: advice, findings: vec![one.0], predicted, gap: None, caution: None, needs: None };
    };
    let (plan, predicted, caution) = match way {
        Way::PythonSpawned => (of_python(advice, &loads, true), predicted, Some(PYTHON_CAUTION)),
        Way::PythonForked => (of_python(advice, &loads, false), predicted, Some(PYTHON_CAUTION)),
        Way::Libraries => match loadable(program, loads) {
            Err(reason) => (FixPlan { trial: Trial { possible: false, how: reason }, ..advice }, predicted, None),
            // What loading the last of them takes lies behind the last open, and is not in the finding.
            Ok(libraries) => (of_libraries(case, advice, &libraries), None, None),
        },
    };
    Proposal { plan, findings: vec![one.0], predicted, gap: None, caution: caution.map(str::to_owned), needs: None }
}

/// What a reader must know where it did nothing.
const PYTHON_CAUTION: &str = "what children import is imported before they are forked only where Python looks into PYTHONPATH, and only what \
                              can be imported there: a module of the program that needs what its main module sets up is imported by each \
                              child as before";

fn advice(finding: &Finding, number: &str) -> FixPlan {
    let text = |name: &str| finding.subject.get(name).and_then(Value::as_str).unwrap_or("the program");
    let (process, processes) = (text("process"), finding.subject.get("processes").and_then(Value::as_u64).unwrap_or(0));
    let place = format!("where {process} is started");
    FixPlan {
        title: format!("the {processes} {process} processes are forked from one that has started"),
        changes: vec![Change {
            what: format!("the source: {place}"),
            from: Some("each starts by itself".to_owned()),
            to: "start one up to the point where they begin to differ, and fork the others from it".to_owned(),
        }],
        side_effects: vec![
            "threads, locks, connections and random seeds of the first process are copied as they are: create them after the fork".to_owned(),
        ],
        price: "one more process stays in memory; its pages are shared until a child writes them".to_owned(),
        security_cost: "all children have the same layout of addresses, so what is learned of one holds for all; and they hold whatever the \
                        first one had read"
            .to_owned(),
        ..plan_in_source(PRELOAD_IN_ZYGOTE, number, &place)
    }
}

/// Python imports the modules before it forks.
fn of_python(advice: FixPlan, modules: &[String], spawned: bool) -> FixPlan {
    let (count, by) =
        (modules.len(), if spawned { "multiprocessing's fork server" } else { "the process that forks them" });
    let (from, to) = if spawned {
        (
            "each is executed and imports by itself",
            "multiprocessing.set_start_method(\"forkserver\") and multiprocessing.set_forkserver_preload([...]) before the first child is \
             started, with the modules in the evidence of the finding",
        )
    } else {
        ("each imports by itself", "import the modules in the evidence of the finding before the first fork")
    };
    FixPlan {
        title: format!("{}: {by} imports {count} modules once", advice.title),
        changes: advice
            .changes
            .iter()
            .map(|change| Change { from: Some(from.to_owned()), to: to.to_owned(), ..change.clone() })
            .collect(),
        trial: Trial {
            possible: true,
            how: "with a sitecustomize.py of slowpath's in front of PYTHONPATH; what it hides is run as well"
                .to_owned(),
        },
        treatment: Treatment::PythonPreload {
            spawned,
            modules: modules.iter().map(|module| Word::from(module.as_str())).collect(),
        },
        ..advice
    }
}

/// The libraries that every program of the launch could load, or why there are none.
fn loadable(program: &Program, mut libraries: Vec<String>) -> Result<Vec<String>, String> {
    if let Some(reason) = program.unreachable_allocator() {
        return Err(reason);
    }
    libraries.retain(|library| !program.plugins.contains(library));
    match libraries.is_empty() {
        true => Err(format!("the libraries need functions of {}, and no other program could load them", program.name)),
        false => Ok(libraries),
    }
}

/// The dynamic linker loads the libraries with the parent.
fn of_libraries(case: &Case<'_>, advice: FixPlan, libraries: &[String]) -> FixPlan {
    let user = case.variable(VARIABLE).filter(|user| !user.is_empty());
    let value = before(OsStr::new(&libraries.join(":")), user);
    FixPlan {
        title: format!("{}: their parent loads {} libraries", advice.title, libraries.len()),
        changes: vec![Change {
            what: format!("{VARIABLE} in the environment of the program"),
            from: user.map(|user| user.to_string_lossy().into_owned()),
            to: value.to_string_lossy().into_owned(),
        }],
        scope: Scope::Launch,
        side_effects: vec![
            "every program that inherits the variable loads the libraries".to_owned(),
            "their functions come before those of the same name in other libraries".to_owned(),
        ],
        price:
            "the parent, and every program that inherits the variable, loads the libraries whether it needs them or not"
                .to_owned(),
        undo: format!("start the program without {VARIABLE}, or with the value before"),
        trial: Trial { possible: true, how: "in the environment of the launch".to_owned() },
        treatment: Treatment::variable(VARIABLE, value),
        ..advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::sample::{finding, program, proposed};
    use slowpath_analysis::finding::row;

    fn children() -> Finding {
        let mut one = finding(PRELOAD_IN_ZYGOTE, 30.0);
        one.subject.extend(row([("process", "worker".into()), ("processes", 4.into())]));
        one
    }

    /// The same children where the process that forks them could load this.
    fn inheriting(way: Way, loads: &[&str]) -> Finding {
        let mut one = children();
        let loads = loads.iter().map(|load| (*load).to_owned()).collect();
        one.fix_inputs.inherited_loads = Some(InheritedLoads { way, loads });
        one
    }

    fn made(finding: Finding, mapped: &[&str], environment: &[(&str, &str)]) -> Proposal {
        proposed(&FIX, &[finding], &program(mapped), environment, &Machine::default()).remove(0)
    }

    #[test]
    fn the_plan_names_the_children_and_what_copies_share() {
        let made = made(children(), &[], &[]);
        assert_eq!(made.plan.title, "the 4 worker processes are forked from one that has started");
        assert!(!made.plan.trial.possible && made.predicted.unwrap().value < 0.0);
        assert!(made.plan.security_cost.contains("layout of addresses"));
    }

    #[test]
    fn what_is_predicted_is_what_a_launch_saves_that_nobody_records() {
        let predicted = |unrecorded| {
            let (program, machine) = (program(&[]), Machine::default());
            let made = FIX.proposals(&[children()], &[program], &[], &machine, unrecorded);
            made[0].predicted.unwrap()
        };
        let (whole, half) = (predicted(1.0), predicted(0.5));
        assert_eq!(
            (half.value, half.low, half.high),
            (whole.value / 2.0, whole.low.map(|low| low / 2.0), whole.high.map(|high| high / 2.0))
        );
    }

    #[test]
    fn children_of_multiprocessing_are_tried_with_the_modules_that_all_import() {
        let made = made(inheriting(Way::PythonSpawned, &["/p/xml", "/p/json"]), &[], &[]);
        let modules = ["/p/xml", "/p/json"].map(Word::from).to_vec();
        assert_eq!(made.plan.treatment, Treatment::PythonPreload { spawned: true, modules });
        assert!(made.plan.trial.possible && made.predicted.is_some() && made.caution.is_some());
        assert!(
            made.plan.title.ends_with("multiprocessing's fork server imports 2 modules once"),
            "{}",
            made.plan.title
        );
        assert!(made.plan.changes[0].to.contains("set_forkserver_preload"));
        // Only the program itself can keep it.
        let refusal = crate::apply::refused_everywhere(&made.plan).unwrap();
        assert!(refusal.remedy.starts_with("in the source: multiprocessing.set_start_method"), "{}", refusal.remedy);
    }

    #[test]
    fn copies_of_a_python_process_are_tried_with_its_imports_before_the_fork() {
        let made = made(inheriting(Way::PythonForked, &["/p/json"]), &[], &[]);
        let modules = vec![Word::from("/p/json")];
        assert_eq!(made.plan.treatment, Treatment::PythonPreload { spawned: false, modules });
        assert!(made.plan.changes[0].to.contains("before the first fork"));
    }

    #[test]
    fn copies_of_another_process_are_tried_with_their_libraries_where_its_linker_heeds_the_variable() {
        let finding = || inheriting(Way::Libraries, &["/l/liba.so", "/l/libb.so.1"]);
        let libc = ["/usr/lib/libc.so.6"];
        let tried = made(finding(), &libc, &[(VARIABLE, "/own.so")]);
        assert_eq!(tried.plan.treatment, Treatment::variable(VARIABLE, "/l/liba.so:/l/libb.so.1:/own.so"));
        assert!(tried.plan.trial.possible && tried.plan.scope == Scope::Launch);
        assert_eq!(tried.plan.changes[0].from.as_deref(), Some("/own.so"));
        assert_eq!(crate::apply::refused_everywhere(&tried.plan), None);
        assert_eq!(
            made(finding(), &libc, &[]).plan.treatment,
            Treatment::variable(VARIABLE, "/l/liba.so:/l/libb.so.1")
        );
        let mut of_plugins = program(&libc);
        let mut with = |plugins: &[&str]| {
            of_plugins.plugins = plugins.iter().map(|path| (*path).to_owned()).collect();
            proposed(&FIX, &[finding()], &of_plugins, &[], &Machine::default()).remove(0).plan
        };
        assert_eq!(with(&["/l/liba.so"]).treatment, Treatment::variable(VARIABLE, "/l/libb.so.1"));
        let none = with(&["/l/liba.so", "/l/libb.so.1"]).trial;
        assert!(!none.possible && none.how.contains("no other program"), "{}", none.how);
        let refused = made(finding(), &[], &[]);
        assert!(!refused.plan.trial.possible && refused.plan.trial.how.contains("libc.so.6"), "{refused:#?}");
        assert!(refused.plan.tried().environment().is_empty());
    }
}
