#!/bin/bash
# heddle sched policies, sched solve. The answers themselves: src/scheduler/policy/reference_test.c,
# laws_test.c.
. "$(dirname "$0")/program.sh"
cat >state.json <<'END'
{"jobs": [{"id": 0, "scale_factor": 1, "priority": 1, "steps_remaining": 1000,
           "throughput": {"v100": 4, "k80": 1}},
          {"id": 1, "scale_factor": 1, "priority": 1, "steps_remaining": 500,
           "throughput": {"v100": 3, "k80": 2}},
          {"id": 5, "scale_factor": 4, "priority": 1, "steps_remaining": 500, "throughput": {"v100": 3}}],
 "cluster": {"v100": 1, "k80": 1}, "prices_per_hour": {"v100": 2.5, "k80": 0.5}}
END
expect 0 heddle sched policies
says 'isolated           everyone'
says 'max_min_fairness_perf'
expect 0 heddle sched policies --json
[ "$(grep -c '"name"' out)" -ge 11 ] || failed "not one line a policy"
expect 0 heddle sched solve --state state.json --policy isolated --json
json_ok
says '"allocation":{"0":{"k80":0.5,"v100":0.5},"1":{"k80":0.5,"v100":0.5}}'
says '"code":"UNRUNNABLE"'
expect 0 heddle sched solve --state state.json --policy fifo --json
says '"objective":null,"allocation":{"0":{"v100":1},"1":{"k80":1}}'
expect 0 heddle sched solve --state state.json --policy fifo
says 'job 5 cannot run'
expect 2 heddle sched solve --state state.json --policy fifos
says 'did you mean fifo?'
expect 2 heddle sched solve --state state.json
says 'which policy?'
expect 2 heddle sched solve --policy fifo
says 'which state?'
expect 3 heddle sched solve --state none.json --policy fifo
sed 's/"k80": 2/"k80": -2/' state.json >bad.json
expect 3 heddle sched solve --state bad.json --policy fifo
says 'bad.json: .jobs[1].throughput.k80 is -2; it is steps/s'
printf '{"a": %s, "b": %s}' "$(cat state.json)" "$(cat state.json)" >two.json
expect 3 heddle sched solve --state two.json --policy fifo
says 'choose one by its name'
expect 0 heddle sched solve --state two.json --set b --policy fifo
expect 3 heddle sched solve --state two.json --set c --policy fifo
says 'no state "c"'
# jobs that are resized: of 6 devices the one of twice the weight gets 4
cat >elastic.json <<'END'
{"jobs": [{"id": 0, "scale_factor": 4, "priority": 2, "steps_remaining": 1000, "throughput": {"v100": 4},
           "elastic": {"speedup": [1, 1.5, 2, 2.5], "virtual_nodes": 8, "resize_s": 1}},
          {"id": 1, "scale_factor": 4, "priority": 1, "steps_remaining": 500, "throughput": {"v100": 5},
           "elastic": {"speedup": [1, 1.5, 2, 2.5]}}],
 "cluster": {"v100": 6}}
END
expect 0 heddle sched solve --state elastic.json --policy wfs --json
says '"ways":[{"job":"0","devices":{"v100":4},"share":1,"steps_per_s":4},'
says ',{"job":"1","devices":{"v100":2},"share":1,"steps_per_s":3}]'
expect 0 heddle sched solve --state elastic.json --policy wfs-2020
says '0                4 v100'
sed 's/"speedup": \[1, 1.5, 2, 2.5\], "v/"speedup": [1, 0, 2, 2.5], "v/' elastic.json >bad.json
expect 3 heddle sched solve --state bad.json --policy wfs
says 'bad.json: .jobs[0].elastic.speedup[1] is 0; it is a speed-up'
# a job of much noise learns from larger batches, one of little does not: 1 and 3 of 4 devices at least
cat >goodput.json <<'END'
{"jobs": [{"id": 0, "steps_remaining": 1000, "throughput": {"v100": 4}, "elastic": {"speedup": [1, 2, 3, 4]},
           "goodput": {"ac": 0.05, "bc": 0.001, "ar": 0.05, "br": 0.02, "var": 1, "sqr": 10,
                       "batch": 64, "most_batch": 4096, "most_local": 256}},
          {"id": 1, "steps_remaining": 500, "throughput": {"v100": 5}, "elastic": {"speedup": [1, 2, 3, 4]},
           "goodput": {"ac": 0.05, "bc": 0.001, "ar": 0.05, "br": 0.02, "var": 10000, "sqr": 10,
                       "batch": 64, "most_batch": 4096, "most_local": 256}}],
 "cluster": {"v100": 4}}
END
expect 0 heddle sched solve --state goodput.json --policy goodput --json
says '"ways":[{"job":"0","devices":{"v100":1},"share":1,"steps_per_s":4},'
says ',{"job":"1","devices":{"v100":3},"share":1,"steps_per_s":15}]'
says '"cut":false'
sed 's/"most_batch": 4096, "most_local": 256}}]/"most_batch": 6, "most_local": 256}}]/' goodput.json >bad.json
expect 3 heddle sched solve --state bad.json --policy goodput
says 'is less than the first batch'
sed 's/"sqr": 10,//' goodput.json >bad.json
expect 3 heddle sched solve --state bad.json --policy goodput
says 'sqr'
# what is written wrongly is never passed over
while IFS='|' read -r edit sentence; do
	sed "$edit" state.json >bad.json
	expect 3 heddle sched solve --state bad.json --policy fifo
	says "bad.json: $sentence"
	expect 3 heddle sched whatif 1 --state bad.json --policy fifo --weight 2
	says "bad.json: $sentence"
done <<'END'
s/"priority": 1/"prority": 1/|.jobs[0].prority is no member that is known here; did you mean priority?
s/"v100": 4/"V100": 4/|.jobs[0].throughput.V100 is of a type that "cluster" does not list; did you mean v100?
s/"k80": 0.5/"k8": 0.5/|.prices_per_hour lacks the price of k80
s/"v100": 4/"v100": 1e308/|.jobs[0].throughput.v100 is 1e+308; it is steps/s from 1e-12 to 1e12
s/"prices/"entities":{"a":[0],"b":[1]},"entity_weights":{"a":2},&/|.entity_weights lacks the weight of b
END
passed "states, names and refusals"

if heddle sched policies --json | grep -q '"built":false'; then
	expect 2 heddle sched solve --state state.json --policy las
	says 'needs a solver of linear programs'
	passed "a policy without its solver is refused"
	exit 0
fi
# Two jobs, a device of each type: shares of v100 a and 1 - a, so z is (4a + 1 - a)/2.5 and (3(1 - a) +
# 2a)/2.5: equal at a = 1/2.
expect 0 heddle sched solve --state state.json --policy max_min_fairness_perf --json
json_ok
python3 - <<'END' || failed "shares, objective or prices are wrong"
import json
o = json.load(open("out"))
assert abs(o["objective"] - 1) < 1e-7, o["objective"]
halves = o["allocation"]["0"]["v100"], o["allocation"]["1"]["k80"]
assert all(abs(x - 0.5) < 1e-6 for x in halves), o["allocation"]
assert abs(sum(o["duals"]["promise"].values()) - 1) < 1e-6, o["duals"]
assert o["gap"] <= 1e-7
END
# In steps: 4 + 2 is more than 1 + 3.
expect 0 heddle sched solve --state state.json --policy max_sum_throughput_perf --json
python3 - <<'END' || failed "the sum is wrong"
import json
o = json.load(open("out"))
zero = o["allocation"]["0"]
assert abs(o["objective"] - 6) < 1e-6 and abs(zero["v100"] - 1) < 1e-6 and "k80" not in zero, o
END
cat >one.json <<'END'
{"jobs": [{"id": 3, "steps_remaining": 9, "throughput": {"v100": 4}},
          {"id": 17, "priority": 0.5, "steps_remaining": 9, "throughput": {"v100": 4}}],
 "cluster": {"v100": 1}}
END
expect 0 heddle sched solve --state one.json --policy sum
says 'job 17 waits: v100 is the tight resource'
says 'at priority 1'
# Equals on one device: half each, of which the other would have had all.
sed 's/"priority": 0.5, //' one.json >equal.json
expect 0 heddle sched solve --state equal.json --policy nash
says '3                1 v100            0.25000'
expect 0 heddle sched solve --state equal.json --policy max_min_fairness_strategy_proof --faithful
says '17               1 v100            0.25000'
# Eight devices at once, of which the fast type has four: nothing of it, and the published program's part is
# called what it is.
cat >gang.json <<'END'
{"jobs": [{"id": 1, "scale_factor": 8, "steps_remaining": 3600, "throughput": {"fast": 9, "slow": 1}},
          {"id": 2, "steps_remaining": 3600, "throughput": {"fast": 1, "slow": 1}}],
 "cluster": {"fast": 4, "slow": 8}}
END
expect 0 heddle sched solve --state gang.json --policy las
says '1                8 slow'
if grep -qE '8 fast|more devices than their type has' out err; then
	failed "a share of devices that are not there"
fi
expect 0 heddle sched solve --state gang.json --policy las --faithful
says '1                8 fast'
says 'of these shares are of more devices than their type has'
# Each way out asks the policy again: of 120 jobs for three that wait (400 / 120), however many do; a queue
# solves nothing.
python3 - <<'END' >many.json
import json
jobs = [{"id": i, "priority": 1 if i else 9, "steps_remaining": 9000 + i, "throughput": {"v100": 4}}
        for i in range(120)]
print(json.dumps({"jobs": jobs, "cluster": {"v100": 1}}))
END
expect 0 heddle sched solve --state many.json --policy sum
says 'ways out are sought for 3 of these'
[ "$(grep -c 'waits: v100' out)" = 20 ] && [ "$(grep -c 'waits: v100.*; at priority' out)" = 3 ] ||
	failed "not 20 reasons, or not 3 ways out"
expect 0 heddle sched solve --state many.json --policy fifo
if grep -q 'ways out' out; then failed "a queue is not asked"; fi
passed "objectives, prices and reasons"

# One device, weights 1 and 0.5: two thirds and one; with weight 1 for both, halves.
expect 0 heddle sched whatif 17 --state one.json --policy las --weight 1 --json
json_ok
python3 - <<'END' || failed "the what-if is wrong"
import json
o = json.load(open("out"))
rows = o["affected"]
assert [r["job"] for r in rows] == ["3", "17"], rows
shares = rows[0]["share"] - 2/3, rows[0]["share_then"] - 1/2, rows[1]["share_then"] - 1/2
assert all(abs(x) < 1e-6 for x in shares), rows
END
expect 0 heddle sched whatif --state one.json --policy las --add v100:1
says '2 of 2 jobs are affected'
expect 0 heddle sched whatif --state one.json --policy las --price v100=3
says '0 of 2 jobs are affected'
expect 0 heddle sched whatif 3 --state one.json --policy las --scale 2
says '3              0.66667   0.00000'
expect 2 heddle sched whatif --state one.json --policy las
says 'what if what?'
expect 2 heddle sched whatif --state one.json --policy las --weight 2
says 'whose --weight?'
expect 2 heddle sched whatif 4 --state one.json --policy las --weight 2
says 'no job 4'
expect 2 heddle sched whatif --state one.json --policy las --add k80:1
says 'no type of that name'
expect 2 heddle sched whatif 3 --state one.json --policy las --weight 0
says 'that can be tried'
passed "what changes when a weight, a size, a number of devices or a price does"

# A solver that gives up: equal parts are shown as such, with exit 1 and a way out; whatif shows nothing.
for policy in las sum ftf makespan pop:2:las; do
	expect 1 heddle sched solve --state one.json --policy $policy --lp-iterations 1
	[[ $(head -n 1 out) == "the policy gave up: equal parts"*", no answer of it" ]] ||
		failed "first words of $policy: $(head -n 1 out)"
	says "policy $policy gave up (a program of"
	says 'the limit of iterations or time was reached): the shares above are equal parts'
	says "another policy"
	if grep -qE 'is worth|^[a-z].*: [0-9]' out; then failed "a price or an objective of no answer"; fi
	expect 1 heddle sched solve --state one.json --policy $policy --lp-iterations 1 --json
	json_ok
	says '"objective":null'
	says '"duals":null'
	says '"kept":true,"kept_why":"a program of'
	expect 1 heddle sched whatif --state one.json --policy $policy --add v100:1 --lp-iterations 1
	says 'the policy gave up: a program of'
	[ ! -s out ] || failed "whatif answers for a policy that has not: $(cat out)"
	expect 0 heddle sched solve --state one.json --policy $policy --lp-iterations 1000 --json
	says '"kept":false'
done
for n in 0 4294967296; do
	expect 2 heddle sched solve --state one.json --policy las --lp-iterations $n
	says '--lp-iterations is from 1'
done
passed "a solver that gives up is reported, and nothing is shown as its answer"
