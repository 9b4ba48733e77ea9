#!/bin/bash
# allreduce.sh -- sums over processes of one machine: ours beside Open MPI and gloo, the same bytes, taking
# turns.
#
#	HD_TORCH_PYTHON=python3 bench/allreduce.sh          # the table of docs/results/allreduce.md
#
# Each time is of the slowest process, values put back and all waiting for one another before; the median of
# HD_BENCH_STEPS, and of two turns the better. Open MPI is tried with its own choice of algorithm, the ring,
# the ring in segments and Rabenseifner's, over shared memory and over TCP, bound to cores where there is one
# for each process: its best counts. gloo uses loopback, one thread a process. `ratio` is ours over the best
# peer's: below 1 ours is faster; where it is not, the line ends with SLOWER.
#
#	HD_TORCH_PYTHON    a Python with PyTorch; without it gloo's column says "-"; without mpicc, Open MPI's
#	HD_BENCH_WORKERS   numbers of processes (default: 2 3 4)
#	HD_BENCH_BYTES     sizes (default: 1000000 25000000 100000000)
#	HD_BENCH_STEPS     timed repetitions (default 8)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
repeat=${HD_BENCH_STEPS:-8} cores=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

least() { printf '%s\n' "$@" | grep -v -x -e - | sort -g | head -n 1 | grep . || echo -; }
ours()
{
	"$heddle" bench allreduce --workers "$1" --bytes "$2" --transport "$3" --repeat "$repeat" --json |
		sed -n 's/.*"time_ms_median": *\([^,}]*\).*/\1/p'
}
gloo()
{
	[ -n "${HD_TORCH_PYTHON:-}" ] || {
		echo -
		return
	}
	"$HD_TORCH_PYTHON" bench/allreduce_gloo.py "$1" "$2" "$repeat" 2>>"$work/log"
}
mpi()
{
	local ways=() place=(--bind-to none --mca mpi_yield_when_idle 1)
	[ -x "$work/mpi" ] || { echo -; return; }
	[ "$1" -gt "$cores" ] || place=(--bind-to core)
	[ "$4" = 0 ] || ways=(--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm "$4")
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 \
		mpirun -np "$1" --oversubscribe "${place[@]}" --mca pml ob1 --mca btl "self,$3" "${ways[@]}" \
		"$work/mpi" "$2" "$repeat" 2>>"$work/log" || echo -
}
# Which of its algorithms is the best there, found once.
best_way()
{
	for way in 0 4 5 6; do
		echo "$(mpi "$1" "$2" "$3" $way) $way"
	done | grep -v '^-' | sort -g | head -n 1 | cut -d ' ' -f 2
}
mpicc -O3 -o "$work/mpi" bench/allreduce_mpi.c 2>"$work/log" || echo "# no Open MPI: $(head -n 1 "$work/log")"

echo "$(stamp), $cores cores; medians of $repeat, two turns, ms"
format='%9s %10s %10s %10s %10s %10s %10s %10s %8s %8s\n'
# shellcheck disable=SC2059
printf "$format" processes bytes ours_shm ours_tcp ours_tls mpi_shm mpi_tcp gloo shm_ratio tcp_ratio
for n in ${HD_BENCH_WORKERS:-2 3 4}; do
	for bytes in ${HD_BENCH_BYTES:-1000000 25000000 100000000}; do
		shm=- tcp=- tls=- msm=- mtcp=- g=-
		sm_way=$(best_way "$n" "$bytes" vader) tcp_way=$(best_way "$n" "$bytes" tcp)
		for _ in 1 2; do
			shm=$(least "$shm" "$(ours "$n" "$bytes" shm)")
			msm=$(least "$msm" "$(mpi "$n" "$bytes" vader "${sm_way:-0}")")
			tcp=$(least "$tcp" "$(ours "$n" "$bytes" tcp)")
			mtcp=$(least "$mtcp" "$(mpi "$n" "$bytes" tcp "${tcp_way:-0}")")
			g=$(least "$g" "$(gloo "$n" "$bytes")")
			tls=$(least "$tls" "$(ours "$n" "$bytes" tls)")
		done
		ratio()
		{
			awk -v a="$1" -v b="$2" 'BEGIN { if (b == "-") print "-"; else printf "%.2f", a / b }'
		}
		rs=$(ratio "$shm" "$(least "$msm" "$mtcp" "$g")") rt=$(ratio "$tcp" "$(least "$mtcp" "$g")")
		# shellcheck disable=SC2059
		printf "$format" "$n" "$bytes" $(printf '%.3f ' "$shm" "$tcp" "$tls") "$msm" "$mtcp" "$g" \
			"$rs" "$rt" | tr -d '\n'
		awk -v s="$rs" -v t="$rt" \
			'BEGIN { print (s != "-" && s >= 1 || t != "-" && t >= 1) ? "  SLOWER" : "" }'
	done
done
