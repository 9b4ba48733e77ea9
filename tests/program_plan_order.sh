#!/bin/bash
# heddle plan order: transfer orders of graphs and of jobs. The orders themselves: src/plan/order/order_test.c.
. "$(dirname "$0")/program.sh"
cat >johnson.json <<'END'
{"name": "johnson", "recv": {"a": 5, "b": 1, "c": 9, "d": 3, "e": 10, "f": 2},
 "ops": {"oa": {"time": 2, "inputs": ["a"]}, "ob": {"time": 6, "inputs": ["b"]}, "oc": {"time": 7, "inputs": ["c"]},
         "od": {"time": 8, "inputs": ["d"]}, "oe": {"time": 4, "inputs": ["e"]}, "of": {"time": 3, "inputs": ["f"]}}}
END
expect 0 heddle plan order johnson.json --order tac --json
json_ok
says '"mode":"tac","unit":"as given","order":["b","f","d","c","e","a"],"priority":[0,1,2,3,4,5],"makespan":32'
says '"upper":60,"lower":30'
says '"tic":37'
expect 0 heddle plan order johnson.json --order tic --json
says '"priority":[0,0,0,0,0,0],"makespan":37'
says '"tied":6'
expect 0 heddle plan order johnson.json
says 'johnson, search: 32; 30 if all overlapped, 60 if nothing did; efficiency 93.3 %'
grep -q 'share their priority' out && failed "ties of a search"
expect 0 heddle plan order johnson.json --order random --seed 1 --json
cp out one.json
expect 0 heddle plan order johnson.json --order random --seed 1 --json
cmp -s out one.json || failed "another answer the second time"
sed 's/"time": 2, //' johnson.json >unknown.json
expect 0 heddle plan order unknown.json --json
says '"mode":"tic+"'
printf '{"cases": [%s, %s]}' "$(cat johnson.json)" "$(cat johnson.json)" >two.json
expect 0 heddle plan order two.json --json
[ "$(wc -l <out)" = 2 ] || failed "not one line a case"
passed "graphs"

write_jobs 2
expect 0 heddle plan order lenet.yaml -n 2
says 'tic+: '
says 'time s'
expect 0 heddle profile lenet.yaml --samples 3 -o lenet.profile -q
expect 0 heddle plan order lenet.yaml --profile lenet.profile --json
json_ok
says '"mode":"search","unit":"s"'
echo '{"job": {"steps": 2}, "model": {"use": "builtin:mlp"}, "data": {"kind": "synthetic"}, "batch": {"global": 64}}' >mlp.json
expect 0 heddle plan order mlp.json -n 2 --json
says '"order":["%1","%2","%4","%5","%7","%8"]'
passed "jobs"

expect 2 heddle plan order johnson.json -n 2
says '--workers belongs to a JOB'
expect 2 heddle plan order johnson.json --order tacc
says '--order is one of auto|fifo'
sed 's/"inputs": \["a"\]/"inputs": ["x"]/' johnson.json >bad.json
expect 3 heddle plan order bad.json
says 'bad.json: .ops.oa.inputs[0]: op oa needs x, which is neither a receive nor an op'
printf '{"recv": {' >cut.json
expect 3 heddle plan order cut.json
expect 3 heddle plan order nothing.json
expect 2 heddle plan order
says 'takes FILE|JOB'
passed "refusals"
