#!/bin/bash
# pipeline.sh -- what a step of a pipeline was predicted to take before the run, and what it took. Prints the
# tables of docs/results/pipeline.md:
#
#	bench/pipeline.sh                          # cores, workers and paced: some four minutes
#	HD_BENCH_PARTS=chosen bench/pipeline.sh    # some two minutes
#	HD_BENCH_PARTS=links bench/pipeline.sh     # some twelve minutes, as root: machines.sh
# HD_BENCH_MACHINES="2 3" HD_BENCH_MBIT="100 1000" links alone
# HD_BENCH_STEPS=6 HD_BENCH_ROUNDS=3 HD_BENCH_PACE=5 HD_BENCH_RANKS="3 4 8" bench/pipeline.sh
#
# cores: two ranks that compute, each on a core of its own if nothing else runs. workers: the same as two
# worker processes. paced: so many ranks that wait what a core was measured to take, HD_BENCH_PACE times as
# long; they need no core for it, so the runtime and the prediction are compared, not kernels. chosen: what
# parallel.mode auto takes on 4 paced ranks, beside every candidate actually run: each schedule, with all
# chunks that the stages allow, in one pipeline and in two, and the whole model on each rank. links: workers
# of a device each that wait so, in network namespaces of their own behind links of so many Mbit/s, one run
# each; measured is the time from commit to commit.
#
# A run measures its ops, predicts, trains HD_BENCH_STEPS steps; of HD_BENCH_ROUNDS runs the one is shown
# whose error is the middle one, against the median of its steps: a machine may change its speed between what
# a run measures and what it takes, to either side. The errors of all runs stand behind it; mean and worst
# below a table are of rows. Of ranks that compute the last column holds what all instructions of a step were
# predicted to take against the processor time that they took, which other programs do not lengthen.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
. bench/staged.sh
parts=${HD_BENCH_PARTS:-cores workers paced} steps=${HD_BENCH_STEPS:-6} rounds=${HD_BENCH_ROUNDS:-3}
schedules=${HD_BENCH_SCHEDULES:-gpipe 1f1b interleaved zb-h1 zb-v 2bw}
ranks=${HD_BENCH_RANKS:-3 4 8}
: >"$work/every"
load() { cut -d ' ' -f 1 /proc/loadavg; }
field() { grep -o "\"$1\":[0-9.e+-]*" "$2" | head -n 1 | cut -d : -f 2; }

# error of the predicted time of all instructions of a step, of their processor time
work_error()
{
	local n='[0-9.e+-]*'
	grep -o "\"count\":$n,\"predicted_ms\":$n,\"measured_ms\":$n,\"processor_ms\":$n" "$work/json" |
		awk -F '[:,]' '{ p += $2 * $4; u += $2 * $8 }
		END { printf "%.1f", u ? (p / u - 1) * 100 : 0 }'
}

# once DEVICES OPTION...: "predicted measured least" of one run, in $work/json too. The prediction is written
# before the first step (plan/NNNN.predicted.json; of workers the event `predicted`).
once()
{
	local devices=$1
	shift
	rm -rf "$work/run"
	"$heddle" run "$job" --out "$work/run" --steps "$steps" --devices "$devices" -q --json \
		--explain "$@" \
		>"$work/json" 2>"$work/log" || { cat "$work/log" >&2; return 1; }
	echo "$(field predicted_ms "$work/json") $(field measured_ms "$work/json")" \
		"$(field least_ms "$work/json") $(work_error)"
}

# middle DEVICES OPTION...: of so many rounds that whose error is the middle one, and the errors of all
middle()
{
	local i
	for ((i = 0; i < rounds; i++)); do once "$@" || return 1; done |
		awk '{ printf "%+.1f %s\n", ($1 / $2 - 1) * 100, $0 }' | sort -g |
		awk '{ all = all (NR > 1 ? "," : "") $1; $1 = ""; line[NR] = $0 }
			END { print line[int((NR + 1) / 2)], all }'
}

# row NAME "PREDICTED MEASURED LEAST"; errors go to $work/errors
row()
{
	echo "$1 $2" | awk -v load="$(load)" -v out="$work/errors" '{
		e = ($2 / $3 - 1) * 100
		gsub(",", ", ", $6)
		printf "| %s | %.2f | %.2f | %.2f | %+.1f %% | %s | %+.1f %% | %s | %s |\n", $1, $2, $3, $4, \
			e, $6, ($2 / $4 - 1) * 100, load,
			($5 < -90 || $5 + 0 > 900 ? "" : sprintf("%+.1f %%", $5))
		print (e < 0 ? -e : e) >>out }'
}

head_of()
{
	: >"$work/errors"
	printf '\n%s\n\n' "$1"
	echo "| schedule | predicted ms | median ms | least ms | of the median | of all runs |" \
		"of the least | load | work |"
	echo "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
}

foot_of()
{
	awk '{ s += $1; if ($1 > w) w = $1 }
		END { if (NR) printf "\nmean error %.1f %%, worst %.1f %%\n", s / NR, w }' "$work/errors"
	cat "$work/errors" >>"$work/every"
}

# times RATE: what a core was measured to take, and links of so many bits a second
times()
{
	[ -s "$work/start/costs.json" ] || "$heddle" run "$job" --out "$work/start" --workers 1 \
		--devices "paced:1:$pace" --steps 1 -q 2>>"$work/log" >&2 || return 1
	python3 - "$work/start/costs.json" "$1" "$port" <<'END'
import json, sys
p = json.loads(open(sys.argv[1]).read().split("\n")[1])
p["links"] = [{"level": 1, "kind": "tcp", "latency": 100000,
               "bytes_per_s": float(sys.argv[2]) * float(sys.argv[3]), "duplex": True}]
print(json.dumps(p))
END
}

# behind_links MBIT SCHEDULE
behind_links()
{
	local got
	burst=32kb
	[ "$1" -gt 200 ] || burst=5kb
	times "${1}e6" >"$work/times.json" &&
		got=$(measure "${1}mbit" "$steps" "$job" "--devices paced:1:1 --profile $work/times.json" \
			-s parallel.mode=pipeline -s comm.sync=stages $(keys_of "$2")) ||
		{ tail -n 3 "$work/log" >&2; got="0 0 0"; }
	awk -v s="$2" -v load="$(load)" -v out="$work/errors" '{
		if (!$1 || !$2) {
			printf "| %s | %s | %s | | | %s |\n", s, $1, $2 ? $2 : "did not run", load
			exit
		}
		e = ($1 / $2 - 1) * 100
		printf "| %s | %.1f | %.1f | %+.1f %% | %d | %s |\n", s, $1, $2, e, $3, load
		print (e < 0 ? -e : e) >>out }' <<<"$got"
}

echo "$(date -u +%Y-%m-%d), $(processor), $(nproc) cores," \
	"load $(cut -d ' ' -f 1-3 /proc/loadavg) at the beginning, $("$heddle" version | head -n 1)"
for part in $parts; do
	case $part in
	cores)
		head_of "2 ranks that compute, $steps steps, the middle of $rounds runs"
		for s in $schedules; do
			row "$s" "$(middle 2 -s parallel.mode=pipeline $(keys_of "$s"))"
		done
		foot_of ;;
	workers)
		head_of "2 workers that compute, $steps steps, the middle of $rounds runs"
		for s in gpipe 1f1b zb-h1; do
			row "$s" "$(middle 1 --workers 2 -s parallel.mode=pipeline $(keys_of "$s"))"
		done
		foot_of ;;
	paced)
		for n in $ranks; do
			head_of "$n ranks that wait $pace times what a core takes (null devices), \
$steps steps, the middle of $rounds runs"
			for s in $schedules; do
				row "$s" "$(middle "paced:$n:$pace" -s parallel.mode=pipeline \
					$(keys_of "$s"))"
			done
			foot_of
		done ;;
	links)
		. bench/machines.sh
		trap 'machines_gone; rm -rf "$work"' EXIT
		for n in ${HD_BENCH_MACHINES:-2 3}; do
			machines "$n"
			for mbit in ${HD_BENCH_MBIT:-100 1000}; do
				: >"$work/errors"
				printf '\n%d workers behind links of %d Mbit/s, whose devices wait %s times' \
					"$n" "$mbit" "$pace"
				printf ' what a core takes, %d steps\n\n' "$steps"
				echo "| schedule | predicted ms | median ms | error | steps | load |"
				echo "|---|--:|--:|--:|--:|--:|"
				for s in $schedules; do behind_links "$mbit" "$s"; done
				foot_of
			done
			machines_gone
		done ;;
	chosen)
		head_of "what auto takes on 4 ranks that wait (null devices), beside all candidates, \
the middle of $rounds runs"
		rounds=1
		row auto "$(middle "paced:4:$pace" -s parallel.mode=auto)" | tee "$work/auto"
		row data "$(middle "paced:4:$pace" -s parallel.mode=data)" | tee "$work/all"
		for s in gpipe 1f1b interleaved:2 interleaved:3 zb-h1 zb-h2 zb-v v-half v-min dualpipev; do
			for d in 1 2; do
				chunks=${s#*:}
				row "$s/${d}x$((4 / d))" "$(middle "paced:4:$pace" -s parallel.mode=pipeline \
					-s parallel.schedule="${s%:*}" -s parallel.replicas=$d \
					$([ "$chunks" = "$s" ] || echo "-s parallel.chunks=$chunks"))"
			done
		done | tee -a "$work/all"
		awk -F '|' 'FNR == NR { auto = $4 + 0; next }
			!n++ || $4 + 0 < least { least = $4 + 0; name = $2 }
			END { printf "\nauto takes %.3f of the best of %d (%s)\n", auto / least, n, name }' \
			"$work/auto" "$work/all" ;;
	esac
done
awk '{ s += $1; if ($1 > w) w = $1 }
	END { if (NR) printf "\nall %d rows: mean error %.1f %%, worst %.1f %%\n", NR, s / NR, w }' \
	"$work/every"
