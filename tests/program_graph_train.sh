#!/bin/bash
# heddle run of jobs whose data are a prepared graph: learns, the same bits on any devices and after a
# resume, refuses
# what would be another computation.
. "$(dirname "$0")/program.sh"

# eight rings of ten vertices with few edges between them; a ring is a class, and few vertices say which
awk 'BEGIN {
	for (i = 0; i < 80; i++) {
		r = int(i / 10) * 10; print i, r + (i + 1) % 10; print i, r + (i + 3) % 10
	}
	for (i = 0; i < 80; i += 10) print i, (i + 17) % 80 }' >edges.txt
awk 'BEGIN { for (i = 0; i < 80; i++) print int(i / 10), i ":1" }' >features.svm
awk 'BEGIN { printf "train"; for (i = 0; i < 80; i += 5) printf " %d", i; printf "\nval"
	for (i = 1; i < 80; i += 5) printf " %d", i; printf "\ntest"
	for (i = 2; i < 80; i += 5) printf " %d", i; print "" }' \
	>split.txt
expect 0 heddle data prepare-graph --edges edges.txt --features features.svm --split split.txt -o g.graph -q
job() {        # NAME MODEL ARGS
	cat >"$1.yaml" <<-END
	job:   {name: $1, seed: 3, steps: 60}
	model: {use: "builtin:$2", args: {input: 80, classes: 8, slots: 6, $3}}
	data:  {kind: graph, path: g.graph, order: sequential}
	batch: {global: 80, virtual_nodes: 1}
	optim:
	  {kind: adam, lr: 0.05, weight_decay: 5e-4, decay: [layers.0.*], clip: 0,
	   schedule: {kind: constant, warmup: 0}}
	eval:  {every: 0, metric: accuracy}
	END
}
job gcn gcn 'hidden: 16, dropout: 0.5, bias: "false", rows: sum1'
job gat gat 'hidden: 4, heads: 4, dropout: 0.3'
job sage sage-mean 'hidden: 16, dropout: 0.3'
# the short form of a job: what the prepared graph says is not written
short() {
	sed '/^model:/d; /^batch:/d; s/^data:.*/graph: {prepared: g.graph, model: '"$2, $3"'}/' "$1.yaml" \
		>"$1-short.yaml"
}
short gcn gcn 'hidden: 16, dropout: 0.5, bias: "false", rows: sum1'
short gat gat 'hidden: 4, heads: 4, dropout: 0.3'
short sage sage-mean 'hidden: 16, dropout: 0.3'
digest() { sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' out; }
for m in gcn gat sage; do
	expect 0 heddle run $m.yaml --devices 1 --out $m-1 --json
	accuracy=$(sed -n 's/.*"test_accuracy":\([0-9.]*\).*/\1/p' out)
	awk -v a="$accuracy" 'BEGIN { exit !(a > 0.8) }' || failed "$m: test accuracy '$accuracy'"
	one=$(digest)
	expect 0 heddle run $m.yaml --devices cores:1x2 --out $m-2 --json
	[ "$(digest)" = "$one" ] || failed "$m: two threads give other bits"
	expect 0 heddle run $m-short.yaml --devices 1 --out $m-3 --steps 23 --json
	expect 0 heddle resume $m-3 --devices cores:1x2 --json
	[ "$(digest)" = "$one" ] || failed "$m: the short form, resumed on two threads, gives other bits"
done
expect 0 heddle eval gcn-1 --split test
says 'accuracy'
passed "models of graphs learn, with the same bits on two threads and resumed"

# in several intervals, a virtual node each: what a run is refused for says the values to write
expect 2 heddle run gcn.yaml --out no -s batch.virtual_nodes=3
says 'has 4 intervals: set batch.virtual_nodes to 1 or to a power of two up to 4'
expect 2 heddle run gcn.yaml --out no -s batch.virtual_nodes=4 -s batch.global=400
says 'batch.virtual_nodes to 4, batch.slices to 1 and data.order to sequential'
rows=$(sed -n 's/.*set batch.global to \([0-9]*\),.*/\1/p' out err)
in4() {        # MODEL OUT OPTIONS...
	heddle run "$1.yaml" --out "$2" -s batch.virtual_nodes=4 -s batch.global="$rows" \
		-s job.steps=40 --json "${@:3}"
}
for m in gcn gat sage; do
	expect 0 in4 $m $m-4 --devices 1
	accuracy=$(sed -n 's/.*"test_accuracy":\([0-9.]*\).*/\1/p' out)
	awk -v a="$accuracy" 'BEGIN { exit !(a > 0.8) }' ||
		failed "$m in 4 intervals: test accuracy '$accuracy'"
	one=$(digest)
	expect 0 in4 $m $m-4-3 --devices 3
	[ "$(digest)" = "$one" ] || failed "$m in 4 intervals: three devices give other bits"
	expect 0 in4 $m $m-4-w --devices 1 --workers 2
	[ "$(digest)" = "$one" ] || failed "$m in 4 intervals: two workers give other bits"
done
# the short form has as many rows as the job of the long one
expect 0 heddle run gat-short.yaml --out gat-4-s -s graph.intervals=4 -s job.steps=40 --devices 2 --json
[ "$(digest)" = "$(heddle ckpt digest gat-4)" ] || failed "the short form in 4 intervals gives other bits"
expect 0 heddle plan gat-short.yaml -n 2 -s graph.intervals=4
says 'KiB from one to all others, the rows that they read: at least'
expect 2 heddle run gat-short.yaml --out no -s graph.intervals=8
says 'graph.intervals: 8: g.graph has 4 intervals; set it to 1 or to a power of two up to 4, or prepare'
says 'again with --intervals 8'
expect 2 heddle run gat-short.yaml --out no -s graph.intervals=3
says 'graph.intervals: 3: g.graph has 4 intervals; set it to 1 or to a power of two up to 4'
! grep -q 'with --intervals' err || failed "it advises what is refused: $(cat err)"
passed "a graph in intervals learns, with the same bits on three devices and on two workers"

# row i of what is predicted is vertex i of the input, of class i / 10; two vertices more leave virtual nodes
# with rows that are none
(cat features.svm; printf '0 0:1\n0 0:1\n') >more.svm
expect 0 heddle data prepare-graph --edges edges.txt --features more.svm --split split.txt -o more.graph -q
expect 2 heddle run gcn.yaml --out no -s data.path=more.graph -s batch.virtual_nodes=4 -s batch.global=400
rows=$(sed -n 's/.*set batch.global to \([0-9]*\),.*/\1/p' out err)
[ "$rows" -gt 82 ] || failed "no rows are left over: $rows"
expect 0 in4 gcn more-4 --devices 1 -s data.path=more.graph
for run in gcn-1:80 more-4:82; do
	n=${run#*:}
	expect 0 heddle predict ${run%:*} --split test -o rows.npy --json
	says '"shape":['"$n"',8],"classes":8,"rows":'"$n,"
	[ "$(stat -c %s rows.npy)" -eq $((128 + n * 8 * 4)) ] || failed "$run: the size of the .npy"
	hits=$(tail -c +129 rows.npy | od -An -v -tf4 -w32 | awk 'NR <= 80 {
		best = 1; for (c = 2; c <= NF; c++) if ($c > $best) best = c
		hits += best - 1 == int((NR - 1) / 10) } END { print hits }')
	[ "$hits" -gt 64 ] || failed "$run: $hits of 80 rows are of their vertex's class"
done
passed "predictions are of the vertices, by their numbers in the input"

# what times virtual nodes one by one leaves them out, or says what would be timed
in_more() { "$@" --repeat 1 -s data.path=more.graph -s batch.virtual_nodes=4 \
	-s batch.global="$rows"; }
expect 0 in_more heddle bench step gcn.yaml --devices 1
says 'cost of virtual nodes not measured'
expect 11 in_more heddle bench op gcn.yaml
says 'batch.virtual_nodes: 1, which times the same ops'
passed "a graph in intervals is timed as a whole"

expect 2 heddle run gcn.yaml --out no --workers 2 --devices 1 -s parallel.mode=pipeline \
	-s data.path=more.graph -s batch.virtual_nodes=4 -s batch.global="$rows"
says 'parallel.mode: pipeline: virtual nodes meet inside the model'
passed "stages are refused before a worker starts"

expect 2 heddle run gcn-short.yaml --out no -s graph.mode=bounded
says 'batch.mode bounded is for a graph in several intervals'
expect 3 heddle run gcn-short.yaml --out no -s graph.prepared=edges.txt
says 'edges.txt'
expect 2 heddle run gcn.yaml --out no -s data.order=shuffle
says 'set batch.global to 80, batch.virtual_nodes to 1, batch.slices to 1 and data.order to sequential'
expect 2 heddle run gcn.yaml --out no -s batch.global=40
expect 3 heddle run gcn.yaml --out no -s model.args.slots=5
says 'set model.args.slots to 6'
expect 3 heddle run gcn.yaml --out no -s model.args.classes=9
says 'set model.args.classes to 8'
expect 2 heddle run gcn.yaml --out no -s 'optim.decay=["layers.7.*"]'
says 'names no parameter of the model'
expect 2 heddle run gcn.yaml --out no -s batch.normalize=sample
says 'set it to token, or leave it out'
expect 2 heddle run gcn.yaml --out no -s model.args.norm=rows
says "'rows' is none of sym, row, none"
passed "what would be another computation is refused"

# After one step the gradients are the same whatever decays, so weights differ just where the decay does.
cat >decay.yaml <<END
job: {name: decay, seed: 5, steps: 1}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24, 20], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-3, weight_decay: 0.1}
eval: {every: 0}
END
differ() { heddle ckpt diff "$1" "$2" 2>&1 | grep ' differ, max' | cut -d' ' -f1 | paste -sd' '; }
for kind in adamw lamb; do
	expect 0 heddle run decay.yaml --out "decays-$kind" -q -s optim.kind=$kind
	expect 0 heddle run decay.yaml --out "spared-$kind" -q -s optim.kind=$kind -s optim.weight_decay=0
	expect 0 heddle run decay.yaml --out "partly-$kind" -q -s optim.kind=$kind -s 'optim.decay=["fc2.*"]'
	same "$(differ partly-$kind spared-$kind)" "fc2.bias fc2.weight" "$kind: what optim.decay names"
	same "$(differ partly-$kind decays-$kind)" "fc1.bias fc1.weight fc3.bias fc3.weight" \
		"$kind: what it does not name"
done
passed "weights decay where optim.decay says, and nowhere else"
