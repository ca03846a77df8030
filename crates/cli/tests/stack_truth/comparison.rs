//! Whether a recorded stack is the one that a program kept by hand (see `cases/stacks/shadow.h`). Only functions called `truth_...`
//! take part; what else is active (libraries, the start-up code) may stand between them.

/// What a recorded stack is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same functions in the same order, to the outermost.
    Right,
    /// It ends too early, for this reason, and agrees that far.
    Truncated(String),
    /// It contradicts the log.
    Wrong(String),
}

/// A recorded stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Functions called `truth_...`, the innermost first.
    pub own: Vec<String>,
    /// Why it ends too early, if it does.
    pub truncation: Option<String>,
    /// All its frames, for people.
    pub shown: String,
}

/// Stands in a log where a signal came: one function more may be active, which had not said so yet or not any more.
pub const INTERRUPTED: &str = "~";

/// What a function of the programs is called in their logs: without its path, its types, and what compilers put behind a part that
/// they moved elsewhere. Null for any other function.
pub fn own_name(symbol: &str) -> Option<String> {
    let path = without_brackets(symbol);
    let last = path
        .match_indices("truth_")
        .filter(|(at, _)| !path[..*at].ends_with(|before: char| before.is_ascii_alphanumeric() || before == '_'));
    let rest = &path[last.last()?.0..];
    let end = rest.find(|one: char| !one.is_ascii_alphanumeric() && one != '_').unwrap_or(rest.len());
    // As rustc and gcc write them, and as clang does.
    let is_closure = rest[end..].starts_with("::{") || rest[end..].starts_with("::$_");
    Some(format!("{}{}", &rest[..end], if is_closure { "{closure}" } else { "" }))
}

/// Without what stands in `<>`, `()` and `[]`: parameters, arguments, marks of clones. A symbol in full is kept.
fn without_brackets(symbol: &str) -> String {
    let mut depth = 0usize;
    let mut kept = String::new();
    for one in symbol.chars() {
        match one {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(one),
            _ => {}
        }
    }
    kept
}

/// Compares a recorded stack with what was logged, the innermost function first.
pub fn compare(logged: &[&str], recorded: &Recorded) -> Verdict {
    let own: Vec<&str> = recorded.own.iter().map(String::as_str).collect();
    match (agrees(logged, &own, recorded.truncation.is_some()), &recorded.truncation) {
        (true, None) => Verdict::Right,
        (true, Some(why)) => Verdict::Truncated(why.clone()),
        (false, _) => Verdict::Wrong(difference(logged, &own)),
    }
}

/// Whether the recorded functions are the logged ones, or, of a stack that ends early, the first of them.
fn agrees(logged: &[&str], own: &[&str], ends_early: bool) -> bool {
    match (logged, own) {
        ([INTERRUPTED, logged @ ..], own) => {
            agrees(logged, own, ends_early) || (!own.is_empty() && agrees(logged, &own[1..], ends_early))
        }
        ([], []) => true,
        (_, []) => ends_early,
        ([one, logged @ ..], [other, own @ ..]) => one == other && agrees(logged, own, ends_early),
        ([], _) => false,
    }
}

fn difference(logged: &[&str], own: &[&str]) -> String {
    let same = logged.iter().zip(own).take_while(|(one, other)| one == other).count();
    let name = |from: &[&str]| from.get(same).copied().unwrap_or("the end").to_owned();
    format!("{} instead of {} at function {same}", name(own), name(logged))
}

/// The stacks that samples of a program may have.
#[derive(Debug, Default)]
pub struct Possible<'a> {
    /// Whole chains of calls, the innermost first. A sample has one of them, or its outer part.
    pub chains: Vec<Vec<&'a str>>,
    /// The same for handlers of signals, which may stand on any of those.
    pub handlers: Vec<Vec<&'a str>>,
}

impl Possible<'_> {
    /// Judges a sample of the time in which the program was in one of these.
    pub fn judge(&self, recorded: &Recorded) -> Verdict {
        let own: Vec<&str> = recorded.own.iter().map(String::as_str).collect();
        let handler = own.iter().rposition(|name| self.handlers.iter().any(|chain| chain.last() == Some(name)));
        let (inner, outer) = own.split_at(handler.map_or(0, |at| at + 1));
        let is_part = |chains: &[Vec<&str>], part: &[&str]| chains.iter().any(|chain| chain.ends_with(part));
        let is_within = |chains: &[Vec<&str>], part: &[&str]| {
            chains.iter().any(|chain| part.is_empty() || chain.windows(part.len()).any(|window| window == part))
        };
        match &recorded.truncation {
            // The handler's own part is whole unless there is nothing outside of it.
            Some(why) => {
                let right = is_within(&self.chains, outer) && (inner.is_empty() || is_part(&self.handlers, inner))
                    || handler.is_none() && is_within(&self.handlers, &own);
                if right { Verdict::Truncated(why.clone()) } else { Verdict::Wrong(own.join(";")) }
            }
            None if !outer.is_empty() && is_part(&self.chains, outer) && is_part(&self.handlers, inner) => {
                Verdict::Right
            }
            None if handler.is_none() && !outer.is_empty() && is_part(&self.chains, outer) => Verdict::Right,
            None => Verdict::Wrong(own.join(";")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(own: &[&str], truncation: Option<&str>) -> Recorded {
        let own = own.iter().map(|name| (*name).to_owned()).collect();
        Recorded { own, truncation: truncation.map(str::to_owned), shown: String::new() }
    }

    fn is_wrong(logged: &[&str], own: &[&str]) -> bool {
        matches!(compare(logged, &recorded(own, None)), Verdict::Wrong(_))
    }

    #[test]
    fn a_missing_an_extra_and_a_swapped_function_are_distinguished_from_the_right_stack() {
        let logged = ["truth_d", "truth_c", "truth_b", "truth_a"];
        assert_eq!(compare(&logged, &recorded(&logged, None)), Verdict::Right);
        for at in 0..logged.len() {
            let mut missing = logged.to_vec();
            missing.remove(at);
            assert!(is_wrong(&logged, &missing), "{missing:?}");
            for extra in [logged[at], "truth_other"] {
                let mut more = logged.to_vec();
                more.insert(at, extra);
                assert!(is_wrong(&logged, &more), "{more:?}");
            }
            let mut swapped = logged.to_vec();
            swapped.swap(at, (at + 1) % logged.len());
            assert!(is_wrong(&logged, &swapped), "{swapped:?}");
        }
        assert!(is_wrong(&logged, &[]));
        assert!(is_wrong(&logged, &["truth_d", "truth_c", "truth_b", "truth_a", "truth_a"]));
    }

    #[test]
    fn a_stack_that_ends_early_is_truncated_only_as_far_as_it_agrees() {
        let logged = ["truth_c", "truth_b", "truth_a"];
        let compared = |own: &[&str]| compare(&logged, &recorded(own, Some("no table")));
        let truncated = Verdict::Truncated("no table".to_owned());
        assert_eq!(compared(&[]), truncated);
        assert_eq!(compared(&["truth_c", "truth_b"]), truncated);
        assert_eq!(compared(&logged), truncated);
        for own in [&["truth_b"][..], &["truth_c", "truth_a"], &["truth_c", "truth_b", "truth_a", "truth_a"]] {
            assert!(matches!(compared(own), Verdict::Wrong(_)), "{own:?}");
        }
    }

    #[test]
    fn where_a_signal_came_one_function_more_may_be_active_and_no_two() {
        let logged = ["truth_handler", INTERRUPTED, "truth_b", "truth_a"];
        assert_eq!(compare(&logged, &recorded(&["truth_handler", "truth_b", "truth_a"], None)), Verdict::Right);
        assert_eq!(
            compare(&logged, &recorded(&["truth_handler", "truth_x", "truth_b", "truth_a"], None)),
            Verdict::Right
        );
        assert!(is_wrong(&logged, &["truth_handler", "truth_x", "truth_y", "truth_b", "truth_a"]));
        assert!(is_wrong(&logged, &["truth_handler", "truth_a"]));
        assert!(is_wrong(&logged, &["truth_x", "truth_handler", "truth_b", "truth_a"]));
    }

    #[test]
    fn a_sample_has_a_possible_stack_or_its_outer_part() {
        let possible = Possible {
            chains: vec![vec!["truth_c", "truth_b", "truth_a"], vec!["truth_d", "truth_a"]],
            handlers: vec![vec!["truth_leaf", "truth_handler"]],
        };
        let judged = |own: &[&str]| possible.judge(&recorded(own, None));
        for own in [
            &["truth_a"][..],
            &["truth_b", "truth_a"],
            &["truth_d", "truth_a"],
            &["truth_handler", "truth_b", "truth_a"],
            &["truth_leaf", "truth_handler", "truth_a"],
        ] {
            assert_eq!(judged(own), Verdict::Right, "{own:?}");
        }
        for own in [
            &[][..],
            &["truth_b"],
            &["truth_c", "truth_a"],
            &["truth_a", "truth_b"],
            &["truth_d", "truth_b", "truth_a"],
            &["truth_leaf", "truth_a"],
            &["truth_leaf", "truth_handler"],
            &["truth_a", "truth_handler", "truth_a"],
        ] {
            assert!(matches!(judged(own), Verdict::Wrong(_)), "{own:?}");
        }
        let early = |own: &[&str]| possible.judge(&recorded(own, Some("no table")));
        for own in [&[][..], &["truth_c", "truth_b"], &["truth_leaf", "truth_handler"], &["truth_leaf"]] {
            assert_eq!(early(own), Verdict::Truncated("no table".to_owned()), "{own:?}");
        }
        assert!(matches!(early(&["truth_c", "truth_a"]), Verdict::Wrong(_)));
        let without_handlers = Possible { handlers: Vec::new(), ..possible };
        let early = without_handlers.judge(&recorded(&[], Some("no table")));
        assert_eq!(early, Verdict::Truncated("no table".to_owned()));
    }

    #[test]
    fn functions_are_known_by_their_last_own_name() {
        for (symbol, name) in [
            ("truth_leaf", "truth_leaf"),
            ("truth_leaf.cold", "truth_leaf"),
            ("truth_throws(int) [clone .cold]", "truth_throws"),
            ("Circle::truth_area(int)", "truth_area"),
            ("non-virtual thunk to Circle::truth_name(int)", "truth_name"),
            ("long truth_generic<long>(long, std::function<long (long)> const&)", "truth_generic"),
            ("truth_callables(long)::{lambda(long)#1}::operator()(long) const", "truth_callables{closure}"),
            ("truth_callables(long)::$_0::operator()(long) const", "truth_callables{closure}"),
            ("rust::truth_catches::{{closure}}", "truth_catches{closure}"),
            ("rust::truth_catches::{closure#0}", "truth_catches{closure}"),
            ("<rust::Square as rust::Shape>::truth_area", "truth_area"),
            ("<rust::Square>::truth_area", "truth_area"),
            ("rust::truth_generic::<f64, rust::truth_closures::{closure#1}>", "truth_generic"),
        ] {
            assert_eq!(own_name(symbol).as_deref(), Some(name), "{symbol}");
        }
        for symbol in [
            "main",
            "untruth_leaf",
            "std::_Function_handler<long (long), truth_callables(long)::{lambda(long)#1}>::_M_invoke(std::_Any_data const&)",
            "core::ops::function::FnOnce::call_once::<rust::truth_leaf>",
        ] {
            assert_eq!(own_name(symbol), None, "{symbol}");
        }
    }
}
