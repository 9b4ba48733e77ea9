#!/bin/bash
# heddle trace: recordings of a run become one file, whatever their order; what is cut off or no recording is
# said.
. "$(dirname "$0")/program.sh"
write_jobs 6
train run mlp.yaml --out mlp --devices 2
expect 0 heddle trace merge mlp --json
json_ok
says '"lost":0'
says '"steps":6'
says '"name":"worker 0"'
says '"aligned":true'
[ -s mlp/trace/run.hdt ] || failed "the default place"
[ "$(head -c 8 mlp/trace/run.hdt)" = HDTRACE1 ] || failed "the magic of the merged file"
expect 0 heddle trace merge mlp -o again.hdt
cmp -s again.hdt mlp/trace/run.hdt || failed "merged with what was merged before it is another file"
passed "a run's recordings are one file; merging again changes no byte"

# of two events that begin together the longer one lies around the other, and the inner one counts
train run mlp.yaml --out pipe --workers 2 --devices 1 -s parallel.mode=pipeline
expect 0 heddle trace merge pipe -o pipe.json
sed -n 's/.*"name":"\(transfer\|R[AG]\)",\("pid":.*,"ts":[^,]*\),"dur":\([0-9.]*\).*/\1 \2 \3/p' \
	pipe.json >waits
awk '$1 == "transfer" { wait[$2] = $3; next } { op[$2] = $3 }
	END { for (at in wait) if (at in op) { n++; bad += wait[at] > op[at] } print n + 0, bad + 0 }' waits \
	>inside
read -r n outside <inside
[ "$n" -gt 0 ] || failed "no stage waited for another one"
same "$outside" 0 "waits that end after their instructions, of $n"
passed "waits lie inside their instructions"

expect 0 heddle simulate --schedule gpipe -p 2 -m 4 --trace sim.hdfr
expect 0 heddle trace merge sim.hdfr mlp/flight/0.hdfr -o a.hdt
expect 0 heddle trace merge mlp/flight/0.hdfr sim.hdfr mlp -o b.hdt
cmp -s a.hdt b.hdt || failed "the order of files changes the merged one"
expect 0 heddle trace merge a.hdt sim.hdfr -o c.hdt --json
says '"name":"simulated"'
cmp -s a.hdt c.hdt || failed "a merged file and one of its inputs are not that file"
passed "files come in any order and mix"

for part in 0 7 8 63 4095 4096 9000; do
	head -c $part mlp/flight/0.hdfr >cut.hdfr
	expect 3 heddle trace merge cut.hdfr -o x.hdt
	says cut.hdfr
done
size=$(stat -c %s a.hdt)
for part in 8 64 300 5000 $((size - 1)); do
	head -c $part a.hdt >cut.hdt
	expect 0 heddle trace merge cut.hdt -o x.hdt
	[ $part -eq 8 ] || says 'cut off at the end'
done
echo no >mlp/flight/9.hdfr
expect 0 heddle trace merge mlp -o x.hdt
says 'left out: mlp/flight/9.hdfr'
cmp -s x.hdt mlp/trace/run.hdt || failed "a file that is no recording changes the merged one"
printf x | dd of=a.hdt bs=1 seek=$((size - 200)) conv=notrunc status=none
expect 0 heddle trace merge a.hdt -o x.hdt
says 'left out: 1 section of a.hdt'
says 'its hash is wrong'
cp mlp/trace/run.hdt mlp/trace/9.hdt
printf x | dd of=mlp/trace/9.hdt bs=1 seek=$(($(stat -c %s mlp/trace/run.hdt) - 200)) conv=notrunc status=none
expect 0 heddle trace merge mlp -o y.hdt
says 'left out: 1 section of mlp/trace/9.hdt'
cmp -s y.hdt mlp/trace/run.hdt || failed "what another file has is missing beside a damaged one"
rm mlp/trace/9.hdt
passed "what is cut off or damaged gives what is whole, with a line that names the file"

expect 0 heddle trace merge mlp -o tight.hdt --tighten
says 'tight.hdt: '
expect 0 heddle trace merge tight.hdt -o tight2.hdt
cmp -s tight.hdt tight2.hdt || failed "a tightened file is not merged as it is"

expect 0 heddle trace merge mlp -o mlp.json --json
events=$(number events)
expect 0 heddle trace merge mlp.json -o back.json --json
same "$(number events)" "$events" "events of an export, and of its import"
says '"name":"worker 0"'
gzip -c mlp.json >mlp.json.gz
expect 0 heddle trace merge mlp.json.gz -o packed.json
cmp -s packed.json back.json || failed "a trace that is packed is another"
expect 2 heddle trace merge mlp.json mlp -o x.json
says 'give it alone'
expect 2 heddle trace merge mlp.json -o x.hdt
says 'another program'
kineto=$SOURCE_DIR/tests/data/kineto/cpu_only.json
expect 0 heddle trace merge "$kineto" -o x.ndjson --json
says '"events":20'
[ "$(grep -c '"step":' x.ndjson)" -eq 1 ] || failed "steps of a foreign trace"
printf '{"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":3,"dur":-2}]}' >bad.json
expect 3 heddle trace merge bad.json -o x.json
says 'event 0'
cat >esc.json <<-'END'
{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"a\u001b[31m\u009b2J\nb"}},
{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"ProfilerStep#1","cat":"user_annotation"},
{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":"op\u001b]0;x\u0007"}]}
END
for verb in 'merge esc.json -o x.json' 'analyze esc.json'; do
	expect 0 heddle trace $verb
	says 'a?[31m?2J?b'
	! grep -qP '\x1b|\x07|\xc2\x9b' out err || failed "a name writes to the terminal"
done
passed "traces of other programs are read, alone"

expect 2 heddle trace merge mlp -o run.txt
says '.hdt'
expect 2 heddle trace merge sim.hdfr
says '-o FILE.hdt'
mkdir empty
expect 3 heddle trace merge empty
says 'has no recordings'
expect 3 heddle trace merge nowhere
passed "what cannot be merged is refused"
