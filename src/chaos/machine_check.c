#define _GNU_SOURCE
#include "chaos/machine_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHERE = 240 };

struct checking {
	struct hd_machine_script *script;
	const char *file;
	const size_t *line;
	struct hd_diag *diag;
};

/* Where event i stands: "FILE:LINE", or of a trace the file alone. */
static const char *where(const struct checking *c, size_t i, char out[WHERE])
{
	if (c->line)
		(void)snprintf(out, WHERE, "%.160s:%zu", c->file, c->line[i]);
	else
		(void)snprintf(out, WHERE, "%.160s", c->file);
	return out;
}

/* The cloud whose services an event is for; ALL: any. */
static enum hd_metadata_cloud cloud_of(const struct hd_metadata_event *e)
{
	static const struct { enum hd_metadata_do what; enum hd_metadata_cloud cloud; } alone[] = {
		{ HD_METADATA_REBALANCE, HD_CLOUD_EC2 }, { HD_METADATA_EXPIRE, HD_CLOUD_EC2 },
		{ HD_METADATA_MIGRATE, HD_CLOUD_GCE }, { HD_METADATA_MAINTAIN, HD_CLOUD_GCE }, { HD_METADATA_START, HD_CLOUD_AZURE } };

	for (size_t i = 0; i < sizeof alone / sizeof *alone && e->cloud == HD_CLOUD_ALL; i++)
		if (alone[i].what == e->what)
			return alone[i].cloud;
	return e->cloud;
}

static int by_name(const void *a, const void *b, void *script)
{
	const struct hd_metadata_event *at = ((struct hd_machine_script *)script)->at;
	const size_t i = *(const size_t *)a, k = *(const size_t *)b;
	const int order = strcmp(at[i].node, at[k].node);

	return order ? order : (i > k) - (i < k);
}

/* A machine may come while its service fails already; nothing is announced to one that is not there. */
static bool before_it_comes(enum hd_metadata_do what)
{
	return what == HD_METADATA_FAIL || what == HD_METADATA_SILENCE || what == HD_METADATA_HEAL;
}

/* One machine's events, [n] in order: it comes once, then it may go, once. */
static enum hd_err check_life(const struct checking *c, const size_t *of, size_t n)
{
	bool came = false, went = false;
	char at[WHERE];

	for (size_t k = 0; k < n; k++) {
		const struct hd_metadata_event *e = &c->script->at[of[k]];
		if (before_it_comes(e->what) && !went)
			continue;
		if (e->what == HD_METADATA_ADD && came)
			return hd_fail(c->diag, HD_E_INPUT,
				"%s: machine %s was there already; give the new one a name of its own",
				where(c, of[k], at), e->node);
		if (e->what != HD_METADATA_ADD && (!came || went))
			return hd_fail(c->diag, HD_E_INPUT, "%s: machine %s is not there %s",
				where(c, of[k], at), e->node, went ? "any more" : "yet; add it before");
		came = true;
		went |= e->what == HD_METADATA_KILL;
	}
	return came || !n ? HD_OK : hd_fail(c->diag, HD_E_INPUT, "%s: machine %s is never there; add it",
		where(c, of[0], at), c->script->at[of[0]].node);
}

/* Of one machine: the cloud that its events name; its worker asks that one alone. */
static enum hd_err settle_cloud(const struct checking *c, const size_t *of, size_t n)
{
	enum hd_metadata_cloud cloud = HD_CLOUD_ALL;
	char at[WHERE];

	for (size_t k = 0; k < n; k++) {
		const struct hd_metadata_event *e = &c->script->at[of[k]];
		const enum hd_metadata_cloud its = cloud_of(e);
		if ((hd_metadata_of_machine(e->what) && c->line) || its == HD_CLOUD_ALL)
			continue;
		if (cloud != HD_CLOUD_ALL && its != cloud)
			return hd_fail(c->diag, HD_E_INPUT,
				"%s: machine %s has \"%s\" from %s, and was of %s before: a machine "
				"is of one cloud", where(c, of[k], at), e->node, hd_metadata_do_name(e->what),
				hd_metadata_cloud_name(its), hd_metadata_cloud_name(cloud));
		cloud = its;
	}
	for (size_t k = 0; k < n; k++)
		if (c->script->at[of[k]].what == HD_METADATA_ADD)
			c->script->at[of[k]].cloud = cloud == HD_CLOUD_ALL ? HD_CLOUD_EC2 : cloud;
	return HD_OK;
}

static enum hd_err check_each(const struct checking *c, size_t *order)
{
	const size_t n = c->script->n;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	if (n)
		qsort_r(order, n, sizeof *order, by_name, c->script);
	for (size_t i = 0, k; i < n && !err; i = k) {
		for (k = i + 1; k < n && !strcmp(c->script->at[order[k]].node, c->script->at[order[i]].node);)
			k++;
		err = check_life(c, order + i, k - i);
		err = err ? err : settle_cloud(c, order + i, k - i);
	}
	return err;
}

static enum hd_err count(const struct checking *c)
{
	char at[WHERE];
	size_t there = 0, came = 0;

	for (size_t i = 0; i < c->script->n; i++) {
		const struct hd_metadata_event *e = &c->script->at[i];
		came += e->what == HD_METADATA_ADD;
		there += e->what == HD_METADATA_ADD;
		there -= e->what == HD_METADATA_KILL;
		if (there > HD_MACHINES_MOST)
			return hd_fail(c->diag, HD_E_INPUT,
				"%s: machine %s is one more than the %d that can be there at once",
				where(c, i, at), e->node, HD_MACHINES_MOST);
	}
	return came ? HD_OK : hd_fail(c->diag, HD_E_INPUT,
		"%s: no machine ever comes, so nothing can be played", c->file);
}

enum hd_err hd_machine_script_check(struct hd_machine_script *script, const char *file, const size_t *line,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct checking c = { .script = script, .file = file, .line = line, .diag = diag };
	size_t *order = hd_arena_take(arena, script->n + 1, sizeof *order);
	enum hd_err err = order ? check_each(&c, order) : hd_fail(diag, HD_E_NOMEM,
		"no memory for %zu events of machines", script->n);

	return err ? err : count(&c);
}
