#!/bin/bash
# A scheduler of several users, as root: whose a request is, what belongs to others, quotas, tokens, the
# account that jobs run as, what is written down. Without users: program_cluster.sh; the table of rights:
# daemon/users_test.c. As each of them: heddle user show, heddle user token, heddle user tokens,
# heddle user revoke.
. "$(dirname "$0")/program.sh"
[ "$(id -u)" = 0 ] || { echo "skip: not root: no process can be started as another account"; exit 77; }
command -v setpriv >/dev/null || { echo "skip: no setpriv"; exit 77; }
ada=54321 bob=54322 eve=54323 op=54324 lea=54325   # accounts without names: numbers that are free
chmod 711 "$work"                              # users get through, to nothing but what is theirs
cat >job.yaml <<END
job: {name: tiny, seed: 3, steps: 40}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000 steps, keep: 2}
END
chmod 644 job.yaml
dir=$work/d
mkdir -m 700 d homes
for u in $ada $bob $eve $op $lea; do
	mkdir -m 700 homes/$u; cp job.yaml homes/$u/; chown -R $u:$u homes/$u
done
chmod 711 homes
cat >d/users.yaml <<END
accounts:
  red: {parent: lab, weight: 3, devices: 1}
  lab: {running: 9}
  blue: {queued: 1}
  side:
groups:
  few: {running: 1}
users:
  ada: {uid: $ada, accounts: [red, side]}
  bob: {uid: $bob, account: blue, groups: [few], priority: 2}
  op: {uid: $op, role: operator}
  lea: {uid: $lea, account: blue, operates: [lab]}
END
as() { local u=$1; shift; (cd "homes/$u" && exec setpriv --reuid "$u" --regid "$u" --clear-groups env -i \
	PATH="$PATH" HOME="$work/homes/$u" NO_COLOR=1 "$@"); }
run_as() { local u=$1; shift; as "$u" "$HEDDLE_BIN" "$@" --dir "$dir" >out 2>err; }
must() { local code=$1; shift; run_as "$@"; local is=$?; [ $is = "$code" ] ||
	failed "exit $is instead of $code of $*: $(cat out err)"; }
serve()
{
	"$HEDDLE_BIN" serve --dir "$dir" --pool a:2 --policy fifo --round 1 --http 127.0.0.1:0 "$@" \
		>serve.out 2>>serve.err &
	daemon=$!
	await as $ada "$HEDDLE_BIN" user show --dir "$dir" >/dev/null 2>&1 ||
		failed "serve does not answer: $(cat serve.err)"
}
field() { python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())[sys.argv[1]])' "$1"; }

expect 0 heddle serve --dir "$dir" --check
says '4 users, 4 accounts, 1 groups'
echo "users: {ada: {acount: red}}" >bad.yaml; mkdir -p bad; mv bad.yaml bad/users.yaml
expect 3 heddle serve --dir bad --check
says 'did you mean account?'
expect 3 heddle serve --dir bad --pool a:1
says 'users.yaml:1:15'
passed "a file of users is checked, and a bad one begins no scheduler"

chmod 666 d/users.yaml
expect 11 heddle serve --dir "$dir" --pool a:2
says 'others can write'
chmod 644 d/users.yaml

serve
grep -q 'jobs run as the accounts of their users' serve.err || failed "what jobs run as is not said"
must 0 $ada user show
says 'ada (uid 54321): user, account red'
must 11 $eve jobs
says 'is no user of this scheduler'
passed "an account is its user, or refused"

# ---- own and others' ----

# paced: it is there, and computes little
long="-s job.steps=500000 -s workers.pace=5ms"
must 0 $ada submit job.yaml --name mine; a=$(cat out)
must 0 $bob submit job.yaml $long --name mine; b=$(cat out)
finished() { as $ada "$HEDDLE_BIN" jobs --dir "$dir" --state done --json 2>/dev/null | grep -q "\"id\":$a,"; }
await finished || failed "ada's job does not end: $(cat serve.err; run_as $ada explain "$a"; cat out)"
must 0 $bob jobs --json
grep -q "\"id\":$b," out && ! grep -q "\"id\":$a," out || failed "bob does not see his jobs alone: $(cat out)"
for what in "explain $a" "cancel $a" "prio $a 1"; do
	must 3 $bob $what
	says "there is no job $a"
done
must 3 $bob submit job.yaml --after "$a"
says "there is no job $a"
must 0 $bob explain mine                       # the youngest of that name that is his
says "job $b (mine)"
must 0 $op jobs --json
grep -q "\"id\":$a," out && grep -q "\"id\":$b," out || failed "an operator does not see all: $(cat out)"
# Of others' jobs a user learns how many there are, whatever it looks at; an operator which, and what happened
# to the cluster.
post_as()
{
	as "$1" curl -s --unix-socket "$dir/heddle.sock" -H 'Content-Type: application/json' -d "$3" \
		"http://localhost/v1/$2" >out 2>err
}
ask_as() { as "$1" curl -s --unix-socket "$dir/heddle.sock" "http://localhost/v1/$2" >out 2>err; }
if command -v curl >/dev/null; then
	must 0 $op user token -q
	runs() { ask_as $op status && grep -q "\"running\":\[{\"id\":$b," out; }
	await runs || failed "bob's job does not run: $(cat out serve.err)"
	for what in status pools jobs waiting ledger 'events/past?limit=1000'; do
		ask_as $ada "$what"
		grep -qE "\"(id|job)\":$b[,}]|\"bob\"|of op|\"job\":0,\"text\"" out &&
			failed "ada sees in $what: $(cat out)"
		grep -qE '^[{]"(pid|pools|jobs|events)"' out || failed "no $what: $(cat out)"
	done
	ask_as $op pools
	grep -q "\"job\":$b[,}]" out || failed "an operator does not see which device has a job: $(cat out)"
	ask_as $op 'events/past?limit=1000'
	grep -q '"job":0,"text":"token 1 of op was made"' out || failed "an operator's events: $(cat out)"
	must 0 $op user revoke 1
	# an operator goes on with a user's run: its key is its own, also if the user has used the same
	text=$(sed 's/"/\\"/g; s/$/\\n/' job.yaml | tr -d '\n')
	post_as $ada jobs "{\"job\":\"$text\",\"folder\":\"/\",\"name\":\"part\",\"until\":4,\"key\":\"k\"}"
	part=$(number id)
	is_done() { ask_as $ada "jobs/$1" && grep -q '"state":"done"' out; }
	await is_done "$part" || failed "ada's job does not end at step 4: $(cat out)"
	post_as $op "jobs/$part/continue" '{"until":8,"key":"k"}'
	more=$(number id)
	post_as $op "jobs/$part/continue" '{"until":8,"key":"k"}'
	same "$(number id)" "$more" "the job of an order to go on, and of the same once more"
	await is_done "$more" || failed "the job that goes on does not end: $(cat out)"
	post_as $op "jobs/$part/continue" '{"until":8,"key":"k"}'
	same "$(number id) $(number state)" "$more done" "the same once more, when it is over"
	post_as $op "jobs/$more/continue" '{"until":12,"key":"k"}'
	grep -q 'has another order' out || failed "another order with that key: $(cat out)"
else
	echo "skip: no curl: it is not asked what a user sees of the cluster"
fi
run=$(as $ada "$HEDDLE_BIN" explain "$a" --json --dir "$dir" >/dev/null; ls -d "$dir"/runs/"$a"-*)
[ "$(stat -c '%u %a' "$run")" = "$ada 700" ] || failed "ada's run is $(stat -c '%u %a' "$run")"
[ -z "$(find "$run" ! -user $ada)" ] || failed "not ada's in her run: $(find "$run" ! -user $ada)"
as $bob ls "$run" >out 2>&1 && failed "bob reads ada's run"
as $ada test -r "$run/metrics.ndjson" || failed "ada cannot read her own run"
for f in jobs.sqlite audit.ndjson decisions.ndjson token; do
	as $bob test -r "$dir/$f" && failed "bob reads $f of the scheduler"
done
expect 0 heddle run job.yaml --out alone -q --devices 1
same "$(heddle ckpt digest "$run" | cut -c 1-32)" "$(heddle ckpt digest alone | cut -c 1-32)" \
	"digest of ada's job and of the same run alone"
passed "users see, change and end their own jobs alone; a run is its user's, with the bits of a run alone"

# ---- the account that it runs as ----

works() { for p in $(pgrep -U $bob -f "$dir/runs/$b-"); do pid=$p; done; [ "${pid:-}" ]; }
await works || failed "no process of bob's job is bob's"
for p in $(pgrep -f "$dir/runs/$b-"); do
	[ "$(awk '/^Uid:/ { print $2 $3 $4 $5 }' "/proc/$p/status")" = "$bob$bob$bob$bob" ] ||
		failed "process $p of bob's job: $(grep ^Uid: "/proc/$p/status")"
	grep -q '^Groups:[[:space:]]*$' "/proc/$p/status" ||
		failed "root's groups: $(grep ^Groups: "/proc/$p/status")"
	tr '\0' '\n' <"/proc/$p/environ" | grep -vE '^(PATH|HOME|USER|LOGNAME)=|^HD_|^$' &&
		failed "process $p has root's environment"
done
# A file that only root can read is not read for a user; nor does root follow a link of a user.
echo secret >only.yaml; chmod 600 only.yaml
as $bob "$HEDDLE_BIN" submit "$work/only.yaml" --dir "$dir" >out 2>err &&
	failed "a file of root's was read for bob"
bobs=$(ls -d "$dir"/runs/"$b"-*)
ln -s "$work/only.yaml" "$bobs/log/link"
as $bob ln -sf "$work/only.yaml" "$bobs/lease.tmp"
passed "a job runs as its user, with nothing of root's"

# ---- quotas ----

must 2 $ada submit job.yaml $long --name two -s workers.min=2
says 'QUOTA: it wants 2 devices at once, and account red may have 1'
must 2 $ada submit job.yaml $long --name two --scale 2
says 'QUOTA: it wants 2 devices at once'
must 0 $ada submit job.yaml $long --name one; a1=$(cat out)
must 0 $ada submit job.yaml $long --name next; a2=$(cat out)
quota() { as $ada "$HEDDLE_BIN" explain "$a2" --dir "$dir" >out 2>err && grep -q ': QUOTA' out; }
await quota || failed "ada's second job does not wait for its quota: $(cat out err)"
says 'account red may have 1 devices at once and has 1'
must 2 $bob submit job.yaml --priority 3
says 'priority 3 is above 2'
must 2 $bob prio "$b" 3
must 0 $op prio "$b" 3
must 0 $bob submit job.yaml $long --name wait
must 11 $bob submit job.yaml $long --name more
says 'has 1 jobs that wait and may have 1'
must 0 $ada cancel "$a1"
runs2() { run_as $ada jobs --state running --json && grep -q "\"id\":$a2," out; }
await runs2 || failed "with the first job gone the second does not run: $(run_as $ada explain "$a2"; cat out)"
# Of two accounts: the first one's quota is used up, the other's is not; a third one is refused.
must 0 $ada submit job.yaml $long --name other --account side; a3=$(cat out)
must 0 $ada explain "$a3"
grep -q QUOTA out && failed "a job for the other account waits for the first one's quota: $(cat out)"
must 0 $ada jobs --json
grep -q "\"id\":$a3,.*\"account\":\"side\"" out || failed "its account: $(cat out)"
for account in blue lab nothing; do
	must 2 $ada submit job.yaml --account $account
	says "ACCOUNT: user ada is in no account \"$account\"; it is in: red, side"
	must 2 $ada submit job.yaml -s job.account=$account
	says "is in no account \"$account\""
done
# lea operates lab: red's jobs, which count below it, but neither blue's nor ada's other one
must 0 $lea jobs --json
grep -q "\"id\":$a2," out && ! grep -qE "\"id\":($b|$a3)," out ||
	failed "what the operator of lab sees: $(cat out)"
must 0 $lea explain next
says "job $a2 (next)"
must 0 $lea explain mine                       # bob's, which is younger, is none of hers
says "job $a (mine)"
must 0 $lea prio "$a2" 2
for what in "explain $a3" "cancel $a3" "explain $b" "prio $b 1"; do must 3 $lea $what; done
must 11 $lea drain a-0 --reason fans
must 2 $lea submit job.yaml --account red
must 0 $lea user show
says 'operates: lab'
must 0 $ada user show
says 'accounts: red, side'
must 2 $op submit job.yaml --account red
says 'user op is in no account "red", and in no other'
must 0 $ada cancel "$a3"
must 0 $ada status
grep -qE '^  red +3 +1 +1 ' out && grep -qE '^lab ' out && ! grep -q blue out ||
	failed "ada's accounts: $(cat out)"
must 0 $op status
grep -qE '^blue ' out || failed "an operator's accounts: $(cat out)"
# its user leaves the account: the job counts to another one, which is said
cp d/users.yaml good.yaml
sed 's/\[red, side\]/[side]/' good.yaml >d/users.yaml
await grep -q 'of 1 jobs the account is gone, or their user has left it' serve.err ||
	failed "a job without its account is not said: $(tail -n 3 serve.err)"
cp good.yaml d/users.yaml
# the tree is another one: a quota above the account holds for jobs that were there before
sed 's/lab: {running: 9}/lab: {running: 0}/' d/users.yaml >good.yaml
cp good.yaml d/users.yaml
stops() { run_as $ada explain "$a2" && grep -q 'account lab may have 0 jobs' out; }
await stops || failed "the quota of an account above does not hold: $(cat out; tail -n 3 serve.err)"
sed 's/lab: {running: 0}/lab: {running: 9}/' good.yaml >d/users.yaml
await runs2 || failed "with room above it the job does not go on: $(run_as $ada explain "$a2"; cat out)"
passed "a job counts to one of its user's accounts, and to those above it"
passed "quotas hold where devices are given out and where jobs are handed in, and say which"

# ---- roles, tokens, the file meanwhile ----

url=$(grep -o 'http://[^ ]*' serve.err | tail -n 1)
get() { curl -s -o out -w '%{http_code}' --max-time 60 "$@"; }
bearer() { echo "Authorization: Bearer $1"; }
if command -v curl >/dev/null; then
	must 0 $ada user token --for 1h -q; token=$(cat out)
	same "$(get -H "$(bearer "$token")" "$url/v1/me")" 200 "ada by her token"
	grep -q '"user":"ada","uid":54321,"role":"user"' out || failed "by her token: $(cat out)"
	grep -rq "$token" "$dir" && failed "the token's text is stored"
	same "$(get -H "$(bearer "$token")" "$url/v1/jobs/$b")" 404 "bob's job by ada's token"
	same "$(get -X POST -H "$(bearer "$token")" "$url/v1/stop")" 403 "the end by ada's token"
	same "$(get -H "$(bearer "$token")" -H 'Content-Type: application/json' "$url/v1/jobs" \
		-d "{\"job\":\"$text\",\"folder\":\"/\"}")" 400 "a job of an account whose group is not known"
	grep -q "the group of user ada (uid $ada) is not known" out || failed "by token: $(cat out)"
	same "$(get -H "$(bearer "${token/?/x}")" "$url/v1/me")" 401 "a forged token"
	same "$(get "$url/v1/me")" 401 "no token"
	same "$(get -H "$(bearer "$token")" -H 'Host: evil.org' "$url/v1/me")" 421 "another Host"
	same "$(get -H "$(bearer "$token")" -H 'Origin: http://evil.org' "$url/v1/me")" 403 "another Origin"
	same "$(get -H "$(bearer "$(cat d/token)")" "$url/v1/me")" 200 "the owner's token"
	grep -q '"owner":true' out || failed "the owner's token: $(cat out)"
	curl -s -N -H "$(bearer "$token")" "$url/v1/events" >stream 2>/dev/null & stream=$!
	await test -e stream
	await grep -q '^event: submit' stream || failed "a stream by a token: $(cat stream)"
	grep '^data: ' stream | grep -q "\"job\":$b," && failed "bob's events in ada's stream"
	must 0 $ada user tokens --json
	grep -q '"id":2' out || failed "ada's tokens: $(cat out)"
	must 0 $bob user tokens --json
	grep -q '"id":2' out && failed "ada's token is in bob's list: $(cat out)"
	must 3 $bob user revoke 2
	must 0 $ada user revoke 2
	gone() { ! kill -0 $stream 2>/dev/null; }
	await gone || failed "a stream goes on after its token was revoked"
	same "$(get -H "$(bearer "$token")" "$url/v1/me")" 401 "a token that was revoked"
	for what in stop policy devices/a-0; do
		as $bob curl -s --unix-socket "$dir/heddle.sock" -H 'Content-Type: application/json' \
			-d '{"policy":"sjf","usable":false}' "http://localhost/v1/$what" >out 2>err
		grep -qE '"error"' out || failed "bob may $what: $(cat out)"
	done
	same "$(as $bob curl -s -o /dev/null -w '%{http_code}' --unix-socket "$dir/heddle.sock" -X POST \
		http://localhost/v1/stop)" 403 "the end, asked for by bob"
else
	echo "skip: no curl: nothing comes to the port"
fi
kill -0 $daemon || failed "bob ended the scheduler"
wrong() { grep -q 'the users of before stay' serve.err; }
cp d/users.yaml good.yaml
echo 'users: {ada: {rol: x}}' >d/users.yaml
await wrong || failed "a bad file is not said: $(tail -n 3 serve.err)"
must 0 $bob jobs
sed "/bob/d; s/ada: {/ada: {role: operator, /" good.yaml >d/users.yaml
sees() { run_as $ada jobs --json && grep -q "\"id\":$b," out; }
await sees || failed "a new role does not hold: $(tail -n 3 serve.err)"
must 11 $bob jobs
kill -0 "$pid" 2>/dev/null || pgrep -U $bob -f "$dir/runs/$b-" >/dev/null ||
	failed "bob's job went with his name"
cp good.yaml d/users.yaml
back() { run_as $bob jobs; }
await back || failed "bob is not back"
passed "tokens, roles and the file change while the scheduler goes on; what is bad changes nothing"

# ---- another scheduler takes over ----

kill -9 $daemon; wait $daemon 2>/dev/null
serve
await works || failed "bob's job did not outlive the scheduler"
must 0 $bob explain "$b"
must 3 $ada explain "$b"
must 0 $bob cancel "$b"
over() { run_as $bob jobs --json && grep "\"id\":$b," out | grep -q '"state":"cancelled"'; }
await over || failed "bob's job is not cancelled: $(cat serve.err | tail -n 5)"
[ "$(cat only.yaml)" = secret ] || failed "root wrote through a link of bob's"
passed "another scheduler knows whose jobs are"

# ---- what cannot be done as the user is not done as root ----

if has_failpoints; then
	mkdir -m 700 d2
	cp good.yaml d2/users.yaml
	quick=(submit job.yaml --dir "$work/d2" -q)
	begin_2()
	{
		rm -f d2/heddle.sock
		HD_FAIL=$1 "$HEDDLE_BIN" serve --dir d2 --pool a:1 --policy fifo --round 1 >>2.out 2>>2.err &
		second=$!
		await test -S d2/heddle.sock || failed "serve does not answer: $(cat 2.err)"
	}
	ended() { ! kill -0 $second 2>/dev/null; }
	for n in 2 6; do                  # the first is that of the look at the folder
		begin_2 account.lend:err=EPERM@$n
		as $ada "$HEDDLE_BIN" "${quick[@]}" >out 2>err
		await ended || failed "a scheduler without a user's rights goes on: $(tail -n 3 2.err)"
		wait $second && failed "it ends well without a user's rights"
		grep -q "rights of account $ada on files" 2.err || failed "it does not say why: $(tail 2.err)"
		[ -z "$(find d2/runs -mindepth 1 -uid 0)" ] ||
			failed "lend $n: root's in ada's runs: $(find d2/runs -mindepth 1 -uid 0)"
	done
	passed "a scheduler that cannot take a user's rights ends, and touches nothing of the user's"

	# killed before and after it starts a coordinator, and a worker: what was started is found
	taken=
	for where in before@1 after@1 before@2 after@2; do
		begin_2 "daemon.spawn.${where/@/:kill@}"
		as $ada "$HEDDLE_BIN" "${quick[@]}" >out 2>err && taken="$taken $(cat out)"
		{ wait $second; } 2>/dev/null
		same $? 137 "$where: the end of a scheduler that starts what is needed"
	done
	begin_2 ''
	as $ada "$HEDDLE_BIN" "${quick[@]}" >out 2>err || failed "a job after the deaths: $(cat err)"
	taken="$taken $(cat out)"
	ids() { as $ada "$HEDDLE_BIN" jobs --dir "$work/d2" --json 2>/dev/null | grep -oE '^[{]"id":[0-9]+' |
		cut -d: -f2; }
	all_done() { as $ada "$HEDDLE_BIN" status --dir "$work/d2" --json 2>/dev/null |
		grep -qE '"queued":0,"starting":0,"running":0,"draining":0,"done":[1-9]'; }
	await all_done || failed "ada's jobs do not end: $(as $ada "$HEDDLE_BIN" jobs --dir "$work/d2")"
	same "$(grep -l job_start d2/runs/*/events.ndjson | wc -l)" "$(ids | wc -l)" "runs that began"
	for id in ${taken:-}; do ids | grep -qx "$id" || failed "job $id of$taken was lost: $(ids)"; done
	digest() { heddle ckpt digest "$1" | cut -c 1-32; }
	for id in $(ids); do
		run=$(ls -d d2/runs/"$id"-*)
		same "$(digest "$run")" "$(digest alone)" "digest of job $id and of the same run alone"
		same "$(grep -o '"step":[0-9]*' "$run/metrics.ndjson" | sort | uniq -c | awk '$1 != 1 { n++ }
			END { print NR " " n + 0 }')" '40 0' "steps of job $id, and those recorded twice"
		same "$(grep -o '"workers":[0-9]*' "$run/metrics.ndjson" | sort -u)" '"workers":1' \
			"workers of job $id, which has one device"
	done
	[ -z "$(find d2/runs -mindepth 1 ! -uid $ada)" ] ||
		failed "not ada's: $(find d2/runs -mindepth 1 ! -uid $ada)"
	kill $second; wait $second
	passed "killed as it starts a coordinator or a worker of a user, it loses and doubles none"
fi

# ---- what is written down ----

cp "$dir/audit.ndjson" out
python3 - out $ada $bob $op <<'END' || failed "the audit log"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
ada, bob, op = map(int, sys.argv[2:])
def has(**want):
    return any(all(l.get(k) == v for k, v in want.items()) for l in lines)
assert has(uid=ada, user="ada", what="submit", account="red", status=200)
assert has(uid=ada, user="ada", what="submit", account="side", status=200)
assert has(uid=ada, user="ada", what="submit", account="blue", status=400), "ada tried for blue"
assert has(uid=bob, user="bob", what="submit", status=200)
assert has(uid=bob, what="cancel", status=404), "bob tried to end ada's job"
assert has(uid=op, user="op", what="prio", status=200)
assert has(uid=bob, what="prio", status=400)
assert has(user="lea", what="prio", status=200) and has(user="lea", what="cancel", status=404)
END
for u in $ada $bob; do
	run_as $u jobs --json
	for id in $(grep -oE '^\{"id":[0-9]+' out | cut -d: -f2); do
		as $u "$HEDDLE_BIN" cancel "$id" --dir "$dir" -q >/dev/null 2>&1
	done
done
left() { ! pgrep -f "$dir/runs/" >/dev/null; }
await left || failed "processes stay: $(pgrep -af "$dir/runs/")"
kill $daemon; wait $daemon
passed "every act is in the audit log, with the account's number"
