//! Which file denies a user what a finding says was denied, and the smallest change that would let it in: what the fix `grant_read` shows
//! and what a trial of it gives to its launches. Beside that, where a trial regenerates artifacts ([`crate::artifact_directories`]).
//!
//! Looked up on this machine, as it is now, with the rights of the caller: root sees what lies below directories that the user may not
//! enter. Nothing is changed.

use crate::artifact_directories::directories;
use crate::file_trial::{Asked, MOST_FILES, Parties, hides_others, refusal};
use crate::treated_file::{not_triable, treated};
use slowpath_analysis::Finding;
use slowpath_artifacts::access::{
    self, Access, Change, Changed, Component, Decision, LookupEnd, Step, changed, decide, smallest_change,
};
use slowpath_artifacts::families::{are_of_one_family, owns_directory};
use slowpath_artifacts::gather::Machine;
use slowpath_fix::grant_read::{Repair, Repairs, name_changes};
use slowpath_fix::regenerate_artifact::name_directories;
use slowpath_fix::{NotTriable, Proposal, TreatedFile};
use slowpath_launch::{Identity, MOST_COPIED_BYTES};
use slowpath_process::MountPoint;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Names that are looked at beside an artifact, at most.
const MOST_BESIDE: usize = 4096;

/// The proposals, with the changes of those that change permissions, and what a trial of them is. `launched` is the user of a trial's
/// launches, where there are any.
///
/// # Errors
/// The caller cannot be looked up, or the user asked to stop. Where the process that looks fails, the proposals stay as they are: they
/// say how to find out.
pub fn with_changes(
    proposals: Vec<Proposal>,
    findings: &[Finding],
    launched: Option<u32>,
) -> Result<Vec<Proposal>, Failure> {
    // The user database is asked here: who looks at the files may not.
    let uids = findings.iter().filter_map(|finding| u32::try_from(finding.subject.get("uid")?.as_u64()?).ok());
    let users: BTreeMap<u32, access::Identity> = uids.filter_map(|uid| Some((uid, of_user(uid)?))).collect();
    if users.is_empty() {
        return Ok(proposals);
    }
    let caller = Identity::of_caller().map_err(failed(Kind::Machine))?;
    let invoker = invoker()?.uid;
    let changed = as_user(&caller, &Work::reading("looking who denies"), || {
        let mut changed = proposals.clone();
        let (Ok(machine), Ok(mounts)) = (Machine::read(), MountPoint::all()) else { return Ok(changed) };
        name_changes(&mut changed, findings, |paths, uid| {
            let parties = Parties { invoker, target: uid };
            let look = Look { machine: &machine, mounts: &mounts, identity: users.get(&uid)?, parties };
            let mut found = look.repairs(paths);
            if caller.uid != 0 && found.trial.is_ok() {
                found.trial = Err(needs_root());
            }
            // Every process of a launch would see the file, and not only the one that was denied it.
            if let Some(launched) = launched.filter(|launched| ![0, uid].contains(launched)) {
                let reason =
                    format!("user {uid} is denied, and user {launched}, whose launches these are, would read it");
                found.trial = Err(not_triable(reason, "diagnose with `--user` what runs as that user"));
            }
            Some(found)
        });
        name_directories(&mut changed, findings, |paths, uid| {
            let found = directories(&machine, &mounts, users.get(&uid)?, paths)?;
            Some(if caller.uid == 0 { found } else { Err(needs_root()) })
        });
        Ok(changed)
    });
    changed.or_else(|failure| if failure.is_interruption() { Err(failure) } else { Ok(proposals) })
}

/// What a user is to the kernel after a login.
fn of_user(uid: u32) -> Option<access::Identity> {
    let (user, _) = Identity::known_as(&uid.to_string()).ok()?;
    Some(access::Identity::new(user.uid, user.gid, user.groups))
}

fn needs_root() -> NotTriable {
    not_triable("mounts of a launch's own need root", "run it with sudo")
}

/// The name in a directory that leads to a file below it.
fn next_name<'a>(directory: &Path, file: &'a Path) -> Option<&'a Path> {
    file.strip_prefix(directory).ok()?.iter().next().map(Path::new)
}

/// Looks for one user.
struct Look<'a> {
    machine: &'a Machine,
    mounts: &'a [MountPoint],
    identity: &'a access::Identity,
    parties: Parties,
}

/// An artifact that is denied.
struct Denied {
    /// Without symbolic links.
    artifact: PathBuf,
    file: Component,
    /// That lead to it.
    directories: Vec<Component>,
    repair: Repair,
    changed: Vec<Changed>,
}

impl Look<'_> {
    fn repairs(&self, paths: &BTreeSet<&str>) -> Repairs {
        let mut denied: Vec<Denied> = paths.iter().filter_map(|path| self.denied(Path::new(path))).collect();
        denied.extend(self.beside(&denied));
        let repairs = denied.iter().map(|one| one.repair.clone()).collect();
        Repairs { repairs, trial: self.trial(&denied) }
    }

    /// `None` where the user is not denied now, or it cannot be said who denies.
    fn denied(&self, path: &Path) -> Option<Denied> {
        let found = self.machine.look_up(path).ok()?;
        let lookup = found.lookup;
        let Decision::Denied(denial) = decide(self.identity, &lookup, Access::Read) else { return None };
        let changes = smallest_change(self.identity, &lookup, Access::Read)?;
        let LookupEnd::File(file) = &lookup.end else { return None };
        let searched = lookup.steps.iter().filter_map(|step| match step {
            Step::Search(directory) => Some(directory),
            Step::Follow { .. } => None,
        });
        Some(Denied {
            artifact: file.path.clone(),
            directories: searched.filter(|one| file.path.starts_with(&one.path)).cloned().collect(),
            file: file.clone(),
            repair: Repair {
                path: denial.path.to_string_lossy().into_owned(),
                rule: denial.rule.words(denial.access),
                commands: changes.iter().map(Change::command).collect::<Vec<_>>().join(" && "),
            },
            changed: changed(&lookup, &changes),
        })
    }

    /// Artifacts of the same family beside these that are denied as well: a finding lists the most costly only. What a directory that holds
    /// artifacts alone denies is opened with it.
    fn beside(&self, denied: &[Denied]) -> Vec<Denied> {
        let denies = |one: &&Denied| {
            let is_in_family = one.artifact.parent().is_some_and(owns_directory);
            !is_in_family || one.changed.iter().any(|file| file.before.path == one.artifact)
        };
        let known: BTreeSet<&Path> = denied.iter().map(|one| one.artifact.as_path()).collect();
        let mut beside = BTreeSet::new();
        for one in denied.iter().filter(denies) {
            let paths = one.artifact.parent().map(|directory| self.names(directory)).unwrap_or_default();
            let is_like = |path: &PathBuf| !known.contains(path.as_path()) && are_of_one_family(path, &one.artifact);
            beside.extend(paths.into_iter().filter(is_like));
        }
        beside.iter().filter_map(|path| self.denied(path)).collect()
    }

    /// Paths in a directory, some thousands at most; none where it cannot be listed.
    fn names(&self, directory: &Path) -> Vec<PathBuf> {
        let Some((_, open)) = self.machine.look_up(directory).ok().and_then(|found| found.file) else {
            return Vec::new();
        };
        let Ok(entries) = fs::read_dir(format!("/proc/self/fd/{}", open.as_raw_fd())) else { return Vec::new() };
        entries.flatten().take(MOST_BESIDE).map(|entry| directory.join(entry.file_name())).collect()
    }

    /// What the launches of a trial see, or why there is none.
    fn trial(&self, denied: &[Denied]) -> Result<Vec<TreatedFile>, NotTriable> {
        for one in denied {
            let asked = Asked { file: &one.file, directories: &one.directories, changed: &one.changed };
            refusal(self.parties, self.identity, asked).map_or(Ok(()), Err)?;
        }
        let (mut files, mut bytes) = (Vec::new(), 0_u64);
        let mut seen = BTreeSet::new();
        for one in denied {
            let way = self.way(one)?;
            for file in one.changed.iter().chain(&way) {
                let (mut treated, size) = treated(self.machine, self.mounts, file)?;
                if way.contains(file)
                    && let Some(next) = next_name(&file.before.path, &one.artifact)
                {
                    treated.only.insert(next.as_os_str().into());
                }
                if seen.insert(file.before.path.clone()) {
                    bytes = bytes.saturating_add(size);
                }
                files.push(treated);
            }
        }
        if bytes > MOST_COPIED_BYTES {
            let reason = format!("the files have {} MiB, and a launch would have a copy of them", bytes >> 20);
            return Err(not_triable(reason, "make the change, and compare with `slowpath launch --user`"));
        }
        let files = TreatedFile::merged([files.as_slice()]);
        if files.len() > MOST_FILES {
            let reason = format!("{} files deny, each of which is a mount; {MOST_FILES} are tried", files.len());
            return Err(not_triable(reason, "make the change, and compare with `slowpath launch --user`"));
        }
        Ok(files)
    }

    /// The directories from the first that is opened to the artifact, as far as others' files lie there: each shows no more than the way.
    fn way(&self, denied: &Denied) -> Result<Vec<Changed>, NotTriable> {
        let opened = denied.changed.iter().filter(|file| hides_others(self.parties, &file.before));
        let mut way: Vec<Changed> = opened.cloned().collect();
        let Some(first) = way.first().map(|file| file.before.path.clone()) else { return Ok(way) };
        if let Some(aside) = way.iter().find(|file| !denied.artifact.starts_with(&file.before.path)) {
            let reason =
                format!("a symbolic link leads through {}, and a trial would open it", aside.before.path.display());
            return Err(not_triable(reason, "make the change, and compare with `slowpath launch --user`"));
        }
        let below: Vec<&Path> = denied.artifact.ancestors().skip(1).take_while(|path| *path != first).collect();
        for path in below.into_iter().rev() {
            if owns_directory(path) {
                break;
            }
            if way.iter().all(|file| file.before.path != path)
                && !denied.changed.iter().any(|file| file.before.path == path)
            {
                let found = self.machine.look_up(path).ok().map(|found| found.lookup.end);
                let Some(LookupEnd::File(as_is)) = found else {
                    return Err(not_triable(format!("{} cannot be looked at", path.display()), "diagnose again"));
                };
                way.push(Changed { before: as_is.clone(), after: as_is });
            }
        }
        Ok(way)
    }
}
