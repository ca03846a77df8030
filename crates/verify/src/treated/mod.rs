//! From treatments to arms: what fixes do to a launch (`slowpath_fix::Treatment`) becomes launches that have it, beside the untreated
//! launch and a sham of the same kind.
//!
//! Owns which arms and shams a list of treatments has in cold launches ([`cold`]) and in warm ones ([`warm`]), how one of these launches is
//! made, and what stays for them from launch to launch: mounts with regenerated artifacts, files for Python. Leaves to its callers which
//! treatments are tried, and that they may be; what is predicted of them, when there are enough launches, and what is published. The rule
//! of the verdict is [`crate::judgement`].

pub mod cold;
mod files;
mod python_preload;
mod regenerated;
pub mod warm;
mod warm_up;

use crate::comparison::{Arm, Role};
use slowpath_fix::{FixPlan, Treatment};

/// What is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Its arm. Who makes the arms says which sham it has.
    pub arm: Arm,
    /// What the launches of the arm have.
    pub treatment: Treatment,
}

impl Tried {
    /// A fix, under the name of its plan. Where slowpath cannot try it, its launches would have nothing: no arm is made of it.
    pub fn fix(plan: &FixPlan) -> Self {
        let (name, title) = (plan.name.clone(), plan.title.clone());
        Self { arm: Arm { name, title, role: Role::Fix, sham: None }, treatment: plan.tried().clone() }
    }
}
