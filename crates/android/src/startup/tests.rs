//! Traces written message by message. The rules for launches and the sums are those that Perfetto's own tests pin
//! (test/trace_processor/diff_tests/metrics/startup); bench/accept/android-startup compares all of these.

use super::*;
use prost::Message;
use slowpath_import::perfetto_messages::*;

const SYSTEM: u32 = 2;
const APP: u32 = 3;
const OTHER: u32 = 4;
const PACKAGE: &str = "com.example.calendar";

/// Events of one CPU and lists of processes, under way.
#[derive(Default)]
struct Written {
    packets: Vec<TracePacket>,
    events: Vec<FtraceEvent>,
}

impl Written {
    fn new() -> Self {
        let mut written = Self::default();
        written.listed(None, &[(1, "init", 0), (SYSTEM, "system_server", 1000), (APP, PACKAGE, 10_001)]);
        written
    }

    fn listed(&mut self, timestamp: Option<u64>, processes: &[(u32, &str, i32)]) {
        let process = |(pid, name, uid): &(u32, &str, i32)| Process {
            pid: i32::try_from(*pid).ok(),
            cmdline: vec![name.as_bytes().to_vec()],
            uid: Some(*uid),
        };
        let processes = processes.iter().map(process).collect();
        let process_tree = Some(ProcessTree { processes, threads: Vec::new() });
        self.packets.push(TracePacket { timestamp, process_tree, ..TracePacket::default() });
    }

    fn event(&mut self, timestamp: u64, pid: u32, fill: impl FnOnce(&mut FtraceEvent)) {
        let mut event = FtraceEvent { timestamp: Some(timestamp), pid: Some(pid), ..FtraceEvent::default() };
        fill(&mut event);
        self.events.push(event);
    }

    fn atrace(&mut self, ts: u64, tid: u32, text: &str) {
        self.event(ts, tid, |event| event.print = Some(Print { buf: Some(format!("{text}\n").into_bytes()) }));
    }

    fn slice(&mut self, (from, to): (u64, u64), tid: u32, pid: u32, name: &str) {
        self.atrace(from, tid, &format!("B|{pid}|{name}"));
        self.atrace(to, tid, &format!("E|{pid}"));
    }

    fn launching(&mut self, (from, to): (u64, u64), name: &str) {
        self.atrace(from, SYSTEM, &format!("S|{SYSTEM}|{name}|0"));
        self.atrace(to, SYSTEM, &format!("F|{SYSTEM}|{name}|0"));
    }

    fn switch(&mut self, ts: u64, prev: u32, prev_state: i64, next: u32) {
        let (prev_pid, next_pid) = (i32::try_from(prev).ok(), i32::try_from(next).ok());
        let switch = SchedSwitch { prev_pid, prev_state: Some(prev_state), next_comm: None, next_pid };
        self.event(ts, 0, |event| event.sched_switch = Some(switch));
    }

    fn made(&mut self, ts: u64, parent: u32, pid: u32, clone_flags: u64) {
        let task =
            NewTask { pid: i32::try_from(pid).ok(), comm: Some(b"main".to_vec()), clone_flags: Some(clone_flags) };
        self.event(ts, parent, |event| event.task_newtask = Some(task));
    }

    fn called(&mut self, ts: u64, tid: u32, debug_id: i32, to: u32, reply: i32, flags: u32) {
        let call = BinderTransaction {
            debug_id: Some(debug_id),
            to_proc: i32::try_from(to).ok(),
            to_thread: None,
            reply: Some(reply),
            flags: Some(flags),
        };
        self.event(ts, tid, |event| event.binder_transaction = Some(call));
    }

    fn arrived(&mut self, ts: u64, tid: u32, debug_id: i32) {
        let arrived = BinderReceived { debug_id: Some(debug_id) };
        self.event(ts, tid, |event| event.binder_transaction_received = Some(arrived));
    }

    fn bytes(&self) -> Vec<u8> {
        let bundle = FtraceEventBundle { cpu: Some(0), event: self.events.clone(), ..FtraceEventBundle::default() };
        let mut packets = self.packets.clone();
        packets.insert(1, TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() });
        let mut bytes = Vec::new();
        for packet in packets {
            bytes.push(0x0a);
            packet.encode_length_delimited(&mut bytes).unwrap();
        }
        bytes
    }

    fn read(&self) -> TraceStartups {
        of_bytes(&self.bytes())
    }
}

fn of_bytes(mut bytes: &[u8]) -> TraceStartups {
    read("trace", &mut Input::new("trace", &mut bytes, &|| true))
}

fn resumed(written: &mut Written, ts: u64) {
    written.slice((ts, ts + 2), APP, APP, "activityStart");
    written.slice((ts + 2, ts + 3), APP, APP, "activityResume");
}

fn phase<'a>(phases: &'a [Phase], name: &str) -> &'a Phase {
    phases.iter().find(|phase| phase.name == name).unwrap_or_else(|| panic!("{name} in {phases:?}"))
}

#[test]
fn launches_of_all_three_generations_are_found_by_their_own_marks() {
    let mut oldest = Written::new();
    oldest.launching((110, 210), &format!("launching: {PACKAGE}"));
    resumed(&mut oldest, 115);
    let found = oldest.read();
    assert_eq!(
        found.startups.iter().map(|one| (one.intent_received, one.duration_ns)).collect::<Vec<_>>(),
        [(110, 100)]
    );

    let mut observed = Written::new();
    // The first intent has no launch of its own.
    for (ts, what) in
        [(100, "IntentStarted"), (102, "IntentStarted"), (211, "ActivityLaunchFinished"), (402, "IntentStarted")]
    {
        observed.slice((ts, ts + 1), SYSTEM, SYSTEM, &format!("MetricsLogger:launchObserverNotify{what}"));
    }
    observed.launching((110, 210), &format!("launching: {PACKAGE}"));
    resumed(&mut observed, 115);
    // This one is never said to be finished.
    observed.launching((410, 510), &format!("launching: {PACKAGE}"));
    let found = observed.read();
    let launches: Vec<_> = found
        .startups
        .iter()
        .map(|one| (one.intent_received, one.duration_ns, one.activity_manager_ns, one.kind, one.process.as_deref()))
        .collect();
    assert_eq!(launches, [(102, 108, Some(8), Some(StartupKind::Warm), Some(PACKAGE))]);

    let mut numbered = Written::new();
    numbered.launching((110, 210), "launchingActivity#1");
    numbered.atrace(211, SYSTEM, &format!("I|{SYSTEM}|launchingActivity#1:completed:{PACKAGE}"));
    numbered.launching((220, 230), "launchingActivity#2");
    numbered.slice((221, 225), APP, APP, "activityResume");
    numbered.atrace(231, SYSTEM, &format!("I|{SYSTEM}|launchingActivity#2:completed-hot:{PACKAGE}"));
    numbered.launching((240, 250), "launchingActivity#3");
    numbered.atrace(251, SYSTEM, &format!("I|{SYSTEM}|launchingActivity#3:completed-same-process:{PACKAGE}"));
    let found = numbered.read();
    let launches: Vec<_> =
        found.startups.iter().map(|one| (one.duration_ns, one.kind, one.hosting_processes)).collect();
    assert_eq!(launches, [(100, None, 0), (10, Some(StartupKind::Hot), 1)]);
}

#[test]
fn the_figures_of_a_launch_are_those_of_its_threads_in_its_time() {
    let mut written = Written::new();
    written.launching((100, 1_000), "launchingActivity#1");
    written.atrace(1_001, SYSTEM, &format!("I|{SYSTEM}|launchingActivity#1:completed-cold:{PACKAGE}"));
    resumed(&mut written, 900);
    written.slice((50, 60), APP, APP, "VerifyClass before");
    written.slice((150, 180), APP, APP, "VerifyClass com.example.A");
    written.slice((160, 170), OTHER, APP, "VerifyClass com.example.B");
    written.slice((200, 300), APP, APP, "OpenDexFilesFromOat(/data/app/base.apk)");
    written.slice(
        (310, 320),
        APP,
        APP,
        "location=/a/base.odex status=io-error-no-oat filter=run-from-apk reason=unknown",
    );
    written.slice((400, 405), APP, APP, "dlopen: libchrome.so");
    written.atrace(1_200, APP, &format!("B|{APP}|reportFullyDrawn() for {{{PACKAGE}}}"));
    written.switch(120, 0, 0, APP);
    written.switch(500, APP, 1, 0);
    written.switch(520, 0, 0, APP);
    written.switch(600, APP, 2, 0);
    written.event(640, 0, |event| {
        event.sched_blocked_reason = Some(BlockedReason { pid: i32::try_from(APP).ok(), io_wait: Some(1) });
    });
    written.switch(650, 0, 0, APP);
    written.switch(700, APP, 0, OTHER);
    written.called(210, APP, 7, SYSTEM, 0, 0);
    written.arrived(220, SYSTEM, 7);
    written.called(20_000_300, SYSTEM, 8, APP, 1, 0);
    written.arrived(20_000_311, APP, 8);
    // Nobody waits for this one.
    written.called(250, APP, 9, SYSTEM, 0, 1);
    let found = written.read();
    let startup = &found.startups[0];
    assert_eq!((startup.kind, startup.fully_drawn_ns), (Some(StartupKind::Cold), Some(1_100)));
    let main = &startup.main_thread;
    assert_eq!((main.running_ns, main.runnable_ns, main.interruptible_ns), (380 + 80 + 50, 300, 20));
    assert_eq!((main.uninterruptible_ns, main.storage_ns, main.not_storage_ns), (50, 50, 0));
    let verified = phase(&startup.phases, "verify_class");
    assert_eq!((verified.count, verified.duration_ns, verified.main_thread_ns), (2, 40, 30));
    assert_eq!(phase(&startup.phases, "dex_open").duration_ns, 100);
    assert_eq!(startup.verified_classes[0].name, "com.example.A");
    assert_eq!(
        (startup.code[0].filter.as_str(), startup.libraries.as_slice()),
        ("run-from-apk", &["libchrome.so".to_owned()][..])
    );
    assert_eq!((startup.binder.count, startup.binder.main_thread_ns), (1, 20_000_101));
    assert_eq!((startup.binder.long[0].to_process.as_str(), startup.to_running_ns), ("system_server", Some(20)));
    assert!(found.unavailable.iter().any(|gap| gap.what.starts_with("page faults on files")));
}

#[test]
fn a_child_has_the_name_of_its_request_and_its_id_can_be_another_ones_later() {
    let renderer = format!("{PACKAGE}:sandboxed_process0:org.chromium.SandboxedProcessService0:0");
    let mut written = Written::new();
    written.slice((100, 130), SYSTEM, SYSTEM, &format!("Start proc: {renderer}"));
    written.made(110, 1, 50, 0);
    written.made(111, 50, 51, 0x1_0000);
    written.slice((140, 240), 50, 50, "bindApplication");
    written.slice((150, 160), 51, 50, "VerifyClass a");
    written.slice((250, 260), 50, 50, "serviceCreate: CreateServiceData{token=android.os.BinderProxy@1 className=org.chromium.SandboxedProcessService0 packageName=p}");
    written.event(300, 1, |event| event.sched_process_free = Some(Freed { pid: Some(51) }));
    written.event(300, 1, |event| event.sched_process_free = Some(Freed { pid: Some(50) }));
    // What has its id now is another process, which nobody asked for and which loads no app.
    written.made(400, 1, 50, 0);
    written.slice((410, 420), 50, 50, "VerifyClass b");
    let found = written.read();
    let [child] = found.children.as_slice() else { panic!("{:?}", found.children) };
    assert_eq!((child.process.as_str(), child.kind.as_str()), (renderer.as_str(), "sandboxed_process"));
    assert_eq!((child.begin, child.to_fork_ns, child.request_ns, child.duration_ns), (100, Some(10), Some(30), 160));
    assert_eq!(
        (child.reason.as_str(), child.component.as_deref()),
        ("service", Some("org.chromium.SandboxedProcessService0"))
    );
    assert_eq!((child.is_isolated, phase(&child.phases, "verify_class").duration_ns), (None, 10));
}

#[test]
fn a_trace_that_is_cut_anywhere_keeps_what_was_whole_and_says_where() {
    let mut written = Written::new();
    written.launching((110, 210), &format!("launching: {PACKAGE}"));
    written.listed(Some(300), &[(APP, "com.example.other", 10_001)]);
    let bytes = written.bytes();
    for at in 1..bytes.len() {
        let found = of_bytes(&bytes[..at]);
        assert!(found.startups.len() <= 1, "cut at {at}");
    }
    assert!(of_bytes(&bytes[..bytes.len() - 1]).problem.is_some());
    assert!(of_bytes(b"PK\x03\x04").problem.is_some_and(|problem| problem.contains("byte 1")));
    assert_eq!(of_bytes(&bytes).problem, None);
}
