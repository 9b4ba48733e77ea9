#!/bin/bash
# whatif.sh -- is what `heddle trace whatif` says of a change what a run with that change then takes? Prints
# the tables of docs/results/whatif.md.
#
#	bench/whatif.sh                           # some seven minutes, as root, with ip and tc
#	MODELS="vgg16 small" VARIANTS="base fast slow fifo whole" RATES="50 100 200" MACHINES=3 STEPS=15
#	VARIANTS="base fifo random tac" RATES=100 # orders alone
#	MODELS= PLANS="gpipe 1f1b zb-h1 data2 data3 pipes4"      # plans alone: two minutes, no root
#	EVEN=1                                    # computing over ring sums at the middle one of the rates
#	OPTIONS="-s comm.sync=sharded"            # of all runs
#	FIFO=1                                    # runs before all else that the machine does (SCHED_FIFO)
#	KEEP=FOLDER                               # recordings stay there, for bench/whatif.py FOLDER
#
# 1. Workers have a network namespace each, behind a link shaped both ways (machines.sh); devices wait what
#    nodes take (paced:1), as in order.sh. A run goes through all rates, then through the first one again;
#    of STEPS steps at each its recordings are kept, the first steps after a change left out.
# 2. A variant is a run of its own: devices twice as fast, half as fast, buckets in the order in which they
#    become ready, in a random one and in that of tac, one message for each tensor. Buckets and order are
#    given, since those that a run chooses depend on what its devices take.
# 3. A pair: of two phases that differ in one thing, what is predicted from the recording of the one, beside
#    what the recording of the other says that its steps took. Also unchanged pairs, the first rate twice:
#    what equal runs differ by.
# 4. Plans: workers of this machine, without links that are shaped, devices that wait what a profile says, the
#    same in all runs (PLAN_MS a virtual node; of 8). Orders of two stages on two workers, whole models on two
#    and three, two pipelines on four. TURNS of each (3); what is predicted from the recording of the middle
#    one for another plan, beside what the middle one of that took.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
[ -z "${FIFO:-}" ] || chrt -f -p 1 $$    # for a machine that is busy otherwise: devices that wait need little
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
. bench/machines.sh
trap 'machines_gone; rm -rf "$work"' EXIT
kept=${KEEP:-$work/kept}
models=${MODELS-vgg16 small} plans=${PLANS-} plan_ms=${PLAN_MS:-20}
variants=${VARIANTS:-base fast slow fifo whole}
read -ra rates <<<"${RATES:-50 100 200}"
steps=${STEPS:-15} even=${EVEN:-1} mbit=${rates[$((${#rates[@]} / 2))]}
burst=128kb limit=${LIMIT:-120}

# as order.sh has them, VGG-16 a quarter as large
job()
{
	local args
	case $1 in
	vgg16) args="use: 'builtin:vgg16', args: {base: 4, hidden: 256, dropout: 0.5, classes: 188}" ;;
	small) args="use: 'builtin:gpt', args: {layers: 12, width: 32, heads: 2, context: 16, vocab: 64}" ;;
	*) echo "bench: no model $1" >&2; return 1 ;;
	esac
	cat <<JOB
job: {name: whatif, seed: 3, steps: 100000}
model: {$args}
data: {kind: synthetic, count: 96}
batch: {global: $((8 * nmachines)), virtual_nodes: $nmachines}
optim: {kind: momentum, lr: 1e-3, clip: 0, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps, keep: 1}
eval: {every: 0}
trace: {digest: 10000}
JOB
}

# times FACTOR: what nodes wait, FACTOR times what makes a step's computing EVEN ring sums; on the middle rate
times()
{
	python3 - "$work/start/costs.json" "$work/times.json" "$mbit" "$port" "$nmachines" "$even" \
		"$1" <<'END_PY'
import json, sys
source, target = sys.argv[1:3]
mbit, port, n, even, factor = (float(x) for x in sys.argv[3:])
p = json.loads(open(source).read().split("\n")[1])
rate = mbit * 1e6 * port
sums = 2 * (n - 1) / n * sum(x["param"] for x in p["nodes"]) / rate
took = sum(x[k]["p50"] for x in p["nodes"] for k in "fiw") / 1e9
for x in p["nodes"]:
    for k in "fiw":
        ns = int(x[k]["p50"] * even * factor * sums / took)
        x[k] = {"p50": ns, "mean": ns, "sd": 0, "min": ns, "n": 1}
p["method"] = "imported"
p["links"] = [{"level": 1, "kind": "tcp", "latency": 100000, "bytes_per_s": rate, "duplex": True}]
open(target, "w").write(json.dumps(p))
END_PY
}

# keep FOLDER: what all have recorded until now
keep()
{
	local i
	mkdir -p "$1/flight" "$1/plan"
	cp "$work"/run/flight/*.hdfr "$1/flight"
	cp "$work"/run/plan/*.plan "$1/plan"
	cp "$work"/run/job.{yaml,resolved.json,folder} "$work/run/costs.json" "$1"
	for ((i = 1; i < nmachines; i++)); do
		for file in "$work/far/$i"/flight/*.hdfr; do
			cp "$file" "$1/flight/far$i-$(basename "$file")"
		done
	done
}

# phases FOLDER OPTION...: a run through all rates
phases()
{
	local to=$1 rate n turn=0
	shift
	gather "$work/job.yaml" "--devices paced:1 --profile $work/times.json" "$@" || return 1
	for rate in "${rates[@]}" "${rates[0]}"; do
		links "${rate}mbit" || return 1
		n=$(($(committed) + 3 + steps))
		until [ "$(committed)" -ge $n ]; do patience || return 1; done
		[ -e "$to/$rate" ] && rate=$rate-again
		keep "$to/$rate"
	done
	ends
	[ "$(here | wc -l)" = 1 ]
}

plan_job()
{
	cat <<JOB
job: {name: whatif, seed: 3, steps: $((steps + 8))}
model: {use: 'builtin:gpt', args: {layers: 8, width: 32, heads: 2, context: 16, vocab: 64}}
data: {kind: synthetic, count: 96}
batch: {global: 16, virtual_nodes: 8}
optim: {kind: momentum, lr: 1e-3, clip: 0, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps, keep: 1}
eval: {every: 0}
trace: {digest: 10000}
JOB
}

# one_plan NAME FOLDER
one_plan()
{
	local workers=2 options="-s parallel.stages=2 -s parallel.schedule=$1"
	case $1 in
	gpipe | 1f1b | zb-h1) ;;
	pipes4) workers=4 options="-s parallel.stages=2 -s parallel.schedule=1f1b -s parallel.replicas=2" ;;
	data2) options= ;;
	data3) workers=3 options= ;;
	*) echo "bench: no plan $1" >&2; return 1 ;;
	esac
	# shellcheck disable=SC2086
	"$heddle" run "$work/plan.yaml" --out "$2" --workers $workers --devices paced:1 --profile \
		"$work/plan.json" -q $options 2>>"$work/log" >&2
}

# plan_times: of a virtual node PLAN_MS in all, forward, back and weights in the shares of what a core takes
plan_times()
{
	plan_job >"$work/plan.yaml"
	"$heddle" run "$work/plan.yaml" --out "$work/plan.start" --workers 1 --devices paced:1 --steps 1 -q \
		2>>"$work/log" || return 1
	python3 - "$work/plan.start/costs.json" "$work/plan.json" "$plan_ms" <<'END_PY'
import json, sys
p = json.loads(open(sys.argv[1]).read().split("\n")[1])
took = sum(x[k]["p50"] for x in p["nodes"] for k in "fiw")
for x in p["nodes"]:
    for k in "fiw":
        ns = int(x[k]["p50"] * float(sys.argv[3]) * 1e6 / took)
        x[k] = {"p50": ns, "mean": ns, "sd": 0, "min": ns, "n": 1}
p["method"] = "imported"
open(sys.argv[2], "w").write(json.dumps(p))
END_PY
}

if [ "$plans" ]; then
	plan_times || { tail -n 3 "$work/log" >&2; exit 1; }
	for turn in $(seq 1 "${TURNS:-3}"); do
		for plan in $plans; do
			to=$kept.plans/$plan-$turn
			rm -rf "$to"
			mkdir -p "$kept.plans"
			one_plan "$plan" "$to" || { echo "$plan did not run" >&2; tail -n 3 "$work/log" >&2; }
			echo "$plan $turn: load $(cut -d ' ' -f 1 /proc/loadavg)" >&2
		done
	done
	made_by whatif.sh
	echo ", load $(cut -d ' ' -f 1-3 /proc/loadavg)"
	HEDDLE_BIN=$heddle STEPS=$steps python3 bench/whatif.py "$kept.plans" --plans
fi
[ "$models" ] || exit 0
machines "${MACHINES:-3}"
for model in $models; do
	job "$model" >"$work/job.yaml"
	rm -rf "$work/start"
	"$heddle" run "$work/job.yaml" --out "$work/start" --workers 1 --devices paced:1 --steps 1 -q \
		2>>"$work/log" || { tail -n 3 "$work/log" >&2; exit 1; }
	for variant in $variants; do
		factor=1 options="-s comm.order=tic+ -s comm.buckets=128KiB"
		case $variant in
		base) ;;
		fast) factor=0.5 ;;
		slow) factor=2 ;;
		fifo | random | tac) options="-s comm.order=$variant -s comm.buckets=128KiB" ;;
		whole) options="-s comm.order=fifo -s comm.buckets=none" ;;
		*) echo "bench: no variant $variant" >&2; exit 2 ;;
		esac
		times $factor
		rm -rf "$kept/$model/$variant"
		# shellcheck disable=SC2086
		(phases "$kept/$model/$variant" $options ${OPTIONS:-}) ||
			{ echo "$model $variant did not run" >&2; tail -n 3 "$work/log" >&2; continue; }
		echo "$model $variant: load $(cut -d ' ' -f 1 /proc/loadavg)" >&2
	done
done
made_by whatif.sh
echo ", load $(cut -d ' ' -f 1-3 /proc/loadavg)"
HEDDLE_BIN=$heddle STEPS=$steps python3 bench/whatif.py "$kept"
