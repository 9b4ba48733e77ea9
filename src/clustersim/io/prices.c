#define _GNU_SOURCE
#include "clustersim/prices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "clustersim/io/cells.h"

struct prices_reader {
	struct hd_prices p;
	size_t cap;
	uint32_t ntypes, nzones;
	struct hd_arena *arena;
};

/* Few names, many lines: in order of arrival while reading, sorted at the end. */
static uint32_t name_of(struct prices_reader *r, const char **names, uint32_t *n, const char *text)
{
	for (uint32_t i = *n; i-- > 0;)
		if (!strcmp(names[i], text))
			return i;
	if (*n == HD_PRICE_NAMES || !(names[*n] = hd_arena_text(r->arena, text, strlen(text))))
		return HD_PRICE_NONE;
	return (*n)++;
}

static enum hd_err open_reader(struct prices_reader *r, struct hd_arena *arena, struct hd_diag *diag)
{
	*r = (struct prices_reader){ .arena = arena };
	r->p.type = hd_arena_take(arena, HD_PRICE_NAMES, sizeof *r->p.type);
	r->p.zone = hd_arena_take(arena, HD_PRICE_NAMES, sizeof *r->p.zone);
	return r->p.type && r->p.zone ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for prices");
}

static enum hd_err add(struct prices_reader *r, const char *type, const char *zone, double at_s, double usd_h,
	struct hd_diag *diag)
{
	struct hd_price price = { name_of(r, r->p.type, &r->p.ntypes, type),
		name_of(r, r->p.zone, &r->p.nzones, zone), at_s, usd_h };

	if (price.type == HD_PRICE_NONE || price.zone == HD_PRICE_NONE)
		return hd_fail(diag, HD_E_INPUT,
			"more than %d types or zones of prices, or no memory for their names",
			HD_PRICE_NAMES);
	if (r->p.n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 1024;
		struct hd_price *grown = cap <= HD_PRICES ? hd_arena_take(r->arena, cap, sizeof *grown) :
			NULL;
		if (!grown)
			return hd_fail(diag, cap <= HD_PRICES ? HD_E_NOMEM : HD_E_INPUT,
				"no room for %zu prices (at most %d)", cap, HD_PRICES);
		if (r->p.n)
			memcpy(grown, r->p.at, r->p.n * sizeof *grown);
		r->p.at = grown;
		r->cap = cap;
	}
	r->p.at[r->p.n++] = price;
	return HD_OK;
}

static int by_text(const void *a, const void *b, void *names)
{
	return strcmp(((const char **)names)[*(const uint32_t *)a],
		((const char **)names)[*(const uint32_t *)b]);
}

/* Sorts names; to[i] is the new place of the i-th. */
static uint32_t *sort_names(struct hd_arena *arena, const char **names, uint32_t n)
{
	uint32_t *order = hd_arena_take(arena, n + 1, sizeof *order),
		*to = hd_arena_take(arena, n + 1, sizeof *to);
	const char **sorted = hd_arena_take(arena, n + 1, sizeof *sorted);

	if (!order || !to || !sorted)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	if (n)
		qsort_r(order, n, sizeof *order, by_text, names);
	for (uint32_t i = 0; i < n; i++) {
		sorted[i] = names[order[i]];
		to[order[i]] = i;
	}
	memcpy(names, sorted, n * sizeof *names);
	return to;
}

/* Lines of one time stand in the order of the file, by their place. */
static int by_place(const void *a, const void *b, void *prices)
{
	const struct hd_price *all = prices, *x = &all[*(const size_t *)a], *y = &all[*(const size_t *)b];
	size_t i = *(const size_t *)a, k = *(const size_t *)b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->zone != y->zone)
		return x->zone < y->zone ? -1 : 1;
	if (x->at_s < y->at_s || x->at_s > y->at_s)
		return x->at_s < y->at_s ? -1 : 1;
	return (i > k) - (i < k);
}

static enum hd_err close_reader(struct prices_reader *r, const char *name, struct hd_prices *out,
	struct hd_diag *diag)
{
	struct hd_prices *p = &r->p;
	uint32_t *type = sort_names(r->arena, p->type, p->ntypes),
		*zone = sort_names(r->arena, p->zone, p->nzones);
	size_t *order = hd_arena_take(r->arena, p->n + 1, sizeof *order);
	struct hd_price *sorted = hd_arena_take(r->arena, p->n + 1, sizeof *sorted);

	if (!p->n)
		return hd_fail(diag, HD_E_INPUT, "%s: there is no price in it", name);
	p->first = hd_arena_take(r->arena, p->ntypes + 1, sizeof *p->first);
	if (!type || !zone || !order || !sorted || !p->first)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to sort its prices", name);
	p->start_s = INFINITY;
	p->end_s = -INFINITY;
	for (size_t i = 0; i < p->n; i++) {
		order[i] = i;
		p->at[i].type = type[p->at[i].type];
		p->at[i].zone = zone[p->at[i].zone];
		p->start_s = fmin(p->start_s, p->at[i].at_s);
		p->end_s = fmax(p->end_s, p->at[i].at_s);
	}
	qsort_r(order, p->n, sizeof *order, by_place, p->at);
	for (size_t i = 0; i < p->n; i++) {
		sorted[i] = p->at[order[i]];
		p->first[sorted[i].type + 1] = i + 1;
	}
	p->at = sorted;
	*out = *p;
	return HD_OK;
}

static enum hd_err price_of(const struct cells *c, uint32_t i, double *usd_h, struct hd_diag *diag)
{
	enum hd_err err = cells_f64(c, i, "price", 0, 1e9, usd_h, diag);

	return err || *usd_h > 0 ? err : cells_fail(c, i, diag, "price is 0: it is above 0");
}

static enum hd_err read_tsv(struct prices_reader *r, struct cells *c, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	double at_s = 0, usd_h = 0;

	while (!err && cells_next(c, &err, diag)) {
		if (c->n != 5)
			return cells_fail(c, 0, diag,
				"%u fields: a line is zone, type, product, price, time between tabs", c->n);
		if (!(err = price_of(c, 3, &usd_h, diag)) && !(err = cells_when(c, 4, "time", &at_s, diag)))
			err = add(r, c->cell[1].text, c->cell[0].text, at_s, usd_h, diag);
	}
	return err;
}

static enum hd_err read_lines(struct prices_reader *r, struct cells *c, const int at[4], struct hd_diag *diag)
{
	uint32_t columns = c->n;
	enum hd_err err = HD_OK;
	double at_s = 0, usd_h = 0;

	while (!err && cells_next(c, &err, diag)) {
		if (c->n != columns)
			return cells_fail(c, c->n - 1, diag, "%u fields, the header has %u", c->n, columns);
		if (!(err = cells_when(c, (uint32_t)at[0], "time", &at_s, diag)) &&
			!(err = price_of(c, (uint32_t)at[3], &usd_h, diag)))
			err = add(r, c->cell[at[2]].text, c->cell[at[1]].text, at_s, usd_h, diag);
	}
	return err;
}

static enum hd_err read_wide(struct prices_reader *r, struct cells *c, struct hd_diag *diag)
{
	const char *type[HD_CELLS];
	uint32_t columns = c->n, date = HD_CELLS;
	enum hd_err err = HD_OK;
	double at_s = 0, usd_h = 0;

	for (uint32_t i = 0; i < columns; i++) {
		bool is_type = c->cell[i].text[0] == '$';
		if (is_type && !(type[i] = hd_arena_text(r->arena, c->cell[i].text + 1,
			strlen(c->cell[i].text + 1))))
			return hd_fail(diag, HD_E_NOMEM, "%s: no memory to read it", c->name);
		if (!is_type)
			type[i] = NULL;
		if (!is_type && (date == HD_CELLS || !strcasecmp(c->cell[i].text, "date")))
			date = i;
	}
	while (!err && cells_next(c, &err, diag)) {
		if (c->n != columns)
			return cells_fail(c, c->n - 1, diag, "%u fields, the header has %u", c->n, columns);
		err = cells_when(c, date, "date", &at_s, diag);
		for (uint32_t i = 0; i < columns && !err; i++)
			if (type[i] && *c->cell[i].text && !(err = price_of(c, i, &usd_h, diag)))
				err = add(r, type[i], c->name, at_s, usd_h, diag);
	}
	return err;
}

enum hd_err hd_prices_read(struct hd_prices *prices, const char *name, const uint8_t *bytes, size_t len,
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const char *const wanted[] = { "time", "zone", "type", "price" };
	const uint8_t *eol = len ? memchr(bytes, '\n', len) : NULL;
	bool tabs = len && memchr(bytes, '\t', eol ? (size_t)(eol - bytes) : len);
	struct prices_reader r;
	struct cells *c;
	int at[4];
	enum hd_err err = open_reader(&r, arena, diag);

	if (!err)
		err = cells_open(&c, name, bytes, len, tabs ? '\t' : ',', arena, diag);
	if (!err && tabs)
		err = read_tsv(&r, c, diag);
	if (!err && !tabs) {
		if (!cells_next(c, &err, diag))
			return err ? err : hd_fail(diag, HD_E_INPUT, "%s:1:1: the file is empty", name);
		bool all = true, wide = false;
		for (int k = 0; k < 4; k++)
			all &= (at[k] = cells_find(c, wanted[k])) >= 0;
		for (uint32_t i = 0; i < c->n; i++)
			wide |= c->cell[i].text[0] == '$';
		if (!all && (!wide || c->n < 2 || (cells_find(c, "date") < 0 && c->cell[0].text[0] == '$')))
			return cells_fail(c, 0, diag,
				"no form of prices is known with this header: time,zone,type,price, or date "
				"and one column $TYPE a type");
		err = all ? read_lines(&r, c, at, diag) : read_wide(&r, c, diag);
	}
	return err ? err : close_reader(&r, name, prices, diag);
}

enum hd_err hd_prices_json(struct hd_prices *prices, const struct hd_json *file, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct prices_reader r;
	const struct hd_json *list;
	char path[160];
	enum hd_err err = open_reader(&r, arena, diag);

	if (!err)
		err = hd_json_get(file, "SpotPriceHistory", HD_JSON_ARRAY, &list, diag);
	for (size_t i = 0; !err && i < hd_json_count(list); i++) {
		const struct hd_json *item = hd_json_item(list, i);
		const char *type, *zone, *when, *price;
		double at_s = 0, usd_h = 0;
		if ((err = hd_json_get_text(item, "InstanceType", &type, diag)) ||
			(err = hd_json_get_text(item, "AvailabilityZone", &zone, diag)) ||
			(err = hd_json_get_text(item, "Timestamp", &when, diag)) ||
			(err = hd_json_get_text(item, "SpotPrice", &price, diag)))
			return err;
		if (!when_parse(when, &at_s))
			return hd_fail(diag, HD_E_INPUT,
				"%s.Timestamp is \"%.60s\": no time (YYYY-MM-DDTHH:MM:SSZ)",
				hd_json_path(item, path, sizeof path),
				when);
		if (hd_num_f64(price, 0, 1e9, &usd_h, NULL) || !(usd_h > 0))
			return hd_fail(diag, HD_E_INPUT, "%s.SpotPrice is \"%.60s\": a price above 0",
				hd_json_path(item, path, sizeof path), price);
		err = add(&r, type, zone, at_s, usd_h, diag);
	}
	return err ? err : close_reader(&r, hd_json_path(file, path, sizeof path), prices, diag);
}

enum hd_err hd_prices_join(struct hd_prices *prices, uint32_t n, const struct hd_prices *parts,
	uint32_t nzones, const char *const *zones,
	struct hd_arena *arena, struct hd_diag *diag)
{
	bool *seen = hd_arena_take(arena, nzones + 1, sizeof *seen);
	struct prices_reader r;
	enum hd_err err = open_reader(&r, arena, diag);

	if (!err && !seen)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the names of zones");
	for (uint32_t k = 0; k < n && !err; k++)
		for (size_t i = 0; i < parts[k].n && !err; i++) {
			const struct hd_price *line = &parts[k].at[i];
			uint32_t z = 0;
			while (z < nzones && strcmp(zones[z], parts[k].zone[line->zone]) != 0)
				z++;
			if (z == nzones && nzones)
				continue;
			seen[z] = true;
			err = add(&r, parts[k].type[line->type], parts[k].zone[line->zone], line->at_s,
				line->usd_h, diag);
		}
	for (uint32_t z = 0; z < nzones && !err; z++)
		if (!seen[z])
			err = hd_fail(diag, HD_E_INPUT,
				"no price is of the zone \"%.60s\"; the first zone is \"%.60s\"", zones[z],
				n ? parts[0].zone[0] : "");
	return err ? err : close_reader(&r, "prices", prices, diag);
}

enum hd_err hd_prices_time(const char *text, double *at_s, struct hd_diag *diag)
{
	if (!hd_num_f64(text, 0, 1e12, at_s, NULL) || when_parse(text, at_s))
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL, "\"%.60s\" is no time: seconds since 1970, or YYYY-MM-DDTHH:MM:SS",
		text);
}

uint32_t hd_prices_type(const struct hd_prices *prices, const char *name)
{
	for (uint32_t t = 0; t < prices->ntypes; t++)
		if (!strcmp(prices->type[t], name))
			return t;
	return HD_PRICE_NONE;
}

/* The first line in [from, to) after `at_s`; lines there are sorted by time. */
static size_t after(const struct hd_prices *prices, size_t from, size_t to, double at_s)
{
	while (from < to) {
		size_t mid = from + (to - from) / 2;
		if (prices->at[mid].at_s <= at_s)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static size_t end_of_zone(const struct hd_prices *prices, size_t from, size_t to)
{
	uint32_t zone = prices->at[from].zone;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		if (prices->at[mid].zone <= zone)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

double hd_price_at(const struct hd_prices *prices, uint32_t type, double at_s)
{
	double least = INFINITY;
	size_t end = prices->first[type + 1];

	for (size_t zone = prices->first[type], next; zone < end; zone = next) {
		next = end_of_zone(prices, zone, end);
		size_t i = after(prices, zone, next, at_s);
		least = fmin(least, prices->at[i > zone ? i - 1 : zone].usd_h);
	}
	return least;
}

double hd_price_change(const struct hd_prices *prices, uint32_t type, double after_s)
{
	double soonest = INFINITY;
	size_t end = prices->first[type + 1];

	for (size_t zone = prices->first[type], next; zone < end; zone = next) {
		next = end_of_zone(prices, zone, end);
		size_t i = after(prices, zone, next, after_s);
		if (i < next)
			soonest = fmin(soonest, prices->at[i].at_s);
	}
	return soonest;
}
