#!/bin/bash
# graph_devices.sh [VERTICES EDGES] -- a step of gcn (hidden 128) and gat (8 heads of 8) of two layers on a
# made graph in two intervals (200000 10000000), on one device of one thread and on two. One line a model:
# wall and processor seconds of a step on one, on two, two over one, and whether both have the same bits.
#
# Runs of one and of two are made in turn, ROUNDS (3) of each, of STEPS (8) steps; what is printed is the
# median of all steps from the third on, since in the first two memory is touched for the first time, and
# beside it the least and the largest ratio of a round's medians. Processor seconds are means of all steps
# but the first (graph_epoch.py watch). MODELS ("gcn gat") leaves one out, GRAPH is a folder with what was
# made before, PYTHON names a python with numpy, RUN a prefix of commands (taskset -c 0,1; chrt -f 5).
# Wanted: 0.6.
set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
python=${PYTHON:-python3} steps=${STEPS:-8} rounds=${ROUNDS:-3} models=${MODELS:-gcn gat}
if [ "${GRAPH:-}" ]; then
	work=$GRAPH
else
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"
cd "$work"
[ -e edges.npy ] || "$python" "$here/graph_epoch.py" make "${1:-200000}" "${2:-10000000}"
[ -e g2.graph ] || "$heddle" data prepare-graph --edges edges.npy --features features.npy \
	--labels labels.npy --split split.txt --splitter own --intervals 2 -o g2.graph -q
once()          # MODEL ARGS DEVICES: wall ms of steps into wall-DEVICES, processor s, digest
{
	cat >devices.yaml <<-END
	job:   {name: devices, steps: $steps}
	graph: {prepared: g2.graph, model: $1, layers: 2, intervals: 2, $2, dropout: 0}
	optim: {kind: adam, lr: 0.01, clip: 0, schedule: {kind: constant, warmup: 0}}
	eval:  {every: 0}
	END
	rm -rf run
	${RUN:-} "$heddle" run devices.yaml --devices "cores:$3x1" -q --json --out run >out &
	"$python" "$here/graph_epoch.py" watch $! run/metrics.ndjson "$steps" "$steps" |
		cut -d' ' -f1 >>cpu-$3
	wait $! || echo "graph_devices: heddle run failed: exit $?" >&2
	sed -n 's/.*"step_ms":\([0-9.]*\).*/\1/p' run/metrics.ndjson | tail -n +3 >wall
	cat wall >>wall-$3
	sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' out | tail -n 1 >>digests
	median <wall >>of-$3
	rm -rf run
}
median() { sort -n | awk '{ a[NR] = $1 } END { print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2000 }'; }
mean() { awk '{ s += $1 } END { printf "%.3f", s / NR }' "$1"; }
cpu=$(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')
echo "$cpu, $(nproc) cores, $(date +%F), load $(cut -d' ' -f1 /proc/loadavg)"
echo '| model | one s | two s | two of one | of the rounds | processor s, one, two | same bits |'
echo '|---|--:|--:|--:|---|---|---|'
for m in $models; do
	args='hidden: 128'
	[ $m = gcn ] || args='hidden: 8, heads: 8'
	rm -f wall-* of-* cpu-[12] digests
	for ((r = 0; r < rounds; r++)); do
		once $m "$args" $((1 + r % 2))
		once $m "$args" $((2 - r % 2))
	done
	paste of-1 of-2 | awk '{ print $2 / $1 }' | sort -n >ratios
	awk -v m=$m -v a="$(median <wall-1)" -v b="$(median <wall-2)" -v p="$(mean cpu-1), $(mean cpu-2)" \
		-v d="$(sort -u digests | wc -l)" -v lo="$(head -n 1 ratios)" -v hi="$(tail -n 1 ratios)" \
		'BEGIN { printf "| %s | %.3f | %.3f | %.2f | %.2f to %.2f | %s | %s |\n", m, a, b, b / a, lo,
		hi, p, d == 1 ? "yes" : "NO" }'
done
echo "load $(cut -d' ' -f1 /proc/loadavg)"
