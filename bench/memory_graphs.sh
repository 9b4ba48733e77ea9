#!/bin/bash
# memory_graphs.sh [WORDS] -- what runs of whole graphs are predicted to take, and take at their peak: models
# in one interval and in eight, on devices of one process and on workers, on a made graph (VERTICES, 60000;
# EDGES, 2000000). Prints a table; with WORDS only rows that have them (gat, "workers 2").
#
# Predicted: as the run says at its start, of each worker. Taken: the largest sum of RssAnon and RssShmem in
# /proc, seen every 5 ms until after the second step, with rows that are late the twelfth (each with an
# evaluation), when all places of earlier steps have been written. Ends with 1 if a process takes
# more than a tenth more or less. No time is measured. PYTHON names a python with numpy; GRAPH a folder with
# what was made before.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
vertices=${VERTICES:-60000} edges=${EDGES:-2000000} only=${1:-}
work=${GRAPH:-$(mktemp -d)}
run=
trap '[ -z "$run" ] || kill $run 2>/dev/null || true; [ "${GRAPH:-}" ] || rm -rf "$work"' EXIT
mkdir -p "$work"
cd "$work"
[ -e edges.npy ] || "${PYTHON:-python3}" "$here/graph_epoch.py" make "$vertices" "$edges"
[ -e g.graph ] || "$heddle" data prepare-graph --edges edges.npy --features features.npy --labels labels.npy \
	--split split.txt --splitter own -o g.graph -q

members()
{
	"$heddle" status run --json 2>/dev/null |
		grep -o '"worker":[0-9]*,"state":"[a-z]*","pid":[1-9][0-9]*' |
		sed 's/[^0-9,]//g; s/,,/ /' >members.new && mv members.new members || true
}
declare -A peak
look()          # PID
{
	local name kb rest sum=0
	while read -r name kb rest; do
		case "$name" in RssAnon:|RssShmem:) sum=$((sum + kb)) ;; esac
	done < <(cat "/proc/$1/status" 2>/dev/null) || return 0
	[ "$sum" -le "${peak[$1]:-0}" ] || peak[$1]=$sum
}
worst=1
row()           # WHAT WORKER PREDICTED PID
{
	awk -v w="$1" -v i="$2" -v p="$3" -v t="${peak[$4]:-0}" 'BEGIN { t /= 1024
		printf "| %s | %s | %.1f | %.1f | %.3f |\n", w, i, p, t, t / p }'
	worst=$(awk -v w="$worst" -v p="$3" -v t="${peak[$4]:-0}" 'BEGIN { r = t / 1024 / p
		d = r > 1 ? r : 1 / r; print (d > w ? d : w) }')
}
try()           # MODEL INTERVALS OPTION...
{
	local model=$1 intervals=$2 worker pid i until=2 args='hidden: 128'
	shift 2
	local what="$model | $intervals | $*"
	[[ "$what" == *"$only"* ]] || return 0
	[[ "$what" != *staleness* ]] || until=12
	[ $model != gat ] || args='hidden: 8, heads: 8'
	cat >job.yaml <<-END
	job:   {name: memory, steps: 1000}
	graph: {prepared: g.graph, model: $model, layers: 2, intervals: $intervals, $args, dropout: 0.3}
	optim: {kind: adam, lr: 0.01, clip: 0, schedule: {kind: constant, warmup: 0}}
	eval:  {every: 1}
	workers: {min_wait: 600 s, detect: 60 s}
	END
	peak=()
	rm -rf run
	"$heddle" run job.yaml --out run "$@" 2>log >/dev/null &
	run=$!
	: >members
	for ((i = 0; ; i++)); do
		read -r -t 0.005 <> <(:) || true
		look $run
		while read -r worker pid; do look "$pid"; done <members
		if [ $((i % 20)) = 0 ]; then
			kill -0 $run 2>/dev/null || { cat log >&2; exit 1; }
			[[ "$*" != *workers* ]] || members
			! grep -qs "\"step\":$until," run/metrics.ndjson || break
		fi
	done
	while read -r worker pid; do
		look "$pid"
		row "$what" "$worker" "$(sed -n "s/.*worker $worker: memory: \([0-9.]*\) MiB.*/\1/p" log |
			tail -n 1)" "$pid"
	done <members
	[ -s members ] ||
		row "$what" '' "$(sed -n 's/.* memory: \([0-9.]*\) MiB.*/\1/p' log | tail -n 1)" $run
	"$heddle" stop run >/dev/null 2>&1 || kill -INT $run
	wait $run || true
	run=
	until rm -rf run 2>/dev/null; do read -r -t 0.2 <> <(:) || true; done
}

echo '| model | intervals | options | worker | predicted MiB | taken MiB | taken / predicted |'
echo '|---|--:|---|--:|--:|--:|--:|'
for m in gcn gat sage-mean; do
	try $m 1 --devices 1
	for d in 1 2 4; do try $m 8 --devices $d; done
	for n in 2 4; do try $m 8 --workers $n -s workers.min=$n; done
	for s in 1 4; do
		try $m 8 --devices 2 -s graph.mode=bounded -s graph.staleness=$s
		try $m 8 --workers 2 -s workers.min=2 -s graph.mode=bounded -s graph.staleness=$s
	done
done
awk -v w="$worst" 'BEGIN { printf "\nThe worst: %.1f %%.\n", 100 * (w - 1); exit w > 1.1 }' || {
	echo '!! more than a tenth' >&2; exit 1; }
