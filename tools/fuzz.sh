#!/bin/bash
# fuzz.sh SECONDS [NAME]: runs the built fuzz targets (build/asan), each for SECONDS, as many at
# a time as there are cores or as HD_JOBS says, from the seeds in fuzz/corpus/NAME; HD_FUZZ_SEED=N
# begins with the same draws, else they differ each time. What is learned stays in build/fuzz/corpus,
# findings are written to build/fuzz/findings; put one into fuzz/corpus/NAME with its repair, it is then
# replayed by every test run. Exit 1 on a finding.
#
# HD_FUZZ_INPUTS=N: only the first N draws of a seed (1, or HD_FUZZ_SEED), from fuzz/corpus alone: the same
# inputs on each machine, however fast. SECONDS is a net for slow ones: what it ends has drawn a prefix.
# What draws depend on, by two runs of each target with one binary and seed and an empty folder:
#   addresses   32 of 54 targets differed within 2000 inputs: code compares pointers, and -use_cmp draws
#               from what was compared. Without it 5 differed within 5000. With fixed addresses as well
#               (setarch -R, and env -i for those of the stack) none did
#   the clock   -reload reads the folder again as seconds pass; with -use_cmp some of the addresses as well
# A changed program draws differently, since its branches decide what is kept; so may another compiler, C
# library or kernel. Where a container refuses setarch, addresses stay random.
set -eu -o pipefail
cd "$(dirname "$0")/.."

seconds=$1
only=${2:-}

fuzz()                  # TARGET
{
	local name learned seeds log ninputs how
	name=$(basename "$1" _fuzz)
	learned=build/fuzz/corpus/$name
	mkdir -p "$learned" build/fuzz/findings
	seeds=()
	[ ! -d "fuzz/corpus/$name" ] || seeds=("fuzz/corpus/$name")
	log=build/fuzz/$name.log
	how=("$1" -seed="${HD_FUZZ_SEED:-0}")
	if [ -n "${HD_FUZZ_INPUTS:-}" ]; then
		learned=build/fuzz/counted/$name        # it begins empty
		rm -rf "$learned"
		mkdir -p "$learned"
		how=($same "$1" -seed="${HD_FUZZ_SEED:-1}" -runs="$HD_FUZZ_INPUTS" -use_cmp=0 -reload=0)
	fi
	if "${how[@]}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
		-print_final_stats=1 -artifact_prefix="build/fuzz/findings/$name-" "$learned" \
		${seeds[@]+"${seeds[@]}"} >"$log" 2>&1; then
		ninputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "$name: $ninputs inputs in ${HD_FUZZ_INPUTS:+at most }$seconds s, no finding"
	else
		tail -n 30 "$log"
		echo "$name: a finding, see build/fuzz/findings/"
		return 1
	fi
}

targets=()
for target in build/asan/${only:-*}_fuzz; do
	[ ! -x "$target" ] || targets+=("$target")
done
if [ ${#targets[@]} -eq 0 ]; then
	echo "no fuzz target${only:+ '$only'}; there are: $(ls fuzz/*_fuzz.c 2>/dev/null |
		xargs -r -n 1 basename -s _fuzz.c | tr '\n' ' ')" >&2
	exit 2
fi
same='env -i PATH=/usr/bin:/bin'      # TARGET...: with the same addresses in each run
! setarch -R true 2>/dev/null || same="setarch -R $same"
export -f fuzz
export seconds same
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "${HD_JOBS:-$(nproc)}" bash -eu -o pipefail -c 'fuzz "$1"' \
	fuzz || exit 1
