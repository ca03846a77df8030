//! `ps -A -o PID,UID,NAME`: which processes of a package run as isolated users.

use super::lines;

/// A process of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its name: the package, with `:` and the part behind it.
    pub name: String,
}

impl Process {
    /// Whether it is the package's: `PACKAGE`, `PACKAGE:sandboxed_process0:...`.
    pub fn is_of(&self, package: &str) -> bool {
        self.name.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }
}

/// Reads the output.
pub fn processes(text: &str) -> Vec<Process> {
    let process = |line: &str| {
        let mut words = line.split_whitespace();
        let (pid, uid) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Process { pid, uid, name: words.next()?.to_owned() })
    };
    lines(text).filter_map(process).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_a_package_are_those_of_its_name_and_of_what_stands_behind_a_colon() {
        let text = "  PID   UID NAME\n 10 10123 com.android.chrome\n 11 99007 com.android.chrome:sandboxed_process0:org.S:0\n 12 10124 \
                    com.android.chromecustom\n";
        let all = processes(text);
        let of: Vec<u32> = all.iter().filter(|one| one.is_of("com.android.chrome")).map(|one| one.uid).collect();
        assert_eq!((all.len(), of), (3, vec![10_123, 99_007]));
    }
}
