#!/usr/bin/env python3
"""augment.py -o FILE: what Pillow and torchvision make of small images, for src/data/augment_test.c.

Writes tests/data/augment.txt: rotations by Pillow, colours by torchvision.transforms.v2 with given factors
and order, mixup and cutmix by its MixUp and CutMix with given draws. Pixel i of an image of seed s is
(i * 37 + s * 11) mod 256, over 255 where numbers are real; row r of a batch is the image of seed r. Exit 77
without the packages.
"""

import argparse
import sys

sys.path.pop(0)  # this folder: its tokenize.py would be taken for Python's

try:
	import numpy as np
	import torch
	from PIL import Image
	from torchvision.transforms import v2
	from torchvision.transforms.v2 import functional
except ImportError:
	print('skip: no packages numpy, pillow, torch, torchvision')
	sys.exit(77)


def image(channels, height, width, seed):
	n = channels * height * width
	return ((np.arange(n) * 37 + seed * 11) % 256).astype(np.uint8).reshape(channels, height, width)


def line(*words):
	return ' '.join(str(w) for w in words)


def numbers(t):
	return ' '.join(f'{v:.9g}' for v in t.flatten().tolist())


def rotations():
	for seed, (height, width, degrees) in enumerate(
		[(9, 11, 17.5), (9, 11, -44.25), (8, 8, 90.5), (7, 12, 133.0), (12, 5, -178.75),
		 (10, 10, 45.0), (16, 16, -3.125)]):
		plane = image(1, height, width, seed)[0]
		for bilinear in (0, 1):
			how = Image.BILINEAR if bilinear else Image.NEAREST
			turned = Image.fromarray(plane).rotate(degrees, how, fillcolor=9)
			yield line('rotate', seed, height, width, degrees, bilinear, 9) + '\n' + \
				line(*np.array(turned).flatten())


def colours():
	acts = [functional.adjust_brightness, functional.adjust_contrast, functional.adjust_saturation,
		functional.adjust_hue]
	for seed, (channels, by, order) in enumerate([
		(3, (1.4, 1, 1, 0), (0, 1, 2, 3)), (3, (1, 0.35, 1, 0), (0, 1, 2, 3)),
		(3, (1, 1, 1.9, 0), (0, 1, 2, 3)), (3, (1, 1, 1, 0.23), (0, 1, 2, 3)),
		(3, (1, 1, 1, -0.5), (0, 1, 2, 3)), (3, (0.7, 1.3, 0.2, 0.1), (3, 1, 0, 2)),
		(3, (1.2, 0.8, 1.5, -0.07), (2, 0, 3, 1)), (1, (1.25, 0.6, 1, 0), (1, 0, 2, 3))]):
		x = torch.from_numpy(image(channels, 6, 7, seed)).float() / 255
		for k in order:
			if by[k] != (0 if k == 3 else 1):
				x = acts[k](x, by[k])
		yield line('jitter', seed, channels, 6, 7, *by, *order) + '\n' + numbers(x)


class Given(torch.distributions.Distribution):
	def __init__(self, share):
		self.share = share

	def sample(self, shape=()):
		return torch.tensor(self.share, dtype=torch.float64).reshape(())


def mixes():
	classes, labels = 4, torch.tensor([2, 0, 3, 3, 1])
	for kind, share in [('mixup', 0.3), ('mixup', 0.9375), ('cutmix', 0.6), ('cutmix', 0.1)]:
		images = [torch.from_numpy(image(2, 6, 7, r)).float() / 255 for r in range(len(labels))]
		x = torch.stack(images)
		act = (v2.MixUp if kind == 'mixup' else v2.CutMix)(alpha=1.0, num_classes=classes)
		act._dist = Given(share)
		torch.manual_seed(5)
		params = act.make_params([x])
		act.make_params = lambda _: params
		mixed, y = act(x, labels)
		box = params.get('box', (0, 0, 0, 0))
		share = params.get('lam', params.get('lam_adjusted'))
		yield line(kind, share, *box) + '\n' + numbers(mixed) + '\n' + numbers(y)


def main():
	parser = argparse.ArgumentParser(description=__doc__)
	parser.add_argument('-o', required=True)
	with open(parser.parse_args().o, 'w') as out:
		out.write('# rotate: seed height width degrees bilinear fill; jitter: seed channels height\n'
			'# width, 4 factors, 4 places; mixup, cutmix: share, left top right bottom, images,\n'
			'# labels. Made by bench/augment.py\n')
		for part in (rotations, colours, mixes):
			for text in part():
				out.write(text + '\n')


main()
