#!/bin/bash
# trace.values: each op of each virtual node has one digest, whatever the plan; what computes something else
# is found by `heddle ckpt diff --explain`.
. "$(dirname "$0")/program.sh"

cat >job.yaml <<END
job: {name: values, seed: 5, steps: 3}
model: {use: "builtin:gpt", shards: 2, args: {layers: 2, width: 16, heads: 2, context: 8}}
data: {kind: synthetic, count: 61}
batch: {global: 16, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 200 steps}
eval: {every: 0}
trace: {values: 1}
END

values() { expect 0 heddle run job.yaml --out "$@" -q; }

values one --devices 1
# DEVICES-OR-WORKERS SCHEDULE STAGES REPLICAS TENSOR
while read -r name where p d t schedule; do
	values $name $where -s parallel.mode=pipeline -s parallel.stages=$p -s parallel.replicas=$d \
		-s parallel.tensor=$t -s parallel.schedule=$schedule
	expect 0 heddle ckpt diff one $name --explain
	grep -q '^values agree: [0-9]* digests of 3 steps$' out || failed "$name differs"
	n=$(sed -n 's/^values agree: \([0-9]*\) .*/\1/p' out)
	same "$n" "${all:=$n}" "digests compared with $name"
done <<END
devices --devices=3 3 1 1 1f1b
grid --devices=8 2 2 2 gpipe
stages --workers=2 2 1 1 zb-h1
replicas --workers=4 2 2 1 1f1b
END
values workers --workers 3
expect 0 heddle ckpt diff one workers --explain
says "values agree: $all digests of 3 steps"
passed "devices, stages, replicas, tensor groups and workers: $all digests of 3 steps agree"

# of some steps: of the state also before them
values some --devices 1 -s trace.values=2
same "$(grep -c '"made"' some/values/0.ndjson)" 16 "virtual nodes of steps 0 and 2"
same "$(grep -c '"state"' some/values/0.ndjson)" 3 "states"
expect 0 heddle ckpt diff one some --explain --json
says '"values":{"agree":true,'
says '"torn_lines":[0,0]'
expect 0 heddle ckpt diff one some --explain
lines=$(grep -o '\[[0-9]*,"' one/values/0.ndjson | wc -l)
has=$(grep -o '\[[0-9]*,"' some/values/0.ndjson | wc -l)
says "  digests that one run alone has, compared with nothing: $((lines - has)) of A, 0 of B"
values alone --devices 1
sed -i '2,$d' alone/values/0.ndjson
expect 3 heddle ckpt diff alone one --explain
says "  digests that one run alone has, compared with nothing: 0 of A, $lines of B"
says 'have no step, virtual node and op in common: nothing was compared'
expect 3 heddle ckpt diff alone one --explain --json
says '"agree":null'
expect 3 heddle ckpt diff one/ckpt one --explain
says 'one/ckpt is no folder of a run, which alone has a record of values: --explain compares two runs'
values none --devices 1 -s trace.values=none
[ ! -e none/values ] || failed "a run that does not ask for it writes values"
expect 3 heddle ckpt diff one none --explain
says 'none has no record of values: run the job with -s trace.values=1'
sed 's/layers: 2/layers: 1/' job.yaml >other.yaml
expect 0 heddle run other.yaml --out other -q --devices 1
expect 3 heddle ckpt diff one other --explain
says 'other graphs, whose values say nothing of one another'
passed "steps as asked for; runs without a record, of other graphs, or with nothing in common are refused"

# what was computed again after a loss is compared with what was computed first
if has_failpoints; then
	HD_FAIL=state.params:kill#1@2 values lost --workers 3
	grep -q '"kind":"lost"' lost/events.ndjson || failed "no worker was lost"
	expect 0 heddle ckpt diff one lost --explain
	says ' digests of 3 steps'
	passed "so do those of a run that lost a worker"
fi

# one bit of one value of virtual node 5, of the first step, at whichever worker computes it
has_failpoints || exit 0
HD_FAIL=value.made:flip#5@9 values wrong --workers 2 -s parallel.mode=pipeline -s parallel.stages=2
expect 5 heddle ckpt diff one wrong --explain
grep -q '^first difference of values: step 0, virtual node 5, op #[0-9]* F ' out || failed "no place"
says '  A: worker 0, device 0, stage 0'
says '  B: worker 0, device 0, stage 0'
says '  1 virtual nodes of the step differ; '
expect 5 heddle ckpt diff one wrong --explain --json
says '"virtual_node":5,"virtual_nodes":1,"op":"#'
passed "a wrong value is found: step, virtual node, op and place"
