//! The kinds of markers: their fields and how they are shown.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, Profile, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle,
};
use slowpath_tables::{Fault, FaultKind, MemoryCall, OffCpu};

const EVERYWHERE: MarkerLocations =
    MarkerLocations::MARKER_CHART.union(MarkerLocations::MARKER_TABLE).union(MarkerLocations::TIMELINE_OVERVIEW);

const fn field(key: &'static str, label: &'static str, format: MarkerFieldFormat) -> StaticSchemaMarkerField {
    StaticSchemaMarkerField { key, label, format, flags: MarkerFieldFlags::SEARCHABLE }
}

/// Declares a kind of marker with its schema.
macro_rules! marker {
    ($(#[doc = $doc:literal])* $name:ident = $type:literal, $label:literal, [$($key:literal $title:literal $format:ident,)*]) => {
        $(#[doc = $doc])*
        pub(super) struct $name {
            name: StringHandle,
            category: CategoryHandle,
            /// One for each field that holds text, in order.
            texts: Vec<StringHandle>,
            /// One for each field, 0 for those that hold text.
            numbers: Vec<f64>,
        }

        impl StaticSchemaMarker for $name {
            const UNIQUE_MARKER_TYPE_NAME: &'static str = $type;
            const LOCATIONS: MarkerLocations = EVERYWHERE;
            const CHART_LABEL: Option<&'static str> = Some($label);
            const TABLE_LABEL: Option<&'static str> = Some($label);
            const TOOLTIP_LABEL: Option<&'static str> = Some($label);
            const FIELDS: &'static [StaticSchemaMarkerField] = &[$(field($key, $title, MarkerFieldFormat::$format)),*];

            fn name(&self, _: &mut Profile) -> StringHandle {
                self.name
            }
            fn category(&self, _: &mut Profile) -> CategoryHandle {
                self.category
            }
            fn string_field_value(&self, index: u32) -> StringHandle {
                let before = Self::FIELDS[..index as usize].iter();
                self.texts[before.filter(|field| field.format == MarkerFieldFormat::String).count()]
            }
            fn number_field_value(&self, index: u32) -> f64 {
                self.numbers[index as usize]
            }
        }
    };
}

marker! {
    /// A thread did not run.
    Wait = "slowpath-wait", "{marker.name}", [
        "runnable" "Could run, waited for a CPU" Duration,
        "waker" "Woken by (pid/tid)" String,
        "syscall" "System call" Integer,
    ]
}

impl Wait {
    pub(super) fn of(row: &OffCpu, category: CategoryHandle, profile: &mut Profile) -> Self {
        let waker = match (row.waker_pid, row.waker_tid) {
            (Some(pid), Some(tid)) => format!("{pid}/{tid}"),
            _ => "-".to_owned(),
        };
        Self {
            name: profile.intern_string(&format!("off CPU: {}", row.reason.as_str())),
            category,
            texts: vec![profile.intern_string(&waker)],
            numbers: vec![row.runnable.as_ms(), 0.0, f64::from(row.syscall)],
        }
    }
}

marker! {
    /// A page fault.
    PageFault = "slowpath-page-fault", "{marker.name}", [
        "address" "Address" String,
        "instruction" "Instruction" String,
        "for" "For" String,
    ]
}

impl PageFault {
    pub(super) fn of(row: &Fault, category: CategoryHandle, profile: &mut Profile) -> Self {
        let name = match row.kind {
            FaultKind::Minor => "minor fault",
            FaultKind::Major => "major fault",
        };
        Self {
            name: profile.intern_string(name),
            category,
            texts: vec![
                profile.intern_string(&format!("{:#x}", row.address)),
                profile.intern_string(&format!("{:#x}", row.ip)),
                profile.intern_string(if row.kernel { "a system call" } else { "the program" }),
            ],
            numbers: Vec::new(),
        }
    }
}

marker! {
    /// A system call that changes an address space.
    MemoryCallMarker = "slowpath-memory-call", "{marker.name} {marker.data.length}", [
        "length" "Length" Bytes,
        "growth" "Address space grew by" Bytes,
        "address" "Address" String,
        "argument" "Flags or advice" Integer,
        "result" "Result" Integer,
    ]
}

impl MemoryCallMarker {
    pub(super) fn of(row: &MemoryCall, growth: u64, category: CategoryHandle, profile: &mut Profile) -> Self {
        Self {
            name: profile.intern_string(row.call.as_str()),
            category,
            texts: vec![profile.intern_string(&format!("{:#x}", row.address))],
            numbers: vec![row.length.0 as f64, growth as f64, 0.0, f64::from(row.argument), f64::from(row.result)],
        }
    }
}

marker! {
    /// Something about the recording as a whole.
    Note = "slowpath-note", "{marker.name}: {marker.data.text}", ["text" "Text" String,]
}

impl Note {
    pub(super) fn of(name: &str, text: &str, profile: &mut Profile) -> Self {
        Self {
            name: profile.intern_string(name),
            category: CategoryHandle::OTHER,
            texts: vec![profile.intern_string(text)],
            numbers: Vec::new(),
        }
    }
}
