#!/usr/bin/env bash
# Makes the Python environment of fleet/ in target/fleet-venv; does nothing where it is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=target/fleet-venv
lock=fleet/requirements.txt
pip() { "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir "$@" </dev/null; }
if ! cmp -s "$lock" "$venv/requirements.txt"; then
    rm -rf "$venv"
    /usr/bin/python3 -m venv "$venv"
    pip --require-hashes --only-binary :all: --no-compile -r "$lock"
    pip --no-deps --no-build-isolation -e fleet
    cp "$lock" "$venv/requirements.txt"
fi
