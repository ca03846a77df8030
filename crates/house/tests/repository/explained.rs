//! Every name that `--json` can print is explained: values of the schemas, which are published, one by one.

use slowpath_house::root;
use slowpath_report::explain::{self, NameKind};
use std::collections::BTreeSet;

#[test]
fn every_value_that_a_published_schema_allows_is_explained() {
    let mut documents = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(root().join("docs/schemas")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let schema = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        wrong.extend(explain::unexplained(&name, &schema));
        documents += 1;
    }
    assert!(documents > 50, "{documents} schemas");
    assert!(wrong.is_empty(), "give the variants comments:\n{}", wrong.join("\n"));
}

#[test]
fn each_kind_of_name_has_names_and_a_page_of_its_own() {
    let pages: BTreeSet<&str> = NameKind::ALL.iter().map(|kind| kind.page()).collect();
    assert_eq!(pages.len(), NameKind::ALL.len());
    let all = explain::all();
    for kind in NameKind::ALL {
        assert!(all.iter().any(|one| one.kind == kind), "{kind:?}");
    }
}
