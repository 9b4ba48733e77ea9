#!/bin/bash
# graph_epoch.sh [VERTICES EDGES [THREADS]] -- an epoch of gcn (hidden 128) and gat (8 heads of 8) of
# two layers on a made graph with a power law of degrees (200000 10000000), against PyTorch
# Geometric's scatter and sparse forms, on 1 to THREADS (2) threads. Prints processor and wall seconds
# of an epoch, losses before the first and the last step, and ours over each of theirs. Ours: the
# difference of two runs, of 1 step and of STEPS (EPOCHS); theirs the least of EPOCHS (5) but the first.
# Losses are compared after as many steps. PYTHON names a python with
# torch, torch_geometric and dgl; WAYS are those to compare with ("scatter sparse dgl"), each after ours
# again, so that both meet the same load; THEIR_GIB (no limit) is the address space that they may have.
# MODELS ("gcn gat") and GRAPH (a folder with what was made before) leave parts out.
set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
python=${PYTHON:-python3}
vertices=${1:-200000} edges=${2:-10000000} threads=${3:-2} epochs=${EPOCHS:-5} steps=${STEPS:-${EPOCHS:-5}}
ways=${WAYS:-scatter sparse dgl} models=${MODELS:-gcn gat}
if [ "${GRAPH:-}" ]; then
	work=$GRAPH
else
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"
cd "$work"
[ -e edges.npy ] || "$python" "$here/graph_epoch.py" make "$vertices" "$edges"
[ -e g.graph ] || "$heddle" data prepare-graph --edges edges.npy --features features.npy \
	--labels labels.npy --split split.txt --splitter own -o g.graph -q
theirs() {      # MODEL WAY THREADS
	[ -z "${THEIR_GIB:-}" ] || ulimit -v $((THEIR_GIB << 20))
	"$python" -W ignore "$here/graph_epoch.py" "$@" "$epochs" 2>/dev/null || echo - - - -
}
ours() {        # MODEL ARGS THREADS: processor s, wall s, first and last loss
	cat >job.yaml <<-END
	job:   {name: epoch, steps: 1}
	graph: {prepared: g.graph, model: $1, layers: 2, $2, dropout: 0}
	optim: {kind: adam, lr: 0.01, clip: 0, schedule: {kind: constant, warmup: 0}}
	eval:  {every: 0}
	END
	for n in 1 "$steps"; do
		rm -rf "run-$n"         # of a call that was killed
		TIMEFORMAT='%U %S %R'
		{ time "$heddle" run job.yaml --devices "cores:1x$3" -q --json --out "run-$n" \
			-s job.steps="$n" >"out-$n" 2>/dev/null; } 2>"time-$n"
		cp "run-$n/metrics.ndjson" metrics
		rm -rf "run-$n"
	done
	awk -v n="$steps" 'FNR == 1 { k++ } { at[k] = $1 + $2; wall[k] = $3 }
		END { printf "%.3f %.3f ", (at[2] - at[1]) / (n - 1), (wall[2] - wall[1]) / (n - 1) }' \
		time-1 "time-$steps"
	sed -n 's/.*"step":0,.*"loss":\([0-9.]*\).*/\1/p' metrics | head -n 1 | tr '\n' ' '
	sed -n "s/.*\"step\":$((epochs - 1)),.*\"loss\":\([0-9.]*\).*/\1/p" metrics | head -n 1
}
cpu=$(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')
echo "$cpu, $(date +%F), load $(cut -d' ' -f1 /proc/loadavg), $vertices vertices, $edges edges"
echo '| model | threads | way | processor s | wall s | losses | ours of it (processor, wall) |'
echo '|---|---|---|---|---|---|---|'
for ((t = 1; t <= threads; t++)); do
	for m in $models; do
		args='hidden: 128'
		[ $m = gcn ] || args='hidden: 8, heads: 8'
		for way in $ways; do
			[ $m$way != gatsparse ] || continue
			read -r cpu wall first last < <(ours $m "$args" $t)
			echo "| $m | $t | heddle | $cpu | $wall | $first, $last | |"
			read -r c w f l < <(theirs $m $way $t)
			echo "| $m | $t | $way | $c | $w | $f, $l |" \
				"$(awk -v a="$cpu" -v b="$c" -v d="$wall" -v e="$w" \
				'BEGIN { if (b > 0) printf "%.2f, %.2f", a / b, d / e }') |"
		done
	done
done
