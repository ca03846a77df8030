//! What can be done, with its price.

use super::printed::{CodeAudit, ReadState, Repair};

/// Android 14: ART Service compiles, which knows no reason `shared` (libartservice, ReasonMapping.java).
const ART_SERVICE: u32 = 34;
/// Android 10: `android:zygotePreloadName`.
const APP_ZYGOTE: u32 = 29;

/// Compiles all methods, without the profile: the artifacts are no secret then, and every user may read them.
const SPEED: &str = "compile_speed";
/// The same for an app that others load code from.
const SHARED: &str = "compile_shared";

/// The repairs of a package, in the order in which to try them.
pub fn repairs(package: &str, code: &[CodeAudit], api_level: Option<u32>) -> Vec<Repair> {
    let reset = Some(format!("cmd package compile --reset {package}"));
    let compile = |name: &str, what: &str, command: String| {
        Repair {
        name: name.to_owned(),
        what: what.to_owned(),
        command: Some(command),
        can_apply: true,
        price: "the main process: all methods are compiled, so its code is larger and read from more pages, and starts lose the order of the \
                profile; compiling takes the phone's CPU and energy for minutes. The next background compilation may use the profile again: \
                check afterwards (guard)"
            .to_owned(),
        security: "none: what is compiled without a profile does not say what the user does".to_owned(),
        undo: reset.clone(),
    }
    };
    let mut found = vec![compile(
        SPEED,
        "compile without the profile, readable for every user",
        format!("cmd package compile -m speed -f {package}"),
    )];
    if api_level.is_none_or(|level| level < ART_SERVICE) {
        found.push(compile(
            SHARED,
            "compile as an app whose code others load (pm.dexopt.shared), without the profile",
            format!("cmd package compile -r shared {package}"),
        ));
    }
    found.push(app_zygote(api_level));
    if api_level.is_none_or(|level| level < APP_ZYGOTE) {
        found.push(Repair {
            name: "drop_isolation".to_owned(),
            what: "run the services without android:isolatedProcess where the release has no app zygote: they then are the app's own user \
                   and read what it reads"
                .to_owned(),
            command: None,
            can_apply: false,
            price: "a release of the app".to_owned(),
            security: "an attacker who takes over a renderer has all rights of the app".to_owned(),
            undo: Some("isolate them again".to_owned()),
        });
    }
    let changes: Vec<&str> = code
        .iter()
        .flat_map(|one| [&one.odex, &one.vdex])
        .filter(|file| file.state == ReadState::Unreadable)
        .filter_map(|file| file.change.as_deref())
        .collect();
    if !changes.is_empty() {
        found.push(Repair {
            name: "grant_read".to_owned(),
            what: "only the permission, as root, to confirm the cause".to_owned(),
            command: Some(changes.join(" && ")),
            can_apply: false,
            price: "none, until the next compilation takes it back".to_owned(),
            security: "every app can see which methods the user's profile has".to_owned(),
            undo: Some("compile again".to_owned()),
        });
    }
    found
}

fn app_zygote(api_level: Option<u32>) -> Repair {
    let since = match api_level {
        Some(level) if level < APP_ZYGOTE => " (from Android 10 on: not on this device)",
        _ => "",
    };
    Repair {
        name: "app_zygote".to_owned(),
        what: format!(
            "android:useAppZygote on the isolated services, with android:zygotePreloadName, and a holder: a bound service that is always there, \
             for the platform ends an app zygote 5 s after its last child{since}"
        ),
        command: None,
        can_apply: false,
        price: "a release of the app; memory of the zygote and of the holder process".to_owned(),
        security: "children have one address-space layout, and what the zygote has loaded".to_owned(),
        undo: Some("take the attribute away".to_owned()),
    }
}
