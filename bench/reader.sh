#!/bin/bash
# reader.sh -- the tuner of `heddle data tune` beside a whole grid of depths and sizes, over several stores.
#
#	bench/reader.sh                  # the table of docs/results/reader.md
#
# Each row is a store. `tuned`: throughput with the knobs that the tuner kept; `best`: of the grid (depths 1,
# 4, 16, 64, sizes 16 KiB to 4 MiB); both are medians of three turns, in which all rows of the grid and the
# tuner's knobs follow one another. `ratio` is tuned over best: 1 and above the grid has nothing better.
# `naive` is depth 1 with 64 KiB, as a loop of reads does; `gain` is tuned over naive.
#
#	HD_BENCH_BYTES     length of the file (default: 256 MiB; objects: a quarter of it)
#	HD_BENCH_DIR       where it lies, a file system with direct reads (default: .)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
bytes=${HD_BENCH_BYTES:-268435456}
work=$(mktemp -d -p "${HD_BENCH_DIR:-.}")
server=
trap '[ -z "$server" ] || kill $server; rm -rf "$work"' EXIT
mkdir "$work/data"
head -c "$bytes" /dev/urandom >"$work/data/file"
head -c $((bytes / 4)) "$work/data/file" >"$work/data/object"
python3 tests/store_server.py "$work/data" "$work/where" &
server=$!
until [ -s "$work/where" ]; do read -r -t 0.1 <> <(:) || :; done
at=$(cat "$work/where")
export AWS_ENDPOINT_URL=$at AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret-of-the-test

row()           # NAME STORE [OPTION...]
{
	"$heddle" data tune "$2" --sweep --json "${@:3}" | python3 -c '
import json, sys
got = json.load(sys.stdin)
*grid, kept = got["sweep"]
best = max(grid, key=lambda g: g["bytes_s"])
naive = next(g for g in grid if (g["depth"], g["size_bytes"]) == (1, 65536))
mb = lambda g: g["bytes_s"] / 1e6
text = lambda g: "%dx%dK" % (g["depth"], g["size_bytes"] >> 10)
print("%-22s %9.1f %-9s %9.1f %-9s %5.2f %9.1f %6.2f %7d" % (sys.argv[1], mb(kept), text(kept), mb(best),
    text(best), mb(kept) / mb(best), mb(naive), mb(kept) / mb(naive), got["samples"]))' "$1"
}
stamp
printf '%-22s %9s %-9s %9s %-9s %5s %9s %6s %7s\n' store tuned_MBs '' best_MBs '' ratio naive_MBs gain samples
row 'page cache' "$work/data/file"
row 'file, direct' "$work/data/file" -s data.direct=always
row 'HTTP' "$at/object"
echo 20 >"$work/data/.delay_ms"
row 'HTTP, 20 ms' "$at/object"
row 'S3, 20 ms' s3://bucket/object
rm "$work/data/.delay_ms"
echo 20 >"$work/data/.rate_mb"
row 'HTTP, 20 MB/s in all' "$at/object"
