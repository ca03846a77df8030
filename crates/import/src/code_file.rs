//! What perf calls the places that code lies in: paths, and words in brackets for what is no file.

/// What perf says that code is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeFile {
    /// The kernel or one of its modules.
    Kernel,
    /// The vdso.
    Vdso,
    /// Memory without a file, or a file that is not known.
    Generated,
    /// That of the next frame, into which it was inlined.
    Inlined,
    /// A file.
    At(String),
}

impl CodeFile {
    /// By the name that perf prints for it.
    pub fn of(name: &str) -> Self {
        match name {
            "[vdso]" => Self::Vdso,
            "inlined" => Self::Inlined,
            "[unknown]" | "" | "//anon" | "[heap]" | "[stack]" => Self::Generated,
            _ if name.starts_with("[JIT]") || name.starts_with("/tmp/perf-") => Self::Generated,
            _ if name.starts_with('[') || name.ends_with(".ko") || name.ends_with(".ko.xz") => Self::Kernel,
            _ => Self::At(name.to_owned()),
        }
    }
}
