#include "daemon/pilots.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"

enum { MOST = 2 * HD_POOL_DEVICES };      /* that are looked at: those that go, and those that come */
#define REFUSED_NS INT64_C(60000000000)

struct hd_pilots {
	struct hd_pilots_spec spec;
	hd_pilots_say *say;
	void *user;
	struct hd_pilot_seen seen[MOST];
	uint32_t n, want[HD_DISPATCH_TYPES];
	int64_t less_ns[HD_DISPATCH_TYPES];       /* since when less is wanted; INT64_MAX: not */
	/* since when some wait and none came; INT64_MAX: none waits */
	int64_t waits_ns[HD_DISPATCH_TYPES];
	int64_t refused_ns[HD_DISPATCH_TYPES];    /* when a launcher refused; INT64_MIN: it did not */
	struct hd_pilot_scheduler is;
	int64_t beat_ns;
	struct hd_arena scratch;
};

static int64_t now(const struct hd_pilots *p) { return hd_clock_now_ns(p->spec.clock); }

static void folder_of(const struct hd_pilots *p, uint32_t type, char path[HD_PATH_CAP])
{
	snprintf(path, HD_PATH_CAP, "%.2000s/" HD_PILOTS_FOLDER "/%s", p->spec.dir,
		p->spec.pools->name[type]);
}

static void path_of(const struct hd_pilots *p, const struct hd_pilot_seen *s, const char *what,
	char path[HD_PATH_CAP])
{
	snprintf(path, HD_PATH_CAP, "%.2000s/" HD_PILOTS_FOLDER "/%s/%s%s", p->spec.dir,
		p->spec.pools->name[s->type], s->name, what);
}

/* ---- the beat */

static enum hd_err beat(struct hd_pilots *p, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	enum hd_err err = HD_OK;

	p->is.beat =
		(uint64_t)hd_clock_wall_ns(p->spec.clock) / 1000000;       /* another one than any before */
	p->beat_ns = now(p);
	for (uint32_t t = 0; t < p->spec.pools->ntypes && !err; t++) {
		folder_of(p, t, path);
		err = hd_fs_mkdirs(p->spec.fs, path, diag);
		strcat(path, "/" HD_PILOT_SCHEDULER);
		err = err ? err : hd_pilot_scheduler_write(&p->is, p->spec.fs, path, diag);
	}
	return err;
}

/* ---- what is there */

static struct hd_pilot_seen *find(struct hd_pilots *p, uint32_t type, const char *name)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->seen[i].type == type && !strcmp(p->seen[i].name, name))
			return &p->seen[i];
	return NULL;
}

static struct hd_pilot_seen *bound_to(const struct hd_pilots *p, uint32_t device)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->seen[i].device == device)
			return (struct hd_pilot_seen *)&p->seen[i];
	return NULL;
}

static enum hd_err write_order(struct hd_pilots *p, struct hd_pilot_seen *s, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];

	path_of(p, s, ".order", path);
	return hd_pilot_order_write(&s->order, p->spec.fs, path, diag);
}

static void changed(struct hd_pilots *p, uint32_t type)
{
	struct hd_launcher *l = p->spec.launcher[type];

	if (l && l->ops->changed)
		l->ops->changed(l);
}

static void bind(struct hd_pilots *p, struct hd_pilot_seen *s, uint32_t device)
{
	char text[300];

	p->waits_ns[s->type] = INT64_MAX;
	changed(p, s->type);
	s->device = device;
	hd_pools_device(p->spec.pools, device, s->order.device);
	snprintf(text, sizeof text, "%.60s is %.64s%s%.64s", s->order.device, s->is.node, *s->is.place ?
		", " : "",
		s->is.place);
	p->say(p->user, "pilot", text);
}

static uint32_t device_named(const struct hd_pools *pools, const char *name)
{
	char is[96];

	for (uint32_t v = 0; v < pools->ndevices; v++) {
		hd_pools_device(pools, v, is);
		if (!strcmp(is, name))
			return v;
	}
	return HD_POOL_DEVICES;
}

/* Rule 1: by the order that an earlier scheduler wrote; else the first that is free. */
static void bind_new(struct hd_pilots *p, struct hd_pilot_seen *s)
{
	const struct hd_pools *pools = p->spec.pools;
	char path[HD_PATH_CAP];
	uint32_t v = HD_POOL_DEVICES;

	path_of(p, s, ".order", path);
	const bool had = !hd_pilot_order_read(&s->order, p->spec.fs, path, NULL);
	if (had)
		v = device_named(pools, s->order.device);
	if (v < pools->ndevices && hd_pools_type(pools, v) == s->type && !bound_to(p, v)) {
		bind(p, s, v);
		s->going = s->order.what == HD_PILOT_GO;
		return;
	}
	for (v = pools->first_device[s->type]; v < pools->first_device[s->type + 1]; v++)
		if (!bound_to(p, v)) {
			s->order = (struct hd_pilot_order){ .n = 1 + (s->order.n > s->is.n ? s->order.n :
				s->is.n) };
			bind(p, s, v);
			if (!write_order(p, s, NULL))
				return;
			s->device = HD_POOL_DEVICES;      /* tried again with the next look */
			return;
		}
}

/* More than the pool has devices: by hand, or left over. */
static void send_away(struct hd_pilots *p, struct hd_pilot_seen *s)
{
	s->order.n = (s->order.n > s->is.n ? s->order.n : s->is.n) + 1;
	s->order.what = HD_PILOT_GO;
	s->going = !write_order(p, s, NULL);
}

static void drop(struct hd_pilots *p, uint32_t i, const char *how)
{
	struct hd_pilot_seen *s = &p->seen[i];
	static const char *const files[] = { ".state", ".order", ".notice" };
	char path[HD_PATH_CAP], text[300];

	for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
		path_of(p, s, files[f], path);
		(void)!hd_fs_unlink(p->spec.fs, path, NULL);
	}
	if (s->device != HD_POOL_DEVICES) {
		snprintf(text, sizeof text, "%.60s, %.64s%s%.64s, %s", s->order.device, s->is.node,
			*s->is.place ? ", " : "", s->is.place, how);
		p->say(p->user, "pilot", text);
	}
	changed(p, s->type);
	*s = p->seen[--p->n];
}

static void take_state(struct hd_pilots *p, uint32_t type, const char *name, const struct hd_pilot_state *is)
{
	struct hd_pilot_seen *s = find(p, type, name);

	/* another process of the same number: it counts from one */
	if (s && is->beat < s->is.beat) {
		drop(p, (uint32_t)(s - p->seen), "is gone, and another one is there");
		return;                           /* with its files; its next beat brings them */
	}
	if (!s && p->n == MOST)
		return;
	if (!s) {
		s = &p->seen[p->n++];
		*s = (struct hd_pilot_seen){ .type = type, .device = HD_POOL_DEVICES };
		snprintf(s->name, sizeof s->name, "%s", name);
	}
	if (is->beat != s->is.beat)
		s->changed_ns = now(p);
	s->is = *is;
	s->known = true;
	if (s->device == HD_POOL_DEVICES && !is->leaving)
		bind_new(p, s);
	if (s->device == HD_POOL_DEVICES && !s->going && !is->leaving)
		send_away(p, s);
}

static void look_at(struct hd_pilots *p, uint32_t type)
{
	static const char end[] = ".state";
	char folder[HD_PATH_CAP], path[HD_PATH_CAP + 128], **names = NULL;
	struct hd_pilot_state is;
	size_t n = 0;

	folder_of(p, type, folder);
	hd_arena_reset(&p->scratch);
	if (hd_fs_list(p->spec.fs, folder, &p->scratch, &names, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		const size_t len = strlen(names[i]);
		char name[HD_PILOT_NAME];
		if (len < sizeof end || len - strlen(end) >= sizeof name ||
			strcmp(names[i] + len - strlen(end), end) != 0)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(len - strlen(end)), names[i]);
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		if (!hd_pilot_state_read(&is, p->spec.fs, path, NULL))
			take_state(p, type, name, &is);
	}
}

static void drop_gone(struct hd_pilots *p)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	for (uint32_t i = p->n; i-- > 0;) {
		path_of(p, &p->seen[i], ".state", path);
		if (now(p) - p->seen[i].changed_ns >= HD_PILOTS_SILENT_NS)
			drop(p, i, "has been silent for 30 s: its node is lost, or its way to this folder");
		else if (!p->seen[i].known && hd_fs_stat(p->spec.fs, path, &stat, NULL) == HD_E_NOTFOUND)
			drop(p, i, p->seen[i].going ? "has gone" : p->seen[i].is.leaving ?
				"was taken back" : "is gone");
	}
}

/* ---- launchers */

static void look_at_launcher(struct hd_pilots *p, uint32_t t)
{
	struct hd_launcher *l = p->spec.launcher[t];
	struct hd_diag why = { "" };
	struct hd_launcher_end end;
	char text[300];

	if (!l || (p->refused_ns[t] != INT64_MIN && now(p) - p->refused_ns[t] < REFUSED_NS))
		return;
	const bool again = p->refused_ns[t] != INT64_MIN;
	p->refused_ns[t] = INT64_MIN;
	if (l->ops->look(l, &why)) {
		p->refused_ns[t] = now(p);
		if (!again)
			p->say(p->user, "refused", why.text);
	}
	struct hd_launcher_count count;
	l->ops->count(l, &count);
	if (!count.waiting)
		p->waits_ns[t] = INT64_MAX;
	else if (p->waits_ns[t] == INT64_MAX)
		p->waits_ns[t] = now(p);
	while (l->ops->ended(l, &end))
		if (end.alike == 1) {
			snprintf(text, sizeof text,
				"%.60s ended with exit code %d: " HD_PILOTS_FOLDER "/%s/%.63s",
				end.name, end.code, p->spec.pools->name[t], end.log);
			p->say(p->user, "warning", text);
		}
}

void hd_pilots_look(struct hd_pilots *p)
{
	if (now(p) - p->beat_ns >= HD_PILOTS_BEAT_NS)
		(void)!beat(p, NULL);
	for (uint32_t i = 0; i < p->n; i++)
		p->seen[i].known = false;
	for (uint32_t t = 0; t < p->spec.pools->ntypes; t++)
		look_at(p, t);
	drop_gone(p);
	for (uint32_t t = 0; t < p->spec.pools->ntypes; t++)
		look_at_launcher(p, t);
}

/* ---- devices */

const struct hd_pilot_seen *hd_pilots_any(const struct hd_pilots *p, uint32_t device)
{
	return device < HD_POOL_DEVICES ? bound_to(p, device) : NULL;
}

const struct hd_pilot_seen *hd_pilots_at(const struct hd_pilots *p, uint32_t device)
{
	const struct hd_pilot_seen *s = hd_pilots_any(p, device);

	return s && !s->is.leaving && !s->going ? s : NULL;
}

bool hd_pilots_work(const struct hd_pilot_seen *s)
{
	return s->is.job || (s->order.what == HD_PILOT_WORK && s->is.n < s->order.n);
}

enum hd_err hd_pilots_order(struct hd_pilots *p, uint32_t device, const struct hd_pilot_order *order,
	struct hd_diag *diag)
{
	struct hd_pilot_seen *s = bound_to(p, device);
	struct hd_pilot_order next = *order;

	if (!s)
		return hd_fail(diag, HD_E_NOTFOUND, "no pilot has device %u", device);
	const bool same = s->order.what == order->what && s->order.job == order->job &&
		s->order.lease == order->lease;
	const bool over = order->what == HD_PILOT_WORK && s->is.n >= s->order.n && !s->is.job;
	if (s->going || (same && !over))
		return HD_OK;
	next.n = s->order.n + 1;
	memcpy(next.device, s->order.device, sizeof next.device);
	const struct hd_pilot_order was = s->order;
	s->order = next;
	enum hd_err err = write_order(p, s, diag);
	if (err)
		s->order = was;
	else
		s->going = next.what == HD_PILOT_GO;
	return err;
}

/* ---- how many */

static uint32_t bound_of(const struct hd_pilots *p, uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n; i++)
		n += p->seen[i].type == type && p->seen[i].device != HD_POOL_DEVICES && !p->seen[i].going &&
			!p->seen[i].is.leaving;
	return n;
}

void hd_pilots_can(const struct hd_pilots *p, uint32_t can[HD_DISPATCH_TYPES])
{
	for (uint32_t t = 0; t < p->spec.pools->ntypes; t++)
		can[t] = p->waits_ns[t] != INT64_MAX && now(p) - p->waits_ns[t] >= HD_PILOTS_STUCK_NS ?
			bound_of(p, t) : p->spec.pools->type[t].n;
}

static void send_idle(struct hd_pilots *p, uint32_t type, const bool busy[HD_POOL_DEVICES])
{
	uint32_t n = bound_of(p, type);

	for (uint32_t v = p->spec.pools->first_device[type + 1]; v-- > p->spec.pools->first_device[type] &&
		n > p->want[type];) {
		const struct hd_pilot_seen *s = hd_pilots_at(p, v);
		if (s && !busy[v] && !hd_pilots_work(s))
			n -= !hd_pilots_order(p, v, &(struct hd_pilot_order){ .what = HD_PILOT_GO }, NULL);
	}
}

void hd_pilots_want(struct hd_pilots *p, const uint32_t want[HD_DISPATCH_TYPES],
	const bool busy[HD_POOL_DEVICES])
{
	for (uint32_t t = 0; t < p->spec.pools->ntypes; t++) {
		if (want[t] >= p->want[t])
			p->less_ns[t] = INT64_MAX;
		else if (p->less_ns[t] == INT64_MAX)
			p->less_ns[t] = now(p);
		if (want[t] > p->want[t] || (want[t] < p->want[t] &&
			now(p) - p->less_ns[t] >= p->spec.idle_ns)) {
			p->want[t] = want[t];
			p->less_ns[t] = INT64_MAX;
		}
		if (p->spec.launcher[t])
			p->spec.launcher[t]->ops->want(p->spec.launcher[t], p->want[t]);
		send_idle(p, t, busy);
	}
}

void hd_pilots_count(const struct hd_pilots *p, uint32_t type, struct hd_launcher_count *count,
	uint32_t *want)
{
	const struct hd_launcher *l = p->spec.launcher[type];

	*count = (struct hd_launcher_count){ 0 };
	if (l)
		l->ops->count(l, count);
	*want = p->want[type];
}

/* ---- begin, end */

static void said(void *user, const char *kind, const char *text)
{
	const struct hd_pilots *p = user;

	p->say(p->user, kind, text);
}

enum hd_err hd_pilots_open(struct hd_pilots **pilots, const struct hd_pilots_spec *spec, hd_pilots_say *say,
	void *user, struct hd_diag *diag)
{
	struct hd_pilots *p = hd_alloc(sizeof *p);

	if (!p)
		return hd_fail(diag, HD_E_NOMEM, "no memory for pilots");
	*p = (struct hd_pilots){ .spec = *spec, .say = say, .user = user };
	hd_arena_init(&p->scratch, 0);
	for (uint32_t t = 0; t < spec->pools->ntypes; t++) {
		p->less_ns[t] = p->waits_ns[t] = INT64_MAX;
		p->refused_ns[t] = INT64_MIN;
		if (spec->launcher[t]) {
			spec->launcher[t]->said = said;
			spec->launcher[t]->user = p;
		}
	}
	enum hd_err err = beat(p, diag);
	if (err) {
		hd_pilots_close(p);
		return err;
	}
	/* those that an earlier scheduler left: none is sent away before the jobs are known */
	for (uint32_t t = 0; t < spec->pools->ntypes; t++)
		look_at(p, t);
	for (uint32_t t = 0; t < spec->pools->ntypes; t++)
		p->want[t] = bound_of(p, t);
	*pilots = p;
	return HD_OK;
}

void hd_pilots_close(struct hd_pilots *p)
{
	if (!p)
		return;
	hd_arena_finish(&p->scratch);
	hd_free(p);
}

enum hd_err hd_pilots_stop(struct hd_pilots *p, bool all, struct hd_diag *diag)
{
	enum hd_err err = HD_OK, one;

	p->is.ended = true;
	err = beat(p, diag);
	for (uint32_t i = 0; i < p->n && all; i++)
		if (!p->seen[i].going)
			send_away(p, &p->seen[i]);
	for (uint32_t t = 0; t < p->spec.pools->ntypes && all; t++)
		if (p->spec.launcher[t]) {
			p->spec.launcher[t]->ops->want(p->spec.launcher[t], 0);
			one = p->spec.launcher[t]->ops->stop(p->spec.launcher[t], HD_PILOTS_STOP_NS,
				err ? NULL : diag);
			err = err ? err : one;
		}
	return err;
}
