//! A filter from foreign bytes. Nothing here touches the machine.

use crate::compile::architecture;
use crate::error::FilterError;
use crate::instruction::Instruction;
use crate::parsed::Parsed;
use crate::profile;
use crate::program::Program;
use serde_json::Value;

/// Bytes of a file that are read at most: some times the largest profiles that container runtimes have.
pub const MOST_BYTES: u64 = 4 << 20;

/// Reads a filter: JSON as seccompiler has it, a profile of a container runtime (or the whole configuration that holds one), or raw
/// instructions. `name` chooses one of several in seccompiler's form.
///
/// # Errors
/// It is none of these.
pub fn parse(bytes: &[u8], name: Option<&str>) -> Result<Parsed, FilterError> {
    // No instruction begins like a JSON object: 0x7b is no code of classic BPF.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        let program = Program::from_bytes(bytes)?;
        return Ok(Parsed { program, form: "raw instructions", notes: Vec::new() });
    }
    let value: Value = serde_json::from_slice(bytes)?;
    let inside = value.pointer("/linux/seccomp").unwrap_or(&value);
    if inside.get("defaultAction").is_some() {
        return profile::compiled(serde_json::from_value(inside.clone())?);
    }
    of_seccompiler(bytes, name)
}

fn of_seccompiler(bytes: &[u8], name: Option<&str>) -> Result<Parsed, FilterError> {
    let mut filters = seccompiler::compile_from_json(bytes, architecture()?)?;
    let mut names: Vec<String> = filters.keys().cloned().collect();
    names.sort_unstable();
    let chosen = match (name, names.as_slice()) {
        (Some(name), _) => name.to_owned(),
        (None, [one]) => one.clone(),
        (None, _) => String::new(),
    };
    let Some(program) = filters.remove(&chosen) else {
        let asked = name.map_or("FILE#NAME says which".to_owned(), |name| format!("none of them is {name:?}"));
        return Err(FilterError::Several { found: names.len(), names: names.join(", "), asked });
    };
    let program = Program::new(program.into_iter().map(Instruction::from).collect())?;
    Ok(Parsed { program, form: "JSON of seccompiler", notes: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::run;

    const VMM: &str = r#"{
        "vmm": {"mismatch_action": {"errno": 13}, "match_action": "allow", "filter": [
            {"syscall": "getppid"}, {"syscall": "read", "args": [{"index": 2, "type": "qword", "op": "le", "val": 4096}]}]},
        "api": {"mismatch_action": "trap", "match_action": "allow", "filter": []}
    }"#;

    #[test]
    fn a_filter_of_several_is_chosen_by_its_name() {
        let parsed = parse(VMM.as_bytes(), Some("vmm")).unwrap();
        let number = |name: &str| name.parse::<syscalls::Sysno>().unwrap().id() as u32;
        let said = |name, length| run(&parsed.program, number(name), [0, 0, length, 0, 0, 0]);
        assert_eq!((said("getppid", 9), said("read", 4096)), (0x7fff_0000, 0x7fff_0000));
        assert_eq!((said("read", 4097), said("write", 1)), (0x0005_000d, 0x0005_000d));
        for (name, words) in [(None, "2 filters (api, vmm), and FILE#NAME"), (Some("x"), "none of them is \"x\"")] {
            let error = parse(VMM.as_bytes(), name).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn raw_instructions_are_read_as_they_are() {
        let parsed = parse(VMM.as_bytes(), Some("vmm")).unwrap();
        let again = parse(&parsed.program.bytes(), None).unwrap();
        assert_eq!((again.program, again.form), (parsed.program, "raw instructions"));
    }

    #[test]
    fn what_is_no_filter_says_why() {
        for (bytes, words) in [
            (&b""[..], "0 bytes"),
            (b"1234567", "7 bytes"),
            (b"{", "JSON"),
            (b"{}", "0 filters"),
            (br#"{"a": 1}"#, "seccompiler"),
            (br#"{"defaultAction": "SCMP_ACT_DANCE"}"#, "SCMP_ACT_DANCE"),
            (br#"{"defaultAction": 1}"#, "JSON"),
        ] {
            let error = parse(bytes, None).unwrap_err().to_string();
            assert!(error.contains(words), "{}: {error}", String::from_utf8_lossy(bytes));
        }
        assert!(parse(&vec![0; 8 * 4097], None).is_err());
    }
}
