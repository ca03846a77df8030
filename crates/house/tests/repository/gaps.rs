//! Everything that a result can say to be unavailable has a declaration, which `explain` and the reference are made from.

use slowpath_house::{files_below, root};
use slowpath_tables::missing;
use std::path::Path;

/// Where such a value is made by hand, and the names it has there. Factors of a context are declared with the factors;
/// their screen joins several in a line.
const BY_HAND: [(&str, &[&str]); 4] = [
    ("context/src/difference.rs", &[]),
    ("context/src/snapshot.rs", &[]),
    ("context/src/toggles/plan.rs", &[]),
    ("report/src/terminal/context.rs", &[]),
];

/// Numbers of the lines, from 1, on which the struct is filled in by hand: not its type, and no variant of that name.
fn filled_in(text: &str) -> Vec<usize> {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    let is_literal = |at: usize| {
        let (before, after) = (&code[..at], &code[at..]);
        let body = after.split('}').next().unwrap_or(after);
        let is_type = before.ends_with("-> ") || before.ends_with("::") || before.ends_with("struct ");
        !is_type && body.contains("what") && !body.contains("what: &'static str")
    };
    let found = code.match_indices("Unavailable {").map(|(at, _)| at).filter(|at| is_literal(*at));
    found.map(|at| code[..at].lines().count().max(1)).collect()
}

#[test]
fn a_gap_that_is_filled_in_by_hand_is_found_and_types_and_variants_are_not() {
    assert_eq!(filled_in("a\n    Some(Unavailable { what: x, reason, remedy })"), [2]);
    assert_eq!(filled_in("Unavailable {\n  what,\n}"), [1]);
    for other in ["fn a() -> Unavailable {\n what()", "Reading::Unavailable { what }", "pub struct Unavailable { what"]
    {
        assert_eq!(filled_in(other), [] as [usize; 0], "{other}");
    }
}

#[test]
fn whatever_a_result_says_to_be_unavailable_is_declared() {
    let crates = root().join("crates");
    let mut wrong = Vec::new();
    let sources =
        files_below(&crates).into_iter().filter(|path| path.components().any(|part| part.as_os_str() == "src"));
    for path in sources.filter(|path| path.extension().is_some_and(|kind| kind == "rs")) {
        // The constructors, and modules of tests.
        if path.starts_with("tables/src")
            || path.ends_with("tests.rs")
            || BY_HAND.iter().any(|(file, _)| path == Path::new(file))
        {
            continue;
        }
        let text = std::fs::read_to_string(crates.join(&path)).unwrap();
        wrong.extend(filled_in(&text).into_iter().map(|line| format!("crates/{}:{line}", path.display())));
    }
    assert!(wrong.is_empty(), "make it from its declaration (slowpath_tables::missing):\n{}", wrong.join("\n"));
    for (file, names) in BY_HAND {
        let text = std::fs::read_to_string(crates.join(file)).unwrap();
        for name in names {
            assert!(text.contains(&format!("\"{name}\"")) && missing::named(name).is_some(), "{file}: {name}");
        }
    }
}
