#!/bin/bash
# A worker whose memory gives wrong bits: others notice in the same step, it goes, and the result is that of a
# run without it.
. "$(dirname "$0")/program.sh"
needs_failpoints

cat >job.yaml <<END
job: {name: corrupt, seed: 3, steps: 400}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [200, 100], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 480, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 20 steps, keep: 3}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 2 s}
END
expect 0 heddle run job.yaml --out one --devices 1 --json -q
first=$(number digest)

# one bit of a parameter flips at worker $2 (of $4), before it computes its share for the $3rd time
flipped()
{
	HD_FAIL="state.params:flip#$2@$3" heddle run job.yaml --out "$1" --workers "$4" --devices 1 --json -q
}

expect 0 flipped three 1 50 3
same "$(number digest)" "$first" "the digest of a run in which worker 1 was corrupt"
expect 0 heddle ckpt diff three one
says 'IDENTICAL'
says 'digest logs agree'
grep -q '"kind":"corrupt".*worker 1 held another state after step [0-9]* than 2 of 3 workers' \
	three/events.ndjson || failed "no event tells of worker 1: $(cat three/events.ndjson)"
passed "of three workers the one whose parameter flipped goes, and no bit of the result differs"

expect 5 flipped two 1 50 2
says 'no majority says which is right'
says 'resume the run on others'
# what is kept is sound: resumed, it comes to the same bits
expect 0 heddle resume two --workers 2 --devices 1 --json -q
same "$(number digest)" "$first" "the digest of the run that was resumed"
expect 0 heddle ckpt diff two one
says 'digest logs agree'
passed "which of two workers is right cannot be known: exit 5, and the run can be resumed"

# of a model in stages each bucket is compared by its holders: a stage, its shadow, and where a cut falls
# into it the stage behind the cut
staged()        # WORKER OUT WORKERS
{
	HD_FAIL="state.params:flip#$1@30" heddle run job.yaml --out "$2" --workers "$3" --devices 1 --json \
		-q -s job.steps=60 -s parallel.mode=pipeline -s comm.sync=stages -s elastic.redundancy=lazy \
		-s comm.buckets=1GiB    # cuts by measured times may leave each bucket two holders
}
expect 0 heddle run job.yaml --out short --devices 1 --json -q -s job.steps=60
short=$(number digest)
expect 5 staged 1 shadow 2
says 'step 29: workers 0 and 1 hold different bits of bucket 0 of the state, and no majority says'
expect 0 heddle resume shadow --workers 2 --devices 1 --json -q
same "$(number digest)" "$short" "the digest of stages and shadows that were resumed"
expect 0 staged 2 shadows 3
same "$(number digest)" "$short" "the digest of three stages of which worker 2 was corrupt"
grep -q '"kind":"corrupt".*worker 2 held another state after step 29 than 2 of 3' shadows/events.ndjson ||
	failed "no event tells of worker 2: $(cat shadows/events.ndjson)"
passed "a stage and its shadow are compared: two that differ end the run, of three the one that differs goes"

# a newcomer that computes other bits: it is known before it takes part
HD_FAIL=learn.probe:flip "$HEDDLE_BIN" run job.yaml --out newcomer --workers 1 --devices 1 \
	-q -s job.steps=1000000 -s workers.pace='3 ms' 2>log &
run=$!
reach newcomer 30
expect 0 heddle scale newcomer 2
await grep -q 'has other bits here than at the member' newcomer/events.ndjson ||
	failed "the newcomer was not refused: $(cat newcomer/events.ndjson)"
expect 0 heddle scale newcomer 1
at=$(step newcomer)
reach newcomer $((at + 50))
if grep -q '"workers":2' newcomer/metrics.ndjson; then failed "the newcomer took part in a step"; fi
stops_with_bits_of_one newcomer job.yaml "a run that refused a newcomer" -s checkpoint.every="20 steps"
passed "a newcomer whose bits differ is refused before it takes part, with the reason"
