use super::*;
use slowpath_recording::Tables;

const MS: u64 = 1_000_000;

/// Children 11, 12, ... of pid 7, forked at 0 and running program `ino` from 1 ms on; each opens its paths at these times in ms.
fn tables(children: &[(u32, &[(u64, &str)])], off_cpu: &str) -> Tables {
    given(children, |_| "/bin/child".to_owned(), off_cpu)
}

/// The same with the command line of each.
fn given(children: &[(u32, &[(u64, &str)])], line: impl Fn(usize) -> String, off_cpu: &str) -> Tables {
    let mut text = String::from(
        "== manifest\n{\"command\": [\"/bin/app\"], \"started\": 0, \"ended\": 1000000000}\n\
         == execs\nts pid start filename command_line dev ino\n1 7 1 /bin/app /bin/app 1 1\n",
    );
    for (number, (ino, opens)) in children.iter().enumerate() {
        let pid = 11 + number;
        text += &format!(
            "== forks\nts pid start tid parent_pid parent_start\n2 {pid} 2 {pid} 7 1\n\
             == execs\nts pid start filename command_line dev ino\n{MS} {pid} 2 /bin/child \"{}\" 1 {ino}\n\
             == opens\nts pid start tid path flags result dev ino\n",
            line(pid)
        );
        for (at, path) in *opens {
            text += &format!("{} {pid} 2 {pid} {path} 0 3 1 9\n", at * MS);
        }
    }
    text += &format!("== off_cpu\nts duration pid start tid reason\n{off_cpu}");
    Tables::from_text(&text).unwrap()
}

fn starts(tables: &Tables) -> Vec<(u32, usize, u64, u64)> {
    let facts = LaunchFacts::new(tables);
    let all = siblings(&facts);
    let found = all.iter().flat_map(|group| &group.starts);
    found.map(|one| (one.process.pid, one.steps, one.typical as u64 / MS, one.until.0 / MS)).collect()
}

const ALIKE: &[(u64, &str)] = &[(5, "/lib/a"), (15, "/lib/b"), (18, "/lib/c")];

#[test]
fn what_three_children_open_one_after_the_other_is_their_start() {
    let slow: &[(u64, &str)] = &[(5, "/lib/a"), (60, "/lib/b"), (63, "/lib/c"), (400, "/own/3")];
    let found = starts(&tables(&[(2, ALIKE), (2, ALIKE), (2, slow)], ""));
    // From the fork (2 ns) to /lib/a 5 ms (cut to 4 here), to /lib/b 10 ms in the middle, to /lib/c 3 ms; the rest of the slow one is its own.
    assert_eq!(found, [(11, 3, 17, 18), (12, 3, 17, 18), (13, 3, 17, 63)]);
}

#[test]
fn two_children_or_three_of_different_programs_or_of_different_files_are_none() {
    assert_eq!(starts(&tables(&[(2, ALIKE), (2, ALIKE)], "")), []);
    assert_eq!(starts(&tables(&[(2, ALIKE), (2, ALIKE), (3, ALIKE)], "")), []);
    let others: [&[(u64, &str)]; 3] = [&[(5, "/own/1")], &[(5, "/own/2")], &[(5, "/own/3")]];
    assert_eq!(starts(&tables(&others.map(|opens| (2, opens)), "")), []);
}

#[test]
fn a_file_of_its_own_takes_the_steps_to_it_and_from_it_only() {
    let own: &[(u64, &str)] = &[(5, "/lib/a"), (7, "/tmp/13"), (15, "/lib/b"), (18, "/lib/c")];
    let found = starts(&tables(&[(2, ALIKE), (2, ALIKE), (2, ALIKE), (2, own)], ""));
    assert_eq!(found[3], (14, 2, 7, 18));
    assert_eq!(found[0], (11, 3, 17, 18));
}

#[test]
fn time_off_the_cpu_is_none_and_a_wait_for_events_ends_the_start() {
    // 8 of 10 ms of one step each; the second child waits for events behind /lib/b.
    let off = |pid: u32, at: u64, ms: u64, reason: &str| format!("{} {} {pid} 2 {pid} {reason}\n", at * MS, ms * MS);
    let rows: String = [11, 12, 13].map(|pid| off(pid, 6, 8, "runnable")).concat();
    assert_eq!(starts(&tables(&[(2, ALIKE); 3], &rows))[0], (11, 3, 9, 18));
    let waits = rows + &off(12, 16, 1, "poll");
    // Only two of them make the last step.
    let found = starts(&tables(&[(2, ALIKE); 3], &waits));
    assert_eq!(found[0], (11, 2, 6, 15));
    assert_eq!(found.len(), 3);
}

#[test]
fn what_follows_the_first_thread_of_a_child_cannot_be_handed_on_by_a_fork() {
    let mut threaded = tables(&[(2, ALIKE); 3], "");
    // The second starts a thread at 10 ms, between /lib/a (5 ms) and /lib/b (15 ms).
    let thread = format!("== forks\nts pid start tid parent_pid parent_start thread\n{} 12 2 99 12 2 true\n", 10 * MS);
    threaded.forks.extend(Tables::from_text(&thread).unwrap().forks);
    let facts = LaunchFacts::new(&threaded);
    let all = siblings(&facts);
    let times: Vec<(u64, u64)> =
        all[0].starts.iter().map(|one| (one.typical as u64 / MS, one.single_threaded as u64 / MS)).collect();
    assert_eq!(times, [(17, 17), (17, 4), (17, 17)]);
}

#[test]
fn a_wait_for_orders_in_a_read_ends_it_too() {
    let rows: String = [11, 12, 13].map(|pid| format!("{} {MS} {pid} 2 {pid} pipe_or_socket\n", 16 * MS)).concat();
    assert_eq!(starts(&tables(&[(2, ALIKE); 3], &rows))[0], (11, 2, 14, 15));
}

#[test]
fn an_answer_that_a_child_of_its_own_gives_ends_no_start() {
    let mut answered = tables(&[(2, ALIKE); 3], "");
    // Each starts a helper (pid 1000 more) and waits a ms for what it writes, behind /lib/b at 15 ms.
    let mut rows = String::new();
    for pid in [11, 12, 13] {
        let helper = pid + 1000;
        rows += &format!(
            "== forks\nts pid start tid parent_pid parent_start\n{} {helper} 5 {helper} {pid} 2\n\
             == off_cpu\nts duration pid start tid reason waker_pid waker_tid\n{} {MS} {pid} 2 {pid} pipe_or_socket {helper} {helper}\n",
            15 * MS + 1,
            16 * MS
        );
    }
    let read = Tables::from_text(&rows).unwrap();
    answered.forks.extend(read.forks);
    answered.off_cpu.extend(read.off_cpu);
    assert_eq!(starts(&answered)[0], (11, 3, 16, 18));
}

#[test]
fn a_long_step_of_children_that_were_given_different_work_is_doubtful_unless_it_is_faults() {
    let rows = |faults: &str| {
        let mut tables = given(&[(2, ALIKE); 3], |pid| format!("w {pid}"), "");
        tables.faults =
            Tables::from_text(&format!("== faults\nts duration pid start tid kind\n{faults}")).unwrap().faults;
        tables
    };
    // 10 ms from /lib/a to /lib/b; the others take 4 and 3 ms.
    assert_eq!(starts(&rows(""))[0], (11, 2, 7, 18));
    let relocates: String = [11, 12, 13].map(|pid| format!("{} {} {pid} 2 {pid} minor\n", 6 * MS, 6 * MS)).concat();
    assert_eq!(starts(&rows(&relocates))[0], (11, 3, 17, 18));
    // A fault for a page of a file every 45 us, each without a duration: 222 from 5.0 to 15.0 ms. Memory without a file does not count.
    let touched = |dev: &str| {
        let mut text = String::from("== faults\nts pid start tid kind address\n");
        for pid in [11, 12, 13] {
            (1u64..=222)
                .for_each(|page| text += &format!("{} {pid} 2 {pid} minor {}\n", 5 * MS + page * 45_000, page << 12));
            text += &format!(
                "== mappings\nts pid start op address length prot dev ino offset\n{} {pid} 2 map 4096 4096000 3 {dev} 0\n\
                 == faults\nts pid start tid kind address\n",
                4 * MS
            );
        }
        let mut tables = rows("");
        let read = Tables::from_text(&text).unwrap();
        (tables.faults, tables.mappings) = (read.faults, read.mappings);
        starts(&tables)[0].1
    };
    assert_eq!((touched("1 5"), touched("- -")), (3, 2));
    let doubtful = rows("");
    let facts = LaunchFacts::new(&doubtful);
    let group = siblings(&facts).remove(0);
    assert_eq!((group.command_lines, group.starts[0].doubtful as u64 / MS), (3, 10));
}

#[test]
fn a_step_that_is_long_because_its_faults_are_recorded_is_not_doubtful() {
    let mut recorded = given(&[(2, ALIKE); 3], |pid| format!("w {pid}"), "");
    // 6 of the 10 ms from /lib/a to /lib/b.
    let rows: String = [11, 12, 13].map(|pid| format!("{} 9 {pid} 2 {pid} minor {}\n", 6 * MS, 6 * MS)).concat();
    let text = format!("== faults\nts duration pid start tid kind recording\n{rows}");
    recorded.faults = Tables::from_text(&text).unwrap().faults;
    assert_eq!(starts(&recorded)[0], (11, 3, 11, 18));
}

#[test]
fn what_is_opened_again_later_counts_once() {
    let again: &[(u64, &str)] = &[(5, "/lib/a"), (15, "/lib/b"), (25, "/lib/a"), (125, "/lib/b")];
    let found = starts(&tables(&[(2, again); 3], ""));
    assert_eq!(found[0], (11, 3, 24, 25), "start to a, a to b, b to a; not a to b once more");
}

#[test]
fn any_rows_give_starts_that_end_after_they_begin() {
    use proptest::prelude::*;
    let path = prop::sample::select(vec!["/a", "/b", "/c", "/d", ""]);
    let open = (0u64..50, 10u32..15, 10u32..17, path);
    proptest!(|(opens in prop::collection::vec(open, 0..60), off in prop::collection::vec((0u64..50, 0u64..20, 10u32..15), 0..20))| {
        let none: &[(u64, &str)] = &[];
        let mut tables = tables(&[(2, none); 4], "");
        for (ts, pid, tid, path) in opens {
            tables.opens.push(slowpath_tables::Open {
                ts: Nanos(ts * MS), pid, start: Nanos(2), tid, path: path.to_owned(), flags: 0, call: None, result: 3, dev: None, ino: None,
            });
        }
        for (ts, ms, pid) in off {
            let mut row = Tables::from_text("== off_cpu\nts duration pid start tid reason\n1 1 1 2 1 timer\n").unwrap().off_cpu.remove(0);
            (row.ts, row.duration, row.pid, row.tid) = (Nanos(ts * MS), Nanos(ms * MS), pid, pid);
            tables.off_cpu.push(row);
        }
        let facts = LaunchFacts::new(&tables);
        for group in siblings(&facts) {
            prop_assert!(group.starts.len() >= LEAST_SIBLINGS);
            for start in &group.starts {
                prop_assert!(start.until >= start.began && start.steps > 0);
                prop_assert!(0.0 <= start.least && start.least <= start.typical);
            }
            for step in &group.steps {
                prop_assert!((LEAST_SIBLINGS..=group.starts.len()).contains(&step.children));
            }
        }
    });
}
