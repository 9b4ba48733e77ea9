#!/bin/bash
# heddle simulate spot: the published runs, random ones against a second replay in Python, what is refused.
#
# HD_SPOT_DRAWS (10): how many random ones.
. "$(dirname "$0")/program.sh"

on_demand() { echo "\"on_demand\": {\"nodes\": 20, \"step_ms\": $1}"; }
echo '{"name": "BERT", "stages": 12, "batch": 264, "local_ms": 20000, "step_ms": [4310, 2390, 1805, 1450],' \
	"$(on_demand 2510), \"wanted\": 32}" >bert.json
echo '{"name": "ResNet", "stages": 8, "batch": 384, "local_ms": 10000, "step_ms": [6100, 3200, 2400, 1600],' \
	"$(on_demand 1300)}" >resnet.json

near()          # VALUE WANTED WHAT: within half a percent
{
	awk -v x="$1" -v want="$2" 'BEGIN { exit !(x > want * 0.995 && x < want * 1.005) }' ||
		failed "$3: $1, not $2"
}

while read -r model trace steps removals level2 rendezvous rate usd ratio; do
	file=$(material data/spot/$trace-trace.csv) || { echo "skip: data/spot is nowhere"; break; }
	expect 0 heddle simulate spot --trace "$file" --model $model.json --json
	json_ok
	same "$(number steps) $(number removals) $(number level2) $(number rendezvous)" \
		"$steps $removals $level2 $rendezvous" "$model on $trace"
	near "$(number samples_per_s)" $rate "samples/s"
	near "$(number usd_per_h)" $usd "\$/h"
	near "$(number value_ratio)" $ratio "ratio of values"
	passed "$model on the $trace trace as published"
done <<'END'
bert p3 12582 164 6 75 83.20 22.10 2.19
bert g4dn 5504 74 1 48 38.64 11.47 1.96
resnet p3 14895 164 7 103 143.27 22.10 1.34
resnet g4dn 7256 74 5 52 73.39 11.47 1.33
END

# By hand. Ready at 45 s, a rendezvous, steps of 1 s from 75 s on. b goes at 77.5 s: what is left takes half
# as long again, to 78.25 s; then a is alone, a rendezvous of 5 s, and nothing. c is ready at 125 s, steps
# from 155 s on: 39,845 of them until 40,000 s.
printf '%s\n' 0,add,a 0,add,b 77500,remove,b 80000,add,c >hand.csv
echo '{"name": "hand", "stages": 2, "batch": 10, "local_ms": 5000, "step_ms": [1000], "usd_h": 3.6,' \
	"$(on_demand 1000), \"redundant\": 0.25, \"bubble\": 0.125}" >hand.json
expect 0 heddle simulate spot --trace hand.csv --model hand.json --json
same "$(number steps) $(number removals) $(number level2) $(number rendezvous) $(number absorbed)" \
	"39848 1 0 3 1" "by hand"
says '"asked_by_rule":{"evacuate":0,"replace":0,"rebalance":1,"grow":0}'
# 3.6 dollars an hour are 1000 nano-dollars a millisecond
part() { says "\"$1\":{\"ms\":$2,\"nano_usd\":$(($2 * 1000))}"; }
part boot 135000
part rebuild 125000
part waiting 41750
part pause 250
part redo 0
# 79,695,500 ms of committed steps, whose parts are rounded down step by step
part redundant $((2 * 500 + 375 + 39845 * 500))
part bubble $((2 * 250 + 187 + 39845 * 250))
says '"paid":{"ms":79997500,"nano_usd":79997500000'
expect 0 heddle simulate spot --trace hand.csv --model hand.json
says '  steps              39848'
says 'removals           1: 1 absorbed by a neighbour, 0 beyond that (level 2)'
says 'rendezvous         3; at commits 0 to evacuate, 0 to replace, 1 to rebalance, 0 to grow'
passed "a trace by hand, with its ledger"

python=$(command -v python3) || python=/opt/torchvenv/bin/python
if [ -x "$python" ]; then
	mkdir drawn
	draws=${HD_SPOT_DRAWS:-10}
	ways=$("$python" "$SOURCE_DIR/tests/spot_replay.py" ways)
	"$python" "$SOURCE_DIR/tests/spot_replay.py" draw $draws drawn || failed "no traces are drawn"
	for ((case = 0; case < draws; case++)); do
		for way in $ways; do
			expect 0 heddle simulate spot --trace drawn/trace$case --model drawn/model$case \
				--resilience $way --json
			mv out drawn/ours$case.$way
		done
	done
	"$python" "$SOURCE_DIR/tests/spot_replay.py" compare $draws drawn || failed "the replays differ"
	passed "$draws random traces and models are replayed alike, each by six ways, ledgers sum"
else
	echo "skip: no python3 for the second replay"
fi

# Short models and traces with what a third replay, by the published rules alone, makes of each; 200 longer
# ones: tests/spot_rules.py compare 200 HEDDLE
while read -r model && read -r events && read -r steps removals level2 rendezvous rate usd ratio; do
	printf '%s\n' "$model" >model.json
	printf '%s\n' $events >trace.csv
	expect 0 heddle simulate spot --trace trace.csv --model model.json --json
	same "$(number steps) $(number removals) $(number level2) $(number rendezvous)" \
		"$steps $removals $level2 $rendezvous" "$model"
	rates="$(number samples_per_s) $(number usd_per_h) $(number value_ratio)"
	awk -v a="$rates" -v b="$rate $usd $ratio" 'BEGIN {
		split(a, is); split(b, want)
		for (i = 1; i <= 3; i++)
			if (is[i] > want[i] * (1 + 1e-9) || is[i] < want[i] * (1 - 1e-9))
				exit 1 }' || failed "rates of $model"
done <"$SOURCE_DIR/tests/data/spot-rules.txt"
passed "drawn models and traces by the published rules"

# lists with start and stop, and samples of a count
printf 'name,start,stop\na,0,\nb,0,77.5\nc,80,\n' >hand.list
expect 0 heddle simulate spot --trace hand.list --model hand.json --json
same "$(number steps)" 39848 "from a list with start and stop"
# machines that come at once take their places in the order of the file: the one that goes at 77.5 s waits
printf 'name,start,stop\nb,0,\nc,0,\na,0,77.5\n' >order.list
expect 0 heddle simulate spot --trace order.list --model hand.json --json
same "$(number steps) $(number rendezvous) $(number absorbed)" "39925 1 0" "places in the order of the file"
printf '2021-12-11, 10:00:00, 2\n2021-12-11, 10:01:17, 1\n2021-12-11, 10:01:20, 2\n' >hand.samples
expect 0 heddle simulate spot --trace hand.samples --model hand.json --json
same "$(number steps) $(number removals)" "39847 1" "from samples of a count"

expect 2 heddle simulate spot --trace hand.csv
says '--model FILE says what a step takes on 1, 2, ... pipelines'
expect 2 heddle simulate spot --model hand.json
says '--trace FILE says when machines came and went'
expect 3 heddle simulate spot --trace hand.csv --model hand.csv
expect 3 heddle simulate spot --trace hand.json --model hand.json
echo '{"name": "x", "stages": 0}' >bad.json
expect 3 heddle simulate spot --trace hand.csv --model bad.json
says 'bad.json: .stages'
expect 2 heddle simulate spot --trace hand.csv --model hand.json --resilience luck
says '--resilience luck: it is shadow, reroute or checkpoint'
expect 2 heddle simulate spt
says 'did you mean "spot"'
passed "what is missing or wrong is said"
