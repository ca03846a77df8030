//! Quantities as a reader reads them, and the sketch of a median with its interval.

use super::line::width;
use super::style::Style;
use slowpath_tables::{Quantity, Unit};

/// A number with about three digits that count.
fn number(value: f64, style: &Style) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    // "-0.00" is no change.
    let text = if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') { "0".to_owned() } else { text };
    if style.unicode { text.replace('-', "−") } else { text }
}

/// Divisor and word for values of a unit.
fn scale(unit: Unit, largest: f64) -> (f64, &'static str) {
    match unit {
        Unit::Ns if largest >= 1e6 => (1e6, "ms"),
        Unit::Ns if largest >= 1e3 => (1e3, "us"),
        Unit::Ns => (1.0, "ns"),
        Unit::Us if largest >= 1e3 => (1e3, "ms"),
        Unit::Us => (1.0, "us"),
        Unit::Ms => (1.0, "ms"),
        Unit::S => (1.0, "s"),
        Unit::Bytes if largest >= 1e6 => (1e6, "MB"),
        Unit::Bytes if largest >= 1e3 => (1e3, "kB"),
        Unit::Bytes => (1.0, "B"),
        Unit::Pages => (1.0, "pages"),
        Unit::Count => (1.0, ""),
        Unit::Ratio => (0.01, "%"),
        Unit::Percent => (1.0, "%"),
    }
}

/// Whole seconds read better than thousands of milliseconds; without its interval then.
pub(crate) fn readable(quantity: Quantity) -> Quantity {
    match quantity.unit {
        Unit::Ms if quantity.value >= 1000.0 => Quantity::exact(quantity.value / 1000.0, Unit::S),
        _ => quantity,
    }
}

/// Value and unit: `123 ms`.
pub(crate) fn value(quantity: &Quantity, style: &Style) -> String {
    let (divisor, word) = scale(quantity.unit, quantity.value.abs());
    format!("{} {word}", number(quantity.value / divisor, style)).trim_end().to_owned()
}

/// The same with a sign, also where it is more: `+123 ms`.
pub(crate) fn change(quantity: &Quantity, style: &Style) -> String {
    let text = value(quantity, style);
    if quantity.value > 0.0 { format!("+{text}") } else { text }
}

/// The 95 % interval without its unit, in the scale of the value: `111..139`; nothing where there is none.
pub(crate) fn interval(quantity: &Quantity, style: &Style) -> Option<String> {
    let (divisor, _) = scale(quantity.unit, quantity.value.abs());
    let (low, high) = (quantity.low? / divisor, quantity.high? / divisor);
    let dots = if style.unicode { "…" } else { ".." };
    Some(format!("{}{dots}{}", number(low, style), number(high, style)))
}

/// Value with unit and interval: `123 ms (111..139)`.
pub fn with_interval(quantity: &Quantity, style: &Style) -> String {
    match interval(quantity, style) {
        Some(interval) => format!("{} ({interval})", value(quantity, style)),
        None => value(quantity, style),
    }
}

/// Value and interval on an axis that quantities of one kind share: times in milliseconds, all else as it is.
pub(crate) fn on_axis(quantity: &Quantity) -> (f64, Option<(f64, f64)>) {
    let factor = match quantity.unit {
        Unit::Ns => 1e-6,
        Unit::Us => 1e-3,
        Unit::Ms => 1.0,
        Unit::S => 1e3,
        _ => 1.0,
    };
    let ends = quantity.low.zip(quantity.high).map(|(low, high)| (low * factor, high * factor));
    (quantity.value * factor, ends)
}

/// The ends of the axis that these quantities share.
pub(crate) fn axis<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> (f64, f64) {
    let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
    for (value, interval) in quantities.map(on_axis) {
        let (low, high) = interval.unwrap_or((value, value));
        from = from.min(low);
        to = to.max(high);
    }
    (from, to)
}

/// What a sketch of times reads at its ends, over its `columns`: `170 ms     494 ms`. Nothing where both do not fit.
pub(crate) fn axis_ends(from: f64, to: f64, columns: usize, style: &Style) -> String {
    if !(from.is_finite() && to > from) {
        return String::new();
    }
    let text = |at| value(&Quantity::exact(at, Unit::Ms), style);
    let (left, right) = (text(from), text(to));
    match columns.checked_sub(width(&left) + width(&right)) {
        Some(between @ 1..) => format!("{left}{}{right}", " ".repeat(between)),
        _ => String::new(),
    }
}

/// The column of `x` on an axis of `columns` from `from` to `to`.
fn column(x: f64, from: f64, to: f64, columns: usize) -> usize {
    let span = if to > from { to - from } else { 1.0 };
    (((x - from) / span).clamp(0.0, 1.0) * columns.saturating_sub(1) as f64).round() as usize
}

/// A mark for every value, a stronger one where several fall together, and a dot at the median, on an axis of `columns`
/// from `from` to `to`.
pub(crate) fn dots(values: &[f64], median: f64, from: f64, to: f64, columns: usize, style: &Style) -> String {
    let mut counts = vec![0u32; columns];
    for value in values {
        if let Some(count) = counts.get_mut(column(*value, from, to, columns)) {
            *count += 1;
        }
    }
    let [one, several, dot] = if style.unicode { ['·', '•', '●'] } else { ['.', ':', 'o'] };
    let mark = |count: u32| match count {
        0 => ' ',
        1 => one,
        _ => several,
    };
    let mut cells: Vec<char> = counts.into_iter().map(mark).collect();
    if let Some(cell) = cells.get_mut(column(median, from, to, columns)) {
        *cell = dot;
    }
    cells.into_iter().collect()
}

/// A dot at the value and a bar over its interval, on an axis of `columns` from `from` to `to`.
pub(crate) fn sketch(quantity: &Quantity, from: f64, to: f64, columns: usize, style: &Style) -> String {
    let mut cells = vec![' '; columns];
    let (value, ends) = on_axis(quantity);
    if !value.is_finite() {
        return String::new();
    }
    let column = |x: f64| column(x, from, to, columns);
    let [left_end, bar, right_end, dot] =
        if style.unicode { ['├', '─', '┤', '●'] } else { ['|', '-', '|', 'o'] };
    if let Some((low, high)) = ends {
        let (low, high) = (column(low), column(high));
        for cell in cells.iter_mut().take(high + 1).skip(low) {
            *cell = bar;
        }
        for (at, end) in [(low, left_end), (high, right_end)] {
            if let Some(cell) = cells.get_mut(at) {
                *cell = end;
            }
        }
    }
    if let Some(cell) = cells.get_mut(column(value)) {
        *cell = dot;
    }
    cells.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICODE: Style = Style { unicode: true, ..Style::PLAIN };

    #[test]
    fn quantities_are_read_with_about_three_digits() {
        let text = |value, unit| super::value(&Quantity::exact(value, unit), &Style::PLAIN);
        assert_eq!(text(1234.4, Unit::Ms), "1234 ms");
        assert_eq!(text(12.34, Unit::Ms), "12.3 ms");
        assert_eq!(text(-0.001, Unit::Ms), "0 ms");
        assert_eq!(text(2_500_000.0, Unit::Ns), "2.50 ms");
        assert_eq!(text(141_000_000.0, Unit::Bytes), "141 MB");
        assert_eq!(text(0.425, Unit::Ratio), "42.5 %");
        assert_eq!(text(7.0, Unit::Count), "7.00");
        assert_eq!(text(f64::NAN, Unit::Ms), "? ms");
        assert_eq!(
            with_interval(&Quantity::interval(-50.0, -60.0, -4.0, Unit::Ms), &UNICODE),
            "−50.0 ms (−60.0…−4.00)"
        );
    }

    #[test]
    fn the_sketch_puts_dot_and_interval_on_one_axis() {
        let quantity = Quantity::interval(50.0, 20.0, 100.0, Unit::Ms);
        assert_eq!(sketch(&quantity, 0.0, 100.0, 11, &UNICODE), "  ├──●────┤");
        assert_eq!(sketch(&quantity, 0.0, 100.0, 11, &Style::PLAIN), "  |--o----|");
        assert_eq!(sketch(&Quantity::exact(50.0, Unit::Ms), 50.0, 50.0, 5, &UNICODE), "●    ");
        assert_eq!(sketch(&Quantity::exact(f64::NAN, Unit::Ms), 0.0, 1.0, 5, &UNICODE), "");
    }
}
