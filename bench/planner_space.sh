#!/bin/bash
# planner_space.sh -- is the free choice of `heddle plan auto` the best of its own space? Published profiles
# (HEDDLE_SHARED) on clusters; the free choice beside every schedule, depth and kind of recomputation asked
# for by itself. Prints rows of docs/results/planner.md: ratio: the free choice over the best of those; above
# 1 it missed one. left: shapes that the bounded search did not go through.
set -eu
cd "$(dirname "$0")/.."
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
data=${HEDDLE_SHARED:-../shared}/data/pipedream
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

cp examples/cluster-2x4.yaml "$work/mixed 2x4.yaml"
cat >"$work/4 of 12 GiB.yaml" <<'Y'
kinds: {new: {memory: 12GiB}}
levels: [{name: server, components: 4, bytes_per_s: 1e9, latency_ns: 5000}]
Y
cat >"$work/2x4, slow between.yaml" <<'Y'
kinds: {new: {}}
levels:
  - {name: server, components: 4, bytes_per_s: 1e10, latency_ns: 5000}
  - {name: rack, components: 2, bytes_per_s: 1e8, latency_ns: 50000}
Y
number() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2" | head -n 1; }
auto()
{
	"$heddle" plan auto --profile "$data/$model.graph.txt" --cluster "$cluster" --vns 16 \
		--compress-branches --json "$@"
}

echo '| model | cluster | free choice ms | CPU s | left | best of those asked for | ms | ratio |'
echo '|---|---|--:|--:|--:|---|--:|--:|'
for model in ${HD_MODELS:-alexnet vgg16 resnet18 resnet50 resnet101 squeezenet1_0 inception_v3 gnmt}; do
	for cluster in "$work"/*.yaml; do
		TIMEFORMAT=%U
		{ time auto >"$work/free" 2>"$work/err" || true; } 2>"$work/cpu"
		best='' name=''
		for schedule in data-parallel gpipe 1f1b interleaved zb-h1 zb-h2 zb-v v-half v-min \
			dualpipev 1f1b-rr; do
			for p in 1 2 3 4 5 6 7 8; do
				for recompute in auto ${HD_RECOMPUTE:-}; do
					rank=(-p $p)
					[ $schedule != 1f1b-rr ] || { [ $p = 1 ] || continue; rank=(); }
					auto --schedule $schedule "${rank[@]}" --recompute $recompute \
						>"$work/one" 2>/dev/null || continue
					ps=$(grep -o '"predicted_ps":[0-9]*' "$work/one" | head -n 1 |
						cut -d: -f2)
					if [ -z "$best" ] || [ "$ps" -lt "$best" ]; then
						best=$ps
						name="$schedule p=$(number p "$work/one")"
						name+=" d=$(number d "$work/one")"
					fi
				done
			done
		done
		free=$(grep -o '"predicted_ps":[0-9]*' "$work/free" | head -n 1 | cut -d: -f2)
		if [ -z "$free" ]; then
			echo "| $model | $(basename "$cluster" .yaml) | refused | $(cat "$work/cpu") | |" \
				"${name:-refused too} | | |"
			[ -z "$best" ] || status=1
			continue
		fi
		left=$(grep -o '"not_gone_through":[0-9]*' "$work/free" | cut -d: -f2)
		awk -v m="$model" -v c="$(basename "$cluster" .yaml)" -v f="$free" -v s="$(cat "$work/cpu")" \
			-v l="$left" -v b="$best" -v n="$name" 'BEGIN {
				printf "| %s | %s | %.1f | %.2f | %d", m, c, f * 1e-9, s, l
				printf " | %s | %.1f | %.4f |\n", n, b * 1e-9, f / b }'
		[ "$free" -le "$best" ] || status=1
	done
done
exit $status
