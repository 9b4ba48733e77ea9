#!/bin/bash
# A pure room (tools/floors) calls nothing that tells one run from another: no clock, file, socket, thread,
# environment or number from the system, and nothing of a room that may. The whole archive is looked at, not a
# list of its objects.
set -eu -o pipefail
build=${BUILD_DIR:?}
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
fail() { echo "pure_test: $*" >&2; exit 1; }
command -v nm >/dev/null || { echo "skip: no nm"; exit 77; }

rooms=$(awk '$1 == "pure" { for (i = 2; i <= NF; i++) print $i }' "$source/tools/floors")
[ -n "$rooms" ] || fail "tools/floors names no pure room"

# base/json sets the allocator of its library once a process, whichever thread comes first
allowed='^pthread_once$'
system='^_*(clock_.*|clock|time|gettimeofday|getrandom|getentropy|random|rand|rand_r|srand|drand48'
system+='|getenv|secure_getenv|setenv|setlocale'
system+='|socket|connect|accept4?|bind|listen|send|recv|sendmsg|recvmsg|poll|ppoll|select|epoll_.*'
system+='|open|open64|openat|creat|read|pread|write|pwrite|stat.*|fstat.*|unlink|rename|mkdir|opendir'
system+='|fopen.*|fread.*|fwrite.*|fgets.*|fprintf.*|printf.*|puts|putchar|fputs|perror|mmap.*|munmap'
system+='|pthread_.*|thrd_.*|mtx_.*|fork|exec.*|posix_spawn.*|system|popen|signal|sigaction|kill|getpid'
system+='|gethostname|sleep|usleep|nanosleep|syscall|exit|_exit)(_chk)?$'

count=0
for room in $rooms; do
	library=$build/libhd_$room.a
	[ -f "$library" ] || { echo "skip: no room $room in this build"; exit 77; }
	calls=$(nm -u "$library" | awk 'NF == 2 { print $2 }' | sort -u)
	bad=$(grep -E "$system" <<<"$calls" | grep -vE "$allowed" || true)
	[ -z "$bad" ] || fail "room $room is pure and calls $(tr '\n' ' ' <<<"$bad")"
	count=$((count + 1))
done

# what pure rooms call of ours lies in pure rooms
defined=$(for room in $rooms; do nm --defined-only "$build/libhd_$room.a"; done |
	awk 'NF == 3 && $2 ~ /[TDRBVWC]/ { print $3 }' | sort -u)
foreign=$(for room in $rooms; do nm -u "$build/libhd_$room.a"; done |
	awk 'NF == 2 && $2 ~ /^hd_/ { print $2 }' | sort -u |
	comm -23 - <(echo "$defined"))
[ -z "$foreign" ] || fail "pure rooms call $(tr '\n' ' ' <<<"$foreign")of rooms that are not"
echo "pure_test: $count rooms call neither the system nor a room that may"
