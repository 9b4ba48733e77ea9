#!/bin/bash
# parallel.copies: stages with copies in different numbers over workers, with the bits of one device.
. "$(dirname "$0")/program.sh"
write_jobs 6

for job in gpt resnet18; do
	train run $job.yaml --out $job-one --devices 1 -s trace.digest=1
	one=$digest
	train run $job.yaml --out $job-workers --workers 4 -s parallel.copies=3,1 -s trace.digest=1
	same "$digest" "$one" "$job: 3 and 1 workers"
	cmp -s <(grep -o '"digest":"[^"]*"' $job-one/metrics.ndjson) \
		<(grep -o '"digest":"[^"]*"' $job-workers/metrics.ndjson) ||
		failed "$job: other digests on the way"
done
grep -q '^stages 2' gpt-workers/plan/0001.plan || failed "the plan has other stages"
grep -q 'copies 3,1' gpt-workers/plan/0001.plan || failed "the plan does not say the copies"
expect 0 heddle plan check gpt-workers/plan/0001.plan
train run gpt.yaml --out split --workers 5 -s parallel.copies=1,4 -s comm.sync=stages --steps 3 \
	-s workers.detect=400ms
train resume split --workers 3 -s parallel.copies=1,2 --steps 4
expect 2 heddle resume split --workers 2 -s parallel.stages=2
says 'or parallel.copies: none'
train resume split --workers 2 -s parallel.copies=none -s parallel.stages=2 --steps 5
train resume split --devices 4 -s parallel.copies=3,1 -s comm.sync=allreduce
expect 0 heddle ckpt diff gpt-one split
expect 2 heddle run gpt.yaml --workers 5 -s parallel.copies=3,2 --dry-run
says 'write a divisor or a multiple of 3 in place of 2'
expect 2 heddle run gpt.yaml --workers 4 -s parallel.copies=3,1 -s comm.sync=stages \
	-s elastic.redundancy=lazy --dry-run
says 'does not go with stages that have copies'
expect 2 heddle run gpt.yaml --out none --workers 4 -s parallel.mode=explicit \
	-s parallel.plan=gpt-workers/plan/0001.plan -s comm.sync=stages -s resilience=replica:1
says 'and the plan (parallel.plan) has 1: a plan of 2 pipelines, or elastic.resilience: checkpoint'
expect 2 heddle run gpt.yaml --out none --workers 2 -s parallel.mode=pipeline -s parallel.stages=2 \
	-s comm.sync=stages -s resilience=replica:1 -s batch.virtual_nodes=1
says 'elastic.resilience: replica:1 keeps 2 pipelines, and this run has 1 at most'
[ ! -e none ] || failed "a run that was refused left its folder"
passed "3 and 1, 1 and 4, 1 and 2 workers, state whole and by stages, and one process: the bits of one device"

# it ends where it is stopped, so no change comes too late
write_jobs 100000
sed -i 's/kind: linear/kind: constant/' gpt.yaml
"$HEDDLE_BIN" run gpt.yaml --out killed --workers 4 -s parallel.mode=explicit \
	-s parallel.plan=gpt-workers/plan/0001.plan -s workers.pace=20ms -s workers.detect=400ms \
	-s checkpoint.every='10 steps' >killed.log 2>&1 &
run=$!
reach killed 4
pid_in() { heddle status $1 --json | grep -o "\"worker\":$2,[^}]*\"pid\":[1-9][0-9]*" | grep -o '[0-9]*$'; }
newest() { ls killed/plan/*.plan | tail -n 1; }
was=$(newest)
kill -9 $(pid_in killed 1) $(pid_in killed 3)
has_copies() { grep -q "copies $1" "$(newest)"; }
has_none() { grep -q '^stages 2' "$(newest)" && ! grep -q copies "$(newest)"; }
# steps of the newest plan are committed
goes_on() { grep -q "\"plan\":$((10#$(basename "$(newest)" .plan)))," killed/metrics.ndjson; }
is_back() { [ "$(newest)" != "$was" ] && has_copies 3,1; }
await is_back && await goes_on || failed "no step with 3 and 1 copies after the loss"
grep -q 'file: 2 stages' "$(newest)" || failed "copies are not by the file: $(grep cause "$(newest)")"
expect 0 heddle scale killed -s parallel.mode=pipeline -s parallel.plan=none -s parallel.copies=1,2
await has_copies 1,2 && await goes_on || failed "no step with 1 and 2 copies"
expect 0 heddle scale killed -s parallel.stages=2
await has_none && await goes_on || failed "no step without copies"
stops_with_bits_of_one killed gpt.yaml "a copy of a file and the stage behind it killed, other copies, none"
passed "by a plan file, a copy and the stage behind it killed, other copies, none: the bits of one device"
