//! What each CPU did (`cpu_events`): a track for the threads that ran, one for interrupts and softirqs, one for work items, one for idle
//! states, one for the events of the binder driver, and a counter of its frequency.

use super::packets::{Detail, Event, Packets};
use super::tracks;
use slowpath_recording::Tables;
use slowpath_tables::{CpuEvent, CpuEventKind};
use std::collections::BTreeMap;

/// The track of a CPU on which a kind stands.
fn lane(kind: CpuEventKind) -> Option<&'static str> {
    Some(match kind {
        CpuEventKind::Task => "threads",
        // These nest: a softirq runs in the end of an interrupt, and an interrupt comes within it.
        CpuEventKind::Interrupt | CpuEventKind::Softirq => "interrupts",
        CpuEventKind::Work => "work items",
        CpuEventKind::Idle => "idle states",
        CpuEventKind::Binder => "binder",
        CpuEventKind::Frequency => return None,
    })
}

fn event(row: &CpuEvent) -> Event<'_> {
    let mut details = Vec::new();
    details.extend(row.tid.map(|tid| ("tid", Detail::Uint(tid.into()))));
    let name = match row.kind {
        CpuEventKind::Task => "priority",
        CpuEventKind::Idle => "state",
        _ => "value",
    };
    details.extend(row.value.map(|value| (name, Detail::Int(value))));
    Event {
        start: row.ts.0,
        end: row.duration.map(|duration| (row.ts + duration).0),
        category: row.kind.as_str(),
        name: &row.name,
        details,
        stack: None,
    }
}

/// Adds the tracks of all CPUs; none where the recording has none.
pub(super) fn events(tables: &Tables, packets: &mut Packets) {
    let mut cpus: BTreeMap<u32, BTreeMap<Option<&str>, Vec<&CpuEvent>>> = BTreeMap::new();
    for row in &tables.cpu_events {
        cpus.entry(row.cpu).or_default().entry(lane(row.kind)).or_default().push(row);
    }
    for (cpu, lanes) in cpus {
        let parent = tracks::named(packets, &format!("CPU {cpu}"), None);
        for (lane, rows) in lanes {
            let Some(lane) = lane else {
                let track = tracks::counter(packets, &format!("frequency of CPU {cpu}"), "kHz", Some(parent));
                rows.iter().for_each(|row| packets.count(track, row.ts.0, row.value.unwrap_or(0).unsigned_abs()));
                continue;
            };
            let track = tracks::named(packets, lane, Some(parent));
            packets.events(track, rows.into_iter().map(event).collect());
        }
    }
}
