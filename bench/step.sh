#!/bin/bash
# step.sh -- time of a training step, ours and PyTorch's side by side, on 1 device and on all cores.
#
#	HD_TORCH_PYTHON=python3 bench/step.sh          # the table of docs/results/step.md
#
# Both sides train the same problem: `heddle bench step --save` writes initial parameters and the rows of
# every step, torch_step.py begins there. Their losses are compared step by step (loss_diff: the largest
# relative difference); beyond 1e-3, and three times what the peer differs from itself (torch_step.py, norms),
# it says LOSSES DIFFER and exits 1. Sides take turns, ours, peer, ours, peer: of each the best round counts.
# `ratio` is of medians, `ratio_min` of least times: neighbours on the machine disturb the one more than the
# other. `floor_ms`: every operation of our step at the peak of fused multiply-adds of the cores used;
# `floor`: what ratio_min would be then. Convolutions by windows do fewer operations and may pass it.
# The first line names the vendor of the CPU: a ratio of one vendor's says nothing of another's, where the
# peer's library multiplies at another speed.
#
# HD_TORCH_PYTHON a Python with PyTorch and safetensors (default: python3 if it has them); without one the
#	peer's columns say "not measured"
#	HD_BENCH_JOBS     names of bench/jobs (default: all five)
#	HD_BENCH_STEPS    timed steps of a round (default 30)
#	HD_BENCH_DEVICES  numbers of devices (default: 1 and all cores)
#	HD_BENCH_KERNELS  portable, library or auto (default: what the job says)
#	HD_TORCH_TRIES, HD_TORCH_LIMIT_S   see torch_step.py
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
steps=${HD_BENCH_STEPS:-30} jobs=${HD_BENCH_JOBS:-"mlp lenet resnet18 gpt-byte gpt-50k"} cores=$(nproc) \
	status=0
devices=${HD_BENCH_DEVICES:-$([ "$cores" = 1 ] && echo 1 || echo "1 $cores")}
if [ -z "${HD_TORCH_PYTHON:-}" ] && python3 -c 'import torch, safetensors' 2>/dev/null; then
	HD_TORCH_PYTHON=python3
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

member() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" "$2"; }
text_of() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$2"; }
least() { printf '%s\n' "$@" | sort -g | head -n 1; }
# On all cores as the plan divides them into devices and threads.
ours()
{
	"$heddle" bench step "bench/jobs/$1.yaml" --devices "$([ "$2" = "$cores" ] && [ "$2" != 1 ] &&
		echo auto || echo "$2")" --repeat "$steps" --json -q --save "$work/problem.safetensors" \
		${HD_BENCH_KERNELS:+-s "job.kernels=$HD_BENCH_KERNELS"} >"$3"
}
peer()
{
	"$HD_TORCH_PYTHON" bench/torch_step.py "$work/problem.safetensors" "$1" "$2" "$steps" ${4:+"$4"} \
		>"$3" 2>>"$work/log" || {
		tail -n 3 "$work/log" >&2
		return 1
	}
}
# shellcheck disable=SC2059
shown() { if [ "$2" = - ]; then echo -; else printf "$1" "$2"; fi; }      # FORMAT NUMBER; -: not measured
percent() { awk -v p="$1" 'BEGIN { printf "%.0f%%", p * 100 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

cpu() { sed -n "s/^$1[^:]*: //p" /proc/cpuinfo | head -n 1; }
machine="$(uname -m) $(cpu vendor_id) $(cpu 'model name'), $cores cores"
echo "# $(date -u +%F) $(git rev-parse --short HEAD) $machine; ${HD_BENCH_KERNELS:-auto} kernels; \
$steps steps a round, 2 rounds"
format='%-10s %7s %10s %10s %6s %10s %10s %9s %9s %6s %8s %9s %9s %10s  %s\n'
# shellcheck disable=SC2059
printf "$format" job devices ours_ms peer_ms ratio ours_min peer_min ratio_min floor_ms floor of_peak \
	our_loss peer_loss loss_diff peer
for job in $jobs; do
	for n in $devices; do
		ours "$job" "$n" "$work/ours1"
		peer_ms=- peer_min=- r=- rm=- floor=- peer_loss=- diff=- \
			peer='not measured (HD_TORCH_PYTHON is not set)'
		[ -z "${HD_TORCH_PYTHON:-}" ] || peer "$work/ours1" "$n" "$work/peer1" ""
		ours "$job" "$n" "$work/ours2"
		ms=$(least "$(member step_ms_median "$work/ours1")" "$(member step_ms_median "$work/ours2")")
		min=$(least "$(member step_ms_min "$work/ours1")" "$(member step_ms_min "$work/ours2")")
		if [ -n "${HD_TORCH_PYTHON:-}" ]; then
			how=$(text_of how "$work/peer1")
			peer "$work/ours2" "$n" "$work/peer2" "$how"
			peer_ms=$(least "$(member step_ms_median "$work/peer1")" \
				"$(member step_ms_median "$work/peer2")")
			peer_min=$(least "$(member step_ms_min "$work/peer1")" \
				"$(member step_ms_min "$work/peer2")")
			floor=$(ratio "$(member floor_ms "$work/ours1")" "$peer_min")
			r=$(ratio "$ms" "$peer_ms") rm=$(ratio "$min" "$peer_min") \
				diff=$(member loss_diff "$work/peer1") \
				peer_loss=$(member loss_last "$work/peer1")
			peer="$(text_of peer "$work/peer1"), $how"
			if grep -q '"ghost": true' "$work/peer1"; then
				own=$(member self_diff "$work/peer1")
				peer+=' (loss_diff: its ghost batches, untimed;'
				peer+=" they differ from themselves by $(shown %.1e "$own"))"
			fi
		fi
		# shellcheck disable=SC2059
		printf "$format" "$job" "$n" "$(shown %.3f "$ms")" "$(shown %.3f "$peer_ms")" "$r" \
			"$(shown %.3f "$min")" "$(shown %.3f "$peer_min")" "$rm" \
			"$(shown %.3f "$(member floor_ms "$work/ours1")")" "$floor" \
			"$(percent "$(member fraction_of_peak "$work/ours1")")" \
			"$(shown %.4f "$(member loss_last "$work/ours1")")" "$(shown %.4f "$peer_loss")" \
			"$(shown %.1e "$diff")" "$peer"
		if [ "$diff" != - ] && ! awk -v d="$diff" -v own="$(member self_diff "$work/peer1")" \
			'BEGIN { exit !(d <= 1e-3 || d <= 3 * own) }'; then
			echo "!! LOSSES DIFFER: $job on $n devices, by $diff of the loss:" \
				"these two did not train the same; do not quote their times"
			status=1
		fi
	done
done
exit $status
