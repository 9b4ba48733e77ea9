#!/bin/bash
# The promise, through the program: devices, threads, maps, stops and crashes change no bit of
# the result; another seed and one flipped bit are noticed.
. "$(dirname "$0")/program.sh"
steps=5
write_jobs $steps

for job in mlp lenet gpt resnet18; do
	train run $job.yaml --devices 1 --threads 1 --out $job
	declare whole_$job=$digest
	for devices in 1 2 3 5 8; do
		for threads in 1 2 3 4; do
			train run $job.yaml --devices $devices --threads $threads --out again
			rm -rf again
			whole=whole_$job
			same "$digest" "${!whole}" "$job on $devices devices of $threads threads"
		done
	done
	same "$(heddle ckpt digest $job)" "$digest" "$job: the checkpoint's digest is the run's"
done
passed "mlp, lenet, gpt, resnet18: equal digests on 1, 2, 3, 5, 8 devices of 1 to 4 threads"

for job in llama bert bert_cls lstm inception; do
	train run $job.yaml --devices 1 --threads 1 --out $job
	whole=$digest
	for where in "2 1" "3 2" "5 1" "8 3"; do
		read -r devices threads <<<"$where"
		train run $job.yaml --devices "$devices" --threads "$threads" --out again
		rm -rf again
		same "$digest" "$whole" "$job on $devices devices of $threads threads"
	done
	same "$(heddle ckpt digest $job)" "$whole" "$job: the checkpoint's digest is the run's"
done
passed "llama, bert with both heads, lstm, inception: equal digests on 1, 2, 3, 5, 8 devices"

# Virtual nodes dealt out by hand: rank 1 has the first alone, rank 0 the odd ones, rank 2 the other even
# ones.
train run mlp.yaml --devices 3 --out plans
{
	echo 'plan 0'
	echo 'cause "dealt by hand"'
	echo 'stages 1'
	grep '^workers' plans/plan/0000.plan
	echo "map 0:1 $(for v in 1 2 3 4 5 6 7 8 9 10 11 12; do printf '%d:%d ' $v $((v % 2 ? 0 : 2)); \
		done)" | sed 's/ $//'
	grep '^owner' plans/plan/0000.plan
	for rank in 0 1 2; do
		case $rank in 0) list='1 3 5 7 9 11' ;; 1) list=0 ;; *) list='2 4 6 8 10 12' ;; esac
		printf '%d:' $rank
		for v in $list; do printf ' LD0.%d F0.%d B0.%d' $v $v $v; done
		echo " RED0 NORM STEP0"
	done
} >hand.plan
train run mlp.yaml --devices 3 --plan hand.plan --out by-hand
same "$digest" "$whole_mlp" "a map made by hand"
grep -q '4:2' by-hand/plan/0000.plan || failed "the plan that was kept is not the one given"
sed 's/LD0.7 F0.7 B0.7 //' hand.plan >short.plan
expect 2 heddle run mlp.yaml --devices 3 --plan short.plan --out refused
passed "any map of virtual nodes gives the same digest; a plan that forgets one is refused"

HEDDLE_JOB_SEED=9 train run mlp.yaml --out by-env
environment=$digest
train run mlp.yaml -s job.seed=9 --out by-set
same "$environment" "$digest" "HEDDLE_JOB_SEED and -s job.seed"
expect 5 heddle ckpt diff by-env mlp
expect 0 heddle ckpt diff by-env by-set
passed "the environment overrides as -s does; another seed is another state (exit 5)"

# A long run stopped by a signal somewhere, continued for two steps more.
"$HEDDLE_BIN" run gpt.yaml -s job.steps=100000 -s 'checkpoint.every=1 h' --out stopped -q 2>err &
run=$!
until [ "$(cat stopped/metrics.ndjson 2>/dev/null | wc -l)" -ge 3 ]; do
	kill -0 $run 2>/dev/null || failed "the run ended by itself"
done
kill -TERM $run
status=0
wait $run || status=$?
[ $status -eq 75 ] || failed "SIGTERM: expected exit 75, got $status"
at=$(wc -l <stopped/metrics.ndjson)
train resume stopped --steps $((at + 2)) --devices 3
stopped=$digest
train run gpt.yaml -s job.steps=100000 --steps $((at + 2)) -s 'checkpoint.every=1 h' --out undisturbed
same "$stopped" "$digest" "stopped by SIGTERM at step $at and resumed"
passed "SIGTERM: exit 75, and the resumed run is the undisturbed one"

# One bit of one weight, with the hash in the manifest made to fit: the state digest still tells.
file=mlp/ckpt/step-00000000$steps/model.safetensors
old=$(sha256sum $file | cut -d ' ' -f 1)
size=$(stat -c %s $file)
byte=$(tail -c 1 $file | od -An -tu1)
printf "$(printf '\\x%02x' $((byte ^ 1)))" | dd of=$file bs=1 seek=$((size - 1)) conv=notrunc 2>/dev/null
new=$(sha256sum $file | cut -d ' ' -f 1)
[ "$old" != "$new" ] || failed "nothing was flipped"
sed -i "s/$old/$new/" mlp/ckpt/step-00000000$steps/MANIFEST.json
grep -q "$new" mlp/ckpt/step-00000000$steps/MANIFEST.json || failed "the manifest has no SHA-256 to repair"
# its last member, 78 bytes, is the SHA-256 of what stands before
manifest=mlp/ckpt/step-00000000$steps/MANIFEST.json
head -c -78 $manifest >sealed
printf ',"sha256":"%s"}\n' "$(sha256sum sealed | cut -d ' ' -f 1)" | cat sealed - >$manifest
expect 5 heddle ckpt verify mlp/ckpt/step-00000000$steps
says digest
passed "one flipped bit under a repaired SHA-256 is reported by the state digest"

# products in bf16: other bits than those of f32, the same wherever they are computed; refused elsewhere
half() # precision, what it needs, jobs
{
	local precision=$1 needs=$2 job devices threads where f32
	shift 2
	if ! heddle run gpt.yaml -s job.precision="$precision" --dry-run >out 2>err; then
		says "needs $needs"
		echo "skip: $precision ($(uname -m) without $needs)"
		return 1
	fi
	for job in "$@"; do
		train run $job.yaml -s job.precision="$precision" --devices 1 --out "$precision-$job"
		whole=$digest f32=whole_$job
		[ "$whole" != "${!f32}" ] || failed "$job: $precision and f32 gave the same"
		for where in "2 1" "3 2" "5 1"; do
			read -r devices threads <<<"$where"
			train run $job.yaml -s job.precision="$precision" --devices $devices \
				--threads $threads --out again
			rm -rf again
			same "$digest" "$whole" "$job in $precision on $devices devices of $threads threads"
		done
	done
	train run gpt.yaml -s job.precision="$precision" --steps 2 --out "$precision-stopped"
	train resume "$precision-stopped" --devices 2
	same "$digest" "$(heddle ckpt digest "$precision-gpt")" "$precision, resumed"
	passed "$precision: equal digests on devices, after a stop; a processor without is refused"
}
if half bf16 AVX512-BF16 gpt mlp; then
	wide=bf16
	if half bf16-amx AMX-BF16 gpt; then
		[ "$whole" != "$(heddle ckpt digest bf16-gpt)" ] || failed "bf16 and bf16-amx gave the same"
		wide=bf16-amx
	fi
	"$HEDDLE_BIN" run gpt.yaml -s job.precision=$wide --workers 2 --devices 1 -q --out half-team \
		-s workers.pace=50ms -s job.steps=100000 2>log &
	run=$!
	reach half-team 1
	expect 11 heddle worker --join half-team --devices 1 --isa avx2
	says "job.precision: $wide needs"
	says 'start with job.precision: f32'
	expect 0 heddle stop half-team
	status=0
	wait $run || status=$?
	[ $status -eq 75 ] || failed "stop: expected exit 75, got $status"
	at=$((10#$(ls half-team/ckpt | tail -n 1 | cut -d- -f2) + 2))
	train resume half-team --steps $at --devices 2
	whole=$digest
	train run gpt.yaml -s job.precision=$wide -s job.steps=100000 --steps $at --devices 1 --out half-alone
	same "$whole" "$digest" "$wide on two workers, then on two devices"
	passed "$wide: equal digests on workers; one without is refused"
fi
expect 2 heddle run gpt.yaml -s job.precision=bf16 -s job.kernels=library --dry-run
says 'only with auto|portable'
