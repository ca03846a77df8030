//! Which file a descriptor of a process is, and where in it the next read begins.

use slowpath_tables::FileKey;
use std::collections::HashMap;

/// Descriptors of a process at most.
const MOST_OF_ONE: usize = 1 << 16;
/// Descriptors of all at most.
const MOST: usize = 1 << 20;

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// The file.
    pub file: FileKey,
    /// Position.
    pub position: u64,
}

/// Those of all processes.
#[derive(Debug, Default)]
pub struct Descriptors {
    of_process: HashMap<u32, HashMap<i32, OpenFile>>,
    count: usize,
}

impl Descriptors {
    /// The file of a descriptor.
    pub fn get(&mut self, pid: u32, descriptor: i32) -> Option<&mut OpenFile> {
        self.of_process.get_mut(&pid)?.get_mut(&descriptor)
    }

    /// A descriptor is this file now.
    pub fn set(&mut self, pid: u32, descriptor: i32, file: OpenFile) {
        let own = self.of_process.entry(pid).or_default();
        if own.contains_key(&descriptor) || own.len() < MOST_OF_ONE && self.count < MOST {
            self.count += usize::from(own.insert(descriptor, file).is_none());
        }
    }

    /// A descriptor is closed.
    pub fn close(&mut self, pid: u32, descriptor: i32) {
        if let Some(own) = self.of_process.get_mut(&pid) {
            self.count -= usize::from(own.remove(&descriptor).is_some());
        }
    }

    /// A child has those of its parent.
    pub fn copy(&mut self, parent: u32, child: u32) {
        let Some(own) = self.of_process.get(&parent).cloned() else { return };
        if self.count + own.len() <= MOST && !self.of_process.contains_key(&child) {
            self.count += own.len();
            self.of_process.insert(child, own);
        }
    }

    /// A process ended.
    pub fn end(&mut self, pid: u32) {
        self.count -= self.of_process.remove(&pid).map_or(0, |own| own.len());
    }
}
