//! LD_PRELOAD -> a library that only one of them has loaded.

use super::chain::{Chain, Link, Side};
use crate::reading::{Reading, Value};
use crate::remedy::Remedy;
use crate::snapshot::Snapshot;

const VARIABLE: &str = "LD_PRELOAD";

fn preloaded(snapshot: &Snapshot) -> Option<&str> {
    snapshot.reading("environment").and_then(Reading::value)?.part(VARIABLE)
}

fn loaded_libraries(snapshot: &Snapshot) -> Option<&Value> {
    snapshot.reading("loaded_libraries").and_then(Reading::value)
}

/// The chain, where the library was really loaded: the variable alone does nothing in programs that ignore it.
pub(super) fn find(a: &Snapshot, b: &Snapshot) -> Option<Chain> {
    let (slower, with, without) = match (preloaded(a), preloaded(b)) {
        (Some(_), None) => (Side::A, a, b),
        (None, Some(_)) => (Side::B, b, a),
        _ => return None,
    };
    let named: Vec<&str> = preloaded(with)?.split([' ', ':']).filter(|name| !name.is_empty()).collect();
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let others: Vec<String> = loaded_libraries(without)?.parts().map(|(path, _)| file(path)).collect();
    let is_named = |path: &str| named.iter().any(|name| file(name) == file(path));
    let loaded: Vec<&str> = loaded_libraries(with)?
        .parts()
        .map(|(path, _)| path)
        .filter(|path| is_named(path) && !others.contains(&file(path)))
        .collect();
    if loaded.is_empty() {
        return None;
    }
    Some(Chain {
        title: format!("{} is preloaded", loaded.join(", ")),
        slower,
        links: vec![
            Link {
                factor: "environment".to_owned(),
                seen: format!("{VARIABLE}={}", named.join(":")),
                why: "the dynamic linker loads it before the program's own libraries".to_owned(),
            },
            Link {
                factor: "loaded_libraries".to_owned(),
                seen: format!("{} is loaded in one of them only", loaded.join(", ")),
                why: "its functions replace those with the same names (malloc, read, ...)".to_owned(),
            },
        ],
        cost: "from nothing to many times, as its functions are; loading and linking it costs at each start".to_owned(),
        remedies: vec![Remedy {
            what: format!("start the program without {VARIABLE}"),
            price: "what the library was loaded for".to_owned(),
        }],
        sources: vec!["ld.so(8)".to_owned()],
    })
}
