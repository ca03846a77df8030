//! Finding `repeated_child_work` on recordings with answers known by hand.

use slowpath_analysis::findings::{of_recordings, repeated_child_work};
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::Tables;

const MS: u64 = 1_000_000;

/// A launch of 1 s of CPU time, in which pid 7 starts children; each opens `/lib/a` and `/lib/b`, and works between them.
struct Launch {
    text: String,
    now: u64,
}

impl Launch {
    fn new(probes: &[&str], parent_cpu: u64) -> Self {
        let probes: Vec<String> =
            probes.iter().map(|name| format!(r#"{{"name": "{name}", "state": "attached"}}"#)).collect();
        let text = format!(
            "== manifest\n{{\"command\": [\"/bin/app\"], \"started\": 0, \"ended\": 1000000000, \"probes\": [{}]}}\n\
             == execs\nts pid start filename command_line dev ino run_time\n1 7 1 /bin/app /bin/app 1 1 0\n\
             == exits\nts pid start tid last run_time\n999999999 7 1 7 true {}\n",
            probes.join(", "),
            parent_cpu * MS
        );
        Self { text, now: 10 }
    }

    /// A child that takes so many ms between the two opens, and 5 after them.
    fn child(&mut self, pid: u32, line: &str, ms: u64) -> &mut Self {
        let at = self.now * MS;
        let end = at + ms * MS;
        self.text += &format!(
            "== forks\nts pid start tid parent_pid parent_start\n{at} {pid} {at} {pid} 7 1\n\
             == execs\nts pid start filename command_line dev ino run_time\n{at} {pid} {at} /bin/worker \"{line}\" 1 2 0\n\
             == opens\nts pid start tid path flags result dev ino\n{at} {pid} {at} {pid} /lib/a 0 3 1 8\n\
             {end} {pid} {at} {pid} /lib/b 0 3 1 9\n\
             == exits\nts pid start tid last run_time\n{} {pid} {at} {pid} true {}\n",
            end + 5 * MS,
            (ms + 5) * MS
        );
        self.now += ms + 10;
        self
    }

    fn find(&self) -> Option<Finding> {
        let tables = Tables::from_text(&self.text).unwrap();
        let mut found = of_recordings(&[&tables], None);
        found.retain(|one| one.name == repeated_child_work::NAME);
        assert!(found.len() <= 1);
        found.pop()
    }
}

#[test]
fn three_children_of_one_program_pay_three_times_and_save_two() {
    let mut launch = Launch::new(&["off_cpu"], 800);
    for pid in [11, 12, 13] {
        launch.child(pid, "/bin/worker", 20);
    }
    let found = launch.find().unwrap();
    assert_eq!(
        found.title,
        "3 executed worker processes do the same start again: 20.0 ms of CPU each, 6.9 % of all CPU time"
    );
    assert_eq!((found.cost.value, found.confidence), (60.0, Confidence::High));
    let saving = found.predicted_saving.unwrap();
    // Without recorded faults it is not known what copies fault again.
    assert_eq!((saving.value, saving.low, saving.high), (40.0, Some(0.0), Some(40.0)));
    assert_eq!(found.fixes, ["preload_in_zygote"]);
    assert_eq!((&found.subject["processes"], &found.subject["origin"]), (&3.into(), &"executed".into()));
    let step = &found.evidence[2].rows[0];
    assert_eq!((&step["after_open_of"], &step["until_open_of"]), (&"/lib/a".into(), &"/lib/b".into()));
}

#[test]
fn two_children_small_starts_and_small_shares_are_none() {
    let mut two = Launch::new(&["off_cpu"], 100);
    assert_eq!(two.child(11, "w", 40).child(12, "w", 40).find(), None);
    let mut small = Launch::new(&["off_cpu"], 10);
    assert_eq!(small.child(11, "w", 3).child(12, "w", 3).child(13, "w", 3).find(), None);
    let mut busy = Launch::new(&["off_cpu"], 900_000);
    assert_eq!(busy.child(11, "w", 40).child(12, "w", 40).child(13, "w", 40).find(), None);
}

#[test]
fn work_that_can_be_of_their_own_is_none() {
    let mut given = Launch::new(&["off_cpu"], 100);
    assert_eq!(given.child(11, "w 1", 50).child(12, "w 2", 50).child(13, "w 3", 50).find(), None);
}

#[test]
fn other_command_lines_uneven_times_missing_waits_and_losses_lower_confidence() {
    let mut lines = Launch::new(&["off_cpu"], 100);
    let found = lines.child(11, "w 1", 4).child(12, "w 2", 4).child(13, "w 3", 4).find().unwrap();
    assert_eq!((found.confidence, found.cost.value), (Confidence::Medium, 12.0));
    let mut uneven = Launch::new(&["off_cpu"], 100);
    let found = uneven.child(11, "w", 5).child(12, "w", 20).child(13, "w", 40).find().unwrap();
    assert_eq!((found.confidence, found.cost.value), (Confidence::Low, 60.0));
    assert!(found.cost.low.unwrap() <= 15.0 && found.cost.high.unwrap() >= 65.0, "{:?}", found.cost);
    let mut clock = Launch::new(&[], 100);
    let found = clock.child(11, "w", 20).child(12, "w", 20).child(13, "w", 20).find().unwrap();
    assert_eq!(found.confidence, Confidence::Low);
    // Time by the clock is no share of the CPU time, which is 175 ms.
    assert!(found.title.ends_with("20.0 ms each, 6.0 % of the recording"), "{}", found.title);
    let mut lossy = Launch::new(&["off_cpu"], 100);
    lossy.text = lossy.text.replace(r#""started""#, r#""losses": {"opens": 2}, "started""#);
    let found = lossy.child(11, "w", 20).child(12, "w", 20).child(13, "w", 20).find().unwrap();
    assert!(found.confidence < Confidence::High && found.reasons.iter().any(|one| one.contains("rows of opens")));
}
