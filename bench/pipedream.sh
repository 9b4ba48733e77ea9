#!/bin/bash
# pipedream.sh -- the published table of PipeDream beside our simulator: its profiles, its clusters, one row a
# result. Nothing is timed: the figures are predictions and equal on every machine. HEDDLE_SHARED names the
# folder with data/pipedream. The links between servers are those published; those inside are taken as 12 GB/s
# (PCIe 3 x16) and 24 GB/s (NVLink). VGG-16 was profiled with 128 samples a minibatch and trained with 64: its
# times and activations are halved.
set -eu
cd "$(dirname "$0")/.."
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
data=${HEDDLE_SHARED:-../shared}/data/pipedream
[ -f "$data/vgg16.graph.txt" ] || { echo "bench: no $data/vgg16.graph.txt: set HEDDLE_SHARED" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$data"/*.graph.txt "$work"
awk '/^\t/ { print; next }
	{
		n = split($0, f, " -- "); m = split(f[3], c, ", "); line = f[1] " -- " f[2] " -- "
		for (i = 1; i <= m; i++) {
			split(c[i], kv, "=")
			if (kv[1] == "activation_size") kv[2] = int(kv[2] / 2)
			else if (kv[1] != "parameter_size") kv[2] /= 2
			if (kv[1] != "parameter_size") kv[2] = sprintf("%.3f", kv[2])
			line = line (i > 1 ? ", " : "") kv[1] "=" kv[2]
		}
		print line
	}' "$data/vgg16.graph.txt" >"$work/vgg16.graph.txt"
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
row()           # MODEL MACHINES BANDWIDTH PUBLISHED
{
	"$heddle" plan partition --graph "$work/$1.graph.txt" --machines "$2" --bandwidth "$3" \
		--simulate --json | sed 's/,"ways":.*//' >"$work/out"
	split=$(field split <"$work/out" | sed 's/^L1: //; s/^0-[0-9]* x1 .*x1$/one a stage/')
	printf '| %s | %s | %s | %s | %.2f | %s |\n' "$2" "$1" "$split" \
		"$(field best <"$work/out")" "$(field gain <"$work/out")" "$4"
}
echo '| machines | model | fastest split | way | gain over data parallel | published |'
echo '|---|---|---|---|--:|--:|'
for model in "vgg16 5.28" "alexnet 4.92" "gnmt 2.34" "resnet50 1"; do
	row ${model% *} 4,4 12e9,1.25e9 ${model#* }
done
for model in "vgg16 2.98" "alexnet 2.04" "gnmt 3.14" "resnet50 1"; do
	row ${model% *} 8,2 24e9,3.125e9 ${model#* }
done
row gnmt 4 12e9 1.5
