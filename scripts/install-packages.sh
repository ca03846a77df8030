#!/usr/bin/env bash
# Installs the Debian packages that are missing; does nothing, and asks for no privilege, where all are there.
#
#   scripts/install-packages.sh [GROUP...]      groups: build (default), test, browsers, peers
set -euo pipefail

build="clang llvm libclang-dev pkg-config make gcc libc6-dev libelf-dev zlib1g-dev e2fsprogs ca-certificates"
test="chromium binutils g++ libc6-dbg xz-utils bpftool strace python3 python3-venv gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
# Allocators and a C library that programs are tested with.
test="$test libjemalloc2 libmimalloc2.0 musl-tools"
# Orders of functions are linked with it.
test="$test lld"
# Devices that a test plays are spoken to with it.
test="$test adb"
# The timeline of the report is tested in both browsers.
test="$test firefox-esr"
# Its Python modules are installed without bytecode, which nobody planted.
test="$test gdb"
# Another gRPC answers and asks ours; Google Benchmark's compare.py, which needs scipy, reads our results.
test="$test python3-grpcio libbenchmark-tools python3-scipy"
# Packages of the archive that are linked for aarch64 or boot are checked with it.
test="$test gpgv debian-archive-keyring"
# The man pages are read by man itself.
test="$test man-db"
browsers="chromium firefox-esr"
# Other tools that acceptance runs are compared with, and programs of the archive that they examine.
peers="hyperfine bpftrace linux-perf r-base-core python3-numpy imagemagick netpbm libjpeg-turbo-progs ffmpeg jq zstd poppler-utils"
# Kernels other than this machine's run in it.
peers="$peers qemu-system-x86 qemu-system-arm gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
# The one with pages of 64 KiB is built from source.
peers="$peers flex bison bc pahole"
# What `layout` is held to: instructions that ran, calls between functions, another tool's order.
peers="$peers valgrind bolt-16 dpkg-dev"
# Programs whose children a zygote forks.
peers="$peers python3-pandas perl git default-jdk-headless libllvm14 libqt5webenginecore5"
# A display for programs with windows.
peers="$peers xvfb xauth x11-utils"

wanted=""
for group in "${@:-build}"; do
    case "$group" in
        build) wanted="$wanted $build" ;;
        test) wanted="$wanted $build $test" ;;
        browsers) wanted="$wanted $build $browsers" ;;
        peers) wanted="$wanted $build $peers" ;;
        *) echo "install-packages: unknown group $group (build, test, browsers, peers)" >&2; exit 2 ;;
    esac
done
# Another source of Node.js, and for tests of Go, than Debian's package is as good.
command -v node >/dev/null && command -v npm >/dev/null || wanted="$wanted nodejs npm"
[[ " $* " != *" test "* ]] || command -v go >/dev/null || wanted="$wanted golang-go"

if ! command -v apt-get >/dev/null; then
    echo "install-packages: no apt-get here; needed are:$wanted" >&2
    exit 3
fi

missing=()
for package in $wanted; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "install-packages: neither root nor sudo; missing: ${missing[*]}" >&2; exit 3; }
        as_root=(sudo)
    fi
    echo "installing: ${missing[*]}"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
    # Package lists may be missing or stale: try, fetch them, try again.
    if ! "${apt[@]}" install --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; then
        if ! { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
            cat "$log" >&2
            echo "install-packages: apt-get failed, see above" >&2
            exit 3
        fi
    fi
fi

if ! command -v cargo >/dev/null; then
    echo "install-packages: cargo is missing; install Rust 1.95 or later from https://rustup.rs" >&2
    exit 3
fi
node_major=$(node -p 'process.versions.node.split(".")[0]')
if [ "$node_major" -lt 20 ]; then
    echo "install-packages: Node.js $(node --version) is too old; the report's page is built with version 20 or later (https://nodejs.org)" >&2
    exit 3
fi
