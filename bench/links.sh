#!/bin/bash
# links.sh -- are links what machines.sh says? Round trips of a datagram, and bytes of one TCP stream, over
# links of bench/links.c, beside what was asked for. Prints the first table of docs/results/links.md.
#
#	bench/links.sh                  # some two minutes, as root
#	RATES="50 200 1000" DELAYS="0 1 5 10" SECONDS_EACH=3 bench/links.sh
#
# Goodput: 1448 of 1514 bytes of a frame at most. A stream is as fast as its windows grow to: of each row the
# second half of the time counts.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
work=$(mktemp -d)
DELAY_MS=0
. bench/machines.sh
trap 'machines_gone; rm -rf "$work"' EXIT
each=${SECONDS_EACH:-3}
machines 2
cat >"$work/probe.py" <<'END'
# probe.py door SECONDS | trips HOST N | stream HOST SECONDS
import socket, sys, time
what, n = sys.argv[1], float(sys.argv[-1])
if what == "trips":
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.settimeout(5)
    for i in range(int(n)):
        begin = time.perf_counter()
        s.sendto(b"%d" % i, (sys.argv[2], 7200))
        s.recv(100)
        print("%.2f" % ((time.perf_counter() - begin) * 1e3))
        time.sleep(0.005)
    s.sendto(b"", (sys.argv[2], 7200))
elif what == "stream":
    s, end = socket.create_connection((sys.argv[2], 7200)), time.monotonic() + n
    while time.monotonic() < end:
        s.sendall(bytes(1 << 16))
else:
    door, echo = socket.create_server(("", 7200)), socket.socket(type=socket.SOCK_DGRAM)
    echo.bind(("", 7200))
    while (said := echo.recvfrom(100))[0]:
        echo.sendto(*said)
    s, _ = door.accept()
    begin, at, got = time.monotonic(), None, 0
    while data := s.recv(1 << 18):
        now = time.monotonic()
        if at is None and now - begin > n / 2:
            at, got = now, 0
        elif at is not None:
            got, last = got + len(data), now
    print("%.1f" % (got * 8e-6 / (last - at)))
END
echo "$(date -u +%Y-%m-%d), $(with_load)"
echo
echo "| Mbit/s asked | delay asked, ms | round trip, ms: least | median | most | goodput, Mbit/s |" \
	"of 1448/1514 |"
echo "|--:|--:|--:|--:|--:|--:|--:|"
for mbit in ${RATES:-50 200 1000}; do
	for DELAY_MS in ${DELAYS:-0 1 5 10}; do
		links "${mbit}mbit"
		ip netns exec ${space}1 python3 "$work/probe.py" door "$each" >"$work/got" &
		until ip netns exec ${space}1 ss -lun | grep -q :7200; do sleep 0.1; done
		ip netns exec ${space}0 python3 "$work/probe.py" trips 10.77.0.2 100 | sort -g >"$work/trips"
		ip netns exec ${space}0 python3 "$work/probe.py" stream 10.77.0.2 "$each"
		wait $!
		awk -v mbit="$mbit" -v ms="$DELAY_MS" -v got="$(cat "$work/got")" '{ at[NR] = $1 } END {
			printf "| %s | %s | %s | %s | %s | %s | ", mbit, ms, at[1], at[int((NR + 1) / 2)],
				at[NR], got
			printf "%.3f |\n", got / (mbit * 1448 / 1514) }' "$work/trips"
	done
done
kill $switch
until ! kill -0 $switch 2>/dev/null; do sleep 0.1; done
echo
sed 's/^/	/' "$work/links.said"
