//! The text form says what it means and names the line it does not understand.

use crate::samples;
use slowpath_recording::{Manifest, Tables};
use slowpath_tables::{FaultKind, Nanos, all_tables};

#[test]
fn every_table_survives_the_text_form() {
    let tables = samples::every_table();
    assert_eq!(Tables::from_text(&tables.to_text()).unwrap(), tables);
    assert_eq!(tables.to_text().matches("\n== ").count(), all_tables().len(), "the tables after the manifest");
}

#[test]
fn columns_left_out_are_empty_and_numbers_may_be_hexadecimal_or_grouped() {
    let tables = Tables::from_text("== faults\nkind ts address\nmajor 1_000 0x7f00_1000\n").unwrap();
    let fault = &tables.faults[0];
    assert_eq!((fault.ts, fault.address, fault.kind), (Nanos(1_000), 0x7f00_1000, FaultKind::Major));
    assert_eq!((fault.duration, fault.pid, fault.kernel), (None, 0, false));
}

#[test]
fn a_dash_is_null_and_a_quoted_dash_is_text() {
    let tables = Tables::from_text("== opens\nts path dev\n1 \"-\" -\n").unwrap();
    assert_eq!((tables.opens[0].path.as_str(), tables.opens[0].dev), ("-", None));
}

#[test]
fn manifest_fields_that_are_not_given_are_empty() {
    let tables = Tables::from_text("== manifest\n{\"uid\": 65534,\n \"cwd\": \"/\"}\n").unwrap();
    assert_eq!(tables.manifest, Manifest { uid: 65534, cwd: "/".to_owned(), ..Manifest::default() });
}

#[test]
fn what_cannot_be_understood_is_named_with_its_line() {
    let problem = |text: &str| Tables::from_text(text).unwrap_err().to_string();
    assert_eq!(problem("\n1 2"), "line 2: stands before the first \"== table\"");
    assert_eq!(problem("== nothing\nts\n1"), "line 1: there is no table \"nothing\"");
    assert_eq!(problem("== faults"), "line 1: has no line that names the columns");
    assert_eq!(problem("== faults\nts when\n1 2"), "line 2: table faults has no column \"when\"");
    assert_eq!(problem("== faults\nts ts\n1 2"), "line 2: column \"ts\" stands twice");
    assert_eq!(problem("== faults\nts kind\n1"), "line 3: 1 values for 2 columns");
    assert_eq!(problem("== faults\nts kind\nx minor"), "line 3: column ts: \"x\" is not an integer");
    assert_eq!(problem("== faults\nts kind\n-1 minor"), "line 3: column ts: \"-1\" does not fit");
    assert_eq!(problem("== faults\nts kind\n- minor"), "line 3: column ts: must not be null");
    assert!(problem("== faults\nts\n1").starts_with("line 3: table faults: column kind"));
    assert!(problem("== faults\nts kind\n1 middling").contains("unknown word \"middling\""));
    assert!(problem("== opens\npath\n\"no end").contains("not a JSON string"));
    assert!(problem("== manifest\n{\"no_such\": 1}").contains("no field \"no_such\""));
}
