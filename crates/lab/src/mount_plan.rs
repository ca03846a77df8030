//! Which mounts bring an image's files over the host's paths. Pure: looks at nothing but its arguments.
//!
//! The image is mounted at a private directory. A read-mostly tree of the host that holds files of the closure gets an
//! overlay of the image's tree over its own, so that directories are cold too and whatever the image lacks falls
//! through. What is mounted below such a tree would vanish under the overlay: it is put aside first and bound on top
//! again. All other files are bound one by one over their paths, so that their directories stay writable.

use slowpath_launch::MountStep;
use slowpath_process::FileIdentity;
use std::path::{Path, PathBuf};

/// Top-level directories that a running program reads and does not write. Those that are symbolic links (merged
/// `/usr`) never appear in canonical paths.
pub(crate) const READ_MOSTLY: &[&str] =
    &["/usr", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// A host mount below a tree, to be kept visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Submount {
    /// Where it is on the host.
    pub at: PathBuf,
    /// A mount point of the lab to put it aside.
    pub stash: PathBuf,
}

/// What a plan is made from.
pub(crate) struct Ingredients<'a> {
    /// Canonical host paths of the image's files, and which files they were.
    pub files: Vec<(&'a Path, FileIdentity)>,
    /// Trees that may be overlaid: existing, real directories.
    pub trees: Vec<PathBuf>,
    /// Mounts below the trees.
    pub submounts: Vec<Submount>,
    /// The lab's block device.
    pub device: PathBuf,
    /// The private mount point.
    pub mount_point: PathBuf,
    /// Directory of the extra files in the image and the directory over which it is bound.
    pub extra: Option<(PathBuf, PathBuf)>,
}

/// The steps and what they do, for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MountPlan {
    /// For the launcher, in this order.
    pub steps: Vec<MountStep>,
    /// Trees under an overlay.
    pub overlaid: Vec<PathBuf>,
    /// Number of files bound one by one.
    pub bound: usize,
    /// Host mounts bound on top of an overlay again.
    pub rebound: Vec<PathBuf>,
}

pub(crate) fn plan(from: &Ingredients<'_>) -> MountPlan {
    let mut plan = MountPlan::default();
    let inside = |path: &Path| from.mount_point.join(path.strip_prefix("/").unwrap_or(path));
    let submount_of = |path: &Path| from.submounts.iter().find(|submount| path.starts_with(&submount.at));
    let tree_of = |path: &Path| from.trees.iter().find(|tree| path.starts_with(tree));

    let (mut overlaid, mut singles) = (Vec::new(), Vec::new());
    for (file, was) in &from.files {
        match tree_of(file) {
            Some(tree) if submount_of(file).is_none() => {
                if !overlaid.contains(tree) {
                    overlaid.push(tree.clone());
                }
            }
            _ => singles.push((*file, *was)),
        }
    }
    // A submount is put aside only when its tree is overlaid; nested ones come with it.
    let mut aside: Vec<&Submount> = Vec::new();
    for submount in &from.submounts {
        let nested = from.submounts.iter().any(|other| other != submount && submount.at.starts_with(&other.at));
        if !nested && overlaid.iter().any(|tree| submount.at.starts_with(tree) && submount.at != *tree) {
            aside.push(submount);
        }
    }

    let at = from.mount_point.clone();
    plan.steps.push(MountStep::Ext4 { device: from.device.clone(), at, read_only: true });
    for submount in &aside {
        let (from, to) = (submount.at.clone(), submount.stash.clone());
        plan.steps.push(MountStep::Bind { from, to, recursive: true });
    }
    for tree in &overlaid {
        plan.steps.push(MountStep::Overlay { lower: vec![inside(tree), tree.clone()], at: tree.clone() });
    }
    for submount in &aside {
        let (from, to) = (submount.stash.clone(), submount.at.clone());
        plan.steps.push(MountStep::Bind { from, to, recursive: true });
    }
    for (file, was) in &singles {
        plan.steps.push(MountStep::File { from: inside(file), over: file.to_path_buf(), was: *was });
    }
    // Last: it hides the mount points above.
    if let Some((from, to)) = &from.extra {
        plan.steps.push(MountStep::Bind { from: inside(from), to: to.clone(), recursive: false });
    }
    plan.overlaid = overlaid;
    plan.bound = singles.len();
    plan.rebound = aside.into_iter().map(|submount| submount.at.clone()).collect();
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ingredients<'a>(files: &[&'a str], submounts: &[&str]) -> Ingredients<'a> {
        Ingredients {
            files: files.iter().map(|file| (Path::new(*file), WAS)).collect(),
            trees: vec!["/usr".into(), "/opt".into()],
            submounts: submounts
                .iter()
                .enumerate()
                .map(|(number, at)| Submount { at: at.into(), stash: format!("/lab/stash/{number}").into() })
                .collect(),
            device: "/dev/loop3".into(),
            mount_point: "/lab/mount".into(),
            extra: None,
        }
    }

    const WAS: FileIdentity = FileIdentity { major: 8, minor: 1, inode: 7 };

    fn file(path: &str) -> MountStep {
        MountStep::File { from: format!("/lab/mount{path}").into(), over: path.into(), was: WAS }
    }

    fn bind(from: &str, to: &str, recursive: bool) -> MountStep {
        MountStep::Bind { from: from.into(), to: to.into(), recursive }
    }

    fn overlay(tree: &str) -> MountStep {
        let at = PathBuf::from(tree);
        MountStep::Overlay { lower: vec![format!("/lab/mount{tree}").into(), at.clone()], at }
    }

    fn image() -> MountStep {
        MountStep::Ext4 { device: "/dev/loop3".into(), at: "/lab/mount".into(), read_only: true }
    }

    #[test]
    fn trees_with_files_are_overlaid_once_and_other_files_bound_one_by_one() {
        let plan = plan(&ingredients(&["/home/u/x:y,z", "/usr/bin/a", "/usr/lib/b"], &[]));
        assert_eq!(plan.steps, [image(), overlay("/usr"), file("/home/u/x:y,z")]);
        assert_eq!((plan.overlaid, plan.bound), (vec!["/usr".into()], 1));
    }

    #[test]
    fn a_name_that_only_begins_like_a_tree_is_not_below_it() {
        let plan = plan(&ingredients(&["/usrlocal/a"], &[]));
        assert!(plan.overlaid.is_empty());
    }

    #[test]
    fn a_mount_below_an_overlaid_tree_is_put_aside_before_and_bound_on_top_after() {
        let plan = plan(&ingredients(&["/usr/bin/a", "/usr/local/bin/b"], &["/usr/local", "/usr/local/share"]));
        assert_eq!(
            plan.steps,
            [
                image(),
                bind("/usr/local", "/lab/stash/0", true),
                overlay("/usr"),
                bind("/lab/stash/0", "/usr/local", true),
                file("/usr/local/bin/b"),
            ]
        );
        assert_eq!(plan.rebound, [PathBuf::from("/usr/local")]);
    }

    #[test]
    fn a_mount_below_a_tree_without_files_is_left_alone() {
        let plan = plan(&ingredients(&["/usr/bin/a"], &["/opt/data"]));
        assert_eq!(plan.steps, [image(), overlay("/usr")]);
    }

    #[test]
    fn without_trees_every_file_is_bound() {
        let mut from = ingredients(&["/usr/bin/a", "/home/b"], &[]);
        from.trees.clear();
        assert_eq!(plan(&from).bound, 2);
    }
}
