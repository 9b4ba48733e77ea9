#!/bin/bash
# The ledger of a run that goes on: its parts are all of the paid time at any moment, under kills of workers
# and of the coordinator, over a stop and a resume, and the money is that of the milliseconds.
. "$(dirname "$0")/program.sh"
python=$(command -v python3) || python=/opt/torchvenv/bin/python
[ -x "$python" ] || { echo "skip: no python3 to count"; exit 77; }
cat >job.yaml <<EOF
job: {name: ledger, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 20 steps, keep: 2}
eval: {every: 0}
workers: {detect: 500 ms, pace: 4 ms, usd_h: 0.91}
EOF
# counts what status says; prints the paid milliseconds
audit()
{
	heddle status run --json >status.json || return 1
	"$python" - "$1" <<'EOF'
import json, sys
live = json.load(open("status.json"))
parts = [live[part + "_ms"] for part in
         "useful redundant bubble pause redo rebuild waiting boot".split()]
paid = live["paid_ms"]
assert sum(parts) == paid and min(parts) >= 0, (parts, paid)
assert live["paid_nano_usd"] == paid * 910_000_000 // 3_600_000, (paid, live["paid_nano_usd"])
assert paid >= int(sys.argv[1]), (paid, sys.argv[1])
print(paid)
EOF
}
began=$(date +%s%N)
"$HEDDLE_BIN" run job.yaml --out run --workers 3 --devices 1 -q 2>log &
coordinator=$!
reach run 20
first=$(audit 1) || failed "the parts are not what was paid: $(cat status.json)"
victim=$(grep -o '"pid":[1-9][0-9]*' status.json | head -n 1 | cut -d: -f2)
kill -9 "$victim"
lost() { grep -q "process $victim ended" run/events.ndjson; }
await lost || failed "its end was not seen"
reach run $(($(step run) + 20))
second=$(audit "$first") || failed "after a kill the parts are not what was paid: $(cat status.json)"
kill -9 $coordinator
another() { [ "$(heddle status run --json 2>/dev/null | grep -o '"term":[0-9]*' | cut -d: -f2)" = 2 ]; }
await another || failed "no other coordinator"
reach run $(($(step run) + 20))
third=$(audit "$second") || failed "another coordinator's parts are not what was paid: $(cat status.json)"
expect 0 heddle status run
says 'paid: '
says '; useful '
expect 0 heddle stop run
ended() { grep -q '"kind":"job_end"' run/events.ndjson; }
await ended || failed "it did not end"
kind() { grep '"kind":"paid"' run/events.ndjson | tail -n 1 >paid.json; }
kind
fourth=$(grep -o '"ms":[0-9]*' paid.json | cut -d: -f2)
[ "$fourth" -ge "$third" ] || failed "at the end less was paid than before: $fourth, $third"
steps=$(grep -o '"step":[0-9]*' paid.json | cut -d: -f2)
expect 0 heddle resume run --workers 2 --devices 1 --steps $((steps + 40)) -q
kind
"$python" - "$fourth" $(($(date +%s%N) - began)) <<'EOF' || failed "$(cat paid.json)"
import json, sys
paid = json.load(open("paid.json"))
parts = [paid[part + "_ms"] for part in
         "useful redundant bubble pause redo rebuild waiting boot".split()]
assert sum(parts) == paid["ms"] and min(parts) >= 0
assert paid["nano_usd"] == paid["ms"] * 910_000_000 // 3_600_000
# more than before the stop, and no more than four processes at once from begin to end
assert int(sys.argv[1]) < paid["ms"] <= 4 * int(sys.argv[2]) // 1_000_000 + 40, (paid, sys.argv)
assert paid["useful_ms"] > 0 and paid["boot_ms"] > 0
EOF
passed "the parts are all of the paid time: kills, another coordinator, stop and resume"

# nothing is lost, and the end cuts no step off: the last checkpoint and the ends of processes are no redo
expect 0 heddle run job.yaml --out calm --workers 2 --devices 1 --steps 20 -s workers.detect=60s -q
same "$(grep '"kind":"paid"' calm/events.ndjson | grep -o '"redo_ms":[0-9]*')" '"redo_ms":0' \
	"what was done again in a run that nothing disturbed"
passed "a run that nothing disturbs has nothing done again"

# all processes are killed at once: the members of the stored record have not called, and are no machines
began=$(date +%s%N)
"$HEDDLE_BIN" run job.yaml --out killed --workers 6 --devices 1 -q 2>log &
coordinator=$!
reach killed 20
heddle status killed --json >status.json || failed "no status"
victims=$(grep -o '"pid":[1-9][0-9]*' status.json | cut -d: -f2)
kill -9 $coordinator $victims
killed=$(date +%s%N)
wait $coordinator
none_left() { ! kill -0 $victims 2>/dev/null; }
await none_left || failed "killed processes are there"
resumed=$(date +%s%N)
"$HEDDLE_BIN" resume killed --workers 1 --devices 1 -q 2>log &
reach killed $(($(step killed) + 20))
heddle status killed --json >status.json || failed "no status after a resume"
"$python" - $(((killed - began) / 1000000)) $((($(date +%s%N) - resumed) / 1000000)) <<'EOF' ||
import json, sys
paid, before, after = json.load(open("status.json"))["paid_ms"], int(sys.argv[1]), int(sys.argv[2])
assert paid <= 6 * before + 2 * after, (paid, before, after)
EOF
	failed "after a resume machines are paid that are not there: $(cat status.json)"
expect 0 heddle stop killed
passed "after a kill of all, those that are there alone are paid"
