#!/bin/bash
# How long the checker of schedules takes for an instruction: skeletons and completed lists of
# 16 ranks, 1e4 and 1e6 instructions. The goal is time that does not grow: at most twice as long.
# Of 2bw the instructions of one period are counted; half a dozen steps of them are walked.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
with_load
file=$(mktemp)
trap 'rm -f "$file"' EXIT
for name in 1f1b zb-h1 interleaved 2bw; do
	for m in 300 30000; do
		"$heddle" plan show --schedule $name -p 16 -m $m >"$file"
		echo -n "skeleton  "; "$heddle" plan check "$file" --repeat 5
		echo -n "buffered  "; "$heddle" plan check "$file" --transport buffered --repeat 5
	done
	for m in 100 10000; do
		"$heddle" plan show --schedule $name -p 16 -m $m --complete >"$file"
		echo -n "complete  "; "$heddle" plan check "$file" --repeat 5
	done
done
