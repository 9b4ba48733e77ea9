#!/bin/bash
# graph_epoch.sh [VERTICES EDGES [THREADS]] -- an epoch of gcn (hidden 128) and gat (8 heads of 8) of
# two layers on a made graph with a power law of degrees (200000 10000000), against PyTorch
# Geometric's scatter and sparse forms, on 1 to THREADS (2) threads. Prints processor and wall seconds
# of an epoch, losses before the first and the last step, and ours over each of theirs. Ours:
# EPOCHS (5) steps less one, over runs of both lengths; theirs the least. PYTHON names a python with
# torch and torch_geometric.
set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
python=${PYTHON:-python3}
vertices=${1:-200000} edges=${2:-10000000} threads=${3:-2} epochs=${EPOCHS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$python" "$here/graph_epoch.py" make "$vertices" "$edges"
"$heddle" data prepare-graph --edges edges.npy --features features.npy --labels labels.npy \
	--split split.txt --splitter own -o g.graph -q
ours() {        # MODEL ARGS THREADS: processor s, wall s, first and last loss
	cat >job.yaml <<-END
	job:   {name: epoch, steps: 1}
	graph: {prepared: g.graph, model: $1, layers: 2, $2, dropout: 0}
	optim: {kind: adam, lr: 0.01, clip: 0, schedule: {kind: constant, warmup: 0}}
	eval:  {every: 0}
	END
	for n in 1 "$epochs"; do
		TIMEFORMAT='%U %S %R'
		{ time "$heddle" run job.yaml --devices "cores:1x$3" -q --json --out "run-$n" \
			-s job.steps="$n" >"out-$n" 2>/dev/null; } 2>"time-$n"
		rm -rf "run-$n"
	done
	sed -n 's/.*"loss_first":\([0-9.]*\),"loss_last":\([0-9.]*\).*/\1 \2/p' "out-$epochs" |
		paste -d' ' time-1 "time-$epochs" - | awk -v n="$epochs" '{ printf "%.3f %.3f %.4f %.4f\n",
		($4 + $5 - $1 - $2) / (n - 1), ($6 - $3) / (n - 1), $7, $8 }'
}
cpu=$(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')
echo "$cpu, $(date +%F), load $(cut -d' ' -f1 /proc/loadavg), $vertices vertices, $edges edges"
echo '| model | threads | way | processor s | wall s | losses | ours of it (processor, wall) |'
echo '|---|---|---|---|---|---|---|'
for ((t = 1; t <= threads; t++)); do
	for m in gcn gat; do
		args='hidden: 128'
		[ $m = gcn ] || args='hidden: 8, heads: 8'
		read -r cpu wall first last < <(ours $m "$args" $t)
		echo "| $m | $t | heddle | $cpu | $wall | $first, $last | |"
		for form in scatter sparse; do
			[ $m$form != gatsparse ] || continue
			read -r c w f l < <("$python" -W ignore "$here/graph_epoch.py" $m $form $t "$epochs" \
				2>/dev/null)
			echo "| $m | $t | PyTorch Geometric, $form | $c | $w | $f, $l |" \
				"$(awk -v a="$cpu" -v b="$c" -v d="$wall" -v e="$w" \
				'BEGIN { printf "%.2f, %.2f", a / b, d / e }') |"
		done
	done
done
