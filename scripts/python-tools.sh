#!/usr/bin/env bash
# Makes the Python environment of the tests in target/venv; does nothing where it is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=target/venv
requirements=scripts/python-requirements.txt
if cmp -s "$requirements" "$venv/requirements.txt"; then
    exit 0
fi
rm -rf "$venv"
# Debian's own interpreter: another one in a home directory may be unreadable for other users.
/usr/bin/python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$requirements" </dev/null
cp "$requirements" "$venv/requirements.txt"
