#!/usr/bin/env bash
# Compiles everything for aarch64 without linking: Rust, the C inside dependencies, and the BPF objects.
# Linking would need the target's libelf and zlib; the headers of this machine's are the same for both.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
skip() { echo "skipped: $1"; exit 0; }

command -v aarch64-linux-gnu-gcc >/dev/null || skip "no aarch64-linux-gnu-gcc (apt install gcc-aarch64-linux-gnu)"
sysroot=$(rustc --print sysroot)
if [ ! -d "$sysroot/lib/rustlib/$target/lib" ]; then
    command -v rustup >/dev/null || skip "the Rust standard library of $target is missing and there is no rustup to fetch it"
    rustup --quiet target add "$target" || skip "rustup could not fetch the standard library of $target"
fi

export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
# bindgen's clang looks for system headers where the build machine keeps its own.
export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="-I/usr/aarch64-linux-gnu/include"
# pkg-config must not answer for this machine; nothing is linked here.
export PKG_CONFIG_ALLOW_CROSS=1
cargo check --quiet --locked --workspace --target "$target"

# The proof that the probes are there: every object was compiled for the BPF machine, arm64 flavour.
shopt -s nullglob
objects=("${CARGO_TARGET_DIR:-target}/$target"/debug/build/slowpath-capture-*/out/*.bpf.o)
[ ${#objects[@]} -gt 0 ] || { echo "check-aarch64: no BPF object was compiled" >&2; exit 1; }
echo "workspace and ${#objects[@]} BPF objects compile for $target"
