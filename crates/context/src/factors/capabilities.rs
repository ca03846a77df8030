//! Capabilities of a thread (capabilities(7)), as the kernel's bit masks.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Outcome, SETPCAP, Setting, Toggle, both, words};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;

/// The factor.
pub const CAPABILITIES: Factor = Factor {
    name: "capabilities",
    former: Former::NONE,
    title: "capabilities",
    what: "Which of root's privileges the thread has (capabilities(7)), by set: effective, permitted and the others.",
    why: "No time by themselves. Without CAP_SYS_NICE, CAP_IPC_LOCK or CAP_SYS_RESOURCE the kernel refuses priority \
          or locked and huge memory to a program that asks for them, and the program goes on without.",
    by_hand: "`grep Cap /proc/PID/status`; `getpcaps PID`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "give it the capability that it lacks",
        "security: an attacker who takes over the program has it too",
    )]),
    toggle: Toggle::Parts(parts),
};

const FIELDS: [(&str, &str); 5] = [
    ("CapInh", "inheritable"),
    ("CapPrm", "permitted"),
    ("CapEff", "effective"),
    ("CapBnd", "bounding"),
    ("CapAmb", "ambient"),
];

fn read(task: &TaskFiles<'_>) -> Reading {
    let mut parts = Vec::new();
    for (field, name) in FIELDS {
        match task.status(field) {
            Ok(mask) => parts.push((name, mask)),
            // Ambient capabilities came with 4.3.
            Err(crate::kernel_files::Missing::Absent) => {}
            Err(missing) => return Reading::missing(&missing, ""),
        }
    }
    if parts.is_empty() {
        Reading::absent("this kernel does not report it")
    } else {
        Reading::known(Value::table(parts))
    }
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "no time by themselves; without CAP_SYS_NICE, CAP_IPC_LOCK or CAP_SYS_RESOURCE a program that asks for priority, locked or huge \
         memory gets none and goes on",
        "capabilities(7)",
    )
}

const HOW: How = How {
    irreversible: true,
    counters: &[Metric::System, Metric::RunDelay],
    mechanism: "the program runs without what it is refused (priority, locked or huge memory)",
    sham: "the capabilities of the fast context, set in the same way",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    let mask = |value: Option<&Value>, part: &str| {
        value.and_then(|value| value.part(part)).map_or(Some(0), |mask| u64::from_str_radix(mask, 16).ok())
    };
    let kept = |value: Option<&Value>| ["bounding", "inheritable", "ambient"].map(|part| mask(value, part));
    if kept(contrast.fast) == kept(contrast.slow) && contrast.differs("credentials", None) {
        return contrast.not(Outcome::Follows(
            "root has all that it may have, and others none: it follows from the user".to_owned(),
        ));
    }
    let users = contrast.other("credentials");
    let step = |value: Option<&Value>, credentials: Option<&Value>| -> Result<Vec<Setting>, String> {
        let [Some(bounding), Some(inheritable), Some(ambient)] = kept(value) else {
            return Err("it is no mask of capabilities".to_owned());
        };
        let Some(permitted) = mask(value, "permitted") else { return Err("it is no mask of capabilities".to_owned()) };
        let is_root = credentials.and_then(|user| user.part("user")) == Some("0");
        // What an exec gives (capabilities(7), "Transformation of capabilities during execve()").
        let after_exec = if is_root { inheritable | bounding } else { ambient };
        if permitted != after_exec {
            return Err("its program changed them itself, or its file gives them: an exec would not".to_owned());
        }
        let own = mask(contrast.here.value(CAPABILITIES.name), "bounding").unwrap_or(0);
        if bounding & !own != 0 {
            return Err("the caller has lost some of them for good".to_owned());
        }
        let here = contrast.here;
        if !here.has(SETPCAP) || ((inheritable | ambient) != 0 && !here.may(SETPCAP)) {
            return Err(here.lacks(SETPCAP, "CAP_SETPCAP"));
        }
        let step = Setting::Step(ContextStep::Capabilities { bounding, inheritable, ambient });
        // A set-uid program that lacks what it takes for granted can be turned against its owner.
        let shield = (bounding != own && !here.may(SETPCAP)).then_some(Setting::Step(ContextStep::NoNewPrivileges));
        Ok(shield.into_iter().chain([step]).collect())
    };
    if contrast.is_same() {
        return Vec::new();
    }
    let outcome = both(step(contrast.fast, users.0), step(contrast.slow, users.1), &HOW);
    vec![DifferingPart::whole(words(contrast.fast), words(contrast.slow), outcome)]
}
