#!/bin/bash
# A job that in one pass needs sixteen times what a device has trains there as virtual nodes, in the memory
# that was predicted.
. "$(dirname "$0")/program.sh"
limit=128
cat >wide.yaml <<'Y'
job:   {name: wide, seed: 9, steps: 1}
model: {use: builtin:gpt, args: {layers: 2, width: 16, heads: 1, context: 128, vocab: 64}}
data:  {kind: synthetic, count: 4620}
batch: {global: 4620, virtual_nodes: 20, normalize: token}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
Y
needs() { sed -n 's/.*the job needs \([0-9.]*\) MiB.*/\1/p' err; }
expect 11 heddle run wide.yaml --devices 1 -s batch.virtual_nodes=1 -s workers.memory="${limit}MiB"
says "workers.memory gives $limit.0 MiB"
says "more virtual nodes"
awk -v needs="$(needs)" -v limit="$limit" 'BEGIN { exit !(needs >= 16 * limit) }' ||
	failed "one pass needs $(needs) MiB, less than 16 x $limit"
passed "one pass of $(needs) MiB is refused where a device has $limit MiB"

expect 0 heddle bench step wide.yaml --devices 1 --threads 1 --repeat 1 -s workers.memory="${limit}MiB" --json
awk -v p="$(number memory_predicted_mib)" -v limit="$limit" \
	'BEGIN { exit !(p > limit / 2 && p < limit + 8) }' ||
	failed "$(number memory_predicted_mib) MiB are predicted where a device has $limit"
if grep -qE '__(asan|tsan)_init' "$HEDDLE_BIN"; then
	echo "the sanitizer's own memory hides the program's: its peak is not judged"
else
	grown=$(awk -v g="$(number memory_peak_growth_mib)" -v f="$(number memory_files_mib)" \
		'BEGIN { print g - f }') p=$(number memory_predicted_mib)
	awk -v g="$grown" -v p="$p" 'BEGIN { exit !(g > 0.95 * p && g < 1.05 * p) }' ||
		failed "$p MiB predicted, $grown MiB taken"
	echo "$p MiB predicted, $grown MiB taken"
fi
passed "as virtual nodes it trains there, and its peak is what was predicted, to 5 %"

# A limit of the address space counts what is mapped: what was taken must not be missed twice.
if ! grep -qE '__(asan|tsan)_init' "$HEDDLE_BIN"; then
	space() { (ulimit -v "$1"; shift; MALLOC_ARENA_MAX=1 heddle "$@"); }
	expect 0 space 300000 run wide.yaml --devices 1 --threads 1 --steps 1 --out bounded
	expect 11 space 300000 run wide.yaml --devices 1 --threads 1 --steps 1 --out refused \
		-s batch.virtual_nodes=1
	says 'this process may use 293.0 MiB'
	passed "under ulimit -v it trains as virtual nodes, and in one pass is refused"
	# 125.7 of the 128 MiB of samples that are kept at most
	cat >kept.yaml <<-'Y'
		job:   {name: kept, seed: 9, steps: 1}
		model: {use: builtin:mlp, args: {hidden: [16]}}
		data:  {kind: synthetic, count: 42000}
		batch: {global: 32, virtual_nodes: 4}
	Y
	expect 0 space 252000 run kept.yaml --devices 1 --threads 1 --steps 1 --out kept
	passed "samples that are kept are counted once under it"
fi

# A checkpoint is read in pieces: to verify it takes less memory than it is large.
cat >large.yaml <<'Y'
job:   {name: large, seed: 3, steps: 1}
model: {use: "builtin:mlp", args: {input: [1, 32, 32], hidden: [8000], classes: 10}}
data:  {kind: synthetic, count: 200}
batch: {global: 16, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
eval:  {every: 0}
Y
expect 0 heddle run large.yaml --devices 1 -q --out large
if ! grep -qE '__(asan|tsan)_init' "$HEDDLE_BIN"; then
	small() { (ulimit -d 30000; MALLOC_ARENA_MAX=1 heddle "$@"); }
	for verb in verify digest ls; do
		expect 0 small ckpt $verb large
	done
	passed "a checkpoint of 95 MiB is verified in less than 30"
fi
