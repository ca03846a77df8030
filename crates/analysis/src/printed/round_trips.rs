//! The JSON of what threads waited for other processes to reply.
//!
//! Owns names and units. Leaves who asked whom to `analysis::time::round_trips`.

use super::ledger::{LedgerRow, rows};
use super::quantities::milliseconds;
use crate::processes::Processes;
use crate::time::critical_path::Request;
use crate::time::ledger::Account;
use crate::time::round_trips::{DirectionFrom, Pair, RoundTrip, round_trips};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, Quantity};

/// A process that waited for another one's replies. `rows` and `unknown` add up to `waited`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyPair {
    /// Process that asked and waited. Foreign text.
    pub client: String,
    /// Its pid.
    pub client_pid: u32,
    /// Its start, `CLOCK_MONOTONIC`, ns.
    pub client_start: Nanos,
    /// Process that woke it. Foreign text.
    pub server: String,
    /// Its pid.
    pub server_pid: u32,
    /// Its start, `CLOCK_MONOTONIC`, ns.
    pub server_start: Nanos,
    /// From what it follows which one asks.
    pub direction_from: DirectionFrom,
    /// Waits for a reply.
    pub round_trips: u64,
    /// Of these the waits whose request no wake-up shows.
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

/// The pairs of a recording, those with the longest waits first.
pub fn of_tables(tables: &Tables) -> Vec<ReplyPair> {
    of_pairs(&round_trips(tables), &Processes::new(&tables.forks, &tables.execs, &tables.exits))
}

/// The same of pairs that are known, of these processes.
pub(crate) fn of_pairs(pairs: &[Pair], processes: &Processes) -> Vec<ReplyPair> {
    let of_pair = |pair: &Pair| {
        let waited = pair.waited();
        let mut account = Account::default();
        pair.trips.iter().for_each(|trip| account.merge(&trip.account));
        let [p50, p95, p99, longest] = pair.quantiles([0.5, 0.95, 0.99, 1.0]).map(milliseconds);
        let not_seen = pair.trips.iter().filter(|trip| trip.request == Request::NotSeen).count();
        ReplyPair {
            client: processes.name(pair.client),
            client_pid: pair.client.pid,
            client_start: pair.client.start,
            server: processes.name(pair.server),
            server_pid: pair.server.pid,
            server_start: pair.server.start,
            direction_from: pair.direction_from,
            round_trips: pair.trips.len() as u64,
            requests_not_seen: not_seen as u64,
            p50,
            p95,
            p99,
            longest,
            waited: milliseconds(waited),
            rows: rows(&account, waited, None),
            unknown: milliseconds(pair.trips.iter().map(|trip: &RoundTrip| trip.unknown).sum()),
        }
    };
    pairs.iter().map(of_pair).collect()
}
