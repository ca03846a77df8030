//! Warm launches with and without treatments: variables, files that they see otherwise, artifacts that are made for them beforehand,
//! modules that Python imports before it forks.
//!
//! Owns the arms, the sham of each kind, and that all environments are of one size: variables that a treatment adds are made up for by
//! padding elsewhere, so that no arm has another place of the stack than the others in its block. What treatments need before any launch is
//! made in `regenerated` and `python_preload`; which arms get ready, `warm_up` finds out. Treatments of the device are those of
//! cold launches.

use super::Tried;
use super::files::mounts;
use super::python_preload::{self, PythonPreloads};
use super::regenerated::{self, Regenerated};
use crate::benchmark::{Launched, Launches};
use crate::comparison::{Arm, ArmResult, Comparison, NextBlock, Role};
use crate::conditions::Conditions;
use crate::declared_arms::{DeclaredArm, SHAM_ENVIRONMENT, SHAM_FILES, SHAM_REGENERATED, UNTREATED};
use slowpath_fix::{TreatedFile, Treatment, sham_environment};
use slowpath_launch::MountNamespace;
use slowpath_session::Progress;
use slowpath_session::failure::Failure;
use slowpath_session::target::Target;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// An arm of warm launches, and what these are.
pub struct WarmArm {
    /// As a comparison knows it.
    pub arm: Arm,
    /// Place of what it tries in the list of that; `None` for what it is compared with.
    pub tried: Option<usize>,
    /// What is launched.
    target: Target,
    /// Bytes that its environment is smaller than the largest.
    padding: usize,
}

impl WarmArm {
    /// Whether its launches have mounts of their own.
    pub(super) fn has_mounts(&self) -> bool {
        self.target.has_mounts()
    }
}

/// A trial of treatments in warm launches.
pub struct WarmTrial {
    /// Its arms, the untreated launch first; none where nothing can be tried.
    pub arms: Vec<WarmArm>,
    /// Why launches cannot have what is tried, by its place in the list.
    pub failing: BTreeMap<usize, String>,
}

impl WarmTrial {
    /// The arms of what is tried, as far as a warm launch can have it. What treatments need beforehand is made: artifacts in mounts that
    /// nobody else sees, files in `directory`, which is the target's user's.
    ///
    /// # Errors
    /// Files cannot be written, or the user asked to stop.
    pub fn prepare(
        target: &Target,
        tried: &[Tried],
        directory: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, Failure> {
        let made = regenerated::regenerate(target, tried, progress)?;
        let imports = python_preload::write(target, tried, directory)?;
        let arms = arms(target, tried, &made, &imports);
        Ok(Self { arms, failing: reasons(made).chain(reasons(imports)).collect() })
    }

    /// Runs `most` blocks of all arms, or what `next(results, blocks done)` says.
    ///
    /// # Errors
    /// As [`Launches::compare`].
    pub fn compare(
        &self,
        conditions: &mut Conditions,
        most: usize,
        seed: u64,
        progress: &dyn Progress,
        next: impl FnMut(&[ArmResult], usize) -> NextBlock,
    ) -> Result<Comparison, Failure> {
        launches(&self.arms, conditions, seed).compare(most, progress, next)
    }
}

fn reasons<T>(all: BTreeMap<usize, Result<T, String>>) -> impl Iterator<Item = (usize, String)> {
    all.into_iter().filter_map(|(number, one)| Some((number, one.err()?)))
}

/// The launches of these arms.
pub(super) fn launches<'a>(arms: &'a [WarmArm], conditions: &'a mut Conditions, seed: u64) -> Launches<'a> {
    let one = |arm: &'a WarmArm| Launched { arm: arm.arm.clone(), target: &arm.target, padding: arm.padding };
    Launches::new(arms.iter().map(one).collect(), conditions, seed)
}

/// An arm before all environments have one size.
struct Unpadded {
    arm: Arm,
    tried: Option<usize>,
    state: State,
}

/// What the launches of an arm have.
struct State {
    /// Instead of what the target has under these names.
    variables: Vec<(OsString, OsString)>,
    /// The target as it sees files.
    target: Target,
}

impl Unpadded {
    fn beside(arm: &DeclaredArm, variables: Vec<(OsString, OsString)>, target: Target) -> Self {
        Self { arm: arm.arm(), tried: None, state: State { variables, target } }
    }
}

/// The arms, the untreated launch first; none where nothing can be tried. `made` is where artifacts were regenerated, `imports` what has
/// Python import modules, each by the place of its treatment.
pub(super) fn arms(target: &Target, tried: &[Tried], made: &Regenerated, imports: &PythonPreloads) -> Vec<WarmArm> {
    let treated: Vec<Unpadded> = tried
        .iter()
        .enumerate()
        .filter_map(|(number, one)| {
            let made = made.get(&number).and_then(|made| made.as_ref().ok());
            let import = imports.get(&number).and_then(|import| import.as_ref().ok());
            let (state, sham) = treated(target, &one.treatment, made, import)?;
            let sham = (one.arm.role == Role::Fix).then(|| sham.name.to_owned());
            Some(Unpadded { arm: Arm { sham, ..one.arm.clone() }, tried: Some(number), state })
        })
        .collect();
    if treated.is_empty() {
        return Vec::new();
    }
    let shams = shams(target, tried, &treated);
    let untreated = Unpadded::beside(&UNTREATED, Vec::new(), target.clone());
    padded(std::iter::once(untreated).chain(treated).chain(shams).collect())
}

/// Launches with a treatment, and the sham with which what gains like it gains nothing by it. `None` where a warm launch cannot have it, or
/// has nothing of it. `made` and `import` are what was made for it beforehand.
fn treated(
    target: &Target,
    treatment: &Treatment,
    made: Option<&MountNamespace>,
    import: Option<&(OsString, OsString)>,
) -> Option<(State, &'static DeclaredArm)> {
    let with = |variables| State { variables, target: target.clone() };
    let seeing = |target| State { variables: Vec::new(), target };
    match treatment {
        Treatment::Environment { variables } => {
            (!variables.is_empty()).then(|| (with(treatment.environment()), &SHAM_ENVIRONMENT))
        }
        Treatment::PythonPreload { .. } => Some((with(vec![import?.clone()]), &SHAM_ENVIRONMENT)),
        Treatment::Files { files } => {
            let mounts = mounts(files, |file| &file.after);
            (!files.is_empty()).then(|| (seeing(target.seeing(mounts)), &SHAM_FILES))
        }
        Treatment::Regeneration { directories, .. } => {
            Some((seeing(regenerated::seeing(target, directories, made?)), &SHAM_REGENERATED))
        }
        Treatment::None | Treatment::PreloadPlan { .. } | Treatment::Readahead { .. } | Treatment::Source { .. } => {
            None
        }
    }
}

/// A sham of each kind that the treated launches have.
fn shams(target: &Target, tried: &[Tried], treated: &[Unpadded]) -> Vec<Unpadded> {
    let is_needed = |sham: &DeclaredArm| treated.iter().any(|one| one.arm.sham.as_deref() == Some(sham.name));
    let mut shams = Vec::new();
    let variables = treated.iter().map(|one| one.state.variables.as_slice());
    if is_needed(&SHAM_ENVIRONMENT)
        && let Some(variable) = sham_environment::beside(&target.variables(), variables)
    {
        shams.push(Unpadded::beside(&SHAM_ENVIRONMENT, vec![variable], target.clone()));
    }
    if is_needed(&SHAM_FILES) {
        let files = TreatedFile::merged(tried.iter().map(|one| one.treatment.files()));
        let target = target.seeing(mounts(&files, |file| &file.before));
        shams.push(Unpadded::beside(&SHAM_FILES, Vec::new(), target));
    }
    if is_needed(&SHAM_REGENERATED) {
        let directories = TreatedFile::merged(tried.iter().map(|one| one.treatment.regenerated()));
        let target = regenerated::sham(target, &directories);
        shams.push(Unpadded::beside(&SHAM_REGENERATED, Vec::new(), target));
    }
    shams
}

/// Each with what its environment is smaller than the largest.
fn padded(arms: Vec<Unpadded>) -> Vec<WarmArm> {
    let mut padded: Vec<WarmArm> = Vec::new();
    for Unpadded { arm, tried, state } in arms {
        padded.push(WarmArm { arm, tried, target: state.target.with(&state.variables), padding: 0 });
    }
    let of = |arm: &WarmArm| size(&arm.target.variables());
    let largest = padded.iter().map(of).max().unwrap_or(0);
    for arm in &mut padded {
        arm.padding = largest - of(arm);
    }
    padded
}

/// Bytes that the kernel puts on the stack for an environment: `NAME=VALUE` with its end, and a pointer (execve(2)).
fn size(variables: &[(OsString, OsString)]) -> usize {
    variables.iter().map(|(name, value)| name.len() + value.len() + 2 + size_of::<usize>()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_fix::FilePermissions;
    use slowpath_launch::ReadyWhen;
    use slowpath_session::target::Invocation;
    use std::collections::BTreeSet;

    const TUNABLES: &str = "GLIBC_TUNABLES";

    fn tried(name: &str, treatment: Treatment) -> Tried {
        let title = format!("the fix {name}");
        Tried { arm: Arm { name: name.to_owned(), title, role: Role::Fix, sham: None }, treatment }
    }

    fn target(env: &[&str]) -> Target {
        let env = env.iter().map(OsString::from).collect();
        let arguments = Invocation { user: None, ready: ReadyWhen::Exit, timeout: None, env };
        Target::of(arguments, vec!["true".into()], None).unwrap()
    }

    /// The arms where nothing was made beforehand.
    fn plain(target: &Target, tried: &[Tried]) -> Vec<WarmArm> {
        arms(target, tried, &Regenerated::new(), &PythonPreloads::new())
    }

    fn seen(path: &str, before: u32, after: u32) -> TreatedFile {
        TreatedFile {
            path: path.into(),
            identity: (8, 1, 5),
            uid: 0,
            gid: 0,
            before: FilePermissions { mode: before, acl: None },
            after: FilePermissions { mode: after, acl: None },
            only: BTreeSet::new(),
        }
    }

    #[test]
    fn every_fix_that_can_be_tried_is_an_arm_between_the_untreated_launch_and_a_sham() {
        let all = [
            tried("first", Treatment::variable(TUNABLES, "glibc.malloc.mmap_threshold=4194304")),
            tried("source", Treatment::Source { place: "a.c".to_owned() }),
            tried("second", Treatment::variable("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")),
        ];
        let arms = plain(&target(&["GLIBC_TUNABLES=glibc.malloc.arena_max=1"]), &all);
        let described: Vec<_> = arms.iter().map(|arm| (arm.arm.name.as_str(), arm.arm.role, arm.tried)).collect();
        assert_eq!(
            described,
            [
                ("untreated", Role::Baseline, None),
                ("first", Role::Fix, Some(0)),
                ("second", Role::Fix, Some(2)),
                ("sham_environment", Role::Sham, None)
            ]
        );
        let of = |arm: usize, name: &str| {
            let variables = arms[arm].target.variables();
            let value = variables.iter().rfind(|(one, _)| one == name).map(|(_, value)| value);
            value.map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(of(0, TUNABLES).as_deref(), Some("glibc.malloc.arena_max=1"));
        assert_eq!(of(1, TUNABLES).as_deref(), Some("glibc.malloc.mmap_threshold=4194304"));
        assert!(of(2, "LD_PRELOAD").unwrap().ends_with("libjemalloc.so.2"));
        assert!(of(3, TUNABLES).unwrap().starts_with("glibc.malloc.arena_max=1:glibc.malloc.perturb=0"));
        let sizes: Vec<usize> = arms.iter().map(|arm| size(&arm.target.variables()) + arm.padding).collect();
        assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
        assert!(arms[0].padding > 0 && arms.iter().any(|arm| arm.padding == 0));
    }

    #[test]
    fn a_fix_of_files_has_a_sham_of_its_own_in_the_same_mounts() {
        let grants =
            |path: &str| tried("grant_read", Treatment::Files { files: vec![seen(path, 0o100_600, 0o100_604)] });
        let variables = tried("first", Treatment::variable(TUNABLES, "glibc.malloc.mmap_threshold=4194304"));
        let arms = plain(&target(&[]), &[grants("/a"), variables, grants("/b")]);
        let names: Vec<_> = arms.iter().map(|arm| (arm.arm.name.as_str(), arm.arm.sham.as_deref())).collect();
        let expected = [
            ("untreated", None),
            ("grant_read", Some("sham_files")),
            ("first", Some("sham_environment")),
            ("grant_read", Some("sham_files")),
            ("sham_environment", None),
            ("sham_files", None),
        ];
        assert_eq!(names, expected);
        let have_mounts: Vec<bool> = arms.iter().map(WarmArm::has_mounts).collect();
        assert_eq!(have_mounts, [false, true, false, true, false, true]);
        // Without a fix that sets variables there is no sham of these.
        let arms = plain(&target(&[]), &[grants("/a")]);
        let names: Vec<_> = arms.iter().map(|arm| arm.arm.name.as_str()).collect();
        assert_eq!(names, ["untreated", "grant_read", "sham_files"]);
    }

    #[test]
    fn modules_that_no_python_would_find_are_no_arm() {
        let preloads = |name: &str| tried(name, Treatment::PythonPreload { spawned: false, modules: Vec::new() });
        let found = ("PYTHONPATH".into(), "/d/python-preload-1".into());
        let imports = PythonPreloads::from([(0, Ok(found)), (1, Err("it cannot be tried".to_owned()))]);
        let all = [preloads("first"), preloads("second")];
        let arms = arms(&target(&[]), &all, &Regenerated::new(), &imports);
        let tried: Vec<_> = arms.iter().filter_map(|one| one.tried).collect();
        assert_eq!(tried, [0]);
        assert_eq!(arms[1].arm.sham.as_deref(), Some("sham_environment"));
    }

    #[test]
    fn artifacts_that_were_made_anew_are_an_arm_with_a_sham_of_its_own_and_those_that_were_not_are_none() {
        let regenerates = |path: &str| {
            let directories = vec![seen(path, 0o40755, 0o40755)];
            tried("regenerate_artifact", Treatment::Regeneration { directories, commands: Vec::new() })
        };
        let here = MountNamespace::of_process(std::process::id() as i32).unwrap();
        let made = Regenerated::from([(0, Ok(here)), (1, Err("it cannot be tried here".to_owned()))]);
        let arms = arms(&target(&[]), &[regenerates("/a"), regenerates("/b")], &made, &PythonPreloads::new());
        let described: Vec<_> = arms.iter().map(|arm| (arm.arm.name.as_str(), arm.tried, arm.has_mounts())).collect();
        assert_eq!(
            described,
            [("untreated", None, false), ("regenerate_artifact", Some(0), true), ("sham_regenerated", None, true)]
        );
        assert_eq!(arms[1].arm.sham.as_deref(), Some("sham_regenerated"));
    }

    #[test]
    fn without_a_treatment_that_a_warm_launch_can_have_there_is_nothing_to_launch() {
        let of_cold_launches = [
            tried("plan", Treatment::PreloadPlan { file: "a.plan".to_owned(), sha256: None }),
            tried("size", Treatment::Readahead { kib: 512 }),
        ];
        let of_nothing = [
            tried("none", Treatment::None),
            tried("variables", Treatment::Environment { variables: BTreeMap::new() }),
            tried("files", Treatment::Files { files: Vec::new() }),
        ];
        assert!(plain(&target(&[]), &of_cold_launches).is_empty());
        assert!(plain(&target(&[]), &of_nothing).is_empty() && plain(&target(&[]), &[]).is_empty());
    }
}
