//! The states that spans of a page can have: those of threads and devices that are declared here, then the ledger's categories.

use slowpath_analysis::time::ledger::Category;

/// The states of threads and devices. A span names one by its place in this list.
pub(super) const OWN_STATES: [&str; 7] =
    ["running", "not_recorded", "several", "idle", "reading", "writing", "reading_and_writing"];
pub(super) const RUNNING: u8 = 0;
pub(super) const NOT_RECORDED: u8 = 1;
pub(super) const SEVERAL: u8 = 2;

pub(super) fn state_of(category: Option<Category>, has_waits: bool) -> u8 {
    match category {
        Some(category) => OWN_STATES.len() as u8 + category as u8,
        None if has_waits => RUNNING,
        None => NOT_RECORDED,
    }
}

/// The names of all states: those of the timeline, then the ledger's categories.
pub(super) fn state_names() -> Vec<String> {
    let category = |category: &Category| match serde_json::to_value(category) {
        Ok(serde_json::Value::String(name)) => name,
        _ => category.words().to_owned(),
    };
    OWN_STATES.iter().map(|name| (*name).to_owned()).chain(Category::ALL.iter().map(category)).collect()
}

/// Time in which a thread did something, or the machine kept it from doing it.
pub(super) fn busy(times: &[u64]) -> u64 {
    let is_idle = |state: usize| {
        let category = state.checked_sub(OWN_STATES.len()).and_then(|at| Category::ALL.get(at));
        category.is_some_and(|category| category.is_idle())
    };
    times.iter().enumerate().filter(|(state, _)| !is_idle(*state)).map(|(_, time)| *time).sum()
}
