#!/bin/bash
# curve.sh RUN [TITLE] -- the learning curve of a run as a page for docs/results, from its own files alone.
set -eu
. "$(dirname "$0")/machine.sh"
run=$1 title=${2:-$(basename "$1")}
heddle=${HEDDLE_BIN:-$(dirname "$0")/../build/release/heddle}
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }

last=$(tail -n 1 "$run/metrics.ndjson")
echo "# $title"
echo
echo "Made by \`bench/curve.sh\` on $(date -u +%F) from the run's metrics and events; program $("$heddle" \
	version | sed -n 1p),"
echo "$(processor), $(nproc) cores, shared with other work: times are not a benchmark."
echo
echo '```yaml'
cat "$run/job.yaml"
echo '```'
echo
echo "$(field samples <<<"$last") samples, step $(($(field step <<<"$last") + 1)), $(field t \
	<<<"$last") s since the last start."
echo
echo '| step | split | loss | accuracy | rows |'
echo '|--:|---|--:|--:|--:|'
grep '"kind":"eval"' "$run/events.ndjson" | sort -t: -k5 -u | while read -r line; do
	printf '| %s | %s | %.4f | %.2f %% | %s |\n' "$(field step <<<"$line")" "$(field split <<<"$line")" \
		"$(field loss <<<"$line")" \
		"$(awk -v a="$(field accuracy <<<"$line")" 'BEGIN { print a * 100 }')" \
		"$(field rows <<<"$line")"
done | sort -t'|' -k2 -n -u
