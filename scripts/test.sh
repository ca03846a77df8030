#!/usr/bin/env bash
# Everything CI runs, cheap things first; stops at the first failure.
#
#   scripts/test.sh [STEP...]     only these steps, e.g. scripts/test.sh format clippy; types and unit are of `make check`
set -euo pipefail
cd "$(dirname "$0")/.."
# No step waits for an answer.
exec </dev/null

all=(packages format page page-tests python-tools fleet dependencies clippy rust aarch64)

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

# The Python package for field data: its environment from the lock file, style, types, tests.
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
    ../target/fleet-venv/bin/pytest
}

# The fuzzers are a workspace of their own: its lock file is forgotten easily, and `make fuzz` refuses an old one.
step_dependencies() {
    scripts/cargo-deny.sh
    cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
}

step_clippy() { cargo clippy --quiet --locked --workspace --all-targets -- -D warnings; }

# Perfetto's published definitions read back what slowpath exports.
step_rust() {
    SLOWPATH_TEST_PYTHON="$PWD/target/venv/bin/python" scripts/rust_tests.py --workspace --no-fail-fast
}

# The two below are those of `make check`: what a desk needs while something is written, without programs that are
# recorded, browsers and other kernels.
step_types() { cd report-ui && npm run --silent typecheck; }

# One call of cargo: another choice of packages would compile the workspace with other features once more.
step_unit() {
    scripts/rust_tests.py --workspace --no-fail-fast --lib --bins \
        --test layering --test dependencies --test docs --test gaps --test naming --test prose
}

step_aarch64() { scripts/check-aarch64.sh; }

total=$SECONDS
summary=""
steps=("${@:-${all[@]}}")
for step in "${steps[@]}"; do
    run="step_${step//-/_}"
    if ! declare -F "$run" >/dev/null; then
        echo "test: no step $step (${all[*]} types unit)" >&2
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
