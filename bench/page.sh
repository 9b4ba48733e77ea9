#!/bin/bash
# page.sh [N]: the scheduler's page with N jobs (10,000) in headless Chromium: first paint, the first rows,
# all jobs, scrolling, a filter; and how long the answers take that it asks for. The jobs are rows of a store
# that were never run.
set -eu
cd "$(dirname "$0")/.."
n=${1:-10000} heddle=${HEDDLE_BIN:-$PWD/build/release/heddle} work=$(mktemp -d)
trap 'kill $served 2>/dev/null; wait; rm -rf "$work"' EXIT
mkdir -m 700 "$work/d"
begin()
{
	rm -f "$work/d/heddle.sock"
	"$heddle" serve --dir "$work/d" --pool fast:1,slow:1:0.5 --policy fifo --round 60 --http 127.0.0.1:0 \
		>"$work/out" 2>"$work/err" &
	served=$!
	until grep -q http: "$work/err"; do sleep 0.1; done
}
cat >"$work/a.yaml" <<END
job: {name: mlp, seed: 3, steps: 5}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
END
begin
"$heddle" submit "$work/a.yaml" --dir "$work/d" >/dev/null 2>&1
until "$heddle" jobs --dir "$work/d" --state done --json | grep -q done; do sleep 0.2; done
kill $served
wait $served || true
python3 - "$work/d/jobs.sqlite" "$n" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
columns = [c[1] for c in db.execute("PRAGMA table_info(job)")]
row = dict(zip(columns, db.execute("SELECT * FROM job").fetchone()))
for i in range(2, int(sys.argv[2]) + 1):
    row.update(id=i, name="job-%d" % i, user="user%d" % (i % 40), key=None)
    db.execute("INSERT INTO job (%s) VALUES (%s)" % (",".join(columns), ",".join("?" * len(columns))),
               [row[c] for c in columns])
db.commit()
END
begin
url=$(grep -o 'http://127[0-9.:]*' "$work/err") token=$(cat "$work/d/token")
for path in /v1/status '/v1/jobs?limit=1000' '/v1/jobs?limit=1000&after=9000' /v1/waiting /v1/schema; do
	curl -s -o /dev/null -H "Authorization: Bearer $token" \
		-w "$path %{time_total} s, %{size_download} bytes\n" "$url$path"
done
python3 tests/page_browser.py "$url" "$token" many --jobs "$n" ${HD_PAGE_SHOTS:+--shots "$HD_PAGE_SHOTS"}
