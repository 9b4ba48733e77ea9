#!/bin/bash
# heddle model ls, show: what is printed can be run again.
. "$(dirname "$0")/program.sh"
write_jobs 2
expect 0 heddle model ls
for name in mlp lenet gpt llama bert lstm gru resnet18 resnet34 resnet50 vgg16 inception gcn gat \
	sage-mean; do
	grep -q "^$name " out || failed "ls has no $name"
done
says 'vocab      256'
expect 0 heddle model ls --json
says '"name":"gpt"'
passed "ls"

# ---- ops: lines that a graph is written with, as docs/ops.md has them
expect 0 heddle model ops
says '%0 = topk seq axis=2 k=3 : i32'
expect 0 heddle model ops --json
says '"name":"conv2d_dx"'
expect 0 heddle model ops -o ops.md
sed -n '/^<!-- ops -->$/,/^<!-- .ops -->$/p' "$SOURCE_DIR/docs/ops.md" | sed '1d;$d' | cmp -s - ops.md ||
	failed "docs/ops.md is old"
sed -n '/^graph robust$/,/^```$/p' "$SOURCE_DIR/docs/ops.md" | sed '$d' >robust.graph
expect 0 heddle model show robust.graph
says 'output loss'
passed "ops, and the example of their document"

for name in mlp lenet gpt llama bert lstm gru inception gcn gat; do
	expect 0 heddle model show $name
	cp out $name.graph
	expect 0 heddle model show $name.graph
	cmp -s out $name.graph || failed "$name: the text parses back to another graph"
	expect 0 heddle model show $name --gradients
	says 'phase=W'
	expect 0 heddle model show $name --json
	says '"flops_backward":'
done
says '"phases":"AV SC AE GA AV SC AE GA AV^ AEB(in-edges) SCB AEB+GAB(out-edges) AVB'
expect 0 heddle model show gcn
says '# phases of a step over intervals: AV SC GA AV SC GA AV^ SCB GAB AVB SCB GAB AVB WU'
expect 0 heddle model show gat -s layers=64
says '# phases of a step over intervals: AV SC AE GA AV SC AE GA AV'
cat >normed.graph <<'END'
graph normed
input x f32 [*,4]
input from i32 [*]
input to i32 [*]
input y i32 [*]
param w f32 [4,3] uniform 0.5
%0 = matmul x w
%1 = argmax %0 axis=1
%2 = spmm %1 to %0 %0
%3,%4,%5 = softmax_xent %2 y
%6 = sum64 %3
%7 = count64 y
output loss %6
output weight %7
output logits %2
END
expect 0 heddle model show normed.graph
says '# phases of a step over intervals: none, node 2 (spmm): its list of edges is computed'
says '12 parameters in 1 tensors'
expect 0 heddle model show normed.graph --json
says '"phases":"none, node 2'
passed "show: the text of each model parses back to the same text"

expect 0 heddle model show gpt.yaml --json
says '"parameters":'
expect 0 heddle model show mlp -s hidden=[4] -s input=[2] --json
same "$(number parameters)" 62 "parameters of mlp 2-4-10"
expect 0 heddle model show mlp.yaml -o saved.graph
tensors() { grep -o '{"name":"[^"]*","shape":[^]]*],"elements":[0-9]*' out | sort; }
expect 0 heddle model show gpt.yaml --json
tensors >whole
expect 0 heddle model show gpt.yaml -s model.shards=2 --json
tensors >sharded
grep -q '"slices":2' out || failed "no tensor of a model in two shards is in slices"
[ -s whole ] && cmp whole sharded || failed "a model in shards has other tensors"
expect 0 heddle model show gpt.yaml -s model.shards=2
says "parameters in $(wc -l <whole) tensors"
cat >own.yaml <<'END'
job: {name: own, steps: 2}
model: {use: "graph:saved.graph"}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
END
expect 0 heddle run own.yaml -q
passed "arguments, jobs, and a graph file that trains"

expect 2 heddle model show lennet
says 'lenet'
echo 'graph x' >bad.graph
echo 'input x f33 [*]' >>bad.graph
expect 3 heddle model show bad.graph
says 'bad.graph:2:'
expect 2 heddle model show mlp -s hiden=[4]
says 'hidden'
passed "bad names, files and arguments are refused with their place"
