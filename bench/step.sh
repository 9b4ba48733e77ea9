#!/bin/bash
# step.sh -- time of a training step, ours and PyTorch's side by side, on 1 device and on all cores.
# HD_TORCH_PYTHON names a Python with PyTorch; without it the peer's column says "not measured".
# Ratios are of medians measured in turn on the same machine; quote nothing else of it.
set -eu
cd "$(dirname "$0")/.."
heddle=build/release/heddle
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
steps=${HD_BENCH_STEPS:-30}
cores=$(nproc)
echo "# $(date -u +%F) $(git rev-parse --short HEAD) $(uname -m) $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $cores cores"
printf '%-10s %7s %12s %12s %8s %10s  %s\n' job devices ours_ms peer_ms ratio of_peak peer
for job in mlp lenet gpt-byte; do
	for n in 1 "$cores"; do
		ours=$("$heddle" bench step "bench/jobs/$job.yaml" --devices "$n" --repeat "$steps" --json -q)
		ms=$(sed -n 's/.*"step_ms_median":\([0-9.e+-]*\).*/\1/p' <<<"$ours")
		peak=$(sed -n 's/.*"fraction_of_peak":\([0-9.e+-]*\).*/\1/p' <<<"$ours")
		peer_ms=- ratio=- who='not measured (HD_TORCH_PYTHON is not set)'
		if [ -n "${HD_TORCH_PYTHON:-}" ]; then
			peer=$(OMP_NUM_THREADS=$n "$HD_TORCH_PYTHON" bench/torch_step.py "$job" "$n" "$steps" 2>/dev/null)
			peer_ms=$(sed -n 's/.*"step_ms_median": \([0-9.e+-]*\).*/\1/p' <<<"$peer")
			who=$(sed -n 's/.*"peer": "\([^"]*\)", "how": "\([^"]*\)".*/\1 \2/p' <<<"$peer")
			ratio=$(awk -v a="$ms" -v b="$peer_ms" 'BEGIN { printf "%.2f", a / b }')
		fi
		printf '%-10s %7s %12.3f %12s %8s %9.0f%%  %s\n' "$job" "$n" "$ms" "$peer_ms" "$ratio" "$(awk -v p="$peak" 'BEGIN { print p * 100 }')" "$who"
		[ "$cores" != 1 ] || break
	done
done
