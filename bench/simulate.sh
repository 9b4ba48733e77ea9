#!/bin/bash
# How many instructions a second the simulator of schedules takes, for each kind and two sizes:
# the goal is 10 million simple instructions a second on one core, and no fall with size.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
echo "$(nproc) cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo |
	head -n 1), load $(cut -d ' ' -f 1 /proc/loadavg)"
for name in $("$heddle" plan show --schedule help | cut -d ' ' -f 1); do
	for m in 200 20000; do
		"$heddle" simulate --schedule "$name" -p 16 -m $m --repeat 5
	done
done
