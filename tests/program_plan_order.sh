#!/bin/bash
# heddle plan order, plan buckets: of graphs and of jobs. The answers themselves:
# src/planner/order/order_test.c, bucket_test.c.
. "$(dirname "$0")/program.sh"
cat >johnson.json <<'END'
{"name": "johnson", "recv": {"a": 5, "b": 1, "c": 9, "d": 3, "e": 10, "f": 2},
 "ops": {"oa": {"time": 2, "inputs": ["a"]}, "ob": {"time": 6, "inputs": ["b"]},
         "oc": {"time": 7, "inputs": ["c"]}, "od": {"time": 8, "inputs": ["d"]},
         "oe": {"time": 4, "inputs": ["e"]}, "of": {"time": 3, "inputs": ["f"]}}}
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
cat >mlp.json <<'END'
{"job": {"steps": 2}, "model": {"use": "builtin:mlp"}, "data": {"kind": "synthetic"}, "batch": {"global": 64}}
END
expect 0 heddle plan order mlp.json -n 2 --json
says '"order":["%1","%2","%4","%5","%7","%8"]'
# which has more cuts than a partition looks at
sed 's/builtin:mlp/builtin:inception/; s/"global": 64/"global": 2/' mlp.json >inception.json
expect 0 heddle plan order inception.json --order tic --json
json_ok
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

cat >split.json <<'END'
{"name": "split", "ops": {"dx3": {"time": 3, "inputs": []}, "dw3": {"time": 3, "inputs": []},
  "dx2": {"time": 3, "inputs": ["dx3"]}, "dw2": {"time": 3, "inputs": ["dx3"]},
  "dw1": {"time": 3, "inputs": ["dx2"]}},
 "gradient_size": {"dw3": 6, "dw2": 3, "dw1": 1}, "alpha": 1, "beta": 1}
END
expect 0 heddle plan buckets split.json --json
json_ok
says '"iteration_time":17,"compute_end":15,"compute_order":["dw3","dx3","dw2","dx2","dw1"]'
says '{"bytes":6,"ready":3,"start":3,"end":10,"gradients":["dw3"]}'
says '"declared_order":{"best_buckets":19,"one_each":19,"one_bucket":26}'
expect 0 heddle plan buckets split.json
says 'split: 17: 3 buckets of 3 gradients, computed in 15; 19 in the declared order, '
says ', 19 one by one there, 26 in one bucket'
expect 0 heddle plan buckets split.json --buckets 2 --json
says '{"bytes":2,"ready":3,"start":3,"end":6,"gradients":["dw3"]}'
printf '{"cases": [%s, %s]}' "$(cat split.json)" "$(cat split.json)" >two.json
expect 0 heddle plan buckets two.json --json
[ "$(wc -l <out)" = 2 ] || failed "not one line a case"
expect 0 heddle plan buckets lenet.yaml --workers 4
says 'in the declared order'
expect 0 heddle plan buckets lenet.yaml --profile lenet.profile --workers 4 --json
json_ok
says '"unit":"s"'
expect 2 heddle plan buckets split.json --buckets 0
says '--buckets 0: a size from 1'
expect 2 heddle plan buckets split.json --workers 2
says '--workers belongs to a JOB'
sed 's/"alpha": [0-9.]*/"alpha": 1000/; s/"beta": [0-9.]*/"beta": 1000/' split.json >fine.json
sed -i 's/"time": \([0-9]*\)/"time": \1000/g' fine.json
expect 0 heddle plan buckets fine.json --json
says '"iteration_time":17000,"compute_end":15000,'
sed 's/"dw3": 6/"dw9": 6/' split.json >bad.json
expect 3 heddle plan buckets bad.json
says 'bad.json: .gradient_size.dw9: there is no op of that name'
expect 3 heddle plan buckets johnson.json
says 'op oa needs a, which is neither'
passed "buckets"
