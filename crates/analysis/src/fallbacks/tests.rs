use super::*;

/// Artifact, end in ns, what ended it and what was read instead, of each that began with this problem.
fn described(problem: Problem, rows: &str) -> Vec<(String, u64, End, Option<String>)> {
    let tables = Tables::from_text(rows).unwrap();
    let threads = Threads::new(&tables, Nanos(9_000_000));
    let found = threads.fallbacks(problem);
    let one = |one: &Fallback<'_>| {
        (one.artifact().to_owned(), one.ended.0, one.end, one.source.map(|source| source.path.clone()))
    };
    found.iter().map(one).collect()
}

fn opens(rows: &str) -> String {
    format!("== opens\nts pid start tid path flags result dev ino\n{rows}\n")
}

fn one(artifact: &str, ended: u64, end: End, source: Option<&str>) -> (String, u64, End, Option<String>) {
    (artifact.to_owned(), ended, end, source.map(str::to_owned))
}

/// `O_WRONLY | O_CREAT | O_EXCL`
const NEW: u32 = 0o301;

#[test]
fn a_denied_open_with_its_source_ends_where_the_result_cannot_be_saved() {
    let rows = opens(&format!(
        "
100 7 1 7 /a/__pycache__/m.c.pyc    0 -13 - -
150 7 1 7 /proc/self/maps           0 4   - -
200 7 1 7 /a/m.py                   0 3   1 2
900 7 1 7 /a/__pycache__/m.c.pyc.77 {NEW} -13 - -
950 7 1 7 /a/__pycache__/n.c.pyc    0 -13 - -
960 7 1 7 /a/n.py                   0 3   1 3
990 7 1 7 /etc/other                0 3   1 4"
    ));
    let m = one("/a/__pycache__/m.c.pyc", 900, End::SaveRefused, Some("/a/m.py"));
    assert_eq!(
        described(Problem::Denied, &rows),
        [m, one("/a/__pycache__/n.c.pyc", 990, End::OtherFile, Some("/a/n.py"))]
    );
}

#[test]
fn what_is_denied_and_then_opened_and_what_has_a_copy_elsewhere_is_none() {
    let retried = "
100 7 1 7 /a/x 0 -13 - -
200 7 1 8 /a/x 0 3   1 2";
    assert_eq!(described(Problem::Denied, &opens(retried)), []);
    let copy = "
100 7 1 7 /a/lib.so 0 -13 - -
110 7 1 7 /c/lib.so 0 -2  - -
120 7 1 7 /b/lib.so 0 3   1 2";
    assert_eq!(described(Problem::Denied, &opens(copy)), []);
    let kernel = "100 7 1 7 /proc/1/environ 0 -13 - -\n120 7 1 7 /a/data 0 3 1 2";
    assert_eq!(described(Problem::Denied, &opens(kernel)), []);
    let directory = format!("100 7 1 7 /root {} -13 - -", 0o200_000);
    assert_eq!(described(Problem::Denied, &opens(&directory)), []);
    let another_process = "100 7 1 7 /a/x 0 -13 - -\n200 8 1 8 /a/x 0 3 1 2";
    assert_eq!(described(Problem::Denied, &opens(another_process)).len(), 1);
}

#[test]
fn waiting_for_events_another_program_and_the_end_of_the_thread_end_it() {
    let denied = opens("100 7 1 7 /a/x.bin 0 -13 - -\n200 7 1 7 /a/x.src 0 3 1 2\n8000000 7 1 7 /b 0 3 1 3");
    let source = Some("/a/x.src");
    let exit = "== exits\nts pid start tid\n5000000 7 1 7\n";
    assert_eq!(
        described(Problem::Denied, &format!("{denied}{exit}"))[0],
        one("/a/x.bin", 5_000_000, End::Over, source)
    );
    let exec = "== execs\nts pid start\n300 7 1\n50 7 1\n";
    assert_eq!(
        described(Problem::Denied, &format!("{denied}{exit}{exec}"))[0],
        one("/a/x.bin", 300, End::Over, source)
    );
    let waits = "== off_cpu\nts duration pid start tid reason\n260 1000 7 1 7 poll\n270 2000000 7 1 7 poll\n";
    assert_eq!(
        described(Problem::Denied, &format!("{denied}{exec}{waits}"))[0],
        one("/a/x.bin", 270, End::Over, source)
    );
}

#[test]
fn a_missing_or_unfit_file_shows_by_what_is_made_instead() {
    let absent = |name: &str, flags: u32| {
        opens(&format!("100 7 1 7 /c/t.bin 0 -2 - -\n200 7 1 7 /s/t.src 0 3 1 2\n900 7 1 7 {name} {flags} -13 - -"))
    };
    let expected = one("/c/t.bin", 900, End::SaveRefused, Some("/s/t.src"));
    for (name, flags) in [("/c/t.bin", 0o1101), ("/c/.t.bin.4711", 0o101), ("/c/tmpx8", NEW), ("/c/t.bin", 0o1001)] {
        assert_eq!(described(Problem::Absent, &absent(name, flags)), std::slice::from_ref(&expected), "{name}");
    }
    assert_eq!(described(Problem::Absent, &absent("/c/u.bin", 0o101)), []);
    assert_eq!(described(Problem::Absent, &absent("/d/t.bin", 0o101)), []);
    let unfit = absent("/c/t.bin", 0o101).replace("0 -2 - -", "0 3 1 9");
    assert_eq!(described(Problem::Unfit, &unfit), [expected]);
    assert_eq!(described(Problem::Unfit, &unfit.replace("/s/t.src", "/s/other")), []);
    let reads_only = "100 7 1 7 /c/t.bin 0 -2 - -\n200 7 1 7 /s/t.src 0 3 1 2";
    assert_eq!(described(Problem::Absent, &opens(reads_only)), []);
}

#[test]
fn sources_of_one_kind_belong_together_and_two_fallbacks_of_a_thread_do_not_overlap() {
    let fonts = "
100 7 1 7 /c/38.cache 0 -13 - -
200 7 1 7 /f/a.ttf    0 3   1 2
300 7 1 7 /f/b.ttf    0 4   1 3
400 7 1 7 /f/lib.so   0 4   1 4";
    assert_eq!(described(Problem::Denied, &opens(fonts)), [one("/c/38.cache", 400, End::OtherFile, Some("/f/a.ttf"))]);
    let several = "
100 7 1 7 /c/a 0 -13 - -
110 7 1 7 /c/b 0 -13 - -
200 7 1 7 /f/s 0 3   1 2
300 7 1 7 /e/e 0 4   1 3";
    let found = described(Problem::Denied, &opens(several));
    assert_eq!(found, [one("/c/a", 110, End::OtherFile, None), one("/c/b", 300, End::OtherFile, Some("/f/s"))]);
}

proptest::proptest! {
    #[test]
    fn any_rows_give_fallbacks_that_end_after_they_begin_and_do_not_overlap(
        rows in proptest::collection::vec((0u64..50, 0usize..8, 0usize..6, -14i32..4, 0u32..3), 0..60),
    ) {
        let names = ["/a/m.bin", "/a/m.src", "/b/m.bin", "/a/n", "/proc/x", "x", "/", ""];
        let flags = [0, 1, 0o101, 0o301, 0o1001, 0o200_000];
        let mut text = String::new();
        for (ts, name, flag, result, tid) in rows {
            text += &format!("{ts} 7 1 {tid} {:?} {} {result} 1 2\n", names[name], flags[flag]);
        }
        let tables = Tables::from_text(&opens(&text)).unwrap();
        let threads = Threads::new(&tables, Nanos(60));
        for problem in [Problem::Denied, Problem::Absent, Problem::Unfit] {
            let found = threads.fallbacks(problem);
            for one in &found {
                proptest::prop_assert!(one.ended >= one.open.ts);
                let taken = threads.alone(one);
                proptest::prop_assert!(taken.cpu <= taken.wall);
            }
            for pair in found.windows(2) {
                let is_same = pair[0].open.tid == pair[1].open.tid;
                proptest::prop_assert!(!is_same || pair[0].ended <= pair[1].open.ts);
            }
        }
    }
}
