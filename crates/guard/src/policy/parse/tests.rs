//! Policies that are read, and what is said of those that are not.

use super::*;
use proptest::prelude::*;

const WHOLE: &str = r#"
name = "shop"
version = "4.2.1"
state = "/var/lib/shop/guard"

[[artifact]]
name = "bytecode"
paths = ["/srv/shop/__pycache__/main.cpython-311.pyc"]
for = ["www-data", 33, "www-data", { uid = 99001, gid = 99002, groups = [3003] }]
only_if_exists = "/usr/bin/python3"
repair = { command = ["/usr/bin/python3", "-m", "compileall"], as = 0, timeout = "5min" }

[[artifact]]
name = "index"
paths = ["/var/cache/shop/index"]
source = "/srv/shop/catalogue.db"
for = []
"#;

fn refused(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

/// A policy with one artifact that has these lines, and what is wrong with it.
fn refused_artifact(lines: &str) -> String {
    refused(&format!("name = \"p\"\nversion = \"1\"\nstate = \"/s\"\n[[artifact]]\nname = \"a\"\n{lines}"))
}

#[test]
fn a_whole_policy_is_read() {
    let policy = parse(WHOLE).unwrap();
    assert_eq!((policy.name.as_str(), policy.version.as_str()), ("shop", "4.2.1"));
    assert_eq!(policy.state.as_deref(), Some(Path::new("/var/lib/shop/guard")));
    let [bytecode, index] = &policy.artifacts[..] else { panic!("{policy:?}") };
    let known = |name: &str| PolicyUser::Known(name.to_owned());
    let isolated = PolicyUser::Ids { uid: 99001, gid: 99002, groups: vec![3003] };
    assert_eq!(bytecode.users, [known("www-data"), known("33"), isolated]);
    assert_eq!((&bytecode.fits_by, bytecode.only_if_exists.is_some()), (&FitsBy::Family, true));
    let repair = bytecode.repair.as_ref().unwrap();
    assert_eq!((repair.user.as_str(), repair.timeout), ("0", Duration::from_secs(300)));
    assert_eq!(repair.command, ["/usr/bin/python3", "-m", "compileall"]);
    assert_eq!(index.fits_by, FitsBy::NotOlderThan("/srv/shop/catalogue.db".into()));
    assert!(index.users.is_empty() && index.repair.is_none());
}

#[test]
fn what_is_not_known_or_missing_is_an_error_with_its_line() {
    let artifact = "[[artifact]]\nname = \"a\"\npaths = [\"/a\"]\nfresh = \"readable\"\nfor = []\n";
    for (text, said) in [
        (format!("name = \"p\"\nversion = \"1\"\nversoin = \"2\"\n{artifact}"), "line 3: unknown field `versoin`"),
        (format!("name = \"p\"\n{artifact}"), "missing field `version`"),
        ("name = \"p\"\nversion = \"1\"\n".to_owned(), "line 1: there is nothing to guard"),
        (format!("name = \"../p\"\nversion = \"1\"\n{artifact}"), "line 1: name has 1 to 64 letters"),
        (format!("name = \"p\"\nversion = \"\"\n{artifact}"), "line 2: version has 1 to 64"),
        (format!("name = \"p\"\nversion = \"1\"\nstate = \"s\"\n{artifact}"), "line 3: \"s\" is no absolute path"),
        (format!("name = \"p\"\nversion = \"1\"\n{artifact}{artifact}"), "line 8: there are two artifacts \"a\""),
        ("name = 3".to_owned(), "line 1: invalid type"),
        ("name = \"p".to_owned(), "line 1: invalid basic string"),
    ] {
        assert!(refused(&text).contains(said), "{text}: {}", refused(&text));
    }
}

#[test]
fn what_is_wrong_with_an_artifact_is_said_where_it_stands() {
    let readable = "paths = [\"/a\"]\nfresh = \"readable\"\n";
    let repair = |words: &str| format!("{readable}for = []\nrepair = {{ {words} }}");
    for (lines, said) in [
        ("paths = [\"a\"]\nfor = []".to_owned(), "line 6: \"a\" is no absolute path"),
        ("paths = [\"/a/../b\"]\nfor = []".to_owned(), "line 6: \"/a/../b\" is no absolute path without `..`"),
        ("paths = []\nfor = []".to_owned(), "line 6: paths names no file"),
        ("paths = [\"/a\"]\nfor = []".to_owned(), "line 6: no family knows /a: name its `source`"),
        ("paths = [\"/a\"]\nfor = []\nfresh = \"family\"".to_owned(), "line 8: no family knows /a"),
        ("paths = [\"/a\"]\nfor = []\nfresh = \"newer\"".to_owned(), "line 8: unknown variant `newer`"),
        ("paths = [\"/a\"]\nfor = []\nfresh = \"not_older_than_source\"".to_owned(), "line 8: there is no `source`"),
        ("paths = [\"/a\"]\nfresh = \"readable\"\nfor = []\nsource = \"/s\"".to_owned(), "line 7: `source` goes with"),
        (format!("{readable}for = [true]"), "line 8: a user is a name, a uid, or"),
        (format!("{readable}for = [4294967295]"), "line 8: 4294967295 is no id"),
        (format!("{readable}for = [-1]"), "line 8: -1 is no id"),
        (format!("{readable}for = [{{ uid = 1 }}]"), "line 8: a user in braces has a number gid"),
        (format!("{readable}for = [{{ uid = 1, gid = 1, group = 2 }}]"), "line 8: a user has no \"group\""),
        (format!("{readable}for = [{{ uid = 1, gid = 1, groups = [\"x\"] }}]"), "line 8: groups are numbers"),
        (repair("command = [], as = \"root\""), "line 9: command names no program"),
        (repair("command = [\"python3\"], as = \"root\""), "line 9: \"python3\" is no absolute path: no PATH"),
        (repair("command = [\"/bin/true\"]"), "line 9: missing field `as`"),
        (repair("command = [\"/bin/true\"], as = 0, timeout = \"2h\""), "line 9: timeout is a time up to an hour"),
        (repair("command = [\"/bin/true\"], as = 0, timeout = \"0s\""), "line 9: timeout is a time up to an hour"),
        (repair("command = [\"/bin/true\"], as = 0, timeout = \"60\""), "line 9: timeout is a time up to an hour"),
        (repair("command = [\"/bin/true\"], as = 0, shell = true"), "line 9: unknown field `shell`"),
    ] {
        assert!(refused_artifact(&lines).contains(said), "{lines}: {}", refused_artifact(&lines));
    }
    let stateless = format!("name = \"p\"\nversion = \"1\"\n[[artifact]]\nname = \"a\"\n{}", {
        repair("command = [\"/bin/true\"], as = 0")
    });
    assert!(refused(&stateless).contains("line 3: with a `repair`, the policy needs a directory `state`"));
}

#[test]
fn more_checks_than_a_start_can_wait_for_are_refused() {
    let users = (0..5_001).map(|uid| uid.to_string()).collect::<Vec<_>>().join(",");
    let said = refused_artifact(&format!("paths = [\"/a\", \"/b\"]\nfresh = \"readable\"\nfor = [{users}]"));
    assert!(said.contains("more than 10000 files and users"), "{said}");
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_an_error(text in "[a-z=\\[\\]{}\"/\n0-9., -]{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_damaged_policy_is_a_policy_or_an_error(at in 0..WHOLE.len(), with in prop::char::any()) {
        let mut text = WHOLE.to_owned();
        text.replace_range(at..=at, &with.to_string());
        if let Ok(policy) = parse(&text) {
            prop_assert!(policy.artifacts.iter().flat_map(|one| &one.paths).all(|path| path.is_absolute()));
        }
    }
}
