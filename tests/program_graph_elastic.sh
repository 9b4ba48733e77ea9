#!/bin/bash
# A graph in intervals whose workers come, go and die, as does its coordinator, that is stopped and resumed:
# the bits of one undisturbed device.
. "$(dirname "$0")/program.sh"

awk 'BEGIN { for (i = 0; i < 80; i++) { print i, (i + 1) % 80; print i, (i * 7 + 3) % 80 } }' >edges.txt
awk 'BEGIN { for (i = 0; i < 83; i++) print i % 4, i ":1" }' >features.svm     # three have no edge
awk 'BEGIN { printf "train"; for (i = 0; i < 80; i++) printf " %d", i; print "" }' >split.txt
expect 0 heddle data prepare-graph --edges edges.txt --features features.svm --split split.txt --directed \
	--intervals 4 --splitter own -o g.graph -q
job() {        # NAME MODEL ARGS: the short form, in four intervals
	cat >"$1.yaml" <<-END
	job: {name: $1, seed: 3, steps: 10000000}
	graph: {prepared: g.graph, model: $2, intervals: 4, dropout: 0.3, $3}
	optim: {kind: adamw, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
	checkpoint: {every: 50 steps, keep: 2}
	eval: {every: 0}
	trace: {digest: 1}
	workers: {detect: 1 s, pace: 5 ms}
	END
}
job gcn gcn 'hidden: 8'
job gat gat 'hidden: 4, heads: 2'
pids() { heddle status "$1" --json 2>/dev/null | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2; }
more() { reach "$1" $(($(step "$1") + $2)); }

# workers come, one dies in a step, they go, and the last ones stop
"$HEDDLE_BIN" run gcn.yaml --out gcn --workers 2 --devices 1 -q 2>log &
run=$!
reach gcn 5
expect 0 heddle scale gcn 3 --wait
more gcn 5
kill -9 "$(pids gcn | tail -n 1)"
grown() { grep -q '"kind":"lost"' gcn/events.ndjson; }
await grown || failed "no event says that a worker is lost"
more gcn 5
expect 0 heddle scale gcn 2 --wait
stops_with_bits_of_one gcn gcn.yaml "two workers, three, one killed, two"
plans_of gcn 3
passed "workers of a graph in intervals come, die and go between and in steps"

# the coordinator dies as well; what was stopped goes on as one process of three devices
"$HEDDLE_BIN" run gat.yaml --out gat --workers 2 --devices 1 -q 2>log &
run=$!
reach gat 5
kill -9 $run
wait $run 2>/dev/null
more gat 20 || failed "no member goes on without the coordinator"
expect 0 heddle scale gat 3 --wait
more gat 5
expect 0 heddle stop gat
await not answers_now gat || failed "the run does not stop"
at=$((10#$(ls gat/ckpt | tail -n 1 | cut -d- -f2)))
expect 0 heddle resume gat --devices 3 --steps $((at + 7)) -q
expect 0 heddle resume gat --workers 2 --devices 1 --steps $((at + 13)) -q
has_bits_of_one gat gat.yaml "a coordinator killed, three workers, stopped, resumed twice"
passed "a coordinator dies, the run is stopped and resumed on other devices: equal bits"
