#!/bin/bash
# pays_machines.sh -- what a pipeline is worth beside data parallelism for VGG-16, measured: four worker
# processes, each in a network namespace of its own behind a shaped link, whose devices wait what the
# published profile says (docs/adr/0145). Prints a table of docs/results/pays.md. Needs root, ip, tc and
# HEDDLE_SHARED.
#
#	bench/pays_machines.sh                    # some twenty minutes
# HD_BENCH_GBIT="10 2.5" HD_BENCH_STEPS=6 HD_BENCH_ROUNDS=3 HD_BENCH_ROWS=WORDS
#
# The model has VGG-16's shape with 12 channels in place of the first 64, and 12 rows in place of 64 for a
# minibatch: parameters and activations are both (12/64)^2 of the published ones. Times are those published,
# twice as long so that messages cost little beside them, so a link has rate * (12/64)^2 / 2: the ratio of
# computation to communication is the published one. A step is four minibatches for every plan, updated once:
# of data parallelism one a worker in one virtual node, which leaves the fewest partial sums; beside it as it
# is with three virtual nodes a worker, and with sharded state. The fastest of those is what plans are
# compared with.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
data=${HEDDLE_SHARED:-../shared}/data/pipedream
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
[ -f "$data/vgg16.graph.txt" ] || { echo "bench: no $data/vgg16.graph.txt: set HEDDLE_SHARED" >&2; exit 2; }
work=$(mktemp -d)
. bench/machines.sh
trap 'machines_gone; rm -rf "$work"' EXIT
steps=${HD_BENCH_STEPS:-6}
burst=128kb
machines 4

job()           # VNS
{
	cat <<END
job: {name: pays, seed: 3, steps: 1000}
model: {use: "builtin:vgg16", args: {base: 12, hidden: 768, dropout: 0.5, classes: 188}}
data: {kind: synthetic, count: 48}
batch: {global: 48, virtual_nodes: $1}
optim: {kind: sgd, lr: 1e-3, clip: 0, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 1}
eval: {every: 0}
trace: {digest: 1000}
END
}

# times VNS RATE: the profile of the job, its times those published
times()
{
	python3 - "$work/start/costs.json" "$data/vgg16.graph.txt" $((48 / $1)) "$2" "$port" <<'END'
import json, sys
kept, graph, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
rate, port = float(sys.argv[4]), float(sys.argv[5])
p = json.loads(open(kept).read().split("\n")[1])
part, p["vn_size"] = rows / p["vn_size"], rows
published = []
for line in open(graph):
    if line[0] != "\t":
        a = line.rstrip("\n").split(" -- ")
        kv = dict(x.split("=") for x in a[2].split(", "))
        published.append((int(a[0][4:]), a[1].split("(")[0], float(kv["forward_compute_time"]),
                          float(kv["backward_compute_time"])))
# what lies behind a layer of parameters or a pool counts with it, the input with the first
layers, before = [], 0
for _, kind, f, b in sorted(published):
    if kind in ("Conv2d", "Linear", "MaxPool2d"):
        layers.append([kind, f + before, b])
        before = 0
    elif layers:
        layers[-1][1] += f
        layers[-1][2] += b
    else:
        before += f
layers.reverse()
for x in p["nodes"]:
    x["saved"], x["work"] = int(x["saved"] * part), int(x["work"] * part)
    x["out"] = [int(n * part) for n in x["out"]]
    f = b = 0
    kind = {"conv2d": "Conv2d", "maxpoo": "MaxPool2d", "matmul": "Linear"}.get(x["op"][:6])
    if kind:
        layer = layers.pop()
        assert layer[0] == kind
        # milliseconds of 128 samples are of 64, twice as long, in virtual nodes of `rows` of 12
        f, b = (int(ms * 1e6 * rows / 12) for ms in layer[1:])
    w = b // 2 if x["param"] else 0
    for name, ns in (("f", f), ("i", b - w), ("w", w)):
        x[name] = {"p50": ns, "mean": ns, "sd": 0, "min": ns, "n": 1}
assert not layers
p["method"] = "imported"
p["links"] = [{"level": 1, "kind": "tcp", "latency": 100000, "bytes_per_s": rate * port, "duplex": True}]
print(json.dumps(p))
END
}

# row NAME VNS RATE OPTION...: "predicted median steps errors"
row_of()
{
	local vns=$1 rate=$2
	shift 2
	job "$vns" >"$work/job.yaml"
	times "$vns" "$rate" >"$work/times.json"
	middle_of "${HD_BENCH_ROUNDS:-3}" measure "$rate" "$steps" "$work/job.yaml" \
		"--devices paced:1 --profile $work/times.json" "$@"
}

job 4 >"$work/job.yaml"
"$heddle" run "$work/job.yaml" --out "$work/start" --workers 1 --devices paced:1 --steps 1 -q 2>>"$work/log"
echo "$(date -u +%Y-%m-%d), $(processor), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)," \
	"$("$heddle" version | head -n 1)"
echo
echo "| Gb/s | link here, Mb/s | plan | virtual nodes | predicted ms | measured ms | error |" \
	"of all runs | steps | times |"
echo "|--:|--:|---|--:|--:|--:|--:|---|--:|--:|"
for gbit in ${HD_BENCH_GBIT:-10 2.5}; do
	rate=$(awk -v g="$gbit" 'BEGIN { printf "%.0f", g * 1e9 * (12 / 64) ^ 2 / 2 }')
	best=0
	while IFS='|' read -r name vns keys; do
		[[ "$name" =~ ${HD_BENCH_ROWS:-.} ]] || continue
		got=$(row_of "$vns" "$rate" $keys) || { tail -n 3 "$work/log" >&2; got="0 0 0"; }
		read -r said took n all <<<"$got"
		[ "$took" != 0 ] || { echo "| $gbit | | $name | $vns | | did not run | | | | |"; continue; }
		[[ $name != data* ]] || best=$(awk -v a="$best" -v b="$took" \
			'BEGIN { print (a > 0 && a < b) ? a : b }')
		awk -v g="$gbit" -v r="$rate" -v name="$name" -v v="$vns" -v p="$said" -v m="$took" \
			-v n="$n" -v best="$best" -v all="${all//,/, }" 'BEGIN {
			printf "| %s | %.0f | %s | %d | %s | %.0f | %s | %s | %d | %s |\n", g, r / 1e6, \
				name, v, (p > 0) ? sprintf("%.0f", p) : "-", m, \
				(p > 0) ? sprintf("%+.1f %%", (p / m - 1) * 100) : "-", all, n, \
				name ~ /^data/ || !best ? "" : sprintf("%.2f", best / m) }'
	done <<'END'
data parallel|4|
data parallel|12|
data parallel, sharded|4|-s comm.sync=sharded
auto, state by stages|12|-s parallel.mode=auto -s comm.sync=stages
END
done
