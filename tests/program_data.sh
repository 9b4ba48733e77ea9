#!/bin/bash
# heddle data show, verify, order, cat.
. "$(dirname "$0")/program.sh"
write_jobs 6
expect 0 heddle data show mlp.yaml
says 'f32 [1,6,6]'
says '90 samples'
expect 0 heddle data show mlp.yaml --json
says '"splits":{"train":90'
says '"steps_per_epoch":4'
passed "show"

for last in ragged drop wrap; do
	for order in shuffle sequential blocks; do
		expect 0 heddle data verify mlp.yaml -s batch.last=$last -s data.order=$order -q
		says "once each, in $([ $last = drop ] && echo 3 || echo 4) steps"
	done
done
passed "verify: in each order and end of a data epoch, samples stand once each"

for last in ragged drop wrap; do
	expect 0 heddle run mlp.yaml --out took-$last -s job.steps=11 -s batch.last=$last \
		-s trace.samples=true --devices 2 -q
	expect 0 heddle data verify took-$last --json
	says "\"steps\":11,\"epochs\":$([ $last = ragged ] && echo 2 || echo 3),"
done
expect 0 heddle data order mlp.yaml --step 5 --json
node=$(grep -o '"virtual_nodes":\[\[[0-9,]*\]' out | grep -o '[0-9,]*\]$' | tr -d ']')
grep -q "{\"step\":5,\"vn\":0,\"took\":\[\[1,\[$node\]\]\]}" took-ragged/samples/0.ndjson ||
	failed "step 5 took other samples than data order says: $node"
sed -i '/"step":7,"vn":2,/d' took-ragged/samples/0.ndjson
expect 5 heddle data verify took-ragged
says 'data epoch 1 has'
echo '{"step":2,"vn":1,"took":[[0,[1]]]}' >>took-wrap/samples/0.ndjson
expect 5 heddle data verify took-wrap
says 'step 2, virtual node 1 was computed twice, from other samples'
expect 0 heddle run mlp.yaml --out silent --steps 2 -q
expect 3 heddle data verify silent
says 'trace.samples=true'
[ ! -e silent/samples ] || failed "samples are recorded without being asked for"
passed "verify: what the virtual nodes of a run took, as they wrote it down"

printf 'to be or not\n' >corpus.txt
gzip -k corpus.txt
for text in corpus.txt corpus.txt.gz; do
	expect 0 heddle data verify $text
	says 'ok: 13 bytes of text read, hash '
	sort out >>texts
done
same "$(sort -u texts | wc -l)" 1 "texts, plain and gzipped"
expect 0 heddle data verify corpus.txt --json
json_ok
: >empty.txt
expect 3 heddle data verify empty.txt
cp mlp.yaml job.txt
expect 0 heddle data verify job.txt
says 'samples'
expect 2 heddle data verify corpus.txt -s data.order=sequential
passed "verify: a text by itself, plain and gzipped, and no job for one"

expect 0 heddle data order mlp.yaml --step 0 -s data.order=sequential
says 'vn 12    24 25'
: >ids
for step in 0 1 2 3; do
	expect 0 heddle data order mlp.yaml --epoch 2 --step $step
	sed -n 's/^vn [0-9]* *//p' out | tr ' ' '\n' | grep . >>ids
done
[ "$(sort -n ids | tr '\n' ' ')" = "$(seq 0 89 | tr '\n' ' ')" ] ||
	failed "the ids of a data epoch are not each sample once"
expect 0 heddle data order mlp.yaml --step 3 --json
says '"rows":12'
expect 2 heddle data order mlp.yaml --epoch 0 --step 4
says 'has 4 steps'
passed "order: the ids of a data epoch are each sample once"

expect 0 heddle data cat mlp.yaml --count 3 --split valid
[ "$(wc -l <out)" -eq 3 ] || failed "three lines"
says '"index":2'
expect 0 heddle data cat gpt.yaml --count 1
says '"x":['
expect 2 heddle data cat mlp.yaml --split no
says 'no split "no"'
passed "cat prints samples as JSON lines"

cat >flowers.csv <<'END'
long,wide,owner,kind
5.1,3.5,"Ann, B.",setosa
4.9,3.0,,setosa
7.0,3.2,Bo,versicolor
6.3,3.3,Cy,virginica
END
cat >csv.yaml <<'END'
job: {steps: 2}
model: {use: "builtin:mlp", args: {input: [2], hidden: [8], classes: 3}}
data:
  {kind: csv, path: flowers.csv, columns: [wide, long], label: kind,
   classes: [setosa, versicolor, virginica], split: {train: 1}}
batch: {global: 4, virtual_nodes: 2}
END
expect 0 heddle data cat csv.yaml
says '{"index":2,"x":[3.2,7],"y":1}'
expect 0 heddle run csv.yaml -q
expect 3 heddle data show csv.yaml -s 'data.columns=[wide, owner]'
says 'flowers.csv:2:9: column "owner": "Ann, B." is not a number'
expect 2 heddle data show csv.yaml -s data.columns=wide
says 'data.columns takes a list'
passed "a table: columns and classes by name, refusals by place"

cat >said.csv <<'END'
owner,text,mood
Ann,"Good, really",glad
Bo,as bad as it can be,sad
Cy,fine,glad
Di,no,sad
END
cat >said.yaml <<'END'
job: {steps: 30}
model:
  use: "builtin:bert"
  args: {layers: 1, width: 16, heads: 2, context: 12, vocab: 257, pad: 256, head: cls, classes: 2}
data: {kind: csv, path: said.csv, columns: [text], label: mood, classes: [sad, glad], split: {train: 1}}
batch: {global: 4, virtual_nodes: 2}
optim: {kind: adamw, lr: 1e-2}
END
expect 0 heddle data cat said.yaml
says '{"index":2,"x":[102,105,110,101,256,256,256,256,256,256,256,256],"y":1}'
expect 0 heddle data show said.yaml
says '4 texts, 1 of them cut at 12 bytes'
expect 0 heddle run said.yaml -q --out said
expect 0 heddle predict said --split train
expect 3 heddle run said.yaml -s data.columns='[text, owner]'
says 'said.csv has 2 columns for "x", the model reads 12 tokens'
expect 3 heddle run said.yaml -s model.args.pad=-1
says 'said.csv:4:4: a text of 4 bytes, the model reads 12 tokens: name a token to fill it up'
says '(model.args pad: 256, vocab: 257)'
passed "a table of texts: bytes, cut or filled up, each with one label"

expect 0 heddle data cat mlp.yaml --count 2
cp out plain
expect 0 heddle data cat mlp.yaml --count 2 -s 'data.augment=[{normalize: {mean: 0, std: 1}}]'
cmp -s out plain || failed "a normalization by 0 and 1 changes nothing"
expect 0 heddle data cat mlp.yaml --count 2 -s 'data.augment=[flip, {crop: 2}]'
! cmp -s out plain || failed "transforms change samples"
cp out first
expect 0 heddle data cat mlp.yaml --count 2 -s 'data.augment=[flip, {crop: 2}]' --epoch 1
! cmp -s out first || failed "another epoch draws again"
expect 0 heddle data cat mlp.yaml --split valid --count 1
cp out plain
expect 0 heddle data cat mlp.yaml --split valid --count 1 -s 'data.augment=[flip, {crop: 2}]'
cmp -s out plain || failed "only what is trained on is transformed"
expect 2 heddle data cat mlp.yaml -s 'data.augment=[flp]'
says 'there is no transform flp; did you mean flip?'
passed "transforms: of training samples, by epoch"
