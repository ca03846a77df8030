//! A lab: an image on a loop device, the mounts that bring it over the host's paths, and cold launches in it.

use crate::closure::identity_of;
use crate::coldness::{Coldness, Evidence, Holder, MountCost, PAST_LAB_AT_MOST};
use crate::device::{self, DeviceIo};
use crate::error::{LabError, failed};
use crate::fill::inside;
use crate::image::{EXTRA_DIRECTORY, Image};
use crate::loop_device::LoopDevice;
use crate::mount_plan::{Ingredients, MountPlan, READ_MOSTLY, Submount, plan};
use crate::private_mounts::{MountedHere, in_private_namespace};
use crate::throttle::{Throttle, ThrottleGroup};
use rustix::fs::{AtFlags, FileType, OFlags, StatxFlags, statx};
use serde::{Deserialize, Serialize};
use slowpath_launch::{LeftOut, MountStep};
use slowpath_process::{MountTable, trusted_directory};
use slowpath_tables::{Bytes, FileKey, Pages};
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long [`Lab::prepare_cold`] waits for the previous launch's file system to go.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Conditions of the device, the same for all launches until they are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Readahead window of the device in KiB; 0 makes every page be asked for by itself.
    pub read_ahead_kb: u64,
    /// Limits of the read rate, if any.
    pub throttle: Option<Throttle>,
    /// Whether the device reads the image through the host's page cache. A launch asks it for the same pages, and does not wait for a
    /// disk where a launch before it has read them: for launches of which counts what they read, not how long they take.
    pub from_memory: bool,
}

impl Default for Settings {
    /// The kernel's default readahead (`VM_READAHEAD_PAGES`, 128 KiB) and no throttle.
    fn default() -> Self {
        Self { read_ahead_kb: 128, throttle: None, from_memory: false }
    }
}

impl Settings {
    /// Those that show which pages a launch needs: each is asked for by itself, as fast as can be.
    pub fn page_by_page() -> Self {
        Self { read_ahead_kb: 0, throttle: None, from_memory: true }
    }
}

/// What [`Lab::prepare_cold`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prepared {
    fresh: bool,
    holders: Vec<Holder>,
    io: DeviceIo,
}

/// Private cold starts. Everything of it is gone after drop, also when the process is killed, but for a directory of
/// empty mount points and a cgroup, which [`crate::leftovers::clean`] finds.
#[derive(Debug)]
pub struct Lab {
    // Dropped in this order: the cgroup's rules name the device, the device's image is in the directory.
    throttle: Option<ThrottleGroup>,
    device: LoopDevice,
    image: Image,
    settings: Settings,
    plan: MountPlan,
    overlay_refused: Option<String>,
    mounting: MountCost,
    /// Inode number in the image to index of its first path.
    by_inode: HashMap<u64, usize>,
    prepared: Mutex<Option<Prepared>>,
}

impl Lab {
    /// Attaches the image and calibrates what mounting it reads.
    ///
    /// # Errors
    /// No loop device, no privilege to mount, or no block controller for a throttle.
    pub fn new(image: Image, settings: Settings) -> Result<Self, LabError> {
        let device = LoopDevice::attach_read_only(image.file())?;
        // Reversed, so that of hard links the first path stays.
        let by_inode = image.files().iter().enumerate().rev().map(|(index, file)| (file.image_inode, index)).collect();
        let mut lab = Self {
            throttle: None,
            device,
            image,
            settings,
            plan: MountPlan::default(),
            overlay_refused: None,
            mounting: MountCost::default(),
            by_inode,
            prepared: Mutex::new(None),
        };
        lab.set_settings(settings)?;
        lab.plan = lab.plan_with(existing_trees())?;
        match lab.calibrate() {
            Ok(cost) => lab.mounting = cost,
            // A host tree whose file system cannot be a layer: bind every file instead, and say so.
            Err(error) if !lab.plan.overlaid.is_empty() => {
                lab.overlay_refused = Some(error.to_string());
                lab.plan = lab.plan_with(Vec::new())?;
                lab.mounting = lab.calibrate()?;
            }
            Err(error) => return Err(error),
        }
        Ok(lab)
    }

    /// Changes the conditions for the launches to come.
    ///
    /// # Errors
    /// The throttle's cgroup cannot be made, or the device does not change how it reads. The settings are then as before.
    pub fn set_settings(&mut self, settings: Settings) -> Result<(), LabError> {
        let dev = FileKey { dev: self.device.dev(), ino: 0 }.device();
        let is_changed =
            settings.throttle != self.settings.throttle || (self.throttle.is_none() && settings.throttle.is_some());
        let throttle = settings.throttle.filter(|_| is_changed);
        let throttle = throttle.map(|throttle| ThrottleGroup::create(dev, throttle)).transpose()?;
        self.device.set_direct_io(!settings.from_memory)?;
        if is_changed {
            self.throttle = throttle;
        }
        if self.settings.from_memory && !settings.from_memory {
            // Tens of megabytes that nobody reads any more. If they stay, no launch gets them: the device reads past them, or drops them.
            let _ = device::forget_pages(self.image.file());
        }
        self.settings = settings;
        Ok(())
    }

    /// The conditions.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The image.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The device.
    pub fn device(&self) -> &LoopDevice {
        &self.device
    }

    /// Why the host's trees could not be overlaid, if so; then all files are bound one by one.
    pub fn overlay_refused(&self) -> Option<&str> {
        self.overlay_refused.as_deref()
    }

    pub(crate) fn plan(&self) -> &MountPlan {
        &self.plan
    }

    /// The mounts of a launch, for [`slowpath_launch::LaunchSpec::mounts`].
    pub fn mounts(&self) -> Vec<MountStep> {
        self.plan.steps.clone()
    }

    /// `cgroup.procs` files for [`slowpath_launch::LaunchSpec::cgroups`]; empty without a throttle.
    pub fn cgroups(&self) -> Vec<PathBuf> {
        self.throttle.iter().map(ThrottleGroup::procs).collect()
    }

    /// Takes the throttle away until [`Self::impose_throttle`]: a launch that is to be ended must not wait minutes for what it
    /// reads.
    ///
    /// # Errors
    /// The limits cannot be written.
    pub fn lift_throttle(&self) -> Result<(), LabError> {
        self.throttle.as_ref().map_or(Ok(()), ThrottleGroup::lift)
    }

    /// Puts the throttle in force, as [`Self::prepare_cold`] does.
    ///
    /// # Errors
    /// The limits cannot be written.
    pub fn impose_throttle(&self) -> Result<(), LabError> {
        self.throttle.as_ref().map_or(Ok(()), ThrottleGroup::impose)
    }

    /// Where a launch sees an extra file; readable for every user there, absent on the host.
    pub fn extra_path(&self, path_in_image: &Path) -> PathBuf {
        self.image.directory().extra().join(path_in_image)
    }

    /// The canonical host path of a file of the lab, from the device and inode that events of a launch carry.
    pub fn host_path(&self, key: FileKey) -> Option<&Path> {
        let index = (key.dev == self.device.dev()).then(|| self.by_inode.get(&key.ino)).flatten()?;
        Some(&self.image.files()[*index].path)
    }

    /// Device and inode that events of a launch carry for a host file; `None` when the lab does not have it.
    ///
    /// Needed to join mappings with pages: for a file under an overlay, `/proc/PID/maps` and mapping events carry the
    /// overlay's own device (and an inode number that is unique only within a layer), page-cache and block events those
    /// of the image. The path is the same host path in both.
    pub fn file_key(&self, host_path: &Path) -> Option<FileKey> {
        let files = self.image.files();
        let index = files.binary_search_by(|file| file.path.as_path().cmp(host_path)).ok()?;
        Some(FileKey { dev: self.device.dev(), ino: files[index].image_inode })
    }

    /// Makes the next launch cold: waits up to [`PATIENCE`] until the file system of the previous one is gone, empties
    /// the device's page cache and sets the readahead. If the file system does not go, this is no error: the launch
    /// may run, and [`Lab::verify_cold`] will call it lukewarm.
    ///
    /// # Errors
    /// The kernel refuses to flush or to set the readahead.
    pub fn prepare_cold(&self) -> Result<(), LabError> {
        self.prepare_cold_within(PATIENCE)
    }

    /// [`Lab::prepare_cold`] with another limit.
    ///
    /// # Errors
    /// As there.
    pub fn prepare_cold_within(&self, patience: Duration) -> Result<(), LabError> {
        let (name, path, end) = (self.device.name(), self.device.path(), Instant::now() + patience);
        // Short sleeps: sysfs sends no notification when a directory goes.
        let mut pause = Duration::from_micros(200);
        let mut fresh = false;
        while !fresh {
            if !device::superblock_alive(&name) {
                device::flush(self.device.file()).map_err(failed("drop the cached pages of", &path))?;
                let cached =
                    device::cached_pages(self.device.file()).map_err(failed("count the cached pages of", &path))?;
                // The dying superblock holds a few buffers for a moment longer than its name.
                fresh = cached == Pages(0) && !device::superblock_alive(&name);
            }
            if !fresh {
                if Instant::now() >= end {
                    break;
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
        }
        if self.must_be_cold_below() {
            device::forget_pages(self.image.file()).map_err(failed("drop the cached image of", &path))?;
        }
        device::set_read_ahead(&name, self.settings.read_ahead_kb)?;
        self.impose_throttle()?;
        let holders = if fresh { Vec::new() } else { self.holders() };
        *self.lock_prepared() = Some(Prepared { fresh, holders, io: device::io_of(&name)? });
        Ok(())
    }

    /// Whether the launch that was mounted after [`Lab::prepare_cold`] starts cold. To be called between its mounts
    /// and its exec, from anywhere; touches no file of the image unless the launch is lukewarm anyway.
    ///
    /// # Errors
    /// No preparation, no mount, or the kernel does not tell (`cachestat` needs Linux 6.5).
    pub fn verify_cold(&self) -> Result<Coldness, LabError> {
        let evidence = self.evidence()?;
        let Some(reason) = evidence.against() else { return Ok(Coldness::Cold) };
        let files = self.cached_file_pages()?;
        Ok(Coldness::Lukewarm { reason, pages: files + evidence.more_metadata() + evidence.below })
    }

    /// What [`Lab::verify_cold`] decides on.
    ///
    /// # Errors
    /// As there.
    pub fn evidence(&self) -> Result<Evidence, LabError> {
        let prepared = self.lock_prepared().clone().ok_or(LabError::NotPrepared)?;
        let name = self.device.name();
        if !device::superblock_alive(&name) {
            return Err(LabError::NotMounted { device: name });
        }
        let path = self.device.path();
        let count = |file: &File| device::cached_pages(file).map_err(failed("count the cached pages of", &path));
        // Metadata first: what is read between the two looks counts against the launch, not for it.
        let metadata = count(self.device.file())?;
        let delivered = (device::io_of(&name)? - prepared.io).bytes;
        let below = if self.must_be_cold_below() { count(self.image.file())? } else { Pages(0) };
        let Prepared { fresh, holders, .. } = prepared;
        Ok(Evidence { fresh, holders, delivered, metadata, below, mounting: self.mounting })
    }

    /// Counts, page by page, what is cached of every file of the image, through another mount of the superblock that
    /// is alive. **Loads inodes and directories**: never between preparation and a launch that is to be cold.
    ///
    /// # Errors
    /// The image cannot be mounted, or the kernel does not tell.
    pub fn cached_file_pages(&self) -> Result<Pages, LabError> {
        let root = self.image.directory().census();
        in_private_namespace(|| {
            let mut mounted = MountedHere::default();
            mounted.ext4(&self.device.path(), &root, true)?;
            let mut pages = Pages(0);
            for file in self.image.files() {
                let path = inside(&root, &file.path);
                let open = File::open(&path).map_err(failed("open", &path))?;
                pages += device::cached_pages(&open).map_err(failed("count the cached pages of", &path))?;
            }
            Ok(pages)
        })
    }

    /// What the device delivered since it was attached.
    ///
    /// # Errors
    /// sysfs cannot be read.
    pub fn io(&self) -> Result<DeviceIo, LabError> {
        device::io_of(&self.device.name())
    }

    /// What is against a launch that saw other files than the lab's at these places: more than 1 % of the image's bytes.
    pub fn against_left_out(&self, left_out: &[LeftOut]) -> Option<String> {
        let files = self.image.files();
        let size = |left_out: &LeftOut| {
            let index = files.binary_search_by(|file| file.path.cmp(&left_out.path)).ok()?;
            Some(files[index].size)
        };
        let missing: Bytes = left_out.iter().filter_map(size).sum();
        let first = left_out.first()?;
        let is_much = missing.0 as f64 > self.image.content().0 as f64 * PAST_LAB_AT_MOST;
        is_much.then(|| format!("{} files of the lab were left out: {first}", left_out.len()))
    }

    /// Processes in whose mount namespace the device is mounted, as far as `/proc` shows them.
    pub fn holders(&self) -> Vec<Holder> {
        let (major, minor) = FileKey { dev: self.device.dev(), ino: 0 }.device();
        let wanted = format!("{major}:{minor}");
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            // Any byte may stand in a mount point's name.
            fs::read(format!("/proc/{pid}/mountinfo")).is_ok_and(|text| {
                text.split(|byte| *byte == b'\n')
                    .any(|line| line.split(|byte| *byte == b' ').nth(2) == Some(wanted.as_bytes()))
            })
        })
        .map(|pid| {
            let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
            Holder { pid, name: String::from_utf8_lossy(&name).trim_end().to_owned() }
        })
        .collect()
    }

    /// Whether pages of the image can be in memory below the device, and must not be.
    fn must_be_cold_below(&self) -> bool {
        !self.device.direct_io() && !self.settings.from_memory
    }

    fn lock_prepared(&self) -> std::sync::MutexGuard<'_, Option<Prepared>> {
        // The value is replaced as a whole, so a panic elsewhere cannot have left half of it.
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan_with(&self, trees: Vec<PathBuf>) -> Result<MountPlan, LabError> {
        let directory = self.image.directory();
        let mut submounts = Vec::new();
        let mountinfo = Path::new("/proc/thread-self/mountinfo");
        let mut table = MountTable::read().map_err(failed("read", mountinfo))?;
        let mut points: Vec<PathBuf> = table.points().iter().map(|mount| mount.at.clone()).collect();
        points.retain(|at| trees.iter().any(|tree| at.starts_with(tree) && at != tree));
        points.sort();
        points.dedup();
        for (number, at) in points.into_iter().enumerate() {
            // Another mount hides it, or it is served by somebody who could keep us waiting: the launch lacks it.
            let Some(for_directory) = is_directory(&mut table, &at) else { continue };
            let stash = directory.stash(number, for_directory)?;
            submounts.push(Submount { at, stash });
        }
        Ok(plan(&Ingredients {
            files: self.image.files().iter().map(|file| (file.path.as_path(), identity_of(file.host))).collect(),
            trees,
            submounts,
            device: self.device.path(),
            mount_point: directory.mount_point(),
            extra: self.image.has_extra().then(|| (PathBuf::from(EXTRA_DIRECTORY), directory.extra().to_owned())),
        }))
    }

    /// What mounting reads: until two measurements in a row agree, since a newly attached device may be probed by
    /// others (udev), which must not loosen the rule; then, or after some attempts, the least of all.
    fn calibrate(&self) -> Result<MountCost, LabError> {
        let mut least = self.mount_once()?;
        for _ in 0..4 {
            let cost = self.mount_once()?;
            let agree = cost == least;
            least = MountCost { bytes: least.bytes.min(cost.bytes), metadata: least.metadata.min(cost.metadata) };
            if agree {
                break;
            }
        }
        Ok(least)
    }

    /// Mounts as a launch does, without one.
    fn mount_once(&self) -> Result<MountCost, LabError> {
        self.prepare_cold()?;
        let cost = in_private_namespace(|| {
            let mut mounted = MountedHere::default();
            for step in &self.plan.steps {
                mounted.step(step)?;
            }
            let evidence = self.evidence()?;
            Ok(MountCost { bytes: evidence.delivered, metadata: evidence.metadata })
        });
        *self.lock_prepared() = None;
        cost
    }
}

/// Trees of [`READ_MOSTLY`] that are directories themselves, not links to one, and that only root can change.
fn existing_trees() -> Vec<PathBuf> {
    READ_MOSTLY.iter().map(PathBuf::from).filter(|tree| trusted_directory(tree).is_ok()).collect()
}

/// Whether a mount's root is a directory; `None` when it is not to be had. Asks no server of a file system.
fn is_directory(table: &mut MountTable, at: &Path) -> Option<bool> {
    let root = table.open(at, OFlags::PATH | OFlags::NOFOLLOW).ok()?;
    let found = statx(&root, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    Some(FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory)
}
