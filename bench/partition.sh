#!/bin/bash
# partition.sh -- how long `heddle plan partition` takes: every row of the stored answers of PipeDream's program, and chains
# that its recurrence could not finish. CPU seconds (user) of the whole process, best of HD_BENCH_REPEAT (3).
# HD_PIPEDREAM names a checkout of msr-fiddle/pipedream (branch pipedream): its program is then timed on the same
# rows (HD_TORCH_PYTHON, or python3 with numpy), once each, no longer than HD_BENCH_LIMIT seconds (600). Without it the
# column says "-": the stored answers have no times. Quote ratios.
set -eu
cd "$(dirname "$0")/.."
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
data=${HEDDLE_SHARED:-../shared}/data/pipedream
python=${HD_TORCH_PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "# $(date -u +%F) $(git rev-parse --short HEAD) $(uname -m) $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"

# cpu COMMAND...: its user seconds; what it prints is in $work/out
cpu() { local TIMEFORMAT=%U; { time "$@" >"$work/out" 2>"$work/err"; } 2>&1; }
ours()          # the least of several
{
	local best=9999 i s
	for i in $(seq "${HD_BENCH_REPEAT:-3}"); do
		s=$(cpu "$heddle" plan partition --json "$@")
		[ -s "$work/out" ] || { cat "$work/err" >&2; exit 1; }
		best=$(awk -v a="$s" -v b="$best" 'BEGIN { print a < b ? a : b }')
	done
	echo "$best"
}
theirs()        # MODEL MACHINES BANDWIDTH RATIO STRAIGHT FEWER MEMORY
{
	[ -n "${HD_PIPEDREAM:-}" ] && [ "$1" != inception_c ] || { echo -; return; }
	local more=()
	[ "$4" = None ] || more+=(--activation_compression_ratio "$4")
	[ "$5" = False ] || more+=(--straight_pipeline)
	[ "$6" = False ] || more+=(--use_fewer_machines)
	[ "$7" = None ] || more+=(--use_memory_constraint -s "$7")
	mkdir -p "$work/stub"
	touch "$work/stub/graphviz.py"          # it draws nothing here
	(cd "$HD_PIPEDREAM/optimizer" && PYTHONPATH=$work/stub cpu timeout "${HD_BENCH_LIMIT:-600}" "$python" optimizer_graph_hierarchical.py \
		-f "$(realpath "$data/$1.graph.txt")" -n ${2//,/ } -b ${3//,/ } "${more[@]}")
}

printf '%-14s %-10s %-20s %-28s %10s %10s %8s\n' model machines bandwidth options ours_s theirs_s ratio
row()
{
	local options=() a b
	[ "$4" = None ] || options+=(--activations "$4")
	[ "$5" = False ] || options+=(--straight)
	[ "$6" = False ] || options+=(--fewer)
	[ "$7" = None ] || options+=(--memory "$7")
	local file=$1
	[ "$file" != inception_c ] || { file=inception_v3; options+=(--compress-branches); }
	a=$(ours --graph "$data/$file.graph.txt" --machines "$2" --bandwidth "$3" --variant code "${options[@]}")
	b=$(theirs "$@")
	printf '%-14s %-10s %-20s %-28s %10.3f %10s %8s\n' "$1" "$2" "$3" "${options[*]:-}" "$a" "$b" "$(awk -v a="$a" -v b="$b" 'BEGIN { if (b == "-") print "-"; else printf "%.0f", b / (a > 0.001 ? a : 0.001) }')"
}
if [ -f "$data/reference.json" ]; then
	"$python" -c 'import json, sys
for r in json.load(open(sys.argv[1]))["runs"]:
    print(r["model"], ",".join(map(str, r["machines"])), ",".join("%g" % b for b in r["bandwidth"]), r["activation_ratio"], r["straight"], r["fewer"], r["memory"])' "$data/reference.json" >"$work/rows"
	while read -r line; do row $line; done <"$work/rows"
else
	echo "no $data/reference.json: set HEDDLE_SHARED"
fi

# chain CUTS SEED: layers of uneven size
chain()
{
	awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < n; i++) printf "n%d -- Op -- forward_compute_time=%.3f, backward_compute_time=%.3f, activation_size=%d, parameter_size=%d\n", i, 1 + rand(), 2 + rand(), 4000 * int(100 + 900 * rand()), 4000 * int(1000 * rand() * rand() * rand()); for (i = 1; i < n; i++) printf "\tn%d -- n%d\n", i - 1, i }'
}
for variant in paper printed code heddle; do
	for bandwidth in 1e9 1e10 1e11; do
		chain 5000 1 >"$work/chain.txt"
		options=(--variant $variant)
		[ $variant != code ] || options+=(--activations 1)
		a=$(HD_BENCH_REPEAT=1 ours --graph "$work/chain.txt" --machines 3072 --bandwidth $bandwidth "${options[@]}")
		printf '%-14s %-10s %-20s %-28s %10.3f %10s %8s\n' chain-5000 3072 $bandwidth "${options[*]}" "$a" - -
	done
done
