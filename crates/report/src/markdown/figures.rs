//! Figures as a summary shows them.

use crate::terminal::{Style, figures};
use slowpath_tables::{Quantity, Unit};

const STYLE: Style = Style { unicode: true, ..Style::PLAIN };

/// Value and unit; a count is whole where it is.
pub(super) fn figure(quantity: &Quantity) -> String {
    match quantity.unit {
        Unit::Count if quantity.value.fract() == 0.0 => format!("{:.0}", quantity.value).replace('-', "−"),
        _ => figures::value(&figures::readable(*quantity), &STYLE),
    }
}

/// The interval with its unit, empty where there is none.
pub(super) fn interval(quantity: &Quantity) -> String {
    let (Some(low), Some(high)) = (quantity.low, quantity.high) else { return String::new() };
    let end = |value| figure(&Quantity::exact(value, quantity.unit));
    format!("{} … {}", end(low), end(high))
}

pub(super) fn optional(quantity: Option<&Quantity>) -> String {
    quantity.map_or_else(|| "–".to_owned(), figure)
}
