//! What the programs of `cases/stacks` wrote down: see `shadow.h`.

use std::path::Path;

/// A page that was touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    pub pid: u32,
    pub tid: u32,
    /// First byte of the page.
    pub address: u64,
    /// Before it was touched, in ns of CLOCK_MONOTONIC.
    pub ts: u64,
    /// The functions that were active, the innermost first.
    pub chain: Vec<String>,
}

/// All logs of one run.
#[derive(Debug, Default)]
pub struct Log {
    pub touches: Vec<Touch>,
    pub chains: Vec<String>,
    pub handlers: Vec<String>,
    /// When samples begin to have one of the chains.
    pub begins: u64,
    /// When the last process ended its log.
    pub ends: u64,
}

impl Log {
    /// Reads the logs in a directory. A line that is none fails the test: the programs are this repository's own.
    pub fn read(directory: &Path) -> Self {
        let mut log = Self::default();
        let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "no log in {directory:?}");
        for path in paths {
            std::fs::read_to_string(path).unwrap().lines().for_each(|line| log.add(line));
        }
        log
    }

    fn add(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match *words {
            ["touch", pid, tid, address, ts, chain] => self.touches.push(Touch {
                pid: pid.parse().unwrap(),
                tid: tid.parse().unwrap(),
                address: address.parse().unwrap(),
                ts: ts.parse().unwrap(),
                chain: chain.split(';').map(str::to_owned).collect(),
            }),
            ["chain", chain] => self.chains.push(chain.to_owned()),
            ["handler", chain] => self.handlers.push(chain.to_owned()),
            ["begins", ts] => self.begins = ts.parse().unwrap(),
            ["ends", ts] => self.ends = self.ends.max(ts.parse().unwrap()),
            _ => panic!("not a line of a log: {line:?}"),
        }
    }
}
