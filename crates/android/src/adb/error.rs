//! What adb says when it cannot, as causes with a remedy.

use std::io;
use std::time::Duration;

/// Why a command on a device did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum AdbError {
    /// There is no client.
    #[error("adb cannot be run: {0}")]
    NoClient(#[source] io::Error),
    /// No server of adb listens.
    #[error("no adb server listens at {at}: {source}")]
    NoServer {
        /// Where it was looked for.
        at: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What listens is no server of adb, or of another version.
    #[error("the server at {at} is not one of this adb: {why}")]
    OtherServer {
        /// Where.
        at: String,
        /// Why.
        why: String,
    },
    /// There is no device, or not the one that was named.
    #[error("there is no device: {0}")]
    NoDevice(String),
    /// There are several.
    #[error("there are several devices: {0}")]
    Several(String),
    /// The device does not answer its own adb daemon.
    #[error("device {0} is offline")]
    Offline(String),
    /// It has not allowed this computer.
    #[error("device {0} has not allowed this computer (unauthorized)")]
    Unauthorised(String),
    /// This user may not open its USB device.
    #[error("device {0} cannot be opened by this user: {1}")]
    NoPermission(String, String),
    /// It is in a mode without a shell.
    #[error("device {0} is in mode {1}, not `device`")]
    Mode(String, String),
    /// It took longer than it may.
    #[error("`{command}` did not end within {} s", limit.as_secs())]
    TimedOut {
        /// What was run.
        command: String,
        /// How long it may take.
        limit: Duration,
    },
    /// The answer ended before its end.
    #[error("the answer to `{0}` is incomplete")]
    CutShort(String),
    /// adb itself failed.
    #[error("adb failed: {0}")]
    Failed(String),
    /// A file of the device has more bytes than are copied of one, whatever the device said of its size.
    #[error("{path} has more than {} MiB, which is the most of one file", most >> 20)]
    TooLarge {
        /// The file on the device.
        path: String,
        /// Bytes that are copied at most.
        most: u64,
    },
    /// The device ran a command and refused what it is for.
    #[error("the device refuses: {0}")]
    Refused(String),
    /// All launches together took as long as one command may take.
    #[error("the launches took {} min, which is the most of one command", _0.as_secs() / 60)]
    Long(Duration),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Unwritable(#[source] io::Error),
}

impl AdbError {
    /// What adb printed, of a command for this device.
    pub(super) fn of_words(serial: &str, said: &str) -> Self {
        let lower = said.to_ascii_lowercase();
        let has = |words: &str| lower.contains(words);
        let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("without a word").to_owned();
        let serial = serial.to_owned();
        if has("unauthorized") || has("authorizing") {
            Self::Unauthorised(serial)
        } else if has("device offline") || has("device still connecting") {
            Self::Offline(serial)
        } else if has("no permissions") || has("insufficient permissions") {
            Self::NoPermission(serial, line)
        } else if has("more than one") {
            Self::Several(line)
        } else if has("not found") && has("device") || has("no devices") {
            Self::NoDevice(line)
        } else {
            Self::Failed(line)
        }
    }

    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoClient(_) => "install adb (Debian: apt install adb), or put it in PATH",
            Self::NoServer { .. } => {
                "run `adb start-server`; slowpath starts none, because it would outlive the command"
            }
            Self::OtherServer { .. } => {
                "use the adb that started the server, or `adb kill-server` and `adb start-server`"
            }
            Self::NoDevice(_) => {
                "`adb devices` lists them; connect it and allow USB debugging, or name it with --serial"
            }
            Self::Several(_) => "name one with --serial",
            Self::Offline(_) => {
                "unplug and plug it again, or `adb reconnect`; check whether the device has finished booting"
            }
            Self::Unauthorised(_) => "unlock the device and answer its question about this computer's key",
            Self::NoPermission(..) => {
                "add a udev rule for the device (Debian: android-sdk-platform-tools-common), and your user to plugdev"
            }
            Self::Mode(..) => "start it into Android",
            Self::TimedOut { .. } => "try again, with a longer --timeout; check whether the device hangs",
            Self::CutShort(_) => "look at the cable, and try again",
            Self::Failed(_) => "run the command by hand and read adb's output",
            Self::TooLarge { .. } => "look at the file on the device: it is larger than any of its kind is known to be",
            Self::Refused(_) => "run the command by hand with `adb shell` and read its output",
            Self::Long(_) => "ask for fewer --runs, and launch again into another directory for more",
            Self::Interrupted => "run it again",
            Self::Unwritable(_) => "choose another directory with -o",
        }
    }

    /// Whether the next command could do better.
    pub fn is_of_the_command(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::CutShort(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_adb_prints_is_told_apart() {
        let of = |said: &str| AdbError::of_words("S", said).to_string();
        assert_eq!(of("error: device offline\n"), "device S is offline");
        assert!(
            of("error: device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set\n")
                .contains("has not allowed")
        );
        assert!(of("error: device 'S' not found\n").starts_with("there is no device"));
        assert!(of("error: no devices/emulators found\n").starts_with("there is no device"));
        assert!(of("error: more than one device/emulator\n").starts_with("there are several"));
        assert_eq!(of("error: protocol fault (no status)\n"), "adb failed: error: protocol fault (no status)");
    }
}
