#include "scheduler/mt19937.h"

#include <assert.h>

enum { N = 624, M = 397 };

static void seed(struct hd_mt *mt, uint32_t value)
{
	mt->word[0] = value;
	for (uint32_t i = 1; i < N; i++)
		mt->word[i] = 1812433253u * (mt->word[i - 1] ^ (mt->word[i - 1] >> 30)) + i;
}

/* init_by_array with a key of one word. */
void hd_mt_init(struct hd_mt *mt, uint32_t value)
{
	uint32_t *w = mt->word, i = 1;

	seed(mt, 19650218u);
	for (uint32_t k = 0; k < N; k++) {
		w[i] = (w[i] ^ ((w[i - 1] ^ (w[i - 1] >> 30)) * 1664525u)) + value;
		if (++i == N) {
			w[0] = w[N - 1];
			i = 1;
		}
	}
	for (uint32_t k = 0; k < N - 1; k++) {
		w[i] = (w[i] ^ ((w[i - 1] ^ (w[i - 1] >> 30)) * 1566083941u)) - i;
		if (++i == N) {
			w[0] = w[N - 1];
			i = 1;
		}
	}
	w[0] = 0x80000000u;
	mt->next = N;
}

static void twist(uint32_t *w)
{
	for (uint32_t k = 0; k < N; k++) {
		uint32_t y = (w[k] & 0x80000000u) | (w[(k + 1) % N] & 0x7fffffffu);
		w[k] = w[(k + M) % N] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
	}
}

uint32_t hd_mt_word(struct hd_mt *mt)
{
	if (mt->next == N) {
		twist(mt->word);
		mt->next = 0;
	}
	uint32_t y = mt->word[mt->next++];
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680u;
	y ^= (y << 15) & 0xefc60000u;
	return y ^ (y >> 18);
}

double hd_mt_random(struct hd_mt *mt)
{
	uint32_t a = hd_mt_word(mt) >> 5, b = hd_mt_word(mt) >> 6;

	return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0);
}

double hd_mt_uniform(struct hd_mt *mt, double from, double to) { return from + (to - from) * hd_mt_random(mt);
	}

uint32_t hd_mt_below(struct hd_mt *mt, uint32_t n)
{
	uint32_t bits = 0, drawn;

	assert(n > 0);
	for (uint32_t left = n; left; left >>= 1)
		bits++;
	do
		drawn = hd_mt_word(mt) >> (32 - bits);
	while (drawn >= n);
	return drawn;
}

void hd_mt_shuffle(struct hd_mt *mt, uint32_t *at, uint32_t n)
{
	for (uint32_t i = n; i-- > 1;) {
		uint32_t j = hd_mt_below(mt, i + 1), was = at[i];
		at[i] = at[j];
		at[j] = was;
	}
}

/* Up to 21 elements a copy of the list is drawn from, whose last element fills the hole; beyond, repeats
 * are drawn again. */
void hd_mt_sample2(struct hd_mt *mt, uint32_t n, uint32_t out[2])
{
	assert(n >= 2);
	out[0] = hd_mt_below(mt, n);
	if (n <= 21) {
		out[1] = hd_mt_below(mt, n - 1);
		if (out[1] == out[0])
			out[1] = n - 1;
		return;
	}
	do
		out[1] = hd_mt_below(mt, n);
	while (out[1] == out[0]);
}
