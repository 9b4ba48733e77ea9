#!/bin/bash
# The long suite of losses: grids of workers, and SIGKILL of any process at any instant, of the coordinator
# too, until so many kills are done. Each run is compared with its undisturbed twin, bit for bit; one that
# hangs is a failure (src/chaos/harness.h), and so is one that goes back to a checkpoint while each stage has
# a holder (tools/holders.sh).
#
#   tools/chaos_kills.sh PROGRAM [KILLS [FIRST_SEED [FOLDER]]]
#
# A line for each run; at the end the sum, and exit 0 only if no run failed. What failed stays in FOLDER
# (default: a new one). HD_CHAOS_EACH: kills of a run, 25. HD_CHAOS_GRIDS: which rows of `grids`, a pattern.
set -u
holders=$(realpath "$(dirname "$0")/holders.sh")
bin=$(realpath "$1") wanted=${2:-500} seed=${3:-1} folder=${4:-$(mktemp -d)} each=${HD_CHAOS_EACH:-25}
mkdir -p "$folder" && cd "$folder" || exit 1
cat >job.yaml <<END
job: {name: kills, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: [500, 400, 300], classes: 10}}
data: {kind: synthetic, count: 1000}
batch: {global: 48, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, clip: 1.0, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 50 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
comm: {sync: stages}
parallel: {mode: pipeline, replicas: 2}
workers: {detect: 500 ms}
END
# a name, stages, devices of a rank, redundancy: one after another. spare: one pipeline, and as many workers
# again that follow its stages. overlap: one pipeline whose steps overlap, of that update
grids='shadows 2 1 lazy|shadows 4 1 lazy|shadows 2 1 eager|shadows 4 1 eager|shadows 2 1 full
shadows 4 1 full|bare 2 1 none|bare 4 1 none|shards 2 2 none|shards 2 2 lazy
spare 2 1 none|spare 3 1 none|overlap 3 1 2bw|overlap 2 1 2bw|overlap 3 1 stash'
mapfile -t rows < <(tr '|' '\n' <<<"$grids" | grep -E "${HD_CHAOS_GRIDS:-^shadows}")
[ ${#rows[@]} -gt 0 ] || { echo "no grid is like $HD_CHAOS_GRIDS" >&2; exit 2; }
field() { grep -o "\"$1\":[0-9]*" "$2" | tail -n 1 | cut -d: -f2; }
kills=0 coordinators=0 runs=0 bad=0
while [ "$kills" -lt "$wanted" ] && [ "$bad" -lt 5 ]; do
	read -r name stages width mode <<<"${rows[$((seed % ${#rows[@]}))]}"
	set -- --workers $((stages * 2)) -s elastic.redundancy="$mode"
	[ "$name" != spare ] || set -- "$@" -s parallel.replicas=1 -s elastic.standby=follow
	[ "$name" != overlap ] || set -- --workers "$stages" -s parallel.replicas=1 -s comm.sync=allreduce \
		-s parallel.schedule="$mode" -s optim.update="$mode" -s optim.clip=0
	[ "$mode" != stash ] || set -- "$@" -s optim.cuts="auto:$stages"
	status=0 start=$SECONDS run=run-$seed
	rm -rf "$run"
	"$bin" chaos run job.yaml --seed "$seed" --kills "$each" --points 0 --faults pause=0 \
		--steps $((each * 75)) --devices "$width" \
		-s parallel.stages="$stages" -s model.shards="$width" -s parallel.tensor="$width" \
		"$@" --out "$run" --json >"$run.json" 2>"$run.err" || status=$?
	n=$(field kills "$run.json") c=$(field coordinators "$run.json")
	restored=$(cat "$run"/*/events.ndjson 2>/dev/null | grep -c '"kind":"restore"')
	echo "seed $seed, $name $stages x 2 x $width, $mode: exit $status, $((SECONDS - start)) s," \
		"${n:-0} kills, ${c:-0} of coordinators, back to a checkpoint $restored times" \
		"$(tail -n 1 "$run.err" | cut -c1-200)"
	right=true
	[ "$restored" = 0 ] || "$holders" "$run/chaos" || right=false
	if grep -qE '"identical":true.*"exact":(true|null)' "$run.json" && [ $status = 0 ] && $right; then
		kills=$((kills + n)) coordinators=$((coordinators + c))
		rm -rf "$run"
	else
		bad=$((bad + 1))
	fi
	runs=$((runs + 1)) seed=$((seed + 1))
done
echo "$runs runs, $kills kills, $coordinators of coordinators; $bad runs failed ($folder)"
[ $bad = 0 ]
