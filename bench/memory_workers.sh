#!/bin/bash
# memory_workers.sh -- what each process of a run is predicted to take, and takes at its peak. Prints a page:
#
#	bench/memory_workers.sh >docs/results/memory-workers.md
#	bench/memory_workers.sh comm.sync=stages        # only rows whose job and options have these words
#
# Jobs with many parameters (gpt, mlp; in four shards: wide), many activations (gpt-long) and both (conv), as
# one process and as workers, under data parallel, sharded and staged plans. Predicted: as the run says at
# its start. Taken: the
# largest sum of RssAnon and RssShmem in /proc that was seen every 10 ms until after step 7; steps 3 and 6
# evaluate and write a checkpoint. Ends with 1 if a process takes more than 5 % more or less. No time is
# measured; HEDDLE_WITH=word runs the processes by another program (`chrt -f 20`).
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "memory_workers: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
run=
trap 'kill $run 2>/dev/null || true; wait; rm -rf "$work"' EXIT

job()           # NAME MODEL ARGS BATCH
{
	cat >"$work/$1.yaml" <<-Y
		job: {name: $1, seed: 5, steps: 100000}
		model: {use: "builtin:$2", args: {$3}}
		data: {kind: synthetic, count: 600}
		batch: {$4}
		optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
		checkpoint: {every: 3 steps, keep: 2}
		eval: {every: 3}
		workers: {min_wait: 600 s, detect: 20 s}
	Y
}
tokens='virtual_nodes: 8, normalize: token'
job gpt gpt 'layers: 4, width: 256, heads: 4, context: 32, vocab: 8000, dropout: 0.1' "global: 16, $tokens"
job gpt-long gpt 'layers: 8, width: 64, heads: 4, context: 256, vocab: 256, dropout: 0.1' \
	"global: 32, $tokens"
job mlp mlp 'input: [1, 32, 32], hidden: [3000, 2000, 1000], classes: 10' 'global: 16, virtual_nodes: 8'
job conv resnet18 'stem: cifar, height: 32, width: 32, classes: 10, base: 32' 'global: 64, virtual_nodes: 8'
job wide gpt 'layers: 2, width: 512, heads: 8, context: 16, vocab: 4096, dropout: 0' \
	'global: 8, virtual_nodes: 4'
sed -i '/^model/s/}}$/}, shards: 4}/' "$work/wide.yaml"

committed() { tail -n 1 "$work/run/metrics.ndjson" 2>/dev/null | grep -o '"step":[0-9]*' | cut -d: -f2; }
members()
{
	"$heddle" status "$work/run" --json 2>/dev/null |
		grep -o '"worker":[0-9]*,"state":"[a-z]*","pid":[1-9][0-9]*' |
		sed 's/[^0-9,]//g; s/,,/ /' >"$work/members" || true
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
worst=1 only=${1:-}
row()           # JOB OPTIONS WORKER PREDICTED PID
{
	local taken=${peak[$5]:-0}
	awk -v j="$1" -v o="$2" -v i="$3" -v p="$4" -v t="$taken" 'BEGIN { t /= 1024
		printf "| %s | %s | %s | %.1f | %.1f | %.3f |\n", j, o, i, p, t, t / p }'
	worst=$(awk -v w="$worst" -v p="$4" -v t="$taken" 'BEGIN { r = t / 1024 / p; d = r > 1 ? r : 1 / r
		print (d > w ? d : w) }')
}
try()           # JOB OPTION...
{
	local job=$1 pid worker i
	[[ "$*" == *"$only"* ]] || return 0
	shift
	peak=()
	rm -rf "$work/run"
	${HEDDLE_WITH:-} "$heddle" run "$work/$job.yaml" --out "$work/run" "$@" 2>"$work/log" >/dev/null &
	run=$!
	: >"$work/members"
	for ((i = 0; ; i++)); do
		read -r -t 0.01 <> <(:) || true
		look $run
		while read -r worker pid; do look "$pid"; done <"$work/members"
		if [ $((i % 20)) = 0 ]; then
			kill -0 $run 2>/dev/null || { cat "$work/log" >&2; exit 1; }
			members
			[ "$(committed || true)" ] && [ "$(committed)" -ge 7 ] && break
		fi
	done
	members
	look $run
	while read -r worker pid; do look "$pid"; done <"$work/members"
	while read -r worker pid; do
		row "$job" "$*" "$worker" "$(sed -n "s/.*worker $worker: memory: \([0-9.]*\) MiB.*/\1/p" \
			"$work/log" | tail -n 1)" "$pid"
	done <"$work/members"
	[ -s "$work/members" ] || row "$job" "$*" '' \
		"$(sed -n 's/.* memory: \([0-9.]*\) MiB.*/\1/p' "$work/log" | tail -n 1)" "$run"
	"$heddle" stop "$work/run" >/dev/null 2>&1 || kill -INT $run
	wait $run || true
	run=
	# a worker may be about to end
	until rm -rf "$work/run" 2>/dev/null; do read -r -t 0.2 <> <(:) || true; done
}

cat <<Y
# Memory of each process: what is predicted, what is taken

$(made_by memory_workers.sh),
$(nproc) cores.

\`predicted\`: what the run says at its start of this process, or of each worker (\`--dry-run\` says the same
before it). \`taken\`: the peak of RssAnon + RssShmem until after step 7, seen every 10 ms; steps 3 and 6
evaluate and write a checkpoint. Pages of programs and files are not counted: the system takes them back when
it needs memory.

| job | options | worker | predicted MiB | taken MiB | taken / predicted |
|---|---|--:|--:|--:|--:|
Y
pipeline='-s parallel.mode=pipeline'
for j in gpt gpt-long mlp conv; do try $j --devices 1; done
for j in gpt gpt-long; do try $j --devices 2; done
for s in gpipe 1f1b zb-h1; do try gpt-long --devices 2 $pipeline -s parallel.schedule=$s; done
for s in 1f1b zb-v; do try gpt-long --devices 4 $pipeline -s parallel.schedule=$s; done
for j in gpt mlp conv; do try $j --devices 3 $pipeline; done
for j in gpt gpt-long mlp conv; do try $j --devices 4 -s parallel.stages=2 -s parallel.replicas=2; done
try gpt --devices 2 $pipeline -s optim.update=2bw
try gpt-long --devices 2 $pipeline -s parallel.recompute=stage
for s in gpipe zb-h1; do
	try gpt-long --devices 2 $pipeline -s parallel.schedule=$s -s parallel.offload=stage
done
for n in 2 4; do try gpt --workers $n -s workers.min=$n; done
for j in gpt-long mlp conv; do try $j --workers 3 -s workers.min=3; done
try gpt --workers 3 -s workers.min=3 -s comm.sync=sharded
for s in gpipe 1f1b zb-h1; do
	try gpt-long --workers 2 -s workers.min=2 $pipeline -s parallel.schedule=$s
done
try gpt-long --workers 2 -s workers.min=2 $pipeline -s parallel.schedule=gpipe -s parallel.offload=stage
for sync in allreduce stages; do
	for j in gpt mlp conv; do try $j --workers 3 -s workers.min=3 $pipeline -s comm.sync=$sync; done
	for j in gpt conv; do
		try $j --workers 4 -s workers.min=4 -s parallel.stages=2 -s parallel.replicas=2 \
			-s comm.sync=$sync
	done
done
for s in 1f1b interleaved zb-v 2bw; do
	keys="-s parallel.schedule=$s"
	[ $s != 2bw ] || keys="$keys -s optim.update=2bw"
	for j in 'gpt-long 2' 'gpt 3'; do
		try ${j% *} --workers ${j#* } -s workers.min=${j#* } $pipeline $keys -s comm.sync=stages
	done
done
try wide --devices 1
for t in 2 4; do
	try wide --workers $t -s workers.min=$t -s parallel.mode=tensor -s parallel.tensor=$t \
		-s comm.sync=stages
done
echo
awk -v w="$worst" 'BEGIN { printf "The worst: %.1f %%.\n", 100 * (w - 1); exit w > 1.05 }' || {
	echo '!! more than 5 %' >&2; exit 1; }
