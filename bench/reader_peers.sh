#!/bin/bash
# reader_peers.sh -- samples a second of the same tar shards, read by heddle, by PyTorch's DataLoader and by
# WebDataset, in turns. On a machine that does nothing else, or the figures say nothing.
#
#	bench/reader_peers.sh
#
# Rows are readers, columns medians of the rounds, and the ratio of heddle to that reader. heddle trains a
# model of one small layer, so its figure has the step in it; the others hand batches over and compute
# nothing. `dataloader N`: N processes of random samples by an index; `webdataset N`: N processes of shards in
# a row, with a buffer that is shuffled. A reader that is not installed is a dash.
#
#	HD_BENCH_PYTHON    a Python with torch and webdataset (default: python3)
#	HD_BENCH_SHARDS    shards of 1024 samples of 16 KiB (default: 8)
#	HD_BENCH_ROUNDS    (default: 3)
#	HD_BENCH_DIR       where they lie (default: .)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d -p "${HD_BENCH_DIR:-.}")
trap 'rm -rf "$work"' EXIT
stamp
with_load
"${HD_BENCH_PYTHON:-python3}" bench/reader_peers.py "$heddle" "$work" "${HD_BENCH_SHARDS:-8}" \
	"${HD_BENCH_ROUNDS:-3}"
