#include "daemon/partitions.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/near.h"
#include "base/num.h"
#include "base/yaml.h"

static const char *const mosts[HD_PARTITION_NMOSTS] = {
#define X(id, key) key,
	HD_PARTITION_MOSTS(X)
#undef X
};

#define PARTITION_TIME_MS UINT64_C(1000000000000)

struct partitions_reading {
	const char *file;
	const struct hd_pools *pools;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

/* One of the file, before the order is known. */
struct listed_partition { struct hd_partition_row is; const struct hd_yaml_node *preempt;
	bool standard; uint32_t at; };

__attribute__((format(printf, 3, 4)))
static enum hd_err bad(const struct partitions_reading *r, const struct hd_yaml_mark *at, const char *fmt,
	...)
{
	char text[400];
	va_list list;

	va_start(list, fmt);
	vsnprintf(text, sizeof text, fmt, list);
	va_end(list);
	return hd_fail(r->diag, HD_E_INPUT, "%.200s:%u:%u: %s", r->file, at->line, at->column, text);
}

static enum hd_err is_kind(const struct partitions_reading *r, const struct hd_yaml_node *n,
	enum hd_yaml_kind kind)
{
	return n->kind == kind ? HD_OK : bad(r, &n->at, "%.64s is %s; it should be %s",
		n->key ? n->key : "this", hd_yaml_kind_name(n->kind), hd_yaml_kind_name(kind));
}

static const char *text_of(const struct hd_yaml_node *n) { return n->kind == HD_YAML_SCALAR ? n->text : ""; }

/* ---- devices ---- */

static void add_device(const struct hd_pools *pools, struct hd_dispatch_partition *p, uint32_t *device,
	uint32_t v)
{
	uint32_t at = p->ndevices;

	for (uint32_t i = 0; i < p->ndevices; i++)
		if (device[i] == v)
			return;
	if (v >= pools->ndevices)
		return;
	for (; at && device[at - 1] > v; at--)
		device[at] = device[at - 1];
	device[at] = v;
	p->ndevices++;
}

/* "fast", "fast:2", "fast-0" */
static enum hd_err add_devices(const struct partitions_reading *r, const struct hd_yaml_node *n,
	struct hd_dispatch_partition *p, uint32_t *device)
{
	const struct hd_pools *pools = r->pools;
	struct hd_near near = hd_near_to(text_of(n));
	size_t len = strcspn(text_of(n), ":");
	const char *count = text_of(n) + len;
	uint64_t most = HD_POOL_DEVICES;

	for (uint32_t v = 0; v < pools->ndevices; v++) {
		char name[96];
		hd_pools_device(pools, v, name);
		if (!strcmp(name, text_of(n))) {
			add_device(pools, p, device, v);
			return HD_OK;
		}
	}
	for (uint32_t t = 0; t < pools->ntypes; t++) {
		hd_near_offer(&near, pools->name[t]);
		if (strlen(pools->name[t]) != len || strncmp(pools->name[t], text_of(n), len) != 0)
			continue;
		if (*count && (hd_num_u64(count + 1, HD_POOL_DEVICES, &most, NULL) || !most ||
			most > pools->type[t].n))
			return bad(r, &n->at, "devices %.80s: there are %u of %s", text_of(n),
				pools->type[t].n, pools->name[t]);
		for (uint32_t v = pools->first_device[t]; v < pools->first_device[t + 1] && most; v++, most--)
			add_device(pools, p, device, v);
		return HD_OK;
	}
	return bad(r, &n->at, "devices \"%.80s\": a type of the pools, TYPE:N or TYPE-NUMBER%s%s%s",
		text_of(n),
		near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
}

static enum hd_err read_devices(const struct partitions_reading *r, const struct hd_yaml_node *n,
	struct listed_partition *to)
{
	uint32_t *device = hd_arena_take(r->arena, HD_POOL_DEVICES, sizeof *device);
	enum hd_err err = device ? is_kind(r, n, HD_YAML_SEQ) : hd_fail(r->diag, HD_E_NOMEM,
		"no memory for %.200s", r->file);

	for (const struct hd_yaml_node *d = err ? NULL : n->first; d && !err; d = d->next)
		err = add_devices(r, d, &to->is.is, device);
	to->is.is.device = device;
	return err;
}

/* ---- the rest ---- */

static enum hd_err read_default(const struct partitions_reading *r, const struct hd_yaml_node *n,
	struct listed_partition *to)
{
	bool yes = !strcmp(text_of(n), "true"), no = !strcmp(text_of(n), "false");

	to->standard = yes;
	return yes || no ? HD_OK : bad(r, &n->at, "default is true or false");
}

static enum hd_err read_priority(const struct partitions_reading *r, const struct hd_yaml_node *n,
	struct listed_partition *to)
{
	return n->kind == HD_YAML_SCALAR && !hd_num_f64(n->text, 1e-6, 1e6, &to->is.priority, NULL) ? HD_OK :
		bad(r, &n->at, "priority is a number from 1e-6 to 1e6");
}

static enum hd_err read_preempt(const struct partitions_reading *r, const struct hd_yaml_node *n,
	struct listed_partition *to)
{
	to->preempt = n;
	return is_kind(r, n, HD_YAML_SEQ);
}

static enum hd_err read_time(const struct partitions_reading *r, const struct hd_yaml_node *n,
	struct listed_partition *to)
{
	uint64_t ms = 0;

	if (n->kind != HD_YAML_SCALAR || hd_num_duration(n->text, PARTITION_TIME_MS, &ms, NULL) || !ms)
		return bad(r, &n->at, "time is a time, as 90s, 45min, 12h or 3d");
	to->is.time_s = (double)ms / 1e3;
	return HD_OK;
}

/* "accounts" of names as "account NAME" */
static enum hd_err read_admits(const struct partitions_reading *r, const struct hd_yaml_node *n,
	struct listed_partition *to)
{
	enum hd_err err = is_kind(r, n, HD_YAML_SEQ);

	if (!err && !n->first)
		err = bad(r, &n->at, "%s: an empty list admits no user; leave it out to admit all", n->key);
	for (const struct hd_yaml_node *i = err ? NULL : n->first; i && !err; i = i->next) {
		struct hd_text name;
		if (!hd_name_valid(text_of(i)))
			return bad(r, &i->at, "\"%.64s\" is no name of users.yaml", text_of(i));
		if (to->is.nadmits == HD_PARTITION_ADMITS)
			return bad(r, &i->at, "at most %d accounts, groups and users", HD_PARTITION_ADMITS);
		hd_text_init(&name, r->arena);
		hd_text_put(&name, n->key, strlen(n->key) - 1);
		hd_text_addf(&name, " %s", text_of(i));
		if (name.full)
			return hd_fail(r->diag, HD_E_NOMEM, "no memory for %.200s", r->file);
		to->is.admits[to->is.nadmits++] = name.at;
	}
	return err;
}

static const struct { const char *key; enum hd_err (*read)(const struct partitions_reading *,
	const struct hd_yaml_node *, struct listed_partition *); } members[] = {
	{ "devices", read_devices }, { "default", read_default }, { "priority", read_priority },
	{ "preempt", read_preempt }, { "time", read_time }, { "accounts", read_admits },
	{ "groups", read_admits }, { "users", read_admits },
};
enum { NMEMBERS = sizeof members / sizeof *members };

static enum hd_err unknown(const struct partitions_reading *r, const struct hd_yaml_node *n)
{
	struct hd_near near = hd_near_to(n->key);

	for (size_t i = 0; i < NMEMBERS; i++)
		hd_near_offer(&near, members[i].key);
	for (size_t i = 0; i < HD_PARTITION_NMOSTS; i++)
		hd_near_offer(&near, mosts[i]);
	return near.best ? bad(r, &n->key_at, "there is no \"%.64s\" here; did you mean %s?", n->key,
		near.best) : bad(r, &n->key_at, "there is no \"%.64s\" here; docs/scheduling.md has what "
		"there is", n->key);
}

static enum hd_err read_member(const struct partitions_reading *r, const struct hd_yaml_node *n,
	struct listed_partition *to)
{
	uint64_t most = 0;

	for (size_t i = 0; i < NMEMBERS; i++)
		if (!strcmp(n->key, members[i].key))
			return members[i].read(r, n, to);
	for (size_t i = 0; i < HD_PARTITION_NMOSTS; i++)
		if (!strcmp(n->key, mosts[i])) {
			if (n->kind != HD_YAML_SCALAR || hd_num_u64(n->text, 1 << 24, &most, NULL) || !most)
				return bad(r, &n->at, "%s is a count from 1 to %d", n->key, 1 << 24);
			to->is.most[i] = (uint32_t)most;
			return HD_OK;
		}
	return unknown(r, n);
}

static enum hd_err read_one(const struct partitions_reading *r, const struct hd_yaml_node *n,
	struct listed_partition *to)
{
	enum hd_err err = is_kind(r, n, HD_YAML_MAP);

	*to = (struct listed_partition){ .is = { .priority = 1, .preempt_text = "", .is.name = n->key } };
	for (size_t i = 0; i < HD_PARTITION_NMOSTS; i++)
		to->is.most[i] = UINT32_MAX;
	if (!err && (!hd_name_valid(n->key) || strlen(n->key) > HD_PARTITION_NAME))
		return bad(r, &n->key_at, "\"%.64s\" is no name: 1 to %d of A-Z a-z 0-9 . _ -", n->key,
			HD_PARTITION_NAME);
	for (const struct hd_yaml_node *m = err ? NULL : n->first; m && !err; m = m->next)
		err = read_member(r, m, to);
	if (!err && !to->is.is.ndevices)
		err = bad(r, &n->key_at, "partition %s has no devices: devices: [TYPE, TYPE:N, TYPE-NUMBER]",
			n->key);
	if (to->is.most[HD_PARTITION_JOB_DEVICES] <= HD_DISPATCH_SET)
		to->is.is.most = to->is.most[HD_PARTITION_JOB_DEVICES];
	return err;
}

/* ---- all of them ---- */

static int by_priority(const void *a, const void *b)
{
	const struct listed_partition *x = a, *y = b;

	return x->is.priority != y->is.priority ? (x->is.priority < y->is.priority) - (x->is.priority >
		y->is.priority) : (x->at > y->at) - (x->at < y->at);
}

static enum hd_err find_preempted(const struct partitions_reading *r, struct listed_partition *list,
	uint32_t n,
	uint32_t at)
{
	const struct hd_yaml_node *names = list[at].preempt;
	struct hd_text text;

	hd_text_init(&text, r->arena);
	hd_text_add(&text, "");
	for (const struct hd_yaml_node *i = names ? names->first : NULL; i; i = i->next) {
		struct hd_near near = hd_near_to(text_of(i));
		uint32_t of = 0;
		for (; of < n && strcmp(list[of].is.is.name, text_of(i)) != 0; of++)
			hd_near_offer(&near, list[of].is.is.name);
		if (of == n)
			return bad(r, &i->at, "preempt: there is no partition \"%.64s\"%s%s%s", text_of(i),
				near.best ? "; did you mean " : "", near.best ? near.best : "",
				near.best ? "?" : "");
		if (!(list[of].is.priority < list[at].is.priority))
			return bad(r, &i->at, "preempt: %s has priority %g, and %s %g: it takes devices from "
				"partitions of lower priority alone", list[of].is.is.name,
				list[of].is.priority, list[at].is.is.name, list[at].is.priority);
		list[at].is.is.preempts |= UINT64_C(1) << of;
		hd_text_addf(&text, "%s%s", text.len ? "," : "", list[of].is.is.name);
	}
	list[at].is.preempt_text = text.full ? "" : text.at;
	return text.full ? hd_fail(r->diag, HD_E_NOMEM, "no memory for %.200s", r->file) : HD_OK;
}

static enum hd_err take(const struct partitions_reading *r, const struct hd_yaml_node *node,
	struct hd_partitions *to)
{
	struct listed_partition list[HD_DISPATCH_PARTITIONS];
	struct hd_partition_row *of = hd_arena_take(r->arena, HD_DISPATCH_PARTITIONS, sizeof *of);
	enum hd_err err = of ? is_kind(r, node, HD_YAML_MAP) : hd_fail(r->diag, HD_E_NOMEM,
		"no memory for %.200s", r->file);

	if (!err && (!node->nchildren || node->nchildren > HD_DISPATCH_PARTITIONS))
		err = bad(r, &node->at, "%u partitions: 1 to %d", node->nchildren, HD_DISPATCH_PARTITIONS);
	for (const struct hd_yaml_node *n = err ? NULL : node->first; n && !err; n = n->next) {
		struct listed_partition *next = &list[to->n];
		err = read_one(r, n, next);
		for (uint32_t i = 0; i < to->n && !err && next->standard; i++)
			if (list[i].standard)
				err = bad(r, &n->key_at, "%s and %s are both default: one is",
					list[i].is.is.name,
					n->key);
		next->at = to->n++;
	}
	if (!err)
		qsort(list, to->n, sizeof *list, by_priority);
	for (uint32_t i = 0; i < to->n && !err; i++) {
		err = find_preempted(r, list, to->n, i);
		of[i] = list[i].is;
		if (list[i].standard || to->n == 1)
			to->standard = i;
	}
	to->of = of;
	return err;
}

enum hd_err hd_partitions_read(struct hd_partitions *to, const char *name, const char *text, size_t len,
	const struct hd_pools *pools, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct partitions_reading r = { name, pools, arena, diag };
	const struct hd_yaml_node *root = NULL;
	enum hd_err err = hd_yaml_parse(arena, name, text, len, &root, diag);

	*to = (struct hd_partitions){ .standard = HD_PARTITIONS_NONE };
	err = err == HD_E_INVAL ? HD_E_INPUT : err;
	if (!err)
		err = is_kind(&r, root, HD_YAML_MAP);
	if (!err && (root->nchildren != 1 || strcmp(root->first->key, "partitions") != 0))
		err = bad(&r, &root->at, "the file has one table, `partitions`, of partitions by name");
	if (!err)
		err = take(&r, root->first, to);
	if (err)
		*to = (struct hd_partitions){ .standard = HD_PARTITIONS_NONE };
	return err;
}

uint32_t hd_partitions_find(const struct hd_partitions *p, const char *name)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (!strcmp(p->of[i].is.name, name))
			return i;
	return HD_PARTITIONS_NONE;
}

static uint32_t count_of(const struct hd_partition_row *p, const struct hd_pools *pools, uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->is.ndevices; i++)
		n += hd_pools_type(pools, p->is.device[i]) == type;
	return n;
}

bool hd_partition_has(const struct hd_partition_row *p, const struct hd_pools *pools, uint32_t type)
{
	return count_of(p, pools, type) > 0;
}

enum hd_err hd_partitions_whole(const struct hd_partitions *p, const char *name, const struct hd_pools *pools,
	struct hd_diag *diag)
{
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t t = 0; t < pools->ntypes; t++) {
			uint32_t n = count_of(&p->of[i], pools, t);
			if (n && n != pools->type[t].n)
				return hd_fail(diag, HD_E_INPUT, "%.200s: partition %s has %u of %u %s, and "
					"which of these a batch system lends is not known before: list %s, "
					"and limit it by most_devices", name, p->of[i].is.name, n,
					pools->type[t].n, pools->name[t], pools->name[t]);
		}
	return HD_OK;
}

bool hd_partition_admits(const struct hd_partition_row *p, const struct hd_users_limit *limit,
	uint32_t nlimits)
{
	for (uint32_t i = 0; i < p->nadmits; i++)
		for (uint32_t k = 0; k < nlimits; k++)
			if (!strcmp(p->admits[i], limit[k].name))
				return true;
	return !p->nadmits;
}

uint32_t hd_partition_limits(const struct hd_partition_row *p, const char *user,
	struct hd_dispatch_limit limit[2])
{
	const struct { enum hd_partition_most devices, running; } of[] = {
		{ HD_PARTITION_DEVICES, HD_PARTITION_RUNNING },
		{ HD_PARTITION_USER_DEVICES, HD_PARTITION_USER_RUNNING } };
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct hd_dispatch_limit *l = &limit[n];
		*l = (struct hd_dispatch_limit){ .devices = p->most[of[i].devices],
			.running = p->most[of[i].running] };
		if (l->devices == UINT32_MAX && l->running == UINT32_MAX)
			continue;
		if (i)
			snprintf(l->name, sizeof l->name, "user %.64s in partition %.32s", user, p->is.name);
		else
			snprintf(l->name, sizeof l->name, "partition %.32s", p->is.name);
		n++;
	}
	return n;
}
