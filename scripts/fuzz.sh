#!/usr/bin/env bash
# Coverage-guided fuzzing of every parser of foreign data (fuzz/README.md lists them).
#
#   scripts/fuzz.sh run [TARGET...]        fuzz each for SECONDS_EACH (600), JOBS (2) at a time; a table goes to docs/measurements
#   scripts/fuzz.sh minimise [TARGET...]   of what runs found, keep in fuzz/corpus what covers most
#   scripts/fuzz.sh list                   the targets, with the longest input of each
#
# Inputs that a run finds stay in target/fuzz/corpus, and the next run begins with them. An input that crashes a parser, takes 10 s or
# 1 GiB ends its fuzzer, lies in fuzz/artifacts/TARGET, and belongs into fuzz/regressions/TARGET with the change that mends it:
# `cargo test -p slowpath-foreign-data` runs all of them with the stable compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo_fuzz=0.13.2
each=${SECONDS_EACH:-600}
jobs=${JOBS:-2}
# A corpus in the repository has at most this many bytes: two dozen of them are part of every clone.
most_kept=$((80 * 1024))
triple=$(rustc -vV | sed -n 's/^host: //p')
found=target/fuzz/corpus

# Name and longest input of every target, from the one list there is.
declare -A longest
while read -r name bytes; do
    longest[$name]=${bytes//_/}
done < <(tr '\n' ' ' <crates/foreign-data/src/lib.rs | grep -oE 'target\( *"[a-z_]+", *[0-9_]+' | sed 's/.*"\([a-z_]*\)", */\1 /')
all=(fuzz/fuzz_targets/*.rs)
if [ "${#longest[@]}" -ne "${#all[@]}" ]; then
    echo "fuzz: ${#longest[@]} targets in crates/foreign-data/src/lib.rs, ${#all[@]} in fuzz/fuzz_targets" >&2
    exit 2
fi

toolchain() {
    local pinned
    pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' fuzz/rust-toolchain.toml)
    if ! rustup run "$pinned" rustc --version >/dev/null 2>&1 && ! rustup toolchain install "$pinned" --profile minimal >&2; then
        echo "fuzz: $pinned cannot be installed; using the nightly that is here" >&2
        pinned=nightly
    fi
    echo "$pinned"
}

# The fuzzers that are named, built by the pinned tools.
build() {
    nightly=$(toolchain)
    local tools=$PWD/target/tools
    if [ "$("$tools/bin/cargo-fuzz" --version 2>/dev/null)" != "cargo-fuzz $cargo_fuzz" ]; then
        echo "building cargo-fuzz $cargo_fuzz (once)"
        CARGO_TARGET_DIR=$tools/build CARGO_PROFILE_DEV_DEBUG=0 \
            cargo install --quiet --locked --debug --root "$tools" --version "=$cargo_fuzz" cargo-fuzz </dev/null
        rm -rf "$tools/build"
    fi
    echo "rustc: $(rustup run "$nightly" rustc --version), cargo-fuzz $cargo_fuzz"
    # cargo-fuzz has no --locked.
    cp fuzz/Cargo.lock target/fuzz/Cargo.lock
    local name
    for name in "$@"; do
        PATH=$tools/bin:$PATH rustup run "$nightly" cargo fuzz build "$name"
    done
    cmp -s fuzz/Cargo.lock target/fuzz/Cargo.lock || { echo "fuzz: fuzz/Cargo.lock is not up to date; it was changed" >&2; exit 2; }
}

# One fuzzer, without its messages: they are in target/fuzz/TARGET.log.
fuzzer() {
    local name=$1
    shift
    ASAN_OPTIONS=detect_odr_violation=0:detect_leaks=0 nice -n 19 "fuzz/target/$triple/release/$name" \
        -rss_limit_mb=1024 -timeout=10 -max_len="${longest[$name]}" -detect_leaks=0 \
        -artifact_prefix="fuzz/artifacts/$name/" "$@" </dev/null
}

# Runs one target and leaves its row of the table in target/fuzz/TARGET.row.
run_one() {
    local name=$1 log=target/fuzz/$1.log status=0
    mkdir -p "$found/$name" "fuzz/artifacts/$name"
    local seeds=("$found/$name" "fuzz/corpus/$name")
    [ ! -d "fuzz/regressions/$name" ] || seeds+=("fuzz/regressions/$name")
    fuzzer "$name" -max_total_time="$each" -print_final_stats=1 "${seeds[@]}" >"$log" 2>&1 || status=$?
    awk -v name="$name" -v status="$status" '
        /^#[0-9]+.* cov: / {
            for (i = 1; i < NF; i++) {
                if ($i == "cov:") edges = $(i + 1)
                if ($i == "ft:") features = $(i + 1)
                if ($i == "corp:") { split($(i + 1), part, "/"); inputs = part[1]; bytes = part[2] }
            }
        }
        /^stat::number_of_executed_units:/ { units = $2 }
        /^stat::average_exec_per_sec:/ { rate = $2 }
        /^stat::peak_rss_mb:/ { rss = $2 }
        /^#[0-9]+/ { seen = substr($1, 2) }
        /ERROR: libFuzzer: timeout/ { why = "took 10 s" }
        /ERROR: libFuzzer: out-of-memory/ { why = "took 1 GiB" }
        /Test unit written to/ { input = $NF }
        /panicked at|ERROR: AddressSanitizer/ { if (why == "") why = $0 }
        END {
            if (units == "") units = seen
            result = status == 0 ? "no finding" : "FOUND: " (why == "" ? "status " status : why) " (" input ")"
            gsub(/\|/, "/", result)
            printf "| %s | %s | %s | %s | %s | %s, %s | %s | %s |\n", name, units, rate, edges, features, inputs, bytes, rss, result
        }' "$log" >"target/fuzz/$name.row"
    cat "target/fuzz/$name.row"
    return "$status"
}

run() {
    build "$@"
    local head="| Target | Executions | per s | Edges | Features | Corpus | Peak RSS (MiB) | Result |" failed=0 running=0 name
    echo "$head"
    for name in "$@"; do
        if [ "$running" -ge "$jobs" ]; then
            wait -n || failed=1
            running=$((running - 1))
        fi
        rm -f "target/fuzz/$name.row"
        run_one "$name" &
        running=$((running + 1))
    done
    while [ "$running" -gt 0 ]; do
        wait -n || failed=1
        running=$((running - 1))
    done
    local table
    table=docs/measurements/$(date -u +%Y-%m-%dT%H%M)-fuzz.md
    {
        echo "# fuzz"
        echo
        echo "- date: $(date -u +%Y-%m-%dT%H:%MZ)"
        echo "- slowpath: $(git describe --always --dirty 2>/dev/null || echo unknown)"
        echo "- rustc: $(rustup run "$nightly" rustc --version), cargo-fuzz $cargo_fuzz, address sanitizer, overflow checks"
        echo "- CPUs: $(nproc), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
        echo "- each target: $each s, $jobs at a time; ended by a crash, by 10 s for one input, by 1 GiB of memory"
        echo
        echo "$head"
        echo "|---|---|---|---|---|---|---|---|"
        for name in "$@"; do cat "target/fuzz/$name.row"; done
    } >"$table"
    echo "fuzz: $table"
    return "$failed"
}

minimise() {
    build "$@"
    local name
    for name in "$@"; do
        local kept=target/fuzz/kept/$name
        rm -rf "$kept"
        mkdir -p "$kept" "$found/$name" "fuzz/corpus/$name"
        fuzzer "$name" -set_cover_merge=1 "$kept" "fuzz/corpus/$name" "$found/$name" >"target/fuzz/$name.log" 2>&1
        rm -rf "fuzz/corpus/$name"
        mkdir -p "fuzz/corpus/$name"
        # The smallest first: of many inputs that cover little each, more fit.
        local file size sum=0
        while read -r size file; do
            sum=$((sum + size))
            [ "$sum" -le "$most_kept" ] || break
            cp "$kept/$file" "fuzz/corpus/$name/$file"
        done < <(find "$kept" -type f -printf '%s %f\n' | sort -n)
        echo "$name: $(find "fuzz/corpus/$name" -type f | wc -l) of $(find "$kept" -type f | wc -l) inputs that cover something"
    done
}

command=${1:-run}
if [ "$command" = list ]; then
    for name in "${!longest[@]}"; do echo "$name ${longest[$name]}"; done | LC_ALL=C sort
    exit
fi
mkdir -p target/fuzz
[ $# -eq 0 ] || shift
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(basename -s .rs "${all[@]}")
for name in "${names[@]}"; do
    [ -n "${longest[$name]:-}" ] || { echo "fuzz: no target $name" >&2; exit 2; }
done
case "$command" in
    run) run "${names[@]}" ;;
    minimise) minimise "${names[@]}" ;;
    *) echo "fuzz: $command is none of run, minimise and list" >&2; exit 2 ;;
esac
