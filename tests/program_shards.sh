#!/bin/bash
# model.shards: sums in fixed shards. The same bits on any devices and virtual-node maps, the losses of the
# whole model, and refusals that say what does not divide.
. "$(dirname "$0")/program.sh"
job()           # NAME MODEL SHARDS
{
	cat >"$1.yaml" <<END
job: {name: $1, seed: 5, steps: 4}
model: {use: "builtin:${1%%-*}", args: $2, shards: $3}
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1 steps, keep: 2}
END
}
losses() { sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1/metrics.ndjson"; }
near()          # two lists of losses, relatively
{
	paste <(losses "$1") <(losses "$2") |
		awk -v most="$3" '{ d = $1 - $2; if (d < 0) d = -d; if (d > most * $1) bad++; n++ }
			END { exit bad > 0 || n < 4 }'
}
declare -A models=(
	[gpt]='{layers: 2, width: 32, heads: 4, context: 16, vocab: 50, dropout: 0.1}'
	[llama]='{layers: 1, width: 32, heads: 4, context: 12, vocab: 40}'
	[bert]='{layers: 1, width: 32, heads: 4, context: 12, vocab: 40}'
	[mlp]='{input: [1, 6, 6], hidden: [24, 10], classes: 4}'
)
for name in gpt llama bert mlp; do
	job "$name" "${models[$name]}" 4
	expect 0 heddle run "$name.yaml" --devices 1 --out "$name.1"
	for devices in 2 3 5 cores:2x2 reference:1; do
		[ "$name" = gpt ] || [ "$devices" = 3 ] || continue
		expect 0 heddle run "$name.yaml" --devices $devices --out "$name.$devices"
		[ "$devices" = reference:1 ] || expect 0 heddle ckpt diff "$name.1" "$name.$devices"
	done
	expect 0 heddle run "$name.yaml" -s model.shards=1 --devices 1 --out "$name.whole"
	near "$name.whole" "$name.1" 1e-4 ||
		failed "$name: in shards the losses are others: $(losses "$name.whole") $(losses "$name.1")"
	expect 5 heddle ckpt diff "$name.whole" "$name.1"
done
near gpt.whole gpt.reference:1 1e-4 || failed "the reference device has other losses"
passed "four models in four shards: the losses of the whole, one state on any devices"

# The sequence option: another job, with the masks of the unsplit model, and again one state on any devices.
for name in gpt llama bert; do
	along="-s model.sequence_shards=true"
	expect 0 heddle run "$name.yaml" $along --devices 1 --out "$name.along"
	for devices in 2 3 5 cores:2x2 reference:1; do
		[ "$name" = gpt ] || [ "$devices" = 3 ] || continue
		expect 0 heddle run "$name.yaml" $along --devices $devices --out "$name.along.$devices"
		[ "$devices" = reference:1 ] || expect 0 heddle ckpt diff "$name.along" "$name.along.$devices"
	done
	near "$name.whole" "$name.along" 1e-4 ||
		failed "$name: along the sequence the losses are others: $(losses "$name.whole") $(losses \
		"$name.along")"
	expect 5 heddle ckpt diff "$name.along" "$name.1"
done
near gpt.whole gpt.along.reference:1 1e-4 || failed "the reference device has other losses along the sequence"
expect 2 heddle resume gpt.along -s model.sequence_shards=false
says 'belongs to another job'
expect 0 heddle model show gpt.yaml -s model.sequence_shards=true
says 'p=0.1 from=12 whole=16 key=4'
passed "norms, dropout and residuals in parts of the sequence"

expect 0 heddle run gpt.yaml --steps 2 --devices 3 --out gpt.half
expect 0 heddle resume gpt.half --devices 1
expect 0 heddle ckpt diff gpt.1 gpt.half
expect 2 heddle resume gpt.half -s model.shards=2
says 'belongs to another job'
passed "a restart keeps the bits; another number of shards is another job"

expect 0 heddle eval gpt.1 --json
a=$(number loss)
expect 0 heddle eval gpt.1 --devices 3 --json
same "$(number loss)" "$a" "loss of the valid split"
expect 0 heddle predict gpt.1 -o logits.npy
expect 0 heddle ckpt export gpt.1 --safetensors w.safetensors
expect 0 heddle model show gpt.yaml
says 'param wte.weight/1 f32 [13,32] normal 0.02 tensor 0 wte.weight slice 1 of 4 axis 0 of 50 blocks 1'
passed "evaluation, prediction, export and the graph as text"

expect 0 heddle profile gpt.yaml --samples 3 -o four.json
expect 0 heddle profile gpt.yaml -s model.shards=1 --samples 3 -o one.json
nodes() { grep -o '"id":"[^"]*","op":"[^"]*"' "$1"; }
[ "$(nodes four.json)" = "$(nodes one.json)" ] && [ -n "$(nodes one.json)" ] ||
	failed "a profile is of the whole model"
grep -q '"tensor_shards":4' four.json || failed "the profile does not say how many shards"
passed "a profile is of the whole model, and says T"

expect 2 heddle run gpt.yaml -s model.shards=8 --dry-run
says 'model.shards: heads 4 cannot be split in 8 shards'
sed -i 's/shards: 4/shards: 3/' gpt.yaml
expect 2 heddle config check gpt.yaml
says 'gpt.yaml:2:'
says 'heads 4 cannot be split in 3 shards'
expect 2 heddle run mlp.yaml -s model.shards=5 --dry-run
says 'width 4 cannot be split in 5 shards'
expect 2 heddle run mlp.yaml -s model.shards=0 --dry-run
says 'model.shards'
expect 2 heddle run mlp.yaml -s model.shards=1 -s model.sequence_shards=true --dry-run
says 'model.sequence_shards splits in model.shards parts, and that is 1'
expect 2 heddle run mlp.yaml -s model.shards=2 -s model.sequence_shards=true --dry-run
says 'nothing of this model lies along a sequence'
expect 2 heddle run bert.yaml -s model.args='{layers: 1, width: 32, heads: 4, context: 13, vocab: 40}' \
	-s model.sequence_shards=true --dry-run
says 'sequence 13 cannot be split in 4 shards'
passed "what does not divide is refused"
