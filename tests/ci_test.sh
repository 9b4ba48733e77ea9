#!/bin/bash
# .ci/run with a ./dev that only notes what it is asked for: what is compiled ahead is there before the stage
# that runs it, an error there is that stage's, and it ends with .ci/run.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/.ci" "$work/build/release"
cp "$source/.ci/run" "$work/.ci/run"
ln -s "$(command -v true)" "$work/build/release/protocol_simulation_test"
failed() { echo "FAILED: $*"; cat "$work/out"; exit 1; }

cat >"$work/dev" <<'END'
#!/bin/bash
cd "$(dirname "$0")"
echo "$*" >>asked
preset=release
[ "${2:-}" != --preset ] || preset=$3
nice_is() { grep -q " nice $1\$" /proc/self/autogroup; }      # this session's, against others
await()         # COMMAND...
{
	local try
	for ((try = 0; try < 3000; try++)); do
		! "$@" || return 0
		sleep 0.01
	done
	echo "never: $*"
	exit 1
}
case "$*" in
"$BROKEN") exit 1 ;;
"$ENDLESS") echo $$ >endless; exec sleep 1000 ;;
"fuzz --seconds 30") [ "${HD_FUZZ_INPUTS:-}" = 5000 ] && [ "$HD_FUZZ_SEED" = 1 ] || exit 1 ;;&
"$DEADLY") await test -s endless; kill -TERM $PPID ;;
'build --preset release '*)     # begins while `program` runs, ends when `release` waits for it
	if [ -e sessions ]; then
		await nice_is 19
		touch yielded
		await nice_is 0
	fi
	touch ahead.release ;;
*' program')
	if [ -e sessions ]; then
		await test -e yielded
		! nice_is 19 || { echo "tests yield as well"; exit 1; }
	fi ;;
'build --preset '*) sleep 0.1; touch "ahead.$preset" ;;       # longer than stages take that do not wait
'test release'|'test units'|'demo'|'fuzz'*|*' asan units'|*' tsan threads')
	case $1 in fuzz) preset=asan ;; esac
	[ -e "ahead.$preset" ] || { echo "nothing is compiled for $preset"; exit 1; } ;;
esac
END
chmod +x "$work/dev"
# one write a tenth of a second is too slow to tell: two in a row need a right of root's
weighs()
{
	local nice
	nice=$(sed -n 's/.* nice //p' /proc/self/autogroup)
	[ "$nice" ] && echo "$nice" >/proc/self/autogroup && echo "$nice" >/proc/self/autogroup
}
if [ "$(cat /proc/sys/kernel/sched_autogroup_enabled 2>/dev/null)" = 1 ] && weighs 2>/dev/null; then
	touch "$work/sessions"
else
	echo "skip: processors are not shared among sessions here"
fi
run()           # exit status, BROKEN, ENDLESS, DEADLY
{
	local status=0
	rm -f "$work"/ahead.* "$work/asked" "$work/endless" "$work/yielded"
	BROKEN=${2:-} ENDLESS=${3:-none} DEADLY=${4:-none} "$work/.ci/run" >"$work/out" 2>&1 || status=$?
	[ $status -eq "$1" ] || failed "expected exit $1, got $status"
}

run 0 none
[ "$(tail -n 1 "$work/out")" = '11 passed, 0 failed, 0 skipped' ] || failed "the sum"
for preset in release asan tsan; do
	grep -q "^== [a-z]*: .* s ahead for $preset\$" "$work/out" || failed "no seconds ahead for $preset"
done
[ "$(grep -c '^build --preset' "$work/asked")" = 3 ] || failed "what is compiled ahead"

run 1 'build --preset asan units'       # its stage would build it: this ./dev does not
grep -q '^red: asan fuzz$' "$work/out" || failed "another stage than those of asan is red"

run 143 none 'build --preset tsan threads' demo
timeout 60 tail --pid="$(cat "$work/endless")" -f /dev/null || {
	kill "$(cat "$work/endless")"
	failed "what is compiled ahead goes on after .ci/run"
}
echo "what is compiled ahead serves its stage, and ends with .ci/run"
