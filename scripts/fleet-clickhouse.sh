#!/usr/bin/env bash
# Runs slowpath-fleet on Debian's ClickHouse server, started for this run on loopback (fleet/cluster/).
#
#   scripts/fleet-clickhouse.sh [PYTEST ARGUMENT...]
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v clickhouse-server >/dev/null; then
    echo "fleet-clickhouse: no clickhouse-server: apt-get install --no-install-recommends clickhouse-server" >&2
    exit 3
fi
scripts/fleet-python.sh
cd fleet
exec ../target/fleet-venv/bin/pytest cluster/test_clickhouse.py "$@"
