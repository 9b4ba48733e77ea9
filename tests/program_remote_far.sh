#!/bin/bash
# Workers of other machines: network namespaces stand for them, each with nothing in common but the wire and
# the disk, of which they use only the key. Whatever comes, goes, dies or is cut off, the bits are those of
# one device.
. "$(dirname "$0")/program.sh"

a=hd$$a b=hd$$b c=hd$$c
ip netns add $a 2>/dev/null || { echo "skip: other machines (needs root and ip netns)"; exit 77; }
ip netns add $b && ip netns add $c || { echo "skip: other machines (ip netns)"; exit 77; }
started=()
gone()
{
	kill "${started[@]}" 2>/dev/null
	end_jobs
	for space in $a $b $c; do ip netns del $space; done
	rm -rf "$work"
}
trap gone EXIT
cable()        # namespace, address: to a switch in $a
{
	ip -n "$a" link add "to$1" type veth peer name eth netns "$1" &&
		ip -n "$a" link set "to$1" master switch up &&
		ip -n "$1" addr add "$2/24" dev eth && ip -n "$1" link set eth up && ip -n "$1" link set lo up
}
ip -n $a link set lo up && ip -n $a link add switch type bridge &&
	ip -n $a addr add 10.77.0.1/24 dev switch && ip -n $a link set switch up &&
	cable $b 10.77.0.2 && cable $c 10.77.0.3 || {
		echo "skip: other machines (no veth or bridge here)"
		exit 77
	}
. "$SOURCE_DIR/tests/remote.sh"
expect 0 heddle serve --new-key key
joins()        # namespace, log: a worker there, in the background; its process in $guest
{
	ip netns exec "$1" "${paced[@]}" "$HEDDLE_BIN" worker --join 10.77.0.1:7000 --key key \
		--devices 1 2>"$2" &
	guest=$!
	started+=("$guest")
}
begins()       # run, workers
{
	ip netns exec $a "${paced[@]}" "$HEDDLE_BIN" run long.yaml --out "$1" --workers "$2" --devices 1 \
		--listen 10.77.0.1:7000 --key key -q 2>log &
	run=$!
	[ "$(listens "$1")" ] || failed "$1 does not listen"
}

begins far 1
joins $b log.b; first_guest=$guest
joins $c log.c; second_guest=$guest
has_members far 3
reach far 100
kill -TERM $first_guest
ended $first_guest 75 "a guest that was asked to go"
has_members far 2
joins $b log.b2; third_guest=$guest
has_members far 3
reach far $(($(step far) + 20))
ends_well far "three machines"
ended $second_guest 75 "a guest at the end"
ended $third_guest 75 "a guest that came late"
passed "workers of other machines come and go"

begins kill 1
joins $b log.b; first_guest=$guest
joins $c log.c
has_members kill 3
reach kill 100
kill -9 $first_guest
wait $first_guest 2>/dev/null
has_members kill 2
reach kill $(($(step kill) + 100))
ends_well kill "a guest killed"
ended "$guest" 75 "the other guest"
passed "a guest that is killed costs its virtual nodes of one step"

begins cut 1
joins $b log.b; first_guest=$guest
joins $c log.c
has_members cut 3
reach cut 100
ip -n $b link set eth down
has_members cut 2
ip -n $b link set eth up
has_members cut 3
reach cut $(($(step cut) + 20))
ends_well cut "a link cut and mended"
ended "$guest" 75 "the guest beside"
ended $first_guest 75 "the guest that was cut off"
grep -q '"kind":"lost","step":[0-9]*,"membership":[0-9]*,"worker":1000' cut/events.ndjson ||
	failed "no event says so"
passed "a guest whose link is cut is fenced, and joins again when it is mended"

# the only worker of the run's machine dies: guests hold the state until another can save it
begins alone 1
joins $b log.b; first_guest=$guest
joins $c log.c
has_members alone 3
reach alone 100
local=$(heddle status alone --json | grep -o '"id":0,[^}]*"pid":[1-9][0-9]*' | grep -o '[0-9]*$')
kill -9 "$local"
await grep -q '"kind":"lost"' alone/events.ndjson || failed "the worker here is not missed"
has_members alone 3
reach alone $(($(step alone) + 20))
ends_well alone "the only local worker killed"
ended $first_guest 75 "a guest"
ended "$guest" 75 "another guest"
passed "guests keep the state when the last local worker dies"

begins coordinator 2
joins $b log.b
has_members coordinator 3
reach coordinator 100
kill -9 $run
wait $run 2>/dev/null
await answers_now coordinator || failed "no coordinator follows"
has_members coordinator 3
reach coordinator $(($(step coordinator) + 20))
taken_over_ends_well coordinator "a coordinator killed"
ended "$guest" 75 "a guest under two coordinators"
passed "a guest reaches the coordinator that follows at the same address"

begins lonely 1
joins $b log.b
has_members lonely 2
ip -n $a link set switch down
ended "$guest" 75 "a guest without a way"
grep -q 'no coordinator for thirty times' log.b || failed "a guest without a way says nothing"
ends_well lonely "all guests lost"
passed "a guest without a way to the run leaves after its time, the run goes on"
