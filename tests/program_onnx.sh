#!/bin/bash
# heddle model import, model export and model.use: onnx:FILE; the node cases of ONNX where Debian's
# python3-onnx is.
. "$(dirname "$0")/program.sh"
fixtures=$SOURCE_DIR/tests/onnx

# ---- a file of PyTorch's in a job: it trains, goes on, and is known by its content
cat >onnx.yaml <<END
job: {name: onnx, seed: 3, steps: 4}
model: {use: "onnx:lenet.onnx"}
data: {kind: synthetic, count: 64}
batch: {global: 16, virtual_nodes: 4}
optim: {kind: sgd, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 2 steps, keep: 4}
END
cp "$fixtures"/lenet/free.onnx lenet.onnx
expect 0 heddle config check onnx.yaml
expect 0 heddle run onnx.yaml --out whole -q
expect 0 heddle run onnx.yaml --out half --steps 2 -q
expect 0 heddle resume half -q
same "$(heddle ckpt digest whole)" "$(heddle ckpt digest half)" "a run in two parts"
expect 0 heddle run onnx.yaml --out wide --devices 2 -q
same "$(heddle ckpt digest whole)" "$(heddle ckpt digest wide)" "one device and two"
cp "$fixtures"/lenet/model.onnx lenet.onnx
expect 0 heddle run onnx.yaml --out traced -q
same "$(heddle ckpt digest whole)" "$(heddle ckpt digest traced)" "a free batch and a traced one"
printf '\001' | dd of=lenet.onnx bs=1 seek=$(($(stat -c %s lenet.onnx) / 2)) conv=notrunc status=none
heddle resume half -q --steps 5 >out 2>err && failed "resumed with another model"
passed "a job trains an ONNX file; another content is another job"

# ---- import: graph, weights and a job that begins from them
for name in mlp lenet; do
	expect 0 heddle model import "$fixtures/$name/free.onnx" -o in_$name
	says 'model.graph'
	expect 0 heddle config check in_$name/job.yaml
	expect 0 heddle run in_$name/job.yaml -s job.steps=1 --out run_$name -q
	expect 0 heddle model show in_$name/model.graph -q
	free=$fixtures/$name/free.onnx
	python3 - "$free" in_$name/model.safetensors <<-'END' || failed "$name: other names"
		import sys
		model, ours = open(sys.argv[1], "rb").read(), open(sys.argv[2], "rb").read()
		header = eval(ours[8:8 + int.from_bytes(ours[:8], "little")].decode())
		names = [name.lstrip('_').encode() for name in header if name != "__metadata__"]
		sys.exit(not all(name in model for name in names))
	END
done
passed "import writes graph, weights under the names of the file, and a job that trains"

# ---- statistics of a BatchNormalization begin as the file has them: one step leaves 0.9 of what was moved by
# hand
cp "$fixtures"/resnet/free.onnx as_is.onnx
python3 - <<-'END' || failed "the statistics of the fixture cannot be moved"
	import struct
	data, mark = open("as_is.onnx", "rb").read(), b"\x10\x01B\x10bn1.running_meanJ\x10"
	at = data.index(mark) + len(mark)
	moved = struct.pack("<4f", *(x + k + 1 for k, x in enumerate(struct.unpack_from("<4f", data, at))))
	open("moved.onnx", "wb").write(data[:at] + moved + data[at + 16:])
END
for name in as_is moved; do
	sed "s/lenet.onnx/$name.onnx/; s/steps: 4/steps: 1/" onnx.yaml >$name.yaml
	expect 0 heddle run $name.yaml --out stats_$name -q
	expect 0 heddle ckpt export stats_$name --safetensors stats_$name.safetensors -q
	expect 0 heddle model import $name.onnx -o in_$name -q
done
python3 - <<-'END' || failed "statistics do not begin as the file has them"
	import struct
	def mean(path):
	    data = open(path, "rb").read()
	    n = int.from_bytes(data[:8], "little")
	    where = eval(data[8:8 + n].decode())["bn1.running_mean"]["data_offsets"]
	    return struct.unpack_from("<4f", data, 8 + n + where[0])
	for form, share in (("stats_%s.safetensors", 0.9), ("in_%s/model.safetensors", 1.0)):
	    a, b = mean(form % "as_is"), mean(form % "moved")
	    off = [y - x - share * (k + 1) for k, (x, y) in enumerate(zip(a, b))]
	    assert all(abs(x) < 1e-5 for x in off), (form, a, b)
END
passed "statistics of a BatchNormalization begin as the file has them"

# ---- models exported fresh, for evaluation: statistics are their own, and what the exporter left out is said
for name in eval new; do
	cp "$fixtures/norms/$name.onnx" norms_$name.onnx
	sed "s/lenet.onnx/norms_$name.onnx/; s/steps: 4/steps: 30/; s/every: 2 steps/every: 30 steps/" \
		onnx.yaml >norms_$name.yaml
	expect 0 heddle run norms_$name.yaml --out norms_$name -q
	expect 0 heddle eval norms_$name --split train --json
	eval "loss_$name=$(number loss)"
done
same "$loss_eval" "$loss_new" "two exporters of one fresh model"
awk -v loss="$loss_eval" 'BEGIN { exit !(loss < 1) }' || failed "evaluation is chance: $loss_eval"
expect 3 heddle model import "$fixtures/lost.onnx" -o refused
says "parameter 'a.bias' is not in the file"
passed "equal tensors that exporters made one are several again"

# ---- what cannot be had is named all at once
expect 3 heddle model import "$fixtures/refused.onnx" -o refused
for node in first_wave volume second_wave own; do says "'$node'"; done
grep -q "'fine'" out err && failed "a node that can be had is listed"
[ ! -e refused ] || failed "a refused import left something"
head -c 5000 "$HEDDLE_BIN" >garbage.onnx
expect 3 heddle model import garbage.onnx -o refused_too
head -c 900 "$fixtures/mlp/free.onnx" >cut.onnx
expect 3 heddle model import cut.onnx -o refused_too
says 'is the file whole'
expect 2 heddle config check onnx.yaml -s model.args.width=3
passed "unsupported nodes are listed together, by name; a file that is cut is refused"

# ---- export, checked by other readers where they are
write_jobs 2
sed 's/name: resnet18/name: groups/; s/base: 2/base: 4, norm: group, groups: 2/' resnet18.yaml >groups.yaml
sed -i 's/share: 0.3/share: 0/' bert.yaml        # y says which; the model sees tokens as they are
# ---- every op of op_tensors.h that ONNX has words for, in one graph: each becomes some columns of the logits
cat >tensors.graph <<'END'
input x f32 [*,4,6]
input y i32 [*]
param w f32 [6] uniform 1
param mm f32 [6,5] uniform 1
param g f32 [1,3,6] uniform 1
const $0 i32 [2,2] 3 0 1 1
const $1 f32 [1] 0.25
%0 = mul x $1
%1 = act x act=abs
%2 = less x w
%3 = argmax x axis=2
END
n=4 all=
tensors()
{
	printf '%%%d = %s\n%%%d = reshape %%%d d0=-1 d1=%d\n' $n "$1" $((n + 1)) $n "$2" >>tensors.graph
	n=$((n + 2))
	[ -z "$all" ] || {
		printf '%%%d = concat %%%d %%%d axis=1\n' $n "$all" $((n - 1)) >>tensors.graph
		n=$((n + 1))
	}
	all=$((n - 1))
}
while read -r columns node; do tensors "$node" "$columns"; done <<'END'
24 div %1 w
24 maximum x w
24 minimum x %0
24 power %1 w
24 less_eq %0 x
24 equal %0 x
24 where %2 x w
18 expand g d0=-1 d1=3 d2=6
4 reduce_sum x axes=4
1 reduce_sum x axes=6 keep=4
6 reduce_mean x axes=2 keep=2
1 reduce_max x axes=6
4 reduce_min x axes=4 keep=4
1 reduce_prod x axes=6
24 cumsum x axis=1
24 cumsum x axis=2 back=1
24 softmax x
24 log_softmax x
24 permute x p1=2 p2=1
12 slice x axis=2 from=1 step=2 count=3
24 slice x axis=2 from=5 step=-1 count=6
8 slice x axis=2 from=4 step=-2 count=2
48 concat x %0 axis=1
42 pad x axis=1 before=1 after=2 value=0.5
24 gather x $0 axis=1
24 one_hot %3 depth=6
4 cast %3 to=1
16 contract x x tb=1
36 contract x x ta=1
20 contract x mm
24 act x act=silu
END
cat >>tensors.graph <<END
%$n,%$((n + 1)),%$((n + 2)) = softmax_xent %$all y
%$((n + 3)) = sum64 %$n
%$((n + 4)) = count64 x
%$((n + 5)) = sum64 %$((n + 2))
output loss %$((n + 3))
output weight %$((n + 4))
output correct %$((n + 5))
output logits %$all
END
cat >tensors.yaml <<'END'
job: {name: tensors, seed: 3, steps: 1}
model: {use: "graph:tensors.graph"}
data: {kind: synthetic, count: 12}
batch: {global: 12, virtual_nodes: 3}
optim: {kind: sgd, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1 steps, keep: 2}
END
exported="mlp lenet resnet18 inception groups gpt llama bert bert_cls tensors"
for name in $exported; do
	train run $name.yaml --out $name
	expect 0 heddle model export $name -o $name.onnx
	says "$name.onnx"
	expect 0 heddle predict $name --split train -o $name.npy -q
done
for name in lenet inception llama bert bert_cls tensors; do
	expect 0 heddle model import $name.onnx -o back_$name -q
done
grep -q attend back_llama/model.graph || failed "the attention of llama does not come back as one op"
passed "export of built-in models and of a graph, and some back in"
train run lstm.yaml --out lstm
expect 2 heddle model export lstm -o lstm.onnx
says 'no words for 2 nodes: lstm'
passed "what ONNX has no words for is named"

# ---- node cases
if /usr/bin/python3 -c 'import onnx.backend.test' 2>/dev/null; then
	cases_fail() { failed "the node cases cannot be made: $(tail -n 3 cases.log)"; }
	/usr/bin/python3 -W ignore >cases.log 2>&1 <<-'END' || cases_fail
		import numpy as np, sys
		for n, t in (("float", float), ("bool", bool), ("object", object), ("int", int)):
		    if n not in np.__dict__:
		        setattr(np, n, t)
		sys.argv = ["cmd", "generate-data", "-o", "onnxdata"]
		from onnx.backend.test import cmd_tools
		cmd_tools.main()
	END
	HD_ONNX_CASES=$PWD/onnxdata/node expect 0 "$BUILD_DIR/program_onnx_nodes_test"
	grep -h 'node cases' out err
	passed "no node case fails"
else
	echo "skip: no python3-onnx: the node cases cannot be made"
fi

python=/opt/torchvenv/bin/python
[ -x $python ] || python=$(command -v python3)
"$python" -c 'import onnx.reference, numpy' 2>/dev/null || {
	echo "skip: Python without onnx.reference: exports are not evaluated by others"
	exit 0
}
"$python" "$fixtures/scatter_cases.py" >cases.log 2>&1 ||
	failed "the cases of scatter cannot be made: $(tail -n 3 cases.log)"
HD_ONNX_CASES=$PWD/scatter expect 0 "$BUILD_DIR/program_onnx_nodes_test"
says 'node cases: 25, pass 25, refused 0, fail 0'
passed "updates are scattered as ONNX's evaluator does"
for name in $exported; do
	heddle data cat $name.yaml --split train --count 4000 >$name.ndjson 2>err || failed "data cat $name"
	"$python" - $name.ndjson $name.in.npy $name.npy <<-'END' 2>err || failed "$name: inputs"
		import json, sys, numpy as np
		rows = [json.loads(line) for line in open(sys.argv[1])]
		ours = np.load(sys.argv[3])
		x = [r["x"] for r in rows]
		integer = all(isinstance(v, int) for v in np.ravel(x[0]).tolist())
		np.save(sys.argv[2], np.array(x, np.int32 if integer else np.float32)[:len(ours)])
	END
	"$python" "$fixtures/evaluate.py" $name.onnx $name.in.npy $name.npy >out 2>err ||
		failed "$name: another reader disagrees"
	cat out
done
passed "onnx.checker takes the exports, its evaluator gives our logits"
