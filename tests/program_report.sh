#!/bin/bash
# heddle report: several runs on one page, their values and differences as JSON. In a browser, where there is
# one, tests/report_browser.py looks at what the page shows.
. "$(dirname "$0")/program.sh"

cat >job.yaml <<'END'
job: {name: report, seed: 1, steps: 30}
model: {use: "builtin:mlp", args: {input: [1, 8, 8], hidden: [8], classes: 10}}
data: {kind: synthetic, count: 200, split: {train: 0.8, valid: 0.2}}
batch: {global: 24, virtual_nodes: 4}
optim: {kind: adamw, lr: 1e-2}
eval: {every: 10}
trace: {digest: 8}            # auto: as often as it costs little, which no two machines agree on
END
evil='c<img src=x onerror=hit=1>&"'
mkdir all
heddle run job.yaml --out all/a -q || failed "run a"
heddle run job.yaml --out all/b -q -s optim.lr=1e-1 || failed "run b"
heddle run job.yaml --out "all/$evil" -q --devices 2 || failed "run c"

heddle report all/a all/b "all/$evil" --json >got.json || failed "report --json"
python3 - <<'END' || failed "report --json says something else"
import json
got = json.load(open('got.json'))
a, b, c = got['runs']
assert got['differences'] == [{'key': 'optim.lr', 'values': ['0.01', '0.1', '0.01']}], got['differences']
assert [r['state'] for r in got['runs']] == ['done'] * 3
assert c['digests']['alike'] > 0 and 'differ_at' not in c['digests'], c['digests']
assert 'differ_at' in b['digests'], b['digests']
lines = [json.loads(line) for line in open('all/a/metrics.ndjson')]
loss = [v for v in a['values'] if v['series'] == 'loss'][0]
values = [line['loss'] for line in lines]
assert loss['n'] == 30 and loss['last_step'] == 29 and abs(loss['last'] - values[-1]) < 1e-6
assert abs(loss['least'] - min(values)) < 1e-6 and values[loss['least_step']] == min(values)
assert [v for v in a['values'] if v['series'] == 'valid loss'][0]['n'] == 3
END
[ ! -e report.html ] || failed "--json wrote a page that was not asked for"
heddle report all -o page.html >said || failed "a folder of runs"
grep -q '^page.html: 3 runs' said || failed "it says: $(cat said)"
! grep -q '<img' page.html || failed "a name of a run is markup"
passed "runs on one page, and names are texts"
mkdir empty
expect 3 heddle report empty
says 'empty is no run, and no folder of runs'
expect 3 heddle report nothing
says 'nothing'
expect 3 heddle report all/a -o nowhere/page.html
says 'nowhere'
[ "$(ls all | wc -l)" = 3 ] || failed "it left something in the folder"
status=0
python3 "$SOURCE_DIR/tests/report_browser.py" page.html >looked || status=$?
[ $status -eq 0 ] || [ $status -eq 77 ] || failed "in a browser: $(tail -n 1 looked)"
passed "in a browser, where there is one, it shows them"
