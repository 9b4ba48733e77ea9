#!/bin/bash
# order.sh -- what orders, buckets and ways of summing are worth on shaped links: steps of worker processes
# that have a network namespace each, behind a link shaped both ways. Prints docs/results/order.md's tables.
#
#	bench/order.sh                            # some ten minutes, as root, with ip and tc
#	ROWS="order servers unclipped buckets small unfused sweep ddp small-sweep"   # minutes each
#	ROUNDS=1 STEPS=8 MACHINES=3 MBIT=200 EVEN=1    # EVEN: computing over transfers
#	SEED=3                                    # of the first round
#	MODEL=resnet18                            # of tables order and servers, in place of vgg16
#	ORDERS="search tac tic auto"              # which of them are compared with random
#	BUCKETS=none                              # comm.buckets of tables order and servers
#	DELAY_MS=5                                # links also have a delay, each way: machines.sh
#	COSTS=FILE                                # costs.json of an earlier run of MODEL: not measured again
#	LIMIT=60                                  # seconds that a run of a variant may take; each size of ddp
#	                                          # (a minute, and four times what its steps compute)
#	DRAWS=3                                   # seeds of random that are simulated
#	PYTHON=FILE                               # with torch, for ddp; else that table is left out
#
# 1. In place of computing, devices wait (paced:1) what the nodes of the model took one device of this
#    machine, all times one factor: so that a step's computing is EVEN times what ring sums of its bytes take
#    at the link's rate; of parameter servers, what the busiest port carries of partial sums and sums, then of
#    parameters. Messages are real. A worker has one virtual node.
# 2. The profile names the link, as one that was measured would: orders and buckets are cut for it, and the
#    step is predicted for it.
# 3. Variants of a table follow one another, in each round in the opposite order; ratios are of one round, the
#    middle one is given. Each round has a seed of its own, so random is other orders. Beside a step stand
#    the bytes that a worker sent, at the link's rate; the share by which the slow tenth of its steps is
#    longer than the fast tenth; the buckets; the predicted step; and by how much the slowest worker's part of
#    a step is longer than the fastest one's, as they recorded it: until its end there, without what it then
#    waits for the ends of others; of all workers, and of those that hold no slots, where there are two. The
#    middle of all steps. E of the worker that has the least, alpha of the mean one: docs/tracing.md.
# 4. ddp: DistributedDataParallel over gloo with the same links, bytes of each tensor and waits of each node;
#    its steps are without an optimizer, a grace for it. Variants there are sizes of its buckets; of 0 MiB:
#    each tensor is summed alone, by gloo's ring, as backward makes it.
# 5. servers: with optim.clip, as jobs have it that say nothing: no parameter is sent before the norms of all
#    sums are known. unclipped: without; then parameters are sent while the pass goes on (ADR 245).
# 6. What orders can gain at most: behind each table of orders, the steps that the program simulates before a
#    run starts, of the best order and of random with DRAWS seeds, each the mean of two dozen steps. No order
#    is faster than the computing alone.
# A key that the program does not know, and a run that failed, is a line in words.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
. bench/machines.sh
trap 'machines_gone; rm -rf "$work"' EXIT
rows=${ROWS:-order servers unclipped buckets small unfused sweep ddp}
rounds=${ROUNDS:-1} steps=${STEPS:-8} mbit=${MBIT:-200} even=${EVEN:-1}
burst=128kb limit=${LIMIT:-60} seed=${SEED:-3} draws=${DRAWS:-3}

job()           # MODEL CLIP
{
	local args
	case $1 in
	vgg16) args="use: 'builtin:vgg16', args: {base: 8, hidden: 512, dropout: 0.5, classes: 188}" ;;
	resnet18) args="use: 'builtin:resnet18', args: {base: 26, height: 64, width: 64, classes: 100}" ;;
	small) args="use: 'builtin:gpt', args: {layers: 12, width: 32, heads: 2, context: 16, vocab: 64}" ;;
	esac
	cat <<END
job: {name: order, seed: 3, steps: 100000}
model: {$args}
data: {kind: synthetic, count: 96}
batch: {global: $((8 * nmachines)), virtual_nodes: $nmachines}
optim: {kind: momentum, lr: 1e-3, clip: $2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps, keep: 1}
eval: {every: 0}
trace: {digest: 10000}
END
}

# model NAME CLIP SUMS: its job and its times; prints the bytes of its parameters, the factor of its times,
# what a step computes and what transfers take, in ms: SUMS: ring, or servers
model()
{
	job "$1" "$2" >"$work/job.yaml"
	rm -rf "$work/start"
	[ -e "${COSTS:-}" ] || "$heddle" run "$work/job.yaml" --out "$work/start" --workers 1 \
		--devices paced:1 --steps 1 -q 2>>"$work/log" || return 1
	python3 - "${COSTS:-$work/start/costs.json}" "$work/times.json" "$mbit" "$port" "$nmachines" "$even" \
		"${DELAY_MS:-0}" "$3" "$work/computing" <<'END'
import json, sys
source, target = sys.argv[1:3]
mbit, port, n, even, delay = (float(x) for x in sys.argv[3:8])
p = json.loads(open(source).read().split("\n")[1])
rate = mbit * 1e6 * port
size = sum(x["param"] for x in p["nodes"])
took = sum(x[k]["p50"] for x in p["nodes"] for k in "fiw") / 1e9
# of two servers each gets half of all partial sums and of the other's sums, and sends half of the parameters
models = 2 * (n - 1) / n if sys.argv[8] == "ring" else (n - 1 + 1) / 2 + max((n - 2) / 2, 1)
sums = models * size / rate
for x in p["nodes"]:
    for k in "fiw":
        ns = int(x[k]["p50"] * even * sums / took)
        x[k] = {"p50": ns, "mean": ns, "sd": 0, "min": ns, "n": 1}
p["method"] = "imported"
p["links"] = [{"level": 1, "kind": "tcp", "latency": 100000 + round(delay * 1e6), "bytes_per_s": rate,
    "duplex": True}]
open(target, "w").write(json.dumps(p))
open(sys.argv[9], "w").write("%d\n" % (even * sums * 1e3))
tensors = sum(x["param"] > 0 for x in p["nodes"])
print("%d nodes with parameters, %.2f MB; times x %.2f: computing %.0f ms, transfers (%s) %.0f ms" % (
    tensors, size / 1e6, even * sums / took, even * sums * 1e3, sys.argv[8], sums * 1e3))
END
}

# foretold OPTION...: the step that is simulated before such a run starts, in ms; the run ends then
foretold()
{
	local pid said= i
	rm -rf "$work/foretold"
	"$heddle" run "$work/job.yaml" --out "$work/foretold" --workers $nmachines -s workers.start=others \
		--devices paced:1 --profile "$work/times.json" -q "$@" 2>>"$work/log" >&2 &
	pid=$!
	for ((i = 0; i < 100 && ${#said} == 0; i++)); do
		sleep 0.1
		said=$(grep -ho '"kind":"predicted".*' "$work/foretold/events.ndjson" 2>>"$work/log" |
			head -n 1 | grep -o '[0-9.]* ms a step' | cut -d ' ' -f 1)
	done
	kill -KILL $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	echo "${said:-0}"
}

# most SYNC: what orders can gain at most, simulated
most()
{
	local order i options="-s comm.sync=$1 -s comm.buckets=${BUCKETS:-auto}"
	for order in search tac tic; do
		# shellcheck disable=SC2086
		echo "$order $(foretold $options -s comm.order=$order)"
	done >"$work/most"
	for ((i = 0; i < draws; i++)); do
		# shellcheck disable=SC2086
		echo "random $(foretold $options -s comm.order=random -s job.seed=$((seed + i)))"
	done >>"$work/most"
	python3 - "$work/most" "$(cat "$work/computing")" <<'END'
import statistics, sys
took = [(x.split()[0], float(x.split()[1])) for x in open(sys.argv[1])]
ordered = [x for x in took if x[0] != "random" and x[1] > 0]
drawn = sorted(ms for name, ms in took if name == "random" and ms > 0)
if ordered and drawn:
    name, ms = min(ordered, key=lambda x: x[1])
    middle = statistics.median(drawn)
    print("\nSimulated: %s %.0f ms, %d seeds of random %.0f to %.0f, middle %.0f: ordered over random at "
        "most %.3f, in the middle %.3f; over computing alone %.3f, %.3f." % (name, ms, len(drawn),
        drawn[0], drawn[-1], middle, drawn[-1] / ms, middle / ms, drawn[-1] / float(sys.argv[2]),
        middle / float(sys.argv[2])))
END
}

# step NAME OPTION...: "NAME step predicted transfers spread buckets over-workers without-slots E alpha", in
# ms and %
step()
{
	local name=$1 got
	shift
	got=$(measure "${mbit}mbit" "$steps" "$work/job.yaml" \
		"--devices paced:1 --profile $work/times.json" "$@") || { echo "$name failed"; return; }
	"$heddle" trace merge "$work/run" "$work/far/"* -o "$work/steps.ndjson" -q 2>>"$work/log" ||
		: >"$work/steps.ndjson"
	"$heddle" trace analyze "$work/run" "$work/far/"* --steps "$steps" --json \
		>"$work/analysis.json" 2>>"$work/log" || : >"$work/analysis.json"
	# shellcheck disable=SC2086
	python3 - "$work/lines" "$work/run/events.ndjson" "$work/steps.ndjson" "$work/analysis.json" "$name" \
		"$mbit" "$port" "$nmachines" $got <<'END'
import json, re, statistics, sys
lines, events, recorded, analysis, name = sys.argv[1:6]
mbit, port, n, predicted, median = (float(x) for x in sys.argv[6:11])
m = [json.loads(x) for x in open(lines)]
took = sorted((b["t"] - a["t"]) * 1e3 for a, b in zip(m, m[1:]))
sent = sorted(x["bytes_out"] for x in m)[len(m) // 2] / n / (mbit * 1e6 * port) * 1e3
tenth = max(1, len(took) // 10)
spread = (sum(took[-tenth:]) / max(sum(took[:tenth]), 1e-3) - 1) * 100
cut = re.search(r"comm: [^\"]*?(\d+) buckets", open(events).read())
parts, first = {}, m[0]["step"]
for line in open(recorded):
    x = json.loads(line)
    if x.get("step_ns") and x["step"] >= first:
        parts.setdefault(x["step"], {})[x["worker"]] = x["step_ns"]
def apart(first):
    of = [sorted(p.items())[first:] for p in parts.values() if len(p) == n]
    of = [[ns for _, ns in p] for p in of if len(p) > 1]
    return round(statistics.median((max(p) / min(p) - 1) * 100 for p in of), 1) if of else "-"
said = (json.loads(open(analysis).read() or "{}")).get("breakdown", [])
def of(f, key):
    return "%.2f" % f(x[key] for x in said) if said and all(x[key] is not None for x in said) else "-"
print(name, median, predicted, round(sent), round(spread), cut.group(1) if cut else "-", apart(0), apart(2),
    of(min, "E"), of(statistics.mean, "alpha"))
END
}

# of_ddp MIB...: the same of sizes of buckets, each in the processes that lie on the machines
of_ddp()
{
	local i
	links "${mbit}mbit"
	for ((i = 0; i < nmachines; i++)); do
		ip netns exec $space$i env GLOO_SOCKET_IFNAME=eth OMP_NUM_THREADS=1 \
			timeout $((limit * $#)) "$python" bench/order_ddp.py "$work/times.json" "$i" \
			"$nmachines" "$steps" "$@" 2>>"$work/log" &
	done
	wait
}

has_torch()
{
	python=${PYTHON:-python3}
	"$python" -c 'import torch' 2>>"$work/log" && return
	echo
	echo "ddp: $python has no torch (PYTHON=FILE)."
	return 1
}

# table TITLE WANTED WHAT, variants "NAME|OPTION..." from stdin, the first is that which others are compared
# with; DDP|MIB...: its sizes. WHAT: base: base over variant; best: the best of the others over auto
table()
{
	local title=$1 wanted=$2 what=$3 round name options file=$work/variants
	cat >"$file"
	: >"$work/steps"
	for ((round = 0; round < rounds; round++)); do
		while IFS='|' read -r name options; do
			if [ "$name" = DDP ]; then
				# shellcheck disable=SC2086
				of_ddp $options </dev/null | sed "s/^/$round /"
			else
				# shellcheck disable=SC2086
				echo "$round $(step "$name" $options -s job.seed=$((seed + round)) \
					</dev/null)"
			fi >>"$work/steps"
			tail -n 1 "$work/steps" >&2
		done <"$file"
		tac "$file" >"$file.next"
		mv "$file.next" "$file"
	done
	echo
	echo "### $title"
	echo
	python3 - "$work/steps" "$wanted" "$what" <<'END'
import statistics, sys
names, got = [], {}
for line in open(sys.argv[1]):
    round, name, *rest = line.split() if len(line.split()) > 2 else ("", "?", "failed")
    if name not in names:
        names.append(name)
    if rest != ["failed"]:
        got.setdefault(name, {})[round] = [None if x == "-" else float(x) for x in rest]
wanted, what = sys.argv[2:]
base = "auto" if what == "best" else names[0]
print("| variant | step, ms | ratio | wanted | all | predicted, ms | transfers, ms | spread, % | buckets | "
    "over workers, % | without slots, % | E | alpha |")
print("|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
def middle(xs, form="%.0f"):
    xs = [x for x in xs if x is not None]
    return form % statistics.median(xs) if xs else "-"
others = [x for x in names if x != base and x in got]
best = min(others, key=lambda x: statistics.median(v[0] for v in got[x].values()), default=None)
for x in names:
    if x not in got:
        print("| %s | did not run |" % x)
        continue
    of = base if what == "base" else best
    ratios = [got[of][r][0] / got[x][r][0] for r in got[x] if r in got.get(of, {})]
    shown = ratios and (x == base) == (what == "best")
    print("| %s | %s | %s | %s | %s | %s |" % (x, middle(v[0] for v in got[x].values()),
        "%.3f" % statistics.median(ratios) if shown else "", wanted if shown else "",
        ", ".join("%.3f" % y for y in ratios) if shown else "",
        " | ".join(middle((v[i] if i < len(v) else None for v in got[x].values()),
            "%.0f" if i < 5 else "%.1f" if i < 7 else "%.2f") for i in range(1, 9))))
END
}

# knows KEY=VALUE: does the program?
knows() { "$heddle" config check "$work/job.yaml" -s "$1" >>"$work/log" 2>&1; }

orders()        # SYNC
{
	local order
	if ! knows comm.sync="$1"; then
		echo
		echo "comm.sync $1: not in this program."
		return
	fi
	for order in random ${ORDERS:-search tac tic auto}; do
		echo "$order|-s comm.sync=$1 -s comm.order=$order -s comm.buckets=${BUCKETS:-auto}"
	done >"$work/orders"
	table "comm.sync $1: orders against random" ">= 1.2" base <"$work/orders"
	[ "$draws" = 0 ] || most "$1"
}

machines "${MACHINES:-3}"
echo "$(date -u +%Y-%m-%d), $(processor), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)," \
	"$("$heddle" version | head -n 1), $nmachines machines, $mbit Mbit/s, \
${DELAY_MS:+delay $DELAY_MS ms, }$rounds rounds of $steps steps"
of=
for row in $rows; do
	want="vgg16 0 ring"
	case $row in
	order) want="${MODEL:-vgg16} 0 ring" ;;
	servers) want="${MODEL:-vgg16} 1 servers" ;;
	unclipped) want="${MODEL:-vgg16} 0 servers" ;;
	small* | unfused) want="small 0 ring" ;;
	esac
	if [ "$of" != "$want" ]; then
		echo
		# shellcheck disable=SC2086
		if ! said=$(model $want); then
			echo "$row: $(grep -v '^!!' "$work/log" | tail -n 1)"
			continue
		fi
		echo "${want%% *}: $said."
		of=$want
		[ "${LIMIT:-}" ] || limit=$((60 + 4 * (steps + 4) * $(cat "$work/computing") / 1000))
		direct=
		! knows comm.primitive=direct || direct="-s comm.primitive=direct"
	fi
	case $row in
	order) orders sharded ;;
	servers | unclipped) orders parameter-server ;;
	buckets)
		# 25 MiB are 1/21 of what the whole VGG-16 has: so of this one, too
		table "everything auto against fixed buckets, fifo" ">= 1.3" base <<END
25MiB-fifo|-s comm.buckets=26214400 -s comm.order=fifo $direct
1/21-fifo|-s comm.buckets=400000 -s comm.order=fifo $direct
auto|
END
		;;
	small)
		table "many small tensors: auto against one message each, fifo" ">= 3.8" base <<END
each-fifo|-s comm.buckets=none -s comm.order=fifo $direct
auto|
END
		;;
	unfused)
		has_torch || continue
		table "many small tensors: auto against gloo's ring for each tensor" ">= 3.8" base <<END
DDP|0
auto|
each-fifo|-s comm.buckets=none -s comm.order=fifo $direct
DDP|1 25
END
		;;
	sweep | small-sweep)
		table "auto against the best fixed setting" ">= 0.98" best <<END
auto|
each-fifo|-s comm.buckets=none -s comm.order=fifo $direct
each-auto|-s comm.buckets=none $direct
64KiB-fifo|-s comm.buckets=65536 -s comm.order=fifo $direct
64KiB-auto|-s comm.buckets=65536 $direct
256KiB-fifo|-s comm.buckets=262144 -s comm.order=fifo $direct
256KiB-auto|-s comm.buckets=262144 $direct
1MiB-fifo|-s comm.buckets=1048576 -s comm.order=fifo $direct
1MiB-auto|-s comm.buckets=1048576 $direct
4MiB-fifo|-s comm.buckets=4194304 -s comm.order=fifo $direct
4MiB-auto|-s comm.buckets=4194304 $direct
25MiB-auto|-s comm.buckets=26214400 $direct
END
		;;
	ddp)
		has_torch || continue
		table "auto against PyTorch DDP over gloo, its best bucket size" "> 1" best <<END
auto|
DDP|0.25 1 4 25
END
		;;
	*)
		echo "bench: ROWS: $row is none of those that its head names" >&2
		exit 2
		;;
	esac
done
