#!/bin/bash
# ahead.sh -- what it is worth that a step begins on the parameters that are here: comm.overlap auto against
# off, of data parallelism with replicated and with sharded state, over worker processes each in a network
# namespace of its own behind a shaped link. Prints the table of docs/results/ahead.md. Needs root, ip and tc.
#
#	bench/ahead.sh                            # some fifteen minutes
# HD_BENCH_STEPS=10 HD_BENCH_ROUNDS=3 HD_BENCH_ROWS=WORDS HD_BENCH_MACHINES=3
#
# In place of computing devices wait what the nodes of the model took one device of this machine, times a
# factor, so that one core serves any number of machines; messages are real. A worker has one virtual node, so
# one wave. Beside each row stand the computing of a step as the profile has it, and the transfers of one: the
# step of the same job on devices that take no time. The runs of a pair follow one another, the first of each
# in turns; the median pair is given and the ratios of all.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
. bench/machines.sh
trap 'machines_gone; rm -rf "$work"' EXIT
steps=${HD_BENCH_STEPS:-10} rounds=${HD_BENCH_ROUNDS:-3}
burst=128kb
machines "${HD_BENCH_MACHINES:-3}"

args_of()
{
	case $1 in
	vgg16) echo "base: 12, hidden: 768, dropout: 0.5, classes: 188" ;;
	resnet18) echo "stem: small, channels: 3, height: 16, width: 16, base: 40, classes: 10" ;;
	esac
}

job()           # MODEL
{
	cat <<END
job: {name: ahead, seed: 3, steps: 1000}
model: {use: "builtin:$1", args: {$(args_of "$1")}}
data: {kind: synthetic, count: 96}
batch: {global: $((8 * nmachines)), virtual_nodes: $nmachines}
optim: {kind: momentum, lr: 1e-3, clip: 0, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 1}
eval: {every: 0}
trace: {digest: 1000}
END
}

# times FACTOR: the profile of the job in $work/times.json, each node as many times as long; prints what a
# virtual node takes, in ms
times()
{
	python3 - "$work/start/costs.json" "$work/times.json" "$1" <<'END'
import json, sys
p = json.loads(open(sys.argv[1]).read().split("\n")[1])
all = 0
for x in p["nodes"]:
    for k in "fiw":
        ns = int(x[k]["p50"] * float(sys.argv[3]))
        x[k] = {"p50": ns, "mean": ns, "sd": 0, "min": ns, "n": 1}
        all += ns
p["method"] = "imported"
open(sys.argv[2], "w").write(json.dumps(p))
print(round(all / 1e6))
END
}

# step_of RATE OPTION...: the median step, in ms
step_of()
{
	local rate=$1 got
	shift
	if ! got=$(measure "$rate" "$steps" "$work/job.yaml" \
		"--devices paced:1 --profile $work/times.json" "$@"); then
		tail -n 3 "$work/log" >&2
		return 1
	fi
	cut -d ' ' -f 2 <<<"$got"
}

# pairs RATE OPTION...: "off auto off/auto" of each round
pairs()
{
	local i first=off second=auto a b
	for ((i = 0; i < rounds; i++)); do
		a=$(step_of "$@" -s comm.overlap=$first) || return 1
		b=$(step_of "$@" -s comm.overlap=$second) || return 1
		[ $first = off ] && echo "$a $b" || echo "$b $a"
		read -r first second <<<"$second $first"
	done | awk '{ printf "%d %d %.3f\n", $1, $2, $1 / $2 }' | sort -g -k 3
}

echo "$(date -u +%Y-%m-%d), $(processor), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)," \
	"$("$heddle" version | head -n 1), $nmachines machines"
echo
echo "| model | state | link, Mb/s | computing, ms | transfers, ms | step, off, ms | step, auto, ms |" \
	"off / auto | all pairs |"
echo "|---|---|--:|--:|--:|--:|--:|--:|---|"
while IFS='|' read -r name sync factor rate; do
	[[ "$name $sync $rate" =~ ${HD_BENCH_ROWS:-.} ]] || continue
	job "$name" >"$work/job.yaml"
	rm -rf "$work/start"
	"$heddle" run "$work/job.yaml" --out "$work/start" --workers 1 --devices paced:1 --steps 1 -q \
		2>>"$work/log"
	times 0 >/dev/null
	transfers=$(step_of "${rate}mbit" -s comm.sync=$sync -s comm.overlap=off) || transfers=-
	computing=$(times "$factor")
	if ! pairs "${rate}mbit" -s comm.sync=$sync >"$work/pairs"; then
		echo "| $name | $sync | $rate | did not run |"
		continue
	fi
	sed -n "$(((rounds + 1) / 2))p" "$work/pairs" | while read -r off auto ratio; do
		echo "| $name | $sync | $rate | $computing | $transfers | $off | $auto | $ratio |" \
			"$(cut -d ' ' -f 3 "$work/pairs" | paste -sd , | sed 's/,/, /g') |"
	done
done <<'END'
vgg16|allreduce|3|200
vgg16|sharded|3|200
vgg16|allreduce|3|400
vgg16|allreduce|3|100
resnet18|allreduce|6|200
resnet18|sharded|6|200
END
