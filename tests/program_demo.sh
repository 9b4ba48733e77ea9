#!/bin/bash
# heddle demo: the jobs it would run are jobs, and of `pipeline` one worker is refused where three fit; the
# stories themselves take longer and run where HEDDLE_SLOW is set.
. "$(dirname "$0")/program.sh"
expect 0 heddle demo --show
cp out demo.yaml
expect 0 heddle config check demo.yaml
expect 2 heddle demo elastik
says 'there is no demo "elastik"'
expect 2 heddle demo --devices 0
passed "--show prints a job file that is good; unknown demos are refused"
expect 0 heddle demo pipeline --show
cp out pipeline.yaml
expect 0 heddle config check pipeline.yaml
expect 11 heddle run pipeline.yaml --dry-run --devices 1 -s parallel.mode=data
says 'workers.memory gives'
expect 0 heddle run pipeline.yaml --dry-run --devices 1 --workers 3
passed "the memory of one worker is refused to the whole model, and is enough for a third of it"
expect 0 heddle demo spot --show
sed '/^0,add/,$d' out >spot.yaml
expect 0 heddle config check spot.yaml
expect 0 heddle demo spot --json -q -C market
tail -n 1 out >end.json
json_ok
says '"identical":true'
same "$(number added)-$(number removed)-$(number most)" 10-8-6 "machines that came, went, were there at once"
parts=0
for part in useful redundant bubble pause redo rebuild waiting boot; do
	ms=$(grep -o "\"$part\":{\"ms\":[0-9]*" end.json | tail -n 1 | grep -o '[0-9]*$')
	parts=$((parts + ms))
done
same $parts "$(grep -o '"paid":{"ms":[0-9]*' end.json | grep -o '[0-9]*$')" "the parts of the paid time"
passed "demo spot: machines come and go, the bits are those of one device, the ledger sums"
HEDDLE_SHARED='' expect 0 heddle demo graph --show -C 'a"b\c'
cp out graph.yaml
expect 0 heddle config check graph.yaml
grep -qF 'a\"b\\c/demo-graph/demo.graph' graph.yaml || failed "the folder is not quoted: $(cat graph.yaml)"
[ ! -e 'a"b\c' ] || failed "--show made a folder"
expect 2 heddle demo graph --devices 4
says 'is for the demo train'
HEDDLE_SHARED='' expect 0 heddle demo graph --json -q -C graph
json_ok
says '"identical":true'
[ "$(number tasks)" -gt 0 ] || failed "no function did a task"
[ "$(number nano_usd)" -gt 0 ] || failed "functions cost nothing"
passed "demo graph: functions fail, the bits are those of a run without them"
[ -n "${HEDDLE_SLOW:-}" ] || { echo "skip: the demo itself (set HEDDLE_SLOW=1)"; exit 0; }
expect 0 heddle demo pipeline --json -C story
json_ok
says '"identical":true'
same "$(number kills)-$(number joins)" 2-1 "kills and joins"
for name in predicted_ms measured_ms least_ms; do
	awk -v x="$(number $name)" 'BEGIN { exit !(x > 0) }' || failed "$name is $(number $name)"
done
expect 0 heddle plan check story/runs/demo-pipeline/chaos/plan/0001.plan
passed "demo pipeline"
expect 0 heddle demo --json -q
says '"identical":true'
passed "demo train"
expect 0 heddle eval runs/demo-train-2
says 'accuracy'
expect 0 heddle resume runs/demo-train -q
expect 0 heddle ckpt diff runs/demo-train runs/demo-train-2
passed "the demo's runs are runs like any other: evaluated, resumed, compared"
