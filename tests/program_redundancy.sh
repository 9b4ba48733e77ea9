#!/bin/bash
# elastic.redundancy: each stage of a run's only pipeline is lost in turn, and the coordinator, and nothing
# goes back to a checkpoint: the state is at the worker that had its shadow, or followed it
# (elastic.standby). In each mode: lazy and full with three stages, eager with two, of which the last worker
# goes on with one. With workers.min: 3 the others wait for another one; without, they go on with two stages.
. "$(dirname "$0")/program.sh"

# it ends where it is stopped: no loss comes too late
cat >job.yaml <<END
job: {name: lazy, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: [700, 600, 300, 200], classes: 10}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-3, clip: 0.5}
eval: {every: 0}
checkpoint: {every: 1000 steps}
comm: {sync: stages}
parallel: {mode: pipeline}
workers: {pace: 20 ms, detect: 3 s}
END

# milliseconds of the ledger at a run's end, its last coordinator's
redundant()
{
	grep '"kind":"paid"' $1/events.ndjson | tail -n 1 | grep -o '"redundant_ms":[0-9]*' | cut -d: -f2
}
count() { grep -c "$2" $1/events.ndjson; }
committed() { wc -l <$1/metrics.ndjson; }
# The worker that is rank $2 of the newest plan.
rank_of()
{
	local plan=$(ls $1/plan/*.plan | tail -n 1) members member
	members=($(sed -n 's/^cause "view [0-9]*: workers \([0-9 ]*\);.*/\1/p' $plan))
	member=$(sed -n "s/^workers .*\b$2:\([0-9]*\).*/\1/p" $plan)
	echo ${members[$member]}
}
pid_in() { heddle status $1 --json | grep -o "\"worker\":$2,[^}]*\"pid\":[1-9][0-9]*" | grep -o '[0-9]*$'; }
# It is stopped wherever it is; one device comes to the same state. Leaves those steps in $steps.
ends()
{
	local name=$1 of=("${@:2}")
	expect 0 heddle stop $name
	await is_stopped $name || failed "$name does not stop"
	steps=$((10#$(ls $name/ckpt | tail -n 1 | cut -d- -f2)))
	train run job.yaml --out $name-one --devices 1 -s parallel.mode=data --steps $steps "${of[@]}"
	expect 0 heddle ckpt diff $name-one $name
}
is_stopped() { heddle status $1 --json | grep -q '"state":"stopped"'; }
full_views() { count $1 "\"text\":\"${members:-3} members"; }
goes_on() { [ "$(full_views $1)" -gt $views ]; }
# Kills a rank, and waits until three workers have committed two steps without it: each stage is held twice.
lose()
{
	local name=$1 worker=$(rank_of $1 $2)
	# members step on without a coordinator: the next one knows a process when that has called
	await pid_in $name $worker >pid || failed "$name: worker $worker has no process"
	views=$(full_views $name)
	kill -9 $(cat pid)
	await goes_on $name || failed "$name: no view of three workers after rank $2 was lost"
	reach $name $(($(committed $name) + 3))
}
begin()
{
	local name=$1
	shift
	"$HEDDLE_BIN" run job.yaml --out $name --workers 3 "$@" >$name.log 2>&1 &
	coordinator=$!
	reach $name 8
}

# mode, kind, clip, ranks that die
for row in full:momentum:0:0 lazy:adamw:0.5:"0 1 2"; do
	IFS=: read -r mode kind clip ranks <<<"$row"
	of=(-s optim.kind=$kind -s optim.clip=$clip)
	begin $kind "${of[@]}" -s elastic.redundancy=$mode -s workers.min=3
	for rank in $ranks; do
		lose $kind $rank
		expect 0 heddle status $kind
		says "redundancy $mode: each stage is held by two workers"
	done
	if [ $kind = adamw ]; then
		# whoever takes over goes on the same way
		kill -9 $coordinator
		reach $kind $(($(committed $kind) + 3))
		lose $kind 1
	fi
	ends $kind "${of[@]}"
	same "$(count $kind '"kind":"restore"')" 0 "$kind: times back to a checkpoint"
	[ "$(count $kind '"kind":"fetched"')" -ge 1 ] || failed "$kind: no state came from another worker"
	[ "$(redundant $kind)" -gt 0 ] || failed "$kind: the ledger has no redundant time"
	# lists have the work of the mode
	case $mode in
	lazy) ! grep -q ' Fx' $kind/plan/*.plan ;;
	full) grep -q ' Bx' $kind/plan/*.plan ;;
	esac || failed "$kind: the lists are not those of $mode"
done
passed "each of three stages killed in turn, and the coordinator: no step is lost, the bits of one device"

# elastic.standby: of two stages without redundancy either is lost, and a worker that is left over, which
# follows it, takes the place: nothing goes back to a checkpoint, and to that worker no byte moves any more
of=(-s optim.kind=adam -s optim.clip=1)
two=(-s parallel.stages=2 -s parallel.replicas=1 -s elastic.standby=follow)
expect 0 heddle run job.yaml --workers 4 "${two[@]}" "${of[@]}" --dry-run
says 'worker 3: follows stage 1: '
members=4
"$HEDDLE_BIN" run job.yaml --out follow --workers 4 "${two[@]}" "${of[@]}" >follow.log 2>&1 &
reach follow 8
for rank in 0 1; do
	expect 0 heddle status follow
	for stage in 0 1; do
		grep -q "worker [0-9]* follows stage $stage: " out || failed "no worker follows stage $stage"
	done
	lose follow $rank
done
unset members
ends follow "${of[@]}"
same "$(count follow '"kind":"restore"')" 0 "follow: times back to a checkpoint"
same "$(count follow '"kind":"stands_in"')" 2 "follow: places taken by workers that stood by"
ready=$(grep '"kind":"stands_in"' follow/events.ndjson | grep -o 'worker [0-9]*, which' | grep -o '[0-9]*')
for worker in $ready; do
	! grep -B 4 "\"kind\":\"stands_in\".*worker $worker, which" follow/events.ndjson |
		grep '"kind":"moves"' | grep -q "to worker.* $worker[ \"]" ||
		failed "state moved to worker $worker, which had followed its stage"
done
[ "$(redundant follow)" -gt 0 ] || failed "follow: the ledger has no redundant time"
expect 2 heddle run job.yaml --out no --workers 2 -s comm.sync=allreduce -s elastic.standby=follow
says 'elastic.standby: follow has a worker'
passed "either of two stages killed: a worker that followed it goes on, no byte moves, the bits of one device"

# of two stages the last worker goes on with one, and with the next one there are two again
"$HEDDLE_BIN" run job.yaml --out pair --workers 2 -s elastic.redundancy=eager >pair.log 2>&1 &
reach pair 8
members=2
for rank in 1 0; do
	lose pair $rank
	held() { heddle status pair | grep -q 'redundancy eager: each stage is held by two workers'; }
	await held || failed "pair: after rank $rank was lost no stages are held by two workers"
done
unset members
ends pair
one='"kind":"fewer".*"text":"1 stage on 1 device until there are 2: no worker is waited for"'
[ "$(count pair "$one")" -ge 1 ] || failed "the last worker did not go on with one stage"
grep -q ' Fx' pair/plan/*.plan && ! grep -q ' Bx' pair/plan/*.plan ||
	failed "pair: the lists are not those of eager"
same "$(count pair '"kind":"restore"') $(count pair '"kind":"hold"')" '0 0' "pair: ways back, waits"
passed "two stages become one after each loss, and two with the next worker: the bits of one device"

# one of two that is asked to leave, and in whose place none comes, leaves one stage behind
"$HEDDLE_BIN" run job.yaml --out leaver --workers 2 -s elastic.redundancy=lazy -s workers.start=others \
	-s workers.detect='700 ms' >leaver.log 2>&1 &
await test -S leaver/members.sock || failed "nothing to join"
for n in 0 1; do "$HEDDLE_BIN" worker --join leaver --devices 1 >leaver$n.log 2>&1 & done
reach leaver 8
expect 0 heddle stop leaver --worker 1
left() { grep -q '"kind":"view".*"text":"1 members' leaver/events.ndjson; }
await left || failed "worker 1 does not leave: $(tail -n 3 leaver/events.ndjson)"
reach leaver $(($(committed leaver) + 3))
ends leaver
[ "$(count leaver "$one")" -ge 1 ] || failed "the worker that stayed has not one stage"
same "$(count leaver '"kind":"restore"') $(count leaver '"kind":"lost"')" '0 0' "leaver: ways back, losses"
passed "a worker that leaves, and is not replaced, leaves fewer stages: nothing is lost"

# the same without a shadow. The coordinator dies just before it reads the checkpoint: two processes are left,
# which take its place
mkdir -p bare/chaos
chmod 700 bare bare/chaos
has_failpoints && echo co.restore:kill >bare/chaos/any
begin bare -s workers.detect='500 ms'
left="$(pid_in bare $(rank_of bare 0)) $(pid_in bare $(rank_of bare 2))"
kill -9 $(pid_in bare $(rank_of bare 1))
restored() { grep -q '"kind":"restore"' bare/events.ndjson; }
await restored || failed "without redundancy a loss went back to no checkpoint"
! has_failpoints || await test -e bare/chaos/hit.co.restore.$coordinator ||
	failed "the coordinator did not die before it read the checkpoint"
joined_again()
{
	local pid
	for pid in $left; do [ "$(count bare "\"kind\":\"join\".*pid:$pid\"")" = 2 ] || return; done
}
await joined_again || failed "not all of $left joined again: $(grep '"join"' bare/events.ndjson)"
was=$(committed bare)
on() { [ "$(committed bare)" -gt $((was + 3)) ]; }
await on || failed "bare does not go on"
ends bare
same "$(redundant bare)" 0 "redundant time of a run without redundancy"
passed "without redundancy the same loss goes back to the checkpoint, by the processes that are left"

# it is begun and ended while the run goes on
begin changed -s workers.pace='40 ms'
expect 0 heddle scale changed -s redundancy=by-notice
says 'redundancy lazy, from one of the next steps on'
twice() { heddle status changed | grep -q 'redundancy lazy: each stage is held by two workers'; }
await twice || failed "the stages are not held by two workers"
by_notice() { heddle status changed | grep -q 'resilience by-notice, on: 0 of [01] losses since it is on'; }
await by_notice || failed "status has no word of notices"
lose changed 1
same "$(count changed '"kind":"restore"')" 0 "times back to a checkpoint once there are shadows"
fewer='"kind":"fewer".*"text":"2 stages on 2 devices until there are 3: no worker is waited for"'
[ "$(count changed "$fewer")" -ge 1 ] || failed "two workers did not go on with two stages"
kill -9 $coordinator
reach changed $(($(committed changed) + 3))
await twice || failed "the stages are not held by two workers"
await by_notice || failed "the next coordinator has no word of notices"
expect 0 heddle scale changed -s elastic.redundancy=eager
computes() { grep -q ' Fx.* OFFx' $(ls changed/plan/*.plan | tail -n 1); }
await computes || failed "no list has the work of eager"
expect 0 heddle scale changed -s elastic.redundancy=none --json
says '"redundancy":"none"}'
bare() { heddle status changed --json | grep -q '"redundancy":"none","resilience":"given",.*"single":0'; }
await bare || failed "redundancy is not none"
lose changed 2
[ "$(count changed '"kind":"restore"')" -ge 1 ] || failed "the shadows were not ended"
ends changed
passed "redundancy begins and ends in a run that goes on, the coordinator lost between"

# interleaved and V schedules, earlier versions of delayed updates, a resume with another setting
for schedule in interleaved zb-v; do
	begin $schedule -s workers.min=3 -s elastic.redundancy=lazy -s parallel.schedule=$schedule
	lose $schedule 0
	ends $schedule
	same "$(count $schedule '"kind":"restore"')" 0 "$schedule: times back to a checkpoint"
done
begin 2bw -s optim.update=2bw -s workers.min=3 -s elastic.redundancy=lazy
lose 2bw 2
ends 2bw -s optim.update=2bw
same "$(count 2bw '"kind":"restore"')" 0 "2bw: times back to a checkpoint"
train run job.yaml --out resumed --workers 3 --steps 8
train resume resumed --workers 3 --steps 16 -s elastic.redundancy=lazy
train resume resumed --workers 2 --steps 24 -s elastic.redundancy=none
train run job.yaml --out resumed-one --devices 1 -s parallel.mode=data --steps 24
expect 0 heddle ckpt diff resumed-one resumed
passed "other schedules, delayed updates, resumes with another setting"

# what it costs is predicted, and what cannot be is refused
params() { sed -n "s/.*worker $1: memory: .*parameters \([0-9.]*\),.*/\1/p" out err; }
expect 0 heddle run job.yaml --workers 3 --dry-run
without=$(for w in 0 1 2; do params $w; done | awk '{ s += $1 } END { print s }')
expect 0 heddle run job.yaml --workers 3 --dry-run -s elastic.redundancy=lazy
with=$(for w in 0 1 2; do params $w; done | awk '{ s += $1 } END { print s }')
awk -v a=$without -v b=$with 'BEGIN { exit !(a > 0 && b > a * 1.3) }' ||
	failed "parameters of three workers: $without MiB, with shadows $with"
expect 2 heddle run job.yaml --out no --workers 3 -s elastic.redundancy=lazy -s comm.sync=allreduce
says 'every worker holds all of the state'
expect 2 heddle run job.yaml --out no --workers 3 -s elastic.redundancy=eager -s parallel.schedule=zb-v
says 'zb-v puts 2 stages on a device'
passed "memory with shadows is predicted; what holds nothing twice is refused"
