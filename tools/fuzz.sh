#!/bin/bash
# fuzz.sh SECONDS [NAME]: runs the built fuzz targets, each for SECONDS, from the seeds in
# fuzz/corpus/NAME; HD_FUZZ_SEED=N repeats the draws, else they differ each time. What is
# learned stays in build/fuzz/corpus, findings are written to build/fuzz/findings; put one
# into fuzz/corpus/NAME with its repair, it is then replayed by every test run. Exit 1 on a
# finding.
set -eu -o pipefail
cd "$(dirname "$0")/.."

seconds=$1
only=${2:-}
ran=0
failed=0
for target in build/fuzz/*_fuzz; do
	[ -x "$target" ] || continue
	name=$(basename "$target" _fuzz)
	[ -z "$only" ] || [ "$only" = "$name" ] || continue
	ran=$((ran + 1))
	learned=build/fuzz/corpus/$name
	mkdir -p "$learned" build/fuzz/findings
	seeds=()
	[ ! -d "fuzz/corpus/$name" ] || seeds=("fuzz/corpus/$name")
	log=build/fuzz/$name.log
	if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 -seed="${HD_FUZZ_SEED:-0}" \
		-artifact_prefix="build/fuzz/findings/$name-" "$learned" ${seeds[@]+"${seeds[@]}"} >"$log" 2>&1; then
		echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, no finding"
	else
		tail -n 30 "$log"
		echo "$name: a finding, see build/fuzz/findings/"
		failed=1
	fi
done
if [ $ran -eq 0 ]; then
	echo "no fuzz target${only:+ '$only'}; there are: $(ls fuzz/*_fuzz.c 2>/dev/null | xargs -r -n 1 basename -s _fuzz.c | tr '\n' ' ')" >&2
	exit 2
fi
exit $failed
