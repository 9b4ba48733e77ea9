#!/bin/bash
# heddle plan JOB: a plan that is printed, drawn, written and run; heddle profile before it.
. "$(dirname "$0")/program.sh"
write_jobs 3
cat >cluster.yaml <<'END'
kinds:
  new: {speed: 1, memory: 1GiB}
  old: {speed: 0.5, memory: 1GiB}
levels:
  - {name: server, components: 2, bytes_per_s: 12e9, latency_ns: 5000}
  - {name: rack, components: 2, bytes_per_s: 1.25e9, latency_ns: 20000}
devices:
  - {kind: new, count: 2}
  - {kind: old, count: 2}
END

expect 0 heddle plan lenet.yaml --workers 4
says 'profile   counts of operations on a nominal core'
says 'modelled, 14 nodes, 14 cuts'
says 'devices   4: joined by a nominal link of 10 GB/s'
says 'step      '
says 'bubble'
expect 0 heddle plan lenet.yaml --workers 4 --json
json_ok
says '"profile":"modelled"'
cp out once.json
expect 0 heddle plan lenet.yaml --workers 4 --json
cmp -s out once.json || failed "another plan the second time"
passed "a plan without a measurement, the same every time"

expect 0 heddle profile lenet.yaml --samples 3 -o lenet.json -q
[ ! -s out ] || failed "profile -q prints what it writes: $(head -n 1 out)"
expect 0 heddle plan lenet.yaml --profile lenet.json --cluster cluster.yaml --draw --explain
says 'profile   lenet.json: measured'
says 'devices   4: cluster.yaml'
says 'rival     data: '
says 'rival     pipedream: '
[ "$(grep -c '^why  *stage  *cuts\|^why  *rank  *device' out)" = 0 ] ||
	failed "the tables of stages and ranks are printed twice"
expect 0 heddle plan lenet.yaml --workers 2 --explain --planner ptdp
says 'rival     data: the plan of ptdp'
expect 0 heddle plan lenet.yaml --profile lenet.json --cluster cluster.yaml --draw --explain
says 'timeline  F forward'
says 'one column is'
says '   0 |'
expect 0 heddle plan lenet.yaml --profile lenet.json -n 2
says 'joined by the link of the profile'
expect 2 heddle plan lenet.yaml --profile lenet.json --cluster cluster.yaml --workers 4
says 'leave --workers out'
expect 2 heddle plan mlp.yaml --profile lenet.json
says 'lenet.json is the profile of another graph'
expect 0 heddle plan mlp.yaml --profile lenet.json --force-profile -n 2
expect 2 heddle plan lenet.yaml --profile lenet.json -s batch.virtual_nodes=4
says 'is of virtual nodes of 2 samples, this job has 4'
passed "a measured profile, a cluster file, refusals of others"

expect 0 heddle plan mlp.yaml --planner data -n 3 -o data.plan
expect 0 heddle plan check data.plan
expect 0 heddle run mlp.yaml --devices 3 --plan data.plan --out planned --json
same "$(number digest)" "$(heddle run mlp.yaml --devices 1 --out plain --json 2>err >out; number digest)" \
	"states under the plan and without"
expect 0 heddle plan lenet.yaml --planner data --cluster cluster.yaml -s batch.global=4096 \
	-s batch.virtual_nodes=64 -o uneven.plan
says 'summed once a step, over the rack'
says 'virtual nodes 22/22/10/10: '
says 'only 2 x new: would be '
says ' % slower: computing takes longer; '
expect 0 heddle plan check uneven.plan
expect 0 heddle plan lenet.yaml --planner data --cluster cluster.yaml
says 'devices 0-1: virtual nodes '
says '2 of 4 devices stay idle'
passed "uneven devices get uneven counts, or none, with the reason"

expect 0 heddle plan lenet.yaml --planner pipedream --cluster cluster.yaml -o pipe.plan --json
says '"runs":false'
expect 0 heddle plan lenet.yaml --planner pipedream --partitioner heddle -s parallel.recompute=stage \
	--cluster cluster.yaml -o again.plan
says 'a step of 8 virtual nodes takes'
expect 0 heddle plan check again.plan
expect 0 heddle plan lenet.yaml --cluster cluster.yaml -s parallel.mode=pipeline -s parallel.schedule=zb-h1 \
	-o auto.plan
says 'zb-h1'
expect 0 heddle plan check auto.plan
says 'accepted'
expect 0 heddle plan lenet.yaml --planner ptdp --cluster cluster.yaml
says 't = 1, p = 1: the whole model fits a device'
expect 2 heddle plan lenet.yaml --planner 2bw --cluster cluster.yaml
says 'the planner 2bw reads profiles'
expect 0 heddle plan check pipe.plan
says 'accepted'
passed "what is written can be checked, and run where the build runs it"

cat >gpt.yaml <<'END'
job: {name: gpt, steps: 2}
model: {use: "builtin:gpt", args: {layers: 2, width: 32, heads: 4, context: 16, vocab: 50}, shards: 4}
data: {kind: synthetic, count: 60}
batch: {global: 16, virtual_nodes: 8}
END
# delayed updates: a step of many, whose causes add up to it, faster than one that is drained
set -- -n 2 -s parallel.mode=pipeline -s model.shards=1
expect 0 heddle plan gpt.yaml "$@" -s parallel.schedule=1f1b --json
drained=$(number predicted_s)
expect 0 heddle plan gpt.yaml "$@" -s optim.update=2bw -s parallel.schedule=2bw --explain --json \
	-o overlap.plan
says '"overlap":true'
"${HEDDLE_PYTHON:-python3}" - out "$drained" <<'END' || failed "a step that overlaps: $(cat out)"
import json, sys
p = json.loads(open(sys.argv[1]).read())
e, step = p["explain"], p["predicted_s"]
assert abs(sum(e["critical_s"].values()) / step - 1) < 1e-9 and e["step_s"] == step
assert step < float(sys.argv[2]), step
for r in p["ranks"]:
    assert abs((r["busy_s"] + sum(r["idle_s"].values())) / step - 1) < 1e-9, r
END
expect 0 heddle plan check overlap.plan
for row in "1:optim.clip needs the norm" "0:the forward pass of a step begins on the new parameters"; do
	expect 0 heddle plan gpt.yaml -n 2 -s parallel.mode=data -s optim.clip=${row%%:*}
	says 'steps     over several workers '
	says "${row#*:}"
done
expect 0 heddle plan gpt.yaml "$@" -s optim.update=2bw -s parallel.schedule=2bw --explain
says 'steps     overlap: each begins while the one before ends'
expect 0 heddle plan gpt.yaml "$@" -s optim.update=2bw -s parallel.schedule=2bw -s batch.virtual_nodes=1
says 'lets steps overlap: there are fewer than 2 (p - 1) virtual nodes'
expect 0 heddle plan gpt.yaml "$@" -s optim.update=stash -s optim.cuts=auto:2 -s optim.clip=0 \
	-s optim.kind=lamb
says 'lets steps overlap: the last stage waits for the norms that optim.kind needs'
# its last cut is not the planner's: no step is promised that no run can take
expect 0 heddle plan gpt.yaml "$@" -s optim.update=stash -s optim.cuts=auto:2 -s optim.clip=0
says 'lets steps overlap: the last stage has to begin where optim.cuts says'

expect 0 heddle plan gpt.yaml -n 2 -s parallel.tensor=2 --explain
says 'shards    4, on 2 devices a rank: products, heads, vocabulary'
says 'norms, dropout and sums between products are whole on each device'
expect 0 heddle plan gpt.yaml -n 2 -s parallel.tensor=2 --json
says '"tensor":2,"tensor_shards":4,"sequence_shards":false'
whole=$(number predicted_s)
expect 0 heddle plan gpt.yaml -n 2 -s parallel.tensor=2 -s model.sequence_shards=true --explain
says 'vocabulary; norms, dropout and sums between them along the sequence'
says 'shared out along the sequence (model.sequence_shards)'
expect 0 heddle plan gpt.yaml -n 2 -s parallel.tensor=2 -s model.sequence_shards=true --json
awk "BEGIN { exit !($(number predicted_s) < $whole) }" ||
	failed "no faster along the sequence: $(number predicted_s) s, whole $whole s"
passed "a tensor group, and what it shares"

# --explain: text and JSON say the same of every rank, terms add up to the step
explained()     # OPTIONS
{
	expect 0 heddle plan gpt.yaml "$@" --explain --json
	json_ok
	cp out explained.json
	sed 's/.*"critical_s":{\([^}]*\)}.*/\1/' out | tr ',' '\n' | sed 's/"\(.*\)":/\1 /' |
		awk '{ n = $NF; $NF = ""; printf "%s%.4f\n", $0, 1e3 * n }' >terms.json
	sed 's/.*"critical_s":{\([^}]*\)}.*/\1/' out | tr ',' '\n' | awk -F: -v step="$(number step_s)" '
		{ s += $NF } END { exit !(s > 0.999999 * step && s < 1.000001 * step) }' ||
		failed "terms do not add up to the step: $*"
	expect 0 heddle plan gpt.yaml "$@" --explain
	sed -n 's/^critical .* to the end: //p' out | sed 's/; of it.*//; s/, /\n/g' >terms.text
	cmp -s terms.json terms.text || failed "text and JSON differ: $(diff terms.json terms.text)"
	same "$(grep -c '^exchange ' out)" "$(grep -o '"parts":' explained.json | wc -l)" "exchanges: $*"
	same "$(grep -c '^memory ' out)" "$(grep -o '"devices":[0-9]*,"bytes":' explained.json | wc -l)" \
		"ranks with memory: $*"
}
sed -i 's/layers: 2/layers: 4/' gpt.yaml
explained -n 4 -s parallel.mode=pipeline -s parallel.stages=2 -s parallel.replicas=2 \
	-s parallel.schedule=1f1b
says 'waits     rank 3: '
says 'RED of stage 0, ranks 0,2'
says 'RED of stage 1, ranks 1,3'
says 'NORM of stage 0, ranks 0,1,2,3'
explained -n 4 -s parallel.mode=pipeline -s parallel.stages=2 -s parallel.tensor=2 \
	-s parallel.schedule=1f1b
says 'group     stage 1: 2 devices a rank; forward '
says 'sums within tensor groups'
says 'memory    rank 1, device 2 to 3, each: '
explained -n 3 -s parallel.mode=pipeline -s parallel.stages=3 -s parallel.schedule=1f1b -s comm.sync=stages
says 'path '
expect 0 heddle plan gpt.yaml -n 3 -s parallel.mode=pipeline -s parallel.stages=3 \
	-s parallel.schedule=1f1b -s comm.sync=stages -s elastic.redundancy=full --explain --json
says '"shadows":"full"'
says '"without_shadows":null'
says '"shipped":[{"stage":'
grep -q '"critical_s":{[^}]* of shadows"' out || failed "no work of shadows in the path"
expect 0 heddle plan gpt.yaml -n 3 -s parallel.mode=pipeline -s parallel.stages=3 \
	-s parallel.schedule=1f1b -s comm.sync=stages -s elastic.redundancy=full --explain
says 'SHIP of stage 1, rank 1 to the shadow at rank 0'
grep -q '^memory .*, shadows [0-9.]*$' out || failed "no memory of shadows"
expect 0 heddle plan gpt.yaml -n 3 -s parallel.mode=data -s comm.sync=stages -s elastic.redundancy=lazy \
	--explain
says 'critical '
says 'shadows   none: '
why=$(sed -n 's/^shadows   none: //p' out)
expect 0 heddle plan gpt.yaml -n 3 -s parallel.mode=data -s comm.sync=stages -s elastic.redundancy=lazy \
	--explain --json
says "\"without_shadows\":\"$why\""
sed -i 's/layers: 4/layers: 2/' gpt.yaml
passed "a step is explained: its critical path, waits, exchange, groups, shadows, memory of every rank"

# simulate JOB: what the plan predicts, and what would change it
sed 's/bytes_per_s: .*, latency_ns: 20000/bytes_per_s: 4e6, latency_ns: 20000/' cluster.yaml >slow.yaml
cat >mlp.json <<'END'
{"job": {"name": "j", "steps": 2}, "model": {"use": "builtin:mlp"}, "data": {"kind": "synthetic"},
 "batch": {"global": 64}}
END
for options in "lenet.yaml --cluster cluster.yaml --planner pipedream" \
	"gpt.yaml --cluster slow.yaml -s parallel.tensor=2 -s parallel.mode=pipeline" \
	"gpt.yaml --cluster slow.yaml -s parallel.mode=pipeline -s parallel.stages=3
	-s parallel.schedule=gpipe" \
	"mlp.json -n 2"; do
	expect 0 heddle plan $options --json
	planned=$(number predicted_s)
	expect 0 heddle simulate $options --json
	json_ok
	same "$(number makespan)" "$planned" "step of $options"
done
says '"planner":"auto","unit":"s","ranks":2'
expect 0 heddle simulate gpt.yaml --cluster slow.yaml -s parallel.tensor=2 -s parallel.mode=pipeline --json
says '"links":[{"level":"rack"'            # the second rank begins on the other server
expect 0 heddle simulate lenet.yaml --cluster cluster.yaml --what-if bandwidth=0.01 --transport eager \
	--steps 3
says 'what if bandwidth=0.01'
says '(3 steps)'
expect 0 heddle simulate lenet.yaml --profile lenet.json --workers 2 --seed 4 --trace job.hdfr
[ "$(head -c 8 job.hdfr)" = HDFLIGHT ] || failed "job.hdfr is no flight file"
expect 2 heddle simulate lenet.yaml --seed 4
says 'give --profile FILE'
expect 2 heddle simulate lenet.yaml --costs 1,2
says '--costs belongs to bare schedules; lenet.yaml is a job'
expect 2 heddle simulate pipe.plan --planner auto
says '--planner belongs to a JOB'
expect 2 heddle simulate pipe.plan -s job.seed=1
says '-s job.seed=1 sets a key of a JOB'
expect 2 heddle simulate mlp.yaml --profile lenet.json
says 'lenet.json is the profile of another graph'
expect 3 heddle simulate nothing.yaml
passed "a job is planned and simulated"

# other sizes of virtual nodes: the own one is planned as without
expect 0 heddle plan gpt.yaml -n 4 --json
planned=$(number predicted_s)
expect 0 heddle plan gpt.yaml -n 4 --suggest-job --json
json_ok
grep -qF '"virtual_nodes":8,"this_job":true' out || failed "the job's own size is not there"
grep -qF "\"this_job\":true,\"best\":$(grep -o '"this_job":true,"best":[a-z]*' out |
	sed 's/.*://'),\"predicted_s\":$planned" out || failed "another step for the job's own size"
for v in 16 8 4 2 1; do grep -qF "\"virtual_nodes\":$v," out || failed "no $v virtual nodes"; done
best=$(grep -o '"virtual_nodes":[0-9]*,"this_job":[a-z]*,"best":true,"predicted_s":[0-9.e-]*' out)
expect 0 heddle plan gpt.yaml -n 4 \
	-s batch.virtual_nodes=$(sed 's/"virtual_nodes":\([0-9]*\),.*/\1/' <<<"$best") --json
same "$(number predicted_s)" "${best##*:}" "the step of the best size"
expect 0 heddle plan gpt.yaml -n 4 --suggest-job
says '(this job)'
says '(most samples/s)'
expect 0 heddle plan lenet.yaml --profile lenet.json --cluster cluster.yaml --suggest-job
says 'other sizes of virtual nodes by counts of operations'
expect 0 heddle plan gpt.yaml -n 4 --suggest-job -s workers.memory=300KiB
says 'no plan fits the memory'
expect 2 heddle plan gpt.yaml -n 2 --suggest-job -s workers.memory=1KiB
says 'no size of virtual nodes has a plan'
expect 2 heddle plan gpt.yaml --suggest-job -o x.plan
says '--output is of one plan'
passed "suggestions"

cp lenet.yaml check
expect 0 heddle plan ./check -n 2
expect 2 heddle plan check
says 'takes FILE'
expect 2 heddle plan chekc
says '; a job file of that name is ./chekc'
expect 2 heddle plan
says 'takes JOB'
expect 2 heddle plan lenet.yaml lenet.yaml
says 'takes JOB'
expect 2 heddle plan lenet.yaml --workers 0
says '--workers is from 1 to'
expect 2 heddle plan lenet.yaml --planner pipedreem
says 'did you mean pipedream?'
expect 2 heddle plan lenet.yaml --planner foo
says 'there are auto, data, pipedream, 2bw, ptdp'
expect 0 heddle plan resnet18.yaml -n 2 -s model.bn=global
says 'planner   data'
says 'virtual nodes in lockstep: all meet 40 times a step'
expect 2 heddle plan resnet18.yaml -n 2 -s model.bn=global -s parallel.mode=pipeline
says 'model.bn global takes all virtual nodes through the model in lockstep'
expect 2 heddle plan lenet.yaml --planner data --schedule gpipe
says 'the planner data decides the schedule itself'
expect 2 heddle plan lenet.yaml --schedule gpip
says 'did you mean gpipe?'
expect 2 heddle plan lenet.yaml -s parallel.mode=explicit -s parallel.plan=data.plan
says 'names its plan, data.plan'
expect 2 heddle plan lenet.yaml --planner data -s workers.memory=64KiB -n 2
says 'does not fit: rank 0 needs'
expect 3 heddle plan lenet.yaml --cluster lenet.json
says 'lenet.json:1:'
passed "wrong wishes are answered with what is right"
