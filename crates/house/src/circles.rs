//! Circles between files of a crate: files that all use each other, directly or through others of them. None of these
//! can be understood, tested or moved without the rest.
//!
//! Owns finding them in what [`crate::file_uses`] says. There are none, and a test keeps it so.

use crate::file_uses::Uses;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Files that use each other, relative to the crate's `src`.
pub type Circle = BTreeSet<String>;

/// Files that a file leads to, over any number of others.
fn reached<'a>(uses: &'a Uses, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        let used = uses.get(file).into_iter().flat_map(BTreeMap::keys);
        open.extend(used.map(String::as_str).filter(|used| reached.insert(*used)));
    }
    reached
}

/// The circles in the uses between the files of a crate, each file in one at most.
pub fn circles(uses: &Uses) -> Vec<Circle> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|file| (file.as_str(), reached(uses, file))).collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
    let mut found: Vec<Circle> = Vec::new();
    for file in reached.keys().filter(|file| leads(file, file)) {
        match found.iter_mut().find(|circle| circle.first().is_some_and(|one| leads(one, file) && leads(file, one))) {
            Some(circle) => {
                circle.insert((*file).to_owned());
            }
            None => found.push([(*file).to_owned()].into()),
        }
    }
    found
}

/// The uses inside a circle, a line each: what one has to take away.
pub fn shown_uses(circle: &Circle, uses: &Uses) -> String {
    let mut text = String::new();
    for (from, used) in uses.iter().filter(|(from, _)| circle.contains(*from)) {
        for (to, path) in used.iter().filter(|(to, _)| circle.contains(*to)) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "    {from} uses {to}: {path}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(edges: &[(&str, &str)]) -> Uses {
        let mut uses = Uses::new();
        for (from, to) in edges {
            uses.entry((*from).to_owned()).or_default().insert((*to).to_owned(), format!("crate::{to}"));
        }
        uses
    }

    fn circle(files: &[&str]) -> Circle {
        files.iter().map(|file| (*file).to_owned()).collect()
    }

    #[test]
    fn files_that_lead_back_to_themselves_are_found_and_those_beside_them_are_not() {
        let uses =
            uses(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("c", "e"), ("f", "g"), ("g", "f"), ("g", "e")]);
        assert_eq!(circles(&uses), [circle(&["a", "b", "c"]), circle(&["f", "g"])]);
        assert_eq!(shown_uses(&circle(&["f", "g"]), &uses), "    f uses g: crate::g\n    g uses f: crate::f\n");
    }

    #[test]
    fn uses_that_go_one_way_are_no_circle() {
        assert_eq!(circles(&uses(&[("a", "b"), ("b", "c"), ("a", "c")])), Vec::<Circle>::new());
    }
}
