#!/usr/bin/env bash
# Compiles everything for aarch64 without linking: Rust, the C inside dependencies, and the BPF objects.
# Linking needs the target's libelf and zlib (scripts/build-aarch64.sh); the headers of this machine's are the same for both.
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { echo "skipped: $1"; exit 0; }
. scripts/aarch64.sh
cargo check --quiet --locked --workspace --target "$target"

# The proof that the probes are there: every object was compiled for the BPF machine, arm64 flavour.
shopt -s nullglob
objects=("${CARGO_TARGET_DIR:-target}/$target"/debug/build/slowpath-capture-*/out/*.bpf.o)
[ ${#objects[@]} -gt 0 ] || { echo "check-aarch64: no BPF object was compiled" >&2; exit 1; }
echo "workspace and ${#objects[@]} BPF objects compile for $target"
