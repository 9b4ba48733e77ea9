#!/bin/bash
# choice.sh -- is what parallel.mode auto takes for workers the fastest of all small candidates, each run?
#
#	bench/choice.sh                       # gpt, mlp, conv on 3 and 4 workers that wait: some ten minutes
#	HD_BENCH_MODELS=gpt HD_BENCH_RANKS=4 HD_BENCH_STEPS=8 HD_BENCH_PACE=10 bench/choice.sh
#	HD_BENCH_UPDATE=2bw bench/choice.sh   # a job of delayed updates (2bw alone), whose steps may overlap
#	HD_BENCH_KERNELS=1 bench/choice.sh    # workers that compute, on the cores there are: no judgement
#
# Candidates are every way to lay N workers of a device each out as d pipelines of p ranks of t devices (p d
# t = N), with every schedule of flush updates, that of HD_BENCH_UPDATE, and the chunks that it takes; two
# stages with copies in different numbers; and the whole model at each. Where t is 1 they are cut as auto
# cuts them (parallel.mode: auto, bound by the keys); ranks of t devices are of t workers (parallel.groups),
# cut by FLOPs. All wait what one file of costs says (--profile), which a first run has measured,
# HD_BENCH_PACE times as long: null devices, so that plans are compared, and not what else the machine does.
# With other programs on it: chrt -f 10 bench/choice.sh. A run's time is the median of HD_BENCH_STEPS steps;
# the four fastest and what auto takes are run HD_BENCH_ROUNDS times more, and their least median counts:
# late wakes only ever add to a step. What is refused is listed with its reason.
#
# Devices that wait take no time for sums and updates, so the whole model at each is mostly the fastest: what
# auto takes of pipelines alone (comm.sync: stages) is judged apart.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
. bench/staged.sh
steps=${HD_BENCH_STEPS:-6} rounds=${HD_BENCH_ROUNDS:-2} kernels=${HD_BENCH_KERNELS:-}
update=${HD_BENCH_UPDATE:-flush}
schedules="gpipe 1f1b zb-h1 zb-h2 zb-v v-half v-min dualpipev interleaved:2 interleaved:3"
[ "$update" = flush ] || schedules="$schedules $update"
mkdir "$work/jobs"
head_of_job() { echo "job: {name: $1, seed: 3, steps: 1000}"; }
tail_of_job()
{
	cat <<'END'
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 1}
eval: {every: 0}
trace: {digest: 1000}
END
}
{
	head_of_job gpt
	echo 'model: {use: "builtin:gpt", shards: 4,'
	echo '        args: {layers: 6, width: 64, heads: 4, context: 32, vocab: 256}}'
	echo 'data: {kind: synthetic, count: 256}'
	echo 'batch: {global: 48, virtual_nodes: 12}'
	tail_of_job
} >"$work/jobs/gpt.yaml"
{
	head_of_job mlp
	echo 'model: {use: "builtin:mlp",'
	echo '        args: {input: [1, 28, 28], hidden: [512, 512, 384, 256, 256], classes: 10}}'
	echo 'data: {kind: synthetic, count: 768}'
	echo 'batch: {global: 384, virtual_nodes: 12}'
	tail_of_job
} >"$work/jobs/mlp.yaml"
{
	head_of_job conv
	echo 'model: {use: "builtin:lenet"}'
	echo 'data: {kind: synthetic, count: 384}'
	echo 'batch: {global: 192, virtual_nodes: 12}'
	tail_of_job
} >"$work/jobs/conv.yaml"

field() { grep -o "\"$1\":[0-9.e+-]*" "$work/json" | head -n 1 | cut -d : -f 2; }

# once N OPTION...: "predicted measured" of one run of N workers; false: refused, and $work/log says why
once()
{
	local n=$1 device=(--devices "paced:1:1" --profile "$work/costs.json")
	[ -z "$kernels" ] || device=(--devices 1)
	shift
	rm -rf "$work/run"
	timeout 120 "$heddle" run "$job" --out "$work/run" --workers "$n" --steps "$steps" -q --json \
		-s optim.update="$update" "${device[@]}" "$@" >"$work/json" 2>"$work/log" || return 1
	local predicted measured
	predicted=$(field predicted_ms) measured=$(field measured_ms)
	echo "${predicted:-0} ${measured:-$(median)}"
}

# of the records, without the first: where no step was predicted none was compared
median()
{
	grep -o '"step_ms":[0-9.]*' "$work/run/metrics.ndjson" | cut -d : -f 2 | tail -n +2 | sort -g |
		awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] }'
}

# of all virtual nodes what the ops take on a core, each so many times as long
costs()
{
	rm -rf "$work/start"
	"$heddle" run "$job" --out "$work/start" --workers 1 --devices "paced:1:$pace" --steps 1 -q \
		-s optim.update="$update" \
		>"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
	python3 - "$work/start/costs.json" >"$work/costs.json" <<'END'
import json, sys
print(json.dumps(json.loads(open(sys.argv[1]).read().split("\n")[1])))
END
}

# candidates N: NAME|OPTIONS, a line each
candidates()
{
	local n=$1 t p d s v
	echo "data|-s parallel.mode=data"
	for ((t = 1; t < n; t++)); do
		echo "1f1b-rr p2 on $t,$((n - t))|-s parallel.mode=pipeline -s comm.sync=stages" \
			"-s parallel.copies=$t,$((n - t))"
	done
	for ((t = 1; t <= n; t++)); do
		((n % t == 0)) && { ((t == 1)) || ((shards % t == 0)); } || continue
		for ((p = 1; p <= n / t; p++)); do
			((n / t % p == 0)) || continue
			d=$((n / t / p))
			wide=
			((t == 1)) || wide="-s parallel.tensor=$t -s parallel.groups=$t"
			((p > 1)) || {
				((t == 1)) ||
					echo "tensor p1 d$d t$t|-s parallel.mode=tensor $wide"
				continue
			}
			for s in $schedules; do
				v=${s#*:}
				echo "$s p$p d$d t$t|-s comm.sync=stages $([ "$wide" ] &&
					echo "-s parallel.mode=pipeline -s parallel.width=$p $wide" ||
					echo "-s parallel.mode=auto")" \
					"-s parallel.schedule=${s%:*} -s parallel.replicas=$d" \
					"$([ "$v" = "$s" ] || echo "-s parallel.chunks=$v")"
			done
		done
	done
}

judge()
{
	awk -F '|' -v what="$1" '
	$1 ~ /^auto/ { if (!took[$1] || $3 < took[$1]) { took[$1] = $3; said[$1] = $2 }; next }
	!($1 in least) || $3 < least[$1] { least[$1] = $3 }
	function say(kind, staged,    k, n, best, name) {
		for (k in least) {
			if (staged && k !~ /p[2-9]/) continue
			n++
			if (!best || least[k] < best) { best = least[k]; name = k }
		}
		if (best && took[kind])
			printf "%s: %s took %.2f ms (predicted %.2f), the best of %d %.2f (%s): %.3f of it\n",
				what, kind, took[kind], said[kind], n, best, name, took[kind] / best
	}
	END { print ""; say("auto", 0); say("auto of stages", 1) }' "$work/rows"
}

echo "$(date -u +%Y-%m-%d), $(processor), $(nproc) cores," \
	"load $(cut -d ' ' -f 1-3 /proc/loadavg) at the beginning, $("$heddle" version | head -n 1)"
for model in ${HD_BENCH_MODELS:-gpt mlp conv}; do
	job=${HD_BENCH_JOB:-$work/jobs/$model.yaml}
	shards=$(grep -o 'shards: [0-9]*' "$job" | cut -d ' ' -f 2 || true)
	shards=${shards:-1}
	[ "$kernels" ] || costs
	for n in ${HD_BENCH_RANKS:-3 4}; do
		: >"$work/rows"
		what="$model on $n workers that $([ "$kernels" ] && echo compute || echo "wait (null)")"
		printf '\n%s, %d steps\n\n' "$what" "$steps"
		printf '| plan | predicted ms | median ms | error | load |\n|---|--:|--:|--:|--:|\n'
		row()           # NAME OPTIONS
		{
			local got
			if got=$(once "$n" $2); then
				echo "$1|${got% *}|${got#* }" >>"$work/rows"
				awk -v name="$1" -v load="$(cut -d ' ' -f 1 /proc/loadavg)" '{
					printf "| %s | %.2f | %.2f | %s | %s |\n", name, $1, $2,
						$1 ? sprintf("%+.1f %%", ($1 / $2 - 1) * 100) : "", load }' \
					<<<"$got"
			else
				echo "| $1 | | | refused: $(tail -n 1 "$work/log" | cut -c 1-90) | |"
			fi
		}
		chosen()
		{
			grep -o '"text":"plan: [^"]*predicted on' "$work/run/events.ndjson" | head -n 1 |
				cut -c 15-
		}
		row auto "-s parallel.mode=auto"
		whole=$(chosen)
		row "auto of stages" "-s parallel.mode=auto -s comm.sync=stages"
		staged=$(chosen)
		candidates "$n" >"$work/candidates"
		while IFS='|' read -r name options; do row "$name" "$options"; done <"$work/candidates"
		for ((i = 0; i < rounds; i++)); do
			row auto "-s parallel.mode=auto" >/dev/null
			row "auto of stages" "-s parallel.mode=auto -s comm.sync=stages" >/dev/null
			grep -v '^auto' "$work/rows" | sort -t '|' -k 3 -g | cut -d '|' -f 1 |
				awk '!seen[$0]++' | head -n 4 >"$work/near"
			while read -r name; do
				options=$(grep -F "$name|" "$work/candidates" | head -n 1 | cut -d '|' -f 2)
				row "$name" "$options" >/dev/null
			done <"$work/near"
		done
		judge "$what"
		echo "chosen: $whole; of stages: $staged"
	done
done
