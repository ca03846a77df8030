//! How long the analysis of a large recording takes: a million page-cache rows and a million faults. Prints the time and
//! asserts only that the work was done; run it in release mode.

use slowpath_analysis::findings::{Observation, of_observation};
use slowpath_analysis::io::demand::Demand;
use slowpath_analysis::io::io_map::io_map;
use slowpath_analysis::{
    LaunchFacts, NeededUnknown, memory::fork_faults, memory::memory_blocks, memory::memory_events::MemoryEvents, merge,
    time::off_cpu_times,
};
use slowpath_recording::{Device, Launch, Tables};
use slowpath_tables::{
    Asker, BlockIo, Bytes, Exec, Fault, FaultKind, File, Fork, Mapping, MappingOp, Nanos, PageCache, PageCacheOp,
    Pages, Read,
};
use std::time::Instant;

/// Debug builds show only that it works.
const ROWS: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
const PROCESSES: u64 = 20;
const FILES: u64 = 200;

/// Twenty processes with two hundred mapped files each; every fault brings one row, every tenth row belongs to a read.
fn large() -> Tables {
    let mut tables = Tables::default();
    tables.manifest.launch = Some(Launch {
        released: Nanos(0),
        ready: Some(Nanos(ROWS * 2000)),
        ready_when: "exit".to_owned(),
        outcome: "ready".to_owned(),
    });
    tables.manifest.devices.push(Device {
        dev: 1,
        name: "loop0".to_owned(),
        mount_point: "/".to_owned(),
        fs: "ext4".to_owned(),
        read_ahead_kb: Some(0),
        lab: true,
    });
    for ino in 0..FILES {
        tables.files.push(File {
            dev: 1,
            ino,
            path: format!("/lib/{ino}.so"),
            directory: false,
            size: Some(Bytes(40_000 * 4096)),
            mtime: Some(1),
            build_id: None,
            host_dev: None,
            host_ino: None,
        });
    }
    for process in 0..PROCESSES {
        let (pid, start) = (100 + process as u32, Nanos(process + 1));
        if process == 0 {
            tables.execs.push(Exec {
                ts: Nanos(0),
                present: false,
                pid,
                start,
                parent_pid: 1,
                uid: 0,
                gid: 0,
                filename: "/bin/prog".to_owned(),
                command_line: "prog".to_owned(),
                dev: 1,
                ino: 0,
                min_flt: 0,
                maj_flt: 0,
                run_time: None,
            });
        } else {
            tables.forks.push(Fork {
                ts: Nanos(process),
                parent_pid: 100,
                parent_start: Nanos(1),
                pid,
                start,
                tid: pid,
                thread: false,
            });
        }
        for ino in 0..FILES {
            tables.mappings.push(Mapping {
                ts: Nanos(100),
                pid,
                start,
                op: MappingOp::Map,
                address: 0x7000_0000_0000 + ino * 40_000 * 4096,
                length: Bytes(40_000 * 4096),
                prot: 5,
                dev: Some(1),
                ino: Some(ino),
                offset: Bytes(0),
            });
        }
    }
    for row in 0..ROWS {
        let ts = 1000 + row * 2000;
        let process = row % PROCESSES;
        let (pid, start) = (100 + process as u32, Nanos(process + 1));
        let (ino, page) = ((row * 7) % FILES, (row * 13) % 40_000);
        let read = row % 10 == 0;
        tables.faults.push(Fault {
            ts: Nanos(ts),
            duration: Some(Nanos(1500)),
            pid,
            start,
            tid: pid,
            address: 0x7000_0000_0000 + ino * 40_000 * 4096 + page * 4096,
            ip: 0,
            kind: if row % 3 == 0 { FaultKind::Major } else { FaultKind::Minor },
            kernel: false,
            stack: None,
            recording: None,
        });
        if read {
            tables.reads.push(Read {
                ts: Nanos(ts),
                duration: Nanos(1800),
                pid,
                start,
                tid: pid,
                dev: 1,
                ino,
                offset: Bytes(page * 4096),
                result: 4096,
                syscall: 0,
            });
            tables.block_io.push(BlockIo {
                ts: Nanos(ts + 100),
                latency: Some(Nanos(900)),
                dev: 1,
                sector: 0,
                bytes: Bytes(4096),
                read: true,
                pid,
                in_tree: true,
            });
        }
        tables.page_cache.push(PageCache {
            ts: Nanos(ts + 50),
            pid,
            start,
            tid: pid,
            op: PageCacheOp::Add,
            dev: 1,
            ino,
            page: Pages(page),
            pages: Pages(4),
            asker: if read { Asker::Read } else { Asker::Fault },
            syscall: -1,
        });
    }
    tables
}

#[test]
fn the_time_of_analysing_a_million_faults_and_insertions_is_printed() {
    let tables = large();
    let begun = Instant::now();
    // On a busy machine the CPU time says more: the first number of schedstat, in ns.
    let cpu_time = || -> f64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e6
    };
    let before = cpu_time();
    let step = |name: &str| {
        let wall = begun.elapsed().as_secs_f64() * 1e3;
        println!("{wall:>8.0} ms wall {:>8.0} ms CPU: {name}", cpu_time() - before);
    };
    let facts = LaunchFacts::new(&tables);
    step("facts of the launch");
    let map = io_map(&facts, None);
    step("I/O map");
    let findings =
        of_observation(&Observation { launches: std::slice::from_ref(&facts), needed: Err(NeededUnknown::NoTraining) });
    step("findings");
    let demand = Demand::of_training(&facts).unwrap();
    step("demand (these rows as a training)");
    let merged = merge(&[&demand, &demand]);
    step("merge of two trainings");
    assert_eq!(map.reads.pages.iter().sum::<u64>(), 4 * ROWS);
    assert_eq!(findings.len(), 1);
    assert_eq!(merged.pages.len(), demand.pages_until_ready().len());
}

/// A block of 400 pages that is mapped, touched and unmapped until all faults are used up.
fn transient() -> Tables {
    const PAGES: u64 = 400;
    let mut text = String::from("== memory_calls\nts duration pid start tid call address length argument\n");
    for block in 0..ROWS / PAGES {
        let (ts, address) = (block * PAGES * 2000, 0x7000_0000_0000 + block % 7 * (PAGES << 12));
        text += &format!("{ts} 900 100 1 100 mmap {address} {} 0x22\n", PAGES << 12);
        text += &format!("{} 900 100 1 100 munmap {address} {} 0\n", ts + PAGES * 2000 - 1000, PAGES << 12);
    }
    let mut tables = Tables::from_text(&text).unwrap();
    tables.faults = large().faults;
    for (row, fault) in (0u64..).zip(&mut tables.faults) {
        let block = row / PAGES;
        (fault.pid, fault.start, fault.ts) = (100, Nanos(1), Nanos(row * 2000 + 900));
        fault.address = 0x7000_0000_0000 + block % 7 * (PAGES << 12) + row % PAGES * 4096;
        fault.kind = FaultKind::Minor;
    }
    tables
}

#[test]
fn the_time_of_following_a_million_faults_through_blocks_of_memory_is_printed() {
    let tables = transient();
    let begun = Instant::now();
    let events = MemoryEvents::new(&tables);
    let (forks, off_cpu) = (fork_faults::follow(&events), off_cpu_times::follow(&tables));
    let memory = memory_blocks::follow(&events, &forks, &off_cpu);
    println!("{:>8.0} ms wall: blocks", begun.elapsed().as_secs_f64() * 1e3);
    let facts = LaunchFacts::new(&tables);
    let begun = Instant::now();
    let findings =
        of_observation(&Observation { launches: std::slice::from_ref(&facts), needed: Err(NeededUnknown::NoTraining) });
    println!("{:>8.0} ms wall: findings", begun.elapsed().as_secs_f64() * 1e3);
    assert_eq!(memory.of_fault.iter().flatten().count() as u64, ROWS / 400 * 400);
    assert_eq!(findings.len(), 1);
}
