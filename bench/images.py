#!/usr/bin/env python3
"""images.py [--count N] HEDDLE: pixels of `data.kind: images` and of torchvision, bit for bit.

Draws N images (300) of every form that Pillow writes (JPEG: grey, colours, CMYK, samplings, progressive,
restart marks; PNG: grey, colours, alpha, palettes, 1 to 16 bits, interlaced), puts them into folders of
classes, and compares what `heddle data cat` gives with ImageFolder, Resize, CenterCrop and ToTensor, for
models of one plane and three, several extents, data.size and data.fit. Pillow 13 takes rows before
columns for some extents: there it is asked for one axis at a time. --golden FOLDER writes
tests/data/images, which src/data/image_test.c compares with. Exit 77 without the packages.
"""

import argparse
import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.pop(0)  # this folder: its tokenize.py would be taken for Python's
try:
	import numpy as np
	import torchvision
	from PIL import Image
	from torchvision import datasets, transforms
except ImportError:
	print('skip: no packages numpy, pillow, torchvision')
	sys.exit(77)


def picture(rng, draw, mode, width, height):
	"""Waves and noise, so that every coder has something to do."""
	rows, columns = max(1, height // draw.choice([1, 4, 9])), max(1, width // draw.choice([1, 4, 9]))
	small = rng.integers(0, 256, (rows, columns, 4)).astype(np.uint8)
	base = Image.fromarray(small, 'RGBA').resize((width, height), Image.BICUBIC)
	if mode == 'CMYK':
		return Image.fromarray(np.array(base), 'CMYK')
	return base if mode == 'RGBA' else base.convert(mode)


def jpeg(rng, draw, width, height, mode=None, **fixed):
	mode = mode or draw.choice(['RGB', 'RGB', 'L', 'CMYK'])
	how = {'quality': draw.randint(1, 100), 'progressive': draw.random() < 0.5}
	how['optimize'] = draw.random() < 0.5
	if mode != 'L':
		how['subsampling'] = draw.choice([0, 1, 2])
	how['restart_marker_blocks'] = draw.choice([0, 3])
	how.update(fixed)
	out = io.BytesIO()
	picture(rng, draw, mode, width, height).save(out, 'JPEG', **how)
	return out.getvalue()


def png(rng, draw, width, height, mode=None):
	mode = mode or draw.choice(['RGB', 'L', 'RGBA', 'LA', '1', 'P', 'P16', 'P4', 'PA'])
	how = {}
	if mode in ('RGB', 'L', 'RGBA', 'LA'):
		im = picture(rng, draw, mode, width, height)
	elif mode == '1':
		im = picture(rng, draw, 'L', width, height).convert('1')
	else:
		colours, bits = {'P': (256, 8), 'P16': (16, 4), 'P4': (4, 2), 'PA': (30, 8)}[mode]
		im = picture(rng, draw, 'RGB', width, height).quantize(colours)
		how['bits'] = bits
	if mode == 'PA':
		how['transparency'] = draw.randint(0, 20)
	if mode == 'L' and draw.random() < 0.3:
		how['transparency'] = 7
	out = io.BytesIO()
	im.save(out, 'PNG', **how)
	return out.getvalue()


def raw_png(width, height, depth, colour, rows, interlaced=False):
	"""What Pillow does not write: 16 bits, grey of 4 bits, Adam7."""

	def chunk(kind, data):
		return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))

	head = struct.pack('>IIBBBBB', width, height, depth, colour, 0, 0, int(interlaced))
	parts = [(b'IHDR', head), (b'IDAT', zlib.compress(rows)), (b'IEND', b'')]
	return b'\x89PNG\r\n\x1a\n' + b''.join(chunk(*part) for part in parts)


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def adam7(pixel):
	rows = b''
	for top, left, down, across in ADAM7:
		part = pixel[top::down, left::across]
		if part.size:
			rows += b''.join(b'\0' + row.tobytes() for row in part)
	return rows


def special(rng):
	"""Names, bytes, and the pixels that are expected where Pillow has no word in it."""
	deep = rng.integers(0, 65536, (7, 9, 3)).astype('>u2')
	grey = rng.integers(0, 65536, (6, 5)).astype('>u2')
	plain = rng.integers(0, 256, (11, 13, 3)).astype(np.uint8)
	nibbles = rng.integers(0, 256, (5, 3)).astype(np.uint8)
	rows = [b''.join(b'\0' + r.tobytes() for r in a) for a in (deep, grey, nibbles)]
	spread = np.stack([nibbles >> 4, nibbles & 15], 2).reshape(5, 6) * 17
	return [
		('rgb16.png', raw_png(9, 7, 16, 2, rows[0]), (deep >> 8).astype(np.uint8)),
		('grey16.png', raw_png(5, 6, 16, 0, rows[1]), (grey >> 8).astype(np.uint8)),
		('adam7.png', raw_png(13, 11, 8, 2, adam7(plain), True), plain),
		('grey4.png', raw_png(6, 5, 4, 0, rows[2]), spread.astype(np.uint8)),
	]


def shown(data, mode, pixel=None):
	im = Image.open(io.BytesIO(data)) if pixel is None else Image.fromarray(pixel)
	return im.convert(mode)


def resized(im, size):
	"""Columns, then rows, whatever Pillow this is."""
	return im.resize((size[0], im.size[1]), Image.BILINEAR).resize(size, Image.BILINEAR)


def golden(folder):
	draw, rng = random.Random(7), np.random.default_rng(7)
	files = [
		('grey.jpg', jpeg(rng, draw, 19, 23, 'L'), None),
		('s444.jpg', jpeg(rng, draw, 24, 17, 'RGB', subsampling=0, quality=90, progressive=False),
			None),
		('s422.jpg', jpeg(rng, draw, 33, 18, 'RGB', subsampling=1, quality=80, progressive=False),
			None),
		('s420.jpg', jpeg(rng, draw, 35, 21, 'RGB', subsampling=2, quality=75, progressive=False),
			None),
		('progressive.jpg', jpeg(rng, draw, 40, 27, 'RGB', subsampling=2, quality=60,
			progressive=True), None),
		('cmyk.jpg', jpeg(rng, draw, 17, 15, 'CMYK', subsampling=0, quality=85), None),
		('rgb.png', png(rng, draw, 31, 26, 'RGB'), None),
		('rgba.png', png(rng, draw, 9, 14, 'RGBA'), None),
		('la.png', png(rng, draw, 8, 7, 'LA'), None),
		('one.png', png(rng, draw, 21, 10, '1'), None),
		('palette.png', png(rng, draw, 16, 12, 'PA'), None),
		('palette4.png', png(rng, draw, 15, 12, 'P4'), None),
	] + special(rng)
	lines = [
		'# file, width, height; CRC-32 of the pixels in colours, in grey, in colours of 13 x 9;',
		'# as Pillow has them (bench/images.py --golden)',
	]
	for name, data, pixel in files:
		with open(os.path.join(folder, name), 'wb') as f:
			f.write(data)
		colour, grey = shown(data, 'RGB', pixel), shown(data, 'L', pixel)
		crc = [zlib.crc32(np.array(im).tobytes()) for im in (colour, grey, resized(colour, (13, 9)))]
		lines.append('%s %d %d %08x %08x %08x' % (name, *colour.size, *crc))
	with open(os.path.join(folder, 'cases.txt'), 'w') as f:
		f.write('\n'.join(lines) + '\n')
	print('%d files, Pillow %s' % (len(files), Image.__version__))


def write_folder(folder, count):
	draw, rng = random.Random(11), np.random.default_rng(11)
	for i in range(count):
		name = 'class%d/%s%d.' % (i % 3, draw.choice(['', 'deeper/']), i)
		width, height = draw.randint(1, 150), draw.randint(1, 150)
		make, end = (png, 'png') if i % 3 else (jpeg, 'JPEG')
		data = make(rng, draw, width, height)
		path = os.path.join(folder, name + end)
		os.makedirs(os.path.dirname(path), exist_ok=True)
		with open(path, 'wb') as f:
			f.write(data)


def expected(folder, case):
	"""As torchvision; its Resize asked for one axis at a time where Pillow would take rows first."""
	mode = 'RGB' if case['channels'] == 3 else 'L'
	target = (case['width'], case['height'])

	def resize(im):
		short, long = sorted(im.size)
		size = case['size'] or max(target)
		there = target
		if case['fit'] == 'crop':
			there = tuple(size if s == short else int(size * long / short) for s in im.size)
			if short == long:
				there = (size, size)
		return resized(im, there)

	own = transforms.Resize(case['size'] or max(target) if case['fit'] == 'crop' else target[::-1])
	resizes = own if int(Image.__version__.split('.')[0]) < 13 else resize
	steps = transforms.Compose([resizes, transforms.CenterCrop(target[::-1]), transforms.ToTensor()])
	return datasets.ImageFolder(folder, steps, loader=lambda path: Image.open(path).convert(mode))


CASES = [
	{'channels': 3, 'height': 32, 'width': 32, 'size': 0, 'fit': 'crop'},
	{'channels': 3, 'height': 24, 'width': 24, 'size': 31, 'fit': 'crop'},
	{'channels': 1, 'height': 20, 'width': 33, 'size': 0, 'fit': 'crop'},
	{'channels': 3, 'height': 17, 'width': 40, 'size': 0, 'fit': 'stretch'},
	{'channels': 1, 'height': 64, 'width': 64, 'size': 70, 'fit': 'crop'},
]


def compare(heddle, folder, case):
	job = os.path.join(folder, 'job.yaml')
	with open(job, 'w') as f:
		extents = ', '.join('%s: %d' % (k, case[k]) for k in ('channels', 'height', 'width'))
		args = '{classes: 3, base: 4, norm: group, groups: 2, %s}' % extents
		f.write('model: {use: builtin:resnet18, args: %s}\n' % args)
		f.write('data: {kind: images, path: %s/set, split: {train: 1, valid: 0}' % folder)
		f.write(', fit: %s' % case['fit'])
		f.write('%s}\n' % (', size: %d' % case['size'] if case['size'] else ''))
		f.write('batch: {global: 8}\njob: {steps: 1}\n')
	want = expected(folder + '/set', case)
	command = [heddle, 'data', 'cat', job, '--count', str(len(want))]
	ran = subprocess.run(command, capture_output=True, text=True)
	if ran.returncode:
		return [ran.stderr.strip()]
	rows = [json.loads(line) for line in ran.stdout.splitlines()]
	wrong = [] if len(rows) == len(want) else ['%d rows, %d images' % (len(rows), len(want))]
	paths = {path: i for i, (path, _) in enumerate(want.samples)}
	# the files of a folder before those of its folders
	order = sorted(paths, key=lambda p: (want.samples[paths[p]][1], p.count('/'), p))
	for row, path in zip(rows, order):
		x, label = want[paths[path]]
		if row['y'] != label or np.array(row['x'], np.float32).tobytes() != x.numpy().tobytes():
			wrong.append('%s: label %d, %d' % (path, row['y'], label))
	return wrong


def main():
	parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
	parser.add_argument('--golden')
	parser.add_argument('--count', type=int, default=300)
	parser.add_argument('heddle', nargs='?')
	args = parser.parse_args()
	if args.golden:
		golden(args.golden)
		return 0
	failed = 0
	with tempfile.TemporaryDirectory() as folder:
		write_folder(folder + '/set', args.count)
		for case in CASES:
			wrong = compare(args.heddle, folder, case)
			failed += len(wrong)
			print(case, ', '.join(wrong[:3]) if wrong else 'equal, %d images' % args.count)
	print('Pillow %s, torchvision %s' % (Image.__version__, torchvision.__version__))
	return failed > 0


if __name__ == '__main__':
	sys.exit(main())
