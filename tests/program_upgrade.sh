#!/bin/bash
# Another program for a run that goes on (heddle upgrade RUN): its coordinator, as the same process, and its
# workers, one at a time; killed in the middle; the bits of one device.
. "$(dirname "$0")/program.sh"
cat >endless.yaml <<END
job: {name: endless, seed: 3, steps: 10000000}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 10000000 steps, keep: 2}
eval: {every: 0}
workers: {pace: 5 ms}             # they wait for what is to happen, and compute no more than they must
END
# the same program as another file: that is what an upgrade goes by
cp "$HEDDLE_BIN" old
new=$(readlink -f "$HEDDLE_BIN")
pids()                            # of members
{
	heddle status "$1" --json 2>/dev/null | grep -o '"state":"member","pid":[1-9][0-9]*' | cut -d: -f3
}
runs() { readlink "/proc/$1/exe"; }
all_new()                         # RUN: its workers
{
	local p n=0
	for p in $(pids "$1"); do
		same "$(runs "$p")" "$new" "what process $p of $1 runs"
		n=$((n + 1))
	done
	[ $n -ge 2 ] || failed "$1 has $n workers"
}

./old run endless.yaml --out run --workers 2 --devices 1 -q 2>log &
run=$!
reach run 5
before=$(pids run)
same "$(runs "$(tail -n 1 <<<"$before")")" "$work/old" "what a worker runs"
expect 0 heddle upgrade run
says ' workers were replaced'     # of a busy machine one may have been lost, and so replaced, before
same "$(runs $run)" "$new" "what the coordinator's process runs"
all_new run
gone() { local p; for p in $before; do [ ! -e "/proc/$p" ] || return 1; done; }
await gone || failed "a worker of the old program is there"
at=$(step run)
reach run $((at + 5))
expect 0 heddle upgrade run --json
says "{\"pid\":$run,\"replaced\":0,\"remote\":0,\"goes_on\":true}"
passed "a run goes on with another program, as the same process, and no process of the old one is left"
stops_with_bits_of_one run endless.yaml "digest after an upgrade and on one device"
same "$(grep -o '"step":[0-9]*' run/metrics.ndjson | sort | uniq -d | wc -l)" 0 \
	"steps that were recorded twice"
passed "$steps steps, with the bits of one device"

# The verb and the coordinator are killed once that is the new program: workers of the old one start their own
# coordinator, and the same command does all of it.
./old run endless.yaml --out killed --workers 2 --devices 1 -s workers.detect='500 ms' -q 2>log &
run=$!
reach killed 5
"$HEDDLE_BIN" upgrade killed >out 2>err &
asks=$!
is_new() { [ "$(runs $run)" = "$new" ]; }
await is_new
kill -9 $asks $run
wait $run $asks 2>/dev/null
at=$(step killed)
reach killed $((${at:-5} + 3))
expect 0 heddle upgrade killed
all_new killed
expect 0 heddle stop killed
await not answers_now killed
await "$HEDDLE_BIN" ckpt digest killed >out 2>err
has_bits_of_one killed endless.yaml "digest after an upgrade that was killed and on one device"
passed "an upgrade that was killed in the middle is done by the next one, with the same bits"

# A job of a scheduler: the scheduler first, since it starts the workers.
served=
trap '[ -z "$served" ] || kill -9 $served; end_jobs 2>/dev/null; rm -rf "$work"' EXIT
is_served() { heddle status --dir D >out 2>err; }
./old serve --dir D --pool a:2 --policy fifo --round 1 -q 2>log &
served=$!
await is_served || failed "the scheduler does not answer: $(cat log)"
expect 0 heddle submit endless.yaml --dir D --scale 2 -q
reach D/runs/1-endless 5
two() { [ "$(pids D/runs/1-endless | wc -l)" = 2 ]; }
await two
expect 2 heddle upgrade D/runs/1-endless
says 'give it this one first'
"$HEDDLE_BIN" serve --replace --dir D --pool a:2 --policy fifo --round 1 --drain -q 2>log &
next=$!
wait $served
served=$next
await is_served || failed "the next scheduler does not answer: $(cat log)"
await two
expect 0 heddle upgrade D/runs/1-endless
all_new D/runs/1-endless
at=$(step D/runs/1-endless)
reach D/runs/1-endless $((at + 3))
kill $served
wait $served
served=
has_bits_of_one D/runs/1-endless endless.yaml "digest of a scheduler's job after an upgrade and on one device"
passed "so does the job of a scheduler, once that is the new program"

expect 2 heddle upgrade killed
says 'there is nothing to upgrade'
./old run endless.yaml --out one --devices 1 -q 2>log &
run=$!
await test -s one/metrics.ndjson
expect 2 heddle upgrade one
says 'goes on in one process'
kill $run
wait $run
passed "what can not be upgraded is refused, with what to do instead"
