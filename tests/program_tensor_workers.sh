#!/bin/bash
# parallel.tensor over workers of fewer devices than a rank has: the groups of a rank share the shards of a
# stage, and the bits are those of one device; a worker may die before any instruction.
. "$(dirname "$0")/program.sh"
needs_failpoints
cat >gpt.yaml <<'END'
job: {name: gpt, seed: 5, steps: 4}
model:
  use: "builtin:gpt"
  args: {layers: 2, width: 32, heads: 4, context: 16, vocab: 50, dropout: 0.1}
  shards: 4
  sequence_shards: true
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7}
optim: {kind: adamw, lr: 1e-2, clip: 0.5}
checkpoint: {every: 2 steps}
workers: {detect: 10 s}
END
train run gpt.yaml --out one --devices 1
one=$digest

# a rank of 2 on 2 workers; of 4 on 2 workers of 2; 2 stages x 2; then other widths go on with it
train run gpt.yaml --out two --workers 2 -s parallel.tensor=2
same "$digest" "$one" "a rank of 2 on 2 workers"
grep -q '^groups 2$' two/plan/0001.plan || failed "the plan does not say that a rank is two groups"
grep -q '"groups":2' two/job.resolved.json || failed "the groups of a rank are not kept"
for verb in check show; do expect 0 heddle plan $verb two/plan/0001.plan; done
train run gpt.yaml --out four --workers 2 --devices 2 -s parallel.tensor=4
same "$digest" "$one" "a rank of 4 on 2 workers of 2 devices"
train run gpt.yaml --steps 2 --out grid --workers 4 -s parallel.mode=pipeline -s parallel.stages=2 \
	-s parallel.tensor=2
cp -r grid again
train resume grid --workers 2 --devices 2 -s parallel.groups=auto
same "$digest" "$one" "2 stages x 2 over 4 workers, then over 2 of 2 devices"
train resume again --devices 1 -s parallel.mode=data -s parallel.tensor=auto -s parallel.stages=auto
same "$digest" "$one" "2 stages x 2 over 4 workers, then one device"
train run gpt.yaml --out by-stages --workers 4 -s parallel.stages=2 -s parallel.tensor=2 -s comm.sync=stages
same "$digest" "$one" "2 stages x 2, the state by stages"
passed "ranks of 2 and 4 devices over workers of 1 and 2, with stages, resumed as others: one state"

# auto finds the devices of a rank: what it chose fits the keys, runs, and is kept; which it is depends on
# what was measured (run/choose_plan_test)
train run gpt.yaml --out auto --workers 2 -s parallel.mode=auto -s parallel.replicas=1 -s parallel.stages=1
same "$digest" "$one" "what auto chose for 2 workers"
grep -Eq '"settled":"(data-parallel 1 1|1f1b 1 1 tensor 2 groups 2) of 2"' auto/job.resolved.json ||
	failed "auto chose $(grep -o '"settled":"[^"]*"' auto/job.resolved.json)"
passed "auto finds ranks on several workers"

expect 2 heddle run gpt.yaml --workers 4 --devices 3 -s parallel.tensor=4 --dry-run
says 'a rank is 4 devices (parallel.tensor), and a worker has 3'
expect 2 heddle run gpt.yaml --workers 2 -s parallel.mode=auto -s parallel.groups=2 --dry-run
says 'auto finds the devices of a rank'
expect 2 heddle run gpt.yaml --workers 2 --devices 1 -s parallel.mode=pipeline -s parallel.tensor=2 \
	-s parallel.groups=1 --dry-run
says 'give each --devices 2 or a multiple, or -s parallel.groups=auto'
expect 2 heddle run gpt.yaml --workers 2 -s parallel.tensor=2 -s parallel.groups=3 --dry-run
says 'does not divide parallel.tensor 2'
passed "numbers that do not go together"

# two copies of a rank of two: whatever dies, a whole rank is left
runs=0
for at in 1 6 15; do
	for group in 0 1; do
		rm -rf dies
		mkdir -p dies/chaos
		chmod 700 dies
		echo "pipe.instr:kill#$group@$at" >dies/chaos/any
		train run gpt.yaml --out dies --workers 4 -s parallel.tensor=2 -s parallel.replicas=2
		same "$digest" "$one" "group $group dies before instruction $at"
		[ -n "$(find dies/chaos -name 'hit.*')" ] ||
			failed "instruction $at of group $group was not reached"
		! grep -q '"kind":"restore"' dies/events.ndjson || failed "a checkpoint was read"
		runs=$((runs + 1))
	done
done
passed "$runs deaths inside a rank: the step is begun again by the others, nothing is read from disk"
