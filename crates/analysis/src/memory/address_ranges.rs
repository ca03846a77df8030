//! Ranges of one address space, each with the number of its owner.

use std::collections::BTreeMap;

/// A range and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedRange {
    /// First address.
    pub from: u64,
    /// Address after the last.
    pub to: u64,
    /// Number of its owner: a block, say.
    pub owner: u32,
}

impl OwnedRange {
    /// Its size.
    pub fn bytes(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether an address is in it.
    pub fn holds(&self, address: u64) -> bool {
        (self.from..self.to).contains(&address)
    }

    fn cut_to(self, from: u64, to: u64) -> Self {
        Self { from: self.from.max(from), to: self.to.min(to), ..self }
    }
}

/// The ranges of one address space, which do not overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressRanges {
    parts: BTreeMap<u64, OwnedRange>,
}

impl AddressRanges {
    /// The part that an address is in.
    pub fn part_at(&self, address: u64) -> Option<OwnedRange> {
        let (_, part) = self.parts.range(..=address).next_back()?;
        part.holds(address).then_some(*part)
    }

    /// What lies between two addresses, cut to them.
    pub fn between(&self, from: u64, to: u64) -> Vec<OwnedRange> {
        self.reaching_into(from, to).map(|part| part.cut_to(from, to)).collect()
    }

    /// Takes out what lies between two addresses; parts that reach beyond are cut.
    pub fn take(&mut self, from: u64, to: u64) -> Vec<OwnedRange> {
        let reaching: Vec<OwnedRange> = self.reaching_into(from, to).collect();
        for part in &reaching {
            self.parts.remove(&part.from);
            self.put(OwnedRange { to: from, ..*part });
            self.put(OwnedRange { from: to, ..*part });
        }
        reaching.into_iter().map(|part| part.cut_to(from, to)).collect()
    }

    /// Takes out everything.
    pub fn take_all(&mut self) -> Vec<OwnedRange> {
        std::mem::take(&mut self.parts).into_values().collect()
    }

    /// Puts a part where nothing lies; one without a byte is left out.
    pub fn put(&mut self, part: OwnedRange) {
        if part.from < part.to {
            self.parts.insert(part.from, part);
        }
    }

    /// Puts a part where nothing lies, as one with neighbours of the same owner.
    pub fn join(&mut self, mut part: OwnedRange) {
        if part.from >= part.to {
            return;
        }
        if let Some(after) = self.parts.get(&part.to).filter(|after| after.owner == part.owner).copied() {
            self.parts.remove(&after.from);
            part.to = after.to;
        }
        match self.parts.range_mut(..part.from).next_back() {
            Some((_, before)) if before.to == part.from && before.owner == part.owner => before.to = part.to,
            _ => self.put(part),
        }
    }

    fn reaching_into(&self, from: u64, to: u64) -> impl Iterator<Item = OwnedRange> {
        // Of the parts that begin before, only the last can reach into the range: they do not overlap.
        let before = self.parts.range(..from).next_back().filter(|(_, part)| part.to > from);
        let within = (from < to).then(|| self.parts.range(from..to)).into_iter().flatten();
        before.filter(|_| from < to).into_iter().chain(within).map(|(_, part)| *part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_owner_are_one_part_and_others_are_not() {
        let mut ranges = AddressRanges::default();
        let part = |from, to, owner| OwnedRange { from, to, owner };
        [part(0, 2, 1), part(4, 6, 1), part(8, 9, 2), part(2, 4, 1), part(6, 8, 1), part(9, 9, 2)]
            .into_iter()
            .for_each(|part| ranges.join(part));
        assert_eq!(ranges.between(0, 20), [part(0, 8, 1), part(8, 9, 2)]);
        assert_eq!(ranges.take(3, 5), [part(3, 5, 1)]);
        ranges.join(part(3, 5, 2));
        assert_eq!(ranges.between(0, 20), [part(0, 3, 1), part(3, 5, 2), part(5, 8, 1), part(8, 9, 2)]);
    }
}
