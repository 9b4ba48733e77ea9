#!/bin/bash
# Parameters that come over a link while layers compute: `heddle bench pull`. What arrives, and in which
# order, is compared with `heddle plan order`; of times only that nothing is sooner than it can be.
. "$(dirname "$0")/program.sh"
cat >chain.json <<'END'
{"name": "chain", "recv": {"a": 2, "b": 0.5, "c": 3, "d": 1, "e": 8, "f": 0.7},
 "ops": {"of": {"time": 4, "inputs": ["f"]}, "ob": {"time": 2, "inputs": ["of", "b"]},
         "oc": {"time": 1, "inputs": ["ob", "c"]}, "od": {"time": 2, "inputs": ["oc", "d"]},
         "oa": {"time": 1, "inputs": ["od", "a"]}, "oe": {"time": 0.5, "inputs": ["oa", "e"]}}}
END
order_of() { heddle plan order "$@" --json | grep -o '"order":\[[^]]*\]' | cut -d : -f 2; }
arrival() { grep "\"mode\":\"$1\"" out | grep -o '"arrival":\[[^]]*\]' | cut -d : -f 2; }

mkdir t && export TMPDIR=$PWD/t
expect 0 heddle bench pull chain.json --rate 100 --repeat 1 --json
same "$(grep -c '"bytes":190000,.*"displaced":0,"correct":true' out)" 5 "orders, all bytes, none displaced"
for mode in random tac search; do
	same "$(arrival $mode)" "$(order_of chain.json --order $mode --seed 1)" "arrivals by $mode"
done
python3 - out <<'P' || failed "figures: see above"
import json, sys
rows = [json.loads(x) for x in open(sys.argv[1])]
assert [r["mode"] for r in rows] == ["random", "tic", "tic+", "tac", "search"]
for r in rows:
    assert r["receives"] == 6 and r["ops"] == 6 and r["rounds"] == 1 and r["rate_mbit"] == 100, r
    # nothing ends before its parts, and no op is cut short
    lower, both = max(r["computing_ms"], r["transfers_ms"]), r["computing_ms"] + r["transfers_ms"]
    assert abs(r["computing_ms"] - 10.5) < 1e-3 and r["time_ms"] >= lower, r
    assert abs(r["efficiency"] - (both - r["time_ms"]) / (both - lower)) < 1e-6, r
    assert abs(r["over_random"] - rows[0]["time_ms"] / r["time_ms"]) < 1e-9, r
P
passed "arrivals as ordered"

# the first op waits for all: nothing can overlap, however fast the machine
sed 's/\["f"\]/["a", "b", "c", "d", "e", "f"]/' chain.json >last.json
expect 0 heddle bench pull last.json --rate 100 --repeat 1 --order fifo --computing 1 --json
python3 - out <<'P' || failed "an op began before its inputs were there"
import json, sys
r = json.loads(open(sys.argv[1]).readline())
assert abs(r["computing_ms"] - 15.2) < 1e-3, r
assert r["time_ms"] >= r["computing_ms"] + r["transfers_ms"], r
P
for transport in shm unix tls; do
	expect 0 heddle bench pull chain.json --rate 100 --repeat 1 --order tac --transport $transport --json
	says '"displaced":0,"correct":true'
done
expect 0 heddle bench pull chain.json --rate 1000 --delay 1 --repeat 2 --order random --seed 7 --json
says '"link":"relay","rate_mbit":1000,"delay_ms":1,"rounds":2'
same "$(arrival random)" "$(order_of chain.json --order random --seed 8)" "the second round's order"
passed "transports, links, rounds"

write_jobs 2
expect 0 heddle bench pull lenet.yaml --rate 1000 --repeat 1
says 'search'
says 'random takes'
passed "a job"

expect 2 heddle bench pull chain.json --rate 0
expect 2 heddle bench pull chain.json --computing 0
says 'a number from'
expect 2 heddle bench pull chain.json --repeat 101
expect 2 heddle bench pull chain.json --delay 1 --link netns
expect 2 heddle bench pull chain.json -n 2
says '--workers belongs to a JOB'
sed 's/"e": 8/"e": 900000/' chain.json >huge.json
expect 2 heddle bench pull huge.json
says 'take a lower --rate'
echo '{"recv": {}, "ops": {"o": {"time": 1, "inputs": []}}}' >none.json
expect 2 heddle bench pull none.json
same "$(find t -type d | wc -l)" 1 "folders, after all"
passed "what cannot be pulled is refused"
