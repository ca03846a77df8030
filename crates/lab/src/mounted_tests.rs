//! Tests with real images, loop devices and mounts. The program of a launch is started from a thread with the lab's
//! mounts; the crate's integration tests do the same through the launcher.

use crate::mount_plan::READ_MOSTLY;
use crate::private_mounts::{MountedHere, in_private_namespace};
use crate::{device, *};
use slowpath_tables::{Bytes, FileKey, Pages};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Says why a test did not run.
macro_rules! needs_root {
    () => {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root for loop devices and mounts");
            return;
        }
    };
}
pub(crate) use needs_root;

/// A directory on disk whose files no overlay covers.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir_in("/var/tmp").unwrap())
    }

    fn file(&self, name: &str, size: usize) -> PathBuf {
        let path = self.0.path().join(name);
        let content: Vec<u8> = (0..size).map(|byte| (byte * 31 % 251) as u8).collect();
        fs::write(&path, content).unwrap();
        path
    }

    fn lab_of(&self, paths: &[PathBuf]) -> Lab {
        let image = Image::build(&Closure::from_paths(paths), Path::new(DEFAULT_BASE), Vec::new()).unwrap();
        Lab::new(image, Settings::default()).unwrap()
    }
}

/// Runs `work` on a thread that sees the lab's mounts.
fn inside_lab<T: Send>(lab: &Lab, work: impl FnOnce() -> T + Send) -> T {
    in_private_namespace(|| {
        let mut mounted = MountedHere::default();
        for step in &lab.mounts() {
            mounted.step(step)?;
        }
        Ok(work())
    })
    .unwrap()
}

/// The files that a small Python program maps and imports.
pub(crate) fn python_closure() -> Closure {
    let script = "import json, decimal, sys\n\
        for m in list(sys.modules.values()):\n print(getattr(m, '__file__', '')); print(getattr(m, '__cached__', ''))\n\
        for l in open('/proc/self/maps'):\n print(l.split(None, 5)[5].strip() if len(l.split(None, 5)) > 5 else '')";
    let output = Command::new("/usr/bin/python3").args(["-S", "-c", script]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let paths = text.lines().filter(|line| line.starts_with('/')).chain(["/etc/ld.so.cache", "/usr/bin/python3"]);
    Closure::from_paths(paths)
}

fn run_python() {
    let status = Command::new("/usr/bin/python3").args(["-S", "-c", "import json, decimal"]).status().unwrap();
    assert!(status.success());
}

fn python_lab(settings: Settings) -> Lab {
    let closure = python_closure();
    assert!(closure.files().len() > 20, "{}", closure.files().len());
    Lab::new(Image::build(&closure, Path::new(DEFAULT_BASE), Vec::new()).unwrap(), settings).unwrap()
}

/// What the device delivers for one launch of Python, and whether it started cold.
fn cold_python(lab: &Lab) -> (Coldness, Bytes) {
    lab.prepare_cold().unwrap();
    inside_lab(lab, || {
        let coldness = lab.verify_cold().unwrap();
        let before = lab.io().unwrap();
        run_python();
        (coldness, (lab.io().unwrap() - before).bytes)
    })
}

#[test]
fn a_program_reads_from_the_device_when_cold_and_exactly_nothing_when_it_runs_again() {
    needs_root!();
    let lab = python_lab(Settings::default());
    lab.prepare_cold().unwrap();
    inside_lab(&lab, || {
        assert_eq!(lab.verify_cold().unwrap(), Coldness::Cold);
        let start = lab.io().unwrap();
        run_python();
        let cold = lab.io().unwrap();
        run_python();
        let warm = lab.io().unwrap();
        assert!((cold - start).bytes > Bytes(1_000_000), "{:?}", cold - start);
        assert_eq!((warm - cold).bytes, Bytes(0));
        // Under an overlay a file has the image's inode number, by which page events name it.
        let program = fs::canonicalize("/usr/bin/python3").unwrap();
        let key = lab.file_key(&program).unwrap();
        assert_eq!(fs::metadata(&program).unwrap().ino(), key.ino);
        assert_eq!(lab.host_path(key), Some(program.as_path()));
        // After a launch the same evidence says warm.
        match lab.verify_cold().unwrap() {
            Coldness::Lukewarm { reason: LukewarmReason::FilePages { .. }, pages } => assert!(pages > Pages(200)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn without_readahead_ten_cold_launches_read_exactly_the_same_bytes() {
    needs_root!();
    let lab = python_lab(Settings { read_ahead_kb: 0, ..Settings::default() });
    let launches: Vec<_> = (0..10).map(|_| cold_python(&lab)).collect();
    assert!(launches.iter().all(|(coldness, _)| coldness.is_cold()), "{launches:?}");
    let bytes: Vec<u64> = launches.iter().map(|(_, bytes)| bytes.0).collect();
    assert!(bytes.iter().all(|one| *one == bytes[0] && *one > 1_000_000), "{bytes:?}");
}

#[test]
fn an_image_in_memory_gives_a_cold_launch_the_same_bytes_as_the_disk_and_is_forgotten_after() {
    needs_root!();
    let mut lab = python_lab(Settings { read_ahead_kb: 0, ..Settings::default() });
    let from_disk = cold_python(&lab);
    lab.set_settings(Settings::page_by_page()).unwrap();
    assert!(!lab.device().direct_io() && lab.options_in_force().iter().any(|said| said.starts_with("from memory")));
    let in_memory = || device::cached_pages(lab.image().file()).unwrap();
    for _ in 0..3 {
        let (coldness, bytes) = cold_python(&lab);
        assert!(coldness.is_cold(), "{coldness:?}");
        assert_eq!(bytes, from_disk.1);
        assert!(in_memory() > Pages(200), "{:?}", in_memory());
    }
    lab.set_settings(Settings::default()).unwrap();
    assert_eq!(device::cached_pages(lab.image().file()).unwrap(), Pages(0));
    assert!(lab.device().direct_io() && cold_python(&lab).0.is_cold());
}

#[test]
fn a_mount_that_someone_else_keeps_alive_is_lukewarm_and_its_holder_is_named() {
    needs_root!();
    let home = Home::new();
    let file = home.file("data", 1 << 20);
    let lab = home.lab_of(std::slice::from_ref(&file));
    lab.prepare_cold().unwrap();
    inside_lab(&lab, || {
        let mut other = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        assert_eq!(fs::read(&file).unwrap().len(), 1 << 20);
        lab.prepare_cold_within(Duration::from_millis(50)).unwrap();
        let coldness = lab.verify_cold().unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        let Coldness::Lukewarm { reason: LukewarmReason::StillMounted { holders }, pages } = coldness else {
            panic!("{coldness:?}")
        };
        assert_eq!(pages, Pages(256));
        assert!(holders.iter().any(|holder| holder.pid == other.id() && holder.name == "sleep"), "{holders:?}");
    });
    // Once nobody holds it any more, the next launch is cold.
    lab.prepare_cold().unwrap();
    assert!(inside_lab(&lab, || lab.verify_cold().unwrap()).is_cold());
}

#[test]
fn one_page_read_through_a_mount_that_stays_alive_makes_the_launch_lukewarm() {
    needs_root!();
    let home = Home::new();
    let file = home.file("data", 1 << 20);
    let image = Image::build(&Closure::from_paths([&file]), Path::new(DEFAULT_BASE), Vec::new()).unwrap();
    let lab = Lab::new(image, Settings { read_ahead_kb: 0, ..Settings::default() }).unwrap();
    lab.prepare_cold().unwrap();
    inside_lab(&lab, || {
        assert!(lab.verify_cold().unwrap().is_cold());
        let mut byte = [0];
        fs::File::open(&file).unwrap().read_exact(&mut byte).unwrap();
        let expected = LukewarmReason::FilePages { read: Bytes(4096) };
        assert_eq!(lab.verify_cold().unwrap(), Coldness::Lukewarm { reason: expected, pages: Pages(1) });
    });
}

#[test]
fn directories_listed_before_the_launch_make_it_lukewarm_though_no_file_was_read() {
    needs_root!();
    let home = Home::new();
    // Enough inodes for more blocks of the inode table than one readahead loads, and none of them bound by itself.
    let extra = (0..4000)
        .map(|number| ExtraFile { path_in_image: number.to_string().into(), size: Bytes(1), seed: 1 })
        .collect();
    let closure = Closure::from_paths([home.file("data", 10)]);
    let image = Image::build(&closure, Path::new(DEFAULT_BASE), extra).unwrap();
    let lab = Lab::new(image, Settings::default()).unwrap();
    let mount_point = lab.image().directory().mount_point();
    lab.prepare_cold().unwrap();
    in_private_namespace(|| {
        let mut mounted = MountedHere::default();
        mounted.step(&lab.mounts()[0])?;
        let listed = fs::read_dir(crate::fill::inside(&mount_point, Path::new(crate::image::EXTRA_DIRECTORY))).unwrap();
        assert_eq!(listed.filter(|entry| entry.as_ref().unwrap().metadata().unwrap().is_file()).count(), 4000);
        let coldness = lab.verify_cold()?;
        assert!(matches!(coldness, Coldness::Lukewarm { reason: LukewarmReason::Metadata, .. }), "{coldness:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_lab_kept_mounted_makes_the_next_launch_read_nothing_and_letting_go_makes_it_cold_again() {
    needs_root!();
    let lab = python_lab(Settings::default());
    let kept = lab.keep_mounted().unwrap();
    let read_by_a_launch = || {
        inside_lab(&lab, || {
            let before = lab.io().unwrap();
            run_python();
            (lab.io().unwrap() - before).bytes
        })
    };
    assert!(read_by_a_launch() > Bytes(1_000_000));
    assert_eq!(read_by_a_launch(), Bytes(0));
    lab.prepare_cold_within(Duration::from_millis(20)).unwrap();
    let coldness = inside_lab(&lab, || lab.verify_cold().unwrap());
    assert!(matches!(coldness, Coldness::Lukewarm { reason: LukewarmReason::StillMounted { .. }, .. }), "{coldness:?}");
    drop(kept);
    assert!(cold_python(&lab).0.is_cold());
}

#[test]
fn pages_that_are_known_are_read_before_a_launch_and_no_others() {
    needs_root!();
    let home = Home::new();
    let (file, other) = (home.file("data", 100 * 4096), home.file("other", 100 * 4096));
    let lab = home.lab_of(&[file.clone(), other.clone()]);
    let key = |path: &Path| lab.file_key(&fs::canonicalize(path).unwrap()).unwrap();
    let run = |file, first, pages| PageRun { file, first: Pages(first), pages: Pages(pages) };
    lab.prepare_cold().unwrap();
    let kept = lab.keep_mounted().unwrap();
    let runs = PageRun::joined(vec![
        run(key(&file), 0, 8),
        // Past the end, in a file of another device, and in none.
        run(key(&other), 90, u64::MAX / 2),
        run(key(&other), u64::MAX - 1, 1),
        run(FileKey { dev: 0, ..key(&other) }, 0, 90),
        run(FileKey { ino: u64::MAX, ..key(&other) }, 0, 1),
    ]);
    lab.read_into_memory(&kept, &runs, || true).unwrap();
    assert_eq!(lab.cached_file_pages().unwrap(), Pages(0), "it was to stop");
    assert_eq!(lab.in_memory(&kept).unwrap(), []);
    lab.read_into_memory(&kept, &runs, || false).unwrap();
    assert_eq!(lab.cached_file_pages().unwrap(), Pages(8 + 10));
    let there = vec![run(key(&file), 0, 8), run(key(&other), 90, 10)];
    assert_eq!(lab.in_memory(&kept).unwrap(), PageRun::joined(there));
}

#[test]
fn asking_without_preparation_or_without_mounts_is_an_error_and_no_verdict() {
    needs_root!();
    let home = Home::new();
    let lab = home.lab_of(&[home.file("data", 10)]);
    assert!(matches!(lab.verify_cold(), Err(LabError::NotPrepared)));
    lab.prepare_cold().unwrap();
    assert!(matches!(lab.verify_cold(), Err(LabError::NotMounted { .. })));
}

#[test]
fn a_throttled_launch_takes_as_long_as_its_limits_say() {
    needs_root!();
    let home = Home::new();
    let file = home.file("data", 8 << 20);
    let limits = Throttle { iops: 400, bytes_per_second: 8_000_000 };
    let mut lab = home.lab_of(std::slice::from_ref(&file));
    let read_it = |lab: &Lab| {
        lab.prepare_cold().unwrap();
        inside_lab(lab, || {
            let procs = lab.cgroups();
            let mut reader = Command::new("/bin/sh");
            let join = procs.iter().map(|path| format!("echo $$ > {} && ", path.display())).collect::<String>();
            let start = Instant::now();
            let status = reader.args(["-c", &format!("{join} cat {} > /dev/null", file.display())]).status().unwrap();
            assert!(status.success());
            start.elapsed().as_secs_f64()
        })
    };
    // What others do with the disk only takes time.
    let free = (0..3).map(|_| read_it(&lab)).fold(f64::INFINITY, f64::min);
    assert!(lab.cgroups().is_empty());
    lab.set_settings(Settings { throttle: Some(limits), ..Settings::default() }).unwrap();
    // 8.4 MB at 8 MB/s: 1.05 s.
    let by_bytes = read_it(&lab);
    assert!(by_bytes > 0.7 && by_bytes > 2.0 * free, "{by_bytes} s against {free} s");
    // 2048 single pages at 400/s: 5.1 s.
    lab.set_settings(Settings { read_ahead_kb: 0, throttle: Some(limits), from_memory: false }).unwrap();
    let by_requests = read_it(&lab);
    assert!(by_requests > 3.0 && by_requests > 2.0 * by_bytes, "{by_requests} s against {by_bytes} s");
    let group = lab.cgroups()[0].parent().unwrap().to_path_buf();
    assert!(group.exists());
    drop(lab);
    assert!(!group.exists());
}

#[test]
fn what_waits_for_a_throttled_device_goes_on_when_the_throttle_is_lifted_and_the_next_launch_is_throttled() {
    needs_root!();
    let home = Home::new();
    let file = home.file("data", 1 << 20);
    // A page in 100 s: nothing ends by itself.
    let limits = Throttle { iops: 0, bytes_per_second: 40 };
    let mut lab = home.lab_of(std::slice::from_ref(&file));
    lab.set_settings(Settings { read_ahead_kb: 0, throttle: Some(limits), from_memory: false }).unwrap();
    lab.prepare_cold().unwrap();
    let group = lab.cgroups()[0].parent().unwrap().to_path_buf();
    let rules = || -> String {
        let files = ["io.max", "blkio.throttle.read_bps_device"];
        files.iter().filter_map(|name| std::fs::read_to_string(group.join(name)).ok()).collect()
    };
    assert!(rules().contains("40"), "{}", rules());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            inside_lab(&lab, || {
                let script =
                    format!("echo $$ > {}; cat {} > /dev/null", group.join("cgroup.procs").display(), file.display());
                Command::new("/bin/sh").args(["-c", &script]).status().unwrap().success()
            })
        });
        // Long after it would have read a megabyte without a limit.
        std::thread::sleep(Duration::from_millis(500));
        assert!(!reader.is_finished());
        lab.lift_throttle().unwrap();
        let lifted = Instant::now();
        assert!(reader.join().unwrap() && lifted.elapsed() < Duration::from_secs(30));
    });
    assert!(!rules().contains("40"), "{}", rules());
    lab.prepare_cold().unwrap();
    assert!(rules().contains("40"), "{}", rules());
}

#[test]
fn extra_files_are_seen_in_the_launch_by_every_user_and_not_on_the_host() {
    needs_root!();
    let home = Home::new();
    let extra = ExtraFile { path_in_image: "sham/bytes".into(), size: Bytes(100_000), seed: 3 };
    let mut content = Vec::new();
    extra.write(&mut content).unwrap();
    let closure = Closure::from_paths([home.file("data", 10)]);
    let lab =
        Lab::new(Image::build(&closure, Path::new(DEFAULT_BASE), vec![extra]).unwrap(), Settings::default()).unwrap();
    let path = lab.extra_path(Path::new("sham/bytes"));
    assert!(!path.exists());
    lab.prepare_cold().unwrap();
    let as_nobody = inside_lab(&lab, || {
        use std::os::unix::process::CommandExt;
        Command::new("/bin/cat").arg(&path).uid(65534).gid(65534).output().unwrap()
    });
    assert!(as_nobody.status.success());
    assert!(as_nobody.stdout == content);
}

#[test]
fn a_mount_below_an_overlaid_tree_stays_visible_in_the_launch() {
    needs_root!();
    let tree = READ_MOSTLY.iter().map(Path::new).find(|tree| fs::canonicalize(tree).is_ok_and(|real| real == **tree));
    let (tree, home) = (tree.unwrap(), Home::new());
    let below = tree.join("share");
    let seen = home.file("seen", 5);
    // The host's mounts must not change: the lab is made, and the launch run, on a thread with a mount of its own.
    in_private_namespace(|| {
        let mut mounted = MountedHere::default();
        let bind = |from: &Path, to: &Path| slowpath_launch::MountStep::Bind {
            from: from.into(),
            to: to.into(),
            recursive: false,
        };
        mounted.step(&bind(home.0.path(), &below))?;
        let program = fs::canonicalize("/usr/bin/cat").unwrap();
        let image = Image::build(
            &Closure::from_paths([program.clone(), below.join("seen")]),
            Path::new(DEFAULT_BASE),
            Vec::new(),
        )?;
        let lab = Lab::new(image, Settings::default())?;
        assert_eq!(lab.overlay_refused(), None);
        assert!(lab.options_in_force().iter().any(|line| line.starts_with("bind: ")), "{:?}", lab.options_in_force());
        lab.prepare_cold()?;
        for step in &lab.mounts() {
            mounted.step(step)?;
        }
        assert!(lab.verify_cold()?.is_cold());
        assert_eq!(fs::read(below.join("seen")).unwrap(), fs::read(&seen).unwrap());
        assert_eq!(fs::read_dir(&below).unwrap().count(), 1);
        // The file of the closure below the submount comes from the lab.
        let dev = fs::metadata(below.join("seen")).unwrap().dev();
        assert_eq!(crate::closure::kernel_device(dev), lab.device().dev());
        drop(mounted);
        Ok(())
    })
    .unwrap();
}
