//! Why what a probe records is not in a recording, in words.

use slowpath_recording::{Manifest, NotRecorded};

/// Why `what`, which a probe records, is missing, and what to do about it: what the recorder said, or `remedy` where nobody asked for it.
/// `None` where the probe ran, and of rows alone: a recording names the probes that it was asked for.
pub fn why(manifest: &Manifest, probe: &str, what: &str, remedy: &str) -> Option<String> {
    match manifest.not_recorded(probe)? {
        NotRecorded::Refused(Some(gap)) => Some(format!("{}: {}; {}", gap.what, gap.reason, gap.remedy)),
        NotRecorded::Refused(None) => Some(format!("{what}: not recorded on that machine")),
        NotRecorded::NotAskedFor => (!manifest.probes.is_empty()).then(|| format!("{what}: not recorded; {remedy}")),
    }
}

/// Why opens of files are missing.
pub fn opens(manifest: &Manifest) -> Option<String> {
    why(manifest, "open", "opens", "record without --no-files, or with --files")
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::{Probe, ProbeState};
    use slowpath_tables::missing::declared;

    #[test]
    fn it_is_what_the_recorder_said_or_that_nobody_asked() {
        let with = |name: &str, state| {
            let probes = vec![Probe { name: name.to_owned(), state }];
            let unavailable = vec![declared::PROBE.of(&[&"open"], "refused", "another kernel")];
            Manifest { probes, unavailable, ..Manifest::default() }
        };
        assert_eq!(opens(&with("open", ProbeState::Attached)), None);
        assert_eq!(opens(&with("open", ProbeState::Unavailable)).unwrap(), "probe open: refused; another kernel");
        let unsaid = Manifest { unavailable: Vec::new(), ..with("open", ProbeState::Unavailable) };
        assert_eq!(opens(&unsaid).unwrap(), "opens: not recorded on that machine");
        assert!(opens(&with("fault", ProbeState::Attached)).unwrap().contains("--no-files"));
        assert_eq!(opens(&Manifest::default()), None);
    }
}
