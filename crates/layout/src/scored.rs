//! What orders of a binary would save: what `slowpath layout score` prints.

use crate::inputs::{self, TracedUse};
use crate::order::names::Rebuilt;
use crate::order::{ALGORITHMS, read_names};
use crate::score::{self, Cost};
use crate::work;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_session::failure::{Failure, Kind};
use slowpath_symbols::binary::Binary;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Name and version of what is printed.
const SCHEMA: &str = "slowpath-layout-score/1";

/// The order in which the binary is: its name among [`Scored::orders`], and what it is.
pub const CURRENT: (&str, &str) = ("current", "functions as they stand in the binary");

/// An order that `--order FILE` gives: its name, and what it is.
pub const GIVEN: (&str, &str) = ("given", "functions as they stand in the file that `--order` names");

/// What `slowpath layout score --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scored {
    /// `slowpath-layout-score/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The binary.
    pub binary: String,
    /// Its build-id.
    pub build_id: Option<String>,
    /// Traces of it.
    pub traces: u64,
    /// Bytes of a page here: of the kernel that the traces are from; where these differ, of the one with the largest.
    pub page_size: u64,
    /// Its functions.
    pub functions: u64,
    /// Bytes of those.
    pub function_bytes: u64,
    /// Functions that any trace used.
    pub used: u64,
    /// Bytes of those.
    pub used_bytes: u64,
    /// Names in the order that the binary has not; none where no order was given.
    pub stale: Option<u64>,
    /// As it is, in the order that was given, and in an order of each algorithm.
    pub orders: Vec<ScoredOrder>,
}

/// An order and what it would cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoredOrder {
    /// `current`, `given`, or the name of an algorithm.
    pub name: String,
    /// The traced work in an order made from all of it, the mean of all traces.
    pub train: ScoredCost,
    /// Each trace in an order made from all others, the mean of all; none with one trace, and for an order that was given.
    pub held_out: Option<ScoredCost>,
}

/// Pages of code and their faults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoredCost {
    /// Pages of `page_size` bytes touched.
    pub pages: f64,
    /// Faults when all pages are in the page cache.
    pub faults: f64,
    /// Faults that wait for the disk when none is.
    pub cold_faults: f64,
    /// Pages that those read.
    pub pages_read: f64,
}

impl From<Cost> for ScoredCost {
    fn from(cost: Cost) -> Self {
        let Cost { pages, faults, cold_faults, pages_read } = cost;
        Self { pages, faults, cold_faults, pages_read }
    }
}

/// Scores the orders of a binary by its traces, as the user whose files they are. `order`: one in a file, which is scored too.
///
/// # Errors
/// A file cannot be read, or the traces show no use of the binary.
pub fn scored(path: &Path, traces: &[PathBuf], order: Option<&Path>) -> Result<Scored, Failure> {
    let binary = inputs::binary(path)?;
    let TracedUse { works, page } = inputs::works(path, &binary, traces)?;
    let code = inputs::code(&binary, page);
    let used = work::all_used(&works);
    let missing = || Failure::new(Kind::Usage, "the traces have no first uses");
    let current = score::current(&code, &works).ok_or_else(missing)?;
    let as_it_is = ScoredOrder { name: CURRENT.0.to_owned(), train: current.into(), held_out: Some(current.into()) };
    let mut orders = vec![as_it_is];
    let mut stale = None;
    if let Some(file) = order {
        let (order, unknown) = given(file, &binary)?;
        stale = Some(unknown);
        let train = score::train(&code, &works, &order).ok_or_else(missing)?;
        orders.push(ScoredOrder { name: GIVEN.0.to_owned(), train: train.into(), held_out: None });
    }
    for algorithm in ALGORITHMS {
        let train = score::train(&code, &works, &(algorithm.order)(&works)).ok_or_else(missing)?;
        let held_out = score::held_out(&code, &works, algorithm.order).map(Into::into);
        orders.push(ScoredOrder { name: algorithm.name.to_owned(), train: train.into(), held_out });
    }
    Ok(Scored {
        schema: SCHEMA.to_owned(),
        binary: path.to_string_lossy().into_owned(),
        build_id: binary.build_id.clone(),
        traces: works.len() as u64,
        page_size: code.page(),
        functions: code.len() as u64,
        function_bytes: code.bytes(),
        used: used.len() as u64,
        used_bytes: used.iter().map(|function| function.size).fold(0, u64::saturating_add),
        stale,
        orders,
    })
}

/// An order in a file, as addresses of the binary, and how many of its names the binary has not.
fn given(path: &Path, binary: &Binary) -> Result<(Vec<u64>, u64), Failure> {
    let bytes = inputs::bytes_of(path, inputs::MOST_ORDER)?;
    let text = String::from_utf8_lossy(&bytes);
    let names = read_names(&text);
    let addresses: HashMap<&str, u64> =
        binary.functions.iter().filter_map(|function| Some((function.name.as_deref()?, function.address))).collect();
    let rebuilt = Rebuilt::new(addresses.keys().copied());
    let found: Vec<u64> = names.iter().filter_map(|name| addresses.get(rebuilt.find(name)?).copied()).collect();
    let stale = names.len() - found.len();
    Ok((found, stale as u64))
}
