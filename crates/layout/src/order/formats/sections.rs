//! Names of sections that compilers give to functions of their own (`-ffunction-sections`).

/// Sections in which a function may stand: GCC puts `main` and constructors into `.text.startup`, cold parts into `.text.unlikely`; with a
/// profile also `.text.hot` and `.text.exit` (gcc/varasm.cc, `default_function_section`).
const PREFIXES: [&str; 5] = [".text.startup.", ".text.unlikely.", ".text.hot.", ".text.exit.", ".text."];

/// Sections that hold a function of this name.
pub(super) fn sections_of(name: &str) -> Vec<String> {
    // A cold part stands in the section of the function that it was split from: `.text.unlikely.f` holds `f.cold`.
    if let Some(whole) = name.strip_suffix(".cold") {
        return vec![format!(".text.unlikely.{whole}")];
    }
    PREFIXES.iter().filter(|prefix| **prefix != ".text.unlikely.").map(|prefix| format!("{prefix}{name}")).collect()
}

/// The function of a line: a name, or a section alone or in a linker script's `*(...)`.
pub(super) fn name_in(line: &str) -> Option<String> {
    let section = line.strip_prefix("*(").map_or(line, |rest| rest.strip_suffix(")").unwrap_or(rest));
    if !section.starts_with(".text.") {
        // Names have none of these; lines of scripts do, and a script's output section is no function.
        let is_name = !section.contains(['{', '}', '(', ')', ' ', ';']) && section != "SECTIONS";
        return is_name.then(|| section.to_owned());
    }
    let prefix = PREFIXES.iter().find(|prefix| section.starts_with(**prefix))?;
    let name = section.strip_prefix(prefix).filter(|name| !name.is_empty() && !name.contains(' '))?;
    Some(if *prefix == ".text.unlikely." { format!("{name}.cold") } else { name.to_owned() })
}
