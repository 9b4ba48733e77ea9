#!/bin/bash
# heddle model import and export of adapters as peft keeps them: its losses, its bytes, what is refused, and
# the same bits wherever such a job runs.
. "$(dirname "$0")/program.sh"
published=$SOURCE_DIR/tests/weights/published
base()
{
	mkdir "$1" && cp "$published/$1/model.safetensors" "$1/" &&
		cp "$published/$1/config.5.json" "$1/config.json"
}
base gpt2
base bert_cls
# of a head that is saved peft has the base's too, and calls its own so
names_in()
{
	head -c 20000 "$1" | tr -d '\0' | grep -ao '"base_model[^"]*"' | grep -v original_module |
		sed 's/modules_to_save.//' | sort -u
}
close() { awk -v a="$1" -v b="$2" 'BEGIN { off = (a - b) / b; exit !(off * off < 1e-10) }'; }

# what peft itself has found: the loss before, and of ten steps on what is trained (make_peft.py)
for name in gpt2 bert; do
	from=$name
	[ $name != bert ] || from=bert_cls
	expect 0 heddle model import "$published/peft_$name" --base $from -s dropout=0 -o in_$name -q
	sed -i '/^data:/d; /^batch:/d; /^optim:/d; s/^job:.*/job: {name: peft, steps: 10}/' in_$name/job.yaml
	cat >>in_$name/job.yaml <<-END
		data: {kind: npy, path: "$published/$from", order: sequential, split: {train: 1, valid: 0}}
		batch: {global: 4, virtual_nodes: 2, normalize: auto}
		optim: {kind: sgd, lr: 0.05, clip: 0, schedule: {kind: constant, warmup: 0}}
	END
	expect 0 heddle run in_$name/job.yaml --out run_$name -q
	grep -o '"loss":[^,}]*' run_$name/metrics.ndjson | cut -d: -f2 >ours
	[ "$(wc -l <ours)" -ge 10 ] || failed "$name: $(wc -l <ours) losses"
	paste ours <(tail -n 10 "$published/peft_$name/losses") | while read -r a b; do
		[ -z "$b" ] || close "$a" "$b" || failed "$name: loss $a, peft has $b"
	done || exit 1
	# before anything is trained: the same bytes under the same names
	expect 0 heddle run in_$name/job.yaml --out still_$name -s optim.lr=0 -s job.steps=1 -q
	expect 0 heddle eval still_$name --split train --json
	close "$(number loss)" "$(head -n 1 "$published/peft_$name/losses")" ||
		failed "$name: loss $(number loss), peft has $(head -n 1 "$published/peft_$name/losses")"
	expect 0 heddle model export still_$name --names peft -o out_$name --base "$from" -q
	expect 0 heddle model import out_$name -s dropout=0 -o again_$name -q
	cmp -s in_$name/model.safetensors again_$name/model.safetensors ||
		failed "$name: the adapter came back as other bytes"
	same "$(sed -n '/lora:/,/^data/p' again_$name/job.yaml | grep '^  ')" \
		"$(sed -n '/lora:/,/^job\|^data/p' in_$name/job.yaml | grep '^  ')" "model.lora of $name"
	cmp -s <(names_in "$published/peft_$name/adapter_model.safetensors") \
		<(names_in out_$name/adapter_model.safetensors) ||
		failed "$name: other tensors than peft's: $(names_in out_$name/adapter_model.safetensors)"
done
for word in '"r":2' '"lora_alpha":3' '"use_rslora":true' '"fan_in_fan_out":true' '"bias":"lora_only"' \
	'"task_type":"CAUSAL_LM"' '"base_model_name_or_path":"gpt2"' \
	'"rank_pattern":{"transformer.h.0.mlp.c_fc":3}' '"alpha_pattern":{"transformer.h.0.mlp.c_fc":5}'; do
	grep -qF "$word" out_gpt2/adapter_config.json ||
		failed "no $word in $(cat out_gpt2/adapter_config.json)"
done
for word in '"bias":"all"' '"modules_to_save":["classifier"]' '"task_type":"SEQ_CLS"' \
	'"fan_in_fan_out":false'; do
	grep -qF "$word" out_bert/adapter_config.json ||
		failed "no $word in $(cat out_bert/adapter_config.json)"
done
passed "adapters of peft give its losses, and come back as its bytes and its words"

# what would compute otherwise, or is no whole adapter
refuse()        # WORDS SED-SCRIPT: of adapter_config.json
{
	rm -rf bad && cp -r "$published/peft_gpt2" bad
	sed -i "$2" bad/adapter_config.json
	expect 3 heddle model import bad --base gpt2 -o refused -q
	says "$1"
	[ ! -e refused ] || failed "a refused import left something"
}
refuse 'use_dora is set' 's/"use_dora": false/"use_dora": true/'
refuse 'peft_type is LOHA' 's/"LORA"/"LOHA"/'
refuse 'init_lora_weights is pissa' 's/"init_lora_weights": true/"init_lora_weights": "pissa"/'
refuse 'the key tomorrow is not known' 's/"r": 2/"r": 2, "tomorrow": 1/'
refuse 'lora_bias is set' 's/"lora_bias": false/"lora_bias": true/'
refuse 'adapter_config.json says 4' 's/"r": 2/"r": 4/'
refuse "for 'c_proj' of target_modules" 's/"target_modules": \[/&"c_proj", /'
refuse 'lora_alpha is -1, so the adapter is subtracted' 's/"lora_alpha": 3/"lora_alpha": -1/'
refuse 'lora_alpha is 1e-300, which 32-bit floats do not have' 's/"lora_alpha": 3/"lora_alpha": 1e-300/'
refuse 'lora_alpha for transformer.h.0.mlp.c_fc is 2e+06' 's/c_fc": 5/c_fc": 2e6/'
refuse 'r is 5000; this build takes 1 to 4096' 's/"r": 2/"r": 5000/'
# bad: adapters of c_fc alone, of rank R, with A of so many columns (the base has 16)
wide()          # R COLUMNS
{
	local of=base_model.model.transformer.h.0.mlp.c_fc.lora_ a=$(($1 * $2 * 4)) b=$(($1 * 24 * 4)) header
	header=$(printf '{"%sA.weight":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,%d]},' \
		$of "$1" "$2" $a)
	header+=$(printf '"%sB.weight":{"dtype":"F32","shape":[24,%d],"data_offsets":[%d,%d]}}' \
		$of "$1" $a $((a + b)))
	rm -rf bad && cp -r "$published/peft_gpt2" bad
	{ printf '\x00\x02\0\0\0\0\0\0%-512s' "$header" && head -c $((a + b)) /dev/zero; } \
		>bad/adapter_model.safetensors
	sed -i "s/\"c_fc\": 3/\"c_fc\": $1/; /\"c_attn\"/d; s/\"c_fc\",/\"c_fc\"/" \
		bad/adapter_config.json
}
wide 4097 16
expect 3 heddle model import bad --base gpt2 -o refused -q
says 'of rank 4097; this build has ranks from 1 to 4096'
wide 5 17
expect 3 heddle model import bad --base gpt2 -o refused -q
says 'for h.0.mlp.c_fc.weight.lora_A f32 [5,16]'
[ ! -e refused ] || failed "a refused import left something"
wide 4096 16
expect 0 heddle model import bad --base gpt2 -o widest -q
expect 0 heddle run widest/job.yaml -s data.kind=synthetic -s job.steps=1 -s batch.global=2 \
	-s batch.virtual_nodes=1 --out wide_run -q
expect 3 heddle model import "$published/peft_gpt2" --base bert_cls -o refused -q
says 'is not of the model bert'
mv gpt2 elsewhere
expect 3 heddle model import "$published/peft_gpt2" -o refused -q
says 'the adapter is of gpt2, which is no folder here; give --base DIR'
mv elsewhere gpt2
rm -rf bad && cp -r "$published/peft_gpt2" bad && mv bad/adapter_model.safetensors bad/adapter_model.bin
expect 3 heddle model import bad --base gpt2 -o refused -q
says 'adapter_model.bin (a pickle)'
expect 2 heddle model import gpt2 --base gpt2 -o refused -q
says '--base goes with a folder of an adapter'
[ ! -e refused ] || failed "a refused import left something"
expect 2 heddle ckpt export run_gpt2 -o x.safetensors --names peft
says 'heddle model export RUN -o DIR'
expect 2 heddle model export run_gpt2 --names peft -o x.safetensors
says '--names peft'
expect 2 heddle run in_gpt2/job.yaml -s 'model.lora.ranks=["h.*=x"]'
says "'h.*=x' is no PATTERN=RANK"
expect 2 heddle run in_gpt2/job.yaml -s 'model.lora.ranks=["wte.weight=3"]'
says '"wte.weight" names none of model.lora.targets'
expect 0 heddle run in_gpt2/job.yaml -s 'model.lora.train=["h.0.ln_1.weight"]' --out part -s job.steps=1 -q
expect 2 heddle model export part --names peft -o refused
says 'h.0.ln_1.weight is trained, but not all of transformer.h.0.ln_1'
cat >experts.yaml <<'END'
job: {name: experts, steps: 1}
model: {use: "builtin:mixtral", args: {layers: 1, width: 8, heads: 2, hidden: 4, context: 4, vocab: 8,
  experts: 3}, lora: {rank: 2, targets: ["*.q_proj.weight"], train: ["*.experts.*"]}}
data: {kind: synthetic, count: 8}
batch: {global: 4, virtual_nodes: 2}
END
expect 0 heddle run experts.yaml --out experts -q
expect 2 heddle model export experts --names peft -o refused
says 'experts.w1.weight is trained, and is several tensors'
expect 0 heddle run experts.yaml --out cold -s model.lora.train=[] -q
expect 0 heddle model export cold --names peft -o cold_peft -q
# as the library calls them in memory, which is not what its files say (transformers 5)
expect 0 heddle run experts.yaml --out router -s 'model.lora.train=["*.gate.weight"]' -q
expect 0 heddle model export router --names peft -o router_peft
grep -qF '"modules_to_save":["model.layers.0.mlp.gate"]' router_peft/adapter_config.json ||
	failed "$(cat router_peft/adapter_config.json)"
same "$(names_in router_peft/adapter_model.safetensors | grep gate)" \
	'"base_model.model.model.layers.0.mlp.gate.weight"' "the router's name"
cat >vit.yaml <<'END'
job: {name: vit, steps: 1}
model:
  use: "builtin:vit"
  args: {image: 4, patch: 2, layers: 1, width: 8, heads: 2, hidden: 8, classes: 3}
  lora:
    {rank: 2, targets: ["*.attention.query.weight", "*.intermediate.dense.weight"], train: ["classifier.*"]}
data: {kind: synthetic, count: 8}
batch: {global: 4, virtual_nodes: 2}
END
expect 0 heddle run vit.yaml --out vit -q
expect 0 heddle model export vit --names peft -o vit_peft
names_in vit_peft/adapter_model.safetensors >names
for word in layers.0.attention.q_proj layers.0.mlp.fc1; do
	grep -qF "\"base_model.model.vit.$word.lora_A.weight\"" names || failed "no $word in $(cat names)"
done
grep -qF '"task_type":null' vit_peft/adapter_config.json || failed "$(cat vit_peft/adapter_config.json)"
expect 0 heddle model export vit -o vit_base --names torch
expect 0 heddle model import vit_peft --base vit_base -o vit_again -q
grep -qF 'vit.encoder.layer.{i}.attention.attention.query.weight' vit_again/job.yaml ||
	failed "$(cat vit_again/job.yaml)"
passed "what plain LoRA is not, and what peft has no words for, is refused by name"

# the same bits wherever it runs, with what adapters read dropped in part
sed -i 's/^    rank: 2/    rank: 2\n    dropout: 0.25/; s/steps: 10/steps: 4/' in_gpt2/job.yaml
echo "checkpoint: {every: 1 steps, keep: 2}" >>in_gpt2/job.yaml
sed -i 's/global: 4, virtual_nodes: 2/global: 10, virtual_nodes: 5/' in_gpt2/job.yaml
train run in_gpt2/job.yaml --devices 1 --out one
whole=$digest
for devices in 2 3 5; do
	train run in_gpt2/job.yaml --devices $devices --out again
	rm -rf again
	same "$digest" "$whole" "an adapter on $devices devices"
done
train run in_gpt2/job.yaml --devices 1 -s model.lora.dropout=0 --out dry
[ "$digest" != "$whole" ] || failed "nothing of what adapters read is dropped"
"$HEDDLE_BIN" run in_gpt2/job.yaml --out die --workers 3 --devices 1 -s job.steps=1000000 -q 2>log &
run=$!
reach die 10
kill -9 "$(heddle status die --json | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2 | tail -n 1)"
reach die 30
stops_with_bits_of_one die in_gpt2/job.yaml "three workers, one killed"
passed "the same bits on 1, 2, 3, 5 devices, and on three workers of which one is killed"
