//! The preload plan as a fix: its declaration, and the description of one plan with its price, undo and treatment.

use super::{PreloadPlan, file};
use crate::declaration::Declaration;
use crate::digest::sha256;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::treatment::Treatment;

/// Name of the fix.
pub const NAME: &str = "preload_plan";

/// The fix.
pub const FIX: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "read the needed pages ahead, in order of use",
    what: "A plan lists the file pages that recorded cold launches needed, in the order of use; a process beside the \
           launch reads them in large requests.",
    why: "The device reads in large requests and never idles, so the launch finds most of its pages in the page cache \
          when it touches them.",
    price: "a process beside each launch, whose program is read first where it is not cached (slowpath-preload 1 MB, slowpath 8), page cache \
            for the plan, and a plan that has to be made again when the files change",
    by_hand: "slowpath preload plan DIR -o PLAN, then slowpath-preload PLAN -- COMMAND (or slowpath preload run); without the wrapper nothing is changed",
    trial: "in a lab, in cold launches, against an untreated launch and shams of the same kind",
    propose: None,
};

impl PreloadPlan {
    /// SHA-256 of this plan as a file.
    fn sha256(&self) -> Option<String> {
        let mut text = Vec::new();
        file::write(self, &mut text).ok()?;
        Some(sha256(&text))
    }

    /// The description of this plan as a fix; `file` is its name in the directory of the diagnosis.
    pub fn fix_plan(&self, file: &str) -> FixPlan {
        let megabytes = self.bytes().as_mb();
        let name = if self.options.whole_files { "preload_plan whole files" } else { NAME };
        FixPlan {
            fix: NAME.to_owned(),
            name: name.to_owned(),
            title: format!(
                "ask the kernel at start for {megabytes:.1} MB in {} ranges of {} files",
                self.ranges.len(),
                self.files.len()
            ),
            changes: vec![Change {
                what: "the command that starts the program".to_owned(),
                from: Some("CMD".to_owned()),
                to: "slowpath-preload PLAN -- CMD, or slowpath preload run PLAN -- CMD".to_owned(),
            }],
            scope: Scope::Launch,
            privilege: Privilege::User,
            side_effects: vec![
                format!("up to {megabytes:.1} MB of page cache are filled at each cold launch"),
                "a second process reads beside the launch and competes with other readers of the same disk".to_owned(),
                "files that changed since the plan was made are skipped; the plan must be made again to cover them"
                    .to_owned(),
            ],
            price: "a process beside each launch, and a plan that is to be made again when the files change".to_owned(),
            security_cost:
                "none: the plan is replayed as the user, opens regular files for reading only and follows no \
                            symbolic link; it is a list of paths of the program's files and can be read as such"
                    .to_owned(),
            undo: "start the program by itself; nothing else was changed".to_owned(),
            trial: Trial { possible: true, how: "beside the launch, in the lab".to_owned() },
            treatment: Treatment::PreloadPlan { file: file.to_owned(), sha256: self.sha256() },
        }
    }
}
