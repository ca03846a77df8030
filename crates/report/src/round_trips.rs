//! The JSON of what threads waited for other processes to reply.
//!
//! Owns names, units and how many pairs are told. Leaves who asked whom to `analysis::round_trips`.

use crate::ledger::{LedgerRow, rows};
use crate::longest::longest;
use crate::quantities::milliseconds;
use crate::shares::Shares;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_analysis::critical_path::Request;
use slowpath_analysis::ledger::Account;
use slowpath_analysis::round_trips::{Pair, RoundTrip, ToldBy, round_trips};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, Quantity};

/// Pairs that are told, those with the longest waits: of a machine with a thousand clients nobody reads more.
const PAIRS: usize = 200;

/// A process that waited for another one's replies. `rows` and `unknown` add up to `waited`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyPair {
    /// Process that asked and waited, as in `shares`.
    pub client: String,
    /// Its pid.
    pub client_pid: u32,
    /// Its start, `CLOCK_MONOTONIC`, ns.
    pub client_start: Nanos,
    /// Process that woke it, as in `shares`.
    pub server: String,
    /// Its pid.
    pub server_pid: u32,
    /// Its start, `CLOCK_MONOTONIC`, ns.
    pub server_start: Nanos,
    /// What tells which one asks.
    pub told_by: ToldBy,
    /// Waits for a reply.
    pub round_trips: u64,
    /// Of these the waits of which the request is not seen: the server was awake when it came.
    pub requests_not_seen: u64,
    /// Half of them are no longer, from where the client begins to wait to where it runs again.
    pub p50: Quantity,
    /// The same for 95 % of them.
    pub p95: Quantity,
    /// The same for 99 % of them.
    pub p99: Quantity,
    /// The longest.
    pub longest: Quantity,
    /// All that the client's threads waited for the server.
    pub waited: Quantity,
    /// What that was spent on, by those who worked for the replies, the largest first; `on_cpu` is serving. Shares are of `waited`.
    pub rows: Vec<LedgerRow>,
    /// Time of which nothing was recorded.
    pub unknown: Quantity,
}

/// The pairs of a recording, those with the longest waits first; processes are called as in its shares.
pub fn of_tables(tables: &Tables, shares: &Shares) -> Vec<ReplyPair> {
    let name = shares.namer();
    let told = |pair: Pair| {
        let waited = pair.waited();
        let mut account = Account::default();
        pair.trips.iter().for_each(|trip| account.merge(&trip.account));
        let [p50, p95, p99, longest] = pair.quantiles([0.5, 0.95, 0.99, 1.0]).map(milliseconds);
        let not_seen = pair.trips.iter().filter(|trip| trip.request == Request::NotSeen).count();
        let row = ReplyPair {
            client: name(pair.client),
            client_pid: pair.client.pid,
            client_start: pair.client.start,
            server: name(pair.server),
            server_pid: pair.server.pid,
            server_start: pair.server.start,
            told_by: pair.told_by,
            round_trips: pair.trips.len() as u64,
            requests_not_seen: not_seen as u64,
            p50,
            p95,
            p99,
            longest,
            waited: milliseconds(waited),
            rows: rows(&account, waited, None),
            unknown: milliseconds(pair.trips.iter().map(|trip: &RoundTrip| trip.unknown).sum()),
        };
        (waited.0, row)
    };
    longest(round_trips(tables).into_iter().map(told).collect(), PAIRS, "pairs", &mut Vec::new())
}
