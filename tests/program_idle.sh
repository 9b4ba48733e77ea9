#!/bin/bash
# A worker that is alone, with short steps: it goes on by itself while its other thread rests, and its records
# travel together. None is lost, the bits are those of a plain run; it goes on without a coordinator, has
# peers and is alone again.
. "$(dirname "$0")/program.sh"
cat >job.yaml <<END
job: {name: alone, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 8, 8], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 100}
batch: {global: 24, virtual_nodes: 6}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps, keep: 2}
eval: {every: 0}
trace: {digest: 100}
END
expect 0 heddle run job.yaml --out plain --devices 1 --steps 600 --json -q
digest=$(number digest)
expect 0 heddle run job.yaml --out alone --workers 1 --devices 1 --steps 600 --json -q
same "$(number digest)" "$digest" "digest of a lone worker"
same "$(grep -o '"step":[0-9]*' alone/metrics.ndjson | cut -d: -f2 | tr '\n' ' ')" \
	"$(seq -s ' ' 0 599) " "steps with a record"
same "$(grep -o '"loss":[^,]*' alone/metrics.ndjson | md5sum)" \
	"$(grep -o '"loss":[^,]*' plain/metrics.ndjson | md5sum)" "losses"
passed "each step has its record, and the bits are those of a plain run"

heddle run job.yaml --out live --workers 1 --devices 1 -s workers.pace='1 ms' -s workers.detect='500 ms' -q \
	2>log &
reach live 50
expect 0 heddle chaos kill live --target coordinator
await answers_now live || failed "no worker has started another coordinator"
at=$(step live)
reach live $((at + 30))
for n in 2 1; do
	expect 0 heddle scale live $n --wait -q
	reach live $(($(step live) + 20))
done
expect 0 heddle stop live
await not answers_now live || failed "the run goes on after it was stopped"
has_bits_of_one live job.yaml "digest after a coordinator and peers came and went"
passed "so are they after a coordinator died, and peers came and went"
