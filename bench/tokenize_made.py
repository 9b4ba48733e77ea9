"""tokenize_made.py: the tokenizers that tokenize.py compares, each as a name and a function that makes it.

rows(): of the forms of published ones, with their patterns, trained here, and one for each option.
small_tokenizers(): those of src/token/tokenizer_test.c. Without the package the program ends with 77."""

import json
import random
import sys

try:
	import tokenizers
	from tokenizers import (
		AddedToken,
		Regex,
		Tokenizer,
		decoders as D,
		models as M,
		normalizers as N,
		pre_tokenizers as P,
		processors as O,
		trainers as T,
	)
except ImportError:
	print('skip: no package tokenizers (pip install tokenizers)')
	sys.exit(77)

from tokenize_text import WORDS

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
	r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
	r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = (
	r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
	r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
	r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|"
	r"'ll|'d)?|"
	r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|"
	r"'ll|'d)?|"
	r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = (
	r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| "
	r"?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def trained(model, trainer, sample, **parts):
	t = Tokenizer(model)
	for k, v in parts.items():
		if v is not None:
			setattr(t, k, v)
	t.train_from_iterator(sample, trainer)
	return t


def bpe(size=3000, special=(), alphabet=True, **more):
	kw = dict(
		vocab_size=size, special_tokens=list(special), show_progress=False
	)
	if alphabet:
		kw['initial_alphabet'] = P.ByteLevel.alphabet()
	kw.update(more)
	return T.BpeTrainer(**kw)


def split(pattern, behavior='isolated', invert=False):
	return P.Sequence(
		[
			P.Split(Regex(pattern), behavior, invert),
			P.ByteLevel(
				add_prefix_space=False, trim_offsets=True, use_regex=False
			),
		]
	)


def changed(t, **model):
	j = json.loads(t.to_str())
	j['model'].update(model)
	return Tokenizer.from_str(json.dumps(j))


def charsmap(pairs):
	"""A precompiled map (charsmap.h): a double array of the keys."""
	blob, offset = b'', {}
	for k, v in sorted(pairs.items(), key=lambda kv: kv[0].encode()):
		offset[k.encode()] = len(blob)
		blob += v.encode() + b'\0'
	tree = {}
	for k in offset:
		node = tree
		for b in k:
			node = node.setdefault(b, {})
		node[-1] = offset[k]
	units, used = {0: 0}, {0}

	def place(node, at):
		kids = [b for b in node if b >= 0]
		base = 1
		while True:
			spots = [base ^ b for b in kids] + ([base] if -1 in node else [])
			if (
				base ^ at
				and not used.intersection(spots)
				and (base ^ at) < 1 << 21
			):
				break
			base += 1
		rel = base ^ at
		units[at] = (
			units.get(at, 0) | rel << 10 | (1 << 8 if -1 in node else 0)
		)
		for s in spots:
			used.add(s)
		if -1 in node:
			units[base] = 1 << 31 | node[-1]
		for b in kids:
			units[base ^ b] = b
		for b in kids:
			place(node[b], base ^ b)

	place(tree, 0)
	n = (max(units) | 255) + 1
	trie = b''.join(
		units.get(i, 0x80000000 if i else 0).to_bytes(4, 'little')
		for i in range(n)
	)
	return len(trie).to_bytes(4, 'little') + trie + blob


CHARS = {
	'\t': ' ',
	'\n': ' ',
	'\r': ' ',
	'\u3000': ' ',
	'Ａ': 'A',
	'Ｂ': 'B',
	'ﬁ': 'fi',
	'①': '1',
	'½': '1⁄2',
	'e\u0301': 'é',
	'n\u0303': 'ñ',
	'\u200b': ' ',
	'\ufeff': '',
	'İ': 'i\u0307',
	'a': 'a',
	'２': '2',
	'０': '0',
	'６': '6',
	'한': '한',
	'\u0300': '\u0300',
	'ß': 'ss',
}


def rows(sample, small):
	"""name: a function that makes it"""
	byte = dict(decoder=D.ByteLevel())
	draw = random.Random(7)
	words = [
		''.join(
			draw.choice(WORDS) + draw.choice(['', ' ', ' ', ', ', '!!', ' 1'])
			for _ in range(40)
		)
		for _ in range(600)
	]
	gpt2 = lambda: trained(
		M.BPE(),
		bpe(8000, ['<|endoftext|>']),
		sample,
		pre_tokenizer=P.ByteLevel(add_prefix_space=False),
		post_processor=O.ByteLevel(trim_offsets=False),
		**byte,
	)
	yield 'gpt2', gpt2
	yield 'gpt2, prefix space', lambda: trained(
		M.BPE(),
		bpe(),
		small,
		pre_tokenizer=P.ByteLevel(add_prefix_space=True),
		**byte,
	)
	yield 'llama3', lambda: changed(
		trained(
			M.BPE(),
			bpe(8000, ['<|begin_of_text|>', '<|end_of_text|>']),
			sample,
			pre_tokenizer=split(LLAMA3),
			post_processor=O.Sequence(
				[
					O.ByteLevel(trim_offsets=True),
					O.TemplateProcessing(
						single='<|begin_of_text|> $A',
						pair='<|begin_of_text|> $A $B:1',
						special_tokens=[('<|begin_of_text|>', 0)],
					),
				]
			),
			**byte,
		),
		ignore_merges=True,
	)
	yield 'qwen2', lambda: trained(
		M.BPE(),
		bpe(8000, ['<|endoftext|>', '<|im_start|>']),
		sample,
		normalizer=N.NFC(),
		pre_tokenizer=split(QWEN2),
		**byte,
	)
	yield 'gpt4o', lambda: trained(
		M.BPE(),
		bpe(8000, ['<|endoftext|>']),
		sample,
		pre_tokenizer=split(GPT4O),
		**byte,
	)
	yield 'deepseek', lambda: trained(
		M.BPE(),
		bpe(6000, ['<s>']),
		sample,
		normalizer=N.Sequence([]),
		pre_tokenizer=P.Sequence(
			[
				P.Split(Regex(r'\p{N}{1,3}'), 'isolated'),
				P.Split(Regex('[一-龥぀-ゟ゠-ヿ]+'), 'isolated'),
				P.Split(Regex(DEEPSEEK), 'isolated'),
				P.ByteLevel(False, True, False),
			]
		),
		**byte,
	)
	fall = [f'<0x{b:02X}>' for b in range(256)]
	yield 'llama2', lambda: changed(
		trained(
			M.BPE(unk_token='<unk>', fuse_unk=True, byte_fallback=True),
			bpe(
				4000,
				['<unk>', '<s>', '</s>'] + fall,
				False,
				limit_alphabet=300,
			),
			small,
			normalizer=N.Sequence([N.Prepend('▁'), N.Replace(' ', '▁')]),
			pre_tokenizer=P.Metaspace(),
			decoder=D.Sequence(
				[
					D.Replace('▁', ' '),
					D.ByteFallback(),
					D.Fuse(),
					D.Strip(' ', 1, 0),
				]
			),
		),
		dropout=None,
	)
	yield 'llama2, no pre-tokenizer', lambda: strip_pre(
		trained(
			M.BPE(unk_token='<unk>', fuse_unk=True, byte_fallback=True),
			bpe(
				4000,
				['<unk>', '<s>', '</s>'] + fall,
				False,
				limit_alphabet=300,
			),
			small,
			normalizer=N.Sequence([N.Prepend('▁'), N.Replace(' ', '▁')]),
			pre_tokenizer=P.Metaspace(),
		)
	)
	yield 'gemma', lambda: trained(
		M.BPE(unk_token='<unk>', fuse_unk=True, byte_fallback=True),
		bpe(
			4000,
			['<pad>', '<eos>', '<bos>', '<unk>'] + fall,
			False,
			limit_alphabet=400,
		),
		small,
		normalizer=N.Replace(' ', '▁'),
		pre_tokenizer=P.Split(' ', 'merged_with_previous'),
	)
	for first in ('first', 'always', 'never'):
		for cut in (True, False):
			name = f'metaspace {first} {"split" if cut else "whole"}'
			yield name, lambda first=first, cut=cut: (
				with_pre)(
				trained(
					M.BPE(unk_token='<unk>', fuse_unk=True),
					bpe(2000, ['<unk>', '<s>'], False, limit_alphabet=500),
					small,
					pre_tokenizer=P.Metaspace(),
				),
				P.Metaspace(prepend_scheme=first, split=cut),
			)
	yield 'bpe unk, not fused', lambda: trained(
		M.BPE(unk_token='[U]'),
		bpe(1000, ['[U]'], False, limit_alphabet=60),
		small,
		pre_tokenizer=P.Whitespace(),
	)
	yield 'bpe unk, fused', lambda: trained(
		M.BPE(unk_token='[U]', fuse_unk=True),
		bpe(1000, ['[U]'], False, limit_alphabet=60),
		small,
		pre_tokenizer=P.WhitespaceSplit(),
	)
	yield 'bpe without unk', lambda: trained(
		M.BPE(),
		bpe(1000, [], False, limit_alphabet=60),
		small,
		pre_tokenizer=P.WhitespaceSplit(),
	)
	yield 'bpe suffix', lambda: trained(
		M.BPE(unk_token='<unk>', end_of_word_suffix='</w>'),
		bpe(
			3000,
			['<unk>'],
			False,
			limit_alphabet=400,
			end_of_word_suffix='</w>',
		),
		small,
		normalizer=N.Sequence([N.NFC(), N.Lowercase()]),
		pre_tokenizer=P.Sequence([P.WhitespaceSplit(), P.Punctuation()]),
		decoder=D.BPEDecoder('</w>'),
	)
	yield 'bpe prefix', lambda: trained(
		M.BPE(unk_token='<unk>', continuing_subword_prefix='##'),
		bpe(
			3000,
			['<unk>'],
			False,
			limit_alphabet=400,
			continuing_subword_prefix='##',
		),
		small,
		pre_tokenizer=P.BertPreTokenizer(),
	)
	yield 'bpe fallback, some bytes', lambda: trained(
		M.BPE(unk_token='<unk>', byte_fallback=True),
		bpe(
			900,
			['<unk>']
			+ [f'<0x{b:02X}>' for b in range(0x80, 0x100, 3)]
			+ [f'<0x{b:02X}>' for b in (0xE2, 0x80, 0x83, 0xA0)],
			False,
			limit_alphabet=80,
		),
		small,
		pre_tokenizer=P.WhitespaceSplit(),
	)
	wp = lambda **k: T.WordPieceTrainer(
		vocab_size=6000,
		special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'],
		show_progress=False,
		limit_alphabet=1500,
		**k,
	)
	cls = O.TemplateProcessing(
		single='[CLS] $A [SEP]',
		pair='[CLS] $A [SEP] $B:1 [SEP]:1',
		special_tokens=[('[CLS]', 2), ('[SEP]', 3)],
	)
	yield 'bert uncased', lambda: trained(
		M.WordPiece(unk_token='[UNK]'),
		wp(),
		sample,
		normalizer=N.BertNormalizer(),
		pre_tokenizer=P.BertPreTokenizer(),
		post_processor=cls,
		decoder=D.WordPiece(),
	)
	yield 'bert cased', lambda: trained(
		M.WordPiece(unk_token='[UNK]'),
		wp(),
		sample,
		normalizer=N.BertNormalizer(lowercase=False),
		pre_tokenizer=P.BertPreTokenizer(),
		post_processor=O.BertProcessing(('[SEP]', 3), ('[CLS]', 2)),
	)
	for clean in (True, False):
		for chinese in (True, False):
			for accents in (None, True, False):
				name = f'bert {clean} {chinese} {accents}'
				yield name, lambda clean=clean, chinese=chinese, accents=accents: (
					trained)(
					M.WordPiece(
						unk_token='[UNK]', max_input_chars_per_word=20
					),
					wp(),
					small,
					normalizer=N.BertNormalizer(
						clean, chinese, accents, clean != chinese
					),
					pre_tokenizer=P.BertPreTokenizer(),
				)
	yield 'roberta', lambda: trained(
		M.BPE(),
		bpe(4000, ['<s>', '<pad>', '</s>', '<unk>']),
		small,
		pre_tokenizer=P.ByteLevel(add_prefix_space=False),
		post_processor=O.RobertaProcessing(('</s>', 2), ('<s>', 0)),
		**byte,
	)
	uni = lambda n=1200, **k: T.UnigramTrainer(
		vocab_size=n,
		special_tokens=['<pad>', '</s>', '<unk>'],
		unk_token='<unk>',
		show_progress=False,
		**k,
	)
	t5 = O.TemplateProcessing(
		single='$A </s>', pair='$A </s> $B </s>', special_tokens=[('</s>', 1)]
	)
	yield 't5', lambda: trained(
		M.Unigram(),
		uni(),
		words,
		normalizer=N.Precompiled(charsmap(CHARS)),
		pre_tokenizer=P.Metaspace(prepend_scheme='always'),
		post_processor=t5,
		decoder=D.Metaspace(),
	)
	yield 'xlm-r', lambda: trained(
		M.Unigram(),
		uni(),
		words,
		normalizer=N.Sequence(
			[N.Precompiled(charsmap(CHARS)), N.Replace(Regex(' {2,}'), ' ')]
		),
		pre_tokenizer=P.Sequence([P.WhitespaceSplit(), P.Metaspace()]),
		post_processor=t5,
	)
	yield 'unigram, nmt', lambda: trained(
		M.Unigram(),
		uni(),
		words,
		normalizer=N.Sequence(
			[
				N.Nmt(),
				N.NFKC(),
				N.Replace(Regex(' {2,}'), ' '),
				N.Strip(True, True),
			]
		),
		pre_tokenizer=P.Metaspace(),
	)
	yield 'unigram, fallback', lambda: changed(
		trained(
			M.Unigram(),
			T.UnigramTrainer(
				vocab_size=1400,
				special_tokens=['<unk>'] + fall,
				unk_token='<unk>',
				show_progress=False,
			),
			words,
			pre_tokenizer=P.Metaspace(),
		),
		byte_fallback=True,
	)
	yield 'unigram, few', lambda: trained(
		M.Unigram(),
		uni(300),
		[WORDS[i % 90] + ' ' + WORDS[i % 77] for i in range(9000)],
		pre_tokenizer=None,
	)
	yield 'wordlevel', lambda: trained(
		M.WordLevel(unk_token='[UNK]'),
		T.WordLevelTrainer(
			vocab_size=9000, special_tokens=['[UNK]'], show_progress=False
		),
		small,
		pre_tokenizer=P.Whitespace(),
	)
	forms = [
		('nfc', N.NFC()),
		('nfd', N.NFD()),
		('nfkc', N.NFKC()),
		('nfkd', N.NFKD()),
		('lower', N.Lowercase()),
		('accents', N.Sequence([N.NFD(), N.StripAccents()])),
		('strip', N.Strip()),
		('strip left', N.Strip(True, False)),
		('strip right', N.Strip(False, True)),
		('nmt', N.Nmt()),
		('bytes', N.ByteLevel()),
		('prepend', N.Prepend('<s>x')),
		('replace', N.Replace(Regex(r'[aeiou]+\s?'), '*')),
		('replace string', N.Replace('the', '')),
		('replace empty', N.Replace(Regex(r'x*'), '-')),
		(
			'many',
			N.Sequence(
				[
					N.NFKD(),
					N.Lowercase(),
					N.StripAccents(),
					N.NFC(),
					N.Replace(Regex(r'\d+'), '0'),
				]
			),
		),
	]
	for name, norm in forms:
		yield 'normalizer ' + name, lambda norm=norm: with_norm(
			base_bytes(small), norm
		)
	pres = [
		('whitespace', P.Whitespace()),
		('whitespace split', P.WhitespaceSplit()),
		('bert', P.BertPreTokenizer()),
		('digits', P.Digits(False)),
		('single digits', P.Digits(True)),
		('delimiter', P.CharDelimiterSplit('e')),
		('fixed', P.FixedLength(3)),
		('bytes', P.ByteLevel(True)),
		('bytes whole', P.ByteLevel(True, use_regex=False)),
		('bytes twice', P.Sequence([P.ByteLevel(False), P.Digits(True)])),
	]
	pres += [('punctuation ' + b, P.Punctuation(b)) for b in BEHAVIORS]
	pres += [
		(f'split {b} {i}', P.Split(Regex(r'\w+'), b, i))
		for b in BEHAVIORS
		for i in (False, True)
	]
	pres += [(f'split string {b}', P.Split('e', b)) for b in BEHAVIORS]
	pres += [
		(f'pattern {r}', P.Split(Regex(r), 'isolated')) for r in PATTERNS
	]
	pres += [
		(
			'metaspace first after split',
			P.Sequence(
				[
					P.Split(Regex(r'\s'), 'merged_with_next'),
					P.Metaspace(prepend_scheme='first', split=False),
				]
			),
		),
		(
			'metaspace after digits',
			P.Sequence([P.Digits(), P.Metaspace(prepend_scheme='first')]),
		),
	]
	for name, pre in pres:
		yield 'pre-tokenizer ' + name, lambda pre=pre: with_pre(
			base_bytes(small), pre
		)
	for name, norm in (
		('nfd', N.NFD()),
		('strip', N.Strip()),
		('lower', N.Lowercase()),
		('replace', N.Replace(Regex('^.'), 'xy')),
		('prepend', N.Prepend('▁')),
	):
		yield 'metaspace first after ' + name, lambda norm=norm: with_norm(
			with_pre(
				base_bytes(small),
				P.Sequence(
					[
						P.Split(Regex(r'(?:e|\p{M})'), 'isolated'),
						P.Metaspace(prepend_scheme='first'),
					]
				),
			),
			norm,
		)
	yield 'added tokens', lambda: added(gpt2())
	yield 'added tokens, normalized', lambda: added(
		with_norm(gpt2(), N.Sequence([N.NFKC(), N.Lowercase()]))
	)
	yield 'added tokens, prepended', lambda: added(
		with_norm(gpt2(), N.Sequence([N.Prepend('▁'), N.Strip()]))
	)


BEHAVIORS = [
	'removed',
	'isolated',
	'merged_with_previous',
	'merged_with_next',
	'contiguous',
]
PATTERNS = [
	r'\s+',
	r'\S+',
	r'\w+|[^\w\s]+',
	r'\d',
	r'\D',
	r'\W+',
	r'\p{L}+',
	r'\P{L}',
	r'\p{^N}+',
	r'\p{Lu}\p{Ll}*',
	r'[\p{M}]+',
	r'[^\p{P}\p{S}]+',
	r'\p{Han}+',
	r'[\w-]+',
	r'[\s\S]{2}',
	r'(?i)the|ſ|k',
	r'(?i:[a-f]+)',
	r'^.',
	r'.$',
	r'.',
	r'a?',
	r'(a|e|i)+',
	r'(?<=e)\w',
	r'(?<!e)\s',
	r'\h+',
	r'\v',
	r'[\x41-\x{5a}]',
	r'\u00e9',
	r'x{,2}y',
	r'o{2}',
	r'\{',
	r'e++',
	r'(?>the|th)e',
	r'\A.',
	r'.\z',
	r'[^\S\n]+',
	r'\.|\-',
	r'[一-龥぀-ゟ゠-ヿ]+',
	r'\n|\r|\t|\f|\a|\e',
]


def strip_pre(t):
	j = json.loads(t.to_str())
	j['pre_tokenizer'] = None
	return Tokenizer.from_str(json.dumps(j))


def with_pre(t, pre):
	t.pre_tokenizer = pre
	return t


def with_norm(t, norm):
	t.normalizer = norm
	return t


def base_bytes(sample, kept={}):
	"""Tokens for single characters and some words, unknown ones as bytes: nothing is lost."""
	if not kept:
		fall = [f'<0x{b:02X}>' for b in range(256)]
		t = trained(
			M.BPE(unk_token='<unk>', byte_fallback=True),
			T.BpeTrainer(
				vocab_size=3000,
				special_tokens=['<unk>'] + fall,
				show_progress=False,
				limit_alphabet=600,
			),
			sample,
			pre_tokenizer=P.WhitespaceSplit(),
		)
		kept['json'] = t.to_str()
	return Tokenizer.from_str(kept['json'])


def added(t):
	t.add_special_tokens(
		[
			AddedToken('<mask>', lstrip=True, normalized=False),
			AddedToken('[MASK]', rstrip=True, normalized=False),
			AddedToken('[SEP]', lstrip=True, rstrip=True),
		]
	)
	t.add_tokens(
		[
			AddedToken('the', single_word=True),
			AddedToken('water', single_word=True, normalized=False),
			AddedToken('th'),
			AddedToken('hello wor', normalized=False),
			AddedToken('Å', normalized=True),
			AddedToken('ing', rstrip=True),
			AddedToken('  ', normalized=False),
			AddedToken('day', lstrip=True, single_word=True),
		]
	)
	return t


def small_tokenizers():
	draw = random.Random(3)
	text = [' '.join(draw.choice(WORDS[:90]) for _ in range(30)) for _ in range(60)]
	fall = [f'<0x{b:02X}>' for b in range(256)]
	some = dict(show_progress=False, limit_alphabet=40)
	byte = lambda: trained(M.BPE(), bpe(400, ['<|endoftext|>']), text, decoder=D.ByteLevel(),
		pre_tokenizer=(
		P.ByteLevel(add_prefix_space=False)))
	yield 'gpt2', byte()
	yield 'llama3', with_norm(with_pre(byte(), split(LLAMA3)), N.NFC())
	yield 'gpt4o', with_norm(with_pre(byte(), split(GPT4O)), N.NFKD())
	yield 'added', added(with_norm(byte(), N.Lowercase()))
	wp = T.WordPieceTrainer(vocab_size=200, special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]'], **some)
	yield 'bert', trained(M.WordPiece(unk_token='[UNK]'), wp, text, normalizer=N.BertNormalizer(),
		pre_tokenizer=P.BertPreTokenizer(), decoder=D.WordPiece(), post_processor=O.BertProcessing(
		('[SEP]', 3), ('[CLS]', 2)))
	uni = T.UnigramTrainer(vocab_size=200, special_tokens=['</s>', '<unk>'], unk_token='<unk>',
		show_progress=False)
	yield 't5', trained(M.Unigram(), uni, text, normalizer=N.Precompiled(charsmap(CHARS)),
		decoder=D.Metaspace(),
		pre_tokenizer=P.Metaspace(), post_processor=O.TemplateProcessing(single='$A </s>',
		pair='$A </s> $B </s>',
		special_tokens=[('</s>', 0)]))
	yield 'llama2', trained(M.BPE(unk_token='<unk>', fuse_unk=True, byte_fallback=True), T.BpeTrainer(
		vocab_size=420, special_tokens=['<unk>'] + fall, **some), text, pre_tokenizer=P.Metaspace(
		prepend_scheme='first', split=False), decoder=D.Sequence([D.Replace('▁', ' '),
		D.ByteFallback(), D.Fuse(),
		D.Strip(' ', 1, 0)]))
	yield 'words', trained(M.WordLevel(unk_token='[UNK]'), T.WordLevelTrainer(vocab_size=60,
		special_tokens=[
		'[UNK]'], show_progress=False), text, pre_tokenizer=P.Whitespace(),
		normalizer=N.Sequence([N.NFD(),
		N.StripAccents(), N.Nmt(), N.Strip()]))
