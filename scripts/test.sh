#!/usr/bin/env bash
# Everything CI runs, cheap things first; stops at the first failure.
#
#   scripts/test.sh [STEP...]     only these steps, e.g. scripts/test.sh format clippy
set -euo pipefail
cd "$(dirname "$0")/.."
# No step waits for an answer.
exec </dev/null

all=(packages format page page-tests python-tools dependencies clippy rust aarch64)

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

step_python_tools() { scripts/python-tools.sh; }

step_dependencies() { scripts/cargo-deny.sh; }

step_clippy() { cargo clippy --quiet --locked --workspace --all-targets -- -D warnings; }

# Perfetto's published definitions read back what slowpath exports.
step_rust() {
    SLOWPATH_TEST_PYTHON="$PWD/target/venv/bin/python" scripts/rust_tests.py --workspace --no-fail-fast
}

step_aarch64() { scripts/check-aarch64.sh; }

total=$SECONDS
summary=""
steps=("${@:-${all[@]}}")
for step in "${steps[@]}"; do
    run="step_${step//-/_}"
    if ! declare -F "$run" >/dev/null; then
        echo "test: no step $step (${all[*]})" >&2
        exit 2
    fi
    began=$SECONDS
    printf '\n=== %s\n' "$step"
    # In a subshell of its own, with -e in force (it is not inside an `if`).
    set +e
    (set -e; "$run")
    status=$?
    set -e
    took=$((SECONDS - began))
    if [ "$status" -ne 0 ]; then
        printf '=== %s FAILED with status %d after %d s\n' "$step" "$status" "$took" >&2
        exit 1
    fi
    printf '=== %s: %d s\n' "$step" "$took"
    summary+=$(printf '%6d s  %s' "$took" "$step")$'\n'
done
printf '\n=== all steps passed\n%s%6d s  total\n' "$summary" "$((SECONDS - total))"
