//! Which tracks a recording has: processes and threads with names, devices with a lane for each request in flight.

use super::messages::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
use super::packets::Packets;
use crate::ThreadKey;
use slowpath_analysis::processes::Processes;
use slowpath_recording::Tables;
use slowpath_tables::{BlockIo, FileKey, ProcessKey};
use std::collections::{BTreeMap, HashMap};

/// Makes tracks when they are first asked for.
pub(super) struct Tracks<'a> {
    known: Processes,
    device_names: HashMap<u64, &'a str>,
    processes: BTreeMap<ProcessKey, u64>,
    threads: BTreeMap<ThreadKey, u64>,
}

/// The trace has 32-bit signed pids, as the kernel has.
fn signed(pid: u32) -> Option<i32> {
    Some(pid.cast_signed())
}

impl<'a> Tracks<'a> {
    pub(super) fn new(tables: &'a Tables) -> Self {
        Self {
            known: Processes::new(&tables.forks, &tables.execs, &tables.exits),
            device_names: tables.manifest.devices.iter().map(|device| (device.dev, device.name.as_str())).collect(),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
        }
    }

    pub(super) fn process(&mut self, packets: &mut Packets, key: ProcessKey) -> u64 {
        if let Some(track) = self.processes.get(&key) {
            return *track;
        }
        let known = self.known.get(key);
        let track = packets.track(TrackDescriptor {
            process: Some(ProcessDescriptor {
                pid: signed(key.pid),
                cmdline: known.iter().map(|process| process.command_line.clone()).collect(),
                process_name: known.map(|process| process.name.clone()),
                start_timestamp_ns: i64::try_from(key.start.0).ok(),
            }),
            ..TrackDescriptor::default()
        });
        self.processes.insert(key, track);
        track
    }

    pub(super) fn thread(&mut self, packets: &mut Packets, (process, tid): ThreadKey) -> u64 {
        if let Some(track) = self.threads.get(&(process, tid)) {
            return *track;
        }
        let parent = self.process(packets, process);
        let name = self.known.get(process).filter(|_| tid == process.pid).map(|process| process.name.clone());
        let track = packets.track(TrackDescriptor {
            parent_uuid: Some(parent),
            thread: Some(ThreadDescriptor { pid: signed(process.pid), tid: signed(tid), thread_name: name }),
            ..TrackDescriptor::default()
        });
        self.threads.insert((process, tid), track);
        track
    }

    /// A track for a device and, below it, one for each request that is in flight at the same time.
    pub(super) fn device(&self, packets: &mut Packets, dev: u64) -> u64 {
        let (major, minor) = FileKey { dev, ino: 0 }.device();
        let name = match self.device_names.get(&dev) {
            Some(name) => format!("block I/O of {name} ({major}:{minor})"),
            None => format!("block I/O of {major}:{minor}"),
        };
        named(packets, &name, None)
    }
}

/// A track of its own name.
pub(super) fn named(packets: &mut Packets, name: &str, parent: Option<u64>) -> u64 {
    packets.track(TrackDescriptor { name: Some(name.to_owned()), parent_uuid: parent, ..TrackDescriptor::default() })
}

/// A counter track.
pub(super) fn counter(packets: &mut Packets, name: &str, unit: &str, parent: Option<u64>) -> u64 {
    packets.track(TrackDescriptor {
        name: Some(name.to_owned()),
        parent_uuid: parent,
        counter: Some(CounterDescriptor { unit_name: Some(unit.to_owned()) }),
        ..TrackDescriptor::default()
    })
}

/// Spreads the requests of one device, sorted by time, over lanes so that those of a lane do not overlap.
pub(super) fn lanes<'a>(requests: &[&'a BlockIo]) -> Vec<Vec<&'a BlockIo>> {
    let mut lanes: Vec<(u64, Vec<&BlockIo>)> = Vec::new();
    for request in requests {
        let end = request.ts.0.saturating_add(request.latency.map_or(0, |latency| latency.0));
        match lanes.iter_mut().find(|(free, _)| *free <= request.ts.0) {
            Some((free, lane)) => {
                *free = end;
                lane.push(request);
            }
            None => lanes.push((end, vec![request])),
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}
