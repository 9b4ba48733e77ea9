#!/bin/bash
# heddle data cat of files and objects: what a server says that is wrong is refused or tried again, by name;
# and a data set behind HTTP and S3 trains to the same bits as its files.
. "$(dirname "$0")/program.sh"
command -v python3 >/dev/null || { echo "skip: no python3 for a server"; exit 77; }
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_PROFILE AWS_ENDPOINT_URL
unset AWS_SHARED_CREDENTIALS_FILE AWS_CA_BUNDLE AWS_ENDPOINT_URL_S3 AWS_DEFAULT_REGION
export HOME=$PWD
mkdir data
write_jobs 6
head -c 9000000 /dev/urandom > data/big.bin

expect 0 heddle data cat data/big.bin
json_ok
whole=$(grep -o '"hash":"[0-9a-f]*"' out)
expect 3 heddle data cat nowhere.bin
expect 3 heddle data cat data
expect 11 heddle data cat http://example.com/x
says 'data.plain_http'
expect 2 heddle data cat http://user:secret@127.0.0.1/x
heddle version | grep -q 'curl=yes' || { echo "skip: this build has no libcurl"; exit 77; }

serve()
{
	rm -f where
	python3 "$SOURCE_DIR/tests/store_server.py" data "$PWD/where" "$@" &
	server=$!
	await test -s where
}
serve
at=$(cat where)
fits() { expect 0 heddle data cat "$1"; says "$whole"; }
fits $at/big.bin
says '"store":"http"'
fits $at/moved/big.bin
expect 3 heddle data cat $at/none.bin
says '404'
expect 1 heddle data cat $at/loop
says 'one redirect too many'
expect 11 heddle data cat $at/metadata
says 'http:// to other hosts'
expect 11 heddle data cat https://169.254.169.254/latest
says 'link-local'
passed "objects by HTTP, redirects and their limits"

# what is said to the next answers, exit code, text
while IFS='|' read -r script code text; do
	echo "$script" > data/.script
	expect $code heddle data cat $at/big.bin
	says "$text"
	[ $code != 0 ] || says "$whole"
	rm -f data/.script
done <<'END'
whole 9|1|that is all of it, so this server does not read by ranges
wrong 9|1|it now has another length
norange 9|1|it does not say which bytes
long 9|1|more bytes than were asked for
etag 9|5|the object was changed
loop 9|1|one redirect too many
status 9 403|11|are the keys right, and not expired?
status 9 416|3|it has no such bytes
status 9 418|1|nothing that a store says
busy 2 0|0|"retries":2
status 1 500|0|"retries":1
reset 2|0|"retries":2
short 1|0|"retries":1
slow 1|0|"retries":0
busy 90 0|11|given up after 8 tries
END
passed "each wrong answer is refused or tried again, as it must be"

says_s3() { expect 11 heddle data cat s3://bucket/big.bin; says "$1"; }
export AWS_ENDPOINT_URL=$at
says_s3 '403'
AWS_ACCESS_KEY_ID=AKIDTEST expect 2 heddle data cat s3://bucket/big.bin
says 'AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not'
mkdir .aws
printf '[default]\naws_access_key_id = AKIDTEST\naws_secret_access_key = secret-of-the-test\n' \
	> .aws/credentials
chmod 0644 .aws/credentials
says_s3 'chmod 0600'
chmod 0600 .aws/credentials
fits s3://bucket/big.bin
says '"store":"s3"'
cp data/big.bin 'data/a b+c.bin'
fits 's3://bucket/a%20b+c.bin'
export AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=wrong
says_s3 '403'
! grep -q 'secret\|wrong' err || failed "a key stands in a message"
export AWS_SECRET_ACCESS_KEY=secret-of-the-test
fits s3://bucket/big.bin
passed "S3: keys of the environment and of a file, signatures, a key that does not fit"

# a redirect to another host, and to another port of this one: keys and tokens stay; to itself they go along
first_server=$server
serve
second=$(cat where)
other=$server server=$first_server
export AWS_SESSION_TOKEN=token-of-the-test
for to in http://localhost:${at##*:} $second $at/bucket; do
	echo $to > data/.elsewhere
	rm -f data/.keys data/.log
	fits s3://bucket/elsewhere/big.bin
	host=${to#http://}
	grep -q "^206 .*/big.bin" data/.log || failed "nothing came from $to"
	grep -q "^${at#http://} /bucket/elsewhere/big.bin$" data/.keys || failed "the first host saw no key"
	if [ $to = $at/bucket ]; then
		grep -q '^[^ ]* /bucket/big.bin$' data/.keys || failed "the same host saw no key then"
	elif grep "^$host \| /big.bin$" data/.keys; then
		failed "keys went along to $to"
	fi
done
unset AWS_SESSION_TOKEN
kill $other
passed "keys stay with their host across a redirect"

python3 - <<'END'
import os, struct
def npy(path, descr, shape, body):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + body)
os.mkdir("data/set")
npy("data/set/x.npy", "<f4", (90, 1, 6, 6), b"".join(struct.pack("<f", (i * 37 % 101) / 50 - 1)
    for i in range(90 * 36)))
npy("data/set/y.npy", "<i4", (90,), b"".join(struct.pack("<i", i * 7 % 4) for i in range(90)))
END
sed -i 's/^data:.*/data: {kind: npy, path: data\/set}/' mlp.yaml
digest_of()
{
	rm -rf run
	expect 0 heddle run mlp.yaml --out run -q -s data.path="$@"
	expect 0 heddle ckpt digest run
	digest=$(cat out)
	same "$digest" "${first:=$digest}" "digests of $1 and files"
}
for place in data/set $at/set s3://bucket/set; do
	digest_of $place
done
expect 3 heddle run mlp.yaml --out none -s data.path=$at/nothing -q
says 'there is no such object'
passed "a set of arrays trains to the same bits from files, HTTP and S3"

asked() { grep -c '/set/.*bytes=0-[1-9]' data/.log; }
before=$(asked)
digest_of $at/set -s data.cache=kept
same "$(asked)" $((before + 2)) "objects that were fetched"
digest_of $at/set -s data.cache=kept
same "$(asked)" $((before + 2)) "objects that were fetched a second time"
for file in kept/*.data; do
	printf X | dd of="$file" bs=1 seek=200 conv=notrunc 2>/dev/null
done
digest_of $at/set -s data.cache=kept
same "$(asked)" $((before + 4)) "objects whose copies were damaged"
touch data/set/y.npy
digest_of $at/set -s data.cache=kept -s data.cache_bytes=13500
same "$(ls kept/*.ok | wc -l)" 1 "entries of a cache that has room for one"
digest_of $at/set -s data.cache=kept -s data.cache_bytes=100
passed "a cache: each object once, damage is found, the oldest gives way"

# a server that stands still: workers wait for it, say so, and are not taken for hung
python3 - <<'END'
import io, struct, tarfile
with tarfile.open("data/shard.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
    for i in range(90):
        for name, body in ((".raw", b"".join(struct.pack("<f", (i * 37 + k * 11) % 101 / 50 - 1)
                                             for k in range(36))), (".cls", b"%d" % (i * 7 % 4))):
            info = tarfile.TarInfo("%04d%s" % (i, name))
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
END
sed 's/^data:.*/data: {kind: webdataset}/; s/steps: 6/steps: 60/; s/^checkpoint:.*//' mlp.yaml > tar.yaml
expect 0 heddle run tar.yaml --out files -q --devices 1 -s data.path=data/shard.tar
expect 0 heddle ckpt digest files
first=$(cat out)
echo 40 > data/.delay_ms
rm -rf run
long=$(printf 'long%.0s' {1..45}).tar          # a name with which the line is still whole
cp data/shard.tar data/$long
heddle run tar.yaml --out run --workers 2 -s workers.detect=2s -s data.path=$at/$long > heard 2>&1 &
running=$!
reach run 5
losses() { grep -c '"kind":"lost"' run/events.ndjson; }
lost=$(losses)                    # on a machine that is too busy for two seconds, before they wait
kill -STOP $server
await grep -q 'worker [01]: http.*long.tar: nothing came for .*; each request is tried 8 times' heard
same "$(losses)" "$lost" "workers lost before and after they wait for data"
rm data/.delay_ms
kill -CONT $server
wait $running || failed "the run ended with $?: $(tail -n 3 heard)"
expect 0 heddle ckpt digest run
same "$(cat out)" "$first" "the digest of a run whose server stood still"
passed "a server that stands still: said, waited for, no worker lost"

# keys that expire in the middle end the run, with the state that it had: it goes on from there
for how in "--devices 3" "--workers 2"; do
	rm -rf run
	echo 20 > data/.delay_ms
	heddle run tar.yaml --out run $how -s data.path=$at/shard.tar -s checkpoint.every='1000 steps' \
		> heard 2>&1 &
	running=$!
	reach run 5
	echo "status 999 403" > data/.script
	code=0
	wait $running || code=$?
	same $code 11 "exit codes of a run whose keys expired: $(tail -n 3 heard)"
	[ "$how" = "--workers 2" ] || grep -q 'could not be read; the state before it is kept' heard ||
		failed "what is kept is not said"
	rm data/.script data/.delay_ms
	kept=$(ls run/ckpt | tail -n 1)
	[ "$((10#${kept##*-}))" -ge 5 ] || failed "the state of step 5 is gone: $kept"
	expect 0 heddle resume run -q
	expect 0 heddle ckpt digest run
	same "$(cat out)" "$first" "the digest of a run whose keys expired, $how"
done
passed "a store that refuses ends the run with the state of its last step"

expect 0 heddle data tune data/big.bin --json --explain --for 2500
json_ok
says '"decisions":["start: depth 1, size 64 KiB'
says '"store":"file"'
expect 0 heddle data tune data/big.bin --json --for 1
says '"samples":1,"races":1'
says '"gap_bytes":65536'
sed -i 's/^data:.*/data: {kind: records, path: "data\/big-{07..09}.bin", direct: never, api: uring}/' mlp.yaml
mv data/big.bin data/big-07.bin
expect 0 heddle data tune mlp.yaml --json --for 400
says '"name":"data/big-07.bin","store":"file","by":"'
expect 11 heddle data tune http://127.0.0.1:9/x
says 'given up after 3 tries'
python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0))
open("silent", "w").write(str(s.getsockname()[1]))
time.sleep(600)' &
silent=$!
await test -s silent
"$HEDDLE_BIN" data tune http://127.0.0.1:$(cat silent)/x 2> err &
tuning=$!
await grep -q "waiting: .*nothing came for 3 s" err || failed "what it waits for is not said"
kill $tuning $silent
wait $tuning $silent
truncate -s 1T data/huge.csv
sed 's/^data:.*/data: {kind: csv}/' mlp.yaml > whole.yaml
expect 11 heddle run whole.yaml --out none -q -s data.path=$at/huge.csv
says 'is read whole into memory, and has 1048576 MiB'
says 'set data.cache to a folder'
expect 2 heddle data tune data/big.bin -s data.path=x
says 'data tune takes'
passed "tune: knobs of a store, with each decision"
