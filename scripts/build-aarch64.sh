#!/usr/bin/env bash
# Builds slowpath for aarch64: target/aarch64-unknown-linux-gnu/release/slowpath, linked to the libelf and zlib of Debian 12.
#
#   scripts/build-aarch64.sh [OPTION...]     options of cargo build in place of --release, e.g. --profile dev
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { echo "build-aarch64: $1" >&2; exit 3; }
. scripts/aarch64.sh
# By another name than before the archive's signature was checked: what was unpacked then is not linked any more.
libraries=target/aarch64-signed-libraries
if [ ! -e "$libraries/usr/lib/aarch64-linux-gnu/libz.a" ]; then
    python3 bench/accept/debian_archive.py arm64 bookworm "$libraries" libelf1 libelf-dev zlib1g zlib1g-dev
fi
flags="-L native=$PWD/$libraries/usr/lib/aarch64-linux-gnu -L native=$PWD/$libraries/lib/aarch64-linux-gnu"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="$flags"
cargo build --locked --target "$target" -p slowpath-cli -p slowpath-fix --bin slowpath --bin slowpath-preload "${@:---release}"
