#!/bin/bash
# machines.sh -- workers of one run, each in a network namespace of its own behind a shaped link, as if on
# machines of their own; pays_machines.sh and pipeline.sh read it after machine.sh. Needs root, ip and tc, and
# heddle and work (a folder) set. Sets port: of a bit a second, the bytes of a message.
#
# DELAY_MS=NUMBER: links also have a delay each way (0 is one), by bench/links.c in place of tc and veth; that
# needs /dev/net/tun and cc. Where a message's way takes long, and the rate and the drops are as with tc.
#
# A run starts with all workers on one machine; those of others join, and take the places of those that
# leave. Then links are shaped. Measured is the time from commit to commit, the median of those after that.
space=hdp$$
# bytes of TCP in frames of Ethernet, every other one acknowledged for what comes back
port=$(awk 'BEGIN { print 1448 / (1514 + 33) / 8 }')
nmachines=0
switch=
burst=32kb

# machines N: N of them at one switch; they go with machines_gone
machines()
{
	local i
	nmachines=$1
	if [ "${DELAY_MS:-}" ]; then
		machines_by_tun
	else
		machines_by_veth
	fi
	for ((i = 0; i < nmachines; i++)); do
		ip -n $space$i addr add 10.77.0.$((i + 1))/24 dev eth
		ip -n $space$i link set eth up
		ip -n $space$i link set lo up
		ip netns exec $space$i sysctl -qw net.ipv4.tcp_congestion_control=reno || true
	done
	[ -z "${DELAY_MS:-}" ] || switch_on
}

machines_by_veth()
{
	local i
	ip netns add ${space}s
	ip -n ${space}s link add sw type bridge
	ip -n ${space}s link set sw up
	for ((i = 0; i < nmachines; i++)); do
		ip netns add $space$i
		ip -n ${space}s link add to$i type veth peer name eth netns $space$i
		ip -n ${space}s link set to$i master sw up
	done
}

machines_by_tun()
{
	local i
	for ((i = 0; i < nmachines; i++)); do
		ip netns add $space$i
		ip -n $space$i tuntap add dev eth mode tun vnet_hdr
	done
}

# switch_on: of those machines; no job of this shell, so that the end of a measure() leaves it alone
switch_on()
{
	local i names=()
	for ((i = 0; i < nmachines; i++)); do names+=($space$i); done
	"${CC:-cc}" -O2 -o "$work/links" bench/links.c || return 1
	echo 0 0 >"$work/link"
	"$work/links" "$work/link" "${names[@]}" >"$work/links.said" 2>>"$work/log" &
	switch=$!
	disown $switch
	chrt -f -p 10 $switch 2>/dev/null || true    # late is longer than asked for
}

# bits RATE: of a second, of a number with kbit, mbit or gbit; none: 0
bits()
{
	case $1 in
	none) echo 0 ;;
	*gbit) echo "${1%gbit}e9" ;;
	*mbit) echo "${1%mbit}e6" ;;
	*kbit) echo "${1%kbit}e3" ;;
	*) echo "bench: rate $1: a number with kbit, mbit or gbit" >&2; return 1 ;;
	esac
}

machines_gone()
{
	local i
	kill $(jobs -p) $switch 2>/dev/null || true
	wait || true
	for i in s $(seq 0 $((nmachines - 1))); do ip netns del $space$i 2>/dev/null || true; done
}

# links RATE | none. Of each message `burst` goes at once, at each of two shapers: little where short messages
# wait for one another, more where the rate counts, which a shaper whose timer is late does not reach else
links()
{
	local i
	if [ "${DELAY_MS:-}" ]; then
		echo "$(bits "$1") $(awk -v ms="$DELAY_MS" 'BEGIN { print ms * 1000 }')" >"$work/link.new" &&
			mv "$work/link.new" "$work/link" && kill -HUP "$switch"
		return
	fi
	for ((i = 0; i < nmachines; i++)); do
		ip netns exec $space$i tc qdisc del dev eth root 2>/dev/null || true
		ip netns exec ${space}s tc qdisc del dev to$i root 2>/dev/null || true
		[ "$1" = none ] && continue
		ip netns exec $space$i tc qdisc add dev eth root tbf rate "$1" burst $burst latency 50ms &&
			ip netns exec ${space}s tc qdisc add dev to$i root tbf rate "$1" burst $burst \
				latency 50ms || return 1     # no -e within measure
	done
}

views() { grep -c '"kind":"view"' "$work/run/events.ndjson"; }
committed() { [ ! -e "$work/run/metrics.ndjson" ] || wc -l <"$work/run/metrics.ndjson"; }
# the workers of the view in force that are of the first machine
here()
{
	grep -h '^cause' "$(ls "$work"/run/plan/*.plan | tail -n 1)" | grep -o 'workers [0-9 ]*' |
		tr ' ' '\n' | awk '/^[0-9]+$/ && $1 < 1000000'
}
pid_of()
{
	grep "\"kind\":\"join\".*\"worker\":$1,\"text\"" "$work/run/events.ndjson" | tail -n 1 |
		grep -o 'pid:[0-9]*' | cut -d : -f 2
}
patience() { sleep 0.2; kill -0 $run 2>/dev/null; }

# gather JOB "DEVICES" OPTION...: a run in $work/run, one worker a machine, devices as `--devices paced:1
# --profile FILE`; its process is $run. Those of other machines record in $work/far/N, a folder each. Links
# have no rate yet. In a shell of its own; the run ends after `limit` seconds (300)
gather()
{
	local job=$1 as=$2 i n
	shift 2
	trap 'kill $(jobs -p) 2>/dev/null || true' EXIT       # this runs in a shell of its own
	rm -rf "$work/run" "$work/far"
	links none
	ip netns exec ${space}0 timeout "${limit:-300}" "$heddle" run "$job" --out "$work/run" \
		--workers $nmachines -s workers.start=others -s workers.detect=20s $as \
		--listen 10.77.0.1:7000 -s net.insecure_plaintext=true -q "$@" 2>>"$work/log" >&2 &
	run=$!
	until [ -S "$work/run/members.sock" ]; do patience || return 1; done
	for ((i = 0; i < nmachines; i++)); do
		ip netns exec ${space}0 timeout -k 2 "${limit:-300}" "$heddle" worker --join "$work/run" \
			--wait 60s $as 2>>"$work/log" &
	done
	until [ "$(committed)" ] && [ "$(committed)" -ge 2 ]; do patience || return 1; done
	for ((i = 1; i < nmachines; i++)); do
		ip netns exec $space$i timeout -k 2 "${limit:-300}" "$heddle" worker --join 10.77.0.1:7000 \
			--wait 60s $as -s net.insecure_plaintext=true --record-in "$work/far/$i" \
			2>>"$work/log" &
	done
	until [ "$(grep -c '"kind":"join".*"worker":1[0-9]\{6\},' "$work/run/events.ndjson")" \
		-ge $((nmachines - 1)) ]; do
		patience || return 1
	done
	sleep 2
	while [ "$(here | wc -l)" -gt 1 ]; do
		n=$(views)
		kill -TERM "$(pid_of "$(here | head -n 1)")"
		until [ "$(views)" -gt "$n" ]; do patience || return 1; done
		sleep 2
	done
	# all are back in their places
	until grep '"kind":"view"' "$work/run/events.ndjson" | tail -n 1 | grep -q ":\"$nmachines members"; do
		patience || return 1
	done
	sleep 1
}

# ends: the run, at the step at hand
ends()
{
	kill -INT $run
	wait $run || true
	kill $(jobs -p) 2>/dev/null || true
	wait || true
}

# measure RATE STEPS JOB "DEVICES" OPTION...: "predicted median steps" of such a run
measure()
{
	local rate=$1 steps=$2 n
	shift 2
	gather "$@" || return 1
	links "$rate" || return 1
	n=$(($(committed) + 2))
	until [ "$(committed)" -gt $((n + steps)) ]; do patience || return 1; done
	ends
	tail -n "+$n" "$work/run/metrics.ndjson" >"$work/lines"
	# none was lost on the way
	[ "$(grep -o '"membership":[0-9]*' "$work/lines" | sort -u | wc -l)" = 1 ] &&
		[ "$(here | wc -l)" = 1 ] || return 1
	grep -o '"t":[0-9.]*' "$work/lines" | cut -d : -f 2 |
		awk 'NR > 1 { printf "%.0f\n", ($1 - was) * 1000 } { was = $1 }' | sort -g |
		awk -v said="$(grep -o '"kind":"predicted".*' "$work/run/events.ndjson" |
			head -n 1 | grep -o '[0-9.]* ms a step' | cut -d ' ' -f 1)" '{ at[NR] = $1 }
			END { print said ? said : 0, at[int((NR + 1) / 2)], NR }'
}

# middle_of ROUNDS measure...: the run whose error is the middle one, and the errors of all
middle_of()
{
	local rounds=$1 i
	shift
	set -o pipefail
	for ((i = 0; i < rounds; i++)); do "$@" || return 1; done |
		awk '{ printf "%+.1f %s\n", ($1 / $2 - 1) * 100, $0 }' | sort -g |
		awk '{ all = all (NR > 1 ? "," : "") $1; $1 = ""; line[NR] = $0 }
			END { print line[int((NR + 1) / 2)], all }'
}
