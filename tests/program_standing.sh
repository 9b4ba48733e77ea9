#!/bin/bash
# Where a run stands without a coordinator: for a moment, or for ever.
. "$(dirname "$0")/program.sh"
write_jobs 10000000
# they wait for what is to happen, and take no processor from others meanwhile
sed -i 's/checkpoint: .*/checkpoint: {every: 10000000 steps, keep: 2}\neval: {every: 0}/
	$a workers: {pace: 3 ms}' mlp.yaml
workers_of()
{
	heddle status "$1" --json 2>/dev/null | grep -o '"workers":\[.*' | grep -o '"pid":[1-9][0-9]*' |
		cut -d: -f2
}

# ---- between two coordinators ----

"$HEDDLE_BIN" run mlp.yaml --out between --workers 2 --devices 1 -s workers.detect='1 s' -q 2>log &
run=$!
reach between 20
workers=$(workers_of between)
kill -STOP $workers                   # no worker takes over before all have asked
kill -9 $run
wait $run 2>/dev/null
heddle status between --json >status.out 2>status.err & status=$!
heddle scale between 1 >scale.out 2>scale.err & scale=$!
waiting='between has no coordinator at the moment; waiting for the next one since [0-9]* s'
await grep -q "$waiting, 2 of its workers are there" status.err ||
	failed "no line says what status waits for: $(cat status.out status.err)"
await grep -q 'between has no coordinator at the moment' scale.err ||
	failed "no line says what scale waits for: $(cat scale.out scale.err)"
kill -CONT $workers
wait $status || failed "status between two coordinators ended with $?: $(cat status.err)"
grep -q '"state":"[a-z]*"' status.out || failed "status said: $(cat status.out)"
wait $scale || failed "scale between two coordinators ended with $?: $(cat scale.err)"
grep -q '1 workers asked for' scale.out || failed "scale said: $(cat scale.out)"
expect 0 heddle status between
expect 0 heddle stop between
nobody_of() { ! pgrep -f -- "--join $1" >/dev/null && ! pgrep -f -- "--job $1" >/dev/null; }
await nobody_of between || failed "processes of between stay behind"
passed "status, scale and stop wait for the next coordinator, and say so"

# ---- no coordinator comes ----

"$HEDDLE_BIN" run mlp.yaml --out left --workers 2 --devices 1 -q 2>log &
run=$!
reach left 20
workers=$(workers_of left)
kill -STOP $run
kill -9 $workers
kill -9 $run
wait $run 2>/dev/null
for verb in 'stop left' 'scale left +1'; do
	expect 3 heddle $verb
	says 'no worker of it is left on this machine'
	says 'heddle resume left'
done
passed "without a process left they end with that"

# ---- its folder is shared with another machine ----

elsewhere=00112233445566778899aabbccddeeff      # the boot of a machine that is none here
mkdir -m 700 far
cp left/job.* left/*.ndjson far
echo "conducts 4711 12 node7 $elsewhere" >far/lock
if command -v flock >/dev/null; then
	exec 9<>far/lock
	flock -n -x 9 || failed "far/lock cannot be locked"
	for verb in 'stop far' 'scale far +1'; do
		expect 3 heddle $verb
		says 'its coordinator is on node7: ask for far there'
	done
	expect 0 heddle status far
	says 'mlp  running  step '
	says 'its coordinator is on node7'
	expect 0 heddle status far --json
	grep -q '"state":"running"' out || failed "status of a run of another machine: $(cat out)"
	expect 1 heddle resume far --devices 1
	says 'another process is running it on node7; wait for it or stop it there'
	exec 9>&-
else
	echo "skip: no flock(1): a lock of another machine is not shown"
fi
expect 3 heddle stop far
says 'its last coordinator was on node7: ask there'
expect 0 heddle status far
says 'mlp  unknown  step '
says 'its last coordinator was on node7'
says 'whether it goes on there cannot be seen from this machine'
echo "conducts 4711 12 $(uname -n) $elsewhere" >far/lock       # this machine, before it was started again
expect 0 heddle status far
says 'mlp  died  step '
passed "of a run of another machine it is said where that is"

# ---- runs that ended, and one without workers ----

expect 3 heddle status nowhere
expect 0 heddle run mlp.yaml --out done --devices 1 -q -s job.steps=20
expect 0 heddle status done
says 'mlp  done  step 20/20  loss '
says 'exit code 0'
expect 0 heddle status done --json
grep -q '"state":"done".*"exit":0,.*"step":20,"steps":20,.*"workers":\[\]' out ||
	failed "status of a run that is done: $(cat out)"
expect 0 heddle top done
says 'mlp  done'
expect 0 heddle status left
says 'mlp  died  step '
"$HEDDLE_BIN" resume left --workers 1 --devices 1 -q 2>log &
resumed=$!
running() { heddle status left --json 2>/dev/null | grep -q '"state":"running"'; }
await running || failed "left does not go on: $(cat log)"
expect 0 heddle stop left
status=0
wait $resumed || status=$?
same $status 75 "exit code of a resumed run that was stopped"
expect 0 heddle status left
says 'mlp  stopped  step '
says 'exit code 75  somebody asked it to stop'
for how in 'stop 75' 'stop --now 75' 'kill 137'; do
	"$HEDDLE_BIN" run mlp.yaml --out "alone" --devices 1 -q -s workers.detect='1 s' 2>log &
	run=$!
	going()
	{
		heddle status alone --json 2>/dev/null |
			grep -q "\"state\":\"running\".*\"pid\":$run,\"step\":[1-9]"
	}
	await going || failed "status of a run in one process: $(heddle status alone --json 2>&1)"
	expect 0 heddle status alone
	says 'in one process, without workers'
	expect 3 heddle scale alone 2
	says 'was started without --workers'
	expect 2 heddle stop alone --worker 1
	case $how in
	kill*) kill -9 $run ;;
	*) expect 0 heddle ${how% *} alone ;;
	esac
	status=0
	wait $run || status=$?
	same $status "${how##* }" "exit code after $how"
	expect 0 heddle status alone
	case $how in
	stop*)                          # --now may come just when a step ends: then that one was the last
		says 'mlp  stopped'
		says 'exit code 75'
		grep -q 'stopped at step [0-9]' out || {
			[ "$how" != 'stop 75' ] && grep -q 'stopped at once, without a checkpoint' out
		} ||
			failed "how it stopped after $how: $(cat out)"
		;;
	*) says 'mlp  died'; says 'did not say why' ;;
	esac
	rm -rf alone
done
passed "status says how a run ended, and of one without workers where it is; stop ends that, too"

# ---- while it evaluates ----

sed 's/count: 90/count: 60000/; s/eval: .*/eval: {every: 1}/' mlp.yaml >judged.yaml
grep -q 'eval: {every: 1}' judged.yaml || failed "no job that evaluates"
evaluates() { heddle status "$1" --json 2>/dev/null | grep -q '"state":"evaluating"'; }
for workers in 0 2; do
	"$HEDDLE_BIN" run judged.yaml --out judged$workers --devices 1 \
		-q $([ $workers = 0 ] || echo --workers $workers) 2>log &
	run=$!
	await evaluates judged$workers ||
		failed \
		"status never says that judged$workers evaluates: $(heddle status judged$workers) $(cat log)"
	expect 0 heddle stop judged$workers
	wait $run
	! grep -q '"kind":"evaluating"' judged$workers/events.ndjson || failed "that it evaluates is an event"
done
passed "status says that a run evaluates"

# ---- sockets of the dead ----

"$HEDDLE_BIN" run mlp.yaml --out swept --workers 2 --devices 1 -q -s workers.detect='1 s' 2>log &
run=$!
reach swept 20
dead=$(workers_of swept | tail -n 1)
kill -9 "$dead"
replaced() { [ "$(workers_of swept | grep -cv "^$dead\$")" -ge 2 ]; }
await replaced || failed "no worker came for the one that died: $(workers_of swept)"
gone_is() { [ -z "$(ls swept | grep "^w$1-.*sock\$")" ]; }
ls swept | grep -q "^w$(workers_of swept | head -n 1)-[0-9a-f]*\.sock\$" ||
	failed "a worker's socket has another name: $(ls swept)"
await gone_is "$dead" || failed "the socket of a dead worker stays: $(ls swept)"
kill -9 $(workers_of swept | tail -n 1)
expect 0 heddle stop swept
wait $run
same "$(ls swept | grep -c 'sock$')" 0 "sockets of a run that ended"
passed "sockets of workers that died are removed"

# ---- workers that live and are given up ----

has_failpoints || exit 0         # what follows is shown by builds that have them
"$HEDDLE_BIN" run mlp.yaml --out busy --workers 2 --devices 1 -s workers.detect='500 ms' 2>log &
run=$!
reach busy 20
mkdir -p -m 700 busy/chaos
# a thread that does not get to run: for the others it is gone
echo seal.before:delay=600000 >busy/chaos/any
given_up() { grep -q '"kind":"given_up"' busy/events.ndjson; }
await given_up || failed "no event says that a worker lives which was given up"
expect 0 heddle status busy
says 'workers were given up for lost and lived: this machine is busier than workers.detect (500 ms) '
expect 0 heddle status busy --json
[ "$(number given_up)" -ge 1 ] || failed "status counts none: $(cat out)"
expect 0 heddle stop busy
wait $run
grep -q '!! [0-9]* workers were given up for lost and lived' log ||
	failed "the summary does not count them: $(cat log)"
passed "workers that are given up and live are counted, with what to do"

# ---- at once, in the middle of a step ----

HD_FAIL=step.commit:delay=600000@3 "$HEDDLE_BIN" run mlp.yaml --out stuck --devices 1 -q 2>log &
run=$!
in_third()
{
	heddle status stuck --json 2>/dev/null | grep -q "\"state\":\"running\".*\"pid\":$run,\"step\":2,"
}
await in_third || failed "it does not come to its third step: $(heddle status stuck --json 2>&1)"
expect 0 heddle stop stuck --now
status=0
wait $run || status=$?
same $status 75 "exit code of a run that was stopped in the middle of a step"
expect 0 heddle status stuck
says 'mlp  stopped  step 2/'
says 'exit code 75  stopped at once, without a checkpoint'
expect 0 heddle status stuck --json
grep -q '"state":"stopped".*"exit":75,' out || failed "status of a run that was stopped at once: $(cat out)"
passed "a run in one process that is stopped in the middle of a step says so"
