#!/bin/bash
# Inputs beside x and y: a file of ONNX with three, as PyTorch trains it; masks that are none; the same bits
# over workers.
. "$(dirname "$0")/program.sh"
data=$SOURCE_DIR/tests/onnx/inputs
cat >onnx.yaml <<END
job: {steps: 10, name: onnx}
model: {use: "onnx:$data/model.onnx"}
data: {kind: npy, path: $data, split: {train: 1, valid: 0}, order: sequential}
batch: {global: 16, virtual_nodes: 4}
optim: {kind: adamw, lr: 1e-2, weight_decay: 0, clip: 0, schedule: {kind: constant, warmup: 0}}
END
train run onnx.yaml --out one --devices 1
one=$digest
sed 's/.*"loss":\([0-9.e-]*\).*/\1/' one/metrics.ndjson | paste - "$data/losses.txt" |
	awk '{ d = $1 - $2; d *= d < 0 ? -1 : 1; n++; if (d > 1e-5 * $2) bad++ }
		END { exit bad > 0 || n != 10 }' ||
	failed "losses: $(paste one/metrics.ndjson "$data/losses.txt")"
train run onnx.yaml --out three --devices 3
same "$digest" "$one" "three devices"
passed "a file of ONNX with three inputs has PyTorch's losses"

cp -r "$data" own
sed "s|path: [^,]*|path: own|" onnx.yaml >own.yaml
# the first sample: 12 numbers of 8 bytes behind the header
printf '\2' | dd of=own/attention_mask.npy bs=1 seek=128 conv=notrunc 2>/dev/null
expect 3 heddle run own.yaml --out no
says 'own/attention_mask.npy: 2 in sample 0 is out of range: the model knows 0 to 1'
dd if=/dev/zero of=own/attention_mask.npy bs=1 seek=128 count=96 conv=notrunc 2>/dev/null
expect 3 heddle run own.yaml --out no
says 'own/attention_mask.npy: sample 0 is all 0: nothing of it would be seen'
rm own/attention_mask.npy
expect 3 heddle run own.yaml --out no
says 'the graph reads an input "attention_mask"; the data have no such field'
passed "masks that are none are refused"

cat >bert.yaml <<'END'
job: {seed: 3, steps: 4, name: bert}
model: {use: "builtin:bert", args: {head: cls, layers: 2, width: 16, heads: 2, context: 12, vocab: 50,
  inputs: [attention_mask, token_type_ids, position_ids]}}
data: {kind: synthetic, count: 64}
batch: {global: 8, virtual_nodes: 4}
eval: {every: 0}
END
train run bert.yaml --out whole --devices 1
whole=$digest
train run bert.yaml --out workers --workers 3 --devices 1
same "$digest" "$whole" "three workers"
train run bert.yaml --out stages --devices 2 -s parallel.mode=pipeline -s parallel.stages=2
same "$digest" "$whole" "two stages"
passed "three workers and two stages have the bits of one device"
