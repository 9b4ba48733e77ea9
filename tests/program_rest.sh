#!/bin/bash
# The scheduler's HTTP from outside: who may ask, what its own schema makes of it, and that nothing else listens. The verbs that ask:
# program_jobs.sh; what the scheduler does: program_cluster.sh.
. "$(dirname "$0")/program.sh"
command -v python3 >/dev/null || { echo "skip: no python3 to ask with"; exit 77; }
write_jobs 5
begin()                 # ARGUMENTS of serve: in the background, until its socket is there
{
	rm -f d/heddle.sock
	"$HEDDLE_BIN" serve --dir d --pool fast:1,slow:1:0.5 --policy fifo --round 1 --drain "$@" >serve.out 2>serve.err &
	daemon=$!
	for _ in $(seq 300); do
		[ -S d/heddle.sock ] && return
		kill -0 $daemon 2>/dev/null || failed "serve ended: $(cat serve.err)"
		read -rt 0.1 <> <(:) || :
	done
	failed "serve does not listen: $(cat serve.err)"
}
listeners() { python3 - "$1" <<'END'
import os, sys
inodes = {os.readlink("/proc/%s/fd/%s" % (sys.argv[1], fd)) for fd in os.listdir("/proc/%s/fd" % sys.argv[1]) if os.path.exists("/proc/%s/fd/%s" % (sys.argv[1], fd))}
n = 0
for table in ("tcp", "tcp6", "udp", "udp6"):
    for line in list(open("/proc/net/" + table))[1:]:
        f = line.split()
        n += "socket:[%s]" % f[9] in inodes and (f[3] == "0A" or table.startswith("udp"))
print(n)
END
}

for where in 0.0.0.0:0 "[::]:0" 10.0.0.1:80 example.org:80 8080; do
	expect 2 heddle serve --dir d --pool fast:1 --http $where
	says 'ssh -L PORT:127.0.0.1:PORT HOST'
done
passed "no other machine is served, and the way round is named"

begin
[ "$(stat -c %a d)" = 700 ] || failed "others can enter the folder"
same "$(listeners $daemon)" 0 "sockets of the network without --http"
[ ! -e d/token ] || failed "a token without a port"
expect 0 heddle submit mlp.yaml --dir d
expect 0 heddle submit mlp.yaml --dir d --scale 2 --name other
for seed in 1 2 3; do
	expect 0 python3 "$SOURCE_DIR/tests/rest_generate.py" d/heddle.sock $seed 150
	tail -n 1 out
done
kill -0 $daemon || failed "the scheduler died: $(cat serve.err)"
lines=$(wc -l <d/audit.ndjson)
expect 3 heddle cancel nobody --dir d
same "$(wc -l <d/audit.ndjson)" $((lines + 1)) "lines of the audit log after one order"
kill $daemon
wait $daemon
passed "requests made up from the schema are answered by it; what it forbids is refused and changes nothing"

begin --http 127.0.0.1:0
same "$(listeners $daemon)" 1 "sockets of the network with --http"
[ "$(stat -c %a d/token)" = 600 ] || failed "others can read the token"
says_url=$(grep -o 'http://127.0.0.1:[0-9]*' serve.err | head -n 1)
[ -n "$says_url" ] || failed "the address is not told: $(cat serve.err)"
expect 0 python3 - "$says_url" "$(cat d/token)" <<'END'
import http.client, json, sys
host, token = sys.argv[1][7:], sys.argv[2].strip()
def ask(target, **headers):
    c = http.client.HTTPConnection(host, timeout=20)
    c.request("GET", target, headers={k.replace("_", "-"): v for k, v in headers.items()})
    return c.getresponse()
assert ask("/v1/status").status == 401
assert ask("/v1/status", Authorization="Bearer " + token[:-1] + ("0" if token[-1] != "0" else "1")).status == 401
assert ask("/v1/status", Authorization="Bearer " + token).status == 200
assert ask("/v1/status", Authorization="Bearer " + token, Host="example.org").status == 421
assert ask("/v1/status", Authorization="Bearer " + token, Origin="http://example.org").status == 403
r = ask("/v1/events?after=0", Authorization="Bearer " + token)
lines = [r.readline().decode().rstrip("\n") for _ in range(4)]
assert lines[0].startswith("id: ") and lines[1].startswith("event: ") and lines[2].startswith("data: ") and lines[3] == "", lines
assert json.loads(lines[2][6:])["number"] == int(lines[0][4:]), lines
END
kill $daemon
wait $daemon
passed "a port is served to who has the token, and events come over it"
