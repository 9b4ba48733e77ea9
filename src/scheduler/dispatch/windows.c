#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "scheduler/dispatch/int.h"

/* Rule 16: devices that are kept from jobs for a time. The rounds know such a device as out of service; a
 * reservation's jobs leave the rounds for its devices, and come back. */

/* Others leave so long before, that it is free when it begins. */
static double vacated_s(const struct hd_dispatch *d, const struct live_window *w)
{
	return w->is.from_s - d->set.drain_s;
}

static bool is_in_force(const struct hd_dispatch *d, const struct live_window *w)
{
	return d->now_s >= vacated_s(d, w) && d->now_s < w->is.until_s;
}

static const struct live_window *find(const struct hd_dispatch *d, uint32_t id)
{
	for (uint32_t i = 0; i < d->nwindows && id; i++)
		if (d->window[i].id == id)
			return &d->window[i];
	return NULL;
}

static uint32_t place_of(const struct hd_dispatch *d, const char *name)
{
	uint32_t i = 0;

	while (i < d->nwindows && strcmp(d->window[i].is.name, name) != 0)
		i++;
	return i;
}

bool dispatch_may_use(const struct hd_dispatch *d, const struct live *j, uint32_t device)
{
	const struct device *v = &d->device[device];
	const struct live_part *p = dispatch_part(d, j);

	return v->usable && (v->window ? v->window == j->window && p->has[device] : p->open[device]);
}

/* The rounds hear of it when that is news. */
bool dispatch_tell_device(struct hd_dispatch *d, struct live_part *p, uint32_t device)
{
	const struct device *v = &d->device[device];
	bool usable = v->usable && !v->window && p->open[device];

	if (hd_rounds_device_usable(p->rounds, device) == usable)
		return false;
	hd_rounds_device(p->rounds, device, usable);
	d->freed = true;
	return true;
}

void dispatch_tell_device_of_all(struct hd_dispatch *d, uint32_t device)
{
	for (uint32_t i = 0; i < d->nparts; i++)
		(void)dispatch_tell_device(d, &d->part[i], device);
}

static void keep_devices(struct hd_dispatch *d)
{
	for (uint32_t v = 0; v < d->ndevices; v++) {
		const struct live_window *by = NULL;
		for (uint32_t i = 0; i < d->nwindows; i++) {
			const struct live_window *w = &d->window[i];
			if (is_in_force(d, w) && (!by || by->is.kind == HD_WINDOW_RESERVED) &&
				hd_window_has(&w->is, v))
				by = w;
		}
		d->decided |= d->device[v].window != (by ? by->id : 0);
		d->device[v].window = by ? by->id : 0;
		dispatch_tell_device_of_all(d, v);
	}
}

static enum hd_err drop(struct hd_dispatch *d, uint32_t at, const char *said)
{
	char name[HD_WINDOW_NAME + 1];

	snprintf(name, sizeof name, "%s", d->window[at].is.name);
	memmove(&d->window[at], &d->window[at + 1], (--d->nwindows - at) * sizeof *d->window);
	d->kept = true;
	return dispatch_note(d, 0, "window", "%s %s", name, said);
}

static enum hd_err add(struct hd_dispatch *d, const struct hd_kept *window, struct hd_diag *diag)
{
	enum hd_err err = hd_window_check(window, d->ndevices, diag);
	char until[40] = "it is taken back";

	if (!err && d->nwindows == HD_DISPATCH_WINDOWS)
		err = hd_fail(diag, HD_E_INVAL, "there are %d windows, as many as may be",
			HD_DISPATCH_WINDOWS);
	for (uint32_t i = 0; i < d->nwindows && !err && window->kind != HD_WINDOW_DRAIN; i++) {
		const struct hd_kept *other = &d->window[i].is;
		if (other->kind == HD_WINDOW_DRAIN || other->from_s >= window->until_s ||
			window->from_s >= other->until_s)
			continue;
		for (uint32_t k = 0; k < window->ndevices && !err; k++)
			if (hd_window_has(other, window->device[k]))
				err = hd_fail(diag, HD_E_INVAL, "%s has device %u at that time: choose other "
					"devices or another time", other->name, window->device[k]);
	}
	if (!err)
		err = hd_grow(&d->window, &d->windows_cap, (uint64_t)d->nwindows + 1, sizeof *d->window,
			"windows", diag);
	if (err)
		return err;
	d->window[d->nwindows++] = (struct live_window){ *window, ++d->last_window, d->now_s };
	d->kept = true;
	if (isfinite(window->until_s))
		snprintf(until, sizeof until, "%.1f s", window->until_s);
	return d->open ? dispatch_note(d, 0, "window", "%s: %s of %u device%s from %.1f s until %s%s%s",
		window->name, hd_window_name(window->kind), window->ndevices,
		window->ndevices == 1 ? "" : "s", window->from_s, until,
		window->reason[0] ? ": " : "", window->reason) : HD_OK;
}

enum hd_err dispatch_on_window(struct hd_dispatch *d, const struct hd_dispatch_event *e, struct hd_diag *diag)
{
	if (!e->window)
		return hd_fail(diag, HD_E_INVAL, "a window that is none");
	uint32_t at = place_of(d, e->window->name);

	if (e->ok)
		return at == d->nwindows ? add(d, e->window, diag) : hd_fail(diag, HD_E_INVAL,
			"there is a window %s: take it back first, or choose another name", e->window->name);
	return at < d->nwindows ? drop(d, at, "was taken back") : hd_fail(diag, HD_E_NOTFOUND,
		"there is no window %s", e->window->name);
}

/* ---- reservations ---- */

static bool is_for(const struct live_window *w, const struct live *j)
{
	if (w->is.user[0])
		return !strcmp(w->is.user, j->row.user);
	for (uint32_t i = 0; i < j->row.nwithin; i++)
		if (!strcmp(w->is.account, j->row.within[i].name))
			return true;
	return !strcmp(w->is.account, j->row.entity.name);
}

/* Devices of the window and type that none of its jobs was given yet; best: how many of them it has. */
static uint32_t left_of(const struct hd_dispatch *d, const struct live_window *w, const struct live *j,
	uint32_t type, uint32_t *has)
{
	uint32_t n = 0;

	*has = 0;
	for (uint32_t i = 0; i < w->is.ndevices; i++) {
		const struct device *v = &d->device[w->is.device[i]];
		if (v->type != type || v->window != w->id || !v->usable || v->placed ||
			!dispatch_part(d, j)->has[w->is.device[i]])
			continue;
		n++;
		*has += dispatch_holds(j, w->is.device[i]);
	}
	return n;
}

/* The type where it holds most of them, then the fastest; ntypes: none has enough. */
static uint32_t choose(const struct hd_dispatch *d, const struct live_window *w, const struct live *j)
{
	uint32_t best = d->set.ntypes, most = 0, has;

	for (uint32_t t = 0; t < d->set.ntypes; t++) {
		if (!(j->row.rate[t].steps_s > 0) || left_of(d, w, j, t, &has) < j->row.scale)
			continue;
		if (best < d->set.ntypes && (has < most || (has == most &&
			j->row.rate[t].steps_s <= j->row.rate[best].steps_s)))
			continue;
		best = t;
		most = has;
	}
	return best;
}

static bool has_room(const struct hd_dispatch *d, const struct live_window *w, const struct live *j)
{
	return choose(d, w, j) < d->set.ntypes;
}

/* What it holds first, then what is free, then what is being left. */
static int rank(const struct hd_dispatch *d, const struct live *j, uint32_t device)
{
	return dispatch_holds(j, device) || dispatch_wants(j, device) ? 0 :
		!d->device[device].job && !d->device[device].there ? 1 : 2;
}

static void aim(struct hd_dispatch *d, const struct live_window *w, struct live *j)
{
	uint32_t type = choose(d, w, j), n = 0, target[HD_DISPATCH_SET];

	for (int r = 0; r < 3; r++)
		for (uint32_t i = 0; i < w->is.ndevices && n < j->row.scale; i++) {
			struct device *v = &d->device[w->is.device[i]];
			if (v->type != type || v->window != w->id || !v->usable || v->placed ||
				!dispatch_part(d, j)->has[w->is.device[i]] ||
				rank(d, j, w->is.device[i]) != r)
				continue;
			v->placed = true;
			uint32_t at = n++;
			for (; at && target[at - 1] > w->is.device[i]; at--)
				target[at] = target[at - 1];
			target[at] = w->is.device[i];
		}
	d->decided |= n != j->ntarget || memcmp(target, j->target, n * sizeof *target);
	j->ntarget = n;
	memcpy(j->target, target, n * sizeof *target);
}

static enum hd_err back_to_rounds(struct hd_dispatch *d, struct live *j, struct hd_diag *diag)
{
	j->window = 0;
	j->ntarget = 0;
	j->in_rounds = d->came = d->decided = true;
	return dispatch_arrive(d, j, diag);
}

static void out_of_rounds(struct hd_dispatch *d, struct live *j, uint32_t window)
{
	if (j->in_rounds)
		hd_rounds_leave(dispatch_part(d, j)->rounds, j->row.id);
	j->run.nmembers = 0;
	j->in_rounds = false;
	j->window = window;
	d->freed = d->decided = true;
}

static enum hd_err place(struct hd_dispatch *d, struct live *j, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < d->nwindows; i++) {
		const struct live_window *w = &d->window[i];
		if (w->is.kind != HD_WINDOW_RESERVED || !is_in_force(d, w) || !is_for(w, j) ||
			!has_room(d, w, j))
			continue;
		if (j->window != w->id)
			out_of_rounds(d, j, w->id);
		aim(d, w, j);
		return HD_OK;
	}
	return j->window ? back_to_rounds(d, j, diag) : HD_OK;
}

/* First come, first served: in the order of ids. */
static enum hd_err place_reserved(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool any = false;

	for (uint32_t v = 0; v < d->ndevices; v++)
		d->device[v].placed = false;
	for (uint32_t i = 0; i < d->nwindows; i++)
		any |= d->window[i].is.kind == HD_WINDOW_RESERVED && is_in_force(d, &d->window[i]);
	for (uint32_t i = 0; i < d->njobs && !err; i++)
		if (d->job[i]->admitted && (any || d->job[i]->window))
			err = place(d, d->job[i], diag);
	return err;
}

enum hd_err dispatch_windows(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = d->nwindows; i-- > 0 && !err;)
		if (d->now_s >= d->window[i].is.until_s)
			err = drop(d, i, "is over");
	if (d->nwindows || d->kept)
		keep_devices(d);
	if (!err && (d->nwindows || d->kept))
		err = place_reserved(d, diag);
	d->kept = false;
	return err;
}

double dispatch_windows_s(const struct hd_dispatch *d)
{
	double next = INFINITY;

	for (uint32_t i = 0; i < d->nwindows; i++) {
		const struct live_window *w = &d->window[i];
		const double edge[] = { vacated_s(d, w), fmax(w->is.from_s, w->came_s + d->set.drain_s),
			w->is.until_s };
		for (size_t k = 0; k < sizeof edge / sizeof *edge; k++)
			next = edge[k] > d->now_s ? fmin(next, edge[k]) : next;
	}
	return next;
}

bool dispatch_overdue(const struct hd_dispatch *d, const struct live *j)
{
	for (uint32_t i = 0; i < j->lease.n; i++) {
		const struct device *v = &d->device[j->lease.device[i]];
		const struct live_window *w = v->window != j->window ? find(d, v->window) : NULL;
		if (w && d->now_s >= fmax(w->is.from_s, w->came_s + d->set.drain_s))
			return true;
	}
	return false;
}

/* ---- what it knows ---- */

const struct hd_kept *dispatch_window_of(const struct hd_dispatch *d, uint32_t device)
{
	const struct live_window *w = find(d, d->device[device].window);

	return w ? &w->is : NULL;
}

/* Without windows there would be enough of a type for it, with them there are not. */
bool dispatch_window_why(const struct hd_dispatch *d, const struct live *j, struct hd_dispatch_why *why)
{
	uint32_t need = j->row.max && j->row.min < j->row.scale ? j->row.min : j->row.scale;
	const struct hd_kept *by = NULL;
	uint32_t kept = 0, type = 0;

	for (uint32_t t = 0; t < d->set.ntypes; t++) {
		uint32_t usable = 0, in_windows = 0;
		const struct hd_kept *of = NULL;
		for (uint32_t v = d->first_device[t]; v < d->first_device[t + 1]; v++) {
			const struct hd_kept *w = dispatch_window_of(d, v);
			if (!dispatch_part(d, j)->has[v])
				continue;
			usable += d->device[v].usable && !w;
			in_windows += w != NULL;
			of = w && (!of || w->until_s > of->until_s) ? w : of;
		}
		if (!(j->row.rate[t].steps_s > 0))
			continue;
		if (usable >= need)
			return false;
		if (of && usable + in_windows >= need && (!by || of->until_s < by->until_s)) {
			by = of;
			kept = in_windows;
			type = t;
		}
	}
	if (!by)
		return false;
	char until[60] = "until it is taken back";
	if (isfinite(by->until_s))
		snprintf(until, sizeof until, "until %.1f s", by->until_s);
	snprintf(why->text, sizeof why->text, "%u of %u devices of %s are kept from it: %s (%s%s%s) %s%s%s",
		kept, d->type[type].n, d->type[type].name, by->name, hd_window_name(by->kind),
		by->user[0] || by->account[0] ? " for " : "", by->user[0] ? by->user : by->account, until,
		by->reason[0] ? ": " : "", by->reason);
	return true;
}

uint32_t hd_dispatch_nwindows(const struct hd_dispatch *d) { return d->nwindows; }
const struct hd_kept *hd_dispatch_window(const struct hd_dispatch *d, uint32_t i) { return &d->window[i].is; }
