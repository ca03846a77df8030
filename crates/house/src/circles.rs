//! Circles between files of a crate: files that all use each other, directly or through others of them. None of these
//! can be understood, tested or moved without the rest.
//!
//! Owns finding them in what [`crate::file_uses`] says, and the list of those that are left, which only shrinks: a circle
//! that is not on it is an error, and so is one on it that is mended.

use crate::file_uses::Uses;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Files that use each other, relative to the crate's `src`.
pub type Circle = BTreeSet<String>;

/// The circles of each crate, none of a crate without.
pub type Circles = BTreeMap<String, Vec<Circle>>;

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

/// The list as a file has it: a line with the crate for each circle, and its files below it, indented.
pub fn shown(circles: &Circles) -> String {
    let mut text = String::new();
    for (name, circle) in circles.iter().flat_map(|(name, all)| all.iter().map(move |circle| (name, circle))) {
        let _ = writeln!(text, "{name}");
        for file in circle {
            let _ = writeln!(text, "    {file}");
        }
    }
    text
}

/// Reads what [`shown`] writes; lines with `#` are comments.
///
/// # Errors
/// A file stands before any crate.
pub fn listed(text: &str) -> Result<Circles, String> {
    let mut circles = Circles::new();
    let mut current = None;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        if let Some(file) = line.strip_prefix("    ") {
            let circle = current
                .as_ref()
                .and_then(|name| circles.get_mut(name))
                .and_then(|all: &mut Vec<Circle>| all.last_mut());
            circle.ok_or_else(|| format!("{file} stands before any crate"))?.insert(file.to_owned());
        } else {
            circles.entry(line.to_owned()).or_default().push(Circle::new());
            current = Some(line.to_owned());
        }
    }
    Ok(circles)
}

/// How the circles of a tree differ from those that are listed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// With the crate: those that are no part of a listed one. These must be mended.
    pub new: Vec<(String, Circle)>,
    /// Those of the list that are mended, wholly or in part. The list must forget them.
    pub mended: Vec<(String, Circle)>,
}

/// Compares what is there with what is listed.
pub fn differences(found: &Circles, listed: &Circles) -> Differences {
    let all = |circles: &Circles| -> Vec<(String, Circle)> {
        circles.iter().flat_map(|(name, all)| all.iter().map(move |one| (name.clone(), one.clone()))).collect()
    };
    let has = |circles: &Circles, name: &str, of: &dyn Fn(&Circle) -> bool| {
        circles.get(name).is_some_and(|all| all.iter().any(of))
    };
    let is_new = |(name, circle): &(String, Circle)| !has(listed, name, &|known| circle.is_subset(known));
    let is_mended = |(name, known): &(String, Circle)| !has(found, name, &|circle| circle == known);
    Differences {
        new: all(found).into_iter().filter(is_new).collect(),
        mended: all(listed).into_iter().filter(is_mended).collect(),
    }
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

    fn of(name: &str, circles: &[&[&str]]) -> Circles {
        [(name.to_owned(), circles.iter().map(|files| circle(files)).collect())].into()
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

    #[test]
    fn the_list_reads_back_as_it_was_written() {
        let circles: Circles = of("x", &[&["a.rs", "b.rs"], &["c.rs", "d/mod.rs"]]);
        assert_eq!(listed(&format!("# why\n\n{}", shown(&circles))).unwrap(), circles);
        assert!(listed("    a.rs\n").is_err());
    }

    #[test]
    fn a_circle_that_is_new_or_grows_differs_and_so_does_one_that_shrinks_or_is_gone() {
        let known = of("x", &[&["a", "b", "c"]]);
        assert_eq!(differences(&known, &known), Differences::default());

        let new = differences(&of("x", &[&["a", "b", "c"], &["d", "e"]]), &known);
        assert_eq!((new.new, new.mended.len()), (vec![("x".to_owned(), circle(&["d", "e"]))], 0));
        let elsewhere = differences(&of("y", &[&["a", "b", "c"]]), &known);
        assert_eq!((elsewhere.new.len(), elsewhere.mended.len()), (1, 1));
        let grown = differences(&of("x", &[&["a", "b", "c", "d"]]), &known);
        assert_eq!((grown.new.len(), grown.mended.len()), (1, 1));

        let shrunk = differences(&of("x", &[&["a", "b"]]), &known);
        assert_eq!((shrunk.new.len(), shrunk.mended.len()), (0, 1));
        let gone = differences(&Circles::new(), &known);
        assert_eq!((gone.new.len(), gone.mended), (0, vec![("x".to_owned(), circle(&["a", "b", "c"]))]));
    }
}
