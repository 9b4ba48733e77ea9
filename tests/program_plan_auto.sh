#!/bin/bash
# heddle plan auto: a plan that plan check takes, equal bytes, reasons, and refusals that say what would work.
. "$(dirname "$0")/program.sh"
node() { profile_node "$1" Op "${@:2}"; }
{
	for i in 1 2 3 4 5 6 7 8; do node n$i 4 8 1000 $((i == 8 ? 400000000 : 1000)); done
	for i in 1 2 3 4 5 6 7; do printf '\tn%d -- n%d\n' $i $((i + 1)); done
} >chain.txt
cat >four.yaml <<'END'
kinds: {plain: }
levels: [{name: server, components: 4, bytes_per_s: 1e9, latency_ns: 1000}]
END
auto() { heddle plan auto --profile chain.txt --cluster four.yaml --vns 16 "$@"; }

# Data parallel sums 400 MB over 1e9 B/s: more than a pipeline's fill.
expect 0 auto --json -o auto.plan
json_ok
awk -v t="$(number predicted_s)" -v one="$(number one_device_s)" -v data="$(number data_parallel_s)" \
	'BEGIN { exit !(t > 0 && t <= one && t <= data) }' ||
	failed \
		"the plan takes $(number predicted_s) s, one device $(number \
		one_device_s), data parallel $(number data_parallel_s)"
same "$(number one_device_s)" 1.536 "one device: 16 virtual nodes of 96 ms"
[ "$(number p)" -gt 1 ] || failed "no pipeline, though sums of gradients cost more"
says '"why":['
says '"alternatives":[{'
says '"held_back_by":'
says '"not_gone_through":"0","not_gone_through_first":[]'
cp out one.json
cp auto.plan one.plan
expect 0 auto --json -o auto.plan
cmp -s out one.json || failed "another answer the second time"
cmp -s auto.plan one.plan || failed "another plan the second time"
expect 0 heddle plan check auto.plan
says 'accepted auto '
expect 0 heddle plan draw auto.plan
passed "a plan, checked, twice the same bytes"

# so many virtual nodes that the search is bounded: what it left is named, and a shape of it can be asked for
# by itself
sed 's/components: 4, bytes_per_s: 1e9/components: 8, bytes_per_s: 1e10/' four.yaml >eight.yaml
{
	for i in {1..16}; do node n$i $((i % 3 + 3)) 8 1000 $((i == 8 ? 400000000 : 1000)); done
	for i in {1..15}; do printf '\tn%d -- n%d\n' "$i" $((i + 1)); done
} >long.txt
many() { heddle plan auto --profile long.txt --cluster eight.yaml --vns 3000 "$@"; }
expect 0 many
says ' shapes more may be better, and the search is bounded; '
says '; asked for by itself each is gone through: --schedule '
read -ra asked < <(sed -n 's/.*is gone through: \(--schedule [^,(]*\).*/\1/p' out)
expect 0 many --json
says '"not_gone_through_first":[{"schedule":"'
[ "$(number not_gone_through)" -gt 0 ] ||
	failed "it says of $(number not_gone_through) shapes that they were left"
expect 0 many "${asked[@]}"
! grep -q 'shapes more may be better' out ||
	failed "a shape asked for by itself is not gone through: ${asked[*]}"
passed "what the bounded search does not go through is said"

expect 0 auto --explain
says 'a step of 16 virtual nodes:'
says 'one device: 1.536 s'
says 'stages: data parallel would sum 400 MB of weights a step'
says '% slower'
says 'simulated'
[ "$(grep -c '^[0-9]*\. ' out)" -gt 5 ] || failed "--explain tells too few alternatives"
expect 0 auto
[ "$(grep -c '^[0-9]*\. ' out)" -eq 2 ] || failed "two runners-up are named without --explain"
expect 0 auto -p 2 --pipelines 2 --schedule 1f1b --json
says '"schedule":"1f1b","t":1,"p":2,"d":2,"v":1'
expect 0 auto -p 4 --recompute stage --json
says '"recompute":true'
expect 0 auto --update 2bw -p 2 --json
says '"schedule":"2bw"'
for update in stash vsync; do
	expect 0 auto --update $update -p 2 -o auto.plan
	says "update $update: these 2 stages become part of the job"
	expect 0 heddle plan check auto.plan
	expect 2 auto --update $update --pipelines 2
	says 'so there is one pipeline'
done
passed "reasons; what is asked for is kept"

cat >two.yaml <<'END'
kinds: {new: {speed: 1}, old: {speed: 0.5}}
levels: [{name: server, components: 2, bytes_per_s: 1e12}]
devices: [{kind: new, count: 1}, {kind: old, count: 1}]
END
node only 10 20 1000 1000 >one.txt
expect 0 heddle plan auto --profile one.txt --cluster two.yaml --vns 9 --json
says '"share":[6,3]'
passed "the faster device takes more"

expect 2 heddle plan auto --cluster four.yaml --vns 16
says 'of which model? give --profile FILE'
expect 2 heddle plan auto --profile chain.txt --vns 16
says 'on which devices? give --cluster FILE'
expect 2 heddle plan auto --profile chain.txt --cluster four.yaml
says 'give --vns V'
expect 3 heddle plan auto --profile chain.txt --cluster none.yaml --vns 16
says 'none.yaml'
sed 's/1e9/fast/' four.yaml >bad.yaml
expect 3 heddle plan auto --profile chain.txt --cluster bad.yaml --vns 16
says 'bad.yaml:2:53: bytes_per_s is a number from 1 to 1e+15, not fast'
expect 2 auto -p 9
says 't = 1, p = 9, d = 1 are more than the 4 devices'
expect 2 heddle plan auto --profile chain.txt --cluster four.yaml --vns 3 --update 2bw -p 4
says '2bw needs m >= p; m = 3, p = 4'
sed 's/plain: /plain: {memory: 100MiB}/' four.yaml >small.yaml
expect 2 heddle plan auto --profile chain.txt --cluster small.yaml --vns 16
says 'no plan fits the memory: the smallest need is about '
need=$(sed -n 's/.*the smallest need is about \([0-9]*\) bytes.*/\1/p' err)
sed "s/plain: /plain: {memory: $((need + need / 10))}/" four.yaml >enough.yaml
expect 0 heddle plan auto --profile chain.txt --cluster enough.yaml --vns 16
passed "refusals with their place, and with what would work"
