#!/bin/bash
# heddle bench step: the members that scripts read are there and make sense; times are not judged.
. "$(dirname "$0")/program.sh"
write_jobs 30
expect 0 heddle bench step mlp.yaml --devices 2 --threads 1 --repeat 5 --json
for name in step_ms_median step_ms_min flops_per_step fraction_of_peak loss_first loss_last; do
	[ -n "$(number $name)" ] || failed "no $name"
done
same "$(number steps)" 5 "--repeat"
cp out one
train run mlp.yaml --steps 8 --out whole
same "$(sed -n 's/.*"digest":"\([^"]*\).*/\1/p' one)" "$digest" "what is timed is what is trained"
! grep -q virtual_nodes_excess one || failed "the cost of virtual nodes is measured on one device"
expect 0 heddle bench step mlp.yaml --devices 1 --threads 1 --repeat 5 --json
json_ok
for name in forward_ms backward_ms joins_ms update_ms wait_data_ms other_ms virtual_nodes_ms \
	virtual_node_alone_ms virtual_nodes_excess \
	ops_cold_ms explained floor_ms memory_predicted_mib memory_peak_growth_mib memory_files_mib; do
	[ -n "$(number $name)" ] || failed "no $name"
done
same "$(number digest)" "$(sed -n 's/.*"digest":"\([^"]*\).*/\1/p' one)" "one device and two"
awk -v floor="$(number floor_ms)" -v f="$(number flops_per_step)" -v p="$(number peak_flops_per_s)" \
	'BEGIN { d = f / p * 1e3 / floor - 1; exit !(d < 1e-6 && d > -1e-6) }' || failed "floor_ms"
awk -v ops="$(number ops_cold_ms)" -v e="$(number explained)" -v step="$(number step_ms_min)" \
	'BEGIN { exit !(ops > 0 && e * step >= ops) }' || failed "explained"
awk -v all="$(number virtual_nodes_ms)" -v one="$(number virtual_node_alone_ms)" \
	-v rest="$(number joins_and_update_ms)" -v folds="$(number folds_ms)" \
	-v e="$(number virtual_nodes_excess)" 'BEGIN {
		d = all / (13 * one + folds + rest) - 1 - e
		exit !(d < 1e-6 && d > -1e-6 && one > 0 && rest > 0)
	}' || failed "the excess is not that of its terms"
awk -v f="$(number forward_ms)" -v b="$(number backward_ms)" 'BEGIN { exit !(f > 0 && b > 0) }' ||
	failed "a pass takes no time"
expect 0 heddle bench step mlp.yaml
says 'GFLOP'
[ -z "$(ls -d runs 2>/dev/null)" ] || failed "bench leaves a run directory"
passed "bench step times real steps and leaves nothing"

# What --save writes is the problem that was timed: PyTorch begins there and has the same losses.
expect 0 heddle bench step mlp.yaml --devices 2 --repeat 3 --json --save problem.safetensors \
	-s optim.weight_decay=0.1
json_ok
same "$(grep -o '"losses":\[[^]]*' out | tr , '\n' | wc -l)" 6 \
	"a loss for every step, those of the warm-up too"
[ -s problem.safetensors ] || failed "--save writes nothing"
expect 2 heddle bench step mlp.yaml --repeat 100000000 --save big.safetensors
[ ! -e big.safetensors ] || failed "a refused file is there"
passed "bench step saves what it times"
torch=${HD_TORCH_PYTHON:-/opt/torchvenv/bin/python}
if "$torch" -c 'import torch, safetensors' 2>/dev/null; then
	adamw="-s optim.kind=adamw -s optim.schedule.kind=constant -s optim.schedule.warmup=0 -s optim.clip=0"
	for job in "mlp -s optim.weight_decay=0.1" lenet "gpt -s model.args.dropout=0"; do
		read -r name more <<<"$job"
		# shellcheck disable=SC2086
		expect 0 heddle bench step "$name.yaml" --devices 1 --repeat 3 \
			--json --save problem.safetensors $more $adamw
		cp out ours
		HD_TORCH_TRIES=eager expect 0 "$torch" "$SOURCE_DIR/bench/torch_step.py" \
			problem.safetensors ours 1 3
		awk -v d="$(grep -o '"loss_diff": [^,]*' out | sed 's/.* //')" 'BEGIN { exit !(d < 1e-5) }' \
			|| failed "$name: losses differ"
	done
	passed "PyTorch has the losses of the step that is timed"
else
	echo "no PyTorch here: its losses are not compared"
fi

# Each figure that is made of others is checked against them.
cat >sums.py <<'END'
import json, sys
sets = json.load(sys.stdin)
def equal(a, b, what):
	assert abs(a - b) <= 1e-6 * b, what
for s in sets:
	ops = sum(o["count"] * o["best_ms"] for o in s["ops"])
	equal(s["ops_ms"], ops, "ops_ms is not the sum of its rows")
	equal(s["ops_ms"] + s["joins_and_update_ms"], s["sum_ms"], "sum_ms is not the sum of its terms")
	equal(s["sum_ms"] / s["step_ms_min"], s["sum_of_step"], "sum_of_step")
	rows = [(o["op"], o["shape"], o["count"]) for o in s["ops"]]
	assert rows and all(o[k] > 0 for o in s["ops"] for k in ("best_ms", "bytes", "count"))
	assert all(o["bound"] in ("compute", "memory") for o in s["ops"])
	alike = s["peak_flops_per_s"] == s["others_peak_flops_per_s"]
	assert alike == (not s["set"].startswith("bf16")), "peaks"
	for o in s["ops"]:
		peak = s["peak_flops_per_s" if o["op"] == "matmul" else "others_peak_flops_per_s"]
		equal(o["flops"] / o["best_ms"] * 1e3, o["flops_per_s"], "flops_per_s")
		least_s = max(o["flops"] / peak, o["bytes"] / s["peak_bytes_per_s"])
		equal(least_s * 1e3 / o["best_ms"], o["roofline"], "roofline")
		equal(o["flops"] / peak / least_s, o["allowed"], "allowed")
	if s["cold"]:
		assert 0 < s["peak_least_flops_per_s"] <= s["peak_most_flops_per_s"], "peaks between ops"
		assert all((o["of_peak"] > 0) == (o["flops"] > 0) for o in s["ops"]), "of_peak"
	assert all(("of_peak" in o) == s["cold"] for o in s["ops"]), "a peak beside warm ops"
	print(s["set"], s["wave"], sum(o["count"] * o["flops"] for o in s["ops"]))
END
python=$(command -v python3) || python=/opt/torchvenv/bin/python
for job in mlp lenet resnet18 gpt lstm; do
	expect 0 heddle bench op $job.yaml --repeat 2 --json -s job.kernels=portable
	json_ok
	[ ! -x "$python" ] || "$python" sums.py <out >sums 2>err || failed "$job: sums"
	grep -q '"set":"portable","asked":"portable"' out || failed "$job: no portable kernels"
done
# Those of a run, for each key: what a run writes down that it took.
for kernels in auto library; do
	if ! heddle run mlp.yaml -q --steps 1 --out "takes-$kernels" -s job.kernels=$kernels >out 2>err; then
		says 'this build has no library kernels'
		continue
	fi
	taken=$(sed -n 's/.*"kernels_auto":"\(library\|portable\)".*/\1/p' \
		"takes-$kernels/job.resolved.json")
	expect 0 heddle bench op mlp.yaml --repeat 1 --json -s job.kernels=$kernels
	[ ! -x "$python" ] || "$python" sums.py <out >sums 2>err || failed "$kernels: sums"
	grep -q "\"set\":\"${taken:-library}\",\"asked\":\"$kernels\"" out ||
		failed "$kernels: not those of a run"
done
expect 0 heddle bench op mlp.yaml --repeat 2 --cold --json
json_ok
grep -q '"cold":true' out || failed "--json does not say that operands were cold"
[ ! -x "$python" ] || "$python" sums.py <out >sums 2>err || failed "cold: sums"
if heddle run gpt.yaml -s job.precision=bf16 --dry-run >out 2>err; then
	expect 0 heddle bench op gpt.yaml --repeat 2 --json -s job.precision=bf16
	json_ok
	[ ! -x "$python" ] || "$python" sums.py <out >sums 2>err || failed "bf16: sums"
	[ ! -x "$python" ] || grep -q '^bf16' sums || failed "no kernels of bf16"
fi
expect 0 heddle bench op mlp.yaml --repeat 1
says 'of the step are its ops'
expect 2 heddle bench op mlp.yaml --repeat 0
expect 11 heddle bench op resnet18.yaml --repeat 1 -s model.bn=global
says 'lockstep'
[ -z "$(ls -d runs 2>/dev/null)" ] || failed "bench op leaves a run directory"
passed "bench op adds up, for every set of kernels"
