#!/bin/bash
# memory_workers.sh -- what each of several workers is predicted to take, and takes. Prints a page:
#
#	bench/memory_workers.sh >docs/results/memory-workers.md
#
# Jobs of 78 to 162 MiB of parameters and slots, on 2 to 4 workers of one machine. Predicted: as the run says
# at its start (as --dry-run says before it). Taken: RssAnon of the worker in /proc after 8 steps, so the
# whole of the process. No time is measured.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "memory_workers: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
run=
trap 'kill $run 2>/dev/null || true; wait; rm -rf "$work"' EXIT

job()           # NAME MODEL ARGS BATCH OPTIMIZER
{
	cat >"$work/$1.yaml" <<-Y
		job: {name: $1, seed: 5, steps: 100000}
		model: {use: "builtin:$2", args: {$3}}
		data: {kind: synthetic, count: 600}
		batch: {$4}
		optim: {kind: $5, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
		checkpoint: {every: 100000 steps, keep: 2}
		eval: {every: 0}
	Y
}
tokens='global: 16, virtual_nodes: 8, normalize: token'
job gpt gpt 'layers: 4, width: 384, heads: 6, context: 64, vocab: 8000, dropout: 0.1' "$tokens" adamw
job gpt-momentum gpt 'layers: 4, width: 384, heads: 6, context: 64, vocab: 8000, dropout: 0.1' "$tokens" \
	momentum
job lstm lstm 'layers: 2, width: 512, hidden: 768, context: 16, vocab: 4000, dropout: 0.1' "$tokens" adamw
job mlp mlp 'input: [1, 32, 32], hidden: [4000, 2500], classes: 10' 'global: 64, virtual_nodes: 8' adamw

committed() { tail -n 1 "$work/run/metrics.ndjson" 2>/dev/null | grep -o '"step":[0-9]*' | cut -d: -f2; }
try()           # JOB WORKERS [OPTION...]
{
	local job=$1 workers=$2 at=0 worker pid predicted taken
	shift 2
	"$heddle" run "$work/$job.yaml" --out "$work/run" --workers "$workers" -s workers.min="$workers" \
		"$@" 2>"$work/log" &
	run=$!
	while [ "${at:-0}" -lt 8 ]; do
		kill -0 $run 2>/dev/null || { cat "$work/log" >&2; exit 1; }
		sleep 0.2
		at=$(committed || true)
	done
	"$heddle" status "$work/run" --json | grep -o '"worker":[0-9]*,"state":"member","pid":[0-9]*' |
		sed 's/[^0-9,]//g; s/,,/ /' >"$work/members"
	while read -r worker pid; do
		predicted=$(sed -n "s/.*worker $worker: memory: \([0-9.]*\) MiB.*/\1/p" "$work/log" |
			tail -n 1)
		taken=$(awk '/^RssAnon:/ { print $2 / 1024 }' "/proc/$pid/status")
		awk -v j="$job" -v o="$*" -v w="$workers" -v i="$worker" -v p="$predicted" -v t="$taken" \
			'BEGIN {
				printf "| %s | %s | %d | %d |", j, o, w, i
				printf " %.1f | %.1f | %.3f |\n", p, t, t / p }'
	done <"$work/members"
	"$heddle" stop "$work/run" >/dev/null 2>&1 || true
	wait $run || true
	run=
	rm -rf "$work/run"
}

cat <<Y
# Memory of several workers: what is predicted, what is taken

$(made_by memory_workers.sh), $(nproc) cores.

\`predicted\`: what the run says of each worker at its start, in the words of
\`heddle run --dry-run --workers N\`. \`taken\`: RssAnon of the process after 8 steps.

| job | options | workers | worker | predicted MiB | taken MiB | taken / predicted |
|---|---|--:|--:|--:|--:|--:|
Y
for n in 2 3 4; do try gpt $n; done
try gpt 2 --devices 2
try gpt 2 -s comm.sync=sharded
try gpt-momentum 2
for n in 2 3; do try lstm $n; done
for n in 2 3; do try mlp $n; done
cat <<'Y'

What is not counted is the process itself: up to 13 MiB here. The wide perceptron takes less than is
predicted: where a kernel folds the gradient of a weight itself (`src/device/kernel.h`), the room of that
gradient among the activations and the temporary buffers are reserved and not written to. The prediction is a
bound there.
Y
