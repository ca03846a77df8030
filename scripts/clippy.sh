#!/usr/bin/env bash
# Clippy on the whole workspace, compiled for aarch64: what is built here is compiled for the tests, and so both are. Of code for this
# machine alone `make check` sees what clippy says, and the build for the tests allows no warning of the compiler. Without a compiler for
# aarch64, for this machine.
#
#   scripts/clippy.sh [--here]     --here: for this machine, where a desk has compiled most of it already
set -euo pipefail
cd "$(dirname "$0")/.."
here() {
    cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
    exit
}
skip() {
    echo "clippy: $1; for this machine alone"
    here
}
[ "${1:-}" != --here ] || here
. scripts/aarch64.sh
export CC_aarch64_unknown_linux_gnu=$PWD/scripts/cc-for-clippy.sh
cargo clippy --quiet --locked --workspace --all-targets --target "$target" -- -D warnings

# The proof that the probes are there: every object was compiled for the BPF machine, arm64 flavour.
shopt -s nullglob
objects=("${CARGO_TARGET_DIR:-target}/$target"/debug/build/slowpath-capture-*/out/*.bpf.o)
[ ${#objects[@]} -gt 0 ] || { echo "clippy: no BPF object was compiled for $target" >&2; exit 1; }
echo "workspace and ${#objects[@]} BPF objects compile for $target"
