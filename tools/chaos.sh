#!/bin/bash
# The long suite of faults: runs of 2 to 4 workers, each with kills at any instant, a death at each named failpoint and every other
# kind of fault, compared with the undisturbed run (`heddle ckpt diff`).
#
#   tools/chaos.sh PROGRAM [RUNS [FIRST_SEED [FOLDER]]]
#
# A line for each run; in the end the kills and steps of all, and how many died at each place. Fails if a run did, or if nobody
# was killed at some place. What failed stays in FOLDER (default: a new one).
set -u
bin=$(realpath "$1") runs=${2:-20} first=${3:-1} folder=${4:-$(mktemp -d)}
mkdir -p "$folder" && cd "$folder" || exit 1
cat >job.yaml <<END
job: {name: chaos, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [200, 100], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 480, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 50 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 500 ms}
END
failed=0
for seed in $(seq "$first" $((first + runs - 1))); do
	workers=$((2 + seed % 3)) status=0 start=$SECONDS
	rm -rf "run-$seed"
	"$bin" chaos run job.yaml --seed "$seed" --kills 20 --points 1 --faults pause=4,slow=4,net=6,disk=4,scale=4 --steps "${HD_CHAOS_STEPS:-20000}" \
		--workers "$workers" --out "run-$seed" --json >"run-$seed.json" 2>"run-$seed.err" || status=$?
	# 1: equal states, and some of what was planned did not happen; that nobody died at a place is told in the end
	if [ $status -eq 1 ] && grep -q '"identical":true' "run-$seed.json"; then status=0; fi
	if [ $status -eq 0 ] && ! "$bin" ckpt diff "run-$seed/chaos" "run-$seed/undisturbed" >"run-$seed.err" 2>&1; then
		status=5
	fi
	echo "seed $seed, $workers workers: exit $status, $((SECONDS - start)) s, $(grep -o '"kills":[0-9]*' "run-$seed.json") $(tail -n 1 "run-$seed.err" | cut -c1-200)"
	if [ $status -eq 0 ]; then rm -rf "run-$seed"; else failed=$((failed + 1)); fi
done
# all numbers of the runs, by name
grep -ho '"[a-z.]*":[0-9]*' run-*.json | awk -F '[":]+' -v runs="$runs" -v failed=$failed '
	{ n[$2] += $3; if ($2 ~ /[.]/ && !($2 in seen)) { seen[$2] = 1; place[++places] = $2 } }
	END {
		printf "%d runs, %d failed, %d kills, %d steps\n", runs, failed, n["kills"], n["steps"]
		for (i = 1; i <= places; i++) { printf "  %-22s %d\n", place[i], n[place[i]]; empty += !n[place[i]] }
		if (empty) printf "nobody was killed at %d places\n", empty
		exit failed || empty || !places
	}'
