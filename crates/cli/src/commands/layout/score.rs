//! `slowpath layout score`: what orders would save.

use crate::arguments::LayoutScoreArguments;
use crate::commands::{invoker, print_json};
use crate::failure::{Failure, Kind};
use crate::unprivileged::{Work, as_user};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_layout::order::names::Rebuilt;
use slowpath_layout::order::{ALGORITHMS, read_names};
use slowpath_layout::score::{self, Cost};
use slowpath_report::terminal::escape_terminal;
use slowpath_symbols::binary::Binary;
use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

/// Name and version of what is printed.
const SCHEMA: &str = "slowpath-layout-score/1";

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
    /// Pages (4 KiB) touched.
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

/// Runs the command.
pub fn run(arguments: &LayoutScoreArguments) -> Result<ExitCode, Failure> {
    let scored = as_user(&invoker()?, &Work::reading("scoring the order"), || scored(arguments))?;
    if arguments.json {
        print_json(&scored);
    } else {
        print!("{}", table(&scored));
    }
    Ok(ExitCode::SUCCESS)
}

fn scored(arguments: &LayoutScoreArguments) -> Result<Scored, Failure> {
    let binary = super::binary(&arguments.binary)?;
    let works = super::works(&arguments.binary, &binary, &arguments.traces)?;
    let code = super::code(&binary);
    let used = score::all_used(&works);
    let missing = || Failure::new(Kind::Usage, "the traces have no first uses");
    let current = score::current(&code, &works).ok_or_else(missing)?;
    let as_it_is = ScoredOrder { name: "current".to_owned(), train: current.into(), held_out: Some(current.into()) };
    let mut orders = vec![as_it_is];
    let mut stale = None;
    if let Some(path) = &arguments.order {
        let (order, unknown) = given(path, &binary)?;
        stale = Some(unknown);
        let train = score::train(&code, &works, &order).ok_or_else(missing)?;
        orders.push(ScoredOrder { name: "given".to_owned(), train: train.into(), held_out: None });
    }
    for algorithm in ALGORITHMS {
        let train = score::train(&code, &works, &(algorithm.order)(&works)).ok_or_else(missing)?;
        let held_out = score::held_out(&code, &works, algorithm.order).map(Into::into);
        orders.push(ScoredOrder { name: algorithm.name.to_owned(), train: train.into(), held_out });
    }
    Ok(Scored {
        schema: SCHEMA.to_owned(),
        binary: arguments.binary.to_string_lossy().into_owned(),
        build_id: binary.build_id.clone(),
        traces: works.len() as u64,
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
    let bytes = super::bytes_of(path, super::MOST_ORDER)?;
    let text = String::from_utf8_lossy(&bytes);
    let names = read_names(&text);
    let addresses: HashMap<&str, u64> =
        binary.functions.iter().filter_map(|function| Some((function.name.as_deref()?, function.address))).collect();
    let rebuilt = Rebuilt::new(addresses.keys().copied());
    let found: Vec<u64> = names.iter().filter_map(|name| addresses.get(rebuilt.find(name)?).copied()).collect();
    let stale = names.len() - found.len();
    Ok((found, stale as u64))
}

fn table(scored: &Scored) -> String {
    let mut text = format!(
        "{}: {} of {} functions used ({} of {} KiB), {} trace{}\n\n",
        escape_terminal(&scored.binary),
        scored.used,
        scored.functions,
        scored.used_bytes >> 10,
        scored.function_bytes >> 10,
        scored.traces,
        if scored.traces == 1 { "" } else { "s" },
    );
    text.push_str("order           pages            held out   faults   cold faults   pages read\n");
    let current = scored.orders.first().map_or(0.0, |order| order.train.pages);
    let change = |pages: f64| {
        if current > 0.0 && pages != current {
            format!("{:+.0} %", 100.0 * (pages / current - 1.0))
        } else {
            String::new()
        }
    };
    for order in &scored.orders {
        let held_out = order.held_out.filter(|_| order.name != "current");
        let held_out = held_out.map_or(String::new(), |cost| format!("{:.0} {}", cost.pages, change(cost.pages)));
        let ScoredCost { pages, faults, cold_faults, pages_read } = order.train;
        text.push_str(&format!(
            "{:<14} {:>6.0} {:>7} {:>13} {:>8.0} {:>13.0} {:>12.0}\n",
            escape_terminal(&order.name),
            pages,
            change(pages),
            held_out,
            faults,
            cold_faults,
            pages_read,
        ));
    }
    if scored.traces == 1 {
        text.push_str("\nOne trace shows nothing of other work: with several, each is held out once.\n");
    }
    text
}
