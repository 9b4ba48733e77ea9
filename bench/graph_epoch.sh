#!/bin/bash
# graph_epoch.sh [VERTICES EDGES [THREADS]] -- an epoch of gcn (hidden 128) and gat (8 heads of 8) of
# two layers on a made graph with a power law of degrees (200000 10000000), against PyTorch
# Geometric's scatter and sparse forms, on 1 to THREADS (2) threads. Prints processor and wall seconds
# of an epoch, losses before the first and the last step, and ours over each of theirs. Ours is one run of
# STEPS (EPOCHS): processor time from the line of its first step in metrics.ndjson to that of its last, and
# step_ms of those between, means; theirs the least of EPOCHS (5) but the first. What either says on stderr
# is seen. Losses are compared after as many steps. PYTHON names a python with
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
	"$python" -W ignore "$here/graph_epoch.py" "$@" "$epochs" || echo - - - -
}
ours() {        # MODEL ARGS THREADS: processor s, wall s, first and last loss
	cat >job.yaml <<-END
	job:   {name: epoch, steps: $steps}
	graph: {prepared: g.graph, model: $1, layers: 2, $2, dropout: 0}
	optim: {kind: adam, lr: 0.01, clip: 0, schedule: {kind: constant, warmup: 0}}
	eval:  {every: 0}
	END
	rm -rf run              # of a call that was killed
	"$heddle" run job.yaml --devices "cores:1x$3" -q --json --out run >out &
	"$python" "$here/graph_epoch.py" watch $! run/metrics.ndjson "$steps" "$epochs" || echo - - - -
	wait $! || echo "graph_epoch: heddle run failed: exit $?" >&2
	rm -rf run
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
				'BEGIN { if (a > 0 && b > 0) printf "%.2f, %.2f", a / b, d / e }') |"
		done
	done
done
