#!/bin/bash
# parallel.tensor: devices of a rank share the shards of a model, with stages and copies: the bits of one
# device.
. "$(dirname "$0")/program.sh"
cat >gpt.yaml <<'END'
job: {name: gpt, seed: 5, steps: 4}
model:
  use: "builtin:gpt"
  args: {layers: 2, width: 32, heads: 4, context: 16, vocab: 50, dropout: 0.1}
  shards: 4
  sequence_shards: true
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7}
optim: {kind: adamw, lr: 1e-2}
END

train run gpt.yaml --out one --devices 1
one=$digest
train run gpt.yaml --steps 2 --out wide --devices 4 -s parallel.mode=tensor
grep -q '^tensor 4$' wide/plan/0000.plan || failed "the plan does not say that a rank has 4 devices"
grep -q 'cause "tensor: 1 rank of 4 devices' wide/plan/0000.plan || failed "no cause"
expect 0 heddle plan check wide/plan/0000.plan
for verb in show draw; do expect 0 heddle plan $verb wide/plan/0000.plan; done
# 2 stages of ranks of 2, then 2 copies of ranks of 2, then one device
train resume wide --steps 3 --devices 4 -s parallel.mode=pipeline -s parallel.stages=2 -s parallel.tensor=2
grep -q '^tensor 2$' wide/plan/0001.plan || failed "no second plan: $(ls wide/plan)"
cp -r wide again
train resume wide --devices 4 -s parallel.mode=tensor -s parallel.stages=auto -s parallel.tensor=2
same "$digest" "$one" "4 x tensor 4, then 2 stages of 2, then 2 copies of 2"
train resume again --devices 1 -s parallel.mode=data
same "$digest" "$one" "resumed on one device"
train run gpt.yaml --out by-file --devices 4 -s parallel.mode=explicit -s parallel.plan=again/plan/0001.plan
same "$digest" "$one" "the plan file of another run"
passed "any tensor width, with stages and copies, and from one to another: one state"

expect 0 heddle run gpt.yaml --steps 2 --out said --devices 2 -s parallel.tensor=2 --json
[ "$(number predicted_ms)" != null ] && [ "$(number measured_ms)" != null ] || failed "nothing is predicted"
train run gpt.yaml --out chosen --devices 4 -s parallel.mode=auto -s parallel.tensor=2
same "$digest" "$one" "auto of ranks of 2"
grep -q '^tensor 2$' chosen/plan/0000.plan || failed "auto forgets the width"
expect 2 heddle run gpt.yaml --devices 3 -s parallel.mode=auto -s parallel.tensor=2 --dry-run
says '3 devices are no ranks of 2'
expect 2 heddle run gpt.yaml --devices 4 -s parallel.tensor=3 --dry-run
says 'parallel.tensor is 3, which does not divide model.shards 4'
expect 2 heddle run gpt.yaml --devices 3 -s parallel.tensor=2 --dry-run
says '3 devices are no ranks of 2 (parallel.tensor): use 4, or a multiple of 2'
expect 2 heddle run gpt.yaml --devices 3 -s parallel.mode=tensor --dry-run
says 'no number above 1 divides both'
expect 2 heddle run gpt.yaml --devices 6 -s parallel.stages=2 -s parallel.tensor=2 -s \
	parallel.replicas=2 --dry-run
says '6 devices are no 2 pipelines of 2 ranks of 2: use 8'
expect 2 heddle run gpt.yaml --workers 2 -s parallel.mode=tensor --dry-run
says 'the 1 device of a worker'
expect 2 heddle run gpt.yaml --workers 2 --devices 2 -s parallel.mode=tensor -s comm.sync=stages --dry-run
says 'each has the whole model'
passed "what is predicted, and numbers that do not go together"

# over workers of several devices: 2 stages of ranks of 2, then 2 ranks of 4 with the whole model, then one
train run gpt.yaml --steps 2 --out apart --workers 2 --devices 2 -s parallel.mode=pipeline \
	-s parallel.tensor=2 -s comm.sync=stages
grep -q '^tensor 2$' apart/plan/0001.plan || failed "the plan of the workers has no ranks of 2"
train resume apart --steps 3 --workers 2 --devices 4 -s parallel.mode=tensor -s parallel.tensor=auto \
	-s comm.sync=allreduce
grep -q '"tensor":4' apart/job.resolved.json || failed "the devices of a rank are not kept"
train resume apart --devices 1 -s parallel.mode=data -s parallel.tensor=auto
same "$digest" "$one" "2 stages of ranks of 2 over workers, then 2 ranks of 4, then one device"

# one of two is killed, then there is to be one copy, which one that comes reads in the run's job
sed 's/steps: 4/steps: 1000000/' gpt.yaml >long.yaml
heddle run long.yaml --out killed --workers 2 --devices 2 -s parallel.mode=tensor -s workers.pace=30ms \
	-s workers.detect=1s >killed.log 2>&1 &
reach killed 4
kill -9 $(heddle status killed --json | grep -o '"worker":1,[^}]*"pid":[1-9][0-9]*' | grep -o '[0-9]*$')
expect 0 heddle scale killed 3 -s parallel.replicas=1
one_copy() { grep -q '"replicas":1' killed/job.resolved.json; }
await one_copy || failed "the copies asked for are not kept"
has_members() { heddle status killed --json | grep -q '"members":3,'; }
await has_members || failed "not three workers"
reach killed $(($(step killed) + 3))
expect 0 heddle stop killed
is_stopped() { heddle status killed --json | grep -q '"state":"stopped"'; }
await is_stopped || failed "killed does not stop"
train run long.yaml --out long-one --devices 1 --steps $((10#$(ls killed/ckpt | tail -n 1 | cut -d- -f2)))
expect 0 heddle ckpt diff long-one killed
passed "ranks of several devices over workers, one killed and more added: the bits of one device"
