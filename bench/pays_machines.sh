#!/bin/bash
# pays_machines.sh -- what a pipeline is worth beside data parallelism for VGG-16, measured: four worker
# processes, each in a network namespace of its own behind a shaped link, whose devices wait what the
# published profile says (docs/adr/0145). Prints a table of docs/results/pays.md. Needs root, ip, tc and
# HEDDLE_SHARED.
#
#	bench/pays_machines.sh                    # some five minutes
# HD_BENCH_GBIT="10 2.5" HD_BENCH_STEPS=6
#
# The model has VGG-16's shape with 12 channels in place of the first 64, and 12 rows in place of 64 for a
# minibatch: parameters and activations are both (12/64)^2 of the published ones. Times are those published,
# twice as long so that messages cost little beside them, so a link has rate * (12/64)^2 / 2: the ratio of
# computation to communication is the published one. A step is four minibatches for every plan, updated once:
# of data parallelism one a worker in one virtual node, which leaves the fewest partial sums.
#
# The run starts with four workers on one machine; those of others join, and take the places of three that
# leave. Then links are shaped. Measured is the median of the steps after that.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
data=${HEDDLE_SHARED:-../shared}/data/pipedream
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
[ -f "$data/vgg16.graph.txt" ] || { echo "bench: no $data/vgg16.graph.txt: set HEDDLE_SHARED" >&2; exit 2; }
work=$(mktemp -d)
space=hdp$$
gone()
{
	kill $(jobs -p) 2>/dev/null || true
	wait || true
	for i in s 0 1 2 3; do ip netns del $space$i 2>/dev/null || true; done
	rm -rf "$work"
}
trap gone EXIT
steps=${HD_BENCH_STEPS:-6}
# of a bit a second: bytes of TCP in frames of Ethernet, every other one acknowledged for what comes back
port=$(awk 'BEGIN { print 1448 / (1514 + 33) / 8 }')

# machines at one switch
ip netns add ${space}s
ip -n ${space}s link add sw type bridge
ip -n ${space}s link set sw up
for i in 0 1 2 3; do
	ip netns add $space$i
	ip -n ${space}s link add to$i type veth peer name eth netns $space$i
	ip -n ${space}s link set to$i master sw up
	ip -n $space$i addr add 10.77.0.$((i + 1))/24 dev eth
	ip -n $space$i link set eth up
	ip -n $space$i link set lo up
	ip netns exec $space$i sysctl -qw net.ipv4.tcp_congestion_control=reno || true
done
links()         # RATE | none
{
	local i
	for i in 0 1 2 3; do
		ip netns exec $space$i tc qdisc del dev eth root 2>/dev/null || true
		ip netns exec ${space}s tc qdisc del dev to$i root 2>/dev/null || true
		[ "$1" = none ] && continue
		ip netns exec $space$i tc qdisc add dev eth root tbf rate "$1" burst 32kb latency 50ms &&
			ip netns exec ${space}s tc qdisc add dev to$i root tbf rate "$1" burst 32kb \
				latency 50ms || return 1     # no -e within measure
	done
}

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

views() { grep -c '"kind":"view"' "$work/run/events.ndjson"; }
# the workers of the view in force that are of the first machine
here()
{
	grep -h '^cause' "$(ls "$work"/run/plan/*.plan | tail -n 1)" | grep -o 'workers [0-9 ]*' |
		tr ' ' '\n' | awk '/^[0-9]+$/ && $1 < 1000000'
}
pid_of()
{
	grep "\"kind\":\"join\".*\"worker\":$1,\"text\"" "$work/run/events.ndjson" | tail -n 1 |
		grep -o 'pid:[0-9]*' | cut -d : -f 2
}
patience() { sleep 0.2; kill -0 $run 2>/dev/null; }

# measure VNS RATE OPTION...: "predicted median steps"
measure()
{
	local vns=$1 rate=$2 i n as
	shift 2
	trap 'kill $(jobs -p) 2>/dev/null || true' EXIT       # this runs in a shell of its own
	job "$vns" >"$work/job.yaml"
	times "$vns" "$rate" >"$work/times.json"
	rm -rf "$work/run"
	links none
	as="--devices paced:1 --profile $work/times.json"
	ip netns exec ${space}0 timeout 300 "$heddle" run "$work/job.yaml" --out "$work/run" --workers 4 \
		-s workers.start=others -s workers.detect=20s $as --listen 10.77.0.1:7000 \
		-s net.insecure_plaintext=true -q "$@" 2>>"$work/log" >&2 &
	run=$!
	until [ -S "$work/run/members.sock" ]; do patience || return 1; done
	for i in 1 2 3 4; do
		ip netns exec ${space}0 timeout 300 "$heddle" worker --join "$work/run" --wait 60s $as \
			2>>"$work/log" &
	done
	until [ -e "$work/run/metrics.ndjson" ] && [ "$(wc -l <"$work/run/metrics.ndjson")" -ge 2 ]; do
		patience || return 1
	done
	for i in 1 2 3; do
		ip netns exec $space$i timeout 300 "$heddle" worker --join 10.77.0.1:7000 --wait 60s $as \
			-s net.insecure_plaintext=true 2>>"$work/log" &
	done
	until [ "$(grep -c '"kind":"join".*"worker":1[0-9]\{6\},' "$work/run/events.ndjson")" -ge 3 ]; do
		patience || return 1
	done
	sleep 3
	while [ "$(here | wc -l)" -gt 1 ]; do
		n=$(views)
		kill -TERM "$(pid_of "$(here | head -n 1)")"
		until [ "$(views)" -gt "$n" ]; do patience || return 1; done
		sleep 2
	done
	links "$rate" || return 1
	n=$(wc -l <"$work/run/metrics.ndjson")
	until [ "$(wc -l <"$work/run/metrics.ndjson")" -ge $((n + 2 + steps)) ]; do patience || return 1; done
	kill -INT $run
	wait $run || true
	kill $(jobs -p) 2>/dev/null || true
	wait || true
	# none was lost on the way
	[ "$(tail -n "+$((n + 3))" "$work/run/metrics.ndjson" | grep -o '"membership":[0-9]*' | sort -u |
		wc -l)" = 1 ] && [ "$(here | wc -l)" = 1 ] || return 1
	tail -n "+$((n + 3))" "$work/run/metrics.ndjson" | grep -o '"step_ms":[0-9.]*' | cut -d : -f 2 |
		sort -g | awk -v said="$(grep -o '"kind":"predicted".*' "$work/run/events.ndjson" |
			head -n 1 | grep -o '[0-9.]* ms a step' | cut -d ' ' -f 1)" '{ at[NR] = $1 }
			END { print said ? said : 0, at[int((NR + 1) / 2)], NR }'
}

job 4 >"$work/job.yaml"
"$heddle" run "$work/job.yaml" --out "$work/start" --workers 1 --devices paced:1 --steps 1 -q 2>>"$work/log"
echo "$(date -u +%Y-%m-%d), $(processor), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)," \
	"$("$heddle" version | head -n 1)"
echo
echo "| Gb/s | link here, Mb/s | plan | virtual nodes | predicted ms | measured ms | error | steps | times |"
echo "|--:|--:|---|--:|--:|--:|--:|--:|--:|"
for gbit in ${HD_BENCH_GBIT:-10 2.5}; do
	rate=$(awk -v g="$gbit" 'BEGIN { printf "%.0f", g * 1e9 * (12 / 64) ^ 2 / 2 }')
	best=0
	while IFS='|' read -r name vns keys; do
		got=$(measure "$vns" "$rate" $keys) || { tail -n 3 "$work/log" >&2; got="0 0 0"; }
		read -r said took n <<<"$got"
		[ "$took" != 0 ] || { echo "| $gbit | | $name | $vns | | did not run | | | |"; continue; }
		[[ $name != data* ]] || best=$took
		awk -v g="$gbit" -v r="$rate" -v name="$name" -v v="$vns" -v p="$said" -v m="$took" \
			-v n="$n" -v best="$best" 'BEGIN {
			printf "| %s | %.0f | %s | %d | %s | %.0f | %s | %d | %s |\n", g, r / 1e6, \
				name, v, (p > 0) ? sprintf("%.0f", p) : "-", m, \
				(p > 0) ? sprintf("%+.1f %%", (p / m - 1) * 100) : "-", n, \
				name ~ /^data/ ? "" : sprintf("%.2f", best / m) }'
	done <<'END'
data parallel|4|
auto, state by stages|12|-s parallel.mode=auto -s comm.sync=stages
END
done
