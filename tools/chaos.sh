#!/bin/bash
# The long suite of faults: runs of 2 to 4 workers, each with kills at any instant, a death at each named
# failpoint and every other kind of fault, compared with the undisturbed run.
#
#   tools/chaos.sh PROGRAM [RUNS [FIRST_SEED [FOLDER]]]
#
# Runs of odd seeds keep the optimizer's slots sharded, those of even seeds everywhere; only the former come
# by the places of slots, norms and new parameters, and only where the model has more than one bucket is there
# a slot to gather. Half of each record their samples; steps of the others overlap, without clipping and with
# few digests. A line a run; then tools/chaos_sum.sh FOLDER, which fails unless all runs that FOLDER has
# ever seen ended with the bits of one device, took each recorded sample once in each data epoch, and had
# 1,000 kills over 10,000 steps and one at each place together. What failed stays in FOLDER (default: a new
# one). HD_CHAOS_STEPS, HD_CHAOS_KILLS: of a run, 12,000 and 20. Of few steps a run says that it did not come
# to some places.
set -u
here=$(dirname "$(realpath "$0")") bin=$(realpath "$1") runs=${2:-20} first=${3:-1} folder=${4:-$(mktemp -d)}
mkdir -p "$folder" && cd "$folder" || exit 1
cat >job.yaml <<END
job: {name: chaos, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [400, 300], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 96, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 50 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 500 ms}
END
"$bin" version | sed -n 1p >version
for seed in $(seq "$first" $((first + runs - 1))); do
	workers=$((2 + seed % 3)) sync=allreduce status=0 start=$SECONDS
	[ $((seed % 2)) = 0 ] || sync=sharded
	early=()
	[ $((seed / 2 % 2)) = 0 ] || early=(-s optim.clip=0 -s trace.digest=7)
	rm -rf "run-$seed"
	"$bin" chaos run job.yaml --seed "$seed" --kills "${HD_CHAOS_KILLS:-20}" --points 1 \
		--faults pause=4,slow=4,net=6,disk=4,scale=4 --steps "${HD_CHAOS_STEPS:-12000}" \
		--workers "$workers" -s comm.sync=$sync "${early[@]}" --out "run-$seed" --json \
		>"run-$seed.json" 2>"run-$seed.err" || status=$?
	echo "seed $seed, $workers workers, $sync: exit $status, $((SECONDS - start)) s, $(grep \
		-o '"kills":[0-9]*' "run-$seed.json") $(tail -n 1 "run-$seed.err" | cut -c1-200)"
	# what did not happen in one run is counted over all of them
	grep -qE '"identical":true.*"exact":(true|null)' "run-$seed.json" && rm -rf "run-$seed"
done
"$here/chaos_sum.sh" "$folder"
