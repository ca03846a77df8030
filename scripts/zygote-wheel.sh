#!/usr/bin/env bash
# Makes the wheel of the Python module slowpath_zygote, with its library in it.
#
#   scripts/zygote-wheel.sh LIBRARY DIRECTORY     LIBRARY is a libslowpath_zygote_c.so; the wheel goes to DIRECTORY
#
# Builds with the setuptools of target/fleet-venv, which scripts/fleet-python.sh makes.
set -euo pipefail
cd "$(dirname "$0")/.."
library=$(realpath "$1")
mkdir -p "$2"
directory=$(realpath "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
package=$stage/slowpath_zygote
mkdir "$package"
cp crates/zygote/python/wheel/{pyproject.toml,setup.py} "$stage"
cp crates/zygote/python/slowpath_zygote.py "$package/__init__.py"
cp "$library" "$package/libslowpath_zygote_c.so"
touch "$package/py.typed"
target/fleet-venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index \
    --wheel-dir "$directory" "$stage" </dev/null
