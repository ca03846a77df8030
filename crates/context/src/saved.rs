//! A saved context, back from its JSON. It may come from anybody: any bytes give a context or an error.

use crate::factor::Scope;
use crate::factors;
use crate::reading::{Reading, Value};
use crate::snapshot::{Readings, SCHEMA, Snapshot};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Why a text is no saved context.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It is not JSON, or not with the fields of a context.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It is of another version, or something else.
    #[error("its schema is {0:?}, not {SCHEMA}")]
    Schema(String),
    /// It is JSON of something else.
    #[error("it has no schema")]
    NoSchema,
}

/// The version of a saved context, whatever else it holds.
#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    schema: Option<String>,
}

impl Snapshot {
    /// Reads what `context save` wrote, of this version or an earlier one.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn of_json(bytes: &[u8]) -> Result<Self, SavedError> {
        // The schema first, and nothing else is kept meanwhile: as a tree of values a text takes sixteen times its size.
        let version: Version = serde_json::from_slice(bytes)?;
        match version.schema {
            Some(schema) if schema == SCHEMA => Ok(serde_json::from_slice::<Self>(bytes)?.with_names_of_today()),
            Some(other) => Err(SavedError::Schema(other)),
            None => Err(SavedError::NoSchema),
        }
    }

    fn with_names_of_today(mut self) -> Self {
        rename(&mut self.machine, Scope::Machine);
        rename(&mut self.process, Scope::Process);
        self.threads.iter_mut().for_each(|thread| rename(&mut thread.factors, Scope::Thread));
        self
    }
}

/// Replaces former names of factors and parts, and former ends of the parts' texts, with those of today. What has that name
/// already stays.
fn rename(readings: &mut Readings, scope: Scope) {
    for factor in factors::of(scope) {
        for former in factor.former.names {
            move_to(readings, former, factor.name);
        }
        if let Some(Reading::Known { value: Value::Table(parts) }) = readings.get_mut(factor.name) {
            for (former, name) in factor.former.parts {
                move_to(parts, former, name);
            }
            for (part, former, end) in factor.former.ends {
                if let Some(text) = parts.get_mut(*part)
                    && let Some(head) = text.strip_suffix(*former)
                {
                    *text = format!("{head}{end}");
                }
            }
        }
    }
}

fn move_to<T>(all: &mut BTreeMap<String, T>, former: &str, name: &str) {
    if !all.contains_key(name)
        && let Some(one) = all.remove(former)
    {
        all.insert(name.to_owned(), one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use crate::snapshot::Thread;

    #[test]
    fn a_context_survives_the_way_through_its_json_and_other_json_is_refused() {
        let own = Snapshot::of_process(std::process::id()).unwrap();
        let text = serde_json::to_vec(&own).unwrap();
        // Whoever wrote a file, it is not the process that it describes.
        assert_eq!(Snapshot::of_json(&text).unwrap(), Snapshot { source: Source::Foreign, ..own });
        let of = |text: &str| Snapshot::of_json(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(of("{\"schema\": \"x\\u009b\"}"), "its schema is \"x\\u{9b}\", not slowpath-context/1");
        assert_eq!(of("{}"), "it has no schema");
        assert!(matches!(Snapshot::of_json(b"{\"schema\": \"slowpath-context/1\"}"), Err(SavedError::Json(_))));
    }

    fn context(machine: Readings, process: Readings, factors: Readings) -> Snapshot {
        let thread = Thread { tid: Some(7), name: "x".to_owned(), factors };
        Snapshot {
            schema: SCHEMA.to_owned(),
            origin: "elsewhere".to_owned(),
            boot: None,
            pid: Some(7),
            name: "x".to_owned(),
            command: Vec::new(),
            machine,
            process,
            threads: vec![thread],
            filters: None,
            source: Source::Foreign,
        }
    }

    #[test]
    fn a_context_that_an_earlier_version_saved_has_the_names_of_today() {
        let known = |value: Value| Reading::known(value);
        let of = |names: [&str; 3], parts: [&str; 5], quota: &str, lists: [&str; 2]| {
            let [model, frequency, libraries] = names;
            let limits = parts.into_iter().zip([quota, "weight 50", "0-3", "536870912", "0"]);
            let limits: Vec<(&str, &str)> = limits.collect();
            let machine = [(model, Value::table([("model", "x")])), (frequency, Value::table([("boost", "1")]))];
            let process = [(libraries, Value::table([("/bin/x", "y")])), ("control_groups", Value::table(limits))];
            let read = |all: [(&str, Value); 2]| all.map(|(name, value)| (name.to_owned(), known(value))).into();
            let allowed = known(Value::table(lists.map(|list| (list, "0"))));
            context(read(machine), read(process), [("affinity".to_owned(), allowed)].into())
        };
        let former = of(
            ["processors", "frequency", "objects"],
            ["processor_quota", "processor_weight", "processors", "memory_limit", "memory_nodes"],
            "20.0 % of a processor",
            ["processors", "memory_nodes"],
        );
        let today = of(
            ["cpu_model", "cpufreq", "loaded_libraries"],
            ["cpu.max", "cpu.weight", "cpuset.cpus", "memory.max", "cpuset.mems"],
            "20.0 % of a CPU",
            ["cpus", "mems"],
        );
        let read = |saved: &Snapshot| Snapshot::of_json(&serde_json::to_vec(saved).unwrap()).unwrap();
        assert_eq!(read(&former), today);
        assert_eq!(read(&today), today);
        assert!(crate::differences(&today, &read(&former)).different.is_empty());
    }

    #[test]
    fn no_former_name_of_a_factor_is_one_of_today() {
        for former in factors::ALL.iter().flat_map(|factor| factor.former.names) {
            assert!(factors::named(former).is_none(), "{former}");
        }
    }
}
