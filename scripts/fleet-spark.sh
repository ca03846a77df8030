#!/usr/bin/env bash
# Runs slowpath-fleet on a real Spark cluster: a standalone master and two workers on loopback (fleet/cluster/).
#
#   scripts/fleet-spark.sh [PYTEST ARGUMENT...]
#
# Needs Java 17 and, the first time, 450 MB from PyPI. The environment is target/fleet-spark-venv.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=target/fleet-spark-venv
locks=(fleet/requirements.txt fleet/requirements-spark.txt)
pip() { "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir "$@" </dev/null; }
java=$(readlink -f "${JAVA_HOME:-/usr/lib/jvm/java-17-openjdk-$(dpkg --print-architecture)}/bin/java" || true)
if [ ! -x "$java" ]; then
    echo "fleet-spark: no Java 17: apt-get install openjdk-17-jre-headless, or set JAVA_HOME" >&2
    exit 3
fi
if ! cat "${locks[@]}" | cmp -s - "$venv/requirements.txt"; then
    rm -rf "$venv"
    /usr/bin/python3 -m venv "$venv"
    pip --require-hashes --only-binary :all: --no-compile -r "${locks[0]}"
    pip --require-hashes --no-deps --no-build-isolation --no-compile -r "${locks[1]}"
    pip --no-deps --no-build-isolation -e fleet
    cat "${locks[@]}" >"$venv/requirements.txt"
fi
export JAVA_HOME=${java%/bin/java}
cd fleet
exec ../target/fleet-spark-venv/bin/pytest -W ignore::Warning cluster/test_spark.py "$@"
