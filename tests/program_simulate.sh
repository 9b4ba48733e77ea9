#!/bin/bash
# heddle simulate with devices, links, transports and profiles; plan partition --simulate; plans of runs.
. "$(dirname "$0")/program.sh"
{
	profile_node in Input0 0 0 0 0
	profile_node a 'Conv2d(3, 64)' 10 20 4000000 100
	profile_node b 'ReLU()' 10 20 2000000 0
	profile_node c 'Linear(64, 10)' 5 5 100 40000000
	printf '\tin -- a\n\ta -- b\n\tb -- c\n'
} >small.txt
cat >cluster.yaml <<'YAML'
kinds:
  any: {speed: 1}
levels:
  - {name: server, components: 2, bytes_per_s: 1e9, latency_ns: 1000000}
YAML

# two stages of 60 and 10 ms; a tensor of 2 MB takes 2 ms and 1 of latency
expect 0 heddle simulate --schedule 1f1b -p 2 -m 2 --profile small.txt --cuts 0,2 --cluster cluster.yaml \
	--json
json_ok
same "$(number makespan)" 0.12 "makespan in seconds"
says '"transport":"eager"'
says '"idle":{"warm-up":0,"drain":0,"dependency":0,"transfer":0,"credit":0}'
says '"memory":{"weights":40000000'
says '"links":[{"level":"server","component":0,"bytes_out":4000000,"busy":0.004}'
says 'the slowest rank works 71 % longer than the mean of all'
expect 0 heddle simulate --schedule 1f1b -p 2 -m 2 --profile small.txt --cuts 0,2 --cluster cluster.yaml
says 'makespan           0.12 s'
says '|wwww'
grep -q 'warning: the slowest rank works' err || failed "no warning"
expect 0 heddle simulate --schedule 1f1b -p 2 -m 2 --profile small.txt --cuts 0,2 --what-if rank0=0.5 --json
same "$(number makespan)" 0.24 "with rank 0 half as fast"
same "$(number makespan_before)" 0.12 "before"
expect 0 heddle simulate --schedule 1f1b -p 2 -m 2 --profile small.txt --cuts 0,2 --cluster cluster.yaml \
	--what-if bandwidth=0.01,latency=2 --json
# 20, 200 and 2, 200 more for the second tensor, 2, 10, 200, 2, 40
awk -v t="$(number makespan)" 'BEGIN { exit !(t > 0.6739 && t < 0.6741) }' ||
	failed "over slow links: $(number makespan)"
passed "a profile, a cluster, and what if"

expect 0 heddle simulate --schedule gpipe -p 2 -m 3 --transport buffered --credits 1 --json
says '"transport":"buffered"'
cp out one.json
expect 0 heddle simulate --schedule gpipe -p 2 -m 3 --transport buffered --credits 1 --json
cmp -s out one.json || failed "another answer the second time"
expect 2 heddle simulate --schedule 1f1b -p 2 -m 3 --transport rendezvous
says 'it never ends'
expect 0 heddle simulate --schedule 1f1b -p 2 -m 2 --costs 1,2 --steps 5 --json
says '"steps":5'
expect 0 heddle simulate --schedule 1f1b -p 2 -m 2 --trace t.hdfr
[ "$(head -c 8 t.hdfr)" = HDFLIGHT ] || failed "t.hdfr is no flight file"
passed "transports, steps, traces"

expect 0 heddle simulate --schedule gpipe -p 4 -m 2 --json
json_ok
says '"idle":[{"warm-up":0,"drain":0,"dependency":9,"transfer":0,"credit":0},{"warm-up":1'
says '"warnings":["the bubble is 150 %'
expect 0 heddle simulate --schedule gpipe -p 4 -m 2
says '|################........................|'
says 'warning: the bubble is 150 %'
passed "why ranks stand still, of a bare schedule"

cat >0003.plan <<'END'
plan 3
cause "by hand"
stages 1
workers 0-1:0
map 0-1:0 2-3:1
owner 0:0
0: LD0.0 F0.0 B0.0 LD0.1 F0.1 B0.1 RED0 NORM STEP0
1: LD0.2 F0.2 B0.2 LD0.3 F0.3 B0.3 RED0 NORM STEP0
END
expect 0 heddle simulate 0003.plan --profile small.txt --cluster cluster.yaml --json
# 140 ms of work, then 40 MB each way at half of it a device, and latencies
awk -v t="$(number makespan)" 'BEGIN { exit !(t > 0.18 && t < 0.19) }' || failed "makespan $(number makespan)"
expect 0 heddle plan draw 0003.plan -o plan.svg
if command -v python3 >/dev/null; then
	python3 - <<'END' || failed "plan.svg is no picture of 8 instructions"
import sys, xml.dom.minidom
sys.exit(len(xml.dom.minidom.parse("plan.svg").getElementsByTagName("rect")) < 8)
END
fi
expect 0 heddle plan draw 0003.plan
says '0 |F0'
expect 0 heddle plan draw --schedule 1f1b -p 2 -m 2 --profile small.txt --cuts 0,2 --cluster cluster.yaml
says '0 |FFFFFFFFFF'
expect 0 heddle plan draw --schedule 1f1b -p 2 -m 2 --profile small.txt --cuts 0,2 --cluster cluster.yaml \
	-o full.svg
if command -v python3 >/dev/null; then
	python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("full.svg")' || failed "full.svg is not XML"
fi
grep -q 'rank 1 waits: transfer' full.svg || failed "no wait in the picture"
passed "plans of runs, and drawings of them"

expect 2 heddle simulate --schedule 1f1b -p 2 -m 2 --seed 3
says 'give --profile FILE'
expect 2 heddle simulate --schedule 1f1b -p 2 -m 2 --profile small.txt --costs 1,2
says '--costs and --comm say what --profile says'
expect 2 heddle simulate --schedule 1f1b -p 2 -m 2 --cuts 0,1
says '--cuts belongs to --profile'
expect 2 heddle simulate --schedule 1f1b -p 2 -m 2 --what-if bandwidth=2
says '--cluster FILE'
expect 2 heddle simulate --schedule 1f1b -p 2 -m 2 --what-if rank7=2
says 'keys are bandwidth, latency, speed (of all devices) and rank0 to rank1'
expect 2 heddle simulate --schedule 1f1b -p 2 -m 2 --what-if speed=0
says 'the factor is a number above 0'
expect 2 heddle simulate --schedule 1f1b -p 4 -m 4 --cluster cluster.yaml
says 'cluster.yaml has 2 devices, the schedule 4 ranks'
expect 2 heddle simulate --schedule 1f1b -p 2 -m 2 --transport eager --credits 2
says '--credits belongs to --transport buffered'
expect 2 heddle simulate --schedule 1f1b -p 2 -m 2 --steps 0
says '--steps is 1 or more'
passed "refusals"

expect 0 heddle plan partition --graph small.txt --machines 2,2 --bandwidth 1e9,1e8 --simulate --json
json_ok
says '"best":'
says '{"way":"straight","why_not":'
expect 0 heddle plan partition --graph small.txt --machines 3 --bandwidth 1e8 --simulate
says 'data parallel'
says 'best'
passed "PipeDream's ways"
