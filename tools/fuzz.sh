#!/bin/bash
# fuzz.sh SECONDS [NAME]: runs the built fuzz targets (build/asan), each for SECONDS, as many at
# a time as there are cores or as HD_JOBS says, from the seeds in fuzz/corpus/NAME; HD_FUZZ_SEED=N
# repeats the draws, else they differ each time. What is learned stays in build/fuzz/corpus, findings
# are written to build/fuzz/findings; put one into fuzz/corpus/NAME with its repair, it is then
# replayed by every test run. Exit 1 on a finding.
set -eu -o pipefail
cd "$(dirname "$0")/.."

seconds=$1
only=${2:-}

fuzz()                  # TARGET
{
	local name learned seeds log ninputs
	name=$(basename "$1" _fuzz)
	learned=build/fuzz/corpus/$name
	mkdir -p "$learned" build/fuzz/findings
	seeds=()
	[ ! -d "fuzz/corpus/$name" ] || seeds=("fuzz/corpus/$name")
	log=build/fuzz/$name.log
	if "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
		-print_final_stats=1 -seed="${HD_FUZZ_SEED:-0}" \
		-artifact_prefix="build/fuzz/findings/$name-" "$learned" \
		${seeds[@]+"${seeds[@]}"} >"$log" 2>&1; then
		ninputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "$name: $ninputs inputs in $seconds s, no finding"
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
export -f fuzz
export seconds
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "${HD_JOBS:-$(nproc)}" bash -eu -o pipefail -c 'fuzz "$1"' \
	fuzz || exit 1
