#!/bin/bash
# Coordinators and workers that die when it matters: whoever follows goes on with what was decided, and says
# how it ended.
. "$(dirname "$0")/program.sh"
needs_failpoints
cat >endless.yaml <<END
job: {name: endless, seed: 3, steps: 10000000}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 10000000 steps, keep: 2}
eval: {every: 0}
workers: {pace: 3 ms}             # they wait for what is to happen, and compute no more than they must
END
# of workers
pids() { heddle status "$1" --json 2>/dev/null | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2; }
saved() { ls "$1/ckpt" | tail -n 1 | cut -d- -f2; }

# Its fourth record is that of the stop; no other process knows it when it dies. The worker waits for another
# coordinator for 10 s.
HD_FAIL=store.after:kill@4 "$HEDDLE_BIN" run endless.yaml --out halt --workers 1 --devices 1 \
	-s workers.detect='5 s' -q 2>log &
run=$!
reach halt 3
"$HEDDLE_BIN" stop halt >out 2>err &        # its own process: that of a function would leave it behind
asks=$!
status=0
wait $run || status=$?
kill $asks                        # it would ask the next one again
same $status 137 "exit code of a coordinator that dies as it is asked to stop"
expect 75 heddle serve --job halt -q
[ "$(saved halt)" ] || failed "a stopped run has no checkpoint"
passed "a run that was asked to stop is no success when another coordinator ends it"

# ---- a coordinator that dies before anybody has joined ----

# Of a start, of a resume, and when all members had died: it is made to die when it gives the first number,
# once.
doomed() { mkdir -p -m 700 begin begin/chaos && echo co.admit:kill >begin/chaos/any; }
struck() { ls begin/chaos/hit.* >/dev/null 2>&1; }
doomed
"$HEDDLE_BIN" run endless.yaml --out begin --workers 2 --devices 1 -s workers.detect='500 ms' -q 2>log
same $? 137 "exit code of a coordinator that dies as the first worker joins"
reach begin 3
heddle stop begin >out 2>err
await not answers_now begin || failed "the run does not stop"
at=$((10#$(saved begin)))
[ "$at" -ge 3 ] || failed "no checkpoint after a start that was taken over"
passed "a start goes on whose coordinator died before the first worker had joined"
await "$HEDDLE_BIN" ckpt digest begin >out 2>err
doomed
# the coordinator that was asked to stop may hold the folder a moment longer
begins() { "$HEDDLE_BIN" resume begin --workers 2 --devices 1 -q 2>log; status=$?; [ $status != 2 ]; }
await begins
same $status 137 "exit code of a coordinator that dies as the first worker joins again"
reach begin $((at + 3))
same "$(grep -c '"step":0,' begin/metrics.ndjson)" 1 "times that the run began at step 0"
passed "so does a resume"
rm begin/chaos/hit.*
doomed
kill -9 $(pids begin)
await struck || failed "the coordinator did not die"
reach begin $((at + 6))
grep -q '"kind":"restore"' begin/events.ndjson || failed "no event says that the run begins from disk"
same "$(grep -c '"step":0,' begin/metrics.ndjson)" 1 "times that the run began at step 0"
expect 0 heddle stop begin
passed "so does a run whose workers have all died"

# The only member dies before anything was saved, and a joiner has some of its state: it begins from step 0,
# in its process
wide=(-s 'model.args.hidden=[900, 900]' -s checkpoint.every='1 h')
mkdir -p -m 700 zero zero/chaos
echo teach.piece:kill@2 >zero/chaos/any
"$HEDDLE_BIN" run endless.yaml --out zero --workers 1 --devices 1 -s workers.pace='100 ms' "${wide[@]}" \
	-q 2>log &
run=$!
reach zero 2
expect 0 heddle scale zero 2
died() { ls zero/chaos/hit.* >/dev/null 2>&1; }
await died || failed "no member died as it sent its state"
# whether it had taken any of that state, and so joins again as a new worker, or had not, is a matter of luck
joiner=$(grep '"kind":"join"' zero/events.ndjson | grep -o 'pid:[0-9]*' | sed -n 2p | cut -d: -f2)
await grep -q '"kind":"restore"' zero/events.ndjson || failed "the run does not begin from disk"
reach zero $(($(wc -l <zero/metrics.ndjson) + 3))
pids zero | grep -qx "$joiner" || failed "process $joiner is not in the run any more: $(pids zero)"
stops_with_bits_of_one zero endless.yaml "a joiner whose source died" "${wide[@]}"
passed "a joiner whose source dies before anything was saved begins from step 0"

# ---- members without a coordinator save a state, and die ----

# They wait half a minute for another coordinator, and go on meanwhile.
"$HEDDLE_BIN" run endless.yaml --out alone --workers 2 --devices 1 -s workers.detect='15 s' \
	-s 'checkpoint.every=100 steps' -q 2>log &
run=$!
reach alone 30
members=$(pids alone)
kill -9 $run
wait $run 2>/dev/null
# A state of a step that it had a line of loses nothing: it may have been on its way to the disk when it died.
# A line of step N is in the state of N + 1 steps.
at=$(grep -o '"step":[0-9]*' alone/metrics.ndjson | tail -n 1 | cut -d: -f2)
further() { [ $((10#0$(saved alone))) -gt $((at + 1)) ]; }
await further || failed "members save nothing"
kill -9 $members
# a new coordinator awaits the calls of the dead for four times as long as silence may last
expect 0 heddle resume alone --workers 2 --devices 1 -s workers.detect='1 s' -q \
	--steps $((10#$(saved alone) + 50))
steps=$((10#$(saved alone)))
lost=$(grep -o '"text":"[0-9]* steps have no line' alone/events.ndjson | tr -dc '0-9\n' | paste -sd+)
same "$(($(grep -o '"step":[0-9]*' alone/metrics.ndjson | sort -u | wc -l) + ${lost:-0}))" "$steps" \
	"steps with a line, and steps reported to have none"
grep -q 'the members with their records are gone' alone/events.ndjson || failed "no event says why"
passed "steps whose records died with all copies are reported"

# ---- a coordinator that is asked twice ----

# One member stands still, so that the step at hand does not end between the two.
"$HEDDLE_BIN" run endless.yaml --out twice --workers 2 --devices 1 -s workers.detect='1 s' -q 2>log &
run=$!
reach twice 3
members=$(pids twice)
kill -STOP "${members%%[!0-9]*}"
kill -INT $run
kill -TERM $run
status=0
wait $run || status=$?
same $status 75 "exit code after a second signal"
kill -CONT "${members%%[!0-9]*}"
lives() { local pid; for pid in $members; do kill -0 "$pid" 2>/dev/null && return; done; return 1; }
await not lives || failed "members of a run that was stopped at once train on"
expect 0 heddle status twice
grep -q 'stopped at once, without a checkpoint' out || failed "another state: $(cat out)"
grep -q 'twice: stopped at step [0-9]*: `heddle resume twice` goes on' twice/log/hand-0.log ||
	failed "a member does not say why it leaves: $(cat twice/log/hand-0.log)"
# a worker that the run had started, and that begins only now, goes on with it as little
expect 11 "$HEDDLE_BIN" worker --join twice --going --devices 1 -q
says 'twice: stopped at step'
# so does a coordinator that a worker ordered before the end, and that holds the folder only now
expect 1 "$HEDDLE_BIN" serve --job twice --going -q
says 'by another coordinator: nothing is left to do'
passed "a run that is asked a second time is over, and no member takes it over"

# ---- another number of workers before anybody has joined ----

asked() { heddle status early --json 2>/dev/null | grep -o '"asked":[0-9]*' | cut -d: -f2; }
scaled() { heddle scale early 1 >out 2>err; }
HD_FAIL='wire.connect:delay=1500@1' "$HEDDLE_BIN" run endless.yaml --out early --workers 3 --devices 1 \
	-s workers.detect='20 s' -q 2>log &
await scaled || failed "no coordinator takes the number: $(cat err)"
reach early 3
same "$(asked)" 1 "workers that are asked for, of a run that was asked so while they started"
# those that were started and are not wanted stand in for no worker that dies later: else no worker would come
# for ten minutes
kill -9 $(pids early)
restored() { grep -q '"kind":"restore"' early/events.ndjson; }
await restored || failed "the run does not begin from disk"
reach early $(($(step early) + 3))
expect 0 heddle stop early
wait $!
passed "a number that is asked for while workers start holds"

# ---- workers that fail alike ----

rows()
{
	awk -v other="$1" 'BEGIN {
		print "a,b,c,y"
		for (i = 0; i < 200; i++)
			printf "%d,%d,%d,%d\n", i * 37 % 101, (i + other) % 97, i % 89, i % 3
	}'
}
rows 0 >rows.csv
cat >csv.yaml <<END
job: {name: csv, seed: 3, steps: 10000000}
model: {use: "builtin:mlp", args: {input: [3], hidden: [16], classes: 3}}
data: {kind: csv, path: rows.csv}
batch: {global: 24, virtual_nodes: 4}
eval: {every: 0}
workers: {detect: 60 s, pace: 3 ms}
END
# what is looked for are ends of processes, which are seen at once: a worker that a busy machine gives no time
# is none of them
"$HEDDLE_BIN" run csv.yaml --out alike --workers 2 --devices 1 -q 2>log &
run=$!
reach alike 3
rows 1 >other.csv && mv other.csv rows.csv
# one of two: those that should take its place are refused one after the other, and the run goes on
kill -9 "$(pids alike | tail -n 1)"
await grep -qs '"kind":"failing"' alike/events.ndjson ||
	failed "no event says that workers fail: $(tail -n 3 alike/events.ndjson)"
same "$(heddle status alike --json | grep -o '"members":[0-9]*')" '"members":1' \
	"members of a run that goes on"
reach alike $(($(step alike) + 3))
# the other one: no worker is left, and none that could begin
kill -9 "$(pids alike | head -n 1)"
status=0
wait $run || status=$?
same $status "$(grep -o 'exit code [0-9]*' log | tail -n 1 | grep -o '[0-9]*$')" \
	"exit code of a run and of the workers that it could not start"
why="workers in a row ended with exit code $status before they took part"
grep -q "$why; alike/log/hand-[0-9]*.log ends with: .*rows.csv" log ||
	failed "the log does not say why: $(cat log)"
same "$(grep -c '"kind":"failing"' alike/events.ndjson)" 2 "rows of failures in events.ndjson"
passed "a run whose new workers are all refused says why, and ends as they do when no worker is left"

# A worker that missed the end orders a coordinator: nothing is done again, and the worker leaves.
sed 's/steps: 10000000}/steps: 6}/; s/name: endless/name: short/' endless.yaml >short.yaml
expect 0 heddle run short.yaml --out short --workers 2 -q
cp short/events.ndjson events.before
expect 1 heddle serve --job short -q
says 'short: done, 6 of 6 steps: there is nothing to coordinate'
expect 0 cmp events.before short/events.ndjson
expect 0 heddle status short
grep -q 'short  done  step 6/6' out || failed "another state than done: $(cat out)"
status=0
heddle worker --join short -s workers.detect=100ms -q >out 2>err || status=$?
same $status 11 "exit code of a worker that comes after the end"
expect 0 cmp events.before short/events.ndjson
# one that has what it was to reach is done before its last step; one that was given fewer steps is not
sed 's/eval: {every: 0}/eval: {every: 3, target: 1000}/' endless.yaml >goal.yaml
expect 0 heddle run goal.yaml --out goal --workers 2 -q
cp goal/events.ndjson events.before
expect 1 heddle serve --job goal -q
says 'goal: done, its eval.target was reached after 3 of 10000000 steps: there is nothing to coordinate'
status=0
heddle worker --join goal -s workers.detect=100ms -q >out 2>err || status=$?
same $status 11 "exit code of a worker that comes after the target was reached"
expect 0 cmp events.before goal/events.ndjson
sed 's/target: 1000/target: 0/' goal.yaml >far.yaml
expect 0 heddle run far.yaml --out far --workers 2 --steps 4 -q
cp far/events.ndjson events.before
expect 11 heddle worker --join far -s workers.detect=100ms -q
says 'far: ended at step 4: `heddle resume far` goes on'
expect 1 heddle serve --job far --going -q
says 'far: done at step 4 by another coordinator: nothing is left to do'
expect 0 cmp events.before far/events.ndjson
expect 0 heddle serve --job far --steps 8 -q
same "$(saved far)" 000000008 "steps of a run that was given fewer, and then more"
# begin was stopped in order
cp begin/events.ndjson events.before
expect 11 heddle worker --join begin -s workers.detect=100ms -q
says 'begin: stopped at step'
says '`heddle resume begin` goes on'
expect 0 cmp events.before begin/events.ndjson
passed "a run that is done is not driven again, nor one that ended with fewer steps or was stopped"

# ---- under a scheduler ----

command -v curl >/dev/null || { echo "skip: no curl, which speaks to the scheduler's socket"; exit 77; }
ask() { curl -sS --max-time 60 --unix-socket D/heddle.sock "http://localhost$1" "${@:2}" >out 2>err; }
post() { ask "$1" -H 'Content-Type: application/json' --data-binary "$2"; }
text() { sed 's/\\/\\\\/g; s/"/\\"/g; s/$/\\n/' "$1" | tr -d '\n'; }
serve()
{
	HD_FAIL=$1 "$HEDDLE_BIN" serve --dir D --pool a:1 --policy fifo --round 1 --drain -q >>serve.out \
		2>>serve.err & pid=$!
}
is_up() { ask /v1/status && [ -s out ]; }
is_in() { ask /v1/jobs/1 && [ "$(number state)" = "$1" ]; }
has_begun() { is_in running && [ "$(number step)" -ge 1 ] && [ "$(number leases)" -ge "$1" ]; } 2>/dev/null

# Asked to drain, the coordinator dies with the record of the stop: the job goes on later, from where it was
# stopped.
serve store.after:kill@4
await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
post /v1/jobs "{\"job\":\"$(text endless.yaml)\",\"folder\":\"$work\",\"set\":[\"workers.detect=3 s\"]}"
await has_begun 1 || failed "the job does not begin: $(cat out)"
kill "$pid"
wait "$pid"
serve ''
await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
is_in done && failed "a job that was drained is done at step $(number step) of $(number steps)"
await has_begun 2 || failed "a job that was drained does not go on: $(cat out)"
ask '/v1/events/past?limit=1000'
grep -q '"kind":"left"' out || failed "no event says that it left: $(cat out)"
post /v1/jobs/1/cancel '{}'
await is_in cancelled || failed "the job is not cancelled: $(cat out)"
kill "$pid"
wait "$pid"
passed "a job that is drained while its coordinator dies is not done"
