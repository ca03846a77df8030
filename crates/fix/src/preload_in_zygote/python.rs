//! What has Python import modules before it forks: a `sitecustomize.py` and its list of modules, in a directory in front of PYTHONPATH.
//!
//! Owns the content of both, and the variable. Leaves writing them, as the target's user, to who tries the fix.

use crate::path_list::before;
use crate::treatment::Treatment;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where Python looks for modules first (manual of Python, Command line and environment).
pub const VARIABLE: &str = "PYTHONPATH";

/// Run by every Python that finds it (module `site`); it says what it does.
const SITECUSTOMIZE: &str = include_str!("sitecustomize.py");

/// The files of a treatment, by their names; `None` where Python is not treated.
pub fn files(treatment: &Treatment) -> Option<[(&'static str, Vec<u8>); 2]> {
    let Treatment::PythonPreload { spawned, modules } = treatment else { return None };
    let mut list = Vec::from(if *spawned { "spawned\n" } else { "forked\n" });
    // A name with a line feed would be two.
    for module in modules.iter().map(|module| module.as_bytes()).filter(|module| !module.contains(&b'\n')) {
        list.extend_from_slice(module);
        list.push(b'\n');
    }
    Some([("sitecustomize.py", SITECUSTOMIZE.as_bytes().to_vec()), ("modules", list)])
}

/// The variable of a launch that finds them in `directory`; `user` is what it has already. `None` where no Python would: a colon in
/// the name ends it, and nothing escapes one.
pub fn variable(directory: &Path, user: Option<&OsStr>) -> Option<(OsString, OsString)> {
    let directory = directory.as_os_str();
    (!directory.as_bytes().contains(&b':')).then(|| (VARIABLE.into(), before(directory, user)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::Word;

    #[test]
    fn the_list_says_how_children_start_and_what_they_import() {
        let modules = ["/p/xml", "/p/a\nforked", "/p/json"].map(Word::from).to_vec();
        let [script, list] = files(&Treatment::PythonPreload { spawned: true, modules }).unwrap();
        assert_eq!((list.0, list.1.as_slice()), ("modules", &b"spawned\n/p/xml\n/p/json\n"[..]));
        assert!(script.0 == "sitecustomize.py" && script.1.starts_with(b"\"\"\"Has Python import"));
        let [_, list] = files(&Treatment::PythonPreload { spawned: false, modules: Vec::new() }).unwrap();
        assert_eq!(list.1, b"forked\n");
        assert_eq!(files(&Treatment::None), None);
    }

    #[test]
    fn the_user_s_own_path_comes_behind() {
        let of = |user: Option<&str>| variable(Path::new("/d/x"), user.map(OsStr::new)).unwrap().1;
        assert_eq!([of(None), of(Some("")), of(Some("/own"))], ["/d/x", "/d/x", "/d/x:/own"].map(OsString::from));
        assert_eq!(variable(Path::new("/d:e/x"), None), None);
    }
}
