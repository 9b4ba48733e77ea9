#!/bin/bash
# step.sh -- time of a training step, ours and PyTorch's side by side, on 1 device and on all cores.
# HD_TORCH_PYTHON names a Python with PyTorch; without it the peer's column says "not measured".
# Losses (first and last step) show that both sides train; their data differ, so they need not agree.
# Ratios are of medians measured in turn on the same machine; quote nothing else of it.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
steps=${HD_BENCH_STEPS:-30}
cores=$(nproc)
echo "# $(date -u +%F) $(git rev-parse --short HEAD) $(uname -m) $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $cores cores"
printf '%-10s %7s %12s %12s %8s %10s %17s %17s  %s\n' job devices ours_ms peer_ms ratio of_peak ours_loss peer_loss peer
loss_of() { sed -n 's/.*"loss_first": *\([0-9.e+-]*\), *"loss_last": *\([0-9.e+-]*\).*/\1 \2/p' | awk '{ printf "%.4f>%.4f", $1, $2 }'; }
for job in mlp lenet resnet18 gpt-byte gpt-50k; do
	for n in 1 "$cores"; do
		ours=$("$heddle" bench step "bench/jobs/$job.yaml" --devices "$n" --repeat "$steps" --json -q)
		ms=$(sed -n 's/.*"step_ms_median":\([0-9.e+-]*\).*/\1/p' <<<"$ours")
		peak=$(sed -n 's/.*"fraction_of_peak":\([0-9.e+-]*\).*/\1/p' <<<"$ours")
		ours_loss=$(loss_of <<<"$ours")
		peer_ms=- ratio=- peer_loss=- who='not measured (HD_TORCH_PYTHON is not set)'
		if [ -n "${HD_TORCH_PYTHON:-}" ]; then
			peer=$(OMP_NUM_THREADS=$n "$HD_TORCH_PYTHON" bench/torch_step.py "$job" "$n" "$steps" 2>/dev/null)
			peer_ms=$(sed -n 's/.*"step_ms_median": \([0-9.e+-]*\).*/\1/p' <<<"$peer")
			who=$(sed -n 's/.*"peer": "\([^"]*\)", "how": "\([^"]*\)".*/\1 \2/p' <<<"$peer")
			peer_loss=$(loss_of <<<"$peer")
			ratio=$(awk -v a="$ms" -v b="$peer_ms" 'BEGIN { printf "%.2f", a / b }')
		fi
		printf '%-10s %7s %12.3f %12s %8s %9.0f%% %17s %17s  %s\n' "$job" "$n" "$ms" "$peer_ms" "$ratio" "$(awk -v p="$peak" 'BEGIN { print p * 100 }')" "$ours_loss" "$peer_loss" "$who"
		[ "$cores" != 1 ] || break
	done
done
