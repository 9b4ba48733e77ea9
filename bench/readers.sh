#!/bin/bash
# readers.sh -- do other programs read what Heddle exports? A run with two workers is recorded, exported in
# every format, and given to the programs that the formats are for; prints Markdown.
#
#	PYTHON=venv/bin/python bench/readers.sh >docs/results/readers.md
#
# PYTHON has what there is of: perfetto, HolisticTraceAnalysis, tensorboard (PyPI). promtool and prometheus
# (Debian), chromium with speedscope (SPEEDSCOPE=its dist/release, from npm) where they are there. What is
# missing is named.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/bench/machine.sh"
heddle=${HEDDLE_BIN:-$root/build/release/heddle}
python=${PYTHON:-python3}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
cat >job.yaml <<'END'
job:   {name: readers, seed: 3, steps: 600}
model: {use: "builtin:mlp", args: {input: [64], hidden: [256, 256], classes: 10}}
data:  {kind: synthetic}
batch: {global: 64, virtual_nodes: 8}
log:   {tensorboard: true, prometheus: "unix:scrape.sock"}
END

echo "# Programs that read what Heddle records"
echo
made_by readers.sh; echo "; a run of two workers, 600 steps of 8 virtual nodes."
echo
echo "| reader | answer |"
echo "|---|---|"
"$heddle" run job.yaml --workers 2 --out run -q >run.log 2>&1 &
run=$!
for _ in $(seq 200); do
	[ -S scrape.sock ] && grep -q '"step":50,' run/metrics.ndjson 2>/dev/null && break
	sleep 0.1
done
curl -s --unix-socket scrape.sock http://run/metrics >scrape.txt || true
wait "$run"
if command -v promtool >/dev/null; then
	lint="no complaint"
	promtool check metrics <scrape.txt >lint.txt 2>&1 || lint=$(tr '\n' ' ' <lint.txt)
	echo "| promtool check metrics | $(grep -vc '^#' scrape.txt) samples, $lint |"
else
	echo "| promtool | not installed |"
fi

if command -v prometheus >/dev/null; then
	"$heddle" run job.yaml -s log.prometheus=127.0.0.1:0 -s job.steps=20000 --out scraped -q \
		>scraped.log 2>&1 &
	run=$!
	for _ in $(seq 200); do
		at=$(grep -ho '127.0.0.1:[0-9]*' scraped/events.ndjson 2>/dev/null | sed 1q) || true
		[ -n "$at" ] && break
		sleep 0.1
	done
	cat >prometheus.yml <<END
scrape_configs: [{job_name: heddle, scrape_interval: 1s, static_configs: [{targets: ["$at"]}]}]
END
	prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb \
		--web.listen-address=127.0.0.1:19764 --log.level=error >prometheus.log 2>&1 &
	server=$!
	steps=none
	for _ in $(seq 100); do
		steps=$(curl -s 'http://127.0.0.1:19764/api/v1/query?query=heddle_step' |
			grep -o '"value":\[[^]]*\]' || true)
		[ -n "$steps" ] && break
		sleep 0.2
	done
	echo "| prometheus scrapes a live run | heddle_step: ${steps:-nothing} |"
	kill "$server" "$run" 2>/dev/null || true
	wait "$run" 2>/dev/null || true
	server=
else
	echo "| prometheus | not installed |"
fi

for suffix in pftrace json hta; do
	"$heddle" trace merge run -o "run.$suffix" -q
done
"$python" "$root/bench/readers.py" run.pftrace run.json run.hta run

if command -v chromium >/dev/null && [ -d "${SPEEDSCOPE:-/nonexistent}" ]; then
	printf 'speedscope.loadFileFromBase64("run.json", "%s")' "$(base64 -w 0 run.json)" >load.js
	chromium --headless --no-sandbox --disable-gpu --user-data-dir=browser \
		--allow-file-access-from-files \
		--virtual-time-budget=30000 --enable-logging=stderr \
		--screenshot=speedscope.png --window-size=1400,900 \
		"file://$(realpath "$SPEEDSCOPE")/index.html#localProfilePath=$work/load.js" \
		>browser.log 2>&1 || true
	errors=$(grep -c 'CONSOLE.*rror' browser.log || true)
	echo "| speedscope in Chromium | a picture of it, $errors errors on its console |"
	[ -z "${PICTURE:-}" ] || cp speedscope.png "$PICTURE"
else
	echo "| speedscope | not installed |"
fi
