#!/bin/bash
# heddle plan 2bw: depth and width by 2BW's formulas, the same bytes every time, and refusals with the
# smallest need.
. "$(dirname "$0")/program.sh"
for i in $(seq 8); do
	profile_node n$i Linear 1 2 1000000 400000000
done >chain.txt
for i in $(seq 7); do printf '\tn%d -- n%d\n' $i $((i + 1)); done >>chain.txt
ask="heddle plan 2bw --graph chain.txt --vns 16 --machines 4,2 --bandwidth 1e10,1e9"
expect 0 $ask --json
json_ok
cp out first
same "$(number p),$(number d),$(number m)" 4,2,8 "depth, width, virtual nodes"
same "$(number recompute)" false "recomputation"
same "$(number need_bytes)" 1612000000 "2 W/p + p A/p + p In"
expect 0 $ask --json
cmp -s out first || failed "another plan the second time"
expect 0 $ask
says 'data parallel'
says 'stage 3 '
passed "a plan, as text and JSON"

expect 0 $ask -p 8 -o two.txt --json
same "$(number p)" 8 "the depth that was asked for"
expect 0 heddle plan check two.txt
expect 0 heddle plan draw two.txt
grep -q '^update 2bw' two.txt || failed "the schedule does not say that its updates are delayed"
expect 0 $ask -p 8
says 'was not tried: -p asks for another depth'
expect 0 $ask --memory 1.61e9 --json
same "$(number limit_bytes)" 1610000000 "a limit with an exponent"
expect 0 $ask --memory 1610000000 --json
same "$(number recompute),$(number p)" true,4 "under a limit that wants recomputation"
cat >cluster.yaml <<'END'
kinds: {big: {speed: 1, memory: 16GiB}}
levels:
  - {name: server, components: 4, bytes_per_s: 1e10, latency_ns: 0}
  - {name: rack, components: 2, bytes_per_s: 1e9, latency_ns: 0}
END
expect 0 heddle plan 2bw --graph chain.txt --vns 16 --cluster cluster.yaml --json
same "$(number p),$(number d),$(number limit_bytes)" 4,2,17179869184 "of a cluster file"
passed "a depth, a limit, a cluster file, a schedule that the checker takes"

expect 2 heddle plan 2bw --graph chain.txt --vns 4 --machines 8 --bandwidth 1e9 -p 8
says '2bw needs m >= p; m = 4, p = 8'
expect 2 $ask --memory 100MiB
says 'no (p,d) fits: the smallest need is '
says 'recompute on; a device has 104857600'
expect 2 $ask -p 9
says 'a pipeline of 9 ranks needs as many devices; there are 8'
expect 2 heddle plan 2bw --graph chain.txt --machines 8 --bandwidth 1e9
says 'give --vns V'
expect 2 heddle plan 2bw --graph chain.txt --vns 16
says 'give --machines'
expect 2 heddle plan 2bw --vns 16 --machines 8 --bandwidth 1e9
says 'give --graph FILE'
expect 2 $ask --memory 0
says 'nothing fits'
expect 2 $ask --memory 16GB
says '--memory 16GB: bytes, as 16e9 or 16GiB'
expect 2 $ask --cluster cluster.yaml
says 'leave --machines and --bandwidth out'
expect 3 heddle plan 2bw --graph chain.txt --vns 16 --cluster none.yaml
says 'none.yaml'
passed "bad requests are refused"
