#!/usr/bin/env bash
# The C compiler for aarch64 while clippy looks at Rust: libraries in C from elsewhere have to be there, not to run, and each of their
# files is compiled as an empty one. What is in C here is compiled as it is.
#
#   scripts/cc-for-clippy.sh ARGUMENT...        those of gcc
set -euo pipefail
arguments=()
for argument in "$@"; do
    # Cargo starts what builds a package in the package's own directory.
    case "$PWD $argument" in
        */registry/src/*\ *.c | */registry/src/*\ *.S) arguments+=(-x c /dev/null) ;;
        *) arguments+=("$argument") ;;
    esac
done
exec aarch64-linux-gnu-gcc "${arguments[@]}"
