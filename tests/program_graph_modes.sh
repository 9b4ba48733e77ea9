#!/bin/bash
# A graph in intervals whose rows of others are late. batch.mode exact: the bits of one device on any devices
# and workers, after a resume, and whoever dies; bounded: replay has the bits of what was recorded, also where
# a virtual node was a step ahead of others.
. "$(dirname "$0")/program.sh"
needs_failpoints

awk 'BEGIN { for (i = 0; i < 80; i++) { print i, (i + 1) % 80; print i, (i * 7 + 3) % 80 } }' >edges.txt
awk 'BEGIN { for (i = 0; i < 80; i++) print i % 4, i ":1" }' >features.svm
awk 'BEGIN { printf "train"; for (i = 0; i < 80; i++) printf " %d", i; print "" }' >split.txt
expect 0 heddle data prepare-graph --edges edges.txt --features features.svm --split split.txt --directed \
	--intervals 4 --splitter own -o g.graph -q
cat >job.yaml <<END
job: {name: late, seed: 3, steps: 8}
model: {use: "builtin:gcn", args: {input: 80, classes: 4, slots: 3}}
data: {kind: graph, path: g.graph, order: sequential}
batch: {global: 80, virtual_nodes: 4, mode: exact, staleness: 2, cells: 2}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 3 steps, keep: 3}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 2 s}
END
run() { heddle run job.yaml --json -q --out "$@"; }
expect 0 run one --devices 1
first=$(number digest)
for other in staleness=1 cells=4; do
	expect 0 run "$other" --devices 1 -s batch.$other
	[ "$(number digest)" != "$first" ] || failed "$other has the same bits"
done
expect 0 run sync --devices 1 -s batch.mode=sync -s batch.staleness=0 -s batch.cells=1
sync=$(number digest)
[ "$sync" != "$first" ] || failed "rows that are late make no difference"
expect 0 run zero --devices 2 -s batch.staleness=0
same "$(number digest)" "$sync" "exact 0 and sync"
expect 0 run three --devices 3
same "$(number digest)" "$first" "three devices"
for n in 2 4; do
	expect 0 run w$n --workers $n --devices 1
	same "$(number digest)" "$first" "$n workers"
done
expect 0 heddle ckpt diff w4 one
says 'digest logs agree in 8 steps'
passed "rows that are late are the same on devices and workers"

expect 0 run part --devices 1 --steps 5
expect 0 heddle resume part --workers 3 --devices 1 --json -q
same "$(number digest)" "$first" "resumed on three workers"
"$HEDDLE_BIN" run job.yaml --out grow --workers 1 --devices 1 -s job.steps=1000000 -q 2>log &
run=$!
reach grow 10
expect 0 heddle scale grow 2 --wait
stops_with_bits_of_one grow job.yaml "1 worker, then 2"
passed "rows that are late go through a checkpoint, and to a worker that joins"

# a worker with one device beside one with four: none of the four virtual nodes are its own
idle() {       # NAME ARGS
	"$HEDDLE_BIN" run job.yaml --out "$1" --workers 1 --devices 4 -s job.steps=50000 \
		-s elastic.straggler.act=false "${@:2}" -q 2>log &
	run=$!
	reach "$1" 3
	"$HEDDLE_BIN" worker --join "$1" --devices 1 -q 2>idle.log &
	joined=$!
	stands_by() { heddle status "$1" 2>/dev/null | grep -q standby; }
	await stands_by "$1" || failed "the worker of one device did not come: $(cat idle.log)"
	expect 0 heddle scale "$1" 2 --wait
	reach "$1" $(($(step "$1") + 20))
	heddle status "$1" | grep -qE '^ +1  member +[0-9]+ +1 +0 ' ||
		failed "worker 1 has virtual nodes, or is lost: $(cat idle.log)"
	! grep '"kind":"lost"' "$1/events.ndjson" || failed "a worker without virtual nodes is lost"
}
idle idle
stops_with_bits_of_one idle job.yaml "a worker without virtual nodes"
wait $joined || [ $? -eq 75 ] || failed "the worker without virtual nodes ended badly: $(cat idle.log)"
idle idle-free -s batch.mode=bounded -s batch.staleness=0 -s batch.cells=1
expect 0 heddle stop idle-free
wait $run || [ $? -eq 75 ] || failed "bounded ended badly: $(cat log)"
wait $joined || [ $? -eq 75 ] || failed "the worker without virtual nodes ended badly: $(cat idle.log)"
passed "a worker without virtual nodes has the rows of the others"

# four meetings a step: the second forwards and the first backwards of step 2, which reads late rows
for nth in 10 11; do
	for try in 1 2 3 4 5 6 7 8; do
		rm -rf killed
		HD_FAIL="sync.here:kill#1@$nth" expect 0 run killed --workers 2 --devices 1
		grep -q '"text":"step [01] is begun again' killed/events.ndjson || break
	done
	same "$(number digest)" "$first" "the digest after a death at meeting $nth"
	grep -q '"text":"step 2 is begun again' killed/events.ndjson ||
		failed "meeting $nth: step 2 was not begun again: $(cat killed/events.ndjson)"
done
passed "a worker dies where rows meet: begun again, equal bits"

# what waits for no row records which were late; a replay on other devices has the same bits
mode() { run "$2" -s batch.mode="$1" -s batch.staleness=0 -s batch.cells=1 "${@:3}"; }
free() { mode bounded "$@"; }
again() { mode replay "$2-of-$1" -s batch.replay="$1" "${@:3}"; }
expect 0 free free-d --devices 3
expect 0 free free-w --devices 1 --workers 4
for of in free-d free-w; do
	[ $of = free-d ] && on='--workers 2' || on=
	expect 0 again $of again --devices 1 $on
	expect 0 heddle ckpt diff again-of-$of $of
	says 'IDENTICAL'
	says 'digest logs agree in 8 steps'
done
passed "a replay has the bits of what it replays, on one device and on two workers"

expect 0 free part-free --devices 3 --steps 5
expect 2 again part-free no
says 'part-free has recorded 5 of 8 steps: let that run end first (heddle resume)'
expect 0 heddle resume part-free --workers 3 --devices 1 --json -q
expect 0 again part-free one --devices 2
expect 0 heddle ckpt diff one-of-part-free part-free
says 'IDENTICAL'
for try in 1 2 3 4 5 6 7 8; do
	rm -rf killed
	HD_FAIL="sync.here:kill#1@11" expect 0 free killed --workers 2 --devices 1
	grep -q '"text":"step [01] is begun again' killed/events.ndjson || break
done
expect 0 again killed one --devices 1
expect 0 heddle ckpt diff one-of-killed killed
says 'IDENTICAL'
passed "the recording goes through a checkpoint, and is that of the steps that counted"

# device 1, or worker 1, is slow, so that others are a step ahead of it
ahead() { run "$1" -s batch.mode=bounded -s batch.staleness=1 -s batch.cells=1 "${@:2}"; }
ahead_again() { again "$1" "$2" -s batch.staleness=1 "${@:3}"; }
HD_FAIL="graph.part:delay=4#1" expect 0 ahead ahead-d --devices 3
HD_FAIL="graph.part:delay=4#1" expect 0 ahead ahead-part --devices 2 --steps 5
expect 0 heddle resume ahead-part --workers 2 --devices 1 --json -q
for try in 1 2 3 4 5 6 7 8; do
	rm -rf ahead-w
	HD_FAIL="sync.here:kill#1@11" expect 0 ahead ahead-w --devices 1 --workers 3
	grep -q '"text":"step [01] is begun again' ahead-w/events.ndjson || break
done
grep -q '"kind":"afresh"' ahead-w/events.ndjson || failed "no step was begun again"
for of in ahead-d ahead-part ahead-w; do
	[ $of = ahead-d ] && on='--workers 2' || on=
	expect 0 ahead_again $of again --devices 1 $on
	expect 0 heddle ckpt diff again-of-$of $of
	says 'IDENTICAL'
done
expect 2 again ahead-d no
says 'was recorded with batch.staleness 1, and this job has 0: replay the job that was recorded'
passed "virtual nodes a step ahead are replayed, whoever dies"

# a worker joins; some steps later all are killed, and go on from a checkpoint: a run with more steps, if it
# was through before
for n in 180 800 4000; do
	rm -rf all
	HD_FAIL="graph.part:delay=1#0" "$HEDDLE_BIN" run job.yaml --out all --workers 1 --devices 1 -q 2>log \
		-s job.steps=$n -s batch.mode=bounded -s batch.staleness=1 -s batch.cells=1 \
		-s 'checkpoint.every=50 steps' &
	run=$!
	reach all 5
	if heddle scale all 2 --wait >out 2>err; then
		until=$(($(step all) + 60))
		reach all $((until < n ? until : n))
		pids=$(heddle status all | awk '$2 == "member" { print $3 }')
		[ "$(wc -w <<<"$pids")" -ne 2 ] || kill -9 $pids 2>err
	fi
	wait $run || failed "a bounded run that a worker joins: $(cat log)"
	grep -q '"kind":"restore"' all/events.ndjson && break
	[ $n -lt 4000 ] || failed "$n steps end before all workers are killed"
done
for workers in 1 2; do
	grep -q "\"workers\":$workers," all/metrics.ndjson || failed "no step of $workers workers"
done
expect 0 ahead_again all again --devices 2 -s job.steps=$n
expect 0 heddle ckpt diff again-of-all all
says 'IDENTICAL'
says "digest logs agree in $n steps"
passed "a replay has the bits where a worker joins and all are killed"

# what was recorded has the shape of the job, in a new lineage, too
for key in job.steps=12 batch.staleness=2; do
	for as in '' --new-semantics '--workers 2'; do
		expect 2 heddle resume ahead-d -s $key --devices 1 $as -q
		says 'begin another run'
	done
done

# from step 3 on in sync: all that a loss of 100 is near of
sed 's/ 6[0-9].*//' split.txt >near.txt
awk 'BEGIN { printf "val"; for (i = 60; i < 80; i++) printf " %d", i; print "" }' >>near.txt
expect 0 heddle data prepare-graph --edges edges.txt --features features.svm --split near.txt --directed \
	--intervals 4 --splitter own -o near.graph -q
near() {
	run "$1" -s data.path=near.graph -s batch.close.metric=loss -s batch.close.target=100 \
		-s batch.close.every=3 "${@:2}"
}
expect 0 run far --devices 1 -s data.path=near.graph
far=$(number digest)
expect 0 near near --devices 1
closed=$(number digest)
[ "$closed" != "$far" ] || failed "batch.close makes no difference"
HD_FAIL="sync.here:kill#1@11" expect 0 near near-w --workers 2 --devices 1
same "$(number digest)" "$closed" "closed, two workers, one of which dies"
expect 0 near near-part --devices 1 --steps 3
expect 0 heddle resume near-part --workers 3 --devices 1 --json -q
same "$(number digest)" "$closed" "resumed where it closes"
same "$(cat near{,-w}/events.ndjson | grep -c '"kind":"closing","step":3,')" 2 "events of closing"
free_near() { near "$1" -s batch.mode=bounded -s batch.staleness=1 -s batch.cells=1 "${@:2}"; }
again_near() {
	near "again-of-$1" -s batch.mode=replay -s batch.staleness=1 -s batch.cells=1 -s batch.replay="$1" \
		"${@:2}"
	heddle ckpt diff "again-of-$1" "$1"
}
expect 0 free_near near-b --workers 2 --devices 1
expect 0 again_near near-b --devices 3
says 'IDENTICAL'
end='-s eval.target=100 -s eval.every=6'
expect 0 free_near near-e --devices 3 $end
same "$(number step)" 6 "the last step of a run that reaches its target"
expect 0 again_near near-e --workers 2 --devices 1 $end
says 'IDENTICAL'
passed "near its target a run goes back to sync: equal bits on devices and workers, and of its replay"

expect 2 near no -s data.path=g.graph
says 'batch.close: no vertex of the validation set has a label'
expect 2 near no -s batch.mode=sync
says 'has no meaning with batch.mode sync'
expect 2 run no -s batch.close.margin=0.1
says 'batch.close.margin says nothing without batch.close.target'
expect 2 near no -s batch.close.metric=accuracy
says 'batch.close.target is 100, but batch.close.metric accuracy is a share'
expect 2 run no -s batch.cells=3
says 'batch.cells is 3: with batch.mode exact rows are late from one cell to another'
expect 2 run no -s batch.mode=sync
says 'has no meaning with batch.mode sync'
expect 2 free no -s batch.staleness=9
says 'batch.staleness is 9: with batch.mode bounded a virtual node may be 8 steps ahead'
expect 2 free no -s batch.staleness=1 -s optim.update=2bw
says 'batch.staleness is 1 and optim.update is 2bw'
expect 2 free no -s batch.staleness=1 -s trace.values=1
says 'trace.values looks at one step at a time'
expect 2 again one no
says 'one has no recording of rows: name a run with batch.mode: bounded'
expect 2 again free-d no -s job.steps=9
says 'the job of free-d has 8 steps and this one 9: replay the job that was recorded'
expect 2 again free-d no -s batch.virtual_nodes=2
says 'has 4 virtual nodes that meet 4 times a step, this job has 2'
expect 3 again nothing no
mkdir -p empty/ckpt
expect 3 again empty no
says 'heddle: batch.replay: empty'
passed "what would have no meaning is refused"
