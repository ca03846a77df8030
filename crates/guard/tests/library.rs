//! The library as a product calls it.

use slowpath_guard::{Options, Outcome, guard};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn a_product_asks_for_what_its_policy_says() {
    let place = tempfile::tempdir().unwrap();
    let [cache, policy] = ["cache.bin", "policy.toml"].map(|name| place.path().join(name));
    fs::write(&cache, "").unwrap();
    let uid = fs::metadata(&cache).unwrap().uid();
    let text = format!(
        r#"
        name = "shop"
        version = "4.2.1"

        [[artifact]]
        name = "cache"
        paths = ["{}"]
        fresh = "readable"
        for = [{uid}]
        "#,
        cache.display()
    );
    fs::write(&policy, text).unwrap();
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o644)).unwrap();
    let report = guard(&policy, &Options::default()).unwrap();
    assert_eq!(report.lines[0].outcome, Outcome::Usable);
    assert_eq!(report.exit_code(), 0);
    assert!(report.lines[0].json().contains("\"cache\""), "{}", report.lines[0].json());
}
