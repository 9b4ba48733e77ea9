#!/bin/bash
# reader.sh -- the tuner of `heddle data tune` beside an exhaustive sweep, and how long steps of a run wait,
# over several stores. Some twenty minutes, with a release build.
#
#	bench/reader.sh                  # the table of docs/results/reader.md
#	bench/reader.sh 'HTTP'           # rows that match
#
# Each row is a store. `tuned`: throughput with the knobs that the tuner kept; `best`: with those that were
# best of a sweep over all depths (1 to 256) and sizes (16 KiB to 8 MiB) whose product is within 128 MiB, all
# in turns, medians of three. Both are medians of 15 more turns of these two alone, since the most of 80
# medians is more than what it is of; `ratio` is the median of their 15 ratios, behind it the middle half.
# `naive` is depth 1 with 64 KiB, as a loop of reads does; `gain` is tuned over naive.
# `needs`: what a run reads, MB/s, of 64 samples of 16 KiB a step from a tar shard in that store; `step_ms`,
# `wait_ms`: a step of it and how long it waited for its rows, medians of the last third of 300 steps; `mean`:
# the mean of these waits. A part of a row that takes longer than its limit is a dash.
#
# Stores beyond files: bench/store.c, a server in C. The throttled disk is one of a control group (blkio or
# io.max), read past the page cache; without that controller, or as another user than root, it is left out.
# Where it may, all runs at high priority, so that what else the machine does disturbs less.
#
#	HD_BENCH_BYTES     length of the file and the object (default: 512 MiB: no call reads a place twice)
#	HD_BENCH_DIR       where it lies, a file system with direct reads (default: .)
#	HD_BENCH_FOR_MS    most that the tuner gets (default: 25000)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
heddle=$(realpath "$heddle")
bytes=${HD_BENCH_BYTES:-536870912}
for_ms=${HD_BENCH_FOR_MS:-25000}
pattern=${1:-}
work=$(realpath "$(mktemp -d -p "${HD_BENCH_DIR:-.}")")
server=
group=
first=
serving=
if nice -n -15 true 2>/dev/null && [ "$(nice -n -15 nice 2>/dev/null)" -lt 0 ]; then
	first="nice -n -15"
	serving="nice -n -16"
fi
stop() { [ -z "$server" ] || { kill "$server"; wait "$server" 2>/dev/null || :; }; server=; }
trap 'stop; [ -z "$group" ] || rmdir "$group" || :; rm -rf "$work"' EXIT
mkdir "$work/data"
head -c "$bytes" /dev/urandom >"$work/data/file"
ln "$work/data/file" "$work/data/object"
python3 - "$work/data" <<'END'
import io, sys, tarfile
with tarfile.open(sys.argv[1] + "/shard.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
    def add(name, body):
        info = tarfile.TarInfo(name)
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
    for i in range(4096):
        add("%06d.raw" % i, bytes(4096) + b"\0\0\x80\x3f" * 3072)
        add("%06d.cls" % i, b"%d" % (i % 4))
END
cat >"$work/job.yaml" <<END
job: {name: reader, seed: 3, steps: 300}
model: {use: "builtin:mlp", args: {input: [1, 64, 64], hidden: [2048], classes: 4}}
data: {kind: webdataset, path: $work/data/shard.tar, split: {train: 1, valid: 0}}
batch: {global: 64, virtual_nodes: 4}
optim: {kind: momentum, lr: 1e-4, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps}
END
"${CC:-cc}" -O2 -pthread -o "$work/store" bench/store.c
export AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret-of-the-test

serve()         # DELAY_MS RATE_MB EACH_MB
{
	stop
	rm -f "$work/where"
	$serving "$work/store" "$work/data" "$work/where" "$@" &
	server=$!
	until [ -s "$work/where" ]; do read -r -t 0.1 <> <(:) || :; done
	at=$(cat "$work/where")
	export AWS_ENDPOINT_URL=$at
}

# throttle MB_S: a control group whose processes read so much from the disk of $work; 1: there is none
throttle()
{
	local source disk device root=/sys/fs/cgroup
	source=$(findmnt -no SOURCE -T "$work")
	disk=$(lsblk -no PKNAME "$source" 2>/dev/null | sed -n 1p)
	device=$(lsblk -dno MAJ:MIN "${disk:+/dev/}${disk:-$source}" 2>/dev/null | tr -d ' ')
	[ -n "$device" ] || return 1
	if [ -e $root/blkio/blkio.throttle.read_bps_device ]; then
		group=$root/blkio/hdbench$$
		mkdir "$group" 2>/dev/null || { group=; return 1; }
		echo "$device $(($1 * 1000000))" >"$group/blkio.throttle.read_bps_device"
	elif grep -qw io "$root/cgroup.controllers" 2>/dev/null; then
		group=$root/hdbench$$
		mkdir "$group" 2>/dev/null || { group=; return 1; }
		echo "$device rbps=$(($1 * 1000000))" >"$group/io.max" 2>/dev/null
	else
		return 1
	fi
}

# in the control group, if there is one
within() { (if [ -n "$group" ]; then echo "$BASHPID" >"$group/cgroup.procs"; fi; exec $first "$@"); }

row()           # NAME STORE SHARD [OPTION...]
{
	rm -rf "$work/run" "$work/tuned"
	within timeout 200 "$heddle" data tune "$2" --sweep --json --for "$for_ms" "${@:4}" \
		>"$work/tuned" || :
	within timeout 60 "$heddle" run "$work/job.yaml" --out "$work/run" -q --devices 1 -s data.path="$3" \
		"${@:4}" || :
	python3 - "$1" "$work/tuned" "$work/run/metrics.ndjson" <<'END'
import json, sys
from statistics import mean, median
name, tuned, steps = sys.argv[1:]
mb = lambda g: g["bytes_s"] / 1e6
text = lambda g: "%dx%dK" % (g["depth"], g["size_bytes"] >> 10)
try:
    got = json.load(open(tuned))
    duel = got["duel"]
    kept, best = duel["kept"], duel["best"]
    naive = next(g for g in got["sweep"] if (g["depth"], g["size_bytes"]) == (1, 65536))
    cells = "%8.1f %-9s %8.1f %-9s %5.2f (%.2f..%.2f) %7.1f %7.2f %7d" % (mb(kept), text(kept), mb(best),
        text(best), duel["ratio"], duel["low"], duel["high"], mb(naive), mb(kept) / mb(naive), got["samples"])
except ValueError:
    cells = "%8s %-9s %8s %-9s %5s %12s %7s %7s %7s" % (("-",) * 9)
try:
    lines = [json.loads(line) for line in open(steps)]
    lines = [line for line in lines if "read_wait_ms" in line]
    assert len(lines) == 300
    step = [line["step_ms"] for line in lines[200:]]
    wait = [line["read_wait_ms"] for line in lines[200:]]
    cells += " %6.1f %7.2f %7.3f %7.3f" % (1048.576 / mean(step), median(step), median(wait), mean(wait))
except (OSError, ValueError, AssertionError):
    cells += " %6s %7s %7s %7s" % (("-",) * 4)
print("%-21s %s" % (name, cells), flush=True)
END
}
wanted() { [[ "$1" == *"$pattern"* ]]; }
http()          # NAME DELAY_MS RATE_MB EACH_MB
{
	wanted "$1" || return 0
	serve "${@:2}"
	row "$1" "$at/object" "$at/shard.tar"
}
stamp
with_load
printf '%-21s %8s %-9s %8s %-9s %5s %-12s %7s %7s %7s %6s %7s %7s %7s\n' store tuned '' best '' \
	ratio '' naive gain samples needs step_ms wait_ms mean
file=$work/data/file shard=$work/data/shard.tar
! wanted 'page cache' || row 'page cache' "$file" "$shard"
! wanted 'file, O_DIRECT' || row 'file, O_DIRECT' "$file" "$shard" -s data.direct=always
if wanted 'disk, 200 MB/s'; then
	if throttle 200; then
		row 'disk, 200 MB/s' "$file" "$shard" -s data.direct=always
		rmdir "$group"
		group=
	else
		echo 'disk, 200 MB/s: no control group here limits reads'
	fi
fi
http 'HTTP' 0
http 'HTTP, 20 ms' 20
if wanted 'S3, 20 ms'; then
	serve 20
	row 'S3, 20 ms' s3://bucket/object s3://bucket/shard.tar
fi
http 'HTTP, 200 MB/s in all' 20 200
http 'HTTP, 50 MB/s each' 20 0 50
