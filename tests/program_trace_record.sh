#!/bin/bash
# What the processes of a run record: every lane, both ends of a transfer, the clock of the coordinator; and
# what is left of a worker that is killed. Read by tests/trace_read.py, which shares no code with the writer.
. "$(dirname "$0")/program.sh"
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
read_trace() { python3 "$SOURCE_DIR/tests/trace_read.py" "$@"; }

cat >job.yaml <<END
job: {name: recorded, seed: 3, steps: 120}
model: {use: "builtin:mlp", args: {input: [1, 8, 8], hidden: [32, 24], classes: 4}}
data: {kind: synthetic, count: 100}
batch: {global: 48, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 60 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 500 ms, pace: 4 ms}
END
expect 0 heddle run job.yaml --out alone --devices 1 --json -q
first=$(number digest)

# a clock of its own for each worker: 3 ms off, 6 ms, 9 ms; of a build without failpoints none is
has_failpoints && export HD_TRACE_CLOCK=3000000,0
# none but the killed one is given up, however busy the machine: its closed links are seen before 20 s
heddle run job.yaml --out run --workers 3 --devices 2 --json -q -s workers.detect=20s >end 2>&1 &
run=$!
reach run 40
killed=$(heddle status run --json | grep -o '"pid":[0-9]*' | cut -d: -f2 | tail -n +2 | grep -vxm 1 0)
kill -9 "$killed"
wait $run || failed "the run did not end: $(cat end)"
unset HD_TRACE_CLOCK
cp end out
same "$(number digest)" "$first" "with a worker killed, recorded by a clock of its own"
passed "bits as without workers"

expect 0 read_trace check run/flight/*.hdfr*
python3 - out <<'P' || failed "$(cat out)"
import json, sys
said = json.load(open(sys.argv[1]))
seen = said["seen"]
kinds = "step_begin step_end op send recv read wait epoch clock mark".split()
missing = [k for k in kinds if not seen.get(k)]
assert not missing, missing
assert said["paired"] > 200, said
P
passed "every lane has its events; devices' are nested, and both ends say the same of a transfer"

# the file of the killed process: it ran, its last step is one of those around the kill
for file in run/flight/*.hdfr*; do
	read_trace events "$file" >events
	grep -q "\"pid\": $killed," events || continue
	grep -q '"state": 0,' events || failed "$file does not say that it ran"
	grep '"step_begin"' events | tail -n 1 | grep -o '"arg": [0-9]*' | cut -d' ' -f2 >last
	[ "$(cat last)" -ge 39 ] && [ "$(cat last)" -lt 120 ] || failed "its last step is $(cat last)"
	grep -q '"kind": "send"' events || failed "$file has no transfer"
	found=$file
done
[ -n "${found:-}" ] || failed "no file of the killed process"
expect 0 read_trace events run/flight/coordinator.hdfr
says '"name": "lost"'
says '"name": "commit"'
passed "what a killed worker did last is in its file, and the coordinator's decisions in its own"

# a full trace of five steps of a run that goes on, and one of all steps: the same bits
heddle run job.yaml --out window --workers 2 --devices 2 --json -q -s 'workers.detect=60 s' >end 2>&1 &
run=$!
reach window 20
# one of them is held, so that the five steps do not end before the next command asks
held=$(grep -o 'pid:[0-9]*' window/events.ndjson | head -n 1)
kill -STOP "${held#pid:}"
expect 0 heddle trace record window --steps 5 --json
first_traced=$(number first)
expect 2 heddle trace record window --steps 5
says "are being recorded"
kill -CONT "${held#pid:}"
expect 0 heddle trace dump window
wait $run || failed "the run did not end: $(cat end)"
cp end out
same "$(number digest)" "$first" "with five steps traced"
for file in window/trace/{0,1}.hdt; do
	read_trace events "$file" >events
	grep '"step_begin"' events | grep -o '"arg": [0-9]*' | cut -d' ' -f2 | tr '\n' ' ' >out
	same "$(cat out)" "$(seq -s ' ' "$first_traced" $((first_traced + 4))) " "steps of $file"
done
expect 0 read_trace check window/trace/*.hdt
says '"alone": 0'
expect 0 read_trace check window/flight/snapshots/*.hdfr
says '"step_begin"'
expect 0 heddle run job.yaml --out all --devices 2 --trace --json -q
same "$(number digest)" "$first" "with all steps traced"
read_trace events all/trace/0.hdt | grep -c '"step_end"' >out
same "$(cat out)" 120 "traced steps"
passed "a trace of some steps has those, of all processes; of all steps all; bits are equal"

# a run's folder that is as good as on another machine; and a run that records nothing
if has_failpoints; then
	expect 0 env HD_TRACE_FAR=1 XDG_RUNTIME_DIR="$work/own" "$HEDDLE_BIN" run job.yaml --out far \
		--steps 20 --devices 1 -q
	grep -q "flight files are in $work/own/heddle/flight-" far/events.ndjson ||
		failed "no event says where"
	[ ! -e far/flight/0.hdfr ] || failed "far/flight has a recording"
	expect 0 read_trace check own/heddle/flight-*/0.hdfr
fi
expect 0 heddle run job.yaml --out none --steps 20 --devices 1 -q -s trace.flight_slots=0
[ -z "$(ls none/flight)" ] || failed "none/flight has a recording"
passed "a recording lies where it is sure, or not at all"

if has_failpoints; then
	# of each that ran a step: where one came in another's place that lies in *.hdfr.1
	expect 0 read_trace offset 3000000 run/flight/*.hdfr*
	[ "$(cut -d' ' -f2 out)" -ge 4 ] || failed "clocks of three workers and the coordinator: $(cat out)"
	says offset
	passed "the probes bound each clock around what it is off"
fi
