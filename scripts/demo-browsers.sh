#!/usr/bin/env bash
# Cold starts of Chromium and Firefox, up to the first script of a page, side by side, into ./demo-browsers.
set -euo pipefail
cd "$(dirname "$0")/.."
slowpath=$PWD/target/release/slowpath
out=$PWD/demo-browsers
as_root=()
identity=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
elif [ -z "${SUDO_UID:-}" ]; then
    # Browsers refuse their sandbox to root, and what root sees is not what users see.
    identity=(--user nobody)
fi
rm -rf "$out"
mkdir -p "$out"

# Every launch gets a new directory for its profile and its temporary files: `{tmp}`.
diagnose() {
    local name=$1
    shift
    echo "--- $name"
    "${as_root[@]}" "$slowpath" diagnose --cold --ready browser --env 'TMPDIR={tmp}' -o "$out/$name" \
        "${identity[@]}" -- "$@"
}

diagnose chromium /usr/lib/chromium/chromium --headless --disable-gpu --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --disable-quic '--user-data-dir={tmp}' '{url}'
diagnose firefox /usr/lib/firefox-esr/firefox-esr --headless --no-remote --profile '{tmp}' '{url}'

echo
for name in chromium firefox; do
    echo "The report of $name: $out/$name/report.html"
done
