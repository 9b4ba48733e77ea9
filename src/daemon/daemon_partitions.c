#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/near.h"
#include "daemon/daemon_int.h"
#include "daemon/partitions.h"

/* Partitions of this scheduler: the file as it was read last, whose jobs they are, what is shown of them. */

struct daemon_partitions {
	struct hd_partitions now;
	struct hd_dispatch_partition is[HD_DISPATCH_PARTITIONS];
	struct hd_arena arena;
	struct hd_stat seen;              /* of the file, good or bad */
	bool gone;                        /* the file, since it was seen */
	char wrong[300];                  /* what is wrong with the file since; "": nothing */
};

static enum hd_err read_file(const struct hd_daemon *d, struct hd_partitions *to, struct hd_arena *arena,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	snprintf(path, sizeof path, "%s/" HD_PARTITIONS_FILE, d->spec->dir);
	enum hd_err err = hd_file_read_all(d->fs, path, arena, HD_PARTITIONS_BYTES, &bytes, &len, diag);
	if (!err)
		err = hd_partitions_read(to, path, (const char *)bytes, len, d->spec->pools, arena, diag);
	if (!err && d->spec->pilots)
		err = hd_partitions_whole(to, path, d->spec->pools, diag);
	for (uint32_t i = 0; i < to->n && !err && !d->users; i++)
		if (to->of[i].nadmits)
			err = hd_fail(diag, HD_E_INPUT, "%.200s: partition %s is for %s, and there is no "
				HD_USERS_FILE " that says so of users", path, to->of[i].is.name,
				to->of[i].admits[0]);
	return err;
}

static bool look(const struct hd_daemon *d, struct hd_stat *stat)
{
	char path[HD_PATH_CAP];

	snprintf(path, sizeof path, "%s/" HD_PARTITIONS_FILE, d->spec->dir);
	return !hd_fs_stat(d->fs, path, stat, NULL);
}

static void swap_in(struct daemon_partitions *p, const struct hd_partitions *now)
{
	p->now = *now;
	for (uint32_t i = 0; i < now->n; i++)
		p->is[i] = now->of[i].is;
}

enum hd_err daemon_open_partitions(struct hd_daemon *d, struct hd_diag *diag)
{
	struct daemon_partitions *p = hd_alloc(sizeof *p);
	struct hd_partitions now;
	char text[80];

	if (!p)
		return hd_fail(diag, HD_E_NOMEM, "no memory for partitions");
	*p = (struct daemon_partitions){ .now.standard = HD_PARTITIONS_NONE };
	hd_arena_init(&p->arena, 0);
	d->partitions = p;
	if (!look(d, &p->seen))
		return HD_OK;
	enum hd_err err = read_file(d, &now, &p->arena, diag);
	if (err)
		return err;
	swap_in(p, &now);
	snprintf(text, sizeof text, "%u partitions of " HD_PARTITIONS_FILE, now.n);
	daemon_log(d, "partitions", 0, text);
	return HD_OK;
}

void daemon_close_partitions(struct hd_daemon *d)
{
	if (!d->partitions)
		return;
	hd_arena_finish(&d->partitions->arena);
	hd_free(d->partitions);
	d->partitions = NULL;
}

static void say_wrong(struct hd_daemon *d, const char *why)
{
	struct daemon_partitions *p = d->partitions;

	snprintf(p->wrong, sizeof p->wrong, "%.200s; the partitions of before stay until it is mended", why);
	daemon_note(d, "partitions", 0, p->wrong);
}

/* They are in the machine: it begins again from the store, as with other users; jobs go on. */
void daemon_look_at_partitions(struct hd_daemon *d)
{
	struct daemon_partitions *p = d->partitions;
	const struct hd_partitions was = p->now;
	struct hd_dispatch *made = NULL;
	struct hd_diag diag = { "" };
	struct hd_partitions now;
	struct hd_arena arena;
	struct hd_stat stat;
	char text[80];

	if (!look(d, &stat)) {
		if (p->now.n && !p->gone)
			say_wrong(d, HD_PARTITIONS_FILE " is gone");
		p->gone = true;
		return;
	}
	if (!p->gone && stat.inode == p->seen.inode && stat.size_bytes == p->seen.size_bytes &&
		stat.changed_wall_ns == p->seen.changed_wall_ns)
		return;
	p->gone = false;
	p->seen = stat;
	hd_arena_init(&arena, 0);
	enum hd_err err = read_file(d, &now, &arena, &diag);
	if (!err) {
		swap_in(p, &now);
		err = daemon_make_dispatch(d, d->policy, &made, &diag);
	}
	if (err) {
		swap_in(p, &was);
		hd_arena_finish(&arena);
		say_wrong(d, diag.text);
		return;
	}
	hd_arena_finish(&p->arena);
	p->arena = arena;
	p->wrong[0] = '\0';
	daemon_begin_again(d, made, d->policy);
	snprintf(text, sizeof text, "read again: %u partitions", now.n);
	daemon_note(d, "partitions", 0, text);
}

void daemon_set_partitions(const struct hd_daemon *d, struct hd_dispatch_setting *set)
{
	set->npartitions = d->partitions->now.n;
	set->partition = d->partitions->is;
}

/* ---- jobs ---- */

/* One from before there were any is of the default, or of the last. */
static const struct hd_partition_row *of_card(const struct hd_daemon *d, const struct hd_jobs_card *card)
{
	const struct hd_partitions *now = &d->partitions->now;
	uint32_t at = card->partition[0] ? hd_partitions_find(now, card->partition) :
		now->standard != HD_PARTITIONS_NONE ? now->standard : now->n - 1;

	return now->n && at != HD_PARTITIONS_NONE ? &now->of[at] : NULL;
}

const char *daemon_partition_of(const struct hd_daemon *d, const struct hd_jobs_card *card)
{
	const struct hd_partition_row *p = of_card(d, card);

	return p ? p->is.name : d->partitions->now.n ? card->partition : "";
}

enum hd_err daemon_put_in_partition(const struct hd_daemon *d, const struct hd_jobs_card *card,
	struct hd_dispatch_job *row, struct hd_diag *diag)
{
	const struct hd_partition_row *p = of_card(d, card);

	row->partition[0] = '\0';
	if (!d->partitions->now.n)
		return HD_OK;
	if (!p)
		return hd_fail(diag, HD_E_INVAL, "job %llu (%s) is of partition %s, which " HD_PARTITIONS_FILE
			" has not any more: put it back until the job is over", (unsigned long long)row->id,
			card->name, card->partition);
	snprintf(row->partition, sizeof row->partition, "%s", p->is.name);
	uint32_t n = HD_DISPATCH_LIMITS - row->nlimits;
	struct hd_dispatch_limit limit[2];
	uint32_t has = hd_partition_limits(p, card->user, limit);
	for (uint32_t i = 0; i < has && i < n; i++)
		row->limit[row->nlimits++] = limit[i];
	return HD_OK;
}

static enum hd_err no_partition(const struct hd_partitions *now, const char *name, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);
	char all[HD_DISPATCH_PARTITIONS * (HD_PARTITION_NAME + 2)] = "";
	struct hd_text text;

	hd_text_fixed(&text, all, sizeof all);
	hd_text_add(&text, "");
	for (uint32_t i = 0; i < now->n; i++) {
		hd_near_offer(&near, now->of[i].is.name);
		hd_text_addf(&text, "%s%s", i ? ", " : "", now->of[i].is.name);
	}
	if (!now->n)
		return hd_fail(diag, HD_E_INVAL, "this scheduler has no partitions: leave \"%.64s\" out",
			name);
	if (!*name)
		return hd_fail(diag, HD_E_INVAL,
			"which partition? there are: %.200s, and none is the default",
			all);
	if (near.best)
		return hd_fail(diag, HD_E_INVAL, "there is no partition \"%.64s\"; did you mean %s?", name,
			near.best);
	return hd_fail(diag, HD_E_INVAL, "there is no partition \"%.64s\"; there are: %.200s", name, all);
}

uint32_t daemon_partition_number(const struct hd_daemon *d, const struct hd_dispatch_job *row)
{
	uint32_t at = hd_partitions_find(&d->partitions->now, row->partition);

	return at == HD_PARTITIONS_NONE ? 0 : at;
}

bool daemon_partition_has(const struct hd_daemon *d, const struct hd_dispatch_job *row, uint32_t type)
{
	const struct hd_partitions *now = &d->partitions->now;
	uint32_t at = hd_partitions_find(now, row->partition);

	return at == HD_PARTITIONS_NONE ? !now->n : hd_partition_has(&now->of[at], d->spec->pools, type);
}

enum hd_err daemon_check_partition_devices(const struct hd_daemon *d, const struct hd_jobs_card *card,
	const struct hd_dispatch_job *row, struct hd_diag *diag)
{
	static const char *const whose[HD_PARTITION_NMOSTS] = { [HD_PARTITION_JOB_DEVICES] = "a job",
		[HD_PARTITION_DEVICES] = "all jobs together", [HD_PARTITION_USER_DEVICES] =
		"the jobs of a user" };
	const struct hd_partition_row *p = of_card(d, card);
	uint32_t wants = row->scale > row->min ? row->scale : row->min;

	for (uint32_t i = 0; p && i < HD_PARTITION_NMOSTS; i++)
		if (whose[i] && wants > p->most[i])
			return hd_fail(diag, HD_E_INVAL, "PARTITION: it wants %u devices at once, and %s may "
				"have %u in %s", wants, whose[i], p->most[i], p->is.name);
	return HD_OK;
}

enum hd_err daemon_check_partition(const struct hd_daemon *d, const struct hd_jobs_card *card,
	struct hd_dispatch_job *row, struct hd_diag *diag)
{
	const struct hd_partition_row *p = of_card(d, card);
	struct hd_users_limit limit[HD_USERS_LIMITS];
	bool owner = false;
	uint32_t n = p ? daemon_limits_of(d, card, limit, &owner) : 0;

	if (!d->partitions->now.n)
		return HD_OK;
	if (!p)
		return no_partition(&d->partitions->now, card->partition, diag);
	if (!owner && !hd_partition_admits(p, limit, n))
		return hd_fail(diag, HD_E_INVAL, "PARTITION: %s is for %s%s, and %.64s is none of these",
			p->is.name, p->admits[0], p->nadmits > 1 ? " and others" : "", card->user);
	if (p->time_s > 0 && row->terms.limit_s > p->time_s)
		return hd_fail(diag, HD_E_INVAL, "PARTITION: a job of %s runs for at most %g s, and this one "
			"asks for %g", p->is.name, p->time_s, row->terms.limit_s);
	if (p->time_s > 0 && !(row->terms.limit_s > 0))
		row->terms.limit_s = p->time_s;
	return daemon_check_partition_devices(d, card, row, diag);
}

enum hd_err daemon_read_partition(const struct hd_daemon *d, const struct hd_json *ask,
	struct hd_jobs_card *card, struct hd_diag *diag)
{
	const struct hd_partitions *now = &d->partitions->now;
	const char *name = "";
	enum hd_err err = hd_json_find(ask, "partition") ? hd_json_get_text(ask, "partition", &name, diag) :
		HD_OK;

	if (err || (!now->n && !*name))
		return err;
	uint32_t at = *name ? hd_partitions_find(now, name) : now->standard;
	if (at == HD_PARTITIONS_NONE)
		return no_partition(now, name, diag);
	snprintf(card->partition, sizeof card->partition, "%s", now->of[at].is.name);
	return HD_OK;
}

/* ---- shown ---- */

const char *daemon_partitions_wrong(const struct hd_daemon *d) { return d->partitions->wrong; }

static void put_limit(struct hd_text *text, const char *fmt, uint32_t most)
{
	if (most != UINT32_MAX)
		hd_text_addf(text, fmt, text->len ? "; " : "", most);
}

static void limits_text(const struct hd_partition_row *p, struct hd_text *text)
{
	if (p->time_s > 0)
		hd_text_addf(text, "%g s", p->time_s);
	put_limit(text, "%s%u devices a job", p->most[HD_PARTITION_JOB_DEVICES]);
	put_limit(text, "%s%u devices", p->most[HD_PARTITION_DEVICES]);
	put_limit(text, "%s%u jobs", p->most[HD_PARTITION_RUNNING]);
	put_limit(text, "%s%u devices a user", p->most[HD_PARTITION_USER_DEVICES]);
	put_limit(text, "%s%u jobs a user", p->most[HD_PARTITION_USER_RUNNING]);
	for (uint32_t i = 0; i < p->nadmits; i++)
		hd_text_addf(text, "%s%s", i ? ", " : text->len ? "; for " : "for ", p->admits[i]);
}

void daemon_fill_partitions(void *user, struct hd_json_writer *w)
{
	const struct hd_daemon *d = user;
	const struct hd_partitions *now = &d->partitions->now;

	for (uint32_t i = 0; i < now->n; i++) {
		const struct hd_partition_row *p = &now->of[i];
		char room[1024] = "";
		struct hd_text limits;
		struct hd_answer_partition is = { .name = p->is.name, .standard = now->standard == i,
			.priority = p->priority, .preempt = p->preempt_text, .devices = p->is.ndevices };
		hd_text_fixed(&limits, room, sizeof room);
		limits_text(p, &limits);
		is.limits = room;
		for (uint32_t k = 0; k < p->is.ndevices; k++) {
			struct hd_dispatch_device v = hd_dispatch_device(d->dispatch, p->is.device[k]);
			const struct hd_dispatch_job *by = v.job ? hd_dispatch_job(d->dispatch, v.job) : NULL;
			is.busy += by && !strcmp(by->partition, p->is.name);
			is.free += !v.job && v.usable && !v.window;
		}
		for (uint32_t k = 0; k < hd_dispatch_njobs(d->dispatch); k++) {
			uint64_t id = hd_dispatch_nth(d->dispatch, k);
			const struct hd_dispatch_job *row = hd_dispatch_job(d->dispatch, id);
			if (strcmp(row->partition, p->is.name) != 0 || row->state != HD_DISPATCH_OPEN)
				continue;
			is.running += hd_dispatch_lease(d->dispatch, id) != NULL;
			is.waiting += !hd_dispatch_lease(d->dispatch, id);
		}
		hd_fields_put_object(&hd_answer_partition_fields, 0, &is, NULL, w);
	}
}
