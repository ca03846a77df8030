//! The policy with which an app's own start checks and repairs what an audit found (`slowpath artifacts guard`).

use super::printed::{AndroidAudit, CodeAudit, PackageAudit};
use crate::isolation::AUDITED_UID;

/// The policy of one package: its compiled code has to be readable for isolated processes; the repair compiles it again, without the
/// profile, as the user of adb's shell. `None` where the audit has no code of it.
pub fn guard_policy(audit: &AndroidAudit, package: &PackageAudit) -> Option<String> {
    let files: Vec<(&CodeAudit, [&str; 2])> = package
        .code
        .iter()
        .filter(|one| !one.is_library && one.is_primary != Some(false))
        .map(|one| (one, [one.odex.path.as_str(), one.vdex.path.as_str()]))
        .collect();
    if files.is_empty() {
        return None;
    }
    let version = package.version.as_deref().map(plain).filter(|version| !version.is_empty());
    let mut text = format!(
        "# Written by `slowpath android audit` for {} (API level {}). Paths change with every update of the app: write it anew then.\nname = \
         {}\nversion = {}\nstate = \"/data/local/tmp/slowpath-guard\"\n",
        package.name,
        audit.device.api_level.map_or_else(|| "unknown".to_owned(), |level| level.to_string()),
        quoted(&package.name.chars().take(64).collect::<String>()),
        quoted(&version.unwrap_or_else(|| "1".to_owned())),
    );
    for (number, (one, paths)) in files.into_iter().enumerate() {
        let name = format!("{}-{}-{number}", plain(one.apk.rsplit('/').next().unwrap_or_default()), one.isa);
        text.push_str(&format!(
            "\n[[artifact]]\nname = {}\npaths = [{}, {}]\nfresh = \"readable\"\nfor = [{{ uid = {AUDITED_UID}, gid = {AUDITED_UID} \
             }}]\nrepair = {{ command = [\"/system/bin/cmd\", \"package\", \"compile\", \"-m\", \"speed\", \"-f\", {}], as = 2000, timeout = \
             \"10min\" }}\n",
            quoted(&name.chars().take(64).collect::<String>()),
            quoted(paths[0]),
            quoted(paths[1]),
            quoted(&package.name),
        ));
    }
    Some(text)
}

/// What the names of a policy may have.
fn plain(text: &str) -> String {
    let plain: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect();
    plain.trim_start_matches('.').to_owned()
}

/// A string of TOML. A JSON string without control characters is one too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
