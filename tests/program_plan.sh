#!/bin/bash
# heddle plan partition: the same bytes every time, words for users, and refusals with their place.
. "$(dirname "$0")/program.sh"
{
	profile_node in Input0 0 0 0 0
	profile_node a 'Conv2d(3, 64)' 10 20 4000 100
	profile_node b 'ReLU()' 10 20 2000 0
	profile_node c 'Linear(64, 10)' 5 5 100 40000000
	printf '\tin -- a\n\ta -- b\n\tb -- c\n'
} >small.txt
expect 0 heddle plan partition --graph small.txt --machines 4 --bandwidth 1e8
says 'level cuts'
says 'split          L1: 0-2 x3 2-3 x1'
says 'slowest stage  0.02 s'
says 'gain'
expect 0 heddle plan partition --graph small.txt --machines 4 --bandwidth 1e8 --json
json_ok
same "$(number predicted_s)" 0.02 "predicted time"
same "$(number states)" 3 "states"
says '"stages":[{"level":1,"first":0,"last":1,"upto":"b","replicas":3},'
says ',{"level":1,"first":2,"last":2,"upto":"c","replicas":1}]'
passed "a table, and JSON"

for i in 1 2 3; do
	expect 0 heddle plan partition --graph small.txt --machines 2,2 --bandwidth 1e9,1e8 --variant code \
		--activations 1 --json
	cp out again.$i
	cmp -s again.1 again.$i || failed "another answer the $i. time"
done
says '"split":"L2: '
says '; L1: '
passed "levels, and equal bytes on repetition"

expect 0 heddle plan partition --graph small.txt --machines 3 --bandwidth 1e8 --straight --json
says '"split":"L1: 0-1 x1 1-2 x1 2-3 x1"'
expect 0 heddle plan partition --graph small.txt --machines 4 --bandwidth 1e3 --fewer --json
says '"split":"L1: 0-3 x1"'
expect 2 heddle plan partition --graph small.txt --machines 3 --bandwidth 1e8 --straight --memory 1
says 'no partition of 3 cuts keeps to the memory limit'
expect 2 heddle plan partition --graph small.txt --machines 4 --bandwidth 1e8 --straight
says 'straight needs a cut per machine'
passed "options"

# 8 virtual nodes on 4: fill 0.07, then the first stage's copies have 2 more rounds of 0.06 each (a, b; 3
# copies); sums 2*2/3*100 B take no time to speak of; the last stage's 7 more rounds of 0.01 are less.
expect 0 heddle plan partition --graph small.txt --machines 4 --bandwidth 1e8 --variant heddle -m 8 --json
json_ok
says '"split":"L1: 0-2 x3 2-3 x1"'
same "$(number virtual_nodes)" 8 "virtual nodes"
awk -v t="$(number step_s)" 'BEGIN { exit !(t > 0.19 && t < 0.1901) }' ||
	failed "a step takes $(number step_s) s"
says '"why":["a step of 8 virtual nodes takes 0.19'
expect 0 heddle plan partition --graph small.txt --machines 3 --bandwidth 1e8 --variant heddle \
	--straight --json
says '"split":"L1: 0-1 x1 1-2 x1 2-3 x1"'
expect 0 heddle plan partition --graph small.txt --machines 4 --bandwidth 1e8 --variant heddle -m 8
says 'the slowest'
passed "the variant heddle"

expect 2 heddle plan partition --machines 4 --bandwidth 1
says 'give --graph FILE'
expect 2 heddle plan partition --graph small.txt
says 'give --machines 4 --bandwidth 1.25e9'
expect 2 heddle plan partition --graph small.txt --machines 4,2 --bandwidth 1
says 'one bandwidth a level'
expect 2 heddle plan partition --graph small.txt --machines 0 --bandwidth 1
says 'each is from 1 to'
expect 2 heddle plan partition --graph small.txt --machines 4, --bandwidth 1,1
says 'each is from 1 to'
expect 2 heddle plan partition --graph small.txt --machines 4 --bandwidth fast
says 'bytes per second'
expect 2 heddle plan partition --graph small.txt --machines 4 --bandwidth 1 --variant heddle --activations 1
says 'always counts activations'
expect 2 heddle plan partition --graph small.txt --machines 4 --bandwidth 1 --variant heddle -m 0
says '-m is from 1 to'
expect 2 heddle plan partition --graph small.txt --machines 2 --bandwidth 1e8 --variant heddle --memory 9
says 'the nearest that works: --memory '
need=$(sed -n 's/.*the nearest that works: --memory \([0-9]*\).*/\1/p' err)
expect 0 heddle plan partition --graph small.txt --machines 2 --bandwidth 1e8 --variant heddle \
	--memory "$need"
expect 2 heddle plan partition --graph small.txt --machines 2 --bandwidth 1e8 --variant heddle \
	--memory $((need - 1))
says "--memory $need"
expect 2 heddle plan partition --graph small.txt --machines 4 --bandwidth 1 --activations 1
says 'always counts activations'
expect 2 heddle plan turn x.plan
says '`heddle plan` has no "turn"'
expect 3 heddle plan partition --graph none.txt --machines 4 --bandwidth 1
says 'none.txt'
expect 3 heddle plan partition --graph small.txt --machines 4 --bandwidth 1 --max-cuts 2
says 'this graph has more than 2 cuts; try --compress-branches'
expect 2 heddle plan partition --graph small.txt --machines 4 --bandwidth 1 --max-cuts 0
says '--max-cuts is from 1'
{ cat small.txt; printf '\tc -- nowhere\n'; } >bad.txt
expect 3 heddle plan partition --graph bad.txt --machines 4 --bandwidth 1
says "bad.txt:8: there is no node 'nowhere'"
passed "bad requests and files are refused with their place"

cat >p.json <<'END'
{"format":"heddle-profile","version":1,"method":"measured","mood":1,"nodes":[
{"id":"a","op":"dense","f":{"p50":1000000},"i":{"p50":2000000},"w":{"p50":0},"out":[4],"param":0,"saved":4},
{"id":"b","op":"dense","f":{"p50":1000000},"i":{"p50":2000000},"w":{"p50":0},"out":[4],"param":0,"saved":4}],
"edges":[["a","b",0]]}
END
expect 0 heddle plan partition --graph p.json --machines 2 --bandwidth 1e6 --straight --json
same "$(number predicted_s)" 0.003 "predicted time of a profile"
says 'left out what this version does not know: mood'
passed "a profile of ours"

write_jobs 3
# what is no measurement
bare() { sed -E 's/"(p50|mean|sd|min|n|optimizer|sum|latency|bytes_per_s)":[0-9.e+-]+//g' "$1"; }
expect 0 heddle profile lenet.yaml --samples 5 -o lenet.json
says '%0       conv2d conv1.weight'
says 'of a virtual node: F '
says 'ms median of 5'
expect 0 heddle profile lenet.yaml --samples 5 --json
json_ok
bare out >again.bare
bare lenet.json >lenet.bare
cmp -s lenet.bare again.bare || failed "two profiles of one job differ in more than times"
says '"method":"measured"'
says '"samples":5'
expect 0 heddle plan partition --graph lenet.json --machines 3 --bandwidth 1e9 --straight --json
same "$(number states)" 14 "cuts of the profile of a chain"
expect 0 heddle profile lenet.yaml --samples 2 -s batch.virtual_nodes=4 --devices reference:1
expect 2 heddle profile lenet.yaml --devices 2
says 'a profile is of one device'
expect 2 heddle profile lenet.yaml --samples 0
says '--samples is from 1'
expect 2 heddle profile lenet.yaml -s batch.slices=2
says '-s batch.slices=1'
passed "a profile of a job, and its partition"

printf '0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n' >straight.txt
printf '0: F1.0 B1.0 F1.1 B1.1\n1: F0.0 F0.1 B0.0 B0.1\n' >turned.txt
printf '0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 F1.1 B1.0 B1.1\n' >other.txt
expect 0 heddle plan diff straight.txt straight.txt
says 'IDENTICAL: 0 virtual nodes, 0 stages, 0 chunks move; 0 instructions removed, 0 added'
expect 5 heddle plan diff straight.txt turned.txt --graph p.json
says 'stage 0: rank 0 -> rank 1, 0 bytes'
says 'stage 1: rank 1 -> rank 0, 0 bytes'
says 'DIFFERENT: 0 virtual nodes, 2 stages, 0 chunks move; 8 instructions removed, 8 added; 0 bytes travel'
expect 5 heddle plan diff straight.txt turned.txt --graph small.txt --cuts 0,2 --json
json_ok
says '"stages":[{"stage":0,"from":[0],"to":[1],"bytes":100},{"stage":1,"from":[1],"to":[0],"bytes":40000000}]'
says '"bytes":40000100'
expect 5 heddle plan diff straight.txt other.txt
says 'rank 1 #1: 1 removed, from B1.0 on; 1 added, from F1.1 on'
expect 3 heddle plan diff straight.txt none.txt
printf '0: F0.0 X\n' >bad.txt
expect 3 heddle plan diff straight.txt bad.txt
says 'bad.txt:1:9'
expect 2 heddle plan diff straight.txt turned.txt --graph small.txt --cuts 0,1,2
says '3 stages, the schedule has 2'
expect 2 heddle plan diff straight.txt turned.txt --cuts 0,1
says '--cuts belongs to --graph'
passed "diff: stages, bytes, lists, and its exit codes"

{
	profile_node in Input0 0 0 0 0
	profile_node a 'Conv2d(3, 64)' 10 20 4000 100
	profile_node b 'ReLU()' 10 20 2000 100000
	profile_node c 'Linear(64, 10)' 5 5 100 400000
	profile_node d 'Linear(64, 10)' 5 5 100 400000
	printf '\tin -- a\n\ta -- b\n\tb -- c\n\tc -- d\n'
} >heavy.txt
expect 0 heddle plan check straight.txt --graph heavy.txt --memory 4MiB
expect 2 heddle plan check straight.txt --graph heavy.txt --memory 1600000
says 'K22  plan: rank 1, #3 B1.1: rank 1 would need 2702200 of 1600000 bytes at #3: '
says ': weights 900000, optimizer 0, workspace 0, versions 0,'
says 'the nearest that works: --cuts 0,3'
expect 0 heddle plan check straight.txt --graph heavy.txt --memory 1600000 --cuts 0,3
expect 2 heddle plan check straight.txt --graph heavy.txt --memory 1000000
says 'no split into 2 stages fits; the nearest that works: --memory '
fits=$(sed -n 's/.*the nearest that works: //p' out)
expect 0 heddle plan check straight.txt --graph heavy.txt $fits
expect 2 heddle plan check straight.txt --graph heavy.txt --memory 4MiB --cuts 1,2
says '--cuts 1,2: cuts 0-0 belong to no stage; the first stage begins at 0'
expect 2 heddle plan check straight.txt --graph heavy.txt --memory 4MiB --cuts 0,4
printf '0: F0.0 B0.0\n1: F1.0 B1.0\n2: F2.0 B2.0\n3: F3.0 B3.0\n4: F4.0 B4.0\n' >deep.txt
expect 2 heddle plan check deep.txt --graph heavy.txt
says 'the model has 4 cuts, the schedule 5 stages; the nearest that works: 4 stages'
expect 0 heddle plan check straight.txt --graph heavy.txt --memory 4.2e6
expect 0 heddle plan partition --graph small.txt --machines 1 --bandwidth 1e8 --memory 16GiB
expect 2 heddle plan partition --graph small.txt --machines 1 --bandwidth 1e8 --memory 1x
says '--memory 1x: bytes, as 16e9 or 16GiB'
expect 2 heddle plan partition --graph small.txt --machines 1 --bandwidth 1e8 -m 8
says '-m: the variant paper knows a steady state alone'
expect 2 heddle plan check straight.txt --memory 1MiB
says '--memory needs --graph'
passed "what does not fit is refused, with a split that does"

data=$(material data/pipedream) || { echo "skip: published profiles (no data/pipedream)"; exit 0; }
expect 0 heddle plan partition --graph "$data/vgg16.graph.txt" --machines 16 --bandwidth 1.25e9 \
	--variant paper
says 'L1: 0-31 x15 31-40 x1'
expect 0 heddle plan partition --graph "$data/inception_v3.graph.txt" --machines 4 --bandwidth 1e9 \
	--variant code --activations 1 --compress-branches --json
says '"split":"L1: 0-121 x3 121-1646 x1"'
expect 3 heddle plan partition --graph "$data/inception_v3.graph.txt" --machines 4 --bandwidth 1e9
says 'more than 5000 cuts; try --compress-branches'
passed "published profiles"
