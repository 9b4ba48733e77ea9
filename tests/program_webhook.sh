#!/bin/bash
# heddle serve --webhook URL: what happened is sent to a receiver of this test.
. "$(dirname "$0")/program.sh"
command -v python3 >/dev/null || { echo "skip: no python3 to receive"; exit 77; }
write_jobs 5000000
mv mlp.yaml long.yaml
# A receiver that fails twice, then takes all, one of them with a long answer; the scheduler is ended
# meanwhile, and started again.
cat >receiver.py <<'END'
import http.server, os
seen = 0
class Receiver(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_POST(self):
        global seen
        seen += 1
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        status = 500 if seen <= 2 else 410 if '"kind":"device"' in body else 204
        long = status == 204 and '"name":"away"' in body
        with open("hooks", "a") as f:
            f.write("%d %s\n" % (status, body))
        self.send_response(200 if long else status)
        self.end_headers()
        if long:
            self.wfile.write(b"x" * 100000)
server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
with open("where.tmp", "w") as f: f.write("http://127.0.0.1:%d/hook?a=b" % server.server_port)
os.rename("where.tmp", "where")
server.serve_forever()
END
begin()
{
	rm -f d/heddle.sock
	"$HEDDLE_BIN" serve --dir d --pool fast:1 --policy fifo --round 1 --drain "$@" \
		>serve.out 2>serve.err &
	served=$!
	await test -S d/heddle.sock
}
end() { kill $served; wait $served; }
short_job() { expect 0 heddle submit long.yaml --dir d --name $1; expect 0 heddle cancel $1 --dir d; }
device()
{
	curl -s --unix-socket d/heddle.sock -H 'Content-Type: application/json' -d "{\"usable\":$1}" \
		http://localhost/v1/devices/fast-0 >device
}
taken() { [ "$(grep -c '^204' hooks)" -ge "$1" ]; }
expect 2 heddle serve --dir d --pool fast:1 --webhook http://127.0.0.1:x@example.org/
expect 2 heddle serve --dir d --pool fast:1 --webhook http://example.org/
says 'https://..., or http:// to this machine'
heddle version | grep -q 'curl=yes' || { echo "skip: this build has no libcurl"; exit 77; }
python3 receiver.py &
receiver=$!
await test -s where
begin --webhook "$(cat where)"
device false
short_job hooked
await taken 1
grep -qF 'is refused with 410, and dropped' serve.err ||
	failed "the drop is not logged: $(cat serve.err)"
end
begin
short_job away
end
begin --webhook "$(cat where)"
short_job last
await taken 3
expect 0 heddle submit long.yaml --dir d --name late --time 1s
device true
await taken 4
end
echo 100000 >d/webhook          # of a store that was another
begin --webhook "$(cat where)"
short_job fresh
await taken 5
end
same "$(grep '^204' hooks | grep -o '"name":"[a-z]*"' | cut -d '"' -f 4 | paste -sd ' ')" \
	'hooked away last late fresh' "jobs that the receiver took"
same "$(grep '^500' hooks | sort -u | wc -l)" 1 "events that it did not take at first"
grep -q '^204.*"kind":"timeout".*"name":"late"' hooks || failed "no word of the time limit"
grep -q '^410.*fast-0 is out of service' hooks || failed "no word of the device"
kill $receiver
passed "a receiver that fails, and a scheduler that ends, miss no event"
