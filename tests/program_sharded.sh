#!/bin/bash
# comm.sync: sharded: optimizer slots on some workers only; the bits of one device whatever comes, goes and
# dies.
#
# HD_SHARDED=all: each job with each optimizer on each number of workers; else each pair of two of the three.
. "$(dirname "$0")/program.sh"
write_jobs 6

job_at=0
for job in mlp lenet gpt; do
	turn=$((job_at++))
	for kind in adamw momentum; do
		expect 0 heddle run $job.yaml --out $job-$kind --devices 1 -s optim.kind=$kind \
			-s trace.digest=1 -q
		for n in 1 2 3 4 7; do
			[ "${HD_SHARDED:-}" = all ] || [ $((turn++ % 2)) = 0 ] || continue
			expect 0 heddle run $job.yaml --out $job-$kind-$n --workers $n --devices 1 \
				-s optim.kind=$kind -s trace.digest=1 -s comm.sync=sharded -q
			expect 0 heddle ckpt diff $job-$kind $job-$kind-$n
			says IDENTICAL
			says 'digest logs agree'
		done
	done
done
expect 0 heddle run lenet.yaml --out three --workers 4 --devices 2 -s comm.sync=sharded -s comm.copies=3 -q
expect 0 heddle ckpt digest three
digest=$(cat out)
expect 0 heddle run lenet.yaml --out served --workers 4 --devices 1 -s comm.sync=parameter-server -q
expect 0 heddle ckpt digest served
same "$digest" "$(cat out)" "two servers"
expect 0 heddle run lenet.yaml --out whole --devices 1 -q
expect 0 heddle ckpt digest whole
same "$digest" "$(cat out)" "three copies"
passed "mlp, lenet and gpt with adamw and momentum: equal bits on 1 to 7 workers"

expect 2 heddle run mlp.yaml -s optim.kind=lamb -s comm.sync=sharded
says 'comm.sync: allreduce'
expect 2 heddle run mlp.yaml -s comm.sync=parameter-server -s comm.copies=3
says 'comm.servers: 2 workers hold no comm.copies: 3'
expect 2 heddle run mlp.yaml -s optim.kind=lamb -s comm.sync=parameter-server
expect 2 heddle run mlp.yaml -s comm.sync=sharded -s comm.copies=1
expect 0 heddle plan mlp.yaml -s comm.sync=sharded
says 'sharded: each part'
passed "what it cannot do is refused, plan shows it"

# runs end where they are stopped: nothing comes too late
cat >long.yaml <<END
job: {name: long, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [400, 300], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 24, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 50 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 2 s, pace: 6 ms}    # no worker is lost as the machine is busy: that would be two losses
comm: {sync: sharded}
END
pids()
{
	heddle status "$1" --json 2>/dev/null | grep -o '"pid":[0-9]*' | cut -d: -f2 | tail -n +2 | grep -vx 0
}

"$HEDDLE_BIN" run long.yaml --out moves --workers 2 --devices 1 -q -s job.steps=1000000 2>log &
run=$!
reach moves 30
expect 0 heddle scale moves 4 --wait
expect 0 heddle status moves
says "on 2 of the workers"
expect 0 heddle status moves --json
says '"copies":2'
reach moves 120
kill -9 "$(pids moves | head -n 1)"
reach moves $(($(step moves) + 150))
kill -9 "$(pids moves | tail -n 1)"
reach moves $(($(step moves) + 150))
expect 0 heddle scale moves -3               # one of a bucket's holders after the other
reach moves $(($(step moves) + 150))
expect 0 heddle scale moves 3 --wait
stops_with_bits_of_one moves long.yaml "workers that come, go and die"
grep -q '"kind":"lost"' moves/events.ndjson || failed "no event of a loss"
if grep -q '"kind":"restore"' moves/events.ndjson; then failed "one loss at a time was too many"; fi
passed "workers come, go and die one by one: slots move, and nothing is loaded from disk"

# slots at two servers alone: one of them dies, a worker that comes takes its place; one leaves
"$HEDDLE_BIN" run long.yaml --out served-long --workers 4 --devices 1 -q -s job.steps=1000000 \
	-s comm.sync=parameter-server -s comm.order=search 2>log &
run=$!
reach served-long 30
kill -9 "$(pids served-long | head -n 1)"
reach served-long $(($(step served-long) + 150))
expect 0 heddle scale served-long -2
reach served-long $(($(step served-long) + 100))
expect 0 heddle scale served-long 3 --wait
kill -9 "$(pids served-long | head -n 1)"
reach served-long $(($(step served-long) + 150))
stops_with_bits_of_one served-long long.yaml "servers that come, go and die"
if grep -q '"kind":"restore"' served-long/events.ndjson; then failed "the loss of one server was too many"; fi
passed "servers die and leave one by one: others take their slots, and nothing is loaded from disk"

# a view that begins at a step whose state is saved: its members have gone on while the scribe still gathers
"$HEDDLE_BIN" run long.yaml --out often --workers 2 --devices 1 -q -s job.steps=1000000 \
	-s checkpoint.every="1 steps" 2>log &
run=$!
reach often 3
for n in 4 2 3 1 3; do
	expect 0 heddle scale often $n --wait
done
stops_with_bits_of_one often long.yaml "a checkpoint at each step, and changes between"
passed "views that begin where the state is saved: no two workers wait for each other"

"$HEDDLE_BIN" run long.yaml --out orphan --workers 3 --devices 1 -q 2>log &
reach orphan 60
kill -9 $!
wait $! 2>/dev/null
await answers_now orphan || failed "no coordinator of orphan"
reach orphan $(($(step orphan) + 20))
expect 0 heddle stop orphan
is_stopped() { heddle status orphan --json | grep -q '"state":"stopped"'; }
await is_stopped || failed "orphan does not stop"
has_bits_of_one orphan long.yaml "the coordinator killed"
says 'digest logs agree'
passed "a coordinator that is killed is replaced by a member"

# both holders of some slots at once: the others give up and begin again from the newest checkpoint. There are
# so many buckets that any two workers hold one
"$HEDDLE_BIN" run long.yaml --out lost --workers 4 --devices 1 -q -s comm.buckets=16KiB 2>log &
run=$!
reach lost 80
two=$(pids lost | tail -n 2)
kill -STOP $two
kill -9 $two
await grep -q '"kind":"restore"' lost/events.ndjson || failed "the state was not lost"
grep -q "all holders of some of the state are gone" lost/events.ndjson ||
	failed "slots were not lost"
recorded=$(grep -o '"step":[0-9]*' lost/metrics.ndjson | cut -d: -f2 | sort -n | tail -n 1)
reach lost $((recorded + 20))
stops_with_bits_of_one lost long.yaml "both holders of some slots killed"
says 'digest logs agree'
passed "when all that hold some slots are lost, the newest checkpoint goes on"

# one worker alone makes steps again that those before it, which held parts of the state, made together: what
# each says of a step is the same
"$HEDDLE_BIN" run long.yaml --out alone --workers 3 --devices 1 -q -s job.steps=1000000 \
	-s checkpoint.every="1000000 steps" -s comm.buckets=16KiB 2>log &
run=$!
reach alone 40
kill -9 $(pids alone)
expect 0 heddle scale alone 1
await grep -q '"kind":"restore"' alone/events.ndjson || failed "the state was not lost"
recorded=$(grep -o '"step":[0-9]*' alone/metrics.ndjson | cut -d: -f2 | sort -n | tail -n 1)
reach alone $((recorded + 20))
stops_with_bits_of_one alone long.yaml "a worker alone after three"
if grep -q '"kind":"corrupt"' alone/events.ndjson; then failed "a sound worker was expelled"; fi
passed "steps of several are made again by one alone: it is not taken for corrupt"

"$HEDDLE_BIN" run long.yaml --out halted --workers 4 --devices 1 -q 2>log &
reach halted 60
expect 0 heddle stop halted
status=0
wait $! || status=$?
[ $status -eq 75 ] || failed "stopped: expected exit 75, got $status"
expect 0 heddle resume halted --workers 3 --devices 1 -q \
	--steps $((10#$(ls halted/ckpt | tail -n 1 | cut -d- -f2) + 20))
has_bits_of_one halted long.yaml "stopped, and resumed with other workers"
says 'digest logs agree'
passed "stop gathers all slots into a checkpoint; resume goes on with other workers"
