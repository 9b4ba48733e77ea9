#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "scheduler/dispatch/int.h"

/* Rule 17: partitions. Each has rounds of its own, which know the devices of others as out of service. */

static enum hd_err open_rounds(const struct hd_dispatch *d, struct live_part *p, struct hd_diag *diag)
{
	struct hd_rounds_setting set = { .fidelity = HD_FIDELITY_EXACT, .round_s = d->set.round_s,
		.min_reset_s = d->set.min_reset_s,
		.kappa = d->set.kappa, .queue = d->policy_set.policy->powers & HD_POLICY_QUEUE,
		.blind = d->policy_set.variant == HD_VARIANT_PLAIN,
		.steady = d->policy_set.policy->powers & HD_POLICY_STEADY, .seed = d->policy_set.seed };

	for (uint32_t t = 0; t < d->set.ntypes; t++)
		p->sched[t] = (struct hd_sched_type){ .name = d->type[t].name, .n = d->type[t].n,
			.price_usd_h = d->type[t].price_usd_h };
	enum hd_err err = hd_rounds_create(&p->rounds, &set, d->set.ntypes, p->sched, NULL, diag);
	for (uint32_t v = 0; v < d->ndevices && !err; v++)
		if (!p->has[v]) {
			p->sched[d->device[v].type].n--;
			hd_rounds_device(p->rounds, v, false);
		}
	return err;
}

static enum hd_err take(const struct hd_dispatch *d, const struct hd_dispatch_partition *from,
	struct live_part *p, struct hd_diag *diag)
{
	uint32_t at = (uint32_t)(p - d->part);

	if (dispatch_part_named(d, from->name) < at || !from->name[0] ||
		strlen(from->name) > HD_PARTITION_NAME)
		return hd_fail(diag, HD_E_INVAL, "partition \"%.64s\": names are different, and of 1 to %d "
			"bytes", from->name, HD_PARTITION_NAME);
	if (from->preempts & ((UINT64_C(2) << at) - 1) || from->preempts >> d->nparts)
		return hd_fail(diag, HD_E_INVAL, "partition %.64s takes devices from one that goes first",
			from->name);
	for (uint32_t i = 0; i < from->ndevices; i++) {
		if (from->device[i] >= d->ndevices)
			return hd_fail(diag, HD_E_INVAL, "partition %.64s has device %u, and there are %u",
				from->name, from->device[i], d->ndevices);
		p->has[from->device[i]] = true;
	}
	memcpy(p->name, from->name, strlen(from->name) + 1);
	p->most = from->most ? from->most : UINT32_MAX;
	p->preempts = from->preempts;
	return HD_OK;
}

enum hd_err dispatch_open_parts(struct hd_dispatch *d, struct hd_diag *diag)
{
	uint32_t n = d->set.npartitions ? d->set.npartitions : 1;
	enum hd_err err = HD_OK;

	if (n > HD_DISPATCH_PARTITIONS)
		return hd_fail(diag, HD_E_INVAL, "%u partitions: at most %d", n, HD_DISPATCH_PARTITIONS);
	d->part = hd_alloc(n * sizeof *d->part);
	if (!d->part)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u partitions", n);
	memset(d->part, 0, n * sizeof *d->part);
	for (d->nparts = n; n-- > 0;)
		hd_arena_init(&d->part[n].call, dispatch_policy_bytes(d));
	for (uint32_t i = 0; i < d->nparts && !err; i++) {
		struct live_part *p = &d->part[i];
		p->most = UINT32_MAX;
		p->has = hd_alloc(2 * (d->ndevices + 1u) * sizeof *p->has);
		if (!p->has)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u devices", d->ndevices);
		p->open = p->has + d->ndevices;
		memset(p->has, !d->set.npartitions, 2 * d->ndevices * sizeof *p->has);
		if (d->set.npartitions)
			err = take(d, &d->set.partition[i], p, diag);
		memcpy(p->open, p->has, d->ndevices * sizeof *p->has);
		if (!err)
			err = open_rounds(d, p, diag);
	}
	return err;
}

void dispatch_close_parts(struct hd_dispatch *d)
{
	for (uint32_t i = 0; i < d->nparts; i++) {
		hd_rounds_destroy(d->part[i].rounds);
		hd_arena_finish(&d->part[i].call);
		hd_free(d->part[i].has);
	}
	hd_free(d->part);
}

/* ---- the log ---- */

void dispatch_put_parts(const struct hd_dispatch *d, struct hd_json_writer *w)
{
	if (!d->set.npartitions)
		return;
	hd_json_open_array(w, "partitions");
	for (uint32_t i = 0; i < d->nparts; i++) {
		const struct live_part *p = &d->part[i];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "name", p->name);
		hd_json_put_i64(w, "most", p->most == UINT32_MAX ? 0 : p->most);
		hd_json_put_i64(w, "preempts", (int64_t)p->preempts);
		hd_json_open_array(w, "device");
		for (uint32_t v = 0; v < d->ndevices; v++)
			if (p->has[v])
				hd_json_put_i64(w, NULL, v);
		hd_json_close(w);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static enum hd_err read_part(const struct hd_json *json, struct hd_arena *arena,
	struct hd_dispatch_partition *p, struct hd_diag *diag)
{
	const struct hd_json *devices = NULL;
	int64_t most = 0, preempts = 0, v = 0;
	uint32_t *device = NULL;
	enum hd_err err = hd_json_get_text(json, "name", &p->name, diag);

	if (!err)
		err = hd_json_get_i64(json, "most", 0, HD_DISPATCH_SET, &most, diag);
	if (!err)
		err = hd_json_get_i64(json, "preempts", 0, UINT32_MAX, &preempts, diag);
	if (!err)
		err = hd_json_get(json, "device", HD_JSON_ARRAY, &devices, diag);
	if (!err && !(device = hd_arena_take(arena, hd_json_count(devices) + 1, sizeof *device)))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a partition");
	for (size_t i = 0; !err && i < hd_json_count(devices); i++) {
		err = hd_json_as_i64(hd_json_item(devices, i), 0, UINT32_MAX, &v, diag);
		device[p->ndevices++] = (uint32_t)v;
	}
	p->most = (uint32_t)most;
	p->preempts = (uint64_t)preempts;
	p->device = device;
	return err;
}

enum hd_err dispatch_read_parts(const struct hd_json *json, struct hd_arena *arena,
	struct hd_dispatch_setting *set, struct hd_diag *diag)
{
	struct hd_dispatch_partition *p = NULL;
	enum hd_err err = hd_json_as(json, HD_JSON_ARRAY, diag);

	if (!err && hd_json_count(json) > HD_DISPATCH_PARTITIONS)
		err = hd_fail(diag, HD_E_INPUT, "the log has more than %d partitions",
			HD_DISPATCH_PARTITIONS);
	if (!err && !(p = hd_arena_take(arena, HD_DISPATCH_PARTITIONS, sizeof *p)))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for partitions");
	for (size_t i = 0; !err && i < hd_json_count(json); i++)
		err = read_part(hd_json_item(json, i), arena, &p[set->npartitions++], diag);
	set->partition = p;
	return err;
}

/* ---- names ---- */

uint32_t dispatch_part_named(const struct hd_dispatch *d, const char *name)
{
	uint32_t i = 0;

	while (i < d->nparts && strcmp(d->part[i].name, name) != 0)
		i++;
	return i;
}

struct part_text dispatch_part_text(const struct live_part *p)
{
	struct part_text text = { "" };

	if (p->name[0])
		snprintf(text.text, sizeof text.text, "partition %s: ", p->name);
	return text;
}

uint32_t dispatch_most(const struct live_part *p, const struct hd_dispatch_job *row)
{
	uint32_t quota = dispatch_quota_most(row);

	return quota < p->most ? quota : p->most;
}

/* ---- which devices are whose ---- */

static void close_all(struct live_part *p, const uint32_t *device, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		p->open[device[i]] = false;
}

/* What jobs of others are meant to have is theirs, but for those behind it that it preempts. What the jobs of
 * a reservation have is kept from all others by its window. */
bool dispatch_claim(struct hd_dispatch *d, struct live_part *p)
{
	uint32_t at = (uint32_t)(p - d->part);
	bool moved = false;

	if (d->nparts == 1)
		return false;
	memcpy(p->open, p->has, d->ndevices * sizeof *p->has);
	for (uint32_t i = 0; i < d->njobs; i++) {
		const struct live *j = d->job[i];
		if (j->part == at || (p->preempts >> j->part & 1))
			continue;
		close_all(p, j->target, j->ntarget);
	}
	for (uint32_t v = 0; v < d->ndevices; v++)
		moved |= dispatch_tell_device(d, p, v);
	return moved;
}

/* Of a type its partition has enough for it, but for those that other partitions have now. */
bool dispatch_part_why(const struct hd_dispatch *d, const struct live *j, struct hd_dispatch_why *why)
{
	const struct live_part *p = dispatch_part(d, j);
	uint32_t need = dispatch_least(d, &j->row);
	uint32_t type = d->set.ntypes, elsewhere = 0;

	for (uint32_t t = 0; t < d->set.ntypes && d->nparts > 1; t++) {
		uint32_t open = 0, closed = 0;
		if (!(j->row.rate[t].steps_s > 0))
			continue;
		for (uint32_t v = d->first_device[t]; v < d->first_device[t + 1]; v++) {
			bool usable = p->has[v] && d->device[v].usable && !d->device[v].window;
			open += usable && p->open[v];
			closed += usable && !p->open[v];
		}
		if (open >= need)
			return false;
		if (open + closed >= need && type == d->set.ntypes) {
			type = t;
			elsewhere = closed;
		}
	}
	if (type == d->set.ntypes)
		return false;
	snprintf(why->text, sizeof why->text,
		"partition %s has %u devices of %s, and jobs of other partitions "
		"have %u of these now: it needs %u", p->name, p->sched[type].n, d->type[type].name, elsewhere,
		need);
	return true;
}
