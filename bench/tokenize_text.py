"""tokenize_text.py: text of all planes of Unicode from a seed, for tokenize.py.

Words of many scripts, numbers, punctuation, runs of one block, blanks of all kinds."""

import random

BLOCKS = [
	(0x20, 0x7E),
	(0xA0, 0x24F),
	(0x250, 0x36F),
	(0x370, 0x52F),
	(0x530, 0x6FF),
	(0x700, 0x8FF),
	(0x900, 0xDFF),
	(0xE00, 0x10FF),
	(0x1100, 0x13FF),
	(0x1400, 0x1FFF),
	(0x2000, 0x2BFF),
	(0x2C00, 0x2FFF),
	(0x3000, 0x33FF),
	(0x3400, 0x9FFF),
	(0xA000, 0xABFF),
	(0xAC00, 0xD7A3),
	(0xD7B0, 0xD7FF),
	(0xE000, 0xF8FF),
	(0xF900, 0xFFFF),
	(0x10000, 0x107FF),
	(0x10800, 0x11FFF),
	(0x12000, 0x16FFF),
	(0x17000, 0x1AFFF),
	(0x1B000, 0x1D0FF),
	(0x1D100, 0x1DFFF),
	(0x1E000, 0x1ECFF),
	(0x1ED00, 0x1F2FF),
	(0x1F300, 0x1FAFF),
	(0x1FB00, 0x1FBFF),
	(0x20000, 0x323AF),
	(0x323B0, 0x33479),
	(0xE0000, 0xE01EF),
	(0xF0000, 0xFFFFD),
	(0x100000, 0x10FFFD),
	(0, 0x10FFFF),
	(0, 0x3FF),
]
WORDS = (
	"the of and to in a is that it was for on are as with his they at be this have from or one had by "
	"word "
	"but not what all were we when your can said there use an each which she do how their if will up "
	"other about "
	"out many then them these so some her would make like him into time has look two more write go see "
	"number no "
	"way could people my than first water been call oil its now find long down day did get come "
	"made may part "
	"don't can't it's we'll I'm you've he'd THE Hello World I'LL WE'RE naïve café Ångström "
	"straße fiancé "
	"Привет мир как дела это не так 你好 世界 我们 的 是 在 了 "
	"日本語 テスト ありがとう 한국어 안녕하세요 मानक हिन्दी "
	"العربية مرحبا שלום ไทย 🙂 👩‍👩‍👧 🇩🇪 <|endoftext|> <s> "
	"</s> [MASK] [SEP] <mask> ﬁne ① ½ ２０２６ İstanbul "
	"e\u0301 n\u0303 a\u0300\u0316 ＡＢＣ \u1e9b\u0323"
).split(' ')


def make_document(draw):
	out = []
	kind = draw.random()
	lo, hi = draw.choice(BLOCKS)
	for _ in range(draw.randrange(1, 120)):
		x = draw.random()
		if kind < 0.45 or x < 0.3:
			out.append(draw.choice(WORDS))
		elif x < 0.35:
			out.append(str(draw.randrange(10 ** draw.randrange(1, 12))))
		elif x < 0.4:
			out.append(
				draw.choice('.,;:!?-_/\\()[]{}"\'`~@#$%^&*+=<>|')
				* draw.randrange(1, 9)
			)
		elif x < 0.8:
			out.append(
				''.join(
					chr(draw.randrange(lo, hi + 1))
					for _ in range(draw.randrange(1, 12))
				)
			)
		else:
			lo, hi = draw.choice(BLOCKS)
		x = draw.random()
		out.append(
			' '
			if x < 0.75
			else (
				''
				if x < 0.85
				else draw.choice(
					[
						'  ',
						'\n',
						'\r\n',
						'\t',
						'    ',
						'\n\n',
						' \n ',
						'\u00a0',
						'\u3000',
						'\u200b',
						'\u2028',
						'\u180e',
						'\x1c',
						'\x85',
						'\x00\x01',
						'\ufeff',
						'\ufffd',
					]
				)
			)
		)
	text = ''.join(c for c in ''.join(out) if not 0xD800 <= ord(c) < 0xE000)
	return (
		text.replace('\x00', '') if draw.random() < 2 else text
	)  # base/json.h takes no U+0000


def make_text(n, seed):
	draw, out, have = random.Random(seed), [], 0
	while have < n:
		text = make_document(draw) or ' '
		out.append(text)
		have += len(text.encode())
	return out


def every_character():
	"""Each character behind a letter and before one, of planes without any names each 64th."""
	chars = [
		c
		for c in range(1, 0x110000)
		if not 0xD800 <= c < 0xE000
		and (c < 0x40000 or 0xE0000 <= c < 0xF0000 or c % 64 == 0)
	]
	return [
		''.join(f'a{chr(c)}b {chr(c)} ' for c in chars[i : i + 400])
		for i in range(0, len(chars), 400)
	]
