#!/bin/bash
# viewer.sh -- the page of a timeline in a browser: how large it is, how long until it is read, what a frame
# draws and takes at most while it is zoomed.
#
#	bench/viewer.sh       # the table of docs/results/viewer.md; needs chromium and python3
#
# Recordings are simulated: 1f1b of 32 ranks, 64 virtual nodes a step. Times are of one try each.
#
#	HD_BENCH_STEPS    steps of the recordings (default: 1 21 107 214 400)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stamp

echo '| events | in the page | page, MB | written, s | read, ms | rectangles in a frame | slowest frame, ms |'
echo '|--:|--:|--:|--:|--:|--:|--:|'
for steps in ${HD_BENCH_STEPS:-1 21 107 214 400}; do
	"$heddle" simulate --schedule 1f1b -p 32 -m 64 --steps "$steps" --trace "$work/a.hdfr" -q >/dev/null
	began=$(date +%s%N)
	events=$("$heddle" trace open "$work/a.hdfr" --json | grep -o '"events":[0-9]*' | cut -d : -f 2)
	took=$(($(date +%s%N) - began))
	python3 tests/viewer_browser.py "$work/a.html" >"$work/out" || { tail -n 3 "$work/out" >&2; exit 1; }
	kept=$(sed -n 's/^ok: reads itself: \([0-9]*\) events \([0-9]*\) ms/\1 \2/p' "$work/out")
	frame=$(sed -n 's/^ok: at most \([0-9]*\) rect.*slowest frame \([0-9.]*\) ms/\1 \2/p' "$work/out")
	echo "$events $(stat -c %s "$work/a.html") $took $kept $frame" | awk '{
		printf "| %d | %d | %.1f | %.2f | %d | %d | %.1f |\n", $1, $4, $2 / 1e6, $3 / 1e9, $5,
			$6, $7 }'
done
