#!/bin/bash
# heddle plan ptdp: a plan with its reasons, the same bytes every time, and refusals with the least that would
# do.
. "$(dirname "$0")/program.sh"
big="--model 128,25600,160,51200,2048 --batch 3072"
expect 0 heddle plan ptdp $big --devices 3072 --json
json_ok
cp out first
same "$(number t),$(number p),$(number d)" 8,64,6 "split of the published model"
ours=$(number predicted_s)
expect 0 heddle plan ptdp $big --devices 3072 --json
cmp -s out first || failed "another plan the second time"
expect 0 heddle plan ptdp $big --devices 3072 --json --at 8,64,6,1,1,full
theirs=$(number predicted_s)
awk -v a="$ours" -v b="$theirs" 'BEGIN { exit !(a <= b) }' ||
	failed "$ours s is slower than the published split's $theirs s"
says '"why":"t=8 p=64 d=6 b=1 v=1, recomputation full: asked for'
passed "the published cluster: no slower than the published split, equal bytes"

expect 0 heddle plan ptdp $big --devices 3072
says 'step '
says 'a server has 8 devices'
says 'next best'
expect 0 heddle plan ptdp $big --devices 3072 --rules
says 'devices make'
says 'tensor groups inside a server, pipelines across servers, data outermost'
expect 0 heddle plan ptdp --model 12,768,12,50304,1024 --devices 8 --batch 64 --memory 6GiB
says 'of 6.4 GB'
expect 0 heddle plan ptdp --model 12,768,12,50304,1024 --devices 8 --batch 64 --vn-size 4 --json
same "$(number b)" 4 "samples of a virtual node"
expect 0 heddle plan ptdp --model 105,20480,128,51200,2048 --devices 2240 --batch 2240 \
	--sequence --at 8,35,8,1,3,selective --json
awk -v u="$(number utilization)" 'BEGIN { exit !(u > 0.51 && u < 0.57) }' ||
	failed "published: 54.2 % of the peak; predicted $(number utilization)"
passed "reasons, rules, options"

expect 0 heddle plan ptdp --published
says '1008B'
[ "$(grep -c . out)" -eq 132 ] || failed "ten runs and 120 choices of three"
expect 0 heddle plan ptdp --published --json
[ "$(grep -c '"parameters":[0-9]*}' out)" = 10 ] || failed "parameters are counted, so they are integers"
json_ok
[ "$(grep -c fitted_to out)" -eq 120 ] || failed "120 choices of three"
passed "published runs"

expect 2 heddle plan ptdp --devices 8
says 'give --model layers,hidden,heads,vocabulary,sequence'
expect 2 heddle plan ptdp $big --devices 64
says 'the smallest need is '
says 'at t=8 p=8 d=1 b=1, recomputation full'
expect 2 heddle plan ptdp $big --devices 64 --rules
says 'the smallest need is '
expect 2 heddle plan ptdp --model 12,768,12,50304 --devices 8 --batch 64
says 'five counts'
expect 2 heddle plan ptdp --model 12,768,11,50304,1024 --devices 8 --batch 64
says '11 heads do not divide'
expect 2 heddle plan ptdp --model 12,768,12,50304,1024 --devices cores:8 --batch 64
says 'a count'
expect 2 heddle plan ptdp --model 12,768,12,50304,1024 --devices 8 --batch 0
says '1 or more'
expect 2 heddle plan ptdp --model 12,768,12,50304,1024 --devices 8 --batch 64 --at 8,1,1
says 'heads 12 cannot be split in 8 shards'
expect 2 heddle plan ptdp --model 12,768,12,50304,1024 --devices 8 --batch 64 --at 2,1
says 't,p,d, then b'
expect 2 heddle plan ptdp --model 12,768,12,50304,1024 --devices 8 --batch 64 --at 2,1,1,1,1,some
says 't,p,d, then b'
expect 2 heddle plan ptdp --model 12,768,12,50304,1024 --devices 8 --batch 64 --at 2,1,1 --rules
says 'give one of them'
expect 2 heddle plan ptdp --model 12,768,12,50304,1024 --devices 8 --batch 64 --memory 0
says 'nothing fits'
expect 2 heddle plan ptdp --model 12,768,12,50304,1024 --devices 8 --batch 64 --memory 6GB
says '--memory 6GB: bytes, as 16e9 or 16GiB'
passed "bad requests are refused"
