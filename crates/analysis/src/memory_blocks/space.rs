//! Which blocks lie where in one address space.

use std::collections::BTreeMap;

/// A part of a block that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// First address.
    pub from: u64,
    /// Address after the last.
    pub to: u64,
    /// Number of the block.
    pub block: u32,
}

impl Part {
    pub fn bytes(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    pub fn holds(&self, address: u64) -> bool {
        (self.from..self.to).contains(&address)
    }

    fn cut_to(self, from: u64, to: u64) -> Self {
        Self { from: self.from.max(from), to: self.to.min(to), ..self }
    }
}

/// The parts of one address space, which do not overlap.
#[derive(Debug, Default)]
pub(super) struct Space {
    parts: BTreeMap<u64, Part>,
}

impl Space {
    /// The part that an address is in.
    pub fn part_at(&self, address: u64) -> Option<Part> {
        let (_, part) = self.parts.range(..=address).next_back()?;
        part.holds(address).then_some(*part)
    }

    /// What lies between two addresses, cut to them.
    pub fn between(&self, from: u64, to: u64) -> Vec<Part> {
        self.reaching_into(from, to).map(|part| part.cut_to(from, to)).collect()
    }

    /// Takes out what lies between two addresses; parts that reach beyond are cut.
    pub fn take(&mut self, from: u64, to: u64) -> Vec<Part> {
        let reaching: Vec<Part> = self.reaching_into(from, to).collect();
        for part in &reaching {
            self.parts.remove(&part.from);
            self.put(Part { to: from, ..*part });
            self.put(Part { from: to, ..*part });
        }
        reaching.into_iter().map(|part| part.cut_to(from, to)).collect()
    }

    /// Takes out everything.
    pub fn take_all(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts).into_values().collect()
    }

    /// Puts a part where nothing lies; one without a byte is left out.
    pub fn put(&mut self, part: Part) {
        if part.from < part.to {
            self.parts.insert(part.from, part);
        }
    }

    fn reaching_into(&self, from: u64, to: u64) -> impl Iterator<Item = Part> {
        // Of the parts that begin before, only the last can reach into the range: they do not overlap.
        let before = self.parts.range(..from).next_back().filter(|(_, part)| part.to > from);
        let within = (from < to).then(|| self.parts.range(from..to)).into_iter().flatten();
        before.filter(|_| from < to).into_iter().chain(within).map(|(_, part)| *part)
    }
}
