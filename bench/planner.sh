#!/bin/bash
# planner.sh -- what `heddle plan auto` takes on 16, 256 and 4096 devices: wall and CPU seconds, most memory,
# the plan. Models: published profiles (HEDDLE_SHARED), 98 made-up layers of a transformer, a chain of 5000
# cuts; 2 virtual nodes a device. x: seconds and MiB over those of the row before. Needs GNU time.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
[ -x /usr/bin/time ] || { echo "bench: /usr/bin/time is missing: apt install time" >&2; exit 2; }
data=${HEDDLE_SHARED:-../shared}/data/pipedream
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stamp

nodes='function put(i, f, b, out, w) {
	printf "n%d -- Op -- forward_compute_time=%.3f, backward_compute_time=%.3f", i, f, b
	printf ", activation_size=%d, parameter_size=%d\n", out, w
}
function chain(n) { for (i = 1; i < n; i++) printf "\tn%d -- n%d\n", i - 1, i }'
awk "$nodes"' BEGIN {
	n = 5000
	srand(1)
	for (i = 0; i < n; i++) {
		forward = 1 + rand(); backward = 2 + rand(); out = 4000 * int(100 + 900 * rand())
		put(i, forward, backward, out, 4000 * int(1000 * rand() * rand() * rand()))
	}
	chain(n)
}' >"$work/chain-5000"
awk "$nodes"' BEGIN {
	n = 98
	for (i = 0; i < n; i++)
		if (i % 97) put(i, 12, 24, 16777216, 201326592)
		else put(i, 3, 6, 16777216, 412090368)
	chain(n)
}' >"$work/layers-98"
for m in vgg16 resnet50 gnmt; do [ ! -f "$data/$m.graph.txt" ] || cp "$data/$m.graph.txt" "$work/$m"; done

printf '%-12s %8s %8s %8s %8s %7s %7s  %s\n' model devices wall_s cpu_s MiB x_s x_MiB plan
for model in "$work"/*; do
	before_s='' before_kib=''
	for n in 16 256 4096; do
		echo "kinds: {a: {memory: 80GiB}}
levels:
  - {name: server, components: 8, bytes_per_s: 1.5e11, latency_ns: 3000}
  - {name: rack, components: $((n / 8)), bytes_per_s: 1.25e10, latency_ns: 10000}" >"$work/.cluster"
		/usr/bin/time -o "$work/.time" -f '%e %U %M' "$heddle" plan auto --profile "$model" \
			--cluster "$work/.cluster" --vns $((2 * n)) >"$work/.out" || true
		read -r wall cpu kib < <(tail -n 1 "$work/.time")
		awk -v name="$(basename "$model")" -v n=$n -v w="$wall" -v c="$cpu" -v k="$kib" \
			-v s="$before_s" -v m="$before_kib" -v plan="$(head -n 1 "$work/.out")" 'BEGIN {
				x_s = s == "" ? "-" : sprintf("%.1f", c / (s > 0.01 ? s : 0.01))
				x_k = m == "" ? "-" : sprintf("%.1f", k / m)
				printf "%-12s %8d %8.2f %8.2f %8.1f", name, n, w, c, k / 1024
				printf " %7s %7s  %s\n", x_s, x_k, plan }'
		before_s=$cpu before_kib=$kib
	done
done
