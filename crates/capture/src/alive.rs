//! Whether a process runs, by `/proc`.

/// When a process began that runs now, in ticks since the machine's start (proc_pid_stat(5), field 22): with its pid this is one
/// process and no later one. `None` when it is gone, or has ended and is not reaped.
pub fn running_since(pid: u32) -> Option<u64> {
    parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Behind the name, which may hold any bytes: the state, and 19 fields later the start.
pub(crate) fn parse(stat: &[u8]) -> Option<u64> {
    let behind = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[behind..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_ended_and_is_not_reaped_does_not_run() {
        let stat = |state: &str| {
            [b"7 (\xff) b) ", state.as_bytes(), b" 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 777 9 9"].concat()
        };
        assert_eq!(parse(&stat("S")), Some(777));
        assert_eq!((parse(&stat("Z")), parse(b"7 (a"), parse(b"")), (None, None, None));
        assert!(running_since(std::process::id()).is_some());
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let began = std::time::Instant::now();
        while running_since(child.id()).is_some() && began.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        assert_eq!(running_since(child.id()), None);
        child.wait().unwrap();
    }
}
