#!/bin/bash
# steady.sh -- whether a pipeline whose updates are delayed stands still in its steady state: the instructions
# of each rank as the flight recorder has them. Prints the table of docs/results/pipeline.md.
#
#	bench/steady.sh                 # some 20 s
#	HD_BENCH_OVER=workers bench/steady.sh     # each rank is a worker process of this machine
#
# Ranks wait HD_BENCH_PACE (5) times what a core was measured to take (--devices paced:N:X), HD_BENCH_RANKS
# ("3 4") of them, HD_BENCH_STEPS (12) steps. The steady state begins with the end of the fourth step. A slot
# is idle where no instruction of a rank runs for as long as its shortest F takes; the longest gap is shown
# too, as a share of that F, and how much of the time instructions and the end of steps (NORM, STEP) take.
# 1f1b, which drains each step, shows what the count finds where there are such slots. An update before the
# norm (STEP! of stash) counts as computing.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
. bench/staged.sh
cat >"$work/read.py" <<'EOF'
import struct, sys
skip, slots, longest, share = 4, 0, 0.0, []
def rings():
    for path in sys.argv[1:]:
        data = open(path, "rb").read()
        for r in range(struct.unpack_from("<I", data, 60)[0]):
            yield data, r
for data, r in rings():
    names = struct.unpack_from("<Q", data, 144)[0]
    name = lambda at: data[names + at:data.index(b"\0", names + at)].decode()
    at, n = struct.unpack_from("<QI", data, 1024 + 48 * r)
    head = struct.unpack_from("<Q", data, at)[0]
    assert head <= n, "the ring is too short for this run"
    ops = []
    for i in range(head):
        slot = data[at + 64 + 32 * i:at + 96 + 32 * i]
        if slot[15] == 3:
            t0, low, high, _, _, text = struct.unpack("<QIHBBI", slot[:20])
            ops.append((name(text), t0, t0 + low + (high << 32)))
    ops.sort(key=lambda o: o[1])
    # the end of a step follows NORM; any other STEP is one before the norm
    ops = [("STEP!", *o[1:]) if o[0] == "STEP" and ops[i - 1][0] != "NORM" else o for i, o in enumerate(ops)]
    stops = [o[2] for o in ops if o[0] == "STEP"]
    if not stops:
        continue
    begin, end = stops[skip - 1], stops[-1]
    ops = [o for o in ops if begin <= o[1] and o[2] <= end]
    work = [o for o in ops if o[0] in ("F", "B", "I", "W", "R", "STEP!")]
    shortest = min(o[2] - o[1] for o in work if o[0] == "F")
    busy = sum(o[2] - o[1] for o in work)
    rest = sum(o[2] - o[1] for o in ops if o[0] in ("NORM", "STEP"))
    upto, inside = begin, work + [o for o in ops if o[0] in ("NORM", "STEP")]
    for o in sorted(inside, key=lambda o: o[1]):
        gap = (o[1] - upto) / shortest
        slots += gap >= 1
        longest, upto = max(longest, gap), max(upto, o[2])
    share.append((busy / (end - begin), rest / (end - begin)))
busiest = max(share)
print("%d | %.3f | %.1f %% | %.1f %% | %.1f %%" % (slots, longest, 100 * busiest[0], 100 * busiest[1],
    100 * min(share)[0]))
EOF
steps=${HD_BENCH_STEPS:-12} over=${HD_BENCH_OVER:-process}
echo "$(date -u +%Y-%m-%d), $(processor), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)," \
	"$("$heddle" version | head -n 1)"
echo
echo "| ranks | update | steps seen | idle slots | longest gap, of F | busiest rank computes |" \
	"its ends of steps | idlest computes |"
echo "|--:|---|--:|--:|--:|--:|--:|--:|"
over_of()
{
	[ "$over" = workers ] || { echo "--devices paced:$1:$pace"; return; }
	echo "--workers $1 --devices paced:1:$pace -s workers.detect=10s"
}
for n in ${HD_BENCH_RANKS:-3 4}; do
	for update in 2bw stash 1f1b; do
		case $update in
		2bw) keys="-s parallel.schedule=2bw -s optim.update=2bw" ;;
		stash)  # the job's stages are those that 2bw was cut into by measured times
			cuts=$(grep -oh 'cuts at nodes[ 0-9]*' "$work"/run/plan/*.plan | head -n 1)
			cuts=$(tr -dc '0-9 ' <<<"$cuts")
			cuts=$(xargs <<<"$cuts")
			keys="-s parallel.schedule=stash -s optim.update=stash -s optim.clip=0"
			keys="$keys -s optim.cuts=0,${cuts// /,}" ;;
		*) keys="-s parallel.schedule=$update" ;;
		esac
		rm -rf "$work/run"
		"$heddle" run "$job" --out "$work/run" --steps "$steps" -q \
			$(over_of "$n") -s parallel.mode=pipeline $keys
		printf '| %d | %s | %d | %s |\n' "$n" "$update" $((steps - 4)) \
			"$(python3 "$work/read.py" "$work"/run/flight/*.hdfr)"
	done
done
