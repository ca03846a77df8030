//! Which values stand out. They are reported, and stay in every figure: what is rare belongs to the program too.

use crate::{median, power};

/// A value far from the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    /// Its place among the values.
    pub index: usize,
    /// Distance from the median in robust standard deviations, with its sign.
    pub sigmas: f64,
}

/// Distance from which a value stands out (B. Iglewicz and D. C. Hoaglin, "How to Detect and Handle Outliers", 1993).
pub const FAR: f64 = 3.5;

/// The values more than [`FAR`] robust standard deviations from the median. None where most values are equal: then
/// there is no measure of distance.
pub fn outliers(values: &[f64]) -> Vec<Outlier> {
    let (Some(centre), Some(sigma)) = (median::point(values), power::robust_sigma(values)) else { return Vec::new() };
    if sigma <= 0.0 {
        return Vec::new();
    }
    let far = |(index, value): (usize, &f64)| Outlier { index, sigmas: (value - centre) / sigma };
    values.iter().enumerate().map(far).filter(|one| one.sigmas.abs() > FAR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_far_value_is_found_and_near_ones_are_not() {
        let values = [10.0, 11.0, 9.0, 10.5, 9.5, 30.0, 10.2];
        let found = outliers(&values);
        assert_eq!(found.len(), 1);
        assert!(found[0].index == 5 && found[0].sigmas > 10.0, "{found:?}");
    }

    #[test]
    fn equal_values_have_no_outliers() {
        assert!(outliers(&[1.0, 1.0, 1.0, 1.0, 9.0]).is_empty());
        assert!(outliers(&[]).is_empty() && outliers(&[1.0]).is_empty());
    }
}
