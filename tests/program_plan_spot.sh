#!/bin/bash
# heddle plan JOB --spot: every candidate with its terms, and the choice, against the formula in awk.
. "$(dirname "$0")/program.sh"
write_jobs 3
grid() { heddle plan lenet.yaml --workers $(($1 * $2)) -s parallel.mode=pipeline -s parallel.schedule=1f1b \
	-s parallel.stages=$2 "${@:3}"; }

echo '{"losses_h": 6, "together": [0.5, 0.5], "checkpoint_s": 8, "usd_h": 0.5}' >market.json
expect 0 grid 2 4 --spot market.json --json
json_ok
says '"pipelines":2,"stages":4'
for strategy in checkpoint reroute 'shadow lazy' 'shadow eager' 'shadow full' replica:1 replica:2; do
	says "\"strategy\":\"$strategy\""
done
# 2/7 of pairs are neighbours, 1/7 a whole stage, 8/11 in two of three pipelines; half of the losses are pairs
row() { grep -o "{\"strategy\":\"$1\"[^}]*" out; }
term() { row "$1" | grep -o "\"$2\":[^,}]*" | sed 's/.*://'; }
while read -r strategy exceeds devices; do
	awk -v is="$(term "${strategy/_/ }" exceeds)" -v want="$exceeds" 'BEGIN { exit !(is - want < 1e-12 &&
		want - is < 1e-12) }' || failed "$strategy exceeds $(term "${strategy/_/ }" exceeds)"
	same "$(term "${strategy/_/ }" devices)" $devices "devices of $strategy"
done <<'END'
checkpoint 1 8
reroute 0.071428571428571 8
shadow_lazy 0.142857142857143 8
shadow_eager 0.142857142857143 8
replica:1 0.363636363636364 12
END
# samples per dollar of each from its own terms; the choice is the first within 1 % of the best
"$(command -v python3 || echo /opt/torchvenv/bin/python)" - out lenet.yaml <<'END' || failed "the values"
import json, re, sys
a = json.load(open(sys.argv[1]))
batch = int(re.search(r"global: (\d+)", open(sys.argv[2]).read()).group(1))
for c in a["candidates"]:
    useful = 1 / ((1 + c["overhead"]) * (1 + a["losses_h"] / 3600 * c["stall_s"]))
    value = batch / a["step_s"] * useful * 3600 / (c["devices"] * 0.5)
    assert abs(value / c["value"] - 1) < 1e-12, c
    assert abs(c["saving"] - 8 / c["checkpoint_every_s"]) < 1e-12, c
    stall = (1 - c["exceeds"]) * c["tolerated_s"] + c["exceeds"] * c["exceeded_s"]
    assert abs(stall - c["stall_s"]) < 1e-9, c
best = max(c["value"] for c in a["candidates"])
assert a["chosen"] == next(c["strategy"] for c in a["candidates"] if c["value"] >= 0.99 * best), a["chosen"]
assert not a["refused"]
END
passed "terms, values and choice follow from one another"

expect 0 grid 2 4 --spot market.json
says 'grid      2 pipelines of 4 stages'
says 'chosen    '
# what shadows cost is what the simulator says of the same plan
expect 0 heddle simulate lenet.yaml --workers 8 -s parallel.mode=pipeline -s parallel.schedule=1f1b \
	-s parallel.stages=4 --json
plain=$(number makespan)
expect 0 heddle simulate lenet.yaml --workers 8 -s parallel.mode=pipeline -s parallel.schedule=1f1b \
	-s parallel.stages=4 --redundancy full --json
full=$(number makespan)
expect 0 grid 2 4 --spot market.json --json
awk -v o="$(term 'shadow full' overhead)" -v s="$(term 'shadow full' saving)" -v a="$plain" -v b="$full" \
	'BEGIN { d = o - s - (b / a - 1); exit !(d < 1e-9 && d > -1e-9) }' || failed "shadows cost otherwise"
passed "shadows cost what is simulated"

# one stage has no other to stand on; a trace is a market, too
printf '%s\n' 0,add,a 0,add,b 0,add,c 1800000,remove,a 1800000,remove,b 3600000,remove,c >trace.csv
expect 0 heddle plan lenet.yaml --workers 3 --planner data --spot trace.csv --json
says '"losses_h":2,"together":[0.5,0.5]'
says '"refused":[{"strategy":"shadow lazy","why":"there is 1 stage'
echo '{"losses_h": 6, "pause_s": 9, "pause_max_s": 4}' >strict.json
expect 0 grid 2 4 --spot strict.json
says 'chosen    none: all pause longer than 4 s'
echo '{"losses": 6}' >bad.json
expect 3 grid 2 4 --spot bad.json
says 'did you mean losses_h'
expect 3 grid 2 4 --spot lenet.yaml
passed "one stage, a trace, a bound on pauses, bad files"
