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
