#!/bin/bash
# failover.sh -- how long the loss of a worker within a step holds a pipeline up, of each mode of redundancy.
# Prints the table of docs/results/failover.md:
#
#	HEDDLE_BIN=build/debug/heddle bench/failover.sh        # some four minutes
#	HD_BENCH_PARTS="20 40 60" HD_BENCH_PACE=150 HD_BENCH_CALM=3 HD_BENCH_MODES="lazy eager" \
#		bench/failover.sh
#
# Three workers, three stages, 1f1b. Each has a null device that waits what one profile of the job says of its
# ops, HD_BENCH_PACE times as long: it needs no core for it, all runs have the same times, and what is
# computed again counts. A worker dies before an instruction of the first step (failpoints: not a release
# build), so many percent down its stage's list. The others go on with the step, and then with two stages.
#
# The pause is what that step took longer than without a loss (the least of HD_BENCH_CALM runs); `next` is
# from the event of the loss until the step after it is committed. Medians, in ms; a death that is known only
# after the commit is left out.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(readlink -f "${HEDDLE_BIN:-build/debug/heddle}")
[ -x "$heddle" ] || { echo "failover: $heddle is missing; run ./dev build debug first" >&2; exit 2; }
modes=${HD_BENCH_MODES:-lazy eager full} parts=${HD_BENCH_PARTS:-20 40 60}
pace=${HD_BENCH_PACE:-150} calm=${HD_BENCH_CALM:-3}
work=$(mktemp -d)
trap 'rm -rf "${work:?}"' EXIT
cat >"$work/job.yaml" <<JOB
job: {name: failover, seed: 5, steps: 3}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: [700, 600, 300, 200], classes: 10}}
data: {kind: synthetic, count: 1600}
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
step_ms()
{
	grep '"step":0,' "$work/run/metrics.ndjson" | grep -o '"step_ms":[0-9.]*' | cut -d : -f 2
}
run()
{
	"$heddle" run "$work/job.yaml" --out "$work/run" --workers 3 --devices "paced:1:$pace" \
		--profile "$work/times.json" -q --json -s elastic.redundancy="$mode" \
		>"$work/json" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
}
dies()
{
	rm -rf "${work:?}/run"
	mkdir -p "$work/run/chaos"
	chmod 700 "$work/run" "$work/run/chaos"
	echo "pipe.instr:kill#$1@$2" >"$work/run/chaos/any"
	run
}

"$heddle" profile "$work/job.yaml" --devices 1 -o "$work/times.json" -q >"$work/log" 2>&1 ||
	{ cat "$work/log" >&2; exit 1; }
echo "$(date -u +%Y-%m-%d), $(processor), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg) at the" \
	"beginning, $("$heddle" version | head -n 1)"
echo
echo "| mode | deaths | went on | step without a loss ms | with one ms | pause ms | next ms |"
echo "|---|--:|--:|--:|--:|--:|--:|"
for mode in $modes; do
	: >"$work/calm" >"$work/this" >"$work/next"
	on=0 n=0
	for ((i = 0; i < calm; i++)); do
		rm -rf "${work:?}/run"
		run
		step_ms >>"$work/calm"
	done
	stage=0
	for length in $(grep '^[0-9]*:' "$work/run/plan/0001.plan" | awk '{ print NF - 2 }'); do
		for part in $parts; do
			dies "$stage" $((length * part / 100))
			lost=$(time_of lost)
			[ -n "$lost" ] && grep '"kind":"lost"' "$work/run/events.ndjson" | head -n 1 |
				grep -q '"step":0' || continue
			n=$((n + 1))
			! grep -q '"kind":"failover"' "$work/run/events.ndjson" || on=$((on + 1))
			step_ms >>"$work/this"
			echo "$lost $(committed 1)" | awk '{ print 1000 * ($2 - $1) }' >>"$work/next"
		done
		stage=$((stage + 1))
	done
	without=$(sort -n "$work/calm" | head -n 1) with=$(median <"$work/this")
	pause=$(echo "$with $without" | awk '{ print $1 == "-" ? "-" : $1 - $2 }')
	echo "| $mode | $n | $on | $without | $with | $pause |" \
		"$(median <"$work/next") |"
done
