#!/bin/bash
# heddle doctor, version.
. "$(dirname "$0")/program.sh"
expect 0 heddle version
says 'libraries'
expect 0 heddle --version
expect 0 heddle version --json
says '"compiler":'
expect 0 heddle doctor
says 'kernels plain    on  fingerprint'
for what in cores memory failpoints cuda workers pools serve; do
	grep -q "^$what " out || failed "doctor says nothing of $what"
done
grep -q '^cuda *off ' out || failed "cuda is off"
cp out first
expect 0 heddle doctor
[ "$(grep fingerprint out)" = "$(grep fingerprint first)" ] || failed "fingerprints differ between two calls"
expect 0 heddle doctor --limits
says 'virtual nodes'
says 'no coordinator and a member missing'
[ "$(awk 'NR > 1 && NF && NF < 3' out | wc -l)" -eq 0 ] || failed "a limit without a reason"
expect 0 heddle doctor --limits --json
says '"limits":[{'
says '"waits":[{'
for what in pool lambda pack; do
	grep -q "^functions $what  *o[nf]" first || failed "doctor says nothing of functions $what"
done
grep -q "^functions pool  *on .*the bits of this one" first ||
	failed "a function computes other bits, or nothing"
passed "doctor says what is on, what is off and why; version says what it is made of"
