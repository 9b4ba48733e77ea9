#!/usr/bin/env python3
"""token_tables.py >src/token/unicode_tables.c: what the package `tokenizers` takes characters for.

The package asks four tables of four versions of Unicode. Each set below is probed from the package itself, a
character at a time, and written as ranges, or as what it has beyond PCRE2 and utf8proc of Debian 12, which
src/token asks for the rest. Needs the package, libpcre2-8 and libutf8proc (/usr/bin/python3 -m venv, pip
install tokenizers); a minute.
"""
import ctypes
import sys
import tokenizers
from tokenizers import Regex, normalizers as N, pre_tokenizers as P

CHARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(chars):
	out = []
	for c in sorted(chars):
		if out and out[-1][1] + 1 == c:
			out[-1][1] = c
		else:
			out.append([c, c])
	return out


def onig(pattern):
	split = P.Split(Regex(pattern), 'removed')
	return {c for c in CHARS if not split.pre_tokenize_str(chr(c))}


def pcre(pattern):
	lib = ctypes.CDLL('libpcre2-8.so.0')
	p = ctypes.c_void_p
	lib.pcre2_compile_8.restype = p
	lib.pcre2_match_data_create_8.restype = p
	lib.pcre2_match_data_create_8.argtypes = [ctypes.c_uint32, p]
	size, text = ctypes.c_size_t, ctypes.c_char_p
	lib.pcre2_match_8.argtypes = [p, text, size, size, ctypes.c_uint32, p, p]
	code, at = ctypes.c_int(), ctypes.c_size_t()
	text = pattern.encode()
	re = lib.pcre2_compile_8(text, ctypes.c_size_t(len(text)), ctypes.c_uint32(0x00080000 | 0x00020000),
		ctypes.byref(code), ctypes.byref(at), None)
	assert re, (pattern, code.value)
	data = lib.pcre2_match_data_create_8(1, None)
	out = set()
	for c in CHARS:
		b = chr(c).encode()
		if lib.pcre2_match_8(re, b, len(b), 0, 0, data, None) > 0:
			out.add(c)
	return out


UTF8PROC = ctypes.CDLL('libutf8proc.so.2')


def proc_nfkd(c):
	room = (ctypes.c_int32 * 32)()
	last = ctypes.c_int(0)
	# NULLTERM 1, STABLE 2, COMPAT 4, COMPOSE 8, DECOMPOSE 16
	n = UTF8PROC.utf8proc_decompose_char(c, room, 32, 16 | 4, ctypes.byref(last))
	return ''.join(map(chr, room[:n]))


def proc_nfd(c):
	room = (ctypes.c_int32 * 32)()
	last = ctypes.c_int(0)
	n = UTF8PROC.utf8proc_decompose_char(c, room, 32, 16, ctypes.byref(last))
	return ''.join(map(chr, room[:n]))


class Property(ctypes.Structure):
	_fields_ = [('category', ctypes.c_int16), ('combining', ctypes.c_int16)]


UTF8PROC.utf8proc_get_property.restype = ctypes.POINTER(Property)


def table(name, chars, about):
	print(f'\n/* {about} */\nconst struct hd_chars hd_chars_{name}[] = {{')
	row = ''
	for a, b in ranges(chars):
		row += f'{{ {a:#x}, {b:#x} }}, '
		if len(row) > 200:
			print('\t' + row.rstrip())
			row = ''
	print('\t' + row + '{ 0 },\n};')


CLASSES = {      # of the regular expressions: name, its row in regex_class.c, what PCRE2 is asked for
	'L': (r'\p{L}', r'\p{L}'), 'Lu': (r'\p{Lu}', r'\p{Lu}'), 'Ll': (r'\p{Ll}', r'\p{Ll}'),
	'Lt': (r'\p{Lt}', r'\p{Lt}'), 'Lm': (r'\p{Lm}', r'\p{Lm}'), 'Lo': (r'\p{Lo}', r'\p{Lo}'),
	'M': (r'\p{M}', r'\p{M}'), 'N': (r'\p{N}', r'\p{N}'), 'Nd': (r'\p{Nd}', r'\p{Nd}'),
	'P': (r'\p{P}', r'\p{P}'), 'S': (r'\p{S}', r'\p{S}'), 'Han': (r'\p{Han}', r'\p{sc:Han}'),
	'w': (r'\w', r'[\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}]'),
}


def glued():
	"""Characters that share a grapheme with the letter before: of a map of that letter alone, the package
	takes both away."""
	trie = ctypes.c_uint32 * 512
	units = trie()
	# a double array of one key, 'a' -> offset 0: root at 0 with offset 256, node at 256 ^ 'a', its leaf
	units[0] = 256 << 10
	node = 256 ^ ord('a')
	leaf = 384
	units[node] = ((node ^ leaf) << 10) | (1 << 8) | ord('a')
	units[leaf] = (1 << 31) | 0
	blob = ctypes.string_at(ctypes.byref(units), 2048)
	n = N.Precompiled(len(blob).to_bytes(4, 'little') + blob + b'b\0')
	assert n.normalize_str('a') == 'b' and n.normalize_str('aa') == 'bb', n.normalize_str('aa')
	return {c for c in CHARS if n.normalize_str('a' + chr(c)) == 'b'}


def main():
	print(f'/* unicode_tables.c -- made by tools/token_tables.py of tokenizers {tokenizers.__version__}: '
		'not edited by hand. */\n#include "token/unicode_int.h"')
	for name, (theirs, ours) in CLASSES.items():
		a, b = onig(theirs), pcre(ours)
		gone = b - a
		assert not gone, (name, [hex(c) for c in sorted(gone)][:20])
		table('re_' + name, a - b, f'{theirs} in Oniguruma beyond {ours} in PCRE2')
	one = lambda pre: {c for c in CHARS if len(pre.pre_tokenize_str('A' + chr(c))) == 2}
	words = {c for c in CHARS if P.Whitespace().pre_tokenize_str('A' + chr(c))[0][0] != 'A'}
	table('word', words, r'\w of the pre-tokenizer Whitespace and of single_word')
	table('numeric', one(P.Digits(True)), 'Digits')
	table('punct', one(P.Punctuation()), 'Punctuation, BertPreTokenizer')
	gone = lambda n: {c for c in CHARS if n.normalize_str(chr(c)) == ''}
	table('other', gone(N.BertNormalizer(True, False, False, False)), 'what BertNormalizer cleans away')
	table('mn', gone(N.BertNormalizer(False, False, True, False)), 'accents of BertNormalizer')
	table('mark', gone(N.StripAccents()), 'accents of StripAccents')

	nfd, nfkd, lower = N.NFD(), N.NFKD(), N.Lowercase()
	later, composed = set(), set()
	for c in CHARS:
		theirs, ours = nfkd.normalize_str(chr(c)), proc_nfkd(c)
		ccc = UTF8PROC.utf8proc_get_property(c).contents.combining
		plain = nfd.normalize_str(chr(c)) == chr(c)
		moves = nfd.normalize_str('a\u0345' + chr(c)) == 'a' + chr(c) + '\u0345'
		if theirs == ours and (c == 0x345 or not plain or moves == (0 < ccc)):
			continue
		assert theirs == chr(c) and not moves, (hex(c), theirs, ours, ccc, moves)
		later.add(c)
		if len(proc_nfd(c)) > 1:
			composed.add(ord(proc_nfd(c)[-1]))
	table('later', later | composed, 'newer than the normal forms: left alone')
	table('glued', glued(), 'joined to the letter before: one grapheme')
	print('\n/* from, to: lower case beyond utf8proc */\nconst struct hd_chars hd_chars_lower[] = {')
	row = ''
	for c in CHARS:
		theirs = lower.normalize_str(chr(c))
		ours = chr(UTF8PROC.utf8proc_tolower(c))
		if theirs != ours:
			assert len(theirs) == 1 or c == 0x130, hex(c)
			if c != 0x130:
				row += f'{{ {c:#x}, {ord(theirs):#x} }}, '
		if len(row) > 200:
			print('\t' + row.rstrip())
			row = ''
	print('\t' + row + '{ 0 },\n};')


sys.exit(main())
