#!/bin/bash
# reader_peers.sh -- samples a second of the same tar shards, read by heddle, by PyTorch's DataLoader and by
# WebDataset, in turns. On a machine that does nothing else, or the figures say nothing.
#
#	bench/reader_peers.sh
#
# Two tables: files in the page cache, and objects of bench/store.c with 20 ms to each answer. Rows are
# readers, the fastest first; columns medians of the rounds, and the ratio of heddle to that reader. All are
# of the second half of a pass, but `whole_s`: seconds of all of it, from before the set is opened. heddle
# trains a model of one small layer, so its figure has the step in it; the others hand batches over and
# compute nothing. `cached heddle`: with data.cache, into which each shard is copied as the set is opened.
# `dataloader N`: N processes (0: none) of random samples by an index, one read each, over HTTP by ranges of a
# connection that is kept; `webdataset N`: N processes of shards in a row, over HTTP by curl as its documents
# say, with a buffer that is shuffled. A reader that is not installed is a dash.
#
#	HD_BENCH_PYTHON    a Python with torch and webdataset (default: python3)
#	HD_BENCH_SHARDS    shards of 1024 samples of 16 KiB (default: 8; over HTTP a quarter of them)
#	HD_BENCH_ROUNDS    (default: 3)
#	HD_BENCH_DIR       where they lie (default: .)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d -p "${HD_BENCH_DIR:-.}")
server=
trap '[ -z "$server" ] || kill $server; rm -rf "$work"' EXIT
stamp
with_load
first=
! nice -n -15 true 2>/dev/null || [ "$(nice -n -15 nice)" -ge 0 ] || first="nice -n -15"
of()            # SHARDS ADDRESS
{
	$first "${HD_BENCH_PYTHON:-python3}" bench/reader_peers.py "$heddle" "$work" "$1" \
		"${HD_BENCH_ROUNDS:-3}" "$2"
}
shards=${HD_BENCH_SHARDS:-8}
echo "files in the page cache:"
of "$shards" ""
"${CC:-cc}" -O2 -pthread -o "$work/store" bench/store.c
$first "$work/store" "$work" "$work/where" 20 &
server=$!
until [ -s "$work/where" ]; do read -r -t 0.1 <> <(:) || :; done
echo "HTTP, 20 ms to each answer:"
of $(((shards + 3) / 4)) "$(cat "$work/where")"
