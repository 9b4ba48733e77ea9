#include "run/samples.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/json.h"
#include "engine/task.h"

/* The law counts positions and nothing else: no line of the sampler's arithmetic is used, so that a
 * sampler that is wrong is found out. */

#define HD_SAMPLES_MOST (UINT64_C(1) << 40)       /* of all steps together */

struct samples_check {
	const struct hd_samples_law *law;
	struct hd_samples_found *found;
	uint64_t nepochs;                 /* begun by steps that count */
	/* owned: [nsteps][nvns] of its first record: hash, and 1; 0: none */
	uint64_t *said;
	uint8_t *taken;                   /* owned: [nepochs][count] bits */
	uint64_t *ntaken;                 /* owned: [nepochs] */
	struct hd_arena arena;            /* of a line */
	struct hd_diag *diag;
};

/* Of a data epoch that has ended. */
static uint64_t whole(const struct hd_samples_law *law)
{
	return law->last == HD_LAST_DROP ? law->count - law->count % law->batch : law->count;
}

/* Positions of data epoch e in the steps that count: rows that there are from its beginning on, at most
 * all of it. */
static uint64_t positions(const struct hd_samples_law *law, uint64_t e)
{
	const uint64_t steps = law->last == HD_LAST_DROP ? law->count / law->batch :
		(law->count + law->batch - 1) / law->batch;
	const uint64_t before = law->last == HD_LAST_WRAP ? law->count * e : steps * e * law->batch,
		rows = law->nsteps * law->batch;

	return rows <= before ? 0 : rows - before < whole(law) ? rows - before : whole(law);
}

static enum hd_err take(struct samples_check *c, uint64_t step, uint32_t vn, uint64_t epoch, uint64_t index)
{
	if (epoch >= c->nepochs || index >= c->law->count)
		return hd_fail(c->diag, HD_E_INTEGRITY,
			"step %llu, virtual node %u: sample %llu of data epoch "
			"%llu, where there are %llu samples and %llu data epochs",
			(unsigned long long)step, vn, (unsigned long long)index,
			(unsigned long long)epoch, (unsigned long long)c->law->count,
			(unsigned long long)c->nepochs);
	uint64_t bit = epoch * c->law->count + index;
	if (c->taken[bit / 8] >> bit % 8 & 1)
		return hd_fail(c->diag, HD_E_INTEGRITY,
			"step %llu, virtual node %u: sample %llu was taken before in data epoch %llu",
			(unsigned long long)step,
			vn, (unsigned long long)index, (unsigned long long)epoch);
	c->taken[bit / 8] |= (uint8_t)(1u << bit % 8);
	c->ntaken[epoch]++;
	return HD_OK;
}

static enum hd_err take_all(struct samples_check *c, uint64_t step, uint32_t vn, const struct hd_json *took)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < hd_json_count(took) && !err; i++) {
		const struct hd_json *run = hd_json_item(took, i), *index;
		int64_t epoch = 0, at = 0;
		err = hd_json_count(run) == 2 ? hd_json_as_i64(hd_json_item(run, 0), 0, INT64_MAX, &epoch,
			c->diag)
			: hd_fail(c->diag, HD_E_INPUT, "step %llu, virtual node %u: no record of samples",
				(unsigned long long)step, vn);
		index = err ? NULL : hd_json_item(run, 1);
		if (!err)
			err = hd_json_as(index, HD_JSON_ARRAY, c->diag);
		for (size_t k = 0; !err && k < hd_json_count(index); k++) {
			err = hd_json_as_i64(hd_json_item(index, k), 0, INT64_MAX, &at, c->diag);
			if (!err)
				err = take(c, step, vn, (uint64_t)epoch, (uint64_t)at);
		}
	}
	return err;
}

/* The line as it was written is what it says: one writer, one form. */
static enum hd_err count_line(struct samples_check *c, const char *text, size_t len)
{
	const struct hd_json *line, *took;
	int64_t step = 0, vn = 0;

	if (!len)
		return HD_OK;
	hd_arena_reset(&c->arena);
	if (hd_json_parse(&c->arena, "a line", text, len, &line, NULL)) {
		c->found->torn++;
		return HD_OK;
	}
	enum hd_err err = hd_json_get_i64(line, "step", 0, INT64_MAX, &step, c->diag);
	if (!err)
		err = hd_json_get_i64(line, "vn", 0, c->law->nvns - 1, &vn, c->diag);
	if (!err)
		err = hd_json_get(line, "took", HD_JSON_ARRAY, &took, c->diag);
	if (err || (uint64_t)step >= c->law->nsteps)
		return err;
	uint64_t *said = &c->said[(uint64_t)step * c->law->nvns + (uint64_t)vn],
		says = hd_hash64(text, len) | 1;
	c->found->lines++;
	c->found->again += *said != 0;
	if (*said && *said != says)
		return hd_fail(c->diag, HD_E_INTEGRITY,
			"step %lld, virtual node %lld was computed twice, from other samples: %.*s",
			(long long)step,
			(long long)vn, (int)(len < 120 ? len : 120), text);
	if (*said)
		return HD_OK;
	*said = says;
	return take_all(c, (uint64_t)step, (uint32_t)vn, took);
}

static enum hd_err count_file(struct samples_check *c, struct hd_fs *fs, const char *path)
{
	struct hd_file file = { 0 };
	struct hd_map map = { 0 };
	enum hd_err err = hd_file_open(fs, path, HD_OPEN_READ, &file, c->diag);

	if (!err)
		err = hd_file_map(&file, &map, c->diag);
	for (size_t at = 0; !err && at < map.len;) {
		const char *from = (const char *)map.bytes + at, *end = memchr(from, '\n', map.len - at);
		if (end)
			err = count_line(c, from, (size_t)(end - from));
		else
			c->found->torn++;
		at = end ? (size_t)(end - (const char *)map.bytes) + 1 : map.len;
	}
	hd_file_unmap(fs, &map);
	if (file.fs)
		(void)!hd_file_close(&file, NULL);
	return err;
}

static enum hd_err count_files(struct samples_check *c, struct hd_fs *fs, const char *dir)
{
	char folder[HD_PATH_CAP], path[HD_PATH_CAP + 300];
	struct hd_arena arena;
	char **names;
	size_t n = 0;

	hd_arena_init(&arena, 0);
	snprintf(folder, sizeof folder, "%s/" HD_SAMPLES_FOLDER, dir);
	enum hd_err err = hd_fs_list(fs, folder, &arena, &names, &n, NULL);
	if (err == HD_E_NOTFOUND)
		hd_fail(c->diag, err,
			"%s keeps no record of its samples: run the job with -s trace.samples=true", dir);
	else if (err)
		hd_fail(c->diag, err, "%s cannot be read", folder);
	for (size_t i = 0; i < n && !err; i++) {
		snprintf(path, sizeof path, "%s/%.250s", folder, names[i]);
		err = count_file(c, fs, path);
	}
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err judge(struct samples_check *c)
{
	const uint64_t count = c->law->count;

	for (uint64_t e = 0; e < c->nepochs; e++) {
		const uint64_t want = positions(c->law, e);
		uint64_t missing = 0;
		while (missing < count && c->taken[(e * count + missing) / 8] >> (e * count +
			missing) % 8 & 1)
			missing++;
		if (c->ntaken[e] != want)
			return hd_fail(c->diag, HD_E_INTEGRITY,
				"data epoch %llu has %llu of %llu samples: sample %llu is the first that is "
				"not recorded",
				(unsigned long long)e, (unsigned long long)c->ntaken[e],
				(unsigned long long)want, (unsigned long long)missing);
		const bool ended = want == whole(c->law);
		c->found->epochs += ended;
		c->found->rest = ended ? 0 : want;
	}
	return HD_OK;
}

/* The steps come from a manifest, which may be damaged. */
static bool can_be(const struct hd_samples_law *law)
{
	return law->batch <= HD_SAMPLES_MOST && law->nsteps <= HD_SAMPLES_MOST / (law->batch > law->nvns ?
		law->batch : law->nvns);
}

enum hd_err hd_samples_check(struct hd_fs *fs, const char *dir, const struct hd_samples_law *law,
	struct hd_samples_found *found, struct hd_diag *diag)
{
	struct samples_check c = { .law = law, .found = found, .diag = diag };

	if (!can_be(law))
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s: its newest checkpoint is of step %llu, with %llu samples a step: no run gets "
			"there", dir,
			(unsigned long long)law->nsteps, (unsigned long long)law->batch);
	*found = (struct hd_samples_found){ .epoch = whole(law) };
	while (positions(law, c.nepochs))
		c.nepochs++;
	hd_arena_init(&c.arena, 0);
	const uint64_t nsaid = law->nsteps * law->nvns * sizeof *c.said,
		ntaken = (c.nepochs * law->count + 7) / 8;
	c.said = hd_alloc(nsaid);
	c.taken = hd_alloc(ntaken);
	c.ntaken = hd_alloc(c.nepochs * sizeof *c.ntaken);
	enum hd_err err = c.said && c.taken && c.ntaken ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for %llu steps of %llu samples",
		(unsigned long long)law->nsteps, (unsigned long long)law->batch);
	if (!err) {
		memset(c.said, 0, nsaid);
		memset(c.taken, 0, ntaken);
		memset(c.ntaken, 0, c.nepochs * sizeof *c.ntaken);
		err = count_files(&c, fs, dir);
	}
	if (!err)
		err = judge(&c);
	hd_free(c.said);
	hd_free(c.taken);
	hd_free(c.ntaken);
	hd_arena_finish(&c.arena);
	return err;
}

enum hd_err hd_samples_verify(const struct hd_task *task, struct hd_fs *fs, const char *dir, uint64_t nsteps,
	struct hd_samples_found *found,
	struct hd_diag *diag)
{
	const struct hd_samples_law law = { .count = task->sampler.count, .batch = task->job->batch,
		.nsteps = nsteps, .nvns = task->job->nvns,
		.last = task->sampler.last };

	return hd_samples_check(fs, dir, &law, found, diag);
}
