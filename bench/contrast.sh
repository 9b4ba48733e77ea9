#!/bin/bash
# contrast.sh -- why virtual nodes: the same hyperparameters on a device that holds a small batch only.
# Each model is trained with its own batch (R), on one device, three ways:
#   whole    all memory: the batch in one pass
#   virtual  the memory of a small device: the same batch as virtual nodes
#   small    the memory of a small device: no virtual nodes, so the batch is what fits; all else as it was
# over as many samples, with three seeds. The limit is workers.memory; that the whole batch does not fit it
# is shown by the refusal. Prints a page for docs/results.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
seeds=${HD_CONTRAST_SEEDS:-"1 2 3"}
text=${HEDDLE_SHARED:-../shared}/data/text/tinyshakespeare.txt

cat >"$out/lenet.yaml" <<'Y'
job:   {name: contrast-lenet, epochs: 3}
model: {use: builtin:lenet}
data:  {kind: idx, split: {train: 1.0, valid: 0.0}}
optim: {kind: momentum, lr: 0.05, clip: 0, schedule: {kind: cosine, warmup: 0, floor: 0.05}}
eval:  {every: 0, metric: accuracy}
Y
cat >"$out/gpt.yaml" <<Y
job:   {name: contrast-gpt}
model: {use: builtin:gpt, args: {layers: 2, width: 64, heads: 2, context: 64}}
data:  {kind: text, path: "$text", split: {train: 0.9, valid: 0.1}}
optim: {kind: adamw, lr: 1e-2, clip: 1, schedule: {kind: cosine, warmup: 50, floor: 0.05}}
eval:  {every: 0, metric: loss}
Y

value() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" | awk '{ printf "%.4f", $1 }'; }
# train NAME SEED BATCH VNS MEMORY MORE...: prints the metric
train()
{
	local name=$1 seed=$2 batch=$3 vns=$4 memory=$5 metric split
	shift 5
	case $name in lenet) metric=accuracy split=test ;; *) metric=loss split=valid ;; esac
	"$heddle" run "$out/$name.yaml" --devices 1 -q --out "$out/run" -s job.seed="$seed" \
		-s batch.global="$batch" -s batch.virtual_nodes="$vns" -s workers.memory="$memory" "$@" \
		>"$out/log" 2>&1 || {
		[ $? = 4 ] || { cat "$out/log" >&2; return 1; }         # 4: a number that is none
		echo diverged
		rm -rf "$out/run"
		return 0
	}
	"$heddle" eval "$out/run" --split "$split" --devices 1 --json | value "$metric"
	rm -rf "$out/run"
}

cat <<Y
# The contrast that motivates virtual nodes

$(made_by contrast.sh).
One device, the same hyperparameters, the same number of samples. \`whole\`: the batch in one pass;
\`virtual\`: the same batch as virtual nodes on a device whose memory holds a small part of it; \`small\`: on
that device without them, the batch that fits.

Y
echo -n "| model | batch | way | virtual nodes | memory limit |"
for seed in $seeds; do printf " seed %s |" "$seed"; done
echo
echo "|---|--:|---|--:|--:|$(for seed in $seeds; do printf -- '--:|'; done)"
# model batch vns small-batch limit | steps of the whole and of the small one (text has no epochs here)
while read -r name batch vns small limit steps; do
	for way in whole virtual small; do
		case $way in
		whole)   b=$batch v=1 m=auto n=$steps ;;
		virtual) b=$batch v=$vns m=$limit n=$steps ;;
		small)   b=$small v=1 m=$limit n=$((steps * batch / small)) ;;
		esac
		row="| $name | $b | $way | $v | $m |"
		for seed in $seeds; do
			if [ "$steps" = 0 ]; then row+=" $(train "$name" "$seed" "$b" "$v" "$m") |"
			else row+=" $(train "$name" "$seed" "$b" "$v" "$m" -s job.steps="$n") |"; fi
		done
		echo "$row"
	done
done <<'T'
lenet 256 32 8 6MiB 0
gpt 64 32 2 7MiB 600
T
cat <<'Y'

lenet: share of the 10,000 test images of Fashion-MNIST recognised after 3 epochs; gpt: nats per byte of the
last tenth of the text.
Y
for job in "lenet 256 6MiB" "gpt 64 7MiB"; do
	read -r name batch limit <<<"$job"
	echo
	echo "\`$name\`, the whole batch within $limit:"
	echo '```'
	"$heddle" run "$out/$name.yaml" --devices 1 --dry-run -s batch.global="$batch" \
		-s batch.virtual_nodes=1 -s job.steps=1 -s job.epochs=none -s workers.memory="$limit" 2>&1 |
		grep -o 'the job needs.*' | head -n 1
	echo '```'
done
