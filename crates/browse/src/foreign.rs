//! Entries for the fuzzers to parsers that are private to this crate; nothing else calls them.

use crate::{devtools, pages, visit};
use serde_json::Value;
use std::path::Path;

/// A message of a browser to the first call, and what a page says of its visit in it.
pub fn browser(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    visit::visit(&text);
    if let Ok(message) = serde_json::from_str::<Value>(&text)
        && let Some(Ok(answer)) = devtools::answer(message, 1)
        && let Some(value) = answer.pointer("/result/value").and_then(Value::as_str)
    {
        visit::visit(value);
    }
}

/// A list of pages that stands in `directory`: how many it names.
pub fn page_list(directory: &Path, text: &str) -> Option<usize> {
    pages::of_list(&directory.join("list"), text).ok().map(|pages| pages.len())
}
