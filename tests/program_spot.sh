#!/bin/bash
# heddle chaos spot JOB: real workers come and go as a script or a trace says, and the bits are those of one
# device. What is asserted hangs on steps, never on how fast they are.
. "$(dirname "$0")/program.sh"
cat >job.yaml <<EOF
job: {name: market, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 10 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 500 ms, pace: 4 ms}
EOF
value() { grep -o "\"$1\":[-0-9.e+]*" out | tail -n 1 | cut -d: -f2; }

# two machines; one has notice and goes, one comes, one is killed, frozen, asked to stop; all vanish, another
# comes and goes on from the checkpoint
cat >script <<'EOF'
{"node":"a","do":"add"}
{"node":"b","do":"add"}
{"node":"b","do":"notice","cloud":"gce","lead":120,"step":10}
{"node":"c","do":"add","members":1}
{"node":"b","do":"kill","step":40}
{"node":"a","do":"kill","step":60}
{"node":"c","do":"freeze","lead":5,"step":70}
{"node":"d","do":"add","step":80}
{"node":"d","do":"signal","sig":"TERM","step":100}
{"node":"c","do":"kill","step":130}
{"node":"d","do":"kill","step":130}
{"node":"e","do":"add","step":130}
{"node":"e","do":"rebalance","step":160}
EOF
expect 0 heddle chaos spot job.yaml --script script --speed 100 --out script.runs --json
says '"identical":true'
same "$(value added) $(value removed) $(value noticed)" "5 4 1" "machines that came, went, had notice"
[ "$(value steps)" -ge 130 ] || failed "$(value steps) steps"
grep -q '"do":"notice","node":"b"' out || failed "no line of an event"
grep -q '"kind":"notice".*"source":"gce"' script.runs/chaos/events.ndjson || failed "the worker heard nothing"
grep -q '"kind":"restore\|"kind":"view"' script.runs/chaos/events.ndjson || failed "no view"
passed "machines by a script: notice, kill, freeze, signal, all gone and one new; bits of one device"

# two pipelines of two stages with shadows that compute: a machine with notice hands its stage on, and nothing
# is computed twice; one that just goes costs no checkpoint. The ledger's parts are all that was paid.
cat >script <<'EOF'
{"node":"a","do":"add"}
{"node":"b","do":"add"}
{"node":"c","do":"add"}
{"node":"d","do":"add"}
{"node":"b","do":"notice","cloud":"ec2","lead":6000,"step":6,"members":4}
{"node":"b","do":"kill","members":3}
{"node":"e","do":"add"}
{"node":"c","do":"kill","step":20,"members":4}
{"node":"a","do":"rebalance","members":3}
EOF
expect 0 heddle chaos spot job.yaml --script script --speed 100 --out shadow.runs --json -s optim.lr=1e-3 \
	-s model.args.hidden='[700, 600, 300]' -s model.args.input='[1, 16, 16]' -s comm.sync=stages \
	-s parallel.mode=pipeline -s parallel.stages=2 -s parallel.replicas=2 -s elastic.redundancy=eager \
	-s checkpoint.every='1000 steps' -s batch.global=24 -s batch.virtual_nodes=8
says '"identical":true'
! grep -q '"kind":"restore"' shadow.runs/chaos/events.ndjson || failed "a loss went back to a checkpoint"
lost=$(grep -m 1 '"kind":"lost"' shadow.runs/chaos/events.ndjson | grep -o '"step":[0-9]*' | cut -d: -f2)
[ "$lost" -ge 20 ] || failed "the machine with notice was lost in step $lost"
! head -n 20 shadow.runs/chaos/metrics.ndjson | grep -v '"redone_vn":0' ||
	failed "virtual nodes are computed twice for a machine that had notice"
tail -n 1 out | awk '{
	n = split(substr($0, index($0, "\"paid\":")), part, /":{"ms":|,"nano_usd":|[,}]/)
	for (i = 1; i + 2 <= n; i++)
		if (part[i] ~ /^"/) {
			name = substr(part[i], 2)
			ms[name] = part[i + 1]
			usd[name] = part[i + 2]
		}
	split("useful redundant bubble pause redo rebuild waiting boot", all, " ")
	for (i in all) { ms_sum += ms[all[i]]; usd_sum += usd[all[i]] }
	exit !(ms_sum == ms["paid"] && usd_sum == usd["paid"] && ms["redundant"] > 0 && ms["useful"] > 0)
}' || failed "the parts are not what was paid: $(tail -n 1 out)"
passed "shadows on machines that come and go: nothing is computed twice after a notice, no step is lost"

# a run gives up with too few machines, and goes on when there are enough
cat >starve <<'EOF'
{"node":"a","do":"add"}
{"node":"b","do":"add"}
{"node":"b","do":"kill","step":20}
{"node":"c","do":"add","when":"starved"}
{"node":"c","do":"rebalance","step":40}
EOF
expect 0 heddle chaos spot job.yaml --script starve --out starved.runs --json -s workers.min=2 \
	-s "workers.min_wait=500 ms"
says '"identical":true'
[ "$(value steps)" -ge 40 ] || failed "it did not go on"
grep -q '"kind":"job_end".*"exit":10' starved.runs/chaos/events.ndjson || failed "it did not give up with 10"
passed "too few machines: checkpoint and exit 10, resumed when they are there"

# a job that ends by its steps before the script does: its coordinator writes what was paid, and that it ended
cat >short <<'EOF'
{"node":"a","do":"add"}
{"node":"b","do":"add"}
{"node":"b","do":"kill","step":100000}
EOF
expect 0 heddle chaos spot job.yaml --script short --steps 60 --out short.runs --json
says '"identical":true'
for kind in paid job_end; do
	grep -q "\"kind\":\"$kind\"" short.runs/chaos/events.ndjson || failed "no event $kind"
done
passed "a job that ends before its script leaves by itself"

# whoever played it is killed, and so was the coordinator before, whose place one has taken that a worker
# started: nothing is left
cat >script <<'EOF'
{"node":"a","do":"add"}
{"node":"b","do":"add"}
{"node":"b","do":"kill","step":1000000}
EOF
ours() { pgrep -f "$work/killed.runs( |$|/)"; }
none_left() { ! ours >/dev/null; }
took_over() { pgrep -f "serve --job $work/killed.runs/chaos" >/dev/null && answers_now killed.runs/chaos; }
"$HEDDLE_BIN" chaos spot job.yaml --script script --out "$work/killed.runs" -q >/dev/null 2>log &
play=$!
reach killed.runs/chaos 20
kill -9 $(pgrep -f "run job.yaml .*--out $work/killed.runs/chaos")
await took_over || failed "no worker has taken over"
kill -9 $play
wait $play 2>/dev/null
await none_left || failed "left behind: $(ps -o pid,args -p "$(ours | tr '\n' ,)0")"
passed "a play that is killed leaves no process behind"

# a trace: what is left out beyond --max-nodes, what is measured, and the same on a simulated clock
printf '%s\n' 0,add,a 0,add,b 0,add,c 60000,remove,b 70000,add,d 80000,remove,a 120000,remove,d \
	>trace.csv
# a virtual node takes 5 ms, so a step of 13 on one device 65, of 7 on the fuller of two 35, at the least
expect 0 heddle chaos spot job.yaml --trace trace.csv --speed 10 --max-nodes 2 --notice ec2:20 \
	--vn-time 5ms --out trace.runs
grep -o '"step_ms":\[[0-9,]*' trace.runs/model.json | tr '[,' '  ' |
	awk '{ exit !(NF == 3 && $2 >= 650 && $3 >= 350) }' ||
		failed "steps were shorter: $(cat trace.runs/model.json)"
says '3 came, 3 went (3 with notice), at most 2 at once'
says 'IDENTICAL'
grep -q '"kind":"notice".*"source":"ec2"' trace.runs/chaos/events.ndjson || failed "no worker heard of EC2"
says ' checkpoint-and-restart at its best, every '
says ' machines on demand (3.06 an hour): '
expect 0 heddle chaos spot job.yaml --trace trace.csv --max-nodes 2 --simulate --json \
	--model trace.runs/model.json
json_ok
says '"resilience":"reroute","checkpoint_every":10'
same "$(number removals)" 3 "removals on a simulated clock"
passed "a trace with real workers, measured, and played again on a simulated clock"

# every format that traces are published in
while read -r file speed; do
	trace=$(material data/spot/$file) || { echo "skip: data/spot is nowhere"; break; }
	expect 0 heddle chaos spot job.yaml --trace "$trace" --speed $speed --max-nodes 2 --json -q \
		--out $file.runs
	says '"identical":true'
	passed "$file plays"
done <<'EOF'
p3-trace.csv 4000
g4dn-trace.csv 4000
gcloud-a100x1-east1b.txt 10000
gcloud-v100x1-east1c.txt 10000
EOF

expect 2 heddle chaos spot job.yaml
says '--trace FILE says when machines come and go, or --script FILE: one of them'
expect 2 heddle chaos spot job.yaml --trace trace.csv --vn-time 2000
says '--vn-time 2000: '
expect 2 heddle chaos spot job.yaml --trace trace.csv --vn-time 5ms -s comm.sync=stages \
	-s parallel.mode=pipeline
says '--vn-time is of whole virtual nodes, and this job has stages'
expect 2 heddle chaos spot job.yaml --trace trace.csv --slow 0
expect 2 heddle chaos spot job.yaml --trace trace.csv --notice soon
says '--notice soon: it is none, ec2:SECONDS'
expect 2 heddle chaos spot job.yaml --trace trace.csv --simulate
says '--simulate needs --model FILE'
expect 2 heddle chaos spot job.yaml --trace trace.csv --max-nodes 0
echo '{"node":"a","do":"kill"}' >bad
expect 3 heddle chaos spot job.yaml --script bad --out bad.runs
says 'bad:1: machine a is not there yet'
printf '%s\n' '{"node":"a","do":"add"}' '{"node":"a","do":"kill"}' '{"node":"a","do":"add"}' >bad
expect 3 heddle chaos spot job.yaml --script bad --out bad2.runs
says 'bad:3: machine a was there already'
[ ! -e bad2.runs ] || failed "a script that cannot be played began a run"
: >none
expect 3 heddle chaos spot job.yaml --trace none --out bad3.runs
says 'no machine ever comes'
expect 3 heddle chaos spot --script bad
says 'bad:1: machines come and go of a job alone'
passed "what is missing or wrong is said"
