#!/bin/bash
# tls.sh -- what TLS costs a training step: two workers of one device each, one of them joined over loopback,
# by TCP and by TLS in turns.
#
#	bench/tls.sh          # the table of docs/results/tls.md
#
# Each time is the median of the steps that both workers made (metrics.ndjson), the first five left out; of
# two turns the better counts.
#
#	HD_BENCH_JOBS     names of bench/jobs (default: gpt-byte resnet18)
#	HD_BENCH_STEPS    steps of a run (default 40)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$heddle" serve --new-key "$work/key" >/dev/null

# job, row: milliseconds of a step
once()
{
	local way=(--key "$work/key") run where
	[ "$2" = tls ] || way=(-s net.insecure_plaintext=true)
	rm -rf "$work/run"
	"$heddle" run "bench/jobs/$1.yaml" --out "$work/run" --steps "${HD_BENCH_STEPS:-40}" -s eval.every=0 \
		-s checkpoint.every=1h --workers 1 --devices 1 \
		--listen 127.0.0.1:0 "${way[@]}" -q 2>>"$work/log" &
	run=$!
	until [ -s "$work/run/listen" ]; do kill -0 $run; sleep 0.1; done
	where=$(cat "$work/run/listen")
	"$heddle" worker --join "$where" "${way[@]}" --devices 1 -q 2>>"$work/log" ||
		tail -n 2 "$work/log" >&2
	wait $run || [ $? = 75 ]
	grep '"workers":2,' "$work/run/metrics.ndjson" | sed -n 's/.*"step_ms":\([0-9.e+]*\).*/\1/p' |
		tail -n +6 | sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)], NR }'
}
least() { sort -g <<<"$1" | grep . | head -n 1; }

echo "$(stamp), $(nproc) cores; two turns"
printf '%-10s %10s %10s %8s %s\n' job tcp_ms tls_ms tls_over steps
for job in ${HD_BENCH_JOBS:-gpt-byte resnet18}; do
	tcp='' tls=''
	for _ in 1 2; do
		tcp+="$(once "$job" tcp)"$'\n'
		tls+="$(once "$job" tls)"$'\n'
	done
	awk -v job="$job" -v tcp="$(least "$tcp")" -v tls="$(least "$tls")" 'BEGIN {
		split(tcp, a, " "); split(tls, b, " ")
		printf "%-10s %10.3f %10.3f", job, a[1], b[1]
		printf " %7.1f%% %d\n", (b[1] / a[1] - 1) * 100, b[2] }'
done
