//! Files of a crate use each other one way.

use slowpath_house::circles::{circles, shown_uses};
use slowpath_house::file_uses::{Sources, Uses, uses};
use slowpath_house::{files_below, root};
use std::collections::BTreeMap;

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
fn files_use_each_other_one_way() {
    let found: Vec<String> = uses_by_crate()
        .iter()
        .flat_map(|(name, uses)| circles(uses).into_iter().map(move |circle| (name, shown_uses(&circle, uses))))
        .map(|(name, uses)| format!("crates/{name}/src:\n{uses}"))
        .collect();
    assert!(
        found.is_empty(),
        "files use each other in a circle; move what both need to a file of its own:\n{}",
        found.join("\n")
    );
}
