#!/bin/bash
# Terms of a scheduler's jobs, in its processes: held, after others, as tasks of an array, with a limit of
# time.
# The scheduler is killed while all of that waits, and nothing of it is lost. The machine by itself, through
# random events: dispatch_test.c.
. "$(dirname "$0")/program.sh"
command -v curl >/dev/null || { echo "skip: no curl, which speaks to the scheduler's socket"; exit 77; }
dir=$work/D pid=

clear_out()
{
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
	for seat in "$dir"/devices/* "$dir"/runs/*/seat; do
		[ -s "$seat" ] && read -r _ _ holder _ <"$seat" &&
			[ "$(readlink "/proc/$holder/exe")" = "$(readlink -f "$HEDDLE_BIN")" ] &&
				kill -9 "$holder"
	done 2>/dev/null
	true
}
trap 'clear_out; end_jobs 2>/dev/null; rm -rf "$work"' EXIT

ask() { curl -sS --max-time 20 --unix-socket "$dir/heddle.sock" "http://localhost$1" "${@:2}" >out 2>err; }
is_up() { ask /v1/status && [ -s out ]; }
serve()
{
	"$HEDDLE_BIN" serve --dir "$dir" --pool a:2 --policy fifo --round 1 -q "$@" >>serve.out 2>>serve.err &
	pid=$!
	disown
	await is_up || failed "the scheduler does not answer: $(tail -n 3 serve.err)"
}
dead() { ! kill -0 "$pid" 2>/dev/null; }
kill_it()
{
	kill -9 "$pid"
	await dead || failed "process $pid does not end"
}
in_state() { ask "/v1/jobs/$1" && [ "$(number state)" = "$2" ]; }
reaches() { await in_state "$1" "$2" || failed "job $1 is $(number state), not $2: $(cat out)"; }

cat >job.yaml <<END
job: {name: tiny, seed: 3, steps: 40}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [20], classes: 4}}
data: {kind: synthetic, count: 512}
batch: {global: 64, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
END
sed 's/steps: 40/steps: 5000000/; $a workers: {pace: 3 ms}' job.yaml >long.yaml
for seed in 0 2; do
	expect 0 heddle run job.yaml --out alone$seed -q --devices 1 -s job.seed=$seed
done

serve
expect 0 heddle submit long.yaml --dir "$dir" -q                                   # 1
expect 0 heddle submit job.yaml --dir "$dir" -q --hold --name held --expect 10min    # 2
expect 0 heddle submit job.yaml --dir "$dir" -q --array '0,2%1' -s 'job.seed={index}' --name 'task-{index}' \
	--hold                                                                     # 3, 4
same "$(cat out)" 3 "the first task"
expect 0 heddle submit job.yaml --dir "$dir" -q --after 3,held:any                 # 5
expect 0 heddle submit job.yaml --dir "$dir" -q --after 1:fail --time 1h           # 6
expect 0 heddle submit job.yaml --dir "$dir" -q --after 1 --name never             # 7
expect 0 heddle submit job.yaml --dir "$dir" -q --after 7 --name neither           # 8
expect 3 heddle submit job.yaml --dir "$dir" -q --after 99
expect 2 heddle submit job.yaml --dir "$dir" -q --array 0-3 --name 'a b{index}'
[ "$(ls "$dir/runs" | wc -l)" = 8 ] || failed "an order that was refused left a folder: $(ls "$dir/runs")"
reaches 1 running
expect 0 heddle explain 5 --dir "$dir"
says 'DEPENDS'
says 'it runs after 3:ok, and job 3 is not over'
expect 0 heddle explain held --dir "$dir"
says 'HELD'
expect 0 heddle jobs --dir "$dir"
says 'array of 2 tasks: 2 wait'
expect 0 heddle hold 1 --dir "$dir"
reaches 1 queued
ask '/v1/events/past?job=1'
says 'it commits, leaves its devices and waits until it is released'
passed "jobs are held, wait for others, and say so; a job that ran left its devices"

kill_it
serve
for id in 1 2 3 4 5 6 7 8; do in_state $id queued || failed "job $id is $(number state) after a kill"; done
in_state held queued
same "$(number expected_error)" nan "the error of an expectation before its job is done"
expect 0 heddle release held --dir "$dir"
reaches held 'done'
awk -v e="$(number expected_error)" -v t="$(number took_s)" 'BEGIN { e -= t / 600 - 1
	exit !(t > 0 && e < 1e-9 && e > -1e-9) }' || failed "the error of what was expected: $(cat out)"
expect 0 heddle release 4 --tasks --dir "$dir"
says '2 tasks are released'
reaches 5 'done'
for k in 0 2; do
	in_state task-$k 'done' || failed "task $k is $(number state), and job 5 is done"
	same "$(number digest)" "$(heddle ckpt digest alone$k)" "digest of task $k and of its run by hand"
done
expect 0 heddle cancel 1 --dir "$dir"
reaches 6 'done'
reaches 7 cancelled
says 'it was to run after 1:ok, and job 1 ended otherwise'
reaches 8 cancelled
expect 2 heddle submit job.yaml --dir "$dir" -q --after 1
says 'job 1 ended otherwise, so the new one would never run'
expect 2 heddle hold 6 --dir "$dir"
says 'job 6 is done'
passed "a scheduler that was killed knows all of it, and each runs in its turn, with its own bits"

# How long it runs decides nothing but that it runs: at the limit it commits, and is not done.
expect 0 heddle submit long.yaml --dir "$dir" -q --time 1s --expect 2h --name limited
reaches limited timeout
says 'its time limit of 1 s was used up at step'
same "$(number expected_s)" 7200 "what was expected"
run=$(number run) at=$(number step)
[ "$(heddle ckpt ls "$run" | grep -c "$at")" -ge 1 ] ||
	failed "no checkpoint of step $at: $(heddle ckpt ls "$run")"
ask '/v1/events/past?limit=1000'
says 's of running time are left of 1 s'
expect 0 heddle submit job.yaml --dir "$dir" -q --hold -s job.expect=1h
ask "/v1/jobs/$(cat out)"
same "$(number expected_s)" 3600 "what the job's file expects"
kill "$pid"
await dead || failed "the scheduler does not end"
passed "a job at its limit commits and ends"
exit 0
