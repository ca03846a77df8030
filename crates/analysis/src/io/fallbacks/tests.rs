use super::*;

/// Artifact, end in ns, what ended it and what was read instead, of each that began with this problem.
fn described(problem: Problem, rows: &str) -> Vec<(String, u64, End, Option<String>)> {
    let tables = Tables::from_text(rows).unwrap();
    let recording = RecordingTimes::default();
    let threads = Threads::new(&tables, &recording, Nanos(9_000_000));
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

#[test]
fn a_cache_that_was_never_made_is_what_reading_its_sources_costs_and_one_that_is_elsewhere_is_none() {
    let name = "6055296b45f0848f5992b13562521167-le64.cache-8";
    let fonts = |first: &str, second: &str| {
        opens(&format!(
            "
100 7 1 7 /c/{name} 0 {first}  - -
150 7 1 7 /d/{name} 0 {second} - -
160 7 1 7 /f/       65536 3 1 9
200 7 1 7 /f/a.ttf  0 3   1 2
300 7 1 7 /f/b.ttf  0 4   1 3
400 7 1 7 /e/b.so   0 4   1 4"
        ))
    };
    let found = described(Problem::Absent, &fonts("-2", "-2"));
    let dearest = one(&format!("/d/{name}"), 400, End::OtherFile, Some("/f/a.ttf"));
    assert!(found.contains(&dearest), "{found:?}");
    assert_eq!(described(Problem::Absent, &fonts("-2", "3")), []);
    // Who has no cache of an empty directory, and uses a font of another, parses none.
    assert_eq!(described(Problem::Absent, &fonts("-2", "-2").replace("/f/  ", "/g/  ")), []);
    // Of no known family: nothing shows that these were its sources.
    assert_eq!(described(Problem::Absent, &fonts("-2", "-2").replace(".cache-8", ".index")), []);
}

fn calls(rows: &str) -> String {
    format!("== opens\nts pid start tid path flags call result dev ino\n{rows}\n")
}

#[test]
fn a_refused_look_at_a_file_that_is_never_opened_begins_it_as_a_denied_open_does() {
    let rows = calls(&format!(
        "
100 7 1 7 /c/t.bin   0     look -13 - -
200 7 1 7 /s/t.src   0     -    3   1 2
900 7 1 7 /c/t.bin.9 {NEW} -    -13 - -"
    ));
    assert_eq!(described(Problem::Denied, &rows), [one("/c/t.bin", 900, End::SaveRefused, Some("/s/t.src"))]);
    // Asked and tried all the same: once.
    let both = format!("{rows}150 7 1 7 /c/t.bin 0 - -13 - -\n");
    assert_eq!(described(Problem::Denied, &both), [one("/c/t.bin", 900, End::SaveRefused, Some("/s/t.src"))]);
    // Could read it in the end.
    let read = format!("{rows}950 7 1 7 /c/t.bin 0 - 3 1 9\n");
    assert_eq!(described(Problem::Denied, &read), []);
}

#[test]
fn a_source_of_a_like_name_is_no_sign_of_work_where_the_path_was_only_looked_at() {
    let is_alike = |call: &str| {
        let rows = format!("100 7 1 7 /a/m {} -13 - -\n200 7 1 7 /b/m.js 0 - 3 1 2", format_args!("0 {call}"));
        let tables = Tables::from_text(&calls(&rows)).unwrap();
        Threads::new(&tables, &RecordingTimes::default(), Nanos(900)).fallbacks(Problem::Denied)[0].is_alike
    };
    assert!(is_alike("-") && !is_alike("look"));
}

#[test]
fn who_cannot_make_the_directory_of_the_artifact_or_one_above_is_refused_to_save_it() {
    let rows = |path: &str, artifact: &str| {
        calls(&format!(
            "
100 7 1 7 /a/c/d/t.bin 0 -    {artifact} - -
200 7 1 7 /s/t.src     0 -    3 1 2
800 7 1 7 /a/c/d       0 look -13 - -
900 7 1 7 {path}       0 make_directory -13 - -
950 7 1 7 /e           0 -    3 1 3"
        ))
    };
    for path in ["/a/c/d", "/a/c", "/a/c/"] {
        for (problem, result) in [(Problem::Denied, "-13"), (Problem::Absent, "-2")] {
            let expected = one("/a/c/d/t.bin", 900, End::SaveRefused, Some("/s/t.src"));
            assert_eq!(described(problem, &rows(path, result)), [expected], "{path}");
        }
    }
    // Of another directory it says nothing.
    for path in ["/a/cc", "/a/c/d/t.bin.d", "/s"] {
        let expected = one("/a/c/d/t.bin", 950, End::OtherFile, Some("/s/t.src"));
        assert_eq!(described(Problem::Denied, &rows(path, "-13")), [expected], "{path}");
    }
    // Before the source was read it is no end: programs make their directories when they start.
    let early = calls(
        "
100 7 1 7 /a/t.bin 0 -              -13 - -
150 7 1 7 /a       0 make_directory -13 - -
200 7 1 7 /s/t.src 0 -              3   1 2
900 7 1 7 /e       0 -              3   1 3",
    );
    assert_eq!(described(Problem::Denied, &early), [one("/a/t.bin", 900, End::OtherFile, Some("/s/t.src"))]);
}

#[test]
fn a_source_that_is_read_before_its_artifact_is_looked_for_is_what_it_costs_until_the_next_file() {
    // As Node.js 22 does: the results are saved at the end, all together.
    let cache = "/n/v22.12.0-x64-00250a7c-65534";
    let rows = opens(&format!(
        "
100 7 1 7 /a/m.js        0     3   1 2
200 7 1 7 {cache}/859dc7 0     -13 - -
300 7 1 7 /a/package.json 0    -2  - -
600 7 1 7 /a/n.js        0     3   1 3
700 7 1 7 {cache}/873f31 0     -13 - -
990 7 1 7 {cache}/859dc7.tmp {NEW} -13 - -"
    ));
    let [first, second] = [("859dc7", 600, "/a/m.js"), ("873f31", 990, "/a/n.js")]
        .map(|(name, ended, source)| one(&format!("{cache}/{name}"), ended, End::OtherFile, Some(source)));
    assert_eq!(described(Problem::Denied, &rows), [first, second]);
}

#[test]
fn who_cannot_make_the_directory_of_such_a_family_looks_for_nothing_in_it() {
    let rows = |path: &str| calls(&format!("100 7 1 7 {path} 0 make_directory -13 - -\n200 7 1 7 /a/m.js 0 - 3 1 2"));
    let directory = "/n/v22.12.0-x64-00250a7c-65534";
    assert_eq!(described(Problem::Absent, &rows(directory)), [one(directory, 9_000_000, End::Over, None)]);
    for other in ["/n/cache", "/a/__pycache__"] {
        assert_eq!(described(Problem::Absent, &rows(other)), [], "{other}");
    }
}

proptest::proptest! {
    #[test]
    fn any_rows_give_fallbacks_that_end_after_they_begin_and_do_not_overlap(
        rows in proptest::collection::vec((0u64..50, 0usize..8, 0usize..6, 0usize..5, -14i32..4, 0u32..3), 0..60),
    ) {
        let names = ["/a/m.bin", "/a/m.src", "/b/m.bin", "/a/n", "/proc/x", "x", "/", ""];
        let flags = [0, 1, 0o101, 0o301, 0o1001, 0o200_000];
        let mut text = String::new();
        let words = ["-", "-", "-", "look", "make_directory"];
        for (ts, name, flag, call, result, tid) in rows {
            text += &format!("{ts} 7 1 {tid} {:?} {} {} {result} 1 2\n", names[name], flags[flag], words[call]);
        }
        let tables = Tables::from_text(&calls(&text)).unwrap();
        let recording = RecordingTimes::default();
        let threads = Threads::new(&tables, &recording, Nanos(60));
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
