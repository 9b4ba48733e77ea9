#!/bin/bash
# reader.sh -- the tuner of `heddle data tune` beside a grid of depths and sizes, and how long steps of a run
# wait, over several stores. At most four minutes in all, with a release build; on a machine that does nothing
# else, or the figures say nothing.
#
#	bench/reader.sh                  # the table of docs/results/reader.md
#
# Each row is a store. `tuned`: throughput with the knobs that the tuner kept; `best`: of the grid (depths 1,
# 4, 16, 64, sizes 64 KiB, 512 KiB, 4 MiB); both are medians of three turns, in which all rows of the grid and
# the tuner's knobs follow one another. `ratio` is tuned over best: 1 and above the grid has nothing better.
# `naive` is depth 1 with 64 KiB, as a loop of reads does; `gain` is tuned over naive. `step_ms` and
# `wait_ms`: a step of a small model over a tar shard in that store, and how long it waited for its rows,
# means of the second half of 200 steps. A part of a row that takes longer than its limit is a dash.
#
#	HD_BENCH_BYTES     length of the file (default: 256 MiB; objects: a quarter of it)
#	HD_BENCH_DIR       where it lies, a file system with direct reads (default: .)
#	HD_BENCH_ROW_S     most seconds of a row (default: 36, of which the tuner gets a third)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
bytes=${HD_BENCH_BYTES:-268435456}
row_s=${HD_BENCH_ROW_S:-36}
work=$(mktemp -d -p "${HD_BENCH_DIR:-.}")
server=
trap '[ -z "$server" ] || kill $server; rm -rf "$work"' EXIT
mkdir "$work/data"
head -c "$bytes" /dev/urandom >"$work/data/file"
head -c $((bytes / 4)) "$work/data/file" >"$work/data/object"
python3 - "$work/data" <<'END'
import io, sys, tarfile
with tarfile.open(sys.argv[1] + "/shard.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
    def add(name, body):
        info = tarfile.TarInfo(name)
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
    for i in range(1024):
        add("%06d.raw" % i, bytes(4096) + b"\0\0\x80\x3f" * 3072)
        add("%06d.cls" % i, b"%d" % (i % 4))
END
cat >"$work/job.yaml" <<END
job: {name: reader, seed: 3, steps: 200}
model: {use: "builtin:mlp", args: {input: [1, 64, 64], hidden: [16], classes: 4}}
data: {kind: webdataset, path: $work/data/shard.tar}
batch: {global: 64, virtual_nodes: 4}
optim: {kind: momentum, lr: 1e-4, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps}
END
python3 tests/store_server.py "$work/data" "$work/where" &
server=$!
until [ -s "$work/where" ]; do read -r -t 0.1 <> <(:) || :; done
at=$(cat "$work/where")
export AWS_ENDPOINT_URL=$at AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret-of-the-test

row()           # NAME STORE SHARD [OPTION...]
{
	rm -rf "$work/run" "$work/tuned"
	timeout $((row_s * 3 / 4)) "$heddle" data tune "$2" --sweep --json --for $((row_s * 1000 / 3)) \
		"${@:4}" >"$work/tuned" || :
	timeout $((row_s / 4)) "$heddle" run "$work/job.yaml" --out "$work/run" -q -s data.path="$3" \
		"${@:4}" || :
	python3 - "$1" "$work/tuned" "$work/run/metrics.ndjson" <<'END'
import json, sys
name, tuned, steps = sys.argv[1:]
mb = lambda g: g["bytes_s"] / 1e6
text = lambda g: "%dx%dK" % (g["depth"], g["size_bytes"] >> 10)
try:
    got = json.load(open(tuned))
    *grid, kept = got["sweep"]
    best = max(grid, key=lambda g: g["bytes_s"])
    naive = next(g for g in grid if (g["depth"], g["size_bytes"]) == (1, 65536))
    cells = "%9.1f %-9s %9.1f %-9s %5.2f %9.1f %7.2f %7d" % (mb(kept), text(kept), mb(best), text(best),
        mb(kept) / mb(best), mb(naive), mb(kept) / mb(naive), got["samples"])
except ValueError:
    cells = "%9s %-9s %9s %-9s %5s %9s %7s %7s" % (("-",) * 8)
try:
    lines = [json.loads(line) for line in open(steps)]
    lines = [line for line in lines if "read_wait_ms" in line]
    assert len(lines) == 200
    mean = lambda key: sum(line[key] for line in lines[100:]) / 100
    cells += " %8.2f %8.3f" % (mean("step_ms"), mean("read_wait_ms"))
except (OSError, ValueError, AssertionError):
    cells += " %8s %8s" % ("-", "-")
print("%-22s %s" % (name, cells))
END
}
stamp
with_load
printf '%-22s %9s %-9s %9s %-9s %5s %9s %7s %7s %8s %8s\n' store tuned_MBs '' best_MBs '' ratio \
	naive_MBs gain samples step_ms wait_ms
row 'page cache' "$work/data/file" "$work/data/shard.tar"
row 'file, O_DIRECT' "$work/data/file" "$work/data/shard.tar" -s data.direct=always
row 'HTTP' "$at/object" "$at/shard.tar"
echo 20 >"$work/data/.delay_ms"
row 'HTTP, 20 ms' "$at/object" "$at/shard.tar"
row 'S3, 20 ms' s3://bucket/object s3://bucket/shard.tar
rm "$work/data/.delay_ms"
echo 100 >"$work/data/.rate_mb"
row 'HTTP, 100 MB/s in all' "$at/object" "$at/shard.tar"
