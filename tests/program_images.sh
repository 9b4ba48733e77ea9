#!/bin/bash
# Folders of images: the bits of one device on any number of them, on workers that are killed, and from a tar.
. "$(dirname "$0")/program.sh"
mkdir -p set/train/{grey,colour} set/val/{grey,colour} tar
from=$SOURCE_DIR/tests/data/images
for i in 1 2 3; do
	for name in grey.jpg grey4.png grey16.png one.png; do cp "$from/$name" "set/train/grey/$i$name"; done
	for name in s420.jpg rgb.png adam7.png cmyk.jpg; do cp "$from/$name" "set/train/colour/$i$name"; done
done
cp "$from"/la.png set/val/grey/
cp "$from"/{s444.jpg,palette.png} set/val/colour/
cat >images.yaml <<'END'
job: {name: images, seed: 5, steps: 6}
model: {use: "builtin:lenet", args: {channels: 3, height: 16, width: 16, classes: 2}}
data: {kind: images, path: set, augment: [resized_crop, flip, {normalize: {mean: [0.5], std: [0.25]}}]}
batch: {global: 20, virtual_nodes: 10}
checkpoint: {every: 2 steps}
END

train run images.yaml --out one --devices 1
one=$digest
for n in 2 3 5; do
	train run images.yaml --out "on$n" --devices $n
	same "$digest" "$one" "$n devices"
done
train run images.yaml --out plain --devices 2 -s data.augment='[flip]'
[ "$digest" != "$one" ] || failed "a resized part changes nothing"
passed "images on 1, 2, 3 and 5 devices"

# samples that meet others of the step: rows cross virtual nodes, devices and workers
cat >mixed.yaml <<'END'
job: {name: mixed, seed: 5, steps: 6}
model:
  {use: "builtin:lenet", loss: soft-cross-entropy, args: {channels: 3, height: 16, width: 16, classes: 2}}
loss: {smoothing: 0.1}
data:
  {kind: images, path: set, augment: [{color_jitter: {brightness: 0.4, hue: 0.1}}, {rotate: 20}, erasing,
    {mixup: 0.4}, cutmix]}
batch: {global: 20, virtual_nodes: 10}
checkpoint: {every: 2 steps}
END
train run mixed.yaml --out mixed1 --devices 1
mixed=$digest
for n in 2 3 5; do
	train run mixed.yaml --out "mixed$n" --devices $n
	same "$digest" "$mixed" "mixed, $n devices"
done
if has_failpoints; then
	HD_FAIL=step.begin:kill@4 "$HEDDLE_BIN" run mixed.yaml --out half --devices 2 -q >/dev/null 2>&1
	train resume half --devices 3
	same "$digest" "$mixed" "mixed, killed and resumed"
fi
train run mixed.yaml --out unmixed --devices 2 \
	-s 'data.augment=[{color_jitter: {brightness: 0.4, hue: 0.1}}, {rotate: 20}, erasing]'
[ "$digest" != "$mixed" ] || failed "mixing changes nothing"
expect 0 heddle data cat mixed.yaml --count 1
says 'samples as they are before mixup and cutmix'
expect 0 heddle data cat mixed.yaml --count 1 --split valid
! grep -q mixup err || failed "samples that are never mixed have a note on it"
expect 2 heddle run mixed.yaml --out bad -q -s model.loss=cross-entropy -s loss.smoothing=0
says 'mixup and cutmix mix labels, too'
expect 2 heddle run mixed.yaml --out bad -q -s 'data.augment=[cutmix, flip]'
says 'flip: mixup and cutmix come last'
passed "mixed samples on 1, 2, 3 and 5 devices, and resumed"

# the same samples in the same order, as a shard
n=0
for class in colour grey; do
	for file in set/train/$class/*; do
		cp "$file" "tar/$(printf %03d $n).${file##*.}"
		case $class in colour) echo 0 ;; *) echo 1 ;; esac >"tar/$(printf %03d $n).cls"
		n=$((n + 1))
	done
done
tar -C tar --sort=name -cf set.tar .
train run images.yaml --out tarred --devices 2 -s data.kind=webdataset -s data.path=set.tar \
	-s 'data.split={train: 1, valid: 0}'
same "$digest" "$one" "images in a tar file"
passed "images in a tar file"

"$HEDDLE_BIN" run images.yaml --out three --workers 3 --devices 1 -q -s workers.pace=300ms >log 2>&1 &
run=$!
"$HEDDLE_BIN" run mixed.yaml --out meet --workers 3 --devices 1 -q -s workers.pace=300ms >log2 2>&1 &
run2=$!
for name in three meet; do
	reach $name 2
	kill -9 "$(heddle status $name --json | grep -o '"pid":[0-9]*' | tail -n 1 | cut -d: -f2)" 2>/dev/null
done
wait $run || failed "3 workers, one killed: $(tail -n 3 log)"
wait $run2 || failed "3 workers, one killed, mixed: $(tail -n 3 log2)"
expect 0 heddle ckpt digest three
says "$one"
expect 0 heddle ckpt digest meet
says "$mixed"
passed "images on three workers, one of which is killed"

# what changes under a run ends it before it is trained on
cp set/train/grey/1one.png kept.png
"$HEDDLE_BIN" run images.yaml --out changed --devices 1 -q -s job.steps=1000000 >log 2>&1 &
run=$!
reach changed 1
cp "$from/la.png" set/train/grey/1one.png
wait $run
same $? 5 "exit of a run whose image changed: $(tail -n 1 log)"
grep -q 'set/train/grey/1one.png is not what it was' log || failed "$(cat log)"
cp kept.png set/train/grey/1one.png
expect 0 heddle data show images.yaml
passed "an image that changes ends the run"

head -c 90 "$from/rgb.png" >set/train/grey/bad.png
expect 3 heddle run images.yaml --out bad -q
says 'bad.png'
echo RIFF >set/train/grey/bad.png
expect 3 heddle data show images.yaml
says 'begins neither as JPEG nor as PNG'
rm set/train/grey/bad.png
mkdir set/train/Grey
expect 3 heddle data show images.yaml
says 'differ by case alone'
rmdir set/train/Grey
mkdir set/train/none
expect 3 heddle data show images.yaml
says 'holds no image'
passed "bad folders are refused"
