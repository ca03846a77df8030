//! Finding `unreadable_artifact` on recordings with answers known by hand.

use slowpath_analysis::findings::{of_recordings, unreadable_artifact};
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;
use std::fmt::Write as _;

const MS: u64 = 1_000_000;

/// What a child does with the artifact of a module.
#[derive(Clone, Copy)]
enum Does {
    /// Reads the artifact in 1 ms.
    Reads,
    /// Reads it in 20 ms.
    ReadsSlowly,
    /// Is denied, takes 10 ms for the source, and is refused to save the result.
    IsDenied,
    /// The same without an attempt to save.
    SavesNothing,
}

/// Children of pid 7, each with these modules of 1000 bytes, each of which then runs for 5 ms; with the opens of another file behind.
struct Recording {
    text: String,
    opens: String,
    off_cpu: String,
}

impl Recording {
    fn new(waits: bool) -> Self {
        let probes = if waits { r#"{"name": "off_cpu", "state": "attached"}"# } else { "" };
        let text = format!(
            r#"== manifest
{{"command": ["/bin/tool"], "started": 0, "ended": 900000000, "probes": [{probes}]}}
== files
dev ino path   size
1   1   /a/m.py 1000
1   2   /a/n.py 1000
1   3   /a/o.py 1000
"#
        );
        Self { text, opens: String::new(), off_cpu: String::new() }
    }

    fn child(&mut self, pid: u32, uid: u32, modules: &[(&str, Does)]) -> &mut Self {
        let start = 10;
        let mut now = 100 * MS;
        self.text += &format!(
            "== forks\nts pid start tid parent_pid parent_start\n{start} {pid} {start} {pid} 7 1\n\
             == execs\nts pid start uid filename dev ino\n{} {pid} {start} {uid} /bin/tool 1 99\n",
            start + 1
        );
        let mut open = |now: u64, path: &str, flags: u32, result: i32, ino: u32| {
            let file = if result < 0 { "- -".to_owned() } else { format!("1 {ino}") };
            writeln!(self.opens, "{now} {pid} {start} {pid} {path} {flags} {result} {file}").unwrap();
        };
        for (number, (module, does)) in (1u32..).zip(modules) {
            let artifact = format!("/a/c/{module}.x.pyc");
            if matches!(does, Does::Reads | Does::ReadsSlowly) {
                open(now, &artifact, 0, 3, 50 + number);
                now += if matches!(does, Does::Reads) { MS } else { 20 * MS };
            } else {
                open(now, &artifact, 0, -13, 0);
                open(now + 1, &format!("/a/{module}.py"), 0, 3, number);
                // 2 ms of the 12 it does not run.
                writeln!(self.off_cpu, "{} 2000000 {pid} {start} {pid} runnable 2000000", now + MS).unwrap();
                now += 12 * MS;
                if matches!(does, Does::IsDenied) {
                    open(now, &format!("{artifact}.{pid}"), 0o301, -13, 0);
                }
            }
            now += 5 * MS;
            open(now, &format!("/lib/x{module}.so"), 0, 3, 70 + number);
        }
        self.text += &format!(
            "== exits\nts pid start tid last run_time\n{} {pid} {start} {pid} true {}\n",
            now + MS,
            now + MS - start
        );
        self
    }

    fn tables(&self) -> Tables {
        let off_cpu = format!("== off_cpu\nts duration pid start tid reason runnable\n{}", self.off_cpu);
        let opens = format!("== opens\nts pid start tid path flags result dev ino\n{}", self.opens);
        let text =
            format!("{}{opens}{}", self.text, if self.text.contains("off_cpu") { off_cpu } else { String::new() });
        Tables::from_text(&text).unwrap()
    }

    fn found(&self) -> Option<Finding> {
        found(&self.tables())
    }
}

fn found(tables: &Tables) -> Option<Finding> {
    let mut all = of_recordings(&[tables], None).into_iter().filter(|one| one.name == unreadable_artifact::NAME);
    let first = all.next();
    assert!(all.next().is_none());
    first
}

#[test]
fn each_child_that_compiles_again_pays_until_it_is_refused_to_save() {
    let mut recording = Recording::new(true);
    let modules = [("m", Does::IsDenied), ("n", Does::IsDenied)];
    for pid in 20..24 {
        recording.child(pid, 1000, &modules);
    }
    let finding = recording.found().unwrap();
    assert!((finding.cost.value - 80.0).abs() < 0.1, "2 modules of 10 ms in 4 processes: {finding:#?}");
    assert_eq!(finding.predicted_saving, Some(finding.cost));
    assert!(finding.cost.low.unwrap() > 79.0 && finding.cost.high.unwrap() < 81.0, "{finding:#?}");
    assert_eq!(finding.confidence, Confidence::Medium, "no sibling could read");
    let subject = |name: &str| &finding.subject[name];
    assert_eq!((subject("artifact"), subject("artifacts")), (&"/a/c/m.x.pyc".into(), &2.into()));
    assert_eq!((subject("processes"), subject("uid"), subject("family")), (&4.into(), &1000.into(), &"*.pyc".into()));
    let each = &finding.evidence[0].rows[0];
    assert!((each["cpu_ms_each"].as_f64().unwrap() - 20.0).abs() < 0.01, "{each:?}");
    assert!((each["wall_ms_each"].as_f64().unwrap() - 24.0).abs() < 0.01, "{each:?}");
    let artifact = &finding.evidence[1].rows[0];
    assert_eq!((&artifact["error"], &artifact["saving"]), (&"EACCES".into(), &"refused".into()));
    assert!(finding.title.starts_with("4 tool processes cannot read m.x.pyc and 1 more, and do"), "{}", finding.title);
}

#[test]
fn a_sibling_that_could_read_bounds_the_cost_by_the_difference() {
    let mut recording = Recording::new(true);
    recording.child(20, 0, &[("m", Does::Reads)]).child(21, 1000, &[("m", Does::SavesNothing)]);
    recording.child(22, 1000, &[("m", Does::IsDenied)]);
    let finding = recording.found().unwrap();
    // 15 ms until /lib/xm.so is opened, and 6 in the sibling.
    assert!((finding.cost.value - 18.0).abs() < 0.1, "{finding:#?}");
    assert_eq!((finding.confidence, &finding.subject["uid"]), (Confidence::High, &1000.into()), "{finding:#?}");
}

#[test]
fn a_denied_file_that_nothing_replaces_costs_what_every_sibling_saves() {
    let unlike = |recording: &Recording| {
        let mut tables = recording.tables();
        tables.opens.iter_mut().filter(|open| open.path == "/a/m.py").for_each(|open| open.path = "/b/data".to_owned());
        found(&tables)
    };
    let mut one = Recording::new(true);
    one.child(20, 0, &[("m", Does::Reads)]).child(21, 1000, &[("m", Does::SavesNothing)]);
    let finding = unlike(&one).unwrap();
    assert!((finding.cost.value - 9.0).abs() < 0.1 && finding.confidence == Confidence::Medium, "{finding:#?}");
    let two = one.child(22, 0, &[("m", Does::Reads)]);
    assert_eq!(unlike(two).unwrap().confidence, Confidence::High);
    // A sibling that takes as long although it could read: something else is slow.
    two.child(23, 0, &[("m", Does::ReadsSlowly)]);
    assert!(unlike(two).is_none());
}

#[test]
fn where_nothing_is_saved_others_of_the_family_bound_it_and_the_low_end_leaves_it_out() {
    let modules = [("m", Does::SavesNothing), ("n", Does::SavesNothing), ("o", Does::SavesNothing)];
    let mut recording = Recording::new(true);
    recording.child(20, 1000, &modules);
    let finding = recording.found().unwrap();
    assert_eq!((finding.cost.low, finding.confidence), (Some(0.0), Confidence::Low));
    assert!((finding.cost.value - 45.0).abs() < 0.1, "{finding:#?}");
    // The last one goes on to work for a second: it counts as twice the median.
    let mut tables = recording.tables();
    let second = slowpath_tables::Nanos(1000 * MS);
    for open in tables.opens.iter_mut().filter(|open| open.path == "/lib/xo.so") {
        open.ts += second;
    }
    for exit in &mut tables.exits {
        (exit.ts, exit.run_time) = (exit.ts + second, exit.run_time.map(|time| time + second));
    }
    tables.manifest.ended = tables.manifest.ended.map(|ended| ended + second);
    let bounded = found(&tables).unwrap();
    assert!((bounded.cost.value - 60.0).abs() < 0.1, "{bounded:#?}");
    // One alone says nothing of when its work ended.
    let mut one = Recording::new(true);
    assert!(one.child(20, 1000, &modules[..1]).found().is_none());
}

#[test]
fn ordinary_denials_and_searches_are_nothing() {
    let mut recording = Recording::new(true);
    recording.child(20, 1000, &[("m", Does::Reads), ("n", Does::Reads), ("o", Does::Reads)]);
    assert!(recording.found().is_none(), "all readable");
    let denied = "150000000 20 10 20 /etc/tool.conf 0 -13 - -\n";
    recording.opens.push_str(denied);
    assert!(recording.found().is_none(), "an optional configuration");
    recording.opens.push_str("150000001 20 10 20 /home/u/other 0 3 1 80\n");
    assert!(recording.found().is_none(), "another file instead");
    let mut absent = Recording::new(true);
    absent.child(20, 1000, &[("m", Does::IsDenied), ("n", Does::IsDenied)]);
    absent.opens = absent.opens.replace(" -13 ", " -2 ");
    assert!(absent.found().is_none(), "not there");
}

#[test]
fn less_than_a_millisecond_or_half_a_percent_is_nothing() {
    let mut recording = Recording::new(true);
    recording.child(20, 1000, &[("m", Does::IsDenied)]);
    let mut tables = recording.tables();
    assert!(found(&tables).is_some());
    for exit in &mut tables.exits {
        exit.run_time = Some(slowpath_tables::Nanos(2100 * MS));
    }
    assert!(found(&tables).is_none());
}

#[test]
fn without_waits_it_is_time_by_the_clock_and_losses_lower_the_confidence() {
    let mut recording = Recording::new(false);
    recording.child(20, 1000, &[("m", Does::IsDenied)]);
    let by_clock = recording.found().unwrap();
    assert!((by_clock.cost.value - 12.0).abs() < 0.1 && by_clock.confidence == Confidence::Low, "{by_clock:#?}");
    assert!(!by_clock.title.contains("of CPU"), "{}", by_clock.title);
    let mut with_waits = Recording::new(true);
    let mut tables = with_waits.child(20, 1000, &[("m", Does::IsDenied)]).tables();
    tables.manifest.losses.add("opens", 100);
    let finding = found(&tables).unwrap();
    assert_eq!(finding.confidence, Confidence::Low);
    assert!(finding.reasons.iter().any(|reason| reason.starts_with("100 rows of opens were lost")), "{finding:#?}");
}
