//! Who a target, or work on behalf of somebody, runs as, and the environment that goes with it.
//!
//! Owns: whom root works for ([`Identity::behind_root`]), and what the user database has of a user. Leaves taking it on to
//! [`crate::drop_to`], and whose work it is to who asks.

use crate::{Capabilities, Credentials, NO_ID, NOBODY};
use nix::unistd::{Gid, Uid, User, geteuid, getgrouplist, getuid};
use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The group of a numeric user without an entry in the user database: the kernel's overflow group, "nogroup".
const NO_GROUP: u32 = NOBODY;

/// Variables in which programs that make their caller root leave who that was: his user id, or in the last one his name (sudo(8),
/// pkexec(1), doas(1)). Each clears those of the others, unless it is asked to keep the environment; sudo's cannot be kept.
const INVOKERS: [&str; 3] = ["SUDO_UID", "PKEXEC_UID", "DOAS_USER"];

/// A complete identity: what `login` would give a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Supplementary groups, the primary one included where the database has it so.
    pub groups: Vec<u32>,
    /// Login name; the number where there is none.
    pub user: String,
    /// Home directory.
    pub home: PathBuf,
    /// Login shell.
    pub shell: PathBuf,
    /// `/run/user/UID`, when it exists and belongs to the user.
    pub runtime_dir: Option<PathBuf>,
}

/// Something about the identity that the user should know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityWarning {
    /// The target runs as root.
    #[error(
        "the command runs as root, and root is never denied a file: costs of EACCES and EPERM do not show; use sudo from an \
         ordinary account, or --user NAME (`slowpath artifacts audit --recording DIR` shows what root hides)"
    )]
    RunsAsRoot,
    /// A numeric user id without an entry in the user database.
    #[error("no user has the id {uid}: the command runs with group {gid}, no other groups and / as its home")]
    UnknownUser {
        /// The id.
        uid: u32,
        /// The group chosen for it.
        gid: u32,
    },
}

/// Why no identity could be found.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Neither a name in the user database nor a number.
    #[error("there is no user `{0}`")]
    NoSuchUser(String),
    /// Only root can start programs as somebody else.
    #[error("only root can run the command as another user (`{0}`)")]
    NeedsRoot(String),
    /// `SUDO_UID` (or what another such program sets) names no user.
    #[error("{name} is `{value}`, which names no user")]
    BadInvoker {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The user database gives a user an id that is none.
    #[error("the user database gives `{0}` the id 4294967295, which the kernel reads as \"unchanged\"")]
    NoId(String),
    /// The user database could not be read.
    #[error("cannot read the user database")]
    Database(#[source] io::Error),
}

impl Identity {
    /// The identity of a target, from the command line and the caller's environment:
    ///
    /// 1. `user_option` (`--user`): a name, or a number. A number without an entry in the user database is allowed:
    ///    it gets group 65534, no supplementary groups and `/` as home, and a warning.
    /// 2. root with `SUDO_UID` (or `PKEXEC_UID`, or `DOAS_USER`): the user who called `sudo`. Nobody else's environment is believed.
    /// 3. root: root, with a warning.
    /// 4. anybody else: himself, with the groups of the calling process.
    ///
    /// A process that became root by a set-uid file of its own runs its targets as its real user.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn for_invocation<'a>(
        user_option: Option<&str>,
        env: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    ) -> Result<(Identity, Vec<IdentityWarning>), IdentityError> {
        let mut warnings = Vec::new();
        let own = geteuid();
        let identity = match user_option {
            Some(wanted) => {
                let identity = Self::named(wanted, &mut warnings)?;
                if !own.is_root() && identity.uid != own.as_raw() {
                    return Err(IdentityError::NeedsRoot(wanted.into()));
                }
                if own.is_root() { identity } else { Self::of_caller()? }
            }
            None => match Self::invoking(env, &mut warnings)? {
                Some(identity) => identity,
                None => Self::of_caller()?,
            },
        };
        if identity.uid == 0 {
            warnings.push(IdentityWarning::RunsAsRoot);
        }
        Ok((identity, warnings))
    }

    /// Whom this process works for, where it is root and works for somebody else: its real user, or who called `sudo` (or `pkexec`, or
    /// `doas`), as in [`Identity::for_invocation`]. `None`: it works for itself.
    ///
    /// # Errors
    /// What such a program left names no user, or the user database cannot be read.
    pub fn behind_root<'a>(
        env: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    ) -> Result<Option<Identity>, IdentityError> {
        Self::invoking(env, &mut Vec::new())
    }

    fn invoking<'a>(
        env: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
        warnings: &mut Vec<IdentityWarning>,
    ) -> Result<Option<Identity>, IdentityError> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        // Who became root by a set-user-ID file works for its real user.
        let real = getuid();
        if !real.is_root() {
            return Self::with_uid(real.as_raw(), warnings).map(Some);
        }
        invoker(env).map(|(name, value)| Self::named_by(name, value, warnings)).transpose()
    }

    /// Who a variable of [`INVOKERS`] with this value names.
    fn named_by(
        name: &'static str,
        value: String,
        warnings: &mut Vec<IdentityWarning>,
    ) -> Result<Identity, IdentityError> {
        if name == "DOAS_USER" {
            return match User::from_name(&value).map_err(database)? {
                Some(user) => Self::of_user(user),
                None => Err(IdentityError::BadInvoker { name, value }),
            };
        }
        match value.parse() {
            Ok(uid) if uid != NO_ID => Self::with_uid(uid, warnings),
            _ => Err(IdentityError::BadInvoker { name, value }),
        }
    }

    /// Who a name or a number stands for, to be asked about and not to be taken on: anybody may ask about anybody.
    ///
    /// # Errors
    /// [`IdentityError::NoSuchUser`], [`IdentityError::NoId`] or [`IdentityError::Database`].
    pub fn known_as(wanted: &str) -> Result<(Identity, Vec<IdentityWarning>), IdentityError> {
        let mut warnings = Vec::new();
        let identity = Self::named(wanted, &mut warnings)?;
        Ok((identity, warnings))
    }

    /// The identity of the calling process, with its own groups.
    ///
    /// # Errors
    /// [`IdentityError::Database`].
    pub fn of_caller() -> Result<Identity, IdentityError> {
        let uid = geteuid();
        let user = User::from_uid(uid).map_err(database)?;
        let identity = match user {
            Some(user) => Self::of_user(user)?,
            None => Self::without_entry(uid.as_raw()),
        };
        let Credentials { gid, groups, .. } = Credentials::of_this_process().map_err(IdentityError::Database)?;
        Ok(Identity { gid, groups, ..identity })
    }

    fn named(wanted: &str, warnings: &mut Vec<IdentityWarning>) -> Result<Identity, IdentityError> {
        if let Some(user) = User::from_name(wanted).map_err(database)? {
            return Self::of_user(user);
        }
        match wanted.parse() {
            Ok(uid) if uid != NO_ID => Self::with_uid(uid, warnings),
            _ => Err(IdentityError::NoSuchUser(wanted.into())),
        }
    }

    fn with_uid(uid: u32, warnings: &mut Vec<IdentityWarning>) -> Result<Identity, IdentityError> {
        if let Some(user) = User::from_uid(Uid::from_raw(uid)).map_err(database)? {
            return Self::of_user(user);
        }
        warnings.push(IdentityWarning::UnknownUser { uid, gid: NO_GROUP });
        Ok(Self::without_entry(uid))
    }

    fn without_entry(uid: u32) -> Identity {
        Identity {
            uid,
            gid: NO_GROUP,
            groups: Vec::new(),
            user: uid.to_string(),
            home: "/".into(),
            shell: "/bin/sh".into(),
            runtime_dir: runtime_dir(uid),
        }
    }

    fn of_user(user: User) -> Result<Identity, IdentityError> {
        let name = CString::new(user.name.as_str()).map_err(|error| IdentityError::Database(error.into()))?;
        let groups = getgrouplist(&name, user.gid).map_err(database)?;
        let ids = [user.uid.as_raw(), user.gid.as_raw()];
        if ids.into_iter().chain(groups.iter().map(|group| group.as_raw())).any(|id| id == NO_ID) {
            return Err(IdentityError::NoId(user.name));
        }
        let shell = if user.shell.as_os_str().is_empty() { "/bin/sh".into() } else { user.shell };
        Ok(Identity {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            user: user.name,
            home: user.dir,
            shell,
            runtime_dir: runtime_dir(user.uid.as_raw()),
        })
    }

    /// What it is to the kernel.
    pub fn credentials(&self) -> Credentials {
        Credentials { uid: self.uid, gid: self.gid, groups: self.groups.clone() }
    }

    /// Whether this process is that user and has no more power.
    pub fn has_all_that_this_process_has(&self) -> bool {
        let uid = geteuid().as_raw();
        uid != 0 && uid == self.uid && Capabilities::of_this_thread().is_ok_and(Capabilities::is_empty)
    }

    /// The full environment of a target, from the caller's.
    ///
    /// What describes the caller goes: `SUDO_*`, `PKEXEC_UID`, `DOAS_USER`, and variables of the launcher's own supervision (`NOTIFY_SOCKET`,
    /// `WATCHDOG_*`, `LISTEN_*`). When the identity is another than the caller's, `HOME`, `USER`, `LOGNAME`, `SHELL`
    /// and `XDG_RUNTIME_DIR` become the identity's (the last only if it exists) and the caller's personal places
    /// (`MAIL`, `XDG_*_HOME`, `DBUS_SESSION_BUS_ADDRESS`, `OLDPWD`) go. Everything else (`PATH`, `LANG`, `DISPLAY`, ...)
    /// stays, in its order.
    pub fn environment(&self, invoker: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
        self.environment_seen_from(geteuid().as_raw(), invoker)
    }

    fn environment_seen_from(
        &self,
        caller: u32,
        invoker: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let mut under_sudo = false;
        let mut env: Vec<(OsString, OsString)> = Vec::new();
        for (name, value) in invoker {
            under_sudo |= name.to_str().is_some_and(|name| INVOKERS.contains(&name));
            if !is_about_the_launcher(&name) {
                env.push((name, value));
            }
        }
        if self.uid == caller && !under_sudo {
            return env;
        }
        env.retain(|(name, _)| !is_personal(name));
        let mut set = |name: &str, value: &OsStr| match env.iter_mut().find(|(have, _)| have == name) {
            Some((_, old)) => *old = value.into(),
            None => env.push((name.into(), value.into())),
        };
        set("HOME", self.home.as_os_str());
        set("USER", OsStr::new(&self.user));
        set("LOGNAME", OsStr::new(&self.user));
        set("SHELL", self.shell.as_os_str());
        if let Some(dir) = &self.runtime_dir {
            set("XDG_RUNTIME_DIR", dir.as_os_str());
        }
        env
    }
}

fn is_about_the_launcher(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    [&b"SUDO_"[..], b"WATCHDOG_", b"LISTEN_"].iter().any(|prefix| name.starts_with(prefix))
        || matches!(name, b"NOTIFY_SOCKET" | b"PKEXEC_UID" | b"DOAS_USER")
}

/// The variable that names who became root, and what it says: of several, that of `sudo` counts.
fn invoker<'a>(env: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>) -> Option<(&'static str, String)> {
    let place = |name: &OsStr| INVOKERS.iter().position(|one| name == *one);
    let found = env.into_iter().filter_map(|(name, value)| Some((place(name)?, value.to_string_lossy().into_owned())));
    let (place, value) = found.min_by_key(|(place, _)| *place)?;
    Some((INVOKERS[place], value))
}

fn is_personal(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    matches!(name, b"MAIL" | b"OLDPWD" | b"DBUS_SESSION_BUS_ADDRESS" | b"XDG_RUNTIME_DIR")
        || (name.starts_with(b"XDG_") && name.ends_with(b"_HOME"))
}

fn runtime_dir(uid: u32) -> Option<PathBuf> {
    let path = Path::new("/run/user").join(uid.to_string());
    let metadata = std::fs::metadata(&path).ok()?;
    (metadata.is_dir() && metadata.uid() == uid).then_some(path)
}

fn database(error: nix::Error) -> IdentityError {
    IdentityError::Database(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn another_identity_changes_what_is_personal_and_keeps_the_rest() {
        let identity = Identity {
            uid: 1000,
            gid: 1000,
            groups: vec![1000],
            user: "ann".into(),
            home: "/home/ann".into(),
            shell: "/bin/zsh".into(),
            runtime_dir: None,
        };
        let caller = pairs(&[
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("SUDO_UID", "1000"),
            ("SUDO_COMMAND", "x"),
            ("DISPLAY", ":0"),
            ("XDG_CONFIG_HOME", "/root/.config"),
            ("XDG_RUNTIME_DIR", "/run/user/0"),
            ("NOTIFY_SOCKET", "@x"),
            ("LANG", "C"),
        ]);
        let expected = pairs(&[
            ("PATH", "/bin"),
            ("HOME", "/home/ann"),
            ("DISPLAY", ":0"),
            ("LANG", "C"),
            ("USER", "ann"),
            ("LOGNAME", "ann"),
            ("SHELL", "/bin/zsh"),
        ]);
        assert_eq!(identity.environment_seen_from(0, caller), expected);
    }

    #[test]
    fn the_callers_own_identity_keeps_his_environment() {
        let identity = Identity::without_entry(0);
        let caller = pairs(&[("HOME", "/elsewhere"), ("XDG_CONFIG_HOME", "/c")]);
        assert_eq!(identity.environment_seen_from(0, caller.clone()), caller);
    }

    #[test]
    fn a_number_without_an_entry_gets_no_group_and_a_warning_and_a_wrong_name_is_refused() {
        let mut warnings = Vec::new();
        let identity = Identity::named("3000000001", &mut warnings).unwrap();
        assert_eq!((identity.uid, identity.gid, identity.groups.len()), (3_000_000_001, NO_GROUP, 0));
        assert_eq!(warnings, [IdentityWarning::UnknownUser { uid: 3_000_000_001, gid: NO_GROUP }]);
        for wrong in ["no-such-user-here", "4294967295", "-1", ""] {
            assert!(matches!(Identity::named(wrong, &mut warnings), Err(IdentityError::NoSuchUser(_))), "{wrong}");
        }
    }

    #[test]
    fn root_under_sudo_becomes_the_invoking_user_and_plain_root_is_warned_of() {
        if !geteuid().is_root() {
            println!("skipped: only root can become another user");
            return;
        }
        let env = pairs(&[("SUDO_UID", "65534")]);
        let view = || env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let (identity, warnings) = Identity::for_invocation(None, view()).unwrap();
        assert_eq!(identity.uid, 65534);
        assert_eq!(warnings, []);
        let (identity, warnings) = Identity::for_invocation(None, []).unwrap();
        assert_eq!((identity.uid, warnings), (0, vec![IdentityWarning::RunsAsRoot]));
        let (identity, _) = Identity::for_invocation(Some("nobody"), view()).unwrap();
        assert_eq!((identity.uid, identity.user.as_str()), (65534, "nobody"));
    }

    #[test]
    fn what_sudo_leaves_names_a_user_with_the_groups_of_the_database_or_nobody() {
        let named = |name, value: &str| Identity::named_by(name, value.to_owned(), &mut Vec::new());
        assert_eq!(named("SUDO_UID", "65534").unwrap().credentials().uid, NOBODY);
        let unknown = named("PKEXEC_UID", "3999999999").unwrap().credentials();
        assert_eq!(unknown, Credentials { uid: 3_999_999_999, gid: NO_GROUP, groups: Vec::new() });
        assert_eq!(named("DOAS_USER", "root").unwrap().uid, 0);
        let wrong = [("SUDO_UID", "4294967295"), ("SUDO_UID", "-1"), ("SUDO_UID", ""), ("DOAS_USER", "no such user")];
        for (name, value) in wrong {
            let refused = named(name, value).unwrap_err().to_string();
            assert_eq!(refused, format!("{name} is `{value}`, which names no user"));
        }
    }

    #[test]
    fn root_that_nobody_called_works_for_itself_and_who_is_not_root_for_nobody_else() {
        assert_eq!(Identity::behind_root([]).unwrap(), None);
        let env = pairs(&[("SUDO_UID", "65534")]);
        let behind = Identity::behind_root(env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
        let expected = geteuid().is_root().then_some(NOBODY);
        assert_eq!(behind.unwrap().map(|identity| identity.uid), expected);
    }

    /// What root's target becomes with these variables.
    fn invoked(variables: &[(&str, &str)]) -> Result<u32, IdentityError> {
        let env = variables.iter().map(|(name, value)| (OsStr::new(*name), OsStr::new(*value)));
        Identity::for_invocation(None, env).map(|(identity, _)| identity.uid)
    }

    #[test]
    fn an_invoker_who_is_nobody_is_refused_and_never_root() {
        if !geteuid().is_root() {
            println!("skipped: only root can become another user");
            return;
        }
        for name in INVOKERS {
            for value in ["4294967295", "4294967296", "-1", "x", "", " 0"] {
                let found = invoked(&[(name, value)]);
                assert!(matches!(found, Err(IdentityError::BadInvoker { .. })), "{name}={value}: {found:?}");
            }
        }
        assert_eq!(invoked(&[("DOAS_USER", "nobody")]).unwrap(), NOBODY);
        assert_eq!(invoked(&[("PKEXEC_UID", "0"), ("SUDO_UID", "65534")]).unwrap(), NOBODY);
        assert_eq!(invoked(&[("SUDO_UID", "0")]).unwrap(), 0);
    }
}
