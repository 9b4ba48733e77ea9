#!/bin/bash
# cores.sh -- one core against all of them: a job's step on 1 device and on all cores, as devices and as
# threads of one, and what the machine itself gives: copies of the one-device run side by side, which share
# nothing but its caches and memory. Prints a page:
#
#	bench/cores.sh >docs/results/cores.md
#
# HD_BENCH_JOBS (default: all five), HD_BENCH_STEPS (default 30; of mlp 4 times, of lenet 40 times as many, of
# the larger models a third), HD_BENCH_ROUNDS (default 3)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "cores: $heddle is missing; run ./dev build first" >&2; exit 2; }
n=$(nproc) steps=${HD_BENCH_STEPS:-30} rounds=${HD_BENCH_ROUNDS:-3}
[ "$n" -gt 1 ] || { echo "cores: this machine has one" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
member() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2"; }

# run JOB STEPS DEVICES FILE: appends "median least"
run()
{
	"$heddle" bench step "bench/jobs/$1.yaml" --devices "$3" --repeat "$2" --json -q >"$4.out"
	echo "$(member step_ms_median "$4.out") $(member step_ms_min "$4.out")" >>"$4"
}

row()
{
	local job=$1 steps=$2
	rm -f "$work"/*
	for ((r = 0; r < rounds; r++)); do
		run "$job" "$steps" 1 "$work/one"
		run "$job" "$steps" "$n" "$work/devices"
		run "$job" "$steps" "cores:1x$n" "$work/threads"
		for ((c = 0; c < n; c++)); do run "$job" "$steps" 1 "$work/copy$c" & done
		wait
	done
	cat "$work"/copy? >"$work/copies"
	# middle of medians, least of least times
	for what in one devices threads copies; do
		sort -g "$work/$what" |
			awk \
			'{ m[NR] = $1; if (NR == 1 || $2 < l) l = $2 } END { print m[int((NR + 1) / 2)], l }'
	done | awk -v job="$job" -v n="$n" '{ m[NR] = $1; l[NR] = $2 }
		END {
			printf "| %s | %.3f | %.3f | %.3f", job, m[1], m[2], m[3]
			printf " | %.2f | %.2f", m[1] / m[2], l[1] / l[2]
			printf " | %.2f | %.2f", m[1] / m[3], l[1] / l[3]
			printf " | %.2f | %.2f |\n", n * m[1] / m[4], n * l[1] / l[4]
		}'
}

cat <<Y
# From one core to $n

$(made_by cores.sh).
Medians in ms of $steps steps (mlp 4 times, lenet 40 times, the larger models a third as many), the middle of
$rounds rounds that take turns; times faster by these and by least times.
Copies: what $n one-device runs side by side do of one's steps in its time. They share nothing but the
machine, so it gives no more than that to any program that does the same work on each core.

| job | 1 device | $n devices | 1 of $n threads | by devices | least | by threads | least | copies | least |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
Y
for job in ${HD_BENCH_JOBS:-mlp lenet resnet18 gpt-byte gpt-50k}; do
	case $job in
	lenet) row "$job" $((40 * steps)) ;;
	mlp)   row "$job" $((4 * steps)) ;;
	*)     row "$job" $(((steps + 2) / 3)) ;;
	esac
done
