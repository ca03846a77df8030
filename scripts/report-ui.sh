#!/usr/bin/env bash
# Builds report-ui/dist/report.html where a source is newer than it, and installs the build tools where the lock file is
# newer than they are.
set -euo pipefail
cd "$(dirname "$0")/../report-ui"

if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    npm ci --silent --no-audit --no-fund </dev/null
    # npm keeps the time of an unchanged file.
    touch node_modules/.package-lock.json
fi
if [ ! -f dist/report.html ] ||
    [ -n "$(find src build.mjs package.json package-lock.json -newer dist/report.html -print -quit)" ]; then
    npm run --silent build </dev/null
fi
