//! The devices of a server, and which one is meant.

use super::AdbError;

/// A row of `adb devices -l`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its serial.
    pub serial: String,
    /// `device`, `offline`, `unauthorized`, `no permissions ...`, `recovery`, ...
    pub state: String,
}

/// Reads the output of `adb devices`, with or without `-l`.
pub fn devices(text: &str) -> Vec<Device> {
    let row = |line: &str| {
        let line = line.trim_end();
        let (serial, rest) = line.split_once([' ', '\t'])?;
        let rest = rest.trim_start();
        let is_row = !serial.is_empty() && !line.starts_with(['*', ' ']) && serial != "List";
        let state = match rest.strip_prefix("no permissions") {
            Some(_) => rest.to_owned(),
            None => rest.split_whitespace().next()?.to_owned(),
        };
        is_row.then(|| Device { serial: serial.to_owned(), state })
    };
    text.lines().filter_map(row).collect()
}

/// The device that is meant: the one with this serial, else the only one.
///
/// # Errors
/// There is none, there are several, or it is not ready.
pub fn choose(devices: &[Device], serial: Option<&str>) -> Result<String, AdbError> {
    let list =
        || devices.iter().map(|device| format!("{} ({})", device.serial, device.state)).collect::<Vec<_>>().join(", ");
    let device = match (serial, devices) {
        (Some(serial), devices) => {
            let found = devices.iter().find(|device| device.serial == serial);
            let among =
                if devices.is_empty() { "none is connected".to_owned() } else { format!("connected: {}", list()) };
            found.ok_or_else(|| AdbError::NoDevice(format!("{serial} is not connected; {among}")))?
        }
        (None, [device]) => device,
        (None, []) => return Err(AdbError::NoDevice("none is connected".to_owned())),
        (None, _) => return Err(AdbError::Several(list())),
    };
    let serial = device.serial.clone();
    match device.state.as_str() {
        "device" => Ok(serial),
        "offline" | "connecting" | "host" => Err(AdbError::Offline(serial)),
        "unauthorized" | "authorizing" => Err(AdbError::Unauthorised(serial)),
        state if state.starts_with("no permissions") => Err(AdbError::NoPermission(serial, state.to_owned())),
        state => Err(AdbError::Mode(serial, state.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "List of devices attached\nA1             device product:x model:y transport_id:1\nB2\toffline\nC3             no \
                        permissions (user in plugdev group; are your udev rules wrong?); see [http://x]\n\n";

    #[test]
    fn the_device_that_is_meant_is_chosen_or_the_reason_given() {
        let all = devices(TEXT);
        assert_eq!(all.iter().map(|device| device.serial.as_str()).collect::<Vec<_>>(), ["A1", "B2", "C3"]);
        let choice = |serial| choose(&all, serial).map_err(|error| error.to_string());
        assert_eq!(choice(Some("A1")), Ok("A1".to_owned()));
        assert_eq!(choice(Some("B2")).unwrap_err(), "device B2 is offline");
        assert!(choice(Some("C3")).unwrap_err().contains("cannot be opened by this user"));
        assert!(choice(Some("D4")).unwrap_err().contains("D4 is not connected; connected: A1 (device), B2 (offline)"));
        assert!(choice(None).unwrap_err().contains("several"));
        assert_eq!(choose(&all[..1], None).unwrap(), "A1");
        assert!(choose(&[], None).unwrap_err().to_string().contains("none is connected"));
    }
}
