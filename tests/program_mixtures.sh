#!/bin/bash
# Mixtures of experts and encoder-decoders: the same bits on any devices, stages, shards, over workers that
# die; in and out with published names.
. "$(dirname "$0")/program.sh"
# room is short, so tokens are dropped; two samples of a virtual node; a mask
cat >mixtral.yaml <<'END'
job: {name: mixtral, seed: 4, steps: 4}
model: {use: "builtin:mixtral", args: {layers: 2, width: 16, heads: 4, kv_heads: 2, hidden: 12, context: 8,
  vocab: 32, experts: 5, capacity: 0.7, balance: 0.3, inputs: [attention_mask]}}
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7, normalize: token}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: linear, warmup: 2}}
checkpoint: {every: 1 steps, keep: 2}
eval: {every: 0}
END
cat >t5.yaml <<'END'
job: {name: t5, seed: 5, steps: 4}
model: {use: "builtin:t5", args: {layers: 2, width: 16, heads: 4, hidden: 12, context: 8, target: 5,
  vocab: 32, buckets: 8, distance: 6, inputs: [attention_mask]}}
data: {kind: npy, path: pairs}
batch: {global: 14, virtual_nodes: 7, normalize: token}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: linear, warmup: 2}}
checkpoint: {every: 1 steps, keep: 2}
eval: {every: 0}
END

# FILE ROWS COLUMNS WORD...: bytes as an array of int32, over and over
npy()
{
	local n=$(($2 * $3)) header i words=("${@:4}")
	printf -v header "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }" "$2" "$3"
	{
		printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
		for ((i = 0; i < n; i++)); do
			printf "\\x$(printf %02x "${words[i % ${#words[@]}]}")"
		done
	} >"$1"
}
mkdir pairs
npy pairs/x.npy 40 8 3 1 4 1 5 9 2 6 5 3 5 8 9 7 31 3 2
npy pairs/y.npy 40 5 2 7 1 8 2 30 1 8 2 8 4 5 9
npy pairs/attention_mask.npy 40 8 1 1 1 0 1 1 1 1 1 0 0

for model in mixtral t5; do
	train run $model.yaml --out $model --devices 1
	one=$digest
	for n in 2 3 5; do
		train run $model.yaml --out $model-$n --devices $n
		same "$digest" "$one" "$model on $n devices"
	done
	train run $model.yaml --out $model-stages --devices 2 -s parallel.mode=pipeline -s parallel.stages=2
	same "$digest" "$one" "$model in two stages"
	if has_failpoints; then
		mkdir -p $model-dies/chaos
		chmod 700 $model-dies $model-dies/chaos
		echo gate.boundary:kill@2 >$model-dies/chaos/any
		heddle run $model.yaml --out $model-dies --workers 3 --devices 1 -s 'workers.detect=20 s' -q \
			>out 2>err
		await test -f $model-dies/ckpt/step-000000004/MANIFEST.json || failed "it did not end"
		[ -n "$(find $model-dies/chaos -name 'hit.*')" ] || failed "none died"
		same "$(heddle ckpt digest $model-dies)" "$one" "$model over three workers, one dies"
	fi
	train run $model.yaml --out $model-shards --devices 1 -s model.shards=2
	shards=$digest
	train run $model.yaml --out $model-tensor --devices 2 -s model.shards=2 -s parallel.tensor=2
	same "$digest" "$shards" "$model in two shards on two devices"
	passed "$model: the bits of one device on 2, 3, 5, two stages, three workers, one dies, two shards"
done

expect 0 heddle model export mixtral --names torch -o out-mixtral
grep -aq '"model.layers.1.block_sparse_moe.experts.4.w2.weight":{"dtype":"F32","shape":\[16,12\]' \
	out-mixtral/model.safetensors || failed "an expert is not there by its published name"
grep -q '"num_local_experts": *5' out-mixtral/config.json || failed "$(cat out-mixtral/config.json)"
expect 0 heddle model import out-mixtral -o again
says '47 tensors'
expect 0 heddle model export t5 --names torch -o out-t5
expect 0 heddle model import out-t5 -o again-t5
tensors() { tail -c +$((9 + $(od -An -tu8 -N8 "$1"))) "$1"; }      # behind the header
for model in mixtral t5; do
	expect 0 heddle run $model.yaml --out $model-still --devices 1 -s model.weights=out-$model \
		-s job.steps=1 -s optim.lr=0 -q
	expect 0 heddle model export $model-still --names torch -o still-$model
	tensors still-$model/model.safetensors >still
	tensors out-$model/model.safetensors | cmp - still || failed "$model came back otherwise"
done
sed 's/experts.4.w2/experts.6.w2/' out-mixtral/model.safetensors >bad.safetensors
expect 3 heddle model import bad.safetensors --model mixtral -o no
# no layer is dense: an empty list in config.json
for model in qwen2 qwen3; do
	sed 's/capacity: 0.7, //; s/"builtin:mixtral"/"builtin:'$model'-moe"/' mixtral.yaml >$model.yaml
	expect 0 heddle run $model.yaml --out $model --devices 1 -s job.steps=1 -q
	expect 0 heddle model export $model --names torch -o out-$model
	grep -q '"mlp_only_layers":\[\]' out-$model/config.json || failed "$(cat out-$model/config.json)"
	expect 0 heddle model import out-$model -o again-$model
done
sed 's/"num_experts":5,//' -i out-qwen3/config.json
expect 0 heddle model import out-qwen3 -o again-local
grep -q 'experts: 5' again-local/job.yaml || failed "$(cat again-local/job.yaml)"
passed "published names, there and back"
