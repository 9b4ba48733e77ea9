#!/bin/bash
# heddle eval: the metric of a checkpoint has the same bits on any number of devices.
. "$(dirname "$0")/program.sh"
write_jobs 6
for job in mlp gpt; do
	train run $job.yaml --out $job
	first=
	for devices in 1 2 3 5 8; do
		expect 0 heddle eval $job --devices $devices --threads $((devices % 2 + 1)) --json
		bits=$(number loss_hex)
		same "$bits" "${first:=$bits}" "$job on $devices devices"
	done
done
passed "the loss has the same bits on 1, 2, 3, 5, 8 devices"

expect 0 heddle eval mlp --split train
says 'train  loss'
expect 0 heddle eval mlp/ckpt/step-000000005
says 'step 5'
expect 2 heddle eval mlp --split tset
says 'no samples in a split "tset"'
expect 3 heddle eval nowhere
passed "splits, checkpoint folders, and what is refused"

# mse has no hits: nothing is printed of them, on any way out; a share is no percentage
train run mlp.yaml -s model.loss=mse -s eval.every=2 --out mse
grep -q '"kind":"eval"' mse/events.ndjson || failed "no evaluation was recorded"
! grep '"kind":"eval"' mse/events.ndjson | grep -q 'accuracy\|perplexity' ||
	failed "the log has an accuracy of mse"
expect 0 heddle eval mse
! grep -q 'accuracy\|perplexity' out || failed "an accuracy of mse"
says 'rows)'
expect 0 heddle eval mse --json
! grep -q 'accuracy\|perplexity' out || failed "an accuracy of mse, as JSON"
expect 0 heddle predict mse --split train -o mse.npy --json
! grep -q 'accuracy\|predicted' out || failed "classes of mse"
expect 2 heddle run mlp.yaml -s model.loss=mse -s eval.metric=accuracy
says 'eval.metric is accuracy'
expect 2 heddle run mlp.yaml -s eval.metric=accuracy -s eval.target=60
says '0.6 for 60 %'
expect 0 heddle eval mlp
says 'accuracy'
passed "what a loss does not have is not shown"

# A target ends a run at the same step however it is run, also one that is met before the first step, and one
# that is read again from disk.
for as in "one --devices 1" "two --workers 2 --devices 1"; do
	set -- $as
	train run mlp.yaml -s eval.every=2 -s eval.target=100 --out "goal_$1" "${@:2}"
	heddle ckpt digest "goal_$1" | grep -o '[0-9a-f]\{32\}' >"goal_$1.digest"
	grep -q '"kind":"job_end","step":2,.*"reached":true,"exit":0' "goal_$1/events.ndjson" ||
		failed "$as: $(grep job_end "goal_$1/events.ndjson")"
	expect 0 heddle resume "goal_$1" -q "${@:2}"
	heddle ckpt digest "goal_$1" | grep -o '[0-9a-f]\{32\}' | cmp - "goal_$1.digest" ||
		failed "$as: a run that reached its target trains on"
done
expect 0 cmp goal_one.digest goal_two.digest
passed "a target ends a run at one step, whoever runs it"

# a share of tokens is one whatever weighs the losses
for by in sample token; do
	train run gpt.yaml -s batch.normalize=$by -s optim.lr=0 --out gpt_$by
	expect 0 heddle eval gpt_$by --split train --json
	eval "accuracy_$by=$(number accuracy)"
done
awk -v a="$accuracy_sample" -v b="$accuracy_token" \
	'BEGIN { off = a - b; exit !(off * off < 1e-12 && a > 0) }' ||
	failed "accuracy $accuracy_sample by samples, $accuracy_token by tokens"
passed "accuracy is a share"
