//! Takes the page that `report-ui` builds into the crate.

use std::path::Path;

fn main() -> Result<(), String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../report-ui/dist/report.html");
    println!("cargo::rerun-if-changed={}", source.display());
    let page = std::fs::read_to_string(&source)
        .map_err(|error| format!("run make report-ui first: cannot read {}: {error}", source.display()))?;
    let found = page.matches("__SLOWPATH_DATA__").count();
    if found != 1 {
        return Err(format!("{} holds __SLOWPATH_DATA__ {found} times, not once", source.display()));
    }
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&out).join("report.html"), page).map_err(|error| error.to_string())
}
