#!/bin/bash
# failover.sh -- how long the loss of a worker within a step holds a pipeline up, of each mode of redundancy.
# Prints the table of docs/results/failover.md:
#
#	HEDDLE_BIN=build/debug/heddle bench/failover.sh        # some two minutes
#	HD_BENCH_AT="10 20 30 40" HD_BENCH_STAGES="0 1 2" bench/failover.sh
#
# Three workers, three stages, 1f1b. A worker dies before an instruction of the first step (failpoints: not a
# release build). The others go on with the step, and then with two stages. Counted from the event of the
# loss: until that step is committed, and until the next one is. Medians, in ms.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(readlink -f "${HEDDLE_BIN:-build/debug/heddle}")
[ -x "$heddle" ] || { echo "failover: $heddle is missing; run ./dev build debug first" >&2; exit 2; }
at=${HD_BENCH_AT:-20 30 40} stages=${HD_BENCH_STAGES:-0 1 2}
work=$(mktemp -d)
trap 'rm -rf "${work:?}"' EXIT
cat >"$work/job.yaml" <<JOB
job: {name: failover, seed: 5, steps: 3}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: [700, 600, 300, 200], classes: 10}}
data: {kind: synthetic, count: 200}
batch: {global: 160, virtual_nodes: 16}
optim: {kind: adamw, lr: 1e-3, clip: 0.5}
eval: {every: 0}
checkpoint: {every: 1000 steps}
comm: {sync: stages}
parallel: {mode: pipeline, schedule: 1f1b}
workers: {detect: 3 s}
JOB
time_of()
{
	grep -o "\"t\":[0-9.]*,\"kind\":\"$1\"" "$work/run/events.ndjson" | head -n 1 | grep -o '[0-9.]*' |
		head -n 1
}
committed() { grep "\"step\":$1," "$work/run/metrics.ndjson" | grep -o '"t":[0-9.]*' | cut -d : -f 2; }
median() { sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'; }
echo "| mode | deaths | went on | step committed ms | next step committed ms |"
echo "|---|--:|--:|--:|--:|"
for mode in lazy eager full; do
	: >"$work/this" >"$work/next"
	on=0 n=0
	for stage in $stages; do
		for i in $at; do
			rm -rf "${work:?}/run"
			mkdir -p "$work/run/chaos"
			chmod 700 "$work/run" "$work/run/chaos"
			echo "pipe.instr:kill#$stage@$i" >"$work/run/chaos/any"
			"$heddle" run "$work/job.yaml" --out "$work/run" --workers 3 -q --json \
				-s elastic.redundancy=$mode >"$work/json" 2>"$work/log" ||
				{ cat "$work/log" >&2; exit 1; }
			lost=$(time_of lost)
			[ -n "$lost" ] || continue
			n=$((n + 1))
			! grep -q '"kind":"failover"' "$work/run/events.ndjson" || on=$((on + 1))
			step=$(grep '"kind":"lost"' "$work/run/events.ndjson" | head -n 1 |
				grep -o '"step":[0-9]*' | cut -d : -f 2)
			echo "$lost $(committed "$step")" | awk '{ print 1000 * ($2 - $1) }' >>"$work/this"
			echo "$lost $(committed $((step + 1)))" | awk '{ print 1000 * ($2 - $1) }' \
				>>"$work/next"
		done
	done
	echo "| $mode | $n | $on | $(median <"$work/this") | $(median <"$work/next") |"
done
