//! From traces to an order that a linker reads: what `slowpath layout order` makes and prints.

use crate::inputs;
use crate::order::names::Rebuilt;
use crate::order::{FORMATS, OrderedFunction, algorithm, chosen, named};
use crate::score::Code;
use crate::trace_file::{FirstUse, Trace, page_of};
use crate::work;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::whole_file;
use std::path::PathBuf;

/// What is ordered, and how.
#[derive(Clone, Debug)]
pub struct OrderWanted {
    /// The traces.
    pub traces: Vec<PathBuf>,
    /// The binary of the traces; none: the first program.
    pub object: Option<PathBuf>,
    /// The name of an algorithm; of any other word, the best is chosen.
    pub algorithm: String,
    /// The name of the linker's form.
    pub linker: String,
    /// A build whose names the order takes.
    pub names_of: Option<PathBuf>,
    /// Where the order goes.
    pub output: PathBuf,
}

/// Name and version of what is printed.
const SCHEMA: &str = "slowpath-layout-order/1";

/// What `slowpath layout order --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ordered {
    /// `slowpath-layout-order/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The binary.
    pub object: String,
    /// The order.
    pub order: String,
    /// The linker that it is for.
    pub linker: String,
    /// How it is used.
    pub usage: String,
    /// How it was made.
    pub algorithm: String,
    /// Whether that was chosen by work that orders were not made from; with one trace there is none.
    pub held_out: bool,
    /// Traces that know the binary.
    pub traces: u64,
    /// Functions that they used.
    pub functions: u64,
    /// Functions in the order.
    pub ordered: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Functions without a name: a stripped file was traced.
    pub unnamed: u64,
    /// Functions that the build of `--names-of` does not have, or has several of.
    pub stale: u64,
}

/// The path of the binary that is ordered: what was asked for, or the first program.
fn object_path(wanted: &OrderWanted, traces: &[Trace]) -> Result<String, Failure> {
    if let Some(path) = &wanted.object {
        return Ok(path.to_string_lossy().into_owned());
    }
    let first = traces.iter().find_map(|trace| trace.objects.get(trace.program()? as usize));
    first.map(|object| object.path.clone()).ok_or_else(|| {
        Failure::new(Kind::Usage, "the traces have no program with watched functions")
            .hint("`--object PATH` names another file of them")
    })
}

/// Makes an order of traces and writes it, as the user whose files they are.
///
/// # Errors
/// A trace or a binary cannot be read, no trace has the binary, or the order cannot be written.
pub fn make(wanted: &OrderWanted) -> Result<Ordered, Failure> {
    let traces = inputs::traces(&wanted.traces)?;
    let path = object_path(wanted, &traces)?;
    let build_id = traces.iter().flat_map(|trace| &trace.objects).find(|object| object.path == path);
    let build_id = build_id.and_then(|object| object.build_id.as_deref());
    let with: Vec<(&Trace, u32)> =
        traces.iter().filter_map(|trace| Some((trace, trace.object(&path, build_id)?))).collect();
    if with.is_empty() {
        let known: Vec<&str> =
            traces.iter().flat_map(|trace| &trace.objects).map(|object| object.path.as_str()).collect();
        let why = format!("no trace has {path}");
        return Err(Failure::new(Kind::Usage, why).hint(format!("they have: {}", known.join(", "))));
    }
    let works: Vec<_> = with.iter().map(|(trace, object)| work::of_trace(trace, *object)).collect();
    let page = page_of(with.iter().map(|(trace, _)| *trace));
    let by_name = algorithm(&wanted.algorithm);
    let algorithm = by_name.unwrap_or_else(|| chosen(&works, &Code::of_works(&works).on_pages_of(page)));
    let order = (algorithm.order)(&works);
    let uses: Vec<&FirstUse> = with.iter().flat_map(|(trace, object)| trace.uses_of(*object)).collect();
    let mut functions = named(&order, &uses);
    let unnamed = order.len() - functions.len();
    let before = functions.len();
    if let Some(build) = &wanted.names_of {
        let binary = inputs::binary(build)?;
        let rebuilt = Rebuilt::new(binary.functions.iter().filter_map(|function| function.name.as_deref()));
        let renamed = |function: OrderedFunction| {
            let name = rebuilt.find(&function.name)?.to_owned();
            Some(OrderedFunction { name, ..function })
        };
        functions = functions.into_iter().filter_map(renamed).collect();
    }
    let Some(format) = FORMATS.iter().find(|one| one.name == wanted.linker) else {
        return Err(Failure::new(Kind::Usage, format!("there is no linker `{}`", wanted.linker)));
    };
    whole_file::replace(&wanted.output, 0o644, (format.write)(&functions).as_bytes())?;
    Ok(Ordered {
        schema: SCHEMA.to_owned(),
        object: path,
        order: wanted.output.to_string_lossy().into_owned(),
        linker: format.name.to_owned(),
        usage: format.usage.to_owned(),
        algorithm: algorithm.name.to_owned(),
        held_out: by_name.is_none() && works.len() > 1,
        traces: works.len() as u64,
        functions: order.len() as u64,
        ordered: functions.len() as u64,
        bytes: functions.iter().map(|function| function.size).fold(0, u64::saturating_add),
        unnamed: unnamed as u64,
        stale: (before - functions.len()) as u64,
    })
}
