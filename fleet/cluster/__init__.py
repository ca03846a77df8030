"""Tests on other engines than DuckDB, each started for its run: `make fleet-spark`, `make fleet-clickhouse`."""
