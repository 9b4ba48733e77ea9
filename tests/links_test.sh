#!/bin/bash
# bench/links.c passes on what it is given, no sooner than its delay and no faster than its rate, and counts
# what it drops. How late or slow it is no test says: bench/links.sh prints it.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
heddle=/bin/true work=$(mktemp -d) DELAY_MS=10
cd "$source"
. bench/machines.sh
trap 'machines_gone; rm -rf "$work"' EXIT
fail() { echo "links_test: $*"; cat "$work/log" 2>/dev/null; exit 1; }
for tool in ip ss python3 "${CC:-cc}"; do
	command -v "$tool" >/dev/null || { echo "skip: links with a delay (needs $tool)"; exit 77; }
done
[ -c /dev/net/tun ] && ip netns add ${space}x 2>/dev/null && ip netns del ${space}x ||
	{ echo "skip: links with a delay (needs root, ip netns and /dev/net/tun)"; exit 77; }
machines 2 || fail "there are no machines"
links 40mbit

# what comes to the second machine: five datagrams, sent back; a stream; other datagrams until a second
# stream ends. Prints the digest of the first and the number of the others
cat >"$work/there.py" <<'END_PY'
import hashlib, socket, sys
door, datagrams = socket.create_server(("", 7200)), socket.socket(type=socket.SOCK_DGRAM)
n, digest = 0, hashlib.sha256()
datagrams.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)    # SO_RCVBUFFORCE: none of them is lost here
datagrams.bind(("", 7200))
open(sys.argv[1], "w").close()
for i in range(5):
    datagrams.sendto(*datagrams.recvfrom(100))
s, _ = door.accept()
while data := s.recv(1 << 16):
    digest.update(data)
s.close()
s, _ = door.accept()
while s.recv(100):
    pass
datagrams.setblocking(False)
try:
    while datagrams.recv(2000):
        n += 1
except BlockingIOError:
    print(digest.hexdigest(), n)
END_PY
cat >"$work/here.py" <<'END_PY'
import hashlib, socket, time
there = ("10.77.0.2", 7200)
s, trips = socket.socket(type=socket.SOCK_DGRAM), []
for i in range(5):
    begin = time.monotonic()
    s.sendto(b"?", there)
    assert s.recv(10) == b"?"
    trips.append(time.monotonic() - begin)
data = bytes(i * 31 + (i >> 8) * 7 & 255 for i in range(2500000))
begin = time.monotonic()
t = socket.create_connection(there)
t.sendall(data)
t.shutdown(socket.SHUT_WR)
assert t.recv(1) == b""
took = time.monotonic() - begin
assert min(trips) >= 0.020, "a round trip of %.2f ms, of 20" % (min(trips) * 1e3)
assert took >= 2.5e6 * 8 / 40e6 + 0.04, "2.5 MB after %.0f ms" % (took * 1e3)
t = socket.create_connection(there)
for i in range(500):
    s.sendto(bytes(1400), there)
t.close()             # its end comes after them
print(hashlib.sha256(data).hexdigest())
END_PY
ip netns exec ${space}1 timeout 60 python3 "$work/there.py" "$work/listens" >"$work/got" 2>>"$work/log" &
there=$!
for ((i = 0; i < 600; i++)); do [ -e "$work/listens" ] && break || sleep 0.1; done
ip netns exec ${space}0 timeout 60 python3 "$work/here.py" >"$work/sent" 2>>"$work/log" || fail "here.py"
wait $there || fail "there.py"
read -r digest n <"$work/got"
[ "$digest" = "$(cat "$work/sent")" ] || fail "other bytes came than were sent"
kill $switch
for ((i = 0; i < 600; i++)); do kill -0 $switch 2>/dev/null || break; sleep 0.1; done
dropped=$(awk '/^port/ { n += $8 } END { print n }' "$work/links.said")
[ "$dropped" -ge 1 ] || fail "500 datagrams at once were not too many"
[ $((n + dropped)) -ge 500 ] || fail "of 500 datagrams $n came, $dropped packets were dropped"
echo "links_test: 2500000 bytes as sent, $n datagrams, $dropped packets dropped"
