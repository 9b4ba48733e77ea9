#!/bin/bash
# Devices that wait, over workers: what a file says, never shorter, with the prediction of the same file.
. "$(dirname "$0")/program.sh"
write_jobs 4
sets=(-s trace.digest=1000 -s optim.clip=0)

# times of this machine are kept by the run; made 20 ms a virtual node in all they are a file of their own
expect 0 heddle run mlp.yaml --out first --workers 1 --devices paced:1 --steps 1 -q "${sets[@]}"
python3 - <<'END' || failed "the kept costs are no profile"
import json
p = json.loads(open("first/costs.json").read().split("\n")[1])
costs = [x[k] for x in p["nodes"] for k in "fiw" if x[k]["p50"] > 0]
for c in costs:
    c["p50"] = 20000000 // len(costs)
p["links"] = [{"level": 1, "kind": "tcp", "latency": 1000000, "bytes_per_s": 1e6, "duplex": True}]
json.dump(p, open("times.json", "w"))
END
vns=$(sed -n 's/.*virtual_nodes: *\([0-9]*\).*/\1/p' mlp.yaml | head -n 1)
waits()         # RUN, least part of all that virtual nodes take: of a step, said and taken
{
	awk -v least="$2" -v vns="$vns" '
		{ match($0, /"step_ms":[0-9.]+/); bad += substr($0, RSTART + 10) + 0 < 19 * vns * least; n++ }
		END { exit !n || bad }' "$1/metrics.ndjson" || failed "$1: a step is shorter than its waits"
	awk -v least="$2" -v vns="$vns" -v ms="$(number predicted_ms)" \
		'BEGIN { exit !(ms + 0 >= 19 * vns * least) }' ||
		failed "$1: predicted are $(number predicted_ms) ms"
}
expect 0 heddle run mlp.yaml --out data --workers 2 --devices paced:1 --profile times.json --steps 3 \
	-q --json "${sets[@]}"
waits data 0.5
# both send gradients in each step, and read
! grep -vE '"bytes_out":[1-9]' data/metrics.ndjson || failed "a step of two workers sent nothing"
grep -qE '"read_wait_ms":[0-9.e-]*[1-9]' data/metrics.ndjson || failed "two workers never waited for data"
expect 0 heddle run mlp.yaml --out pipe --workers 2 --devices paced:1 --profile times.json --steps 3 \
	"${sets[@]}" -s parallel.mode=pipeline -s comm.sync=stages -q --json
waits pipe 0.5
passed "two workers wait what a file says, with the whole model and in stages"

"$HEDDLE_BIN" run mlp.yaml --out joined --workers 1 --devices paced:1:2 -s workers.pace=50ms --steps 100000 \
	"${sets[@]}" >joined.log 2>&1 &
run=$!
reach joined 1
expect 2 heddle worker --join joined --devices paced:1:20
says 'devices of this run wait 2 times what a core takes, not 20 times'
kill -INT $run
wait $run || true
passed "a worker whose devices would wait otherwise than the run predicts is refused"

expect 2 heddle run mlp.yaml --workers 2 --devices 1 --profile times.json
says 'it goes with --devices paced:N'
expect 3 heddle run mlp.yaml --workers 2 --devices paced:1 --profile none.json
says 'none.json'
expect 2 heddle run mlp.yaml --workers 2 --devices paced:1 --profile times.json -s batch.virtual_nodes=1
says 'times.json: '
passed "a file of other times than the job's is refused before a worker starts"
