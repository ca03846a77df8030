use super::*;
use crate::latency::sample::{Caller, Sample};

const CLIENT: u32 = 10;
const SERVER: u32 = 20;

fn missed(from_us: u64, to_us: u64) -> Missed {
    let sample = Sample {
        caller: Caller::Fifo,
        intended: from_us * 1000,
        start: from_us * 1000,
        served: (from_us + 20) * 1000,
        end: to_us * 1000,
        client_thread: CLIENT,
        server_thread: SERVER,
        client_cpu: 0,
        server_cpu: 1,
        server_policy: 0,
        server_priority: 0,
        server_nice: 0,
    };
    Missed { sample, client: CLIENT, server: SERVER, beside: Beside::default() }
}

fn line(us: u64, cpu: u32, thread: u32, flags: &str, rest: &str) -> String {
    format!("  task-{thread}  [{cpu:03}] {flags}  0.{us:06}: {rest}\n")
}

fn switch(us: u64, cpu: u32, from: (u32, i32), state: &str, to: (u32, i32)) -> String {
    let rest = format!(
        "sched_switch: prev_comm=t{} prev_pid={} prev_prio={} prev_state={state} ==> next_comm=t{} next_pid={} next_prio={}",
        from.0, from.0, from.1, to.0, to.0, to.1
    );
    line(us, cpu, from.0, "d..2.", &rest)
}

fn waking(us: u64, by: u32, who: u32, priority: i32, cpu: u32) -> String {
    line(us, 0, by, "d..2.", &format!("sched_waking: comm=t{who} pid={who} prio={priority} target_cpu={cpu:03}"))
}

fn cause(text: &str, to_us: u64) -> Explanation {
    explain(text.as_bytes(), &missed(1000, to_us))
}

/// The server is woken and waits behind task 30 of a priority for 5 ms.
fn behind(priority: i32) -> String {
    [
        switch(900, 1, (SERVER, 120), "S", (30, priority)),
        waking(1005, CLIENT, SERVER, 120, 1),
        switch(1010, 0, (CLIENT, 0), "S", (0, 120)),
        switch(6010, 1, (30, priority), "R", (SERVER, 120)),
        waking(6020, SERVER, CLIENT, 0, 0),
        switch(6025, 0, (0, 120), "R", (CLIENT, 0)),
    ]
    .concat()
}

#[test]
fn a_task_that_the_caller_does_not_outrank_kept_the_cpu_busy() {
    let explained = cause(&behind(0), 6030);
    assert_eq!((explained.cause, explained.who.map(|who| who.tid)), (Cause::CpuBusy, Some(30)));
    assert!(explained.text.contains("busy for 5.000 ms, mostly with t30 (30, FIFO/RR 99)"), "{}", explained.text);
}

#[test]
fn a_task_that_the_caller_outranks_kept_the_server_for_want_of_inheritance() {
    for priority in [120, 49] {
        assert_eq!(cause(&behind(priority), 6030).cause, Cause::NoInheritance);
    }
}

#[test]
fn a_real_time_server_that_was_moved_waited_for_the_move_and_not_for_whom_it_outranks() {
    let server = |text: String| {
        text.replace("pid=20 prio=120", "pid=20 prio=49").replace("pid=20 next_prio=120", "pid=20 next_prio=49")
    };
    let text = server(behind(120)).replace("prev_pid=20 prev_prio=120", "prev_pid=20 prev_prio=49");
    // Not moved: the kernel did not let it preempt.
    assert_eq!(cause(&text, 6030).cause, Cause::CpuBusy);
    let moved = line(3000, 0, 5, "d..2.", "sched_migrate_task: comm=t20 pid=20 prio=49 orig_cpu=0 dest_cpu=1");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(3, moved.trim_end());
    assert_eq!(cause(&lines.join("\n"), 6030).cause, Cause::Migration);
    // Whom it does not outrank kept it, moved or not.
    let behind_equal = lines
        .join("\n")
        .replace("=30 prev_prio=120", "=30 prev_prio=9")
        .replace("=30 next_prio=120", "=30 next_prio=9");
    assert_eq!(cause(&behind_equal, 6030).cause, Cause::NoInheritance);
}

#[test]
fn a_server_that_another_thread_wakes_in_its_service_waited_for_what_that_one_held() {
    let text = [
        waking(1005, CLIENT, SERVER, 120, 1),
        switch(1010, 0, (CLIENT, 0), "S", (0, 120)),
        switch(1015, 1, (0, 120), "R", (SERVER, 120)),
        switch(1030, 1, (SERVER, 120), "S", (30, 120)),
        waking(6000, 30, SERVER, 120, 1),
        switch(6001, 1, (30, 120), "S", (SERVER, 120)),
        waking(6020, SERVER, CLIENT, 0, 0),
        switch(6025, 0, (0, 120), "R", (CLIENT, 0)),
    ]
    .concat();
    let explained = cause(&text, 6030);
    assert_eq!((explained.cause, explained.who.as_ref().map(|who| who.tid)), (Cause::LockHeld, Some(30)));
    // That it was woken is in the trace; that a lock was held is not.
    let words = "until t30 (30, nice 0) woke it (possibly a lock held by that thread)";
    assert!(explained.text.ends_with(words), "{}", explained.text);
    let by_timer = text.replace("task-30  [000] d..2.", "task-30  [000] d.h2.");
    assert_eq!(cause(&by_timer, 6030).cause, Cause::Unexplained);
}

#[test]
fn interrupts_while_the_server_runs_are_the_cause_when_they_take_half() {
    let mut text = [
        waking(1005, CLIENT, SERVER, 120, 1),
        switch(1010, 0, (CLIENT, 0), "S", (0, 120)),
        switch(1015, 1, (0, 120), "R", (SERVER, 120)),
    ]
    .concat();
    for burst in 0..4 {
        text += &line(1100 + burst * 1000, 1, SERVER, "d.h1.", "local_timer_entry: vector=236");
        text += &line(1950 + burst * 1000, 1, SERVER, "d.h1.", "local_timer_exit: vector=236");
    }
    text += &waking(5020, SERVER, CLIENT, 0, 0);
    text += &switch(5025, 0, (0, 120), "R", (CLIENT, 0));
    let explained = cause(&text, 5030);
    assert_eq!(explained.cause, Cause::Interrupt, "{explained:?}");
    assert!(explained.text.contains("3.400 ms, mostly by interrupt local timer"), "{}", explained.text);
    // The ends of some are not in the trace: they hide none of the others.
    let unfinished = |us, what: &str| line(us, 1, SERVER, "d.s1.", what);
    let softirq = unfinished(1017, "softirq_entry: vec=9 [action=RCU]");
    let timer = unfinished(1018, "local_timer_entry: vector=236");
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    lines.insert(3, timer);
    assert_eq!(cause(&lines.concat(), 5030).explained_us, 3400.0);
    lines.insert(0, softirq.replace("001017", "000950"));
    assert_eq!(cause(&lines.concat(), 5030).explained_us, 3400.0);
}

#[test]
fn a_runnable_server_on_an_idle_cpu_is_throttled_only_where_its_group_was() {
    let text = [
        waking(1005, CLIENT, SERVER, 120, 1),
        switch(1010, 0, (CLIENT, 0), "S", (0, 120)),
        switch(1015, 1, (0, 120), "R", (SERVER, 120)),
        switch(1030, 1, (SERVER, 120), "R", (0, 120)),
        switch(6001, 1, (0, 120), "R", (SERVER, 120)),
        waking(6020, SERVER, CLIENT, 0, 0),
        switch(6025, 0, (0, 120), "R", (CLIENT, 0)),
    ]
    .concat();
    let throttled = Beside { throttled: 5_000_000, ..Beside::default() };
    let of = |text: &str| explain(text.as_bytes(), &Missed { beside: throttled.clone(), ..missed(1000, 6030) }).cause;
    assert_eq!(of(&text), Cause::CpuQuota);
    // Whoever has the CPU meanwhile keeps nobody from it.
    let busy = text.replace("prev_comm=t0 prev_pid=0", "prev_comm=t30 prev_pid=30");
    let busy = busy.replace("next_comm=t0 next_pid=0", "next_comm=t30 next_pid=30");
    assert_eq!((of(&busy), cause(&busy, 6030).cause), (Cause::CpuQuota, Cause::NoInheritance));
    assert_eq!(cause(&text, 6030).cause, Cause::Unexplained);
    // Of half as much, taken twice, nothing is explained.
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    lines.insert(4, switch(3000, 1, (0, 120), "R", (SERVER, 120)));
    lines.insert(5, switch(3100, 1, (SERVER, 120), "R", (0, 120)));
    let twice = lines.concat();
    let half = Beside { throttled: 2_000_000, ..Beside::default() };
    let explained = explain(twice.as_bytes(), &Missed { beside: half, ..missed(1000, 6030) });
    assert_eq!(explained.cause, Cause::Unexplained, "{explained:?}");
    let moved = line(3000, 0, 5, "d..2.", "sched_migrate_task: comm=t20 pid=20 prio=120 orig_cpu=1 dest_cpu=1");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(4, moved.trim_end());
    assert_eq!(cause(&lines.join("\n"), 6030).cause, Cause::Migration);
}

#[test]
fn a_real_time_thread_behind_a_normal_one_is_throttled_only_after_a_second_of_real_time() {
    let text = |real_time: i32| {
        [
            format!(
                "  t-30 [001] d..2.  1.000000: sched_switch: prev_comm=x prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=t30 next_pid=30 next_prio={real_time}\n"
            ),
            "  t-30 [001] d..2.  1.990000: sched_switch: prev_comm=t30 prev_pid=30 prev_prio=0 prev_state=R ==> next_comm=t40 next_pid=40 next_prio=120\n".to_owned(),
            "  c-10 [000] d..2.  2.000005: sched_waking: comm=t20 pid=20 prio=0 target_cpu=001\n".to_owned(),
            "  c-10 [000] d..2.  2.000010: sched_switch: prev_comm=c prev_pid=10 prev_prio=0 prev_state=S ==> next_comm=s next_pid=0 next_prio=120\n".to_owned(),
            "  t-40 [001] d..2.  2.030000: sched_switch: prev_comm=t40 prev_pid=40 prev_prio=120 prev_state=R ==> next_comm=t20 next_pid=20 next_prio=0\n".to_owned(),
        ]
        .concat()
    };
    let missed = missed(2_000_000, 2_030_100);
    let of = |text: String| {
        // The first switch says that the task before it had the CPU: the last second is what counts.
        explain(text.as_bytes(), &missed).cause
    };
    assert_eq!(of(text(0)), Cause::RtThrottled);
    assert_eq!(of(text(0).replace("1.000000", "1.700000")), Cause::CpuBusy);
}

#[test]
fn the_timeline_covers_the_transaction_and_an_empty_trace_explains_nothing() {
    let explained = cause(&behind(120), 6030);
    let mut at = 0.0;
    for part in &explained.timeline {
        assert!((part.at_us - at).abs() < 1e-9, "{:?}", explained.timeline);
        at += part.us;
    }
    assert!((at - explained.took_us).abs() < 1e-9);
    let empty = cause("", 6030);
    assert_eq!((empty.cause, empty.events, empty.timeline.len()), (Cause::Unexplained, 0, 1));
}

#[test]
fn a_server_that_leaves_a_cpu_which_it_was_not_seen_to_get_did_nothing_that_is_known() {
    let text = [
        waking(1005, CLIENT, SERVER, 120, 1),
        switch(1010, 0, (CLIENT, 0), "S", (0, 120)),
        switch(6010, 1, (SERVER, 120), "S", (0, 120)),
        switch(6025, 0, (0, 120), "R", (CLIENT, 0)),
    ];
    let explained = cause(&text.concat(), 6030);
    let longest = explained.timeline.iter().max_by(|one, other| one.us.total_cmp(&other.us)).unwrap();
    assert_eq!((explained.cause, longest.party, longest.state), (Cause::Unexplained, Party::Server, State::Unknown));
}

#[test]
fn a_trace_that_was_cut_names_a_cause_that_it_shows_and_else_is_unavailable() {
    let missed = missed(1000, 6030);
    let of = |text: String, cut| explain_text(&Text { bytes: text.into_bytes(), cut }, &missed);
    assert_eq!(of(behind(0), true).map(|explained| explained.cause), Ok(Cause::CpuBusy));
    // What came first is missing: who had the CPU since then may be another one.
    let from_within: String = behind(0).split_inclusive('\n').skip(1).collect();
    for text in [from_within, String::new()] {
        assert_eq!(of(text.clone(), true).unwrap_err().what, "trace of the miss");
        assert!(of(text, false).is_ok());
    }
    let idle = behind(120).replace("prev_comm=t30 prev_pid=30", "prev_comm=t0 prev_pid=0");
    let idle = idle.replace("next_comm=t30 next_pid=30", "next_comm=t0 next_pid=0");
    assert_eq!(of(idle.clone(), false).map(|explained| explained.cause), Ok(Cause::Unexplained));
    assert!(of(idle, true).unwrap_err().reason.contains("exceeds 256 MiB"));
}

/// The server runs on CPU 1 in three stretches of 10 ms; between them the client does, on CPU 0, for 1 ms.
fn running_on_two() -> String {
    let mut text = [
        waking(1005, CLIENT, SERVER, 120, 1),
        switch(1010, 0, (CLIENT, 0), "S", (0, 120)),
        switch(1015, 1, (0, 120), "R", (SERVER, 120)),
    ]
    .concat();
    for turn in 0..2 {
        let at = 11_015 + turn * 11_000;
        text += &waking(at - 5, SERVER, CLIENT, 0, 0);
        text += &switch(at, 0, (0, 120), "R", (CLIENT, 0));
        text += &switch(at + 1000, 0, (CLIENT, 0), "S", (0, 120));
    }
    text += &waking(33_015, SERVER, CLIENT, 0, 0);
    text + &switch(33_020, 0, (0, 120), "R", (CLIENT, 0))
}

#[test]
fn steal_explains_only_time_on_its_own_cpu_and_each_of_its_ticks_once() {
    let text = running_on_two();
    let of = |stolen: &[(u32, u64)]| {
        let stolen = stolen.iter().map(|(cpu, ticks)| (*cpu, ticks * TICK)).collect();
        let beside = Beside { stolen, throttled: 0 };
        explain(text.as_bytes(), &Missed { beside, ..missed(1000, 33_030) })
    };
    // The counter of a CPU moves on at the end of a tick: one step may be no time at all.
    for too_little in [&[][..], &[(1, 1)], &[(1, 2)], &[(0, 100)], &[(2, 100)], &[(0, 1), (1, 2), (7, 100)]] {
        let explained = of(too_little);
        assert_eq!(explained.cause, Cause::Unexplained, "{too_little:?}: {explained:?}");
    }
    let two = of(&[(1, 3)]);
    assert_eq!(
        (two.cause, two.explained_us, two.text.as_str()),
        (Cause::Stolen, 20_000.0, "steal on CPU 1 grew by up to 20.000 ms")
    );
    let both = of(&[(0, 50), (1, 50)]);
    assert!(both.explained_us <= both.took_us && both.text.contains("CPU 0 and CPU 1"), "{both:?}");
}

#[test]
fn a_late_start_belongs_to_the_miss_and_is_marked() {
    // The call should have begun at 1000 us: the client was woken for it, and another one had its CPU until 5000.
    let text = [
        switch(900, 0, (0, 120), "R", (30, 0)),
        line(1002, 0, 30, "d.h2.", "sched_waking: comm=t10 pid=10 prio=0 target_cpu=000"),
        switch(5000, 0, (30, 0), "R", (CLIENT, 0)),
        waking(5015, CLIENT, SERVER, 120, 1),
        switch(5016, 0, (CLIENT, 0), "S", (0, 120)),
        switch(5020, 1, (0, 120), "R", (SERVER, 120)),
        waking(6020, SERVER, CLIENT, 0, 0),
        switch(6025, 0, (0, 120), "R", (CLIENT, 0)),
    ]
    .concat();
    let mut missed = missed(5010, 6030);
    let closed = explain(text.as_bytes(), &missed);
    assert_eq!((closed.cause, closed.took_us), (Cause::Unexplained, 1020.0));
    missed.sample.intended = 1_000_000;
    let explained = explain(text.as_bytes(), &missed);
    assert_eq!((explained.cause, explained.took_us), (Cause::CpuBusy, 5030.0), "{explained:?}");
    assert_eq!(explained.explained_us, 3998.0);
    let late = |part: &&Part| part.note.as_ref().is_some_and(|note| note.starts_with("start was late"));
    let (before, after): (Vec<&Part>, Vec<&Part>) = explained.timeline.iter().partition(|part| late(part));
    assert!(before.iter().all(|part| part.at_us < 4010.0 && part.party == Party::Client), "{explained:?}");
    assert!(after.iter().all(|part| part.at_us >= 4010.0), "{explained:?}");
    assert_eq!(before.iter().map(|part| part.us).sum::<f64>(), 4010.0);
    let waited = before.iter().find(|part| part.state == State::Runnable).and_then(|part| part.note.clone());
    assert_eq!(waited.as_deref(), Some("start was late; CPU had t30 (30, FIFO/RR 99)"));
}

#[test]
fn what_the_binder_driver_did_for_the_transaction_stands_beside_it() {
    let binder = |us, thread, event: &str| line(us, 0, thread, ".....", &format!("binder_{event}"));
    let sent = "transaction=7 dest_node=1 dest_proc=20 dest_thread=0 reply=0 flags=0x10 code=0x1";
    let text = [
        binder(900, CLIENT, "ioctl: cmd=0xc0306201 arg=0x1"),
        binder(1003, CLIENT, &format!("transaction: {sent}")),
        behind(120),
        binder(6012, SERVER, "transaction_received: transaction=7"),
        binder(6013, 99, "transaction_received: transaction=8"),
    ]
    .concat();
    let explained = cause(&text, 6030);
    let moment = |at_us, party, event: String| Moment { at_us, party, event };
    let expected = [
        moment(3.0, Party::Client, format!("transaction {sent}")),
        moment(5012.0, Party::Server, "transaction_received transaction=7".to_owned()),
    ];
    assert_eq!(explained.binder, expected);
}
