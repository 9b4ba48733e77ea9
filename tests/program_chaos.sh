#!/bin/bash
# Faults into runs of several workers: of each kind, and a death at each named place; the bits of one device
# all the same.
. "$(dirname "$0")/program.sh"
cat >job.yaml <<END
job: {name: chaos, seed: 3, steps: 100000}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: [48, 32], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 96, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 250 ms, pace: 4 ms}           # a step computes next to nothing, and lasts
END
points=false
has_failpoints && points=true
steps=${HD_CHAOS_STEPS:-4000}

answers() { await answers_now "$1" || failed "no coordinator of $1"; }
is_over() { await not answers_now "$1" || failed "$1 goes on after it was stopped"; }

# a run that goes on, and each verb on it
"$HEDDLE_BIN" run job.yaml --out live --workers 3 --devices 1 --steps 100000 -s trace.samples=true \
	-q 2>log &
reach live 20
expect 0 heddle chaos kill live --kills 2 --mtbf 300 --seed 4 --target worker
says '2 of 2: kill'
expect 0 heddle chaos pause live --for 700 --target worker
says '1 of 1: pause'
expect 0 heddle chaos slow live --slow 3 --for 500 --count 2 --mtbf 100
says '2 of 2: slow'
expect 0 heddle chaos kill live --target coordinator --json
says '"fault":"kill","times":1'
answers live
if $points; then
	for how in cut drop delay; do
		expect 0 heddle chaos net live --how $how --for 600
		says '1 of 1: net'
		answers live
	done
	for how in full error slow; do
		expect 0 heddle chaos disk live --how $how --for 400
		says '1 of 1: disk'
		answers live
	done
	[ -z "$(ls live/chaos)" ] || failed "orders stay behind: $(ls live/chaos)"
else
	expect 11 heddle chaos net live
	says 'this build has no failpoints'
fi
reach live $(($(step live) + 50))
expect 2 heddle chaos net live --how full
says 'of a net it is cut, drop or delay'
expect 0 heddle stop live
is_over live
expect 0 heddle ckpt show live --json
last=$(number step)
expect 0 heddle run job.yaml --out live-twin --devices 1 --steps "$last" -q
expect 0 heddle ckpt diff live live-twin
says 'digest logs agree'
expect 0 heddle data verify live
says "ok: in $last steps"
passed \
	"kill, pause, slow$($points &&
	echo ", net, disk") into a live run of $last steps: not a bit of difference"

# a coordinator dies between a learner that is ready and its first view: its source sends the state once
# more, and goes on
if $points; then
	sed 's/every: 100 steps/every: 100000 steps/' job.yaml >rare.yaml
	# the first change that is planned; a first view is none
	mkdir -p -m 700 joining joining/chaos && echo co.prepare:kill@1 >joining/chaos/any
	"$HEDDLE_BIN" run rare.yaml --out joining --workers 1 --devices 1 --steps 100000 -q 2>log &
	reach joining 20
	expect 0 heddle scale joining 2
	two() { heddle status joining --json 2>/dev/null | grep -q '"members":2'; }
	await two || failed "the learner did not become a member under the next coordinator"
	[ "$(echo joining/chaos/hit.co.prepare.*)" != 'joining/chaos/hit.co.prepare.*' ] ||
		failed "no coordinator died at co.prepare"
	reach joining $(($(step joining) + 50))
	expect 0 heddle stop joining
	is_over joining
	passed "a learner goes on with its donor under another coordinator"

	# all links close while the coordinator stands; those of the workers are back before it can be asked
	sed 's/detect: 250 ms/detect: 1 s/' rare.yaml >calm.yaml
	"$HEDDLE_BIN" run calm.yaml --out apart --workers 2 --devices 1 --steps 100000 -q 2>log &
	coordinator=$!
	reach apart 50
	hands=$(heddle status apart --json | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2)
	mkdir -p apart/chaos
	kill -STOP $coordinator
	for hand in $hands; do echo 'wire.read:err=ECONNRESET' >order && mv order "apart/chaos/$hand"; done
	sleep 0.8                         # T/4, a heartbeat, and some
	for hand in $hands; do rm -f "apart/chaos/$hand"; done
	sleep 1.2
	kill -CONT $coordinator
	sleep 2
	answers apart
	reach apart $(($(step apart) + 50))
	expect 0 heddle stop apart
	is_over apart
	passed "links that closed unheard are mended"
fi

# a slice of the long suite (tools/chaos.sh)
faults=pause=1,slow=1,scale=1
$points && faults=point=10,net=1,disk=1,$faults
kills=0
for seed in $(seq 5 24); do       # how many of them a run has time for is a matter of the machine's speed
	"$HEDDLE_BIN" chaos run job.yaml --seed $seed --kills $($points && echo 6 || echo 10) \
		--faults $faults --steps "$steps" --workers 3 --out slice-$seed --json >out 2>err ||
		[ $? -eq 1 ] || failed "seed $seed: $(cat err)"
	says '"identical":true'
	says '"exact":'$([ $((seed / 2 % 2)) = 0 ] && echo true || echo null)
	kills=$((kills + $(number kills)))
	expect 0 heddle ckpt diff slice-$seed/chaos slice-$seed/undisturbed
	[ $kills -lt 10 ] || break
done
[ $kills -ge 10 ] || failed "$kills kills in twenty runs, 10 were planned for one"
passed "$kills kills and other faults over $steps steps"

if ! $points; then
	expect 11 heddle chaos run job.yaml --points 1 --out points
	says 'this build has no failpoints'
fi

# a job whose steps are over at once is slowed down: an order for a number of kills gets them all, and folders
# of their own
cat >short.yaml <<END
job: {name: short, seed: 5, steps: 90}
model: {use: "builtin:mlp", args: {input: [1, 4, 4], hidden: [16], classes: 3}}
data: {kind: synthetic, count: 100}
batch: {global: 16, virtual_nodes: 4}
optim: {kind: sgd, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
eval: {every: 0}
workers: {detect: 250 ms}
END
for n in '' -2; do
	most=$([ "$n" ] && echo 1 || echo 5)
	expect 0 heddle chaos run short.yaml --seed 3 --kills "$most" --json
	says '"steps":90'                # as many as the job has
	says '"identical":true'
	[ "$(number pace_ms)" -gt 0 ] ||
		failed "a run that would be over at once is not slowed down: $(cat out)"
	[ "$(number kills)" -ge "$most" ] || failed "$(number kills) of $most kills: $(cat out)"
	expect 0 heddle ckpt diff runs/chaos$n/chaos runs/chaos$n/undisturbed
done
expect 0 heddle run short.yaml -s workers.pace=50ms --workers 2 --devices 1 --steps 20 --out paced -q
tail -n 1 paced/metrics.ndjson | grep -o '"t":[0-9.]*' | awk -F: '{ exit !($2 >= 20 * 0.05) }' ||
	failed "20 steps of at least 50 ms: $(tail -n 1 paced/metrics.ndjson)"
passed "each kill has its turn in a job whose steps are over at once"

# three steps are over before so many have had their turn; with the pace of its own such a run would have no
# second between two kills for minutes
sed -e 's/, pace: 4 ms//' -e 's/global: 96/global: 480/' -e 's/48, 32/160, 64/' job.yaml >hasty.yaml
expect 1 heddle chaos run hasty.yaml --seed 1 --kills 4000 --faults scale=0 --steps 3 --workers 1 \
	--out brief -s workers.pace='1 ms'
says 'of 4000 that were planned ('
says 'planned faults did not happen'

expect 2 heddle chaos run job.yaml --out slice-5/
says 'is there already'
expect 2 heddle chaos run job.yaml --faults pause=x --out no
says 'write KIND=N'
expect 2 heddle chaos run job.yaml --steps 200000 --out no
says 'the job has 100000'
expect 3 heddle chaos kill nowhere
expect 3 heddle chaos kill live
says 'no process coordinates'
passed "refusals say what and what to do"
