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
expect 2 heddle run gpt.yaml --workers 2 -s parallel.tensor=2 --dry-run
says 'which are those of one process'
passed "what is predicted, and numbers that do not go together"
