#!/bin/bash
# comm.primitive: partial sums by halving have the bits of one device, whatever workers there are and die.
. "$(dirname "$0")/program.sh"
write_jobs 6

set="-s batch.virtual_nodes=8 -s batch.global=16 -s trace.digest=1"
for job in mlp gpt; do
	expect 0 heddle run $job.yaml --out $job --devices 1 $set -q
	for n in 2 3 4 8; do
		expect 0 heddle run $job.yaml --out $job-$n --workers $n --devices 1 $set \
			-s comm.primitive=halving-doubling -q
		expect 0 heddle ckpt diff $job $job-$n
		says IDENTICAL
		says 'digest logs agree'
	done
done
grep -q 'partial sums of these 3 go direct' mlp-3/*.ndjson || failed "nothing says that three go direct"
! grep -q 'go direct' mlp-4/*.ndjson || failed "four go direct"
passed "mlp and gpt: the bits of one device on 2, 3, 4 and 8 workers"

expect 2 heddle run mlp.yaml -s comm.primitive=ring
says 'halving-doubling'
expect 2 heddle run mlp.yaml -s comm.primitive=halving-doubling -s comm.sync=sharded
says 'comm.sync: allreduce'
passed "what it cannot do is refused"
