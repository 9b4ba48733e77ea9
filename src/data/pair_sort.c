#include "data/pair_sort.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

enum { BEGIN_WORDS = 1 << 12, DIGITS = 8, VALUES = 256 };

enum hd_err hd_pair_sort_init(struct hd_pair_sort *sort, struct hd_fs *fs, const char *scratch,
	uint64_t memory_bytes, struct hd_diag *diag)
{
	*sort = (struct hd_pair_sort){ .fs = fs, .scratch = scratch };
	if (memory_bytes < HD_PAIR_SORT_LEAST)
		return hd_fail(diag, HD_E_INVAL, "sorting edges takes at least %d MiB of memory",
			HD_PAIR_SORT_LEAST >> 20);
	sort->most = memory_bytes / (2 * sizeof *sort->word);
	if (sort->most > UINT32_MAX)
		sort->most = UINT32_MAX;
	return HD_OK;
}

/* By bytes from the lowest on; a byte that all words share is no pass. The result is in `word`. */
static void sort_words(struct hd_pair_sort *sort)
{
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		uint64_t start[VALUES] = { 0 }, sum = 0, *swap;
		unsigned shift = digit * 8;
		for (uint64_t i = 0; i < sort->n; i++)
			start[sort->word[i] >> shift & 0xff]++;
		if (sort->n && start[sort->word[0] >> shift & 0xff] == sort->n)
			continue;
		for (unsigned v = 0; v < VALUES; v++) {
			uint64_t n = start[v];
			start[v] = sum;
			sum += n;
		}
		for (uint64_t i = 0; i < sort->n; i++)
			sort->other[start[sort->word[i] >> shift & 0xff]++] = sort->word[i];
		swap = sort->word;
		sort->word = sort->other;
		sort->other = swap;
	}
}

static void drop_doubles(struct hd_pair_sort *sort)
{
	uint64_t kept = 0;

	for (uint64_t i = 0; i < sort->n; i++)
		if (!kept || sort->word[i] != sort->word[kept - 1])
			sort->word[kept++] = sort->word[i];
	sort->n = kept;
}

static enum hd_err grow(struct hd_pair_sort *sort, struct hd_diag *diag)
{
	uint64_t cap = sort->cap ? sort->cap * 2 : BEGIN_WORDS;

	if (cap > sort->most)
		cap = sort->most;
	uint64_t *word = hd_alloc(cap * sizeof *word), *other = hd_alloc(cap * sizeof *other);
	if (!word || !other) {
		hd_free(word);
		hd_free(other);
		return hd_fail(diag, HD_E_NOMEM, "no memory to sort %llu edges at once: give a smaller limit",
			(unsigned long long)cap);
	}
	if (sort->n)
		memcpy(word, sort->word, sort->n * sizeof *word);
	hd_free(sort->word);
	hd_free(sort->other);
	sort->word = word;
	sort->other = other;
	sort->cap = cap;
	return HD_OK;
}

static enum hd_err open_scratch(struct hd_pair_sort *sort, struct hd_diag *diag)
{
	enum hd_err err = hd_file_open(sort->fs, sort->scratch, HD_OPEN_WRITE | HD_OPEN_CREATE |
		HD_OPEN_TRUNCATE, &sort->file, diag);

	return err ? err : hd_fs_unlink(sort->fs, sort->scratch, diag);
}

static enum hd_err spill(struct hd_pair_sort *sort, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	sort_words(sort);
	drop_doubles(sort);
	if (sort->nruns == HD_PAIR_SORT_RUNS)
		return hd_fail(diag, HD_E_INVAL, "sorting the edges takes more than %d runs: give a higher "
			"limit "
			"of memory", HD_PAIR_SORT_RUNS);
	if (!sort->file.fs)
		err = open_scratch(sort, diag);
	if (!err)
		err = hd_grow(&sort->run, &sort->runs_cap, sort->nruns + 1, sizeof *sort->run, "sorted runs",
			diag);
	if (!err)
		err = hd_file_pwrite(&sort->file, sort->word, sort->n * sizeof *sort->word,
			(int64_t)(sort->written * sizeof *sort->word), diag);
	if (err)
		return err;
	sort->run[sort->nruns++] = (struct hd_pair_run){ .first = sort->written,
		.end = sort->written + sort->n };
	sort->written += sort->n;
	sort->n = 0;
	return HD_OK;
}

enum hd_err hd_pair_sort_add(struct hd_pair_sort *sort, uint32_t first, uint32_t second,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (sort->n == sort->cap)
		err = sort->cap < sort->most ? grow(sort, diag) : spill(sort, diag);
	if (err)
		return err;
	sort->word[sort->n++] = (uint64_t)first << 32 | second;
	sort->added++;
	return HD_OK;
}

/* ---- taking */

static enum hd_err fill(struct hd_pair_sort *sort, struct hd_pair_run *run, struct hd_diag *diag)
{
	uint64_t left = run->end - run->first, n = left < sort->each ? left : sort->each;
	size_t got = 0;
	enum hd_err err = hd_file_pread(&sort->file, run->buffer, n * sizeof *run->buffer,
		(int64_t)(run->first * sizeof *run->buffer), &got, diag);

	if (!err && got != n * sizeof *run->buffer)
		err = hd_fail(diag, HD_E_IO, "%s was cut off while it was in use", sort->scratch);
	run->first += n;
	run->n = (uint32_t)n;
	run->at = 0;
	return err;
}

static uint64_t word_of(const struct hd_pair_sort *sort, uint32_t place)
{
	const struct hd_pair_run *run = &sort->run[sort->heap[place]];

	return run->buffer[run->at];
}

static void sink(struct hd_pair_sort *sort, uint32_t place)
{
	for (;;) {
		uint32_t least = place, swap;
		for (uint32_t child = 2 * place + 1; child <= 2 * place + 2; child++)
			if (child < sort->nheap && word_of(sort, child) < word_of(sort, least))
				least = child;
		if (least == place)
			return;
		swap = sort->heap[place];
		sort->heap[place] = sort->heap[least];
		sort->heap[least] = swap;
		place = least;
	}
}

/* One half of the memory becomes the buffers of the runs. */
static enum hd_err begin_merge(struct hd_pair_sort *sort, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	sort->each = (uint32_t)(sort->cap / sort->nruns);
	if (!(sort->heap = hd_alloc(sort->nruns * sizeof *sort->heap)))
		return hd_fail(diag, HD_E_NOMEM, "no memory to merge %u sorted runs", sort->nruns);
	for (uint32_t r = 0; r < sort->nruns && !err; r++) {
		sort->run[r].buffer = sort->other + (uint64_t)r * sort->each;
		err = fill(sort, &sort->run[r], diag);
		sort->heap[sort->nheap++] = r;
	}
	for (uint32_t place = sort->nheap / 2; place-- > 0 && !err;)
		sink(sort, place);
	return err;
}

static enum hd_err begin_taking(struct hd_pair_sort *sort, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	sort->taking = true;
	if (sort->nruns) {
		if (sort->n)
			err = spill(sort, diag);
		return err ? err : begin_merge(sort, diag);
	}
	sort_words(sort);
	drop_doubles(sort);
	return HD_OK;
}

/* The least word of all runs, of which the next takes its place. */
static enum hd_err take_least(struct hd_pair_sort *sort, uint64_t *word, struct hd_diag *diag)
{
	struct hd_pair_run *run = &sort->run[sort->heap[0]];
	enum hd_err err = HD_OK;

	*word = run->buffer[run->at++];
	if (run->at == run->n && run->first < run->end)
		err = fill(sort, run, diag);
	else if (run->at == run->n)
		sort->heap[0] = sort->heap[--sort->nheap];
	if (!err && sort->nheap)
		sink(sort, 0);
	return err;
}

enum hd_err hd_pair_sort_next(struct hd_pair_sort *sort, uint32_t *first, uint32_t *second, bool *more,
	struct hd_diag *diag)
{
	uint64_t word = 0;
	bool found = false;
	enum hd_err err = sort->taking ? HD_OK : begin_taking(sort, diag);

	if (err)
		return err;
	if (!sort->nruns) {
		found = sort->written < sort->n;
		word = found ? sort->word[sort->written++] : 0;
	}
	while (!err && sort->nheap && !found) {
		err = take_least(sort, &word, diag);
		found = !sort->any || word != sort->last;
	}
	if (err)
		return err;
	*more = found;
	if (!found)
		return HD_OK;
	sort->any = true;
	sort->last = word;
	*first = (uint32_t)(word >> 32);
	*second = (uint32_t)word;
	return HD_OK;
}

void hd_pair_sort_end(struct hd_pair_sort *sort)
{
	hd_free(sort->word);
	hd_free(sort->other);
	hd_free(sort->run);
	hd_free(sort->heap);
	(void)!hd_file_close(&sort->file, NULL);
	*sort = (struct hd_pair_sort){ 0 };
}
