#!/bin/bash
# Norms over the global batch on several workers, and rows of a graph in intervals, which meet in the same
# way: the bits of one device, whoever dies at whichever meeting.
. "$(dirname "$0")/program.sh"
needs_failpoints

# three norms, so six meetings a step; 61 samples in batches of 26: the third step is ragged
cat >job.yaml <<END
job: {name: norms, seed: 3, steps: 8}
model: {use: "graph:$SOURCE_DIR/tests/torch/fixtures/bn/model.graph", bn: global}
data: {kind: synthetic, count: 61}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 4 steps, keep: 2}
eval: {every: 4}
trace: {digest: 1}
workers: {detect: 2 s}
END
expect 0 heddle run job.yaml --out one --devices 1 --json -q
first=$(number digest)
evaluated() { grep -o '"split":"valid".*' "$1/events.ndjson" | tail -n 2; }  # of steps 4 and 8

for shape in 1x1 2x1 3x1 2x2; do
	expect 0 heddle run job.yaml --out $shape --workers ${shape%x*} --devices ${shape#*x} --json -q
	same "$(number digest)" "$first" "${shape%x*} workers of ${shape#*x} devices"
	same "$(evaluated $shape)" "$(evaluated one)" "what $shape evaluated, with its running statistics"
done
expect 0 heddle ckpt diff 3x1 one
says 'digest logs agree in 8 steps'
passed "1, 2 and 3 workers have the bits of one device"

# $1: HD_FAIL, $2: workers, $3: job, or job.yaml. On a busy machine links come up after the first membership,
# and step 0 may be begun twice: then meetings are counted from another step, and it is tried again.
killed()
{
	for try in 1 2 3 4 5 6 7 8; do
		rm -rf killed
		HD_FAIL=$1 heddle run "${3:-job.yaml}" --out killed --workers "$2" --devices 1 --json -q ||
			return
		grep -q '"text":"step [01] is begun again' killed/events.ndjson || return 0
	done
}
for nth in 13 14 15 16 17 18; do          # each meeting of step 2
	expect 0 killed "sync.here:kill#1@$nth" 2
	same "$(number digest)" "$first" "the digest after a death at meeting $nth"
	grep -q '"text":"step 2 is begun again' killed/events.ndjson ||
		failed "meeting $nth: step 2 was not begun again: $(cat killed/events.ndjson)"
done
passed "a worker dies at each meeting of a step, forwards and backwards: begun again, equal bits"

# four meetings a step: two layers, forwards and backwards
awk 'BEGIN { for (i = 0; i < 80; i++) { print i, (i + 1) % 80; print i, (i * 7 + 3) % 80 } }' >edges.txt
awk 'BEGIN { for (i = 0; i < 80; i++) print i % 4, i ":1" }' >features.svm
awk 'BEGIN { printf "train"; for (i = 0; i < 80; i++) printf " %d", i; print "" }' >split.txt
expect 0 heddle data prepare-graph --edges edges.txt --features features.svm --split split.txt --directed \
	--intervals 4 --splitter own -o g.graph -q
cat >graph.yaml <<END
job: {name: graph, seed: 3, steps: 4}
model: {use: "builtin:gcn", args: {input: 80, classes: 4, slots: 3}}
data: {kind: graph, path: g.graph, order: sequential}
batch: {global: 80, virtual_nodes: 4}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
eval: {every: 0}
workers: {detect: 2 s}
END
expect 0 heddle run graph.yaml --out graph --devices 1 --json -q
rows=$(number digest)
for nth in 10 11; do                      # the second forwards of step 2, the first backwards
	expect 0 killed "sync.here:kill#1@$nth" 2 graph.yaml
	same "$(number digest)" "$rows" "the digest after a death at meeting $nth of a graph"
	grep -q '"text":"step 2 is begun again' killed/events.ndjson ||
		failed "meeting $nth: step 2 was not begun again: $(cat killed/events.ndjson)"
done
# twelve a step: values of edges are made again between them
sed 's/builtin:gcn/builtin:gat/; s/name: graph/name: gat/; s/slots: 3/slots: 3, hidden: 4, heads: 2/' \
	graph.yaml >gat.yaml
expect 0 heddle run gat.yaml --out gat --devices 1 --json -q
attends=$(number digest)
for nth in 25 28 31 34 36; do             # of step 2: two forwards, three backwards
	expect 0 killed "sync.here:kill#1@$nth" 2 gat.yaml
	same "$(number digest)" "$attends" "the digest after a death at meeting $nth of attention"
	grep -q '"text":"step 2 is begun again' killed/events.ndjson ||
		failed "meeting $nth: step 2 was not begun again: $(cat killed/events.ndjson)"
done
passed "a worker dies where rows of a graph in intervals meet: begun again, equal bits"

# worker 2 falls when it begins the step again that worker 1 left: its fourth pass is step 2 once more
expect 0 killed "sync.here:kill#1@28;state.params:kill#2@4" 3
same "$(number digest)" "$first" "the digest after two deaths in one step"
same "$(grep -c '"text":"step 2 is begun again' killed/events.ndjson)" 2 "how often step 2 was begun again"
expect 0 heddle ckpt diff killed one
says 'digest logs agree in 8 steps'
passed "two die in one step"

# the writer saves while the other waits for it at the next step's first norm
sed 's/detect: 2 s/detect: 500 ms/' job.yaml >quick.yaml
HD_FAIL=ckpt.begin:delay=1600@2 expect 0 heddle run quick.yaml --out waits --workers 2 --devices 1 --json -q
same "$(number digest)" "$first" "the digest of a run with a slow checkpoint"
! grep -qE '"kind":"(lost|afresh)"' waits/events.ndjson ||
	failed "whoever waits is taken for hung: $(cat waits/events.ndjson)"
passed "whoever waits for others at a norm does not hang"

"$HEDDLE_BIN" run job.yaml --out grow --workers 1 --devices 1 -s job.steps=1000000 \
	-s workers.pace='3 ms' -q 2>log &
run=$!
reach grow 30
expect 0 heddle scale grow 3 --wait
expect 0 heddle scale grow 2 --wait
stops_with_bits_of_one grow job.yaml "1 worker, then 3, then 2"
passed "workers come and go between steps, and the last ones stop at once"
