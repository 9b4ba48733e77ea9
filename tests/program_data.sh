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

expect 0 heddle data order mlp.yaml --step 0 -s data.order=sequential
says 'vn 12    24 25'
: >ids
for step in 0 1 2 3; do
	expect 0 heddle data order mlp.yaml --epoch 2 --step $step
	sed -n 's/^vn [0-9]* *//p' out | tr ' ' '\n' | grep . >>ids
done
[ "$(sort -n ids | tr '\n' ' ')" = "$(seq 0 89 | tr '\n' ' ')" ] || failed "the ids of a data epoch are not each sample once"
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
