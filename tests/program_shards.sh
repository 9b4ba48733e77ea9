#!/bin/bash
# data.kind webdataset and records: shards of files, HTTP and S3 train to the bits of the same samples as
# arrays, also with a server that is killed and comes back; damage has a name.
. "$(dirname "$0")/program.sh"
command -v python3 >/dev/null || { echo "skip: no python3 for a server"; exit 77; }
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_PROFILE AWS_ENDPOINT_URL
unset AWS_SHARED_CREDENTIALS_FILE AWS_CA_BUNDLE AWS_ENDPOINT_URL_S3 AWS_DEFAULT_REGION
mkdir data
cat > make.py <<'END'
import io, os, struct, tarfile
def npy(descr, shape, body):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + body
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff
def check(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)
def record(data):
    length = struct.pack("<Q", len(data))
    return length + check(length) + data + check(data)
x = [struct.pack("<36f", *((i * 36 + k) * 37 % 101 / 50 - 1 for k in range(36))) for i in range(90)]
y = [i * 7 % 4 for i in range(90)]
os.mkdir("data/set")
open("data/set/x.npy", "wb").write(npy("<f4", (90, 1, 6, 6), b"".join(x)))
open("data/set/y.npy", "wb").write(npy("<i4", (90,), struct.pack("<90i", *y)))
def add(tar, name, body):
    info = tarfile.TarInfo(name)
    info.size = len(body)
    tar.addfile(info, io.BytesIO(body))
for shard, form in enumerate((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)):
    with tarfile.open("data/web-%02d.tar" % shard, "w", format=form) as tar:
        for i in range(30 * shard, 30 * shard + 30):
            key = "part/%06d" % i if i % 5 or not shard else "part/" + "long" * 40 + "%06d" % i
            for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE) if i % 30 == 1 and shard else ():
                other = tarfile.TarInfo("other/" + "long" * 40)
                other.type, other.linkname = kind, "part"
                tar.addfile(other)
            if i % 2:
                add(tar, key + ".cls", b"%d\n" % y[i])
            if i % 3:
                add(tar, key + ".npy", npy("<f4", (1, 6, 6), x[i]))
            else:
                add(tar, key + ".raw", x[i])
            if not i % 2:
                add(tar, key + ".cls", b"%d" % y[i])
            add(tar, key + ".json", b"{}")
    with open("data/records-%d" % shard, "wb") as f:
        for i in range(30 * shard, 30 * shard + 30):
            f.write(record(x[i] + struct.pack("<i", y[i])))
END
python3 make.py || failed "no shards"
write_jobs 5
sed -i 's/^data:.*/data: {kind: npy, path: data\/set}/' mlp.yaml

# KIND PATH [OPTION...]: the digest of that run is that of the arrays
digest_of()
{
	rm -rf run
	expect 0 heddle run mlp.yaml --out run -q -s data.kind=$1 -s data.path="$2" -s trace.samples=true \
		"${@:3}"
	expect 0 heddle ckpt digest run
	digest=$(cat out)
	same "$digest" "${first:=$digest}" "digests of $2 and of arrays"
}
digest_of npy data/set
digest_of webdataset 'data/web-*.tar'
digest_of webdataset 'data/web-{00..02}.tar' --devices 2
digest_of records 'data/records-?' -s data.direct=never
digest_of records 'data/records-{0..2}'
expect 0 heddle data verify run
expect 0 heddle data verify mlp.yaml -s data.kind=webdataset -s data.path='data/web-*.tar'
says '90 samples'
passed "shards of files: the bits of the same samples as arrays"

# many shards by io_uring: rings are few, so files may be nearly as many as can be open
mkdir data/many
for i in {000..119}; do cp data/web-00.tar data/many/web-$i.tar; done
(ulimit -n 300 && heddle run mlp.yaml --out many -q -s data.kind=webdataset -s data.path='data/many/*.tar' \
	-s data.api=uring >out 2>err) || failed "120 shards with 300 open files: $(tail -n 1 err)"
rm -rf data/many many
passed "io_uring of many shards"

digest_of webdataset 'data/web-*.tar' -s data.cache=kept
same "$(ls kept/*.index | wc -l)" 3 "indices that are kept"
for file in kept/*.index; do
	printf X | dd of="$file" bs=1 seek=60 conv=notrunc 2>/dev/null
done
digest_of webdataset 'data/web-*.tar' -s data.cache=kept
passed "an index is kept, and made again where it is damaged"

# FILE OFFSET TEXT: a byte that is another one
wrong()
{
	cp "$1" data/bad
	printf X | dd of=data/bad bs=1 seek="$2" conv=notrunc 2>/dev/null
	expect 3 heddle run mlp.yaml --out bad -q -s data.kind="$3" -s data.path=data/bad
	says "$4"
	rm -rf bad
}
wrong data/records-0 4 records 'no record begins at byte 0'
wrong data/records-0 30 records 'the record at byte 12 is damaged'
wrong data/web-00.tar 3 webdataset 'no header of a tar file stands at byte 0'
head -c 700 data/web-00.tar > data/cut.tar
expect 3 heddle run mlp.yaml --out bad -q -s data.kind=webdataset -s data.path=data/cut.tar
says 'is cut off at byte 700'
head -c 700 data/records-0 > data/cut
expect 3 heddle run mlp.yaml --out bad -q -s data.kind=records -s data.path=data/cut
says 'is cut off inside a record'
mkdir images && echo > images/a.webp && echo 1 > images/a.cls
tar -cf data/images.tar images
expect 3 heddle run mlp.yaml --out bad -q -s data.kind=webdataset -s data.path=data/images.tar
says 'a.webp is an image'
expect 3 heddle run mlp.yaml --out bad -q -s data.kind=webdataset -s data.path='data/none-*.tar'
says 'no file matches'
passed "what is wrong with a shard has a name"

# what a shard holds, beside Python's reader of tar files
cat > members.py <<'END'
import json, sys, tarfile
*lines, whole = [json.loads(line) for line in open("out")]
want = [(m.name, m.offset_data, m.size) for m in tarfile.open(sys.argv[1]) if m.isfile()]
assert [(m["member"], m["offset"], m["bytes"]) for m in lines] == want
assert all(m["member"].startswith(m["key"] + ".") and "." not in m["key"] for m in lines)
assert (whole["form"], whole["members"], whole["listed"]) == ("tar", len(want), len(want))
END
for shard in data/web-*.tar; do
	expect 0 heddle data cat $shard --json
	python3 members.py $shard || failed "members of $shard"
done
expect 0 heddle data cat data/web-00.tar --count 2
same "$(wc -l < out)" 3 "lines of two members and the whole"
says '"members":90,"listed":2'
python3 - <<'END'
import io, tarfile
with tarfile.open("data/names.tar", "w", format=tarfile.GNU_FORMAT) as tar:
    for name in ["a\033[31m\nb.npy", '"<.cls'] + ["e%d.raw" % i for i in range(3000)]:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
END
expect 0 heddle data cat data/names.tar
says 'a?[31m?b  .npy'
same "$(wc -l < out)" 1001 "lines of 3002 members"
says '"members":3002,"listed":1000'
expect 0 heddle data cat data/names.tar --json --count 4000
python3 members.py data/names.tar || failed "names that want escaping"
expect 3 heddle data cat data/cut.tar
says 'is cut off at byte 700'
expect 0 heddle data cat data/records-1 --json
same "$(grep -c '"bytes":148,"crc_ok":true}' out)" 30 "records of records-1"
says '{"record":1,"offset":176,'
says '"form":"records","records":30,"listed":30,"damaged":0'
cp data/records-1 data/bad
printf X | dd of=data/bad bs=1 seek=180 conv=notrunc 2>/dev/null
expect 3 heddle data cat data/bad --json
says '{"record":1,"offset":176,"bytes":148,"crc_ok":false}'
says '{"record":29,'
says '1 of 30 records are damaged, the first at byte 176'
expect 3 heddle data cat data/cut
says 'is cut off inside a record'
passed "members of a tar file and records of a record file are listed, and counted where there are many"

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
export AWS_ENDPOINT_URL=$at AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret-of-the-test
digest_of records 's3://bucket/records-{0..2}' --devices 2
echo 'busy 2 0
reset 1
short 1' > data/.script
digest_of webdataset 's3://bucket/web-{00..02}.tar'
before=$(grep -c web-0 data/.log)
digest_of webdataset "$at/web-{00..02}.tar" -s data.cache=kept
digest_of webdataset "$at/web-{00..02}.tar" -s data.cache=kept
same "$(grep -c web-0 data/.log)" $((before + 3 + 3 + 3)) "requests of two runs that have a cache"
mkdir left
head -c 100000 /dev/zero > left/$(printf '0%.0s' {1..32}).part
head -c 100000 /dev/zero > left/$(printf '1%.0s' {1..32}).data
expect 0 heddle data verify mlp.yaml -s data.kind=webdataset -s data.path="$at/web-00.tar" \
	-s data.cache=left -s data.cache_bytes=$(($(stat -c %s data/web-00.tar) + 100))
[ -z "$(ls left/{000,111}*.{part,data} 2>/dev/null)" ] ||
	failed "a cache keeps what ended processes left: $(ls left)"
same "$(ls left/*.ok | wc -l)" 1 "entries of a cache with room for one"
passed "shards of HTTP and S3, with a server that is late, wrong and short: the same bits"

# killed in the middle, and back on its port
rm -rf run
echo 20 > data/.delay_ms
heddle run mlp.yaml --out run -q -s data.kind=webdataset -s data.path="$at/web-{00..02}.tar" &
run=$!
for step in 0 2; do
	reach run $step
	kill -9 $server
	wait $server 2>/dev/null
	serve "${at##*:}"
done
wait $run || failed "the run ended with $?"
expect 0 heddle ckpt digest run
same "$(cat out)" "$first" "digest after the server was killed twice"
rm data/.delay_ms
passed "a server that is killed and comes back: the same bits"

# STEP: the run has ended, or has committed that step
ended_or_at() { ! kill -0 $run 2>/dev/null || is_at run "$1"; }

# KIND PATH WHAT TEXT: WHAT happens in the middle, and the run ends with 5: soon, since at most 64 steps are
# read ahead, and 18 are a data epoch
ends_by()
{
	local status=0 since
	rm -rf run
	heddle run mlp.yaml --out run -q -s data.kind=$1 -s data.path="$2" -s job.steps=100000 2> err &
	run=$!
	reach run 1
	eval "$3"
	since=$(step run)
	await ended_or_at $((since + 120)) || failed "the run does not move"
	! kill -0 $run 2>/dev/null || failed "the run went on over data that are others: not said: $4"
	wait $run || status=$?
	[ $status = 5 ] || failed "expected exit 5, got $status"
	says "$4"
}
cp data/records-1 other
ends_by records "$at/records-{0..2}" 'cat other > data/records-1' 'the object was changed while it is in use'
ends_by records 'data/records-{0..2}' 'head -c 4000 /dev/zero | dd of=data/records-1 conv=notrunc 2>err2' \
	'is not what it was when the shard was opened'
passed "an object or a file that is changed in the middle ends the run"

# one of two workers reads by a slow path: it is named, and the bits are those of one. Shares stay even, or it
# would soon read nothing.
heddle serve --new-key key > out || { echo "skip: this build has no TLS"; exit 77; }
sed 's/steps: [0-9]*/steps: 100000000/; s/checkpoint:.*/checkpoint: {every: 1000 steps, keep: 2}/
	s#^data:.*#data: {kind: webdataset, path: "data/web-{00..02}.tar", window: 400 ms}#' \
	mlp.yaml > wide.yaml
echo 'elastic: {straggler: {act: false}}' >> wide.yaml
echo 40 > data/.delay_ms
heddle run wide.yaml --out wide --workers 1 --devices 1 --listen 127.0.0.1:0 --key key -q 2> log &
run=$!
await test -s wide/listen
heddle worker --join "$(cat wide/listen)" --key key -q --devices 1 -s data.path="$at/web-{00..02}.tar" \
	2> log.guest &
guest=$!
said() { grep -q "\"$1\".*$2" wide/events.ndjson; }
await said reading_unfair 'gets .* % of what it would read' || failed "a slow path is not named"
said reading_unfair 'its path to the store, or its device' || failed "the cause is another one"
await said reader 'worker .*: depth ' || failed "no decision of the guest's tuner is an event"
rm data/.delay_ms
expect 0 heddle stop wide
wait $run
wait $guest
expect 0 heddle run wide.yaml --out wide-one --devices 1 -q --steps "$(step wide)"
expect 0 heddle ckpt diff wide wide-one
says IDENTICAL
passed "a worker with a slow path to its shards is named, with its tuner's decisions: the same bits"
