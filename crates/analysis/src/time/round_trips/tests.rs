//! Round trips in recordings as text, of which the answer is known.

use super::*;
use proptest::prelude::*;
use std::fmt::Write as _;

const REPEATED: &str = "
0    1000 9 2 9 poll  0 1000 7 7
1010 490  7 9 7 poll  0 1500 9 9
1510 490  9 2 9 poll  0 2000 7 7
2010 490  7 9 7 poll  0 2500 9 9
2510 9000 9 2 9 poll  0 -    - -
";

/// Process 7 is the client; 9 a server and 11 a bus, both older. All run from 0 to 100,000.
const PROCESSES: &str = "
== execs
ts pid start filename present run_time
0  7   9     /bin/client true 0
0  9   2     /bin/server true 0
0  11  3     /bin/bus    true 0
== exits
ts     pid start tid last running
100000 7   9     7   true true
100000 9   2     9   true true
100000 11  3     11  true true
== off_cpu
ts duration pid start tid reason runnable woken waker_pid waker_tid
";

fn found(rows: &str) -> Vec<Pair> {
    round_trips(&Tables::from_text(&format!("{PROCESSES}{rows}")).unwrap())
}

/// Time in which somebody served it, those who did waited, and somebody stood in a run queue.
fn parts(trip: &RoundTrip) -> [u64; 3] {
    assert_eq!(trip.account.total() + trip.unknown, trip.waited());
    [trip.serving().0, trip.waiting().0, trip.runnable().0]
}

#[test]
fn a_reply_is_followed_back_to_the_request_and_its_time_is_that_of_the_server() {
    // The client asks at 1000, waits from 1100 on; the server runs at 1050, sleeps from 1200 to 1700, and answers at 1800.
    let pairs = found(
        "
500  550 9 2 9 poll  50 1000 7 7
1200 500 9 2 9 timer 0  -    - -
1850 9000 9 2 9 poll 0  -    - -
1100 730 7 9 7 pipe_or_socket 30 1800 9 9
",
    );
    assert_eq!(pairs.len(), 1);
    let trip = &pairs[0].trips[0];
    assert_eq!((pairs[0].client.pid, pairs[0].server.pid, pairs[0].trips.len()), (7, 9, 1));
    assert_eq!((trip.request, trip.waited()), (Request::Woke, Nanos(730)));
    assert_eq!((parts(trip), trip.rested), ([200, 500, 30], false));
    let longest = trip.longest.unwrap();
    assert_eq!((longest.process.pid, longest.from, longest.time), (9, Nanos(1200), Nanos(500)));
    assert_eq!(trip.account.get(Category::Timer), Nanos(500));
}

#[test]
fn a_bus_in_between_is_passed_and_who_took_the_time_is_named() {
    let pairs = found(
        "
0    1000 11 3 11 poll 0  1000 7 7
0    1020 9  2 9  poll 10 1010 11 11
1015 900  11 3 11 poll 5  1910 9 9
1100 830  7  9 7  poll 10 1920 11 11
",
    );
    let pids: Vec<_> = pairs.iter().map(|pair| (pair.client.pid, pair.server.pid)).collect();
    assert_eq!(pids, [(11, 9), (7, 11)], "the bus waited for the server, and longer");
    let trip = &pairs[1].trips[0];
    assert_eq!((trip.request, parts(trip), trip.worker.pid), (Request::Woke, [815, 0, 15], 9));
}

#[test]
fn another_thread_of_the_client_may_have_asked() {
    let rows = "
0    1000 9 2 9 poll  0  1000 7 8
1100 200  7 9 7 futex 0  1300 9 9
";
    let thread = "== forks\nts parent_pid parent_start pid start tid thread\n10 7 9 7 9 8 true\n";
    let ends = "== exits\nts pid start tid last running\n100000 7 9 8 false true\n";
    let pairs = round_trips(&Tables::from_text(&format!("{thread}{ends}{PROCESSES}{rows}")).unwrap());
    assert_eq!(pairs[0].trips[0].request, Request::Woke);
}

#[test]
fn news_that_nobody_asked_for_and_the_start_of_a_child_are_no_replies() {
    // A ticker: it sleeps and notifies.
    assert!(found("0 1000 9 2 9 timer 0 - - -\n500 600 7 9 7 poll 0 1050 9 9\n").is_empty());
    // Who is woken by the client's child that was forked meanwhile.
    let child = "
== forks
ts   parent_pid parent_start pid start tid thread
1000 7          9            20  1000  20  false
";
    let ends = format!("{PROCESSES}1100 900 7 9 7 pipe_or_socket 0 1900 20 20\n")
        .replace("\n100000 9 ", "\n100000 20 1000 20 true true\n100000 9 ");
    assert!(round_trips(&Tables::from_text(&format!("{child}{ends}")).unwrap()).is_empty());
    // Within a process nothing is asked of another.
    assert!(found("0 1000 7 9 7 futex 0 900 7 8\n").is_empty());
}

#[test]
fn a_server_that_is_still_awake_is_not_woken_by_a_request() {
    let whole = "0 1000 9 2 9 poll 0 1000 7 7\n1010 190 7 9 7 pipe_or_socket 0 1200 9 9\n";
    // It goes on and answers the next request without having slept.
    let next = "21500 400 7 9 7 pipe_or_socket 10 21890 9 9\n";
    let pairs = found(&format!("{whole}{next}"));
    let trips = &pairs[0].trips;
    assert_eq!((trips.len(), trips[0].request, trips[1].request), (2, Request::Woke, Request::Awake));
    assert_eq!(parts(&trips[1]), [390, 0, 10]);
    assert_eq!((pairs[0].waited(), pairs[0].quantiles([0.5, 1.0])), (Nanos(590), [Nanos(190), Nanos(400)]));
    // Of a pair of which no request is known it is nothing.
    assert!(found(next).is_empty());
    // It sleeps before each answer, and sleeps already when it is asked: by whom is not seen.
    let slept =
        |at: u64| format!("{} 90 9 2 9 timer 0 - - -\n{at} 300 7 9 7 pipe_or_socket 0 {} 9 9\n", at - 30, at + 300);
    let with = |times: u64| found(&format!("{whole}{}", (1..=times).map(|n| slept(20_000 * n)).collect::<String>()));
    let requests: Vec<_> = with(2)[0].trips.iter().map(|trip| trip.request).collect();
    assert_eq!(requests, [Request::Woke, Request::Awake, Request::NotSeen]);
    assert_eq!((with(3)[0].trips.len(), with(4)[0].trips.len()), (4, 5));
    // Who does that and little else has news.
    let many = (1..=21).map(|n| slept(4_000 * n + 15_000)).collect::<String>();
    assert_eq!(found(&format!("{whole}{many}"))[0].trips.len(), 2);
}

#[test]
fn a_wait_out_of_which_the_client_is_woken_for_nothing_is_one() {
    // The server reads the request, which wakes the client, and then sleeps.
    let rows = "
0    1000000 9 2 9 poll  0 1000000 7 7
1002000 6000 7 9 7 pipe_or_socket 1000 1007000 9 9
1009000 250000 9 2 9 timer 0 - - -
1011000 250000 7 9 7 pipe_or_socket 1000 1260000 9 9
";
    let text = format!("{PROCESSES}{rows}").replace("100000 ", "10000000 ");
    let pairs = round_trips(&Tables::from_text(&text).unwrap());
    let trip = &pairs[0].trips[0];
    assert_eq!((pairs[0].trips.len(), trip.request, trip.waited()), (1, Request::Woke, Nanos(259_000)));
    assert_eq!((parts(trip), trip.longest.unwrap().from), ([9000, 248_000, 2000], Nanos(1_009_000)));
    let later = text.replace("1011000 250000", "1021000 240000");
    assert_eq!(round_trips(&Tables::from_text(&later).unwrap())[0].trips.len(), 2);
}

#[test]
fn a_rest_of_the_server_between_request_and_reply_is_said() {
    // It goes back to its event loop, and a timer of its own lets it answer.
    let pairs = found(
        "
0    1000 9 2 9 poll 0 1000 7 7
1100 400  9 2 9 poll 0 -    - -
1010 590  7 9 7 pipe_or_socket 0 1600 9 9
",
    );
    assert!(pairs[0].trips[0].rested);
    assert_eq!(parts(&pairs[0].trips[0]), [190, 400, 0]);
}

#[test]
fn of_two_that_wait_for_each_other_in_turn_the_younger_one_asks() {
    let pairs = found(REPEATED);
    let in_short = |pairs: &[Pair]| -> Vec<_> {
        pairs.iter().map(|pair| (pair.client.pid, pair.server.pid, pair.trips.len(), pair.direction_from)).collect()
    };
    assert_eq!(in_short(&pairs), [(7, 9, 2, DirectionFrom::Age)]);
}

#[test]
fn a_worker_is_as_old_as_the_program_that_it_is_a_copy_of() {
    // The server's process is made for this client, by a server that was there before.
    let text = format!(
        "
== execs
ts pid start filename    present run_time parent_pid ino
0  7   9     /bin/client true    0        1          5
0  9   20    /bin/server true    0        11         6
0  11  3     /bin/server true    0        1          6
== exits
ts     pid start tid last running
100000 7   9     7   true true
100000 9   20    9   true true
100000 11  3     11  true true
== off_cpu
ts duration pid start tid reason runnable woken waker_pid waker_tid
{}",
        REPEATED.replace(" 9 2 9 ", " 9 20 9 ")
    );
    let with = |text: &str| round_trips(&Tables::from_text(text).unwrap())[0].client.pid;
    assert_eq!(with(&text), 7);
    assert_eq!(with(&text.replace("11         6", "1          6")), 9, "of its own it is the younger one");
}

#[test]
fn a_rest_between_requests_confirms_the_age_and_does_not_replace_it() {
    // Each has a timer of its own before it goes on: one of them waits for a user, or for somebody on behalf of the other.
    let with = |of_client: &str, of_server: &str| {
        let text = format!(
            "{}
0    1000 9 2 9 poll 0 1000 7 7 1
1010 490  7 9 7 poll 0 1500 9 9 2
1050 300  9 2 9 poll 0 -    - - {of_server}
1510 990  9 2 9 poll 0 2500 7 7 1
1600 800  7 9 7 poll 0 -    - - {of_client}
2510 490  7 9 7 poll 0 3000 9 9 2
2550 300  9 2 9 poll 0 -    - - {of_server}
3010 990  9 2 9 poll 0 4000 7 7 1
3100 800  7 9 7 poll 0 -    - - {of_client}
",
            PROCESSES.replace("woken waker_pid waker_tid", "woken waker_pid waker_tid stack")
        );
        let pairs = round_trips(&Tables::from_text(&text).unwrap());
        assert_eq!(pairs.len(), 1);
        (pairs[0].client.pid, pairs[0].direction_from)
    };
    assert_eq!(with("2", "3"), (7, DirectionFrom::AgeAndRest));
    assert_eq!(with("4", "3"), (7, DirectionFrom::Age));
    // An event loop that waits for somebody else on behalf of its client rests as a client does.
    assert_eq!(with("4", "1"), (7, DirectionFrom::Age));
}

#[test]
fn of_two_copies_of_one_program_the_older_one_asks() {
    let text = format!(
        "
== forks
ts parent_pid parent_start pid start tid thread
1  7          9            9   12    9   false
== execs
ts pid start filename    present run_time parent_pid ino
0  7   9     /bin/browser false  0        1          5
== exits
ts     pid start tid last running
100000 7   9     7   true true
100000 9   12    9   true true
== off_cpu
ts duration pid start tid reason runnable woken waker_pid waker_tid
{}",
        REPEATED.replace("\n0    1000 ", "\n2    998 ").replace(" 9 2 9 ", " 9 12 9 ")
    );
    let pairs = round_trips(&Tables::from_text(&text).unwrap());
    assert_eq!((pairs.len(), pairs[0].client.pid, pairs[0].direction_from), (1, 7, DirectionFrom::Age));
}

#[test]
fn a_client_that_waits_already_when_another_of_its_threads_asks_waits_from_then_on() {
    let text = format!(
        "== forks\nts parent_pid parent_start pid start tid thread\n10 7 9 7 9 8 true\n\
         == exits\nts pid start tid last running\n100000 7 9 8 false true\n{PROCESSES}\
         0    20000 9 2 9 poll 0 20000 7 8\n100  20100 7 9 7 poll 0 20200 9 9\n"
    );
    let pairs = round_trips(&Tables::from_text(&text).unwrap());
    let trip = &pairs[0].trips[0];
    assert_eq!((trip.request, trip.from, trip.waited()), (Request::Woke, Nanos(20_000), Nanos(200)));
    assert_eq!(parts(trip), [200, 0, 0]);
}

#[test]
fn what_another_client_made_a_server_say_is_no_reply_to_one_that_asked_long_ago() {
    // 7 subscribes; 11 publishes, and the server, which is never idle, notifies 7.
    let mut rows = "0 1000 9 2 9 poll 0 1000 7 7\n1010 90 7 9 7 poll 0 1100 9 9\n".to_owned();
    for n in 1..20u64 {
        let at = 2000 * n;
        writeln!(rows, "{} 800 9 2 9 poll 0 {at} 11 11", at - 800).unwrap();
        writeln!(rows, "{} 800 7 9 7 poll 0 {} 9 9", at - 750, at + 50).unwrap();
    }
    let pairs = found(&rows);
    let of_client = pairs.iter().find(|pair| pair.client.pid == 7).unwrap();
    let seen = of_client.trips.iter().filter(|trip| trip.request != Request::NotSeen).count();
    assert_eq!(seen, 1, "{of_client:?}");
}

#[test]
fn five_quick_replies_of_a_server_that_is_awake_stay_five() {
    let mut rows = "0 1000 9 2 9 poll 0 1000 7 7\n1010 190 7 9 7 pipe_or_socket 0 1200 9 9\n".to_owned();
    for n in 0..5u64 {
        let at = 5000 + n * 5000;
        writeln!(rows, "{at} 1000 7 9 7 pipe_or_socket 0 {} 9 9", at + 900).unwrap();
    }
    assert_eq!(found(&rows)[0].trips.len(), 6 - 1, "the first may have been taken up once");
}

#[test]
fn of_a_launch_the_path_tells_who_asks() {
    let launch = "== manifest\n{\"started\": 0, \"ended\": 100000, \"launch\": {\"released\": 10, \"ready\": 90000, \
                  \"ready_when\": \"exit\", \"outcome\": \"ready\"}}\n";
    // The launch is older than its helper.
    let text = format!("{launch}{PROCESSES}{REPEATED}").replace("7   9     7   true true", "7   9     7   true false");
    let text = text.replace("/bin/client true", "/bin/client false");
    let pairs = round_trips(&Tables::from_text(&text).unwrap());
    assert_eq!((pairs.len(), pairs[0].client.pid, pairs[0].trips.len()), (1, 7, 2));
    assert_eq!(pairs[0].direction_from, DirectionFrom::CriticalPath);
}

#[test]
fn without_waits_there_is_nothing() {
    assert!(round_trips(&Tables::default()).is_empty());
    assert!(found("").is_empty());
}

proptest! {
    /// Whatever rows say, each wait is of a pair of two, lies in the recording, and is taken apart without gaps.
    #[test]
    fn any_rows_make_waits_that_add_up(
        rows in prop::collection::vec((0u64..2000, 0u64..400, 0usize..4, 0usize..4, 0u64..400, 0usize..5), 0..60),
        launch in any::<bool>(),
    ) {
        let threads = [(7, 9, 7), (9, 2, 9), (11, 3, 11), (7, 9, 8), (404, 1, 404)];
        let mut text = format!("== forks\nts parent_pid parent_start pid start tid thread\n10 7 9 7 9 8 true\n\
                                == exits\nts pid start tid last running\n100000 7 9 8 false true\n{PROCESSES}");
        if launch {
            text.insert_str(0, "== manifest\n{\"launch\": {\"released\": 10, \"ready\": 1900, \"ready_when\": \"exit\", \
                                \"outcome\": \"ready\"}}\n");
        }
        for (ts, duration, of, reason, woken, by) in rows {
            let ((pid, start, tid), (waker, _, waker_tid)) = (threads[of], threads[by]);
            let reason = ["poll", "pipe_or_socket", "timer", "runnable"][reason];
            let woken = ts + woken.min(duration);
            writeln!(text, "{ts} {duration} {pid} {start} {tid} {reason} 0 {woken} {waker} {waker_tid}").unwrap();
        }
        for pair in round_trips(&Tables::from_text(&text).unwrap()) {
            prop_assert!(pair.client != pair.server && !pair.trips.is_empty());
            for trip in &pair.trips {
                prop_assert!(trip.from <= trip.replied && trip.replied <= trip.to && trip.to <= Nanos(100_000));
                prop_assert_eq!(trip.account.total() + trip.unknown, trip.waited(), "{:?}", trip);
            }
        }
    }
}
