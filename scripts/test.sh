#!/usr/bin/env bash
# Everything CI runs, cheap things first; stops at the first failure.
#
#   scripts/test.sh [STEP...]     only these steps, one after the other, e.g. scripts/test.sh format clippy; clippy-here, types and
#                                 unit are of `make check`
set -euo pipefail
cd "$(dirname "$0")/.."
# No step waits for an answer.
exec </dev/null

# In this order. Those beside wait for browsers, servers and downloads half of the time: they run while the workspace is compiled, which
# keeps every CPU busy. What they print is shown when all is compiled, and no test of Rust runs before. The last tests of Rust leave a
# third of the CPUs, which the fleet takes.
first=(packages page)
beside=(format dependencies page-tests python-tools)
compiled=(clippy build)
command=(rust-command)
leaving=(fleet)
last=(rust-others)

step_packages() { scripts/install-packages.sh test; }

step_format() { cargo fmt --all --check; }

# The report crate takes the page in when it is compiled, so the page comes before clippy.
step_page() { scripts/report-ui.sh; }

step_page_tests() {
    cd report-ui
    npm run --silent typecheck
    npm run --silent licenses
    npm test --silent
    npm run --silent test:browser
}

# Environments from lock files: of tests, and of the Python package for field data.
step_python_tools() {
    scripts/python-tools.sh
    scripts/fleet-python.sh
}

# That package: style, types, tests.
step_fleet() {
    scripts/fleet-python.sh
    cd fleet
    ../target/fleet-venv/bin/ruff format --check --quiet
    ../target/fleet-venv/bin/ruff check --quiet
    ../target/fleet-venv/bin/mypy --cache-dir ../target/fleet-venv/mypy
    # The modules that other programs load are one file each.
    local of_programs="../crates/guard-c/python ../crates/zygote/python ../crates/fix/src/preload_in_zygote"
    ../target/fleet-venv/bin/ruff check --quiet $of_programs
    ../target/fleet-venv/bin/ruff format --check --quiet $of_programs
    for module in ../crates/guard-c/python ../crates/zygote/python/slowpath_zygote.py ../crates/fix/src/preload_in_zygote/sitecustomize.py; do
        ../target/fleet-venv/bin/mypy --cache-dir ../target/fleet-venv/mypy --strict "$module"
    done
    ../target/fleet-venv/bin/pytest --numprocesses auto --dist loadscope
}

# The fuzzers are a workspace of their own: its lock file is forgotten easily, and `make fuzz` refuses an old one.
step_dependencies() {
    scripts/cargo-deny.sh
    cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
}

step_clippy() { scripts/clippy.sh; }

# A warning is an error, as clippy has it: code for this machine alone is not seen by clippy.
step_build() {
    local output status=0
    output=$(cargo test --quiet --locked --workspace --no-run 2>&1) || status=$?
    [ -z "$output" ] || printf '%s\n' "$output"
    [ "$status" -eq 0 ] || return "$status"
    ! grep -q '^warning' <<<"$output" || { echo "build: a warning is an error here" >&2; return 1; }
}

# Perfetto's published definitions read back what slowpath exports. Comments hold no examples that would be tests (the repository's tests
# look): rustdoc takes a second or two for each crate to find that out.
step_rust() {
    SLOWPATH_TEST_PYTHON="$PWD/target/venv/bin/python" scripts/rust_tests.py "$@" --workspace --lib --bins --tests --examples
}

# The same in two parts: the longest program with what runs beside it, and the others.
step_rust_command() { step_rust --longest; }

step_rust_others() { step_rust --others; }

# The three below are those of `make check`: what a desk needs while something is written, without programs that are
# recorded, browsers and other kernels.
step_clippy_here() { scripts/clippy.sh --here; }

step_types() { cd report-ui && npm run --silent typecheck; }

# One call of cargo: another choice of packages would compile the workspace with other features once more.
step_unit() {
    scripts/rust_tests.py --workspace --lib --bins --test repository
}

took=$(mktemp)
said=$(mktemp)
# Process groups of the steps that run beside this script.
groups=()

# Whatever ends this script ends them: first in order, for a browser that a test has started is in a session of its own.
end() {
    trap '' INT TERM HUP
    local signal group
    for signal in INT KILL; do
        for group in "${groups[@]}"; do kill "-$signal" -- "-$group" 2>/dev/null || true; done
        for _ in {1..100}; do
            for group in "${groups[@]}"; do ! kill -0 -- "-$group" 2>/dev/null || { sleep 0.1; continue 2; }; done
            break 2
        done
    done
    cat "$said"
    rm -f "$took" "$said"
}
trap end EXIT

# Runs steps one after the other, up to the first that fails.
run() {
    local step run began status
    for step in "$@"; do
        run="step_${step//-/_}"
        if ! declare -F "$run" >/dev/null; then
            echo "test: no step $step (${first[*]} ${beside[*]} ${compiled[*]} ${leaving[*]} rust clippy-here types unit)" >&2
            return 2
        fi
        began=$SECONDS
        printf '\n=== %s\n' "$step"
        # In a subshell of its own, with -e in force (it is not inside an `if`).
        set +e
        (set -e; "$run")
        status=$?
        set -e
        if [ "$status" -ne 0 ]; then
            printf '=== %s FAILED with status %d after %d s\n' "$step" "$status" $((SECONDS - began)) >&2
            return 1
        fi
        printf '=== %s: %d s\n' "$step" $((SECONDS - began))
        printf '%6d s  %s\n' $((SECONDS - began)) "$step" >>"$took"
    done
}

# The same with what others leave of the CPUs (SCHED_IDLE of sched(7)), for a process of its own.
run_leaving() {
    chrt --idle --pid 0 "$BASHPID"
    run "$@"
}

# Runs a function in a process group of its own, beside this script, which hears signals meanwhile.
start() {
    set -m
    ("$@") &
    set +m
    groups+=($!)
}

# Waits for all that was started, and ends at the first that fails.
finish() {
    local ended status
    while [ ${#groups[@]} -gt 0 ]; do
        status=0
        wait -n -p ended "${groups[@]}" || status=$?
        [ "$status" -eq 0 ] || exit "$status"
        groups=($(printf '%s\n' "${groups[@]}" | grep -vx "$ended" || true))
    done
    cat "$said"
    : >"$said"
}

total=$SECONDS
if [ $# -gt 0 ]; then
    run "$@"
else
    run "${first[@]}"
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    # Browsers are timed by what they compute, not by the clock.
    SLOWPATH_TEST_BESIDE=1 start run "${beside[@]}" >"$said" 2>&1
    start run "${compiled[@]}"
    finish
    start run "${command[@]}"
    finish
    start run_leaving "${leaving[@]}" >"$said" 2>&1
    start run "${last[@]}"
    finish
fi
printf '\n=== all steps passed\n'
cat "$took"
printf '%6d s  total\n' $((SECONDS - total))
