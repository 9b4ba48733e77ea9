#!/bin/bash
# heddle bench step: the members that scripts read are there and make sense; times are not judged.
. "$(dirname "$0")/program.sh"
write_jobs 30
expect 0 heddle bench step mlp.yaml --devices 2 --threads 1 --repeat 5 --json
for name in step_ms_median step_ms_min flops_per_step fraction_of_peak loss_first loss_last; do
	[ -n "$(number $name)" ] || failed "no $name"
done
same "$(number steps)" 5 "--repeat"
cp out one
train run mlp.yaml --steps 8 --out whole
same "$(sed -n 's/.*"digest":"\([^"]*\).*/\1/p' one)" "$digest" "what is timed is what is trained"
expect 0 heddle bench step mlp.yaml
says 'GFLOP'
[ -z "$(ls -d runs 2>/dev/null)" ] || failed "bench leaves a run directory"
passed "bench step times real steps and leaves nothing"
