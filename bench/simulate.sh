#!/bin/bash
# How many instructions a second the simulator of schedules takes, for each kind and two sizes:
# the goal is 10 million simple instructions a second on one core, and no fall with size.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
with_load
for name in $("$heddle" plan show --schedule help | cut -d ' ' -f 1); do
	for m in 200 20000; do
		"$heddle" simulate --schedule "$name" -p 16 -m $m --repeat 5
	done
done
