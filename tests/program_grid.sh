#!/bin/bash
# A grid of 2 x 2 workers, two pipelines of two: one dies before the n-th instruction of a stage, or at a
# place between steps. Its stages have another holder, so nothing is taken from disk, one step at most is
# begun again, and the bits are those of one device. Every HD_GRID_EVERY-th instruction of two steps (1: each;
# the long suite).
. "$(dirname "$0")/program.sh"
needs_failpoints
every=${HD_GRID_EVERY:-61}

cat >grid.yaml <<END
job: {name: grid, seed: 3, steps: 5}
model: {use: "builtin:mlp", args: {input: [1, 8, 8], hidden: [500, 400, 300], classes: 10}}
data: {kind: synthetic, count: 90}
batch: {global: 24, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, clip: 1.0}
checkpoint: {every: 2 steps}
comm: {sync: stages}
workers: {detect: 10 s}
END
train run grid.yaml --out one --devices 1
one=$digest
runs=0

# The process that was to die, and no other one, is gone. Whoever is lost is that one, and where its end was
# seen it was by signal 9. A worker that ends by an error beside costs no bit, and often nothing from disk.
one_ended()            # WHAT
{
	local pid worker
	same "$(find grid/chaos -name 'hit.*' | wc -l)" 1 "$1: processes that came to the place"
	pid=$(find grid/chaos -name 'hit.*' | grep -o '[0-9]*$')
	for worker in $(grep '"kind":"lost"' grid/events.ndjson | grep -o '"worker":[0-9]*' | sort -u); do
		grep '"kind":"join"' grid/events.ndjson | grep "$worker," | grep -q "pid:$pid\"" ||
			failed "$1: process $pid died, and $worker was lost"
	done
	! grep '"kind":"process_ended"' grid/events.ndjson |
		grep -Ev "process $pid ended with exit code 137\"|ended with exit code 0\"" >others ||
		failed "$1: process $pid died, and $(cat others)"
}

# SCHEDULE ORDER: the first process that comes to the place dies there, as ORDER (HD_FAIL) says
dies()
{
	rm -rf grid
	mkdir -p grid/chaos
	chmod 700 grid
	echo "$2" >grid/chaos/any
	train run grid.yaml --out grid --workers 4 -s parallel.mode=pipeline -s parallel.replicas=2 \
		-s parallel.schedule="$1"
	same "$digest" "$one" "$1, $2"
	[ -n "$(find grid/chaos -name 'hit.*')" ] || return 1
	one_ended "$1, $2"
	! grep -q '"kind":"restore"' grid/events.ndjson ||
		failed "$1, $2: a checkpoint was read; lost: $(grep -c '"kind":"lost"' grid/events.ndjson)"
	# step 0 is when the links of a run come up, one after another
	[ "$(grep -o '"kind":"afresh","step":[1-9]*,' grid/events.ndjson | sort -u | wc -l)" -le 1 ] ||
		failed "$1, $2: more than one step is begun again"
	runs=$((runs + 1))
}

for schedule in 1f1b interleaved zb-v; do
	train run grid.yaml --out plan-$schedule --workers 4 -s parallel.mode=pipeline \
		-s parallel.replicas=2 -s parallel.schedule=$schedule --steps 1
	nstages=$(sed -n 's/^stages //p' plan-$schedule/plan/0001.plan)
	at=1
	for ((stage = 0; stage < nstages; stage++)); do
		# of the first rank that has it, in one step
		n=$(grep -m 1 -E "^[0-9]+: .*F$stage\." plan-$schedule/plan/0001.plan | tr ' ' '\n' |
			grep -cE "^[A-Z]+$stage([.@]|\$)")
		for (( ; at <= 2 * n; at += every)); do
			dies $schedule "pipe.instr:kill#$stage@$at" ||
				failed "$schedule: instruction $at of stage $stage was not reached"
		done
		at=$((at - 2 * n))
	done
done
passed "$runs deaths before an instruction of 1f1b, interleaved, zb-v: no step lost, the bits of one device"

runs=0
for place in exchange.sum norm.before norm.here step.update.before update.done seal.before gate.boundary \
	ckpt.write.before ckpt.rename.before; do
	dies 1f1b "$place:kill@2" || failed "$place was not reached"
done
passed "$runs deaths between sum and norm, at the update, at the gate, of the checkpoint writer"

# the coordinator: another process takes over, and the run ends without the one that began it
is_done() { heddle status grid --json | grep -q '"state":"done"'; }
for place in co.view:kill@1 co.commit:kill@2; do
	rm -rf grid
	mkdir -p grid/chaos
	chmod 700 grid
	echo $place >grid/chaos/any
	expect 137 heddle run grid.yaml --out grid --workers 4 -s parallel.mode=pipeline \
		-s parallel.replicas=2 -s workers.detect='500 ms'
	await is_done || failed "the run does not end after $place"
	expect 0 heddle ckpt diff one grid
done
passed "the coordinator dies before the first view is known, and at a commit"

# all in one life: shards and stages in one process, killed; over workers that share shards, a third with more
# devices than the others, one killed, one that comes, the schedule another one; stopped; shards again
cat >gpt.yaml <<'END'
job: {name: gpt, seed: 5, steps: 140}
model:
  use: "builtin:gpt"
  args: {layers: 2, width: 32, heads: 4, context: 16, vocab: 50, dropout: 0.1}
  shards: 4
  sequence_shards: true
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7}
optim: {kind: adamw, lr: 1e-2, clip: 1.0}
checkpoint: {every: 2 steps}
workers: {detect: 500 ms}
END
train run gpt.yaml --out gpt-one --devices 1
HD_FAIL=step.update.before:kill@15 expect 137 heddle run gpt.yaml --out life --devices 4 \
	-s parallel.stages=2 -s parallel.tensor=2
heddle resume life --workers 2 --devices 2 -s parallel.mode=pipeline -s workers.start=others \
	-s parallel.schedule=gpipe -s workers.pace='500 ms' -s workers.detect=60s >life.log 2>&1 &
run=$!
joins() { "$HEDDLE_BIN" worker --join life --devices $1 -q >>joins.log 2>&1 & }
await test -S life/members.sock || failed "nothing to join"
joins 2
joins 2
reach life 16
joins 5
expect 0 heddle scale life 3
pid_in() { heddle status life --json | grep -o "\"worker\":$1,[^}]*\"pid\":[1-9][0-9]*" | grep -o '[0-9]*$'; }
has_three() { heddle status life --json | grep -q '"members":3,'; }
await has_three || failed "life has not three members"
newest() { ls life/plan/*.plan | tail -n 1; }
was=$(newest)
kill -9 $(pid_in 0)
# another takes its place, maybe before anybody looks: that it went is an event
lost() { grep '"kind":"lost"' life/events.ndjson | grep -q '"worker":0,'; }
await lost || failed "no event of a loss"
joins 2
# five devices are two ranks of two, beside those of the others
grid() { [ "$(newest)" != "$was" ] && grep -q '2 pipelines of 2 ranks of 2 devices' "$(newest)"; }
await grid || failed "no two pipelines of ranks of two devices after the loss"
at=$(heddle status life --json | grep -o '"step":[0-9]*' | head -n 1 | cut -d: -f2)
reach life $((at + 2))
expect 0 heddle stop life
wait $run
same $? 75 "the exit code of a run that was stopped"
train resume life --devices 4 -s parallel.tensor=4 -s parallel.mode=tensor -s parallel.stages=auto \
	-s parallel.schedule=auto
expect 0 heddle ckpt diff gpt-one life
passed "shards, stages, uneven workers, a worker killed, one that came, two resumes: the bits of one device"
