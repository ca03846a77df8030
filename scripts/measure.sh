#!/usr/bin/env bash
# Runs measurements and keeps what they print, with machine and date, in docs/measurements.
#
#   scripts/measure.sh bench [NAME...]      every bench/NAME/run: side by side with other tools
#   scripts/measure.sh accept [NAME...]     every bench/accept/NAME: the long acceptance runs
#
# What stands behind `--` is given to the runs, such as a seed that none had before: scripts/measure.sh accept context-blind -- SEED
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:?bench or accept}
shift
export SLOWPATH=${SLOWPATH:-$PWD/target/release/slowpath}
names=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    names+=("$1")
    shift
done
shift $(($# > 0))
shopt -s nullglob
case "$kind" in
    bench) runs=(bench/*/run) ;;
    accept) runs=(bench/accept/*) ;;
    *) echo "measure: $kind is neither bench nor accept" >&2; exit 2 ;;
esac

machine() {
    echo "- date: $(date -u +%Y-%m-%dT%H:%MZ)"
    echo "- slowpath: $(git describe --always --dirty 2>/dev/null || echo unknown)"
    echo "- kernel: $(uname -sr), $(uname -m)"
    echo "- CPUs: $(nproc), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
    echo "- memory: $(awk '/^MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)"
    echo "- virtual machine: $(systemd-detect-virt 2>/dev/null || true)"
    echo "- storage of this directory: $(findmnt -n -o SOURCE,FSTYPE -T . | tr -s ' ')"
    echo "- load before: $(cut -d' ' -f1-3 /proc/loadavg)"
}

failed=0
for run in "${runs[@]}"; do
    [ -x "$run" ] && [ -f "$run" ] || continue
    case "$kind" in
        bench) name=$(basename "$(dirname "$run")") ;;
        accept) name=$(basename "$run") ;;
    esac
    if [ ${#names[@]} -gt 0 ] && [[ " ${names[*]} " != *" $name "* ]]; then
        continue
    fi
    result=docs/measurements/$(date -u +%Y-%m-%dT%H%M)-$name.md
    echo "--- $run $* -> $result"
    began=$SECONDS
    status=0
    # Progress goes to standard error; standard output is the result.
    body=$("$run" "$@" </dev/null) || status=$?
    {
        echo "# $name"
        echo
        machine
        [ $# -eq 0 ] || echo "- arguments: $*"
        echo "- took: $((SECONDS - began)) s, exit status $status"
        echo
        printf '%s\n' "$body"
    } >"$result"
    printf '%s\n' "$body"
    [ "$status" -eq 0 ] || { echo "--- $name failed with status $status" >&2; failed=1; }
done
exit "$failed"
