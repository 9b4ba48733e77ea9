#include "scheduler/rates.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json_writer.h"
#include "base/num.h"
#include "scheduler/sched_state.h"

static const char left_out[] = "_unconsolidated";

static bool is_left_out(const char *type)
{
	size_t len = strlen(type), tail = sizeof left_out - 1;

	return len > tail && !strcmp(type + len - tail, left_out);
}

/* "('LM (batch size 5)', 2)": the printed form of a pair in another language. */
static enum hd_err read_kind(const struct hd_json *at, const char *key, struct hd_arena *arena,
	struct hd_rate_kind *kind, struct hd_diag *diag)
{
	size_t len = strlen(key);
	const char *comma = len > 6 && len < HD_RATES_NAME ? strrchr(key, ',') : NULL;
	int64_t scale = 0;
	char digits[24], path[160];
	bool good = comma && comma > key + 2 && !strncmp(key, "('", 2) && comma[-1] == '\'' &&
		comma[1] == ' ' && key[len - 1] == ')'
		&& (size_t)(key + len - 1 - (comma + 2)) < sizeof digits;

	if (good) {
		size_t n = (size_t)(key + len - 1 - (comma + 2));
		memcpy(digits, comma + 2, n);
		digits[n] = 0;
		good = hd_num_i64(digits, 1, HD_RATES_SCALE, &scale, NULL) == HD_OK;
	}
	if (!good)
		return hd_fail(diag, HD_E_INPUT,
			"%s: \"%.80s\" is no kind of job: write \"('Model (batch size b)', devices)\"",
			hd_json_path(at, path, sizeof path), key);
	kind->scale = (uint32_t)scale;
	kind->name = hd_arena_text(arena, key + 2, (size_t)(comma - 1 - (key + 2)));
	return kind->name ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for the names of kinds of jobs");
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a,
	*(const char *const *)b); }

static int kind_order(const struct hd_rate_kind *a, const struct hd_rate_kind *b)
{
	int order = strcmp(a->name, b->name);

	return order ? order : (a->scale > b->scale) - (a->scale < b->scale);
}

static int by_kind(const void *a, const void *b) { return kind_order(a, b); }

uint32_t hd_rates_type(const struct hd_rates *rates, const char *name)
{
	for (uint32_t t = 0; t < rates->ntypes; t++)
		if (!strcmp(rates->type[t], name))
			return t;
	return HD_RATES_NONE;
}

uint32_t hd_rates_kind(const struct hd_rates *rates, const char *name, uint32_t scale)
{
	struct hd_rate_kind key = { name, scale };
	const struct hd_rate_kind *found = rates->nkinds ? bsearch(&key, rates->kind, rates->nkinds,
		sizeof key, by_kind) : NULL;

	return found ? (uint32_t)(found - rates->kind) : HD_RATES_NONE;
}

/* Names of one object's members: types, or kinds. */
static enum hd_err add_types(struct hd_rates *rates, const struct hd_json *object, struct hd_arena *arena,
	struct hd_diag *diag)
{
	char path[160];

	for (size_t i = 0; i < hd_json_count(object); i++) {
		const char *name = hd_json_key(object, i);
		if (is_left_out(name) || hd_rates_type(rates, name) != HD_RATES_NONE)
			continue;
		if (!*name || rates->ntypes == HD_RATES_TYPES)
			return hd_fail(diag, HD_E_INPUT, "%s: %s", hd_json_path(object, path, sizeof path),
				*name ? "more than 64 types of devices" : "a type of devices without a name");
		if (!(rates->type[rates->ntypes++] = hd_arena_text(arena, name, strlen(name))))
			return hd_fail(diag, HD_E_NOMEM, "no memory for the types of devices");
	}
	return HD_OK;
}

static enum hd_err add_kinds(struct hd_rates *rates, size_t cap, const struct hd_json *object,
	struct hd_arena *arena, struct hd_diag *diag)
{
	for (size_t i = 0; i < hd_json_count(object); i++) {
		if (!strcmp(hd_json_key(object, i), "null"))
			continue;
		struct hd_rate_kind kind;
		enum hd_err err = read_kind(object, hd_json_key(object, i), arena, &kind, diag);
		if (err)
			return err;
		assert(rates->nkinds < cap);              /* as many as there are members */
		rates->kind[rates->nkinds++] = kind;
	}
	return HD_OK;
}

static void sort_kinds(struct hd_rates *rates)
{
	uint32_t n = 0;

	qsort(rates->kind, rates->nkinds, sizeof *rates->kind, by_kind);
	for (uint32_t i = 0; i < rates->nkinds; i++)
		if (!n || kind_order(&rates->kind[n - 1], &rates->kind[i]))
			rates->kind[n++] = rates->kind[i];
	rates->nkinds = n;
}

static enum hd_err read_rate(const struct hd_json *at, double *out, struct hd_diag *diag)
{
	char path[160];
	enum hd_err err = hd_json_as_f64(at, out, diag);

	if (err)
		return err;
	if (!hd_sched_in(HD_SCHED_IN_RATE, *out))
		return hd_fail(diag, HD_E_INPUT, "%s is %g; it is %s", hd_json_path(at, path, sizeof path),
			*out, hd_sched_range_words(HD_SCHED_IN_RATE));
	return HD_OK;
}

static enum hd_err find_kind(const struct hd_rates *rates, const struct hd_json *object, size_t i,
	struct hd_arena *arena, uint32_t *k,
	struct hd_diag *diag)
{
	struct hd_rate_kind kind = { 0 };
	enum hd_err err = read_kind(object, hd_json_key(object, i), arena, &kind, diag);

	if (!err && (*k = hd_rates_kind(rates, kind.name, kind.scale)) == HD_RATES_NONE)
		return hd_fail(diag, HD_E_INPUT, "%s: the rates of \"%.80s\" alone are not in this file",
			hd_json_path(object, (char[160]){ 0 }, 160), hd_json_key(object, i));
	return err;
}

static double *pair_at(const struct hd_rates *rates, uint32_t a, uint32_t b, uint32_t type)
{
	return rates->pair + (((size_t)a * rates->nkinds + b) * rates->ntypes + type) * 2;
}

static enum hd_err put_pair(struct hd_rates *rates, const struct hd_json *at, uint32_t a, uint32_t b,
	uint32_t type, struct hd_diag *diag)
{
	double rate[2] = { 0, 0 };
	enum hd_err err = hd_json_as(at, HD_JSON_ARRAY, diag);

	if (!err && hd_json_count(at) != 2)
		err = hd_fail(diag, HD_E_INPUT, "%s: a pair has two rates, [mine, the other's]",
			hd_json_path(at, (char[160]){ 0 }, 160));
	for (size_t m = 0; m < 2 && !err; m++)
		err = read_rate(hd_json_item(at, m), &rate[m], diag);
	if (err)
		return err;
	double *mine = pair_at(rates, a, b, type), *other = pair_at(rates, b, a, type);
	/* its mirror came first */
	if (a != b && (mine[0] != 0 || mine[1] != 0) && (mine[0] != rate[0] || mine[1] != rate[1]))
		return hd_fail(diag, HD_E_INPUT,
			"%s: %g and %g here, but the other kind's row says %g and %g",
			hd_json_path(at, (char[160]){ 0 }, 160), rate[0], rate[1], mine[0], mine[1]);
	mine[0] = rate[0];
	mine[1] = rate[1];
	other[0] = rate[1];
	other[1] = rate[0];
	return HD_OK;
}

static enum hd_err take_tables(struct hd_rates *rates, bool pairs, struct hd_arena *arena,
	struct hd_diag *diag)
{
	size_t cells = (size_t)rates->nkinds * rates->ntypes, npairs = 0;

	rates->alone = hd_arena_take(arena, cells ? cells : 1, sizeof *rates->alone);
	if (pairs && hd_mul_size(cells * 2, rates->nkinds, &npairs))
		rates->pair = hd_arena_take(arena, npairs ? npairs : 1, sizeof *rates->pair);
	return rates->alone && (!pairs || rates->pair) ? HD_OK
		: hd_fail(diag, HD_E_NOMEM, "no memory for the rates of %u kinds of jobs on %u types",
			rates->nkinds, rates->ntypes);
}

static enum hd_err read_row(struct hd_rates *rates, const struct hd_json *row, uint32_t kind, uint32_t type,
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	for (size_t i = 0; i < hd_json_count(row); i++) {
		enum hd_err err;
		uint32_t other;
		if (!strcmp(hd_json_key(row, i), "null"))
			err = read_rate(hd_json_item(row, i),
				&rates->alone[(size_t)kind * rates->ntypes + type], diag);
		else if (!(err = find_kind(rates, row, i, arena, &other, diag)))
			err = put_pair(rates, hd_json_item(row, i), kind, other, type, diag);
		if (err)
			return err;
	}
	return HD_OK;
}

/* The form by types: {type: {kind: {"null": .., kind: [.., ..]}}}. */
static enum hd_err read_by_type(struct hd_rates *rates, const struct hd_json *file, struct hd_arena *arena,
	struct hd_diag *diag)
{
	size_t cap = 0;
	bool pairs = false;
	enum hd_err err = add_types(rates, file, arena, diag);

	qsort(rates->type, rates->ntypes, sizeof *rates->type, by_name);
	for (size_t i = 0; i < hd_json_count(file) && !err; i++) {
		err = hd_json_as(hd_json_item(file, i), HD_JSON_OBJECT, diag);
		cap += is_left_out(hd_json_key(file, i)) ? 0 : hd_json_count(hd_json_item(file, i));
	}
	if (err)
		return err;
	if (!(rates->kind = hd_arena_take(arena, cap ? cap : 1, sizeof *rates->kind)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for %zu kinds of jobs", cap);
	for (size_t i = 0; i < hd_json_count(file) && !err; i++) {
		const struct hd_json *type = hd_json_item(file, i);
		if (is_left_out(hd_json_key(file, i))) {
			rates->nleft_out++;
			continue;
		}
		err = add_kinds(rates, cap, type, arena, diag);
		for (size_t k = 0; k < hd_json_count(type) && !err; k++) {
			err = hd_json_as(hd_json_item(type, k), HD_JSON_OBJECT, diag);
			pairs |= hd_json_count(hd_json_item(type, k)) > (hd_json_find(hd_json_item(type, k),
				"null") != NULL);
		}
	}
	if (err)
		return err;
	sort_kinds(rates);
	if (rates->nkinds > HD_RATES_KINDS)
		return hd_fail(diag, HD_E_INPUT, "%u kinds of jobs, at most %d are taken", rates->nkinds,
			HD_RATES_KINDS);
	err = take_tables(rates, pairs, arena, diag);
	for (size_t i = 0; i < hd_json_count(file) && !err; i++) {
		const struct hd_json *rows = hd_json_item(file, i);
		uint32_t type = hd_rates_type(rates, hd_json_key(file, i)), kind;
		for (size_t k = 0; k < hd_json_count(rows) && !err && type != HD_RATES_NONE; k++)
			if (!(err = find_kind(rates, rows, k, arena, &kind, diag)))
				err = read_row(rates, hd_json_item(rows, k), kind, type, arena, diag);
	}
	return err;
}

/* The form by kinds: {kind: {type: alone}}. */
static enum hd_err read_by_kind(struct hd_rates *rates, const struct hd_json *file, struct hd_arena *arena,
	struct hd_diag *diag)
{
	size_t cap = hd_json_count(file);
	enum hd_err err = cap <= HD_RATES_KINDS ? HD_OK : hd_fail(diag, HD_E_INPUT,
		"%zu kinds of jobs, at most %d are taken", cap, HD_RATES_KINDS);

	if (!err && !(rates->kind = hd_arena_take(arena, cap, sizeof *rates->kind)))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for %zu kinds of jobs", cap);
	if (!err)
		err = add_kinds(rates, cap, file, arena, diag);
	for (size_t i = 0; i < hd_json_count(file) && !err; i++) {
		err = hd_json_as(hd_json_item(file, i), HD_JSON_OBJECT, diag);
		if (!err)
			err = add_types(rates, hd_json_item(file, i), arena, diag);
	}
	if (err)
		return err;
	qsort(rates->type, rates->ntypes, sizeof *rates->type, by_name);
	sort_kinds(rates);
	err = take_tables(rates, false, arena, diag);
	for (size_t i = 0; i < hd_json_count(file) && !err; i++) {
		const struct hd_json *row = hd_json_item(file, i);
		uint32_t kind;
		err = find_kind(rates, file, i, arena, &kind, diag);
		for (size_t j = 0; j < hd_json_count(row) && !err; j++) {
			uint32_t type = hd_rates_type(rates, hd_json_key(row, j));
			if (type != HD_RATES_NONE)
				err = read_rate(hd_json_item(row, j),
					&rates->alone[(size_t)kind * rates->ntypes + type], diag);
		}
	}
	return err;
}

enum hd_err hd_rates_read(struct hd_rates *rates, const struct hd_json *file, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_rates read = { 0 };
	char path[160];
	enum hd_err err = hd_json_as(file, HD_JSON_OBJECT, diag);

	if (err)
		return err;
	if (!hd_json_count(file))
		return hd_fail(diag, HD_E_INPUT, "%s is empty: no rates of any kind of job",
			hd_json_path(file, path, sizeof path));
	if (!(read.type = hd_arena_take(arena, HD_RATES_TYPES, sizeof *read.type)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the types of devices");
	err = hd_json_key(file, 0)[0] == '(' ? read_by_kind(&read, file, arena, diag) : read_by_type(&read,
		file, arena, diag);
	if (!err)
		*rates = read;
	return err;
}

static bool has_pairs(const struct hd_rates *rates, uint32_t a, uint32_t b, uint32_t type)
{
	const double *rate = rates->pair ? pair_at(rates, a, b, type) : NULL;

	return rate && (rate[0] != 0 || rate[1] != 0);
}

static const char *kind_key(const struct hd_rate_kind *kind, struct hd_text *to)
{
	to->len = 0;
	hd_text_addf(to, "('%s', %u)", kind->name, kind->scale);
	return to->at;
}

void hd_rates_print(const struct hd_rates *rates, struct hd_text *to)
{
	struct hd_json_writer w;
	char room[HD_RATES_NAME + 1];
	struct hd_text key;

	hd_text_fixed(&key, room, sizeof room);
	hd_json_writer_init(&w, to);
	hd_json_open_object(&w, NULL);
	for (uint32_t t = 0; t < rates->ntypes; t++) {
		hd_json_open_object(&w, rates->type[t]);
		for (uint32_t a = 0; a < rates->nkinds; a++) {
			hd_json_open_object(&w, kind_key(&rates->kind[a], &key));
			hd_json_put_f64(&w, "null", hd_rates_alone(rates, a, t));
			for (uint32_t b = 0; b < rates->nkinds; b++) {
				if (!has_pairs(rates, a, b, t))
					continue;
				hd_json_open_array(&w, kind_key(&rates->kind[b], &key));
				for (int m = 0; m < 2; m++)
					hd_json_put_f64(&w, NULL, pair_at(rates, a, b, t)[m]);
				hd_json_close(&w);
			}
			hd_json_close(&w);
		}
		hd_json_close(&w);
	}
	hd_json_close(&w);
}

enum hd_err hd_rates_pick(const struct hd_rates *rates, uint32_t n, const char *const *names,
	struct hd_arena *arena, struct hd_rates *out,
	struct hd_diag *diag)
{
	struct hd_rates to = { .ntypes = n, .nkinds = rates->nkinds, .kind = rates->kind };
	enum hd_err err;

	if (!(to.type = hd_arena_take(arena, n ? n : 1, sizeof *to.type)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the types of devices");
	if ((err = take_tables(&to, rates->pair, arena, diag)))
		return err;
	for (uint32_t t = 0; t < n; t++) {
		uint32_t from = hd_rates_type(rates, names[t]);
		to.type[t] = names[t];
		for (uint32_t a = 0; a < rates->nkinds && from != HD_RATES_NONE; a++) {
			to.alone[(size_t)a * n + t] = hd_rates_alone(rates, a, from);
			for (uint32_t b = 0; b < rates->nkinds && rates->pair; b++)
				memcpy(pair_at(&to, a, b, t), pair_at(rates, a, b, from), 2 * sizeof(double));
		}
	}
	*out = to;
	return HD_OK;
}
