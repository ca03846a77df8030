//! Several questions to the same launches.

/// p-values adjusted so that the chance of any false alarm among them stays below the level that each is compared with
/// (S. Holm, Scandinavian Journal of Statistics 6 (1979), 65-70). A missing one stays missing and takes no part.
pub fn holm(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = p_values.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut adjusted = vec![None; p_values.len()];
    let mut least = 0.0f64;
    for (rank, (index, p)) in order.iter().enumerate() {
        // An adjusted value is never below that of a smaller p-value.
        least = least.max(p * (order.len() - rank) as f64).min(1.0);
        adjusted[*index] = Some(least);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_are_those_of_r() {
        // R: p.adjust(c(0.01, 0.04, 0.03), "holm")
        let adjusted = holm(&[Some(0.01), None, Some(0.04), Some(0.03)]);
        let expected = [Some(0.03), None, Some(0.06), Some(0.06)];
        for (one, other) in adjusted.iter().zip(expected) {
            assert!((one.unwrap_or(9.0) - other.unwrap_or(9.0)).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[Some(0.9), Some(0.8)]), [Some(1.0), Some(1.0)]);
        assert!(holm(&[]).is_empty());
    }
}
