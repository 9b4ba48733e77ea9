#!/bin/bash
# finetune.sh -- does beginning from weights help? Pre-trains a small GPT on the first part of a text, exports
# it with public names, imports that, and gives it and a fresh model the same few steps on the last part;
# prints Markdown.
#
#	bench/finetune.sh [STEPS_BEFORE] [STEPS_AFTER] >docs/results/finetune.md
#
# Needs HEDDLE_SHARED (data/text/tinyshakespeare.txt) or TEXT=FILE, and HEDDLE_BIN or a release build.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/bench/machine.sh"
heddle=${HEDDLE_BIN:-$root/build/release/heddle}
text=${TEXT:-${HEDDLE_SHARED:?set HEDDLE_SHARED or TEXT}/data/text/tinyshakespeare.txt}
before=${1:-600} after=${2:-60} seeds=${HD_FINETUNE_SEEDS:-"1 2 3"}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
size=$(stat -c %s "$text")
head -c $((size * 6 / 10)) "$text" >"$work/first.txt"
tail -c $((size * 3 / 10)) "$text" >"$work/last.txt"

model='use: "builtin:gpt", args: {layers: 3, width: 96, heads: 4, context: 96, vocab: 256}'
seed=1
job()     # name, steps, file, rate, more of model; each seed has folders of its own
{
	cat >"$1.yaml" <<END
job:   {name: $1, seed: $seed, steps: $2}
model: {$model$5}
data:  {kind: text, path: $work/$3, split: {train: 0.9, valid: 0.1}}
batch: {global: 16, virtual_nodes: 8, normalize: token}
optim:
  {kind: adamw, lr: $4, betas: [0.9, 0.99], weight_decay: 0.1, clip: 1.0,
   schedule: {kind: cosine, warmup: 10, floor: 0.1}}
eval:  {every: 0}
checkpoint: {every: 100000 steps, keep: 1}
END
	"$heddle" run "$1.yaml" --out "$1" -q >&2
}
loss() { "$heddle" eval "$1" --split valid --json -q | sed 's/.*"loss":\([0-9.]*\).*/\1/' | cut -c 1-6; }
params() { "$heddle" model show "$1.yaml" --json | sed 's/.*"parameters":\([0-9]*\).*/\1/'; }

train()    # all five runs of one seed
{
	job pretrained "$before" first.txt 3e-3 ""
	"$heddle" model export pretrained --names torch -o public.safetensors -q
	"$heddle" model import public.safetensors --model gpt -s layers=3 -s width=96 -s heads=4 \
		-s context=96 -s vocab=256 -o weights -q
	job scratch "$after" last.txt 3e-3 ""
	job finetuned "$after" last.txt 1e-3 ", weights: weights/model.safetensors"
	job adapters "$after" last.txt 3e-3 ", weights: weights/model.safetensors, lora: {rank: 8, alpha: 16,
   targets: ['h.*.attn.*.weight', 'h.*.mlp.*.weight']}"
	job begin 1 last.txt 0 ", weights: weights/model.safetensors"
}
heads() { for seed in $seeds; do printf ' seed %s |' "$seed"; done; }
losses() { for seed in $seeds; do printf ' %s |' "$(cd "$work/$seed" && loss "$1")"; done; }

for seed in $seeds; do
	mkdir "$work/$seed"
	cd "$work/$seed"
	train
done
cd "$work"

count=$(cd "$work/${seeds%% *}" && params scratch)
cat <<END
# Fine-tuning from imported weights

Made by \`bench/finetune.sh $before $after\` on $(date +%F); program $("$heddle" version | head -n 1),
$(processor). A byte-level GPT of 3 layers, width 96 ($count parameters)
is pre-trained for $before steps on the first six tenths of tiny Shakespeare, exported with public names,
imported, and trained for $after steps of 16 samples on the last three tenths (other plays). Loss in nats per
byte on the last tenth of those.

| begins from | what is trained | rate | steps there |$(heads)
|---|---|--:|--:|$(for seed in $seeds; do printf -- '--:|'; done)
| random numbers | everything | 3e-3 | $after |$(losses scratch)
| imported weights | nothing | | 0 |$(losses begin)
| imported weights | everything | 1e-3 | $after |$(losses finetuned)
| imported weights | adapters of rank 8 | 3e-3 | $after |$(losses adapters)

Rates were chosen once per kind, not tuned; the row of random numbers has the rate of the pre-training.
END
