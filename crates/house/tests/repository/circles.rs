//! Files of a crate use each other one way, but for the circles that are listed.

use slowpath_house::circles::{Circles, circles, differences, listed, shown, shown_uses};
use slowpath_house::file_uses::{Sources, Uses, uses};
use slowpath_house::{files_below, root};
use std::collections::BTreeMap;

/// What stands before the list.
const BEGINNING: &str = "\
# Circles between the files of a crate that are left to mend: the crate, and the files that use each other. A test
# compares (crates/house/tests/repository/circles.rs). The list only shrinks: `make schemas` takes from it what is mended,
# and adds nothing.
";

fn uses_by_crate() -> BTreeMap<String, Uses> {
    let folder = root().join("crates");
    let mut crates = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let src = folder.join(&name).join("src");
        if !src.is_dir() {
            continue;
        }
        let rust = files_below(&src).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
        let text = |path: std::path::PathBuf| {
            let text = std::fs::read_to_string(src.join(&path)).unwrap();
            (path.to_str().unwrap().to_owned(), text)
        };
        let sources: Sources = rust.map(text).collect();
        let uses = uses(&sources).unwrap_or_else(|error| panic!("crates/{name}/src/{error}"));
        crates.insert(name, uses);
    }
    assert!(crates.len() > 20, "only {} crates found: the search is broken", crates.len());
    assert!(crates["analysis"].len() > 50, "hardly a file uses another: the search is broken");
    crates
}

#[test]
fn files_use_each_other_one_way_but_for_the_circles_that_are_left() {
    let uses = uses_by_crate();
    let found: Circles = uses.iter().map(|(name, uses)| (name.clone(), circles(uses))).collect();
    let path = root().join("crates/house/known-circles.txt");
    let list = listed(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let differences = differences(&found, &list);
    let of = |name: &str, circle| format!("crates/{name}/src:\n{}", shown_uses(circle, &uses[name]));
    let new: Vec<String> = differences.new.iter().map(|(name, circle)| of(name, circle)).collect();
    assert!(
        new.is_empty(),
        "files use each other in a circle; move what both need to a file of its own:\n{}",
        new.join("\n")
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, [BEGINNING, &shown(&found)].concat()).unwrap();
    } else {
        let mended = &differences.mended;
        assert!(
            mended.is_empty(),
            "run `make schemas`: the list names circles that are mended, at least in part: {mended:?}"
        );
    }
}
