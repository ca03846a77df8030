//! `am start -W`: whether an activity was started, how, and how long the activity manager waited for its first frame.

use super::lines;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What it printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AmStart {
    /// `ok`, `timeout`, ...; null where it said none.
    pub status: Option<String>,
    /// `COLD`, `WARM`, `HOT`, `UNKNOWN`; null before Android 10.
    pub launch_state: Option<String>,
    /// The activity that was shown.
    pub activity: Option<String>,
    /// From the intent to the first frame, ms.
    pub total_ms: Option<u64>,
    /// The same with what went before it, ms.
    pub wait_ms: Option<u64>,
    /// What it warned of, or why it failed.
    pub said: Option<String>,
}

impl AmStart {
    /// Whether an activity was started and its first frame drawn.
    pub fn is_ok(&self) -> bool {
        self.status.as_deref() == Some("ok") && self.total_ms.is_some()
    }
}

/// Reads the output (ActivityManagerShellCommand, runStartActivity).
pub fn am_start(text: &str) -> AmStart {
    let mut found = AmStart::default();
    for line in lines(text) {
        let line = line.trim();
        let said = ["Error", "Warning", "Exception", "java.lang.", "android.", "Security"];
        if found.said.is_none() && said.iter().any(|begin| line.starts_with(begin)) {
            found.said = Some(line.chars().take(300).collect());
        }
        let Some((key, value)) = line.split_once(": ") else { continue };
        let own = || Some(value.chars().take(300).collect());
        match key {
            "Status" => found.status = own(),
            "LaunchState" => found.launch_state = value.split_whitespace().next().map(str::to_owned),
            "Activity" => found.activity = own(),
            "TotalTime" => found.total_ms = value.parse().ok(),
            "WaitTime" => found.wait_ms = value.parse().ok(),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_started_and_what_was_not_are_told_apart() {
        let text = "Starting: Intent { act=android.intent.action.MAIN cmp=com.example/.Main }\r\nStatus: ok\r\nLaunchState: COLD\r\n\
                    Activity: com.example/.Main\r\nTotalTime: 512\r\nWaitTime: 530\r\nComplete\r\n";
        let found = am_start(text);
        assert!(found.is_ok());
        assert_eq!((found.total_ms, found.wait_ms), (Some(512), Some(530)));
        assert_eq!(
            (found.launch_state.as_deref(), found.activity.as_deref()),
            (Some("COLD"), Some("com.example/.Main"))
        );
        // Android 9 and before.
        let old = am_start(
            "Status: ok\nActivity: com.example/.Main\nThisTime: 300\nTotalTime: 300\nWaitTime: 320\nComplete\n",
        );
        assert!(old.is_ok() && old.launch_state.is_none());
        let front = am_start(
            "Warning: Activity not started, its current task has been brought to the front\nStatus: ok\nLaunchState: HOT\nTotalTime: 0\n",
        );
        assert!(front.said.is_some_and(|said| said.starts_with("Warning")));
        let failed = am_start("Error type 3\nError: Activity class {com.example/.None} does not exist.\n");
        assert!(!failed.is_ok() && failed.said.as_deref() == Some("Error type 3"));
        assert!(!am_start("Status: timeout\nTotalTime: 1\n").is_ok());
        assert_eq!(am_start(""), AmStart::default());
    }
}
