#!/bin/bash
# heddle bench functions --endpoint https://...: signed calls over TLS with checked certificates. A TLS server
# of Python, with a certificate of an authority of this test, stands before the emulator.
. "$(dirname "$0")/program.sh"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_DEFAULT_REGION AWS_PROFILE
unset AWS_SHARED_CREDENTIALS_FILE
unset https_proxy HTTPS_PROXY all_proxy ALL_PROXY AWS_CA_BUNDLE
export HOME=$PWD
command -v openssl >/dev/null || { echo "skip: no openssl to make certificates"; exit 77; }
command -v python3 >/dev/null || { echo "skip: no python3 for a TLS server"; exit 77; }
expect 2 heddle bench functions --function=lambda --endpoint https://127.0.0.1:1 --count 1
says 'https://127.0.0.1:1 names no region: set AWS_REGION'
export AWS_REGION=us-east-1
AWS_ACCESS_KEY_ID=a expect 2 heddle bench functions --function=lambda --endpoint https://127.0.0.1:1 --count 1
says 'AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not'
expect 2 heddle bench functions --function=lambda --endpoint https://127.0.0.1:1 --count 1
says 'no keys for https://127.0.0.1:1: set AWS_ACCESS_KEY_ID'
mkdir .aws
printf '[default]\naws_access_key_id = AKIDHEDDLE\naws_secret_access_key = emulated\n' > .aws/credentials
AWS_PROFILE=other expect 3 heddle bench functions --function=lambda --endpoint https://127.0.0.1:1 --count 1
says 'no profile [other]'
heddle version | grep -q 'curl=yes' || { echo "skip: this build has no libcurl"; exit 77; }

{
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=authority \
		-keyout ca.key -out ca.pem
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -keyout s.key \
		-out s.csr
	openssl x509 -req -in s.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -out s.pem \
		-extfile <(echo subjectAltName=IP:127.0.0.1)
} > made 2>&1 || failed "no certificates: $(cat made)"
"$HEDDLE_BIN" chaos lambda --slots 2 > where 2> emulator &
emulator=$!
await grep -qs http where
cat > front.py <<'END'
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("s.pem", "s.key")
to = sys.argv[1].rsplit("/", 1)[1].rsplit(":", 1)
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
with open("front.tmp", "w") as f:
    f.write("127.0.0.1:%d" % listener.getsockname()[1])
import os; os.rename("front.tmp", "front")
def length(request):
    head, end, _ = request.partition(b"\r\n\r\n")
    if not end:
        return len(request) + 1
    lines = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    return len(head) + 4 + int(lines[b"content-length"])
def serve(raw):
    try:
        with context.wrap_socket(raw, server_side=True) as tls, socket.create_connection(to) as plain:
            request = tls.recv(65536)
            while len(request) < length(request):
                if not (more := tls.recv(65536)):
                    return
                request += more
            plain.sendall(request)
            while answer := plain.recv(65536):
                tls.sendall(answer)
            tls.unwrap()
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
python3 front.py "$(cat where)" 2> front.err &
front=$!
await test -s front
bench() { heddle bench functions --function=lambda --endpoint "https://$1" --slots 2 --count "$2" --json; }
AWS_CA_BUNDLE=ca.pem expect 0 bench "$(cat front)" 10
json_ok
same "$(number equal)" 10 "tasks with the bits of this process"
[ "$(number accepted)" -gt "$(number here)" ] || failed "functions did few tasks over HTTPS: $(cat out)"
passed "tasks through signed calls over HTTPS, keys of ~/.aws/credentials"

expect 11 bench "$(cat front)" 1
says 'certificate'
same "$(number accepted)" 0 "a server whose authority is unknown gets no call"
same "$(number calls)" 0 "what was not sent costs nothing"
port=$(cat front)
AWS_CA_BUNDLE=ca.pem expect 11 bench "localhost:${port#*:}" 1
same "$(number accepted)" 0 "a server of another name gets no call"
AWS_CA_BUNDLE=ca.pem AWS_SECRET_ACCESS_KEY=other AWS_ACCESS_KEY_ID=AKIDHEDDLE expect 11 bench "$port" 1
says 'status 403, InvalidSignatureException'
passed "an unknown authority, another name and a wrong key are refused"
kill "$front" "$emulator"
wait "$emulator"
same $? 0 "exit of chaos lambda"
