#!/bin/bash
# A terminal that closes: a run stops with a checkpoint, or goes on where that was asked for; workers have no
# terminal.
. "$(dirname "$0")/program.sh"
write_jobs 1000000
sed -i '/^checkpoint: /d' mlp.yaml
cat >>mlp.yaml <<'END'
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
workers: {detect: 500 ms, pace: 2 ms}
END
workers_of()
{
	heddle status "$1" --json 2>/dev/null | grep -o '"workers":\[.*' | grep -o '"pid":[1-9][0-9]*' |
		cut -d: -f2
}
nobody_of() { ! pgrep -f -- "--join $1" >/dev/null; }
session_of() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f4; }
saved() { [ -n "$(ls "$1/ckpt")" ]; }

# a worker that is stopped outlives its coordinator: the system ends stopped processes of a session whose
# leader's group is orphaned
"$HEDDLE_BIN" run mlp.yaml --out hup-halted --workers 2 --devices 1 -q 2>log &
run=$!
reach hup-halted 20
stopped=$(workers_of hup-halted | tail -n 1)
same "$(session_of "$stopped")" "$stopped" "the worker's session and itself"
kill -STOP "$stopped"
kill -9 $run
wait $run 2>/dev/null
kill -0 "$stopped" 2>/dev/null || failed "the stopped worker ended with its coordinator"
await grep -q "^State:.T" "/proc/$stopped/status" || failed "the stopped worker was let go on"
kill -CONT "$stopped"
at=$(($(tail -n 1 hup-halted/metrics.ndjson | grep -o '"step":[0-9]*' | cut -d: -f2) + 100))
reach hup-halted $at                             # whoever took over coordinates
expect 0 heddle stop hup-halted
grep -hq '^link to the coordinator: ' hup-halted/log/hand-*.log ||
	failed "no worker says that its coordinator is gone"
grep -h '^link to' hup-halted/log/hand-*.log | grep -E 'good-bye.*good-bye|2147483647' &&
	failed "a worker says it twice, or calls the coordinator by number"
await nobody_of hup-halted || failed "workers stay behind"
passed "a worker that is stopped outlives its coordinator"

# a stop that comes before any worker has called the coordinator that took over: those that call hear of it
"$HEDDLE_BIN" run mlp.yaml --out hup-early --workers 2 --devices 1 -q 2>log &
run=$!
reach hup-early 20
members=$(workers_of hup-early)
kill -STOP $members
kill -9 $run
wait $run 2>/dev/null
"$HEDDLE_BIN" serve --job hup-early --devices 1 -q 2>log &
run=$!
await answers_now hup-early || failed "no worker took over"
expect 0 heddle scale hup-early 3
says "3 workers asked for"
expect 0 heddle stop hup-early
kill -CONT $members
status=0
wait $run || status=$?
same $status 75 "exit code of a run that was stopped before anybody had called"
# in the store, both; a coordinator that a member ordered may hold the folder for a moment
again() { status=0; "$HEDDLE_BIN" serve --job hup-early --devices 1 -q 2>err || status=$?; [ $status != 2 ]; }
await again
same $status 75 "exit code of a run that was stopped before anybody had called, served again"
await nobody_of hup-early || failed "workers of a run that was stopped go on"
[ "$(ls hup-early/ckpt | wc -l)" -ge 2 ] || failed "the run was stopped without a checkpoint"
passed "a stop that comes before anybody has called is kept"

# the terminal closes
for workers in 0 2; do
	"$HEDDLE_BIN" run mlp.yaml --out hup-closed$workers --devices 1 \
		$([ $workers = 0 ] || echo --workers $workers) 2>log &
	run=$!
	await grep -qs '"step":20,' hup-closed$workers/metrics.ndjson ||
		failed "hup-closed$workers did not come to step 20"
	kill -HUP $run
	status=0
	wait $run || status=$?
	same $status 75 "exit code after SIGHUP"
	saved hup-closed$workers || failed "no checkpoint after SIGHUP"
	grep -q 'step [0-9]*, [0-9.]* MiB' log || failed "no line names the checkpoint: $(cat log)"
	grep '{"' log && failed "a line for users is JSON"
	await nobody_of hup-closed$workers || failed "workers go on after SIGHUP"
done
(trap '' HUP; exec "$HEDDLE_BIN" run mlp.yaml --out nohup --devices 1 -q 2>log) &
run=$!
await grep -qs '"step":20,' nohup/metrics.ndjson
kill -HUP $run
at=$(tail -n 1 nohup/metrics.ndjson | grep -o '"step":[0-9]*' | cut -d: -f2)
await grep -qs "\"step\":$((at + 20))," nohup/metrics.ndjson || failed "under nohup the run ended at SIGHUP"
kill -TERM $run
status=0
wait $run || status=$?
same $status 75 "exit code after SIGTERM"
passed "SIGHUP is a stop with a checkpoint, unless it is ignored"

# --detach
for workers in 0 2; do
	expect 0 heddle run mlp.yaml --out away$workers --devices 1 \
		$([ $workers = 0 ] || echo --workers $workers) --detach
	pid=$(grep -o 'as process [0-9]*' err | tr -dc 0-9)
	says "tail -f away$workers/log/run.log"
	same "$(session_of "$pid")" "$pid" "the detached run's session and itself"
	await grep -qs '"step":20,' away$workers/metrics.ndjson ||
		failed "away$workers did not come to step 20"
	says "heddle stop away$workers"
	expect 0 heddle stop away$workers
	await not kill -0 "$pid" 2>/dev/null || failed "away$workers does not end"
	saved away$workers || failed "away$workers ended without a checkpoint"
done
expect 0 heddle resume away0 --devices 1 --steps $((10#$(ls away0/ckpt | cut -d- -f2) + 5)) --detach --json
json_ok
await not kill -0 "$(number pid)" 2>/dev/null || failed "the resumed run does not end"
expect 3 heddle run mlp.yaml --out never --devices 1 --detach -s model.weights=nowhere.safetensors
says nowhere.safetensors
test ! -e never || failed "a run that never began left its folder"
passed "a run that is detached goes on, and says where to look and how to end it"

# a worker that comes before its run
expect 3 heddle worker --join hup-later --devices 1
expect 2 heddle worker --join hup-later --devices 1 --wait soon
says '--wait soon'
"$HEDDLE_BIN" worker --join hup-later --devices 1 --wait 600s 2>early &
early=$!
await grep -q 'hup-later is not a run directory.*trying for' early ||
	failed "a wait does not say for what: $(cat early)"
"$HEDDLE_BIN" run mlp.yaml --out hup-later --workers 1 --devices 1 -q 2>log &
run=$!
met() { heddle status hup-later --json 2>/dev/null | grep -q "\"pid\":$early,"; }
await met || failed "the worker that waited did not join: $(cat early)"
expect 0 heddle stop hup-later
wait $early || true
wait $run || true
passed "worker --join waits for its run"
