#!/bin/bash
# What people bring from PyTorch, feature by feature, under plans and kills. Each row below is a small job.
# One device, undisturbed, says what it comes to: digest, records of steps, evaluations, looks of judges, the
# best state. The same job in another way must come to the same:
#
#   2 3 5     so many devices
#   stages    two stages on two devices (rows that say so)
#   workers   three workers, one of which dies by SIGKILL before a drawn step
#   resume    stopped after a drawn step on 2 devices, resumed on 3
#   killed    alone and killed before a drawn step, resumed on 2 devices from the checkpoint before it
#
# HD_BRIDGE=all: all ways of all rows; else one way of each, drawn. HD_BRIDGE_SEED (1): what is drawn.
# HD_BRIDGE_ROWS: names of rows, a pattern.
. "$(dirname "$0")/program.sh"
needs_failpoints
RANDOM=${HD_BRIDGE_SEED:-1}
steps=10
losses=$SOURCE_DIR/tests/torch/fixtures/losses
text='{layers: 2, width: 16, heads: 4, hidden: 24, context: 12, vocab: 32'

# NAME [stages], then what its job has beside `common`
rows()
{
	cat <<END
=== smoothing stages
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
loss: {smoothing: 0.1, class_weights: [0.5, 1, 2, 1.5], ignore: 3}
eval: {every: 2, metrics: [f1-macro, auroc, top-2]}
checkpoint: {every: 3 steps, keep: 2, best: val_f1-macro}
=== bce stages
model: {use: "builtin:mlp", args: {input: [12], hidden: [9], classes: 5}, loss: bce}
loss: {pos_weight: [1, 2, 3, 0.5, 1]}
data: {kind: npy, path: $losses/labels}
eval: {every: 2, metrics: [f1-micro, auroc]}
checkpoint: {every: 3 steps, keep: 2, best: val_auroc}
=== soft stages
model: {use: "builtin:mlp", args: {input: [12], hidden: [9], classes: 5}, loss: soft-cross-entropy}
loss: {smoothing: 0.1, class_weights: [0.5, 2.0, 1.25, 0.0, 3.0]}
data: {kind: npy, path: $losses/shares}
=== kl stages
model: {use: "builtin:mlp", args: {input: [12], hidden: [9], classes: 5}, loss: kl}
data: {kind: npy, path: $losses/shares}
=== huber stages
model: {use: "builtin:mlp", args: {input: [12], hidden: [9], classes: 5}, loss: huber}
loss: {delta: 0.75}
data: {kind: npy, path: $losses/numbers}
eval: {every: 2, metrics: [mae, r2]}
checkpoint: {every: 3 steps, keep: 2, best: val_mae}
=== smooth-l1 stages
model: {use: "builtin:mlp", args: {input: [12], hidden: [9], classes: 5}, loss: smooth-l1}
data: {kind: npy, path: $losses/numbers}
=== inputs stages
model:
  use: builtin:bert
  args: $text, head: cls, classes: 3, inputs: [attention_mask, token_type_ids, position_ids]}
eval: {every: 2, metrics: [f1-macro]}
=== masked-tokens stages
model: {use: "builtin:gpt", args: {layers: 2, width: 16, heads: 4, context: 12, vocab: 32,
  inputs: [attention_mask, position_ids], dropout: 0.1}}
=== tokenizer stages
model: {use: "builtin:bert", args: $text, head: cls, classes: 3, inputs: [attention_mask, token_type_ids]}}
data: {kind: jsonl, path: pairs.jsonl, tokenizer: t.json, columns: [a, b], label: y}
=== jsonl stages
model: {use: "builtin:mlp", args: {input: [5], hidden: [6], classes: 3}}
data: {kind: jsonl, path: rows.jsonl, columns: [f, in.v]}
=== parquet stages
model: {use: "builtin:mlp", args: {input: [5], hidden: [6], classes: 3}}
data: {kind: parquet, path: $SOURCE_DIR/tests/data/rows/sixty.parquet, columns: [f, v, n]}
=== pack-fit stages
model: {use: "builtin:gpt", args: {layers: 2, width: 16, heads: 2, context: 8, vocab: 32,
  inputs: [attention_mask, position_ids]}}
data: {kind: tokens, path: docs.bin, boundaries: docs.at, pack: fit}
=== pack-order stages
model: {use: "builtin:llama", args: {layers: 2, width: 16, heads: 2, context: 8, vocab: 32}}
data: {kind: tokens, path: docs.bin, boundaries: docs.at, pack: order}
=== images
model: {use: "builtin:lenet", args: {channels: 3, height: 16, width: 16, classes: 2}}
data: {kind: images, path: set, augment: [resized_crop, flip, {normalize: {mean: [0.5], std: [0.25]}}]}
=== shards-of-images
model: {use: "builtin:lenet", args: {channels: 3, height: 16, width: 16, classes: 2}}
data: {kind: webdataset, path: set.tar, augment: [resized_crop, flip], split: {train: 0.7, valid: 0.3}}
=== mistral stages
model: {use: "builtin:mistral", args: $text, kv_heads: 2, window: 5, rope_kind: linear, rope_factor: 3}}
=== gemma2 stages
model: {use: "builtin:gemma2", args: $text, kv_heads: 2, head_dim: 6, window: 4, cap: 2, final_cap: 3}}
=== phi3 stages
model: {use: "builtin:phi3", args: $text, kv_heads: 2, rope_kind: longrope, rope_factor: 3,
  rope_original: 4, rope_few: [1, 1.5], rope_many: [1.25, 4]}}
=== qwen2 stages
model: {use: "builtin:qwen2", args: $text, kv_heads: 1}}
=== qwen3 stages
model: {use: "builtin:qwen3", args: $text, kv_heads: 1, head_dim: 8}}
=== neox stages
model: {use: "builtin:neox", args: $text, rope_part: 0.5, dropout: 0.1}}
=== mixtral stages
model: {use: "builtin:mixtral", args: $text, kv_heads: 2, experts: 4, chosen: 2, capacity: 1.5,
  balance: 0.02}}
=== qwen2-moe stages
model: {use: "builtin:qwen2-moe", args: $text, kv_heads: 1, experts: 3, chosen: 2}}
=== t5 stages
model: {use: "builtin:t5", args: $text, inputs: [attention_mask]}}
=== roberta stages
model: {use: "builtin:roberta", args: $text, head: cls, classes: 3, inputs: [attention_mask]}}
=== mixes
model:
  use: builtin:lenet
  loss: soft-cross-entropy
  args: {channels: 3, height: 16, width: 16, classes: 2}
data: {kind: images, path: set, augment: [resized_crop, {rotate: 20}, {color_jitter: {hue: 0.1}}, erasing,
  {mixup: 0.4}, {cutmix: 1}]}
=== vit stages
model: {use: "builtin:vit", args: {layers: 2, width: 16, heads: 4, hidden: 24, channels: 2, image: 8,
  patch: 4, classes: 5, dropout: 0.1}}
=== onnx stages
model: {use: "onnx:$SOURCE_DIR/tests/onnx/inputs/model.onnx"}
data: {kind: npy, path: $SOURCE_DIR/tests/onnx/inputs}
=== groups stages
model: {use: "builtin:gpt", args: {layers: 2, width: 16, heads: 2, context: 8, vocab: 32}}
optim: {kind: adamw, lr: 1e-2, weight_decay: 0.1, no_decay: norms-and-biases, groups: [
  {params: ["h.0.*"], lr_scale: 0.1}, {params: [wpe.weight], freeze: true},
  {params: ["h.1.*"], lr: 5e-3, decay: 0}]}
=== adapters stages
model:
  use: builtin:gpt
  args: {layers: 2, width: 16, heads: 2, context: 8, vocab: 32}
  lora: {rank: 2, alpha: 4, targets: ["*.c_attn.weight"], train: ["ln_f.*"]}
=== means stages
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
optim: {kind: adamw, lr: 0.1, ema: {decay: 0.8, every: 2}}
eval: {every: 2, weights: ema}
checkpoint: {every: 3 steps, keep: 2, best: val_loss}
=== one-cycle stages
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
optim: {kind: nesterov, lr: 0.2, schedule: {kind: one-cycle}}
=== polynomial stages
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
optim: {kind: lion, lr: 0.01, schedule: {kind: polynomial, power: 0.9, warmup: 2, floor: 0}}
=== plateau
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
optim: {kind: sgd, lr: 2, schedule: {kind: plateau, warmup: 0, every: 2, patience: 1, factor: 0.5,
  threshold: 0.3}}
checkpoint: {every: 3 steps, keep: 2, best: val_loss}
=== plateau-of-steps
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
optim: {kind: sgd, lr: 2, schedule: {kind: plateau, warmup: 0, every: 3, patience: 0, factor: 0.5,
  threshold: 0.05, metric: loss}}
=== patience-of-steps
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
optim: {kind: sgd, lr: 2, schedule: {kind: constant, warmup: 0}}
stop: {patience: 1, every: 4, metric: loss, min_delta: 0.3}
=== patience
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
stop: {patience: 2, every: 2, metric: val_f1-macro, min_delta: 0.3}
eval: {every: 1, metrics: [f1-macro, accuracy]}
checkpoint: {every: 3 steps, keep: 2, best: val_f1-macro}
=== bf16
job: {name: it, seed: 5, steps: $steps, precision: bf16}
model: {use: "builtin:gpt", args: {layers: 2, width: 16, heads: 2, context: 8, vocab: 32}}
=== bf16-storage stages
model: {use: "builtin:gpt", precision: bf16-storage,
  args: {layers: 2, width: 16, heads: 2, context: 8, vocab: 32}}
END
}
common()
{
	cat <<END
job: {name: it, seed: 5, steps: $steps}
data: {kind: synthetic, count: 90}
batch: {global: 12, virtual_nodes: 6}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: cosine, warmup: 2}}
eval: {every: 4}
checkpoint: {every: 3 steps, keep: 2}
END
}

materials()
{
	local i name n=0 from=$SOURCE_DIR/tests/data/images
	for i in $(seq 1 60); do
		printf '{"f": [[%d, 0.%d], [-%d, 1e-%d]], "in": {"v": %d}, "label": %d}\n' "$i" "$i" \
			$((i * i)) $((i % 5)) $((i % 9)) $((i % 3))
	done >rows.jsonl
	{
		printf '{"added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": {"type":'
		printf ' "WordLevel", "unk_token": "w0", "vocab": {"w0": 0'
		for i in {1..30}; do printf ', "w%d": %d' "$i" "$i"; done
		printf '}}}'
	} >t.json
	for i in $(seq 1 80); do
		seq $((i % 11 + 1)) | awk -v i="$i" '{ printf "w%d ", (i + $1 * $1) % 31 } END { print "" }'
	done >docs.txt
	paste -d '|' docs.txt <(tac docs.txt) |
		awk -F '|' '{ printf "{\"a\": \"%s\", \"b\": \"%s\", \"y\": %d}\n", $1, $2, NR % 3 }' \
			>pairs.jsonl
	expect 0 heddle data tokenize --tokenizer t.json --lines docs.txt -o docs.bin --boundaries docs.at \
		--eos w0 -q
	mkdir -p set/train/{grey,colour} set/val/{grey,colour} tar
	for i in 1 2 3 4; do
		for name in grey.jpg grey4.png grey16.png one.png; do
			cp "$from/$name" "set/train/grey/$i$name"
		done
		for name in s420.jpg rgb.png adam7.png cmyk.jpg; do
			cp "$from/$name" "set/train/colour/$i$name"
		done
	done
	cp "$from"/la.png set/val/grey/
	cp "$from"/{s444.jpg,palette.png} set/val/colour/
	for name in set/train/*/*; do
		cp "$name" "tar/$(printf %03d $n).${name##*.}"
		[[ $name = */grey/* ]]
		echo $((1 - $?)) >"tar/$(printf %03d $n).cls"
		n=$((n + 1))
	done
	tar -C tar --sort=name -cf set.tar .
}

# What a run came to. A step may be recorded again after a loss, and an evaluation said again: equal lines are
# one.
came_to()       # RUN
{
	heddle ckpt digest "$1" | head -n 1
	awk -F '[,{}]' '{
		line = ""
		for (i = 1; i <= NF; i++)
			if ($i ~ /^"(step|loss|lr|samples|epoch|weight|gnorm)":/)
				line = line " " $i
		print "step" line
	}' "$1/metrics.ndjson" | sort -u
	sed -En '/"kind":"eval"/s/.*("step":[0-9]+).*("loss":.*)/eval \1 \2/p' "$1/events.ndjson" | sort -u
	sed -En '/"kind":"judged"/s/.*"text":"(.*)".*/judged \1/p' "$1/events.ndjson" | sort -u
	[ ! -d "$1/ckpt/best" ] || { ls "$1/ckpt/best"; heddle ckpt digest "$1/ckpt/best" | head -n 1; }
}

go()            # JOB WAY: its run is in `run`
{
	local at n
	n=$(grep -c '^step "' "${1%.yaml}.one")
	at=$((2 + RANDOM % (n - 3)))
	rm -rf run
	case $2 in
	[0-9]) expect 0 heddle run "$1" --out run -q --devices "$2" ;;
	stages) expect 0 heddle run "$1" --out run -q --devices 2 -s parallel.mode=pipeline \
		-s parallel.stages=2 ;;
	workers)
		mkdir -p run/chaos
		chmod 700 run run/chaos
		echo "gate.boundary:kill@$at" >run/chaos/any
		heddle run "$1" --out run --workers 3 --devices 1 -s 'workers.detect=20 s' -q >out 2>err ||
			failed "$1: three workers, one killed before step $at: exit $?"
		[ -n "$(find run/chaos -name 'hit.*')" ] || failed "$1: none died before step $at" ;;
	resume)
		expect 0 heddle run "$1" --out run -q --devices 2 --steps "$at"
		expect 0 heddle resume run -q --devices 3 ;;
	killed)
		HD_FAIL=step.begin:kill@$((at + 1)) expect 137 heddle run "$1" --out run -q --devices 1
		expect 0 heddle resume run -q --devices 2 ;;
	esac
}

row()           # NAME WAY...: ways beside those of all rows
{
	local name=$1 way few=(2 3 5) others=(workers resume killed "${@:2}") ways
	[[ $name = ${HD_BRIDGE_ROWS:-*} ]] || return 0
	while read -r line; do
		grep -q "^${line%%:*}:" "$name.part" || echo "$line"
	done < <(common) | cat - "$name.part" >"$name.yaml"
	if ! heddle run "$name.yaml" --out run -q --devices 1 >out 2>err; then
		grep -q 'needs AVX512' out err || failed "$name: $(cat err)"
		echo "skip: $name: this processor has none"
		return 0
	fi
	came_to run >"$name.one"
	[ "$(grep -c '^step "' "$name.one")" -gt 4 ] || failed "$name: its run is too short"
	if [ "${HD_BRIDGE:-}" = all ]; then
		ways=("${few[@]}" "${others[@]}")
	else
		ways=("${few[RANDOM % 3]}" "${others[@]}")
		ways=("${ways[RANDOM % ${#ways[@]}]}")
	fi
	for way in "${ways[@]}"; do
		go "$name.yaml" "$way"
		came_to run | diff "$name.one" - >differ || failed "$name, $way: $(head -n 8 differ)"
	done
	passed "$name: ${ways[*]}"
}

materials
rows | awk '/^=== / { out = $2 ".part"; print substr($0, 5) >"list"; next } { print >out }'
n=0
while read -r name ways; do
	rm -rf run
	row "$name" $ways </dev/null
	n=$((n + 1))
done <list
[ "$n" -ge 30 ] || failed "$n rows"
