//! What a finding that goes by others asks of them: which programs are to keep blocks.

use crate::finding::Finding;
use crate::memory::memory_fixes::REUSE_BUFFER;
use std::collections::BTreeMap;

/// Programs of which a finding says which blocks to keep, and its name.
pub(super) fn kept(findings: &[Finding]) -> BTreeMap<String, String> {
    let keeps = findings.iter().filter(|finding| finding.fixes.iter().any(|fix| fix == REUSE_BUFFER));
    keeps
        .filter_map(|finding| Some((finding.subject.get("process")?.as_str()?.to_owned(), finding.name.clone())))
        .collect()
}
