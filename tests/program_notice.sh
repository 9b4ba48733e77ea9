#!/bin/bash
# Notices that a machine will be taken away, by metadata services that are played here: the worker hands over
# and leaves, nothing is computed twice, and the bits are those of one device.
. "$(dirname "$0")/program.sh"
cat >long.yaml <<END
job: {name: long, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 500 ms, pace: 4 ms}
END
export HEDDLE_NOTICE_FILE=$work/notice.json

expect 2 heddle chaos spot
says '--script FILE'
: >script
"$HEDDLE_BIN" chaos spot --script script >requests 2>err.spot &
spot=$!
await test -s requests || failed "no service: $(cat err.spot)"
base=$(head -n 1 requests)
play() { echo "$1" >>script; }
members() { heddle status "$1" --json 2>/dev/null | grep -o '"members":[0-9]*' | head -n 1 | cut -d: -f2; }
has_members() { [ "$(members "$1" || true)" = "$2" ]; }
pids() { heddle status "$1" --json 2>/dev/null | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2; }
event() { grep -q "\"kind\":\"$2\".*$3" "$1/events.ndjson"; }

# one of two workers has notice of EC2: it leaves with 0, and none is started on a machine that goes; none is
# given up because the machine is busy
"$HEDDLE_BIN" run long.yaml --out ec2 --workers 2 --devices 1 -s workers.detect=20s \
	-s elastic.notice.source=ec2 \
	-s elastic.notice.every=100ms -s "elastic.notice.base=$base/w{pid}" -q 2>log &
run=$!
await has_members ec2 2 || failed "two workers did not meet"
reach ec2 10
first=$(pids ec2 | head -n 1) last=$(pids ec2 | tail -n 1)
play "{\"node\":\"w$first\",\"do\":\"rebalance\"}"
await event ec2 notice '"source":"ec2-rebalance","notice":"risk"' || failed "no event of the risk"
expect 0 heddle status ec2
says "has notice by ec2-rebalance: rebalance recommendation (a risk)"
play "{\"node\":\"w$last\",\"do\":\"notice\",\"cloud\":\"ec2\",\"lead\":120}"
await has_members ec2 1 || failed "the worker did not leave"
event ec2 notice '"source":"ec2","notice":"preempt","lead_ms":1[12].*"deadline":"20.*"text":"terminate"' ||
	failed "no event of the notice"
event ec2 leave '"text":"ec2: terminate"' || failed "it did not say why it leaves"
await event ec2 process_ended "process $last ended with exit code 0" || failed "it did not end with 0"
event ec2 held '' || failed "a worker may be started on a machine that goes"
reach ec2 $(($(step ec2) + 20))
has_members ec2 1 || failed "a worker came in its place"
stops_with_bits_of_one ec2 long.yaml "a run whose worker had notice"
! grep -o '"redone":[0-9]*' ec2/metrics.ndjson | grep -qv ':0$' || failed "work was done again"
grep -q '"method":"PUT","target":"[^"]*/latest/api/token","status":200' requests ||
	failed "no token was asked for"
passed "a notice of EC2: the worker leaves with 0, nothing is done again, the bits are those of one device"

# far ahead, by hand: it is written down and not obeyed yet, and can be taken back
"$HEDDLE_BIN" run long.yaml --out far --workers 1 --devices 1 -q 2>log &
run=$!
reach far 5
expect 0 heddle stop --local --notice 10min
await event far notice '"source":"hand","notice":"preempt","lead_ms":59' || failed "no event of the notice"
expect 0 heddle stop --local --notice none
await event far notice '"source":"hand","notice":"withdrawn"' || failed "no event of the withdrawal"
has_members far 1 || failed "a worker left for a notice of ten minutes"
# now the last worker hears that all of it goes
expect 0 heddle stop --local
status=0
wait $run || status=$?
same $status 75 "exit code of a run whose workers all had notice"
expect 0 heddle ckpt verify far
expect 0 heddle stop --local --notice none
passed "a notice far ahead waits and may be withdrawn; where all workers go the run saves and stops"

# by hand, and in one process: a checkpoint, and exit 75
"$HEDDLE_BIN" run long.yaml --out alone --devices 1 -q 2>log &
run=$!
await test -s alone/metrics.ndjson || failed "alone did not begin"
expect 2 heddle stop
says 'or --local'
expect 2 heddle stop alone --local
says 'leave out RUN'
expect 2 heddle stop --local --notice soon
says '--notice soon'
expect 0 heddle stop --local --notice 20s
status=0
wait $run || status=$?
same $status 75 "exit code of a run in one process that had notice"
event alone notice '"source":"hand","notice":"preempt"' || failed "no event of the notice by hand"
expect 0 heddle ckpt verify alone
expect 0 heddle stop --local --notice none
grep -q withdrawn "$HEDDLE_NOTICE_FILE" || failed "the notice stands"
passed "heddle stop --local: a run in one process saves and ends"

kill $spot
wait $spot || failed "the services ended with $?: $(cat err.spot)"
