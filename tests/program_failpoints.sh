#!/bin/bash
# Killed at each named place, then resumed: the state is that of an undisturbed run.
. "$(dirname "$0")/program.sh"
write_jobs 6
needs_failpoints
# those that a run of one process comes by, but of a graph, and of no scheduler; program_chaos.sh has
# the others
names=$(sed -n 's/^\tX([A-Z_]*, *"\([a-z.]*\)", *[a-z]*, *ANY,.*/\1/p' "$SOURCE_DIR/src/sys/failpoint.h" |
	grep -vxE "graph.part|blob.read|uring.open|backup.whole|restore.place|replace.tried|replace.ended" |
	grep -vxE "account.lend|sweep.spawn|sweep.mark")
[ "$(echo "$names" | wc -l)" -ge 17 ] || failed "the names of failpoint.h were not found"
train run gpt.yaml --out whole
whole=$digest

# At which time the place is reached: late enough that a checkpoint is there.
nth()
{
	case $1 in
	ckpt.write.* | ckpt.fsync) echo 8 ;;
	events.write) echo 12 ;;
	ckpt.gc) echo 1 ;;
	*) echo 3 ;;
	esac
}

for name in $names; do
	rm -rf killed
	HD_FAIL="$name:kill@$(nth "$name")" expect 137 heddle run gpt.yaml --devices 2 --out killed -q
	train resume killed --devices 3
	same "$digest" "$whole" "killed at $name"
	[ -z "$(find killed -name '*.tmp*')" ] ||
		failed "$name: something temporary is left: $(find killed -name '*.tmp*')"
	expect 0 heddle ckpt verify killed
done
passed "killed at each of $(echo "$names" | wc -l) places and resumed: the digest of the undisturbed run"

for name in metrics.write events.write; do
	rm -rf killed
	HD_FAIL="$name:err=ENOSPC" expect 0 heddle run gpt.yaml --out killed
	says 'could not be written'
	same "$(heddle ckpt digest killed)" "$whole" "$name fails"
done
passed "lines that cannot be written cost a warning and no bit"

# a learner that takes up 0.7 MiB/s of what a step adds 11 MiB to: its donor gives up, time and again, unless
# a step takes 16 s
cat >wide.yaml <<JOB
job: {name: wide, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [1500, 1500], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 32, virtual_nodes: 4}
optim: {kind: sgd, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
eval: {every: 0}
workers: {detect: 400 ms}
JOB
"$HEDDLE_BIN" run wide.yaml --out wide --workers 1 --devices 1 -q 2>log &
run=$!
reach wide 10
HD_FAIL=learn.piece:delay=1500 "$HEDDLE_BIN" worker --join wide --devices 1 -q 2>slow.log &
here() { heddle status wide | grep -Eq "$1"; }
await here ' (standby|learning) ' || failed "the slow joiner did not come"
expect 0 heddle scale wide 2
twice() { [ "$(grep -c '"kind":"aside"' wide/events.ndjson)" -ge 2 ]; }
await twice || failed "no event says that it is too slow"
await here ' aside ' || failed "it is learning all the time"
"$HEDDLE_BIN" worker --join wide --devices 1 -q 2>quick.log &
await here '2 of 2 workers' || failed "it keeps another one from its place"
expect 0 heddle stop wide --now
wait $run || true
passed "a joiner that is too slow backs off, status and events say so, and another takes its place"

# each worker's first call of worker 0 fails, the next one comes T/4 later: the first step waits for it
HD_FAIL="wire.connect:err=ECONNRESET#0@1" expect 0 heddle run gpt.yaml --out late --workers 3 --json -q \
	-s workers.detect=12s
same "$(number digest)" "$whole" "the digest of a run with a late link"
same "$(grep -c '"kind":"view"' late/events.ndjson)" 1 "views of a run with a late link"
passed "a link that comes up after the first view: no step is begun twice"

# a step that takes its workers with it each time: the run ends after a few of them
HD_FAIL="step.seal:kill@1" expect 10 heddle run gpt.yaml --out fells --workers 1 -q
says 'step 0: its workers ended in it 5 times in a row'
passed "a step that ends its workers again and again ends the run"

# a worker dies as it runs ahead, before and after others have its sums
train run gpt.yaml --out unclipped -s optim.clip=0
for at in allreduce:2 allreduce:5 sharded:3; do
	rm -rf dies
	HD_FAIL="ahead.run:kill#1@${at#*:}" expect 0 heddle run gpt.yaml --out dies --workers 3 --devices 1 \
		--json -q -s optim.clip=0 -s comm.sync=${at%:*}
	same "$(number digest)" "$digest" "killed as it ran ahead, $at"
	[ "$(grep -c '"kind":"view"' dies/events.ndjson)" -ge 2 ] || failed "$at: nothing was killed"
	grep -q '"kind":"overlap".*on the new parameters' dies/events.ndjson || failed "$at: no event"
done
# parameters that are made beside a pass go to the third worker; when, depends on speeds
cat >rows.yaml <<'END'
job: {seed: 5, steps: 16}
model: {use: builtin:resnet18, args: {stem: small, channels: 1, height: 16, width: 16, base: 16, classes: 5}}
data: {kind: synthetic, count: 60}
batch: {global: 24, virtual_nodes: 6}
optim: {kind: adamw, lr: 1e-3, clip: 0}
comm: {buckets: none}
trace: {digest: 1000}
END
expect 0 heddle run rows.yaml --out rows -q
rows=$(heddle ckpt digest rows)
for at in 1 5; do
	rm -rf dies
	HD_FAIL="params.early:kill#1@$at" expect 0 heddle run rows.yaml --out dies --workers 3 --devices 1 \
		-q -s comm.sync=parameter-server
	same "$(heddle ckpt digest dies)" "$rows" "killed with parameters made beside its pass, number $at"
done
expect 0 heddle run gpt.yaml --out waits --workers 2 --devices 1 --json -q
grep -q '"kind":"overlap".*optim.clip needs the norm' waits/events.ndjson || failed "no event says why"
expect 0 heddle run gpt.yaml --out drained --workers 2 --devices 1 -q -s comm.overlap=off
grep -q '"kind":"overlap".*comm.overlap is off' drained/events.ndjson || failed "no event says that it is off"
passed "a death as the next step is run ahead costs no bit; an event says whether steps overlap, or why not"
