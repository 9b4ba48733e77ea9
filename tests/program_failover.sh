#!/bin/bash
# A worker dies before some instruction of a pipeline: the step goes on with what the others have, the rank
# before the lost one runs both stages, and the bits are those of one device.
. "$(dirname "$0")/program.sh"
needs_failpoints
cat >job.yaml <<END
job: {name: failover, seed: 5, steps: 3}
model: {use: "builtin:mlp", args: {input: [1, 12, 12], hidden: [60, 50, 40, 30], classes: 10}}
data: {kind: synthetic, count: 60}
batch: {global: 16, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, clip: 0.5}
eval: {every: 0}
checkpoint: {every: 1000 steps}
comm: {sync: stages}
parallel: {mode: pipeline}
workers: {detect: 3 s}
END

# mode, schedule, stage, instruction, steps: with two the others go on with two stages. A step goes on in
# which all others stand and of which nothing is summed: before that instruction the stage has had something
# of the others (the first stage: a gradient), and after it they need more of it.
# By a plan file: the lists that the run before kept, with the shadows that they have.
for row in lazy:gpipe:2:13:1 eager:1f1b:1:24:2 eager:file:1:24:1 full:1f1b:0:17:1; do
	IFS=: read -r mode schedule stage at steps <<<"$row"
	run=$mode-$schedule
	order="-s parallel.schedule=$schedule"
	[ $schedule != file ] || order="-s parallel.mode=explicit -s parallel.plan=eager-1f1b/plan/0001.plan"
	train run job.yaml --out one-$run --devices 1 -s parallel.mode=data -s job.steps=$steps
	one=$digest
	mkdir -p $run/chaos
	chmod 700 $run/chaos $run
	echo "pipe.instr:kill#$stage@$at" >$run/chaos/any
	train run job.yaml --out $run --workers 3 -s elastic.redundancy=$mode $order -s job.steps=$steps
	[ $schedule != file ] || grep -q '^cause .*; shadows eager, of the file' $run/plan/0001.plan ||
		failed "$run: shadows are not those of the file"
	same "$digest" "$one" "$mode, $schedule: a death before instruction $at of stage $stage"
	[ -n "$(find $run/chaos -name 'hit.*')" ] || failed "instruction $at of stage $stage was not reached"
	grep -q '"kind":"failover".*"text":"step [0-9]* goes on: worker [0-9]* runs what [0-9]* ran"' \
		$run/events.ndjson || failed "$run: the step did not go on"
	! grep -Eq '"kind":"(afresh|restore)"' $run/events.ndjson || failed "$run: a step was begun again"
	# they have fewer stages then, or another worker was there before the step had ended
	[ $steps = 1 ] || ! sed '1,/"kind":"failover"/d' $run/events.ndjson | grep -q 'too few: they wait' ||
		failed "$run: the others waited for another worker"
	[ "$mode" = full ] ||
		grep -q '"kind":"redo".*"text":"8 virtual nodes of step [0-9]* are computed again"' \
		$run/events.ndjson || failed "$run: what was computed again is not said"
done
passed "a death inside a step, in each mode: the others go on with it, the bits of one device"

train run job.yaml --out three --devices 1 -s parallel.mode=data
three=$digest
# A worker has not the memory for fewer stages: its process stays, and the stages are cut another way. One
# dies in step 1: all others have taken up the first view by then, so the second that they take up has fewer
# stages, in step 1 if that is begun again, else in step 2.
HD_FAIL='state.params:kill#1@2;change.adopt:err=ENOMEM@2' train run job.yaml --out refused --workers 3 \
	-s elastic.redundancy=eager
same "$digest" "$three" "fewer stages are refused"
grep -q '"kind":"unfit".*its part of 2 stages: ' refused/events.ndjson || failed "it is not said"
[ "$(grep -c '"kind":"lost"' refused/events.ndjson)" = 1 ] || failed "whoever refused ended"
! grep -Eq '"kind":"restore"' refused/events.ndjson || failed "a checkpoint was read"
passed "fewer stages are refused by all that are left: others are proposed, no worker ends"
