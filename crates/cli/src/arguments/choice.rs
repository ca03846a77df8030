//! Words of which one is chosen, with what each means, as a library declares them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// One of these: its word, its help and its value.
pub fn choice<T: Clone + Send + Sync + 'static>(
    of: impl IntoIterator<Item = (&'static str, &'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let all: Vec<(&'static str, &'static str, T)> = of.into_iter().collect();
    let words: Vec<PossibleValue> = all.iter().map(|(word, help, _)| PossibleValue::new(*word).help(*help)).collect();
    PossibleValuesParser::new(words).try_map(move |chosen: String| {
        let found = all.iter().find(|(word, ..)| *word == chosen).map(|(.., value)| value.clone());
        found.ok_or_else(|| format!("there is no {chosen}"))
    })
}
