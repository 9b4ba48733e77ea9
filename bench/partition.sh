#!/bin/bash
# partition.sh -- how long `heddle plan partition` takes: every row of the stored answers of PipeDream's
# program, beside a plain Python program of the same published recurrence (bench/partition_plain.py: the
# stored answers have no times), and chains that the recurrence could not finish. CPU seconds (user and
# system) of whole processes, ours best of HD_BENCH_REPEAT (3), theirs once and for at most HD_BENCH_LIMIT of
# them (60). Each answer of both must be the stored one: states exactly, time to 1e-9, or exit 1.
# HD_BENCH_PLAIN=--skip adds to that program the line that the recurrence lacks (see its head). HD_PIPEDREAM
# names a checkout of msr-fiddle/pipedream (branch pipedream): its program is then timed instead
# (HD_TORCH_PYTHON, or python3, with numpy). Prints Markdown: docs/results/partition.md is made by it.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
data=${HEDDLE_SHARED:-../shared}/data/pipedream
python=${HD_TORCH_PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
peer=${HD_PIPEDREAM:+that program in a checkout; without one: }
cat <<END
# The partitioner beside a plain program

Made by \`bench/partition.sh\` on $(date -u +%F) with heddle $(git rev-parse --short HEAD), $(uname -m),
$(processor), $(nproc) cores${HD_BENCH_NOTE:+, $HD_BENCH_NOTE}.

The rows are those of \`shared/data/pipedream/reference.json\`: published profiles, asked of the original
program. That file has its answers and no times, and the program itself was not at hand. So heddle is held
against ${peer}\`bench/partition_plain.py\`, the published recurrence in plain Python with lists and sets as
the original has them, written from its description: not the program
itself${HD_BENCH_PLAIN:+ (here with $HD_BENCH_PLAIN)}. Both give the stored number of cuts and the stored time
(to 1e-9) on every row they end. CPU seconds (user and system) of whole processes, variant \`code\`; heddle
the best of ${HD_BENCH_REPEAT:-3}, the plain program once and for at most ${HD_BENCH_LIMIT:-60} s (\`>\`).

END

# cpu COMMAND...: its seconds, user and system; what it prints is in $work/out
cpu() { local TIMEFORMAT='%U %S'; { time "$@" >"$work/out" 2>"$work/err"; } 2>&1 |
	awk '{ s += $1 + $2 } END { printf "%.3f\n", s }'; }
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
limited() { (ulimit -t "${HD_BENCH_LIMIT:-60}"; "$@"); }
# MODEL MACHINES BANDWIDTH RATIO STRAIGHT FEWER MEMORY; nothing in $work/out: the limit came first
theirs()
{
	local more=() file=$data/$1.graph.txt
	if [ -z "${HD_PIPEDREAM:-}" ]; then
		[ "$1" != inception_c ] || { more+=(--compress-branches); file=$data/inception_v3.graph.txt; }
		[ "$4" = None ] || more+=(--activations "$4")
		[ "$5" = False ] || more+=(--straight)
		[ "$6" = False ] || more+=(--fewer)
		[ "$7" = None ] || more+=(--memory "$7")
		cpu limited "$python" bench/partition_plain.py "$file" --machines "$2" --bandwidth "$3" \
			"${more[@]}" ${HD_BENCH_PLAIN:-}
		return
	fi
	[ "$1" != inception_c ] || return 0
	[ "$4" = None ] || more+=(--activation_compression_ratio "$4")
	[ "$5" = False ] || more+=(--straight_pipeline)
	[ "$6" = False ] || more+=(--use_fewer_machines)
	[ "$7" = None ] || more+=(--use_memory_constraint -s "$7")
	mkdir -p "$work/stub"
	touch "$work/stub/graphviz.py"          # it draws nothing here
	(
		cd "$HD_PIPEDREAM/optimizer"
		PYTHONPATH=$work/stub cpu limited "$python" optimizer_graph_hierarchical.py \
			-f "$(realpath "$data/$1.graph.txt")" -n ${2//,/ } -b ${3//,/ } "${more[@]}"
	)
}

said() { sed -n 's/.*"predicted_s":[ ]*\([0-9.e+-]*\).*/\1/p' "$work/out"; }
same()          # PROGRAM STATES SECONDS: what it printed is the stored answer
{
	[ -s "$work/out" ] && [ -z "${HD_PIPEDREAM:-}" -o "$1" = heddle ] || return 0
	grep -q "\"states\":[ ]*$2[,}]" "$work/out" &&
		awk -v a="$(said)" -v b="$3" 'BEGIN { exit !(a >= b * (1 - 1e-9) && a <= b * (1 + 1e-9)) }' ||
		{ echo "bench: $1 says $(cat "$work/out"), stored are $2 states and $3 s" >&2; exit 1; }
}
row()           # MODEL MACHINES BANDWIDTH RATIO STRAIGHT FEWER MEMORY STATES SECONDS
{
	local options=() a b sign=
	[ "$4" = None ] || options+=(--activations "$4")
	[ "$5" = False ] || options+=(--straight)
	[ "$6" = False ] || options+=(--fewer)
	[ "$7" = None ] || options+=(--memory "$7")
	local file=$1
	[ "$file" != inception_c ] || { file=inception_v3; options+=(--compress-branches); }
	a=$(ours --graph "$data/$file.graph.txt" --machines "$2" --bandwidth "$3" --variant code \
		"${options[@]}")
	same heddle "$8" "$9"
	b=$(theirs "$@")
	[ -s "$work/out" ] || sign='>'
	same 'the plain program' "$8" "$9"
	awk -v m="$1" -v n="$2" -v bw="$3" -v o="${options[*]:-}" -v states="$8" -v a="$a" -v b="${b:-0}" \
		-v sign="$sign" 'BEGIN {
			printf "| %s | %s | %s | %s | %d | %.3f | %s%.2f", m, n, bw, o, states, a, sign, b
			printf " | %s%.0f |\n", sign, b / (a > 0.001 ? a : 0.001) }' | tee -a "$work/table"
}
if [ -f "$data/reference.json" ]; then
	"$python" -c 'import json, sys
for r in json.load(open(sys.argv[1]))["runs"]:
    print(r["model"], ",".join(map(str, r["machines"])), ",".join("%g" % b for b in r["bandwidth"]),
          *(r[k] for k in ("activation_ratio", "straight", "fewer", "memory", "states")), repr(r["tp_s"]))
' "$data/reference.json" >"$work/rows"
	echo '| model | machines | bytes/s | options | cuts | heddle, CPU s | plain, CPU s | ratio |'
	echo '|---|---|---|---|--:|--:|--:|--:|'
	while read -r line; do row $line; done <"$work/rows"
	awk -F '|' '
		{
			n++; ratio = $9; sub(/>/, "", ratio); ratio += 0
			plain = $8; sub(/>/, "", plain); all += plain; ours += $7
			if (ratio >= 100) many++
			if (plain >= 1) { long++; if (!least || ratio < least) least = ratio }
			else if (!fewest || ratio < fewest) fewest = ratio
		}
		END {
			printf "\n%d of %d rows are at least 100 times as fast; all rows together ", many, n
			printf "%.0f times (%.2f and %.0f CPU s).\n", all / ours, ours, all
			printf "Of the %d that take the plain program a second or more ", long
			printf "the least ratio is %.0f, of the others %.0f.\n", least, fewest
		}' "$work/table"
	echo "There the start of a process is most of it: an empty program takes the interpreter $(cpu \
		"$python" -c pass) s, \`heddle version\` takes $(cpu "$heddle" version) s."
	echo
else
	echo "no $data/reference.json: set HEDDLE_SHARED"
fi

# chain CUTS SEED: layers of uneven size
chain()
{
	awk -v n="$1" -v seed="$2" 'BEGIN {
		srand(seed)
		for (i = 0; i < n; i++) {
			printf "n%d -- Op -- forward_compute_time=%.3f, ", i, 1 + rand()
			printf "backward_compute_time=%.3f, ", 2 + rand()
			printf "activation_size=%d, ", 4000 * int(100 + 900 * rand())
			printf "parameter_size=%d\n", 4000 * int(1000 * rand() * rand() * rand())
		}
		for (i = 1; i < n; i++) printf "\tn%d -- n%d\n", i - 1, i
	}'
}
echo 'A chain of 5000 cuts on 3072 machines, which the plain program cannot end:'
echo
echo '| bytes/s | options | heddle, CPU s |'
echo '|---|---|--:|'
for variant in paper printed code heddle; do
	for bandwidth in 1e9 1e10 1e11; do
		chain 5000 1 >"$work/chain.txt"
		options=(--variant $variant)
		[ $variant != code ] || options+=(--activations 1)
		a=$(HD_BENCH_REPEAT=1 ours --graph "$work/chain.txt" --machines 3072 --bandwidth $bandwidth \
			"${options[@]}")
		printf '| %s | %s | %.3f |\n' $bandwidth "${options[*]}" "$a"
	done
done
