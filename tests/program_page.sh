#!/bin/bash
# The scheduler's page (heddle serve --http) and that of a run (heddle top RUN --http) in headless Chromium,
# judged by tests/page_browser.py; what Prometheus makes of /metrics.
. "$(dirname "$0")/program.sh"
command -v chromium >/dev/null || { echo "skip: no chromium"; exit 77; }
command -v python3 >/dev/null || { echo "skip: no python3 to lead the browser"; exit 77; }
write_jobs 5
# They wait for what is to happen, and compute no more than they must.
sed 's/steps: 5/steps: 900000000/; s/every: 1 steps/every: 200000 steps/' mlp.yaml >long.yaml
echo 'workers: {pace: 300 ms}' >>long.yaml
listens() { url=$(grep -o 'http://127[0-9.:]*' "$1" 2>/dev/null) || ! kill -0 $served 2>/dev/null; }

"$HEDDLE_BIN" serve --dir d --pool fast:1:1:3.5,slow:1:0.5:1 --policy fifo --round 1 --drain \
	--http 127.0.0.1:0 >serve.out 2>serve.err &
scheduler=$! served=$!
await listens serve.err && [ "$url" ] || failed "serve does not listen: $(cat serve.err)"
cluster=$url token=$(cat d/token)
for name in first second third; do
	expect 0 heddle submit long.yaml --dir d --name $name
done
expect 2 heddle top --http 127.0.0.1:0
says 'name its folder'
expect 3 heddle top nowhere --http 127.0.0.1:0
# A sweep as `heddle sweep` leaves it (program_sweep.sh makes a true one).
mkdir -p d/sweeps/lr
cat >d/sweeps/lr/table.json <<'END'
{"name":"lr","method":"halving","metric":"loss","goal":"min","over":true,"best":2,"steps":150,
"exhaustive":360,"keys":[{"key":"optim.lr","kind":"log","from":0.001,"to":0.1,"values":[]},
{"key":"batch.global","kind":"choice","from":0,"to":0,"values":["32","64"]}],"trials":[
{"trial":0,"state":"stopped","steps":10,"metric":1.5,"rungs":[{"step":10,"metric":1.5}],"digest":"d0",
"set":["optim.lr=0.001","batch.global=32"],"values":"optim.lr=0.001 batch.global=32","why":""},
{"trial":1,"state":"done","steps":90,"metric":0.75,"rungs":[{"step":10,"metric":1.25},{"step":30,"metric":1},
{"step":90,"metric":0.75}],"digest":"d1","set":["optim.lr=0.01","batch.global=64"],
"values":"optim.lr=0.01 batch.global=64","why":""},
{"trial":2,"state":"done","steps":90,"metric":0.5,"rungs":[{"step":10,"metric":1},{"step":30,"metric":0.75},
{"step":90,"metric":0.5}],"digest":"d2","set":["optim.lr=0.1","batch.global=64"],
"values":"optim.lr=0.1 batch.global=64","why":""},
{"trial":3,"state":"failed","steps":3,"metric":"nan","rungs":[],"digest":"","set":["optim.lr=0.1",
"batch.global=32"],"values":"optim.lr=0.1 batch.global=32","why":"<img src=x onerror=\"window.hit=1\">"}]}
END
heddle run long.yaml --out run --workers 2 -q >run.out 2>&1 &
run=$!
reach run 3
"$HEDDLE_BIN" top run --http 127.0.0.1:0 2>top.err &
served=$!
await listens top.err && [ "$url" ] || failed "top does not listen: $(cat top.err)"

# One browser for all: it costs more to start than what it is asked to do.
python3 "$SOURCE_DIR/tests/page_browser.py" "$cluster" "$token" use,inject,run --job mlp.yaml \
	--run "$url/$(grep -o '#token=[0-9a-f]*' top.err)" ${HD_PAGE_SHOTS:+--shots} ${HD_PAGE_SHOTS:-} \
	>out 2>err || failed "the page: $(tail -n 1 out)"
passed "the page is used at two widths, markup in any text stays text, a run is resized and stopped:" \
	"$(wc -l <out) checks"
wait $run
kill $served
wait $served || failed "top does not end well"

curl -s -H "Authorization: Bearer $token" "$cluster/metrics" >metrics
grep -qx 'heddle_jobs{state="cancelled"} [1-9]' metrics || failed "no cancelled jobs: $(cat metrics)"
if command -v promtool >/dev/null; then
	expect 0 promtool check metrics <metrics
	[ ! -s out ] && [ ! -s err ] || failed "promtool: $(cat out err)"
else
	echo "skip: no promtool to check metrics"
fi
same "$(curl -s "$cluster/healthz")" ok "healthz"
passed "Prometheus finds nothing to say about the numbers"
kill $scheduler
wait $scheduler
