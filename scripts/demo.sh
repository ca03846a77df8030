#!/usr/bin/env bash
# Diagnoses the cold start of a program that every Debian machine has, as an ordinary user, into ./demo-report.
set -euo pipefail
cd "$(dirname "$0")/.."
out=demo-report
slowpath=target/release/slowpath

# sudo names the user it was called by; a root shell has none, so the program runs as nobody: root hides permissions.
as_root=()
identity=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
elif [ -z "${SUDO_UID:-}" ]; then
    identity=(--user nobody)
fi

# Only what an earlier demo made is removed.
if [ -e "$out" ]; then
    if [ ! -f "$out/report.html" ] && ! compgen -G "$out/*/manifest.json" >/dev/null && [ -n "$(ls -A "$out")" ]; then
        echo "demo: $PWD/$out is no earlier demo; move it away first" >&2
        exit 2
    fi
    rm -rf "$out"
fi

imports="asyncio, concurrent.futures, csv, ctypes, decimal, difflib, email.mime.multipart, http.server, json, logging.config"
imports="$imports, multiprocessing, pdb, sqlite3, ssl, tarfile, unittest.mock, urllib.request, xml.etree.ElementTree, zipfile"

"${as_root[@]}" "$slowpath" diagnose --cold --ready exit -o "$out" "${identity[@]}" "$@" \
    -- /usr/bin/python3 -c "import $imports"
echo
echo "The report: $PWD/$out/report.html"
