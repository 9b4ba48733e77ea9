#!/bin/bash
# heddle trace analyze, diff, whatif: what a recording says of a run's time; questions that make no sense are
# refused.
. "$(dirname "$0")/program.sh"
write_jobs 8
train run mlp.yaml --out mlp --devices 2
expect 0 heddle trace analyze mlp --json
json_ok
says '"stragglers":[]'
says '"unaligned":[]'
says '"replay_error":0'
python3 - <<'END' || failed "parts of a process do not add up to its steps"
import json
s = json.load(open("out"))
assert s["steps"]["last"] - s["steps"]["first"] == 7, s["steps"]
for b in s["breakdown"]:
    assert sum(b["parts_ns"].values()) == b["m_ns"] > 0, b
    assert b["exposed_ns"] + b["hidden_ns"] == b["transfer_ns"], b
assert abs(sum(p["share"] for p in s["critical_path"]) - 1) < 1e-9, s["critical_path"]
assert sum(sum(b["blame_ns"].values()) for b in s["breakdown"]) == sum(b["m_ns"] for b in s["breakdown"])
END
expect 0 heddle trace analyze mlp --steps 3
says 'critical path of 3 steps'
passed "the parts of a run's time add up"

expect 0 heddle trace diff mlp mlp
says 'no median changed'
expect 0 heddle trace diff mlp mlp --json
says '{"changes":[]}'
expect 0 heddle trace whatif mlp --data 1 --json
json_ok
says '"gain":0'
expect 0 heddle trace whatif mlp --data 0
says 'what if'
passed "a recording is equal to itself, and takes as long as it did"

expect 2 heddle trace whatif mlp
says '--worker W=median'
expect 2 heddle trace whatif mlp --worker 0
says 'W=median'
expect 2 heddle trace whatif mlp --worker 7=median
says 'no steps of worker 7'
expect 2 heddle trace whatif mlp --bandwidth 0
says 'a factor'
expect 2 heddle trace analyze mlp --steps 0
expect 3 heddle trace analyze nowhere
expect 0 heddle simulate --schedule gpipe -p 2 -m 4 --trace sim.hdfr
expect 0 heddle trace analyze sim.hdfr
passed "questions without an answer are refused"

expect 2 heddle trace whatif mlp --order odd
says 'auto|fifo'
expect 2 heddle trace whatif mlp/flight/0.hdfr --order fifo
says 'needs the folder of the run'
expect 2 heddle trace whatif mlp --order fifo --data 0
says 'of their own'
refused=$(expect 11 heddle trace whatif mlp --order fifo && cat err)
[[ "$refused" == *'one worker, which sends nothing'* ]] || failed "$refused"
expect 0 heddle run mlp.yaml --out pair --workers 2 --devices 1 -q -s workers.detect=20s -s comm.order=tic
expect 0 heddle trace whatif pair --order fifo --json
json_ok
says '"recorded_ns"'
# the order that it had changes nothing: both replays are one
expect 0 heddle trace whatif pair --order tic --json
says '"gain":0'
sed -i 's/"seed":[0-9]*/"seed":77/' pair/job.resolved.json
expect 2 heddle trace whatif pair --order fifo
says 'are of another job'
passed "another order of transfers is replayed, or refused"

expect 0 heddle run mlp.yaml --out gpipe --workers 2 --devices 1 -q -s workers.detect=20s \
	-s parallel.stages=2 -s parallel.schedule=gpipe
expect 0 heddle trace whatif gpipe --steps 4 --plan "$(ls gpipe/plan/*.plan | tail -n 1)" --json
json_ok
says '"gain":0,"not_recorded":[]'
# whole models at both: their stage is none that ran
cp pair/plan/0001.plan whole.plan
expect 0 heddle trace whatif gpipe --steps 4 --plan whole.plan --json
says '"not_recorded":[{"stage":0}]'
expect 2 heddle trace whatif gpipe --plan pair/plan/0001.plan
says 'pair/plan/0001.plan is of another job'
sed 's/ NORM//' whole.plan >odd.plan
expect 2 heddle trace whatif gpipe --plan odd.plan
says 'the plan cannot run'
expect 2 heddle trace whatif gpipe --plan whole.plan --bandwidth 2
says '--plan goes alone'
expect 3 heddle trace whatif gpipe --plan nowhere.plan
passed "another plan is replayed, or refused"

# Reading holds it back on any machine: the run says so itself, in the words that analyze has of its steps.
if has_failpoints; then
	write_jobs 24
	sed -i 's/every: 1 steps/every: 24 steps/' mlp.yaml
	export HD_FAIL=data.read:delay=4
	expect 0 heddle run mlp.yaml --out alone --devices 2
	grep -q "^held  *[0-9]* % of the devices' time went into waiting for data$" err || failed "$(cat err)"
	expect 0 heddle run mlp.yaml --out team --workers 2 --devices 1 --json -q
	! grep -q 'held  ' err || failed "with -q it says $(cat err)"
	held=$(grep -o '"held_back":"[^"]*"' out | cut -d'"' -f4)
	[ "$held" ] || failed "two workers: $(cat out)"
	grep '"kind":"held_back","step":24,' team/events.ndjson | grep -qF "\"text\":\"$held\"" ||
		failed "no event: $(grep held team/events.ndjson)"
	grep -q held_back team/report.html || failed "the report does not have it"
	expect 0 heddle trace analyze team --json
	says "\"held\":\"$held\""
	expect 0 heddle run mlp.yaml --out short --devices 2 --steps 19 --json -q
	says '"held_back":""'
	expect 0 heddle resume short --devices 2 --json -q
	says '"held_back":""'
	unset HD_FAIL
	passed "a run of 20 steps and more says what held it back"
fi

# One of three workers stands still for a quarter of a second in each step: it is named, and why.
if has_failpoints; then
	cat >three.yaml <<-END
	job: {name: three, seed: 3, steps: 28}
	model: {use: "builtin:mlp", args: {input: [1, 8, 8], hidden: [32, 24], classes: 4}}
	data: {kind: synthetic, count: 100}
	batch: {global: 48, virtual_nodes: 12}
	checkpoint: {every: 28 steps, keep: 2}
	workers: {detect: 20 s}
	END
	HD_FAIL=step.begin:delay=40 heddle run three.yaml --out three --workers 3 --devices 1 -q >end 2>&1 &
	run=$!
	reach three 3
	pid=$(heddle status three --json | grep -o '"pid":[0-9]*' | cut -d: -f2 | grep -vx $run | tail -n 1)
	while kill -0 $run 2>/dev/null && kill -STOP "$pid" 2>/dev/null; do
		read -r -t 0.26 <> <(:)
		kill -CONT "$pid" 2>/dev/null
		read -r -t 0.03 <> <(:)
	done
	wait $run || failed "the run with pauses: $(cat end)"
	expect 0 heddle trace analyze three --json
	grep -q "\"stragglers\":\[{[^]]*\"pid\":$pid,\"cause\":\"paused\"[^]]*}\]" out ||
		failed "pid $pid: $(cat out)"
	passed "a worker that stands still is named"
fi
step()
{
	echo "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#$1\",\"pid\":1,\"tid\":1," \
		"\"ts\":$2,\"dur\":90}"
}
op() { echo "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":1,\"tid\":1,\"ts\":$1,\"dur\":50}"; }
echo "{\"traceEvents\":[$(step 1 100),$(op 110),$(step 9223372036854775000 200),$(op 210)]}" > far.json
expect 0 timeout 20 "$HEDDLE_BIN" trace analyze far.json --steps 9223372036854775807
says 'critical path of 2 steps'
passed "numbers of steps that lie far apart"
