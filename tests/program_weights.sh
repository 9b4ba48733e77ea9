#!/bin/bash
# heddle model import, model export, ckpt export: names and bits of weights, without and with other readers.
. "$(dirname "$0")/program.sh"
write_jobs 2
for name in mlp lenet gpt; do train run $name.yaml --out $name; done

# what a model of ours writes with public names, import takes and writes as the same bytes again
args_gpt="-s layers=1 -s width=16 -s heads=2 -s context=8 -s vocab=32"
args_mlp="-s input=[1,6,6] -s hidden=[24] -s classes=4"
args_lenet="-s height=16 -s width=16 -s classes=3"
for name in mlp lenet gpt; do
	expect 0 heddle model export $name -o $name.safetensors -q
	args=args_$name
	expect 0 heddle model import $name.safetensors --model builtin:$name ${!args} -o in_$name -q
	expect 0 heddle ckpt export $name -o plain.safetensors -q
	expect 0 heddle model import plain.safetensors --model $name ${!args} -o again_$name -q
	cmp -s again_$name/model.safetensors plain.safetensors ||
		failed "$name: our own names come back as other bytes"
	expect 0 heddle config check in_$name/job.yaml
	expect 0 heddle run in_$name/job.yaml -s job.steps=1 -q
	tail -c 2000 in_$name/model.safetensors | cmp -s - <(tail -c 2000 again_$name/model.safetensors) ||
		failed "$name: other tensors by public names"
done
passed "import of what export wrote, and a job that begins from it"

expect 3 heddle model import no-such-folder -o x
says 'no-such-folder'
expect 2 heddle model import gpt.safetensors -o x
says '--model NAME'
expect 3 heddle model import gpt.safetensors --model gpt -s layers=2 -s width=16 -s heads=2 -s context=9 \
	-s vocab=32 -o x
says 'h.1.ln_1.weight f32 [16]'
says 'wpe.weight F32 [8,16] for f32 [9,16]'
[ ! -e x ] || failed "a refused import left something"
expect 2 heddle model export gpt -o gpt.onnxx
says '.safetensors'
expect 2 heddle ckpt export gpt -o x.safetensors --tied both
says '--names torch'
expect 3 heddle run gpt.yaml -s model.weights=mlp.safetensors
says 'not of this model: fc1.bias F32 [24]'
passed "what does not fit is refused with all its names"

# a folder with config.json needs no arguments
mkdir hf && cp gpt.safetensors hf/model.safetensors
cat >hf/config.json <<'END'
{"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 8, "vocab_size": 32,
 "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05}
END
expect 0 heddle model import hf -o from_hf -q
cmp -s from_hf/model.safetensors in_gpt/model.safetensors || failed "config.json gave another model"
sed -i 's/gelu_new/quick_gelu/' hf/config.json
expect 3 heddle model import hf -o from_hf2 -q
says 'activation_function is quick_gelu'
sed -i 's/gpt2/gemma/' hf/config.json
expect 3 heddle model import hf --model gpt $args_gpt -o from_hf2 -q
says 'model_type is gemma'
[ ! -e from_hf2 ] || failed "a refused import left something"
passed "config.json gives model and arguments, and refuses what we do not compute"

# models of the public library, as both of its majors describe them: the loss that PyTorch finds, so every
# number of config.json counts
published=$SOURCE_DIR/tests/weights/published
for name in gpt2 llama bert bert_cls; do
	mkdir theirs_$name && cp "$published/$name/model.safetensors" theirs_$name/
	for major in 4 5; do
		cp "$published/$name/config.$major.json" theirs_$name/config.json
		share=
		[ $name != bert ] || share="-s share=0"
		expect 0 heddle model import theirs_$name $share -o ours_$name.$major -q
		expect 0 heddle run ours_$name.$major/job.yaml -s data.kind=npy \
			-s "data.path=$published/$name" -s 'data.split={train: 1, valid: 0}' \
			-s batch.global=4 -s batch.virtual_nodes=2 \
			-s batch.normalize=token -s job.steps=1 -s optim.lr=0 --out run_$name.$major -q
		expect 0 heddle eval run_$name.$major --split train --json
		awk -v ours="$(number loss)" -v theirs="$(cat "$published/$name/loss")" \
			'BEGIN { off = (ours - theirs) / theirs; exit !(off * off < 1e-10) }' ||
			failed "$name $major: loss $(number loss), PyTorch $(cat "$published/$name/loss")"
	done
	cmp -s <(sed '/safetensors\|heddle run/d' ours_$name.4/job.yaml) \
		<(sed '/safetensors\|heddle run/d' ours_$name.5/job.yaml) ||
		failed "$name: two majors, two jobs"
done
# and back: a folder that our import takes for the same model
expect 0 heddle model export run_llama.5 -o back_llama -q
expect 0 heddle model import back_llama -o again_llama -q
cmp -s <(sed 's/again_llama/ours_llama.5/' again_llama/job.yaml) ours_llama.5/job.yaml ||
	failed "config.json came back as another model"
expect 0 heddle model export run_gpt2.5 -o back_gpt2 -q
grep -q 'transformer.wte.weight' back_gpt2/model.safetensors || failed "no names of GPT2LMHeadModel"
expect 2 heddle model export mlp -o back_mlp
says 'no published model'
[ ! -e back_mlp ] || failed "a refused export left something"
grep -q 'head_dim: 8' ours_llama.5/job.yaml && grep -q 'rope: 500' ours_llama.5/job.yaml ||
	failed "rope_parameters or head_dim were not read"
sed 's/"default"/"axial"/' "$published/llama/config.5.json" >theirs_llama/config.json
expect 3 heddle model import theirs_llama -o refused -q
says 'rope_parameters.rope_type is axial'
expect 3 heddle model import theirs_llama/model.safetensors --model llama -o refused -q
says 'rope_parameters.rope_type is axial'
[ ! -e refused ] || failed "a refused import left something"
passed "what transformers 4 and 5 write beside weights is read key by key"

# its head and its classes, too; a head for classes is tied to no table of tokens
train run bert_cls.yaml --out bert_cls
expect 0 heddle model export bert_cls -o cls.safetensors --tied both -q
! grep -q 'cls.predictions' cls.safetensors || failed "a head that the model has not was written"
mkdir hf_cls && cp cls.safetensors hf_cls/model.safetensors
cat >hf_cls/config.json <<'END'
{"model_type": "bert", "architectures": ["BertForSequenceClassification"], "num_hidden_layers": 1,
 "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 8,
 "vocab_size": 33, "type_vocab_size": 2, "pad_token_id": 3, "hidden_dropout_prob": 0.1,
 "layer_norm_eps": 1e-12, "hidden_act": "gelu", "id2label": {"0": "a", "1": "b", "2": "c"}}
END
expect 0 heddle model import hf_cls -o in_cls -q
grep -q 'head: "cls", classes: 3' in_cls/job.yaml || failed "config.json names head and classes"
expect 0 heddle run in_cls/job.yaml -s job.steps=1 -q
train run bert.yaml --out bert
expect 0 heddle model export bert -o mlm.safetensors --tied both -q
grep -q 'cls.predictions.decoder.weight' mlm.safetensors ||
	failed "the second name of a tied table is missing"
expect 3 heddle run bert_cls.yaml -s model.weights=mlm.safetensors
says 'classifier.weight f32 [3,16]'
expect 0 heddle run bert_cls.yaml -s model.weights=mlm.safetensors \
	-s 'model.weights_skip=["classifier.*","bert.pooler.*","cls.*"]' -q
passed "a head for classes from config.json, from weights with the other head, and out with its own alone"

expect 0 heddle ckpt export gpt -o half.safetensors --dtype bf16 -q
expect 0 heddle run gpt.yaml -s model.weights=half.safetensors -s job.steps=1 -q
[ "$(stat -c %s half.safetensors)" -lt "$(stat -c %s plain.safetensors)" ] || failed "bf16 is not smaller"
passed "bf16 out and in"

expect 0 heddle run gpt.yaml -s model.weights=half.safetensors -s job.steps=2 --out begun -q
expect 0 heddle eval begun --json
here=$(cat out)
mkdir elsewhere
away() { (cd elsewhere && heddle "$@"); }
expect 0 away eval ../begun --json
[ "$(cat out)" = "$here" ] || failed "another folder, another result: $(cat out), not $here"
expect 0 away resume ../begun --steps 3 -q
mv half.safetensors gone.safetensors
expect 3 away eval ../begun
says half.safetensors
mv gone.safetensors half.safetensors
passed "relative weights of a run are found from any folder"

train run gpt.yaml -s model.weights=in_gpt/model.safetensors -s model.lora.rank=2 \
	-s 'model.lora.targets=["h.*.attn.c_attn.weight"]' --out lora
expect 0 heddle model show lora/job.resolved.json
says 'h.0.attn.c_attn.weight.lora_A'
expect 0 heddle model export lora -o merged.safetensors -q
expect 0 heddle model import merged.safetensors --model gpt $args_gpt -o merged -q
expect 0 heddle ckpt export lora -o apart.safetensors -q
grep -q lora_B apart.safetensors || failed "the adapters are not in our own export"
expect 3 heddle model import apart.safetensors --model gpt $args_gpt -o apart
says 'h.0.attn.c_attn.weight.lora_A'
expect 2 heddle run gpt.yaml -s model.lora.rank=2
says 'model.lora.targets'
passed "adapters are trained, and merged on their way out"

train run gpt.yaml -s model.precision=bf16-storage --out half
[ "$(stat -c %s half/ckpt/step-000000002/model.safetensors)" \
	-lt "$(stat -c %s gpt/ckpt/step-000000002/model.safetensors)" ] || failed "bf16 takes as much room"
whole=$digest
train run gpt.yaml -s model.precision=bf16-storage --steps 1 --out half2
train resume half2
same "$digest" "$whole" "a run of bf16, stopped and resumed"
passed "bf16 storage is resumed bit for bit"

python=/opt/torchvenv/bin/python
[ -x $python ] || python=$(command -v python3)
"$python" -c 'import torch, safetensors.torch' 2>/dev/null || {
	echo "skip: Python without torch and safetensors: other readers are not asked"
	exit 0
}
"$python" "$SOURCE_DIR/tests/weights/round_trip.py" "$HEDDLE_BIN" >out 2>err ||
	failed "round trip with PyTorch"
cat out
