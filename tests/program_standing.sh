#!/bin/bash
# Where a run stands when nobody coordinates it: for a moment, or for ever.
. "$(dirname "$0")/program.sh"
write_jobs 10000000
sed -i 's/checkpoint: .*/checkpoint: {every: 10000000 steps, keep: 2}\neval: {every: 0}/' mlp.yaml
workers_of() { heddle status "$1" --json 2>/dev/null | grep -o '"workers":\[.*' | grep -o '"pid":[0-9]*' | cut -d: -f2; }

# ---- between two coordinators ----

"$HEDDLE_BIN" run mlp.yaml --out between --workers 2 --devices 1 -s workers.detect='1 s' -q 2>log &
run=$!
reach between 20
workers=$(workers_of between)
kill -STOP $workers                   # nobody takes over before all have asked
kill -9 $run
wait $run 2>/dev/null
heddle status between --json >status.out 2>status.err & status=$!
heddle scale between 1 >scale.out 2>scale.err & scale=$!
await grep -q 'between has no coordinator at the moment; waiting for the next one since [0-9]* s, 2 of its workers are there' status.err ||
	failed "nobody says what status waits for: $(cat status.out status.err)"
await grep -q 'between has no coordinator at the moment' scale.err || failed "nobody says what scale waits for: $(cat scale.out scale.err)"
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

# ---- nobody comes ----

"$HEDDLE_BIN" run mlp.yaml --out left --workers 2 --devices 1 -q 2>log &
run=$!
reach left 20
workers=$(workers_of left)
kill -STOP $run
kill -9 $workers
kill -9 $run
wait $run 2>/dev/null
for verb in 'status left' 'stop left' 'scale left +1'; do
	expect 3 heddle $verb
	says 'no worker of it is left on this machine'
	says 'heddle resume left'
done
passed "where nobody is left they end with that"
