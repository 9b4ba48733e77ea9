#!/bin/bash
# elastic.resilience: replica:1: two pipelines at least hold each stage, after a loss with fewer stages; two
# workers of one zone that come as the two for one stage are put at two stages, and lost together.
. "$(dirname "$0")/program.sh"
write_jobs 100000
sed -i 's/kind: linear/kind: constant/' gpt.yaml
keys="-s parallel.mode=pipeline -s parallel.stages=3 -s comm.sync=stages -s resilience=replica:1"

expect 2 heddle run gpt.yaml --workers 3 $keys -s parallel.replicas=1 --dry-run
says 'elastic.resilience: replica:1 keeps 2 pipelines, and parallel.replicas is 1: write 2 or more'
expect 2 heddle run gpt.yaml --workers 6 $keys -s parallel.replicas=2 -s elastic.redundancy=lazy --dry-run
says 'leave one of them out'

"$HEDDLE_BIN" run gpt.yaml --out killed --workers 6 $keys -s parallel.replicas=2 -s workers.pace=20ms \
	-s workers.detect=3s -s checkpoint.every='1000 steps' -s workers.start=others >killed.log 2>&1 &
run=$!
expect 2 heddle worker --join killed --zone 'a b'
says 'use 1 to 32 of'
joined() { [ "$(cat killed/events.ndjson 2>/dev/null | grep -c "\"kind\":\"join\"")" = "$1" ]; }
await test -S killed/members.sock || failed "nothing to join"
n=0
for zone in a b b a b b; do
	await joined $n || failed "worker $n does not join"
	"$HEDDLE_BIN" worker --join killed --zone $zone --devices 1 >worker$n.log 2>&1 &
	n=$((n + 1))
done
reach killed 3
expect 0 heddle status killed --json
says '"resilience":"replica:1"'
zones=$(grep -o '"zone":"[ab]"' out | sort | uniq -c | tr -d ' \n')
same "$zones" '2"zone":"a"4"zone":"b"' "workers by zone"
kill -9 $(grep -o '"pid":[1-9][0-9]*,[^}]*"zone":"a"' out | sed 's/"pid":\([0-9]*\),.*/\1/')
fewer() { grep -q '"fewer"' killed/events.ndjson; }
await fewer || failed "a lost worker left no view of fewer stages"
grep -q '2 stages on 4 devices until there are 6' killed/events.ndjson || failed "other stages than two"
at=$(step killed)
reach killed $((at + 2))
stops_with_bits_of_one killed gpt.yaml "a zone of two of six workers killed, two pipelines kept"
! grep -q '"restore"' killed/events.ndjson || failed "a loss in one pipeline of two went back to a checkpoint"
passed "a zone of two of six workers killed: two pipelines of two stages go on, the bits of one device"

# zones of workers that the run starts itself: one that is started for a lost one has its zone
"$HEDDLE_BIN" run gpt.yaml --out zoned --workers 2 -s 'workers.zones=[a,b]' -s workers.pace=20ms \
	>zoned.log 2>&1 &
run=$!
in_b()
{
	heddle status zoned --json | grep -o '"pid":[1-9][0-9]*,[^}]*"zone":"b"' |
		sed 's/"pid":\([0-9]*\),.*/\1/'
}
is_another() { now=$(in_b); [ "$now" ] && [ "$now" != "${was:-}" ]; }
reach zoned 3
await is_another || failed "no worker says zone b"
was=$now
heddle status zoned --json | grep -q '"zone":"a"' || failed "no worker says zone a"
kill -9 $was
await is_another || failed "no worker of zone b was started for the one that was lost"
expect 0 heddle stop zoned
wait $run || true
passed "a worker that is started for a lost one has its zone"
