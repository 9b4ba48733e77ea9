#!/bin/bash
# A run whose folder is removed or moved ends after the step at hand: nothing could reach it any more. What it
# had is in a checkpoint where the folder was, and a folder that was moved is resumed where it is.
. "$(dirname "$0")/program.sh"
cat >job.yaml <<END
job: {name: gone, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 8, 8], hidden: [16], classes: 10}}
data: {kind: synthetic, count: 90}
batch: {global: 12, virtual_nodes: 6}
eval: {every: 0}
checkpoint: {every: 20 steps, keep: 3}
workers: {pace: 20 ms, detect: 2 s}
END
# RUN WORD: processes that still run it
ours() { pgrep -f "heddle: .* of $work/$1( |$)" || pgrep -f "run job.yaml --out $work/$1( |$)"; }
ended() { ! kill -0 $run 2>/dev/null; }
none_left() { ! ours $1 >/dev/null; }

for workers in "" "--workers 2"; do
	name=alone
	[ -z "$workers" ] || name=team
	"$HEDDLE_BIN" run job.yaml --out "$work/$name" $workers 2>log &
	run=$!
	reach $name 30
	mv $name elsewhere
	await ended
	status=0
	wait $run || status=$?
	same $status 3 "exit code of a run whose folder was moved ($name)"
	grep -q "its folder $work/$name was removed or moved" log || failed "not said: $(tail -n 3 log)"
	await none_left $name
	last=$(ls $name/ckpt | sort | tail -n 1)
	expect 0 heddle ckpt verify $name/ckpt/$last
	rm -r $name
	step=$(ls elsewhere/ckpt | sort | tail -n 1)
	expect 0 heddle resume elsewhere --devices 1 --steps $((10#${step#step-} + 7)) -q
	train run job.yaml --out twin --devices 1 --steps $((10#${step#step-} + 7))
	same "$(heddle ckpt digest elsewhere)" "$digest" "moved and resumed ($name)"
	rm -r elsewhere twin
	passed "$name: a folder that is moved ends the run, and is resumed where it is"
done

# as a user removes it, with nothing left to ask; others may begin a run under its name at once
"$HEDDLE_BIN" run job.yaml --out "$work/team" --workers 2 2>log &
run=$!
reach team 30
rm -rf team
await ended
status=0
wait $run || status=$?
same $status 3 "exit code of a run whose folder was removed"
await none_left team
expect 0 heddle ckpt verify team/ckpt/$(ls team/ckpt | sort | tail -n 1)
passed "removed: no process is left, and its last state lies where it was"
