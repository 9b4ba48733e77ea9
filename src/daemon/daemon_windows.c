#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon_int.h"

/* Drains, maintenance, reservations (scheduler/window.h): asked for, stored as words of JSON, given to each
 * machine. What is over is dropped when another one is stored. */

#define PREFIX "window "
enum { WINDOW_TEXT = 1024 + HD_WINDOW_DEVICES * 80, WINDOW_KEY = sizeof PREFIX + HD_WINDOW_NAME };
#define WINDOW_LATEST_S 1e9                       /* from now: some 30 years */

static uint32_t device_by_name(const struct hd_pools *pools, const char *text, size_t len)
{
	uint32_t v = 0;

	for (char name[96]; v < pools->ndevices; v++) {
		hd_pools_device(pools, v, name);
		if (strlen(name) == len && !strncmp(name, text, len))
			break;
	}
	return v;
}

/* ---- stored ---- */

static enum hd_err store(struct hd_daemon *d, const struct hd_kept *window, struct hd_diag *diag)
{
	char *room = hd_arena_take(&d->scratch, 1, WINDOW_TEXT), key[WINDOW_KEY], name[96];
	struct hd_json_writer w;
	struct hd_text text;

	if (!room)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a window");
	hd_text_fixed(&text, room, WINDOW_TEXT);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_window_put(window, &w);
	hd_json_open_array(&w, "devices");
	for (uint32_t i = 0; i < window->ndevices; i++) {
		hd_pools_device(d->spec->pools, window->device[i], name);
		hd_json_put_text(&w, NULL, name);
	}
	hd_json_close(&w);
	hd_json_close(&w);
	snprintf(key, sizeof key, PREFIX "%s", window->name);
	return text.full ? hd_fail(diag, HD_E_INVAL, "%s: its devices have too long names", window->name) :
		hd_jobs_put_word(d->jobs, key, room, diag);
}

struct window_restoring { struct hd_daemon *d; struct hd_dispatch *dispatch; };

/* Devices that are served no more are left out. */
static enum hd_err restore_one(void *user, const char *name, const char *value, struct hd_diag *diag)
{
	const struct window_restoring *r = user;
	const struct hd_json *json, *devices = NULL;
	struct hd_dispatch_outs outs;
	struct hd_kept window = { 0 };
	const char *text = "";
	double now_s = daemon_now_s(r->d);
	enum hd_err err = hd_json_parse(&r->d->scratch, name, value, strlen(value), &json, diag);

	if (!err)
		err = hd_window_get(json, &window, diag);
	if (!err)
		err = hd_json_get(json, "devices", HD_JSON_ARRAY, &devices, diag);
	for (uint32_t v = 0; v < r->d->spec->pools->ndevices && !err; v++)
		for (size_t i = 0; i < hd_json_count(devices) && !err; i++) {
			err = hd_json_as_text(hd_json_item(devices, i), &text, diag);
			if (!err && window.ndevices < HD_WINDOW_DEVICES &&
				device_by_name(r->d->spec->pools, text, strlen(text)) == v)
				window.device[window.ndevices++] = v;
		}
	if (err)
		return hd_fail(diag, HD_E_INTEGRITY, "jobs.sqlite: window %s cannot be read", name);
	return window.until_s <= now_s || !window.ndevices ? HD_OK : hd_dispatch_step(r->dispatch,
		&(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_WINDOW, .window = &window, .ok = true },
		now_s, &outs, diag);
}

enum hd_err daemon_restore_windows(struct hd_daemon *d, struct hd_dispatch *dispatch, struct hd_diag *diag)
{
	struct window_restoring r = { d, dispatch };

	return hd_jobs_words(d->jobs, PREFIX, restore_one, &r, diag);
}

struct over { struct hd_daemon *d; uint32_t n; char name[HD_DISPATCH_WINDOWS][HD_WINDOW_NAME + 1]; };

static enum hd_err note_over(void *user, const char *name, const char *value, struct hd_diag *diag)
{
	struct over *over = user;
	bool there = false;

	(void)value;
	(void)diag;
	for (uint32_t i = 0; i < hd_dispatch_nwindows(over->d->dispatch); i++)
		there |= !strcmp(hd_dispatch_window(over->d->dispatch, i)->name, name);
	if (!there && over->n < HD_DISPATCH_WINDOWS)
		snprintf(over->name[over->n++], sizeof over->name[0], "%s", name);
	return HD_OK;
}

static enum hd_err drop_over(struct hd_daemon *d, struct hd_diag *diag)
{
	struct over *over = hd_arena_take(&d->scratch, 1, sizeof *over);
	enum hd_err err = over ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for windows");
	char key[WINDOW_KEY];

	if (!err) {
		over->d = d;
		over->n = 0;
		err = hd_jobs_words(d->jobs, PREFIX, note_over, over, diag);
	}
	for (uint32_t i = 0; !err && i < over->n; i++) {
		snprintf(key, sizeof key, PREFIX "%s", over->name[i]);
		err = hd_jobs_drop_word(d->jobs, key, diag);
	}
	return err;
}

/* ---- asked for ---- */

static bool is_taken(const struct hd_daemon *d, const struct hd_kept *window, uint32_t device)
{
	bool taken = hd_window_has(window, device);

	for (uint32_t i = 0; i < hd_dispatch_nwindows(d->dispatch); i++) {
		const struct hd_kept *other = hd_dispatch_window(d->dispatch, i);
		taken |= other->kind != HD_WINDOW_DRAIN && other->from_s < window->until_s &&
			window->from_s < other->until_s && hd_window_has(other, device);
	}
	return taken;
}

static void add_device(struct hd_kept *w, uint32_t device)
{
	uint32_t at = w->ndevices;

	if (hd_window_has(w, device) || at == HD_WINDOW_DEVICES)
		return;
	for (; at && w->device[at - 1] > device; at--)
		w->device[at] = w->device[at - 1];
	w->device[at] = device;
	w->ndevices++;
}

/* "fast" all of a type, "fast:2" the last two of it that no other window has then, "fast-0" */
static enum hd_err add_devices(const struct hd_daemon *d, const char *text, struct hd_kept *w,
	struct hd_diag *diag)
{
	const struct hd_pools *pools = d->spec->pools;
	size_t len = strcspn(text, ":");
	char *end = NULL;
	unsigned long n = text[len] ? strtoul(text + len + 1, &end, 10) : 0;
	uint32_t type = 0, device = device_by_name(pools, text, strlen(text));

	if (device < pools->ndevices) {
		add_device(w, device);
		return HD_OK;
	}
	while (type < pools->ntypes && (strlen(pools->name[type]) != len ||
		strncmp(pools->name[type], text, len) != 0))
		type++;
	if (type == pools->ntypes || (text[len] && (*end || !n)))
		return hd_fail(diag, HD_E_INVAL,
			"devices \"%.80s\": a device (TYPE-0), a type (all of it), or TYPE:N; `heddle "
			"status` lists the types", text);
	for (uint32_t v = pools->first_device[type + 1]; v-- > pools->first_device[type];)
		if (!text[len] || (n && !is_taken(d, w, v))) {
			add_device(w, v);
			n -= n > 0;
		}
	return !n ? HD_OK : hd_fail(diag, HD_E_INVAL, "devices %.80s: %lu of them are not there, or kept by "
		"other windows at that time (`heddle reserve` lists them)", text, n);
}

static enum hd_err read_text(const struct hd_json *ask, const char *key, char *to, size_t cap,
	struct hd_diag *diag)
{
	const char *text = "";
	enum hd_err err = hd_json_find(ask, key) ? hd_json_get_text(ask, key, &text, diag) : HD_OK;

	if (!err && (strlen(text) >= cap || strpbrk(text, "\n\r\t")))
		err = hd_fail(diag, HD_E_INVAL, "%s: a line of at most %zu bytes", key, cap - 1);
	if (!err)
		snprintf(to, cap, "%s", text);
	return err;
}

static enum hd_err read_times(struct hd_daemon *d, const struct hd_json *ask, struct hd_kept *w,
	struct hd_diag *diag)
{
	double in_s = 0, for_s = INFINITY;
	enum hd_err err = hd_json_find(ask, "from_s") ? hd_json_get_f64(ask, "from_s", &in_s, diag) : HD_OK;

	if (!err && hd_json_find(ask, "for_s"))
		err = hd_json_get_f64(ask, "for_s", &for_s, diag);
	if (!err && !(in_s >= 0 && in_s <= WINDOW_LATEST_S && for_s > 0))
		err = hd_fail(diag, HD_E_INVAL, "from_s is %g, for_s %g: seconds from now, and above 0", in_s,
			for_s);
	w->from_s = daemon_now_s(d) + in_s;
	w->until_s = w->from_s + for_s;
	return err;
}

static enum hd_err read_kind(const struct hd_json *ask, struct hd_kept *w, struct hd_diag *diag)
{
	const char *text = "";
	int kind = 0;
	enum hd_err err = hd_json_get_text(ask, "kind", &text, diag);

	while (!err && kind < HD_WINDOW_NKINDS &&
		strcmp(text, hd_window_name((enum hd_window_kind)kind)) != 0)
		kind++;
	w->kind = (enum hd_window_kind)kind;
	return err || kind < HD_WINDOW_NKINDS ? err : hd_fail(diag, HD_E_INVAL,
		"kind \"%.40s\": drain, maintenance or reserved", text);
}

static enum hd_err read_window(struct hd_daemon *d, const struct hd_json *ask, struct hd_kept *w,
	struct hd_diag *diag)
{
	const struct hd_json *devices = NULL;
	const char *text = "";
	enum hd_err err = read_kind(ask, w, diag);

	if (!err)
		err = read_text(ask, "window", w->name, sizeof w->name, diag);
	if (!err)
		err = read_text(ask, "user", w->user, sizeof w->user, diag);
	if (!err)
		err = read_text(ask, "account", w->account, sizeof w->account, diag);
	if (!err)
		err = read_text(ask, "reason", w->reason, sizeof w->reason, diag);
	if (!err)
		err = read_times(d, ask, w, diag);
	if (!err)
		err = hd_json_get(ask, "devices", HD_JSON_ARRAY, &devices, diag);
	for (size_t i = 0; !err && i < hd_json_count(devices); i++) {
		err = hd_json_as_text(hd_json_item(devices, i), &text, diag);
		if (!err)
			err = add_devices(d, text, w, diag);
	}
	return err;
}

/* ---- answered ---- */

const char *daemon_kept_text(const struct hd_kept *w, char text[HD_DAEMON_KEPT])
{
	char until[40] = "";

	if (w && isfinite(w->until_s))
		snprintf(until, sizeof until, " until %.1f s", w->until_s);
	text[0] = 0;
	if (w)
		snprintf(text, HD_DAEMON_KEPT, "%s since %.1f s%s%s%s", hd_window_name(w->kind), w->from_s,
			until, *w->reason ? ": " : "", w->reason);
	return text;
}

static void put_window(const struct hd_daemon *d, const struct hd_kept *w, struct hd_json_writer *to,
	bool object)
{
	char name[HD_WINDOW_DEVICES][96];
	const char *names[HD_WINDOW_DEVICES];
	double now_s = daemon_now_s(d);

	for (uint32_t i = 0; i < w->ndevices; i++) {
		hd_pools_device(d->spec->pools, w->device[i], name[i]);
		names[i] = name[i];
	}
	const struct hd_answer_window is = { .name = w->name, .kind = hd_window_name(w->kind),
		.from_s = w->from_s, .until_s = isfinite(w->until_s) ? w->until_s : -1,
		.now = now_s >= w->from_s, .devices_n = w->ndevices, .of = w->user[0] ? w->user : w->account,
		.user = w->user, .account = w->account, .reason = w->reason,
		.devices = { names, w->ndevices } };
	if (object)
		hd_fields_put_object(&hd_answer_window_fields, 0, &is, NULL, to);
	else
		hd_fields_put(&hd_answer_window_fields, 0, &is, to);
}

void daemon_fill_windows(void *user, struct hd_json_writer *w)
{
	const struct hd_daemon *d = user;

	for (uint32_t i = 0; i < hd_dispatch_nwindows(d->dispatch); i++)
		put_window(d, hd_dispatch_window(d->dispatch, i), w, true);
}

enum hd_err daemon_show_windows(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	(void)ask;
	(void)diag;
	hd_fields_put(&hd_answer_windows_fields, 0, &(struct hd_answer_windows){ .now_s = daemon_now_s(d),
		.windows = { .fill = daemon_fill_windows, .user = d } }, w);
	return HD_OK;
}

/* Decided first, which may refuse it; a store that cannot be written ends the daemon, as with jobs. */
static enum hd_err feed(struct hd_daemon *d, const struct hd_kept *window, bool ok, struct hd_diag *diag)
{
	enum hd_err err = daemon_feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_WINDOW,
		.window = window, .ok = ok }, NULL, NULL, diag);
	if (err)
		return err;
	err = ok ? store(d, window, diag) : HD_OK;
	if (!err)
		err = drop_over(d, diag);
	if (err) {
		d->broken = err;
		d->why = *diag;
	}
	return err;
}

enum hd_err daemon_make_window(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_kept window = { 0 };
	enum hd_err err = read_window(d, ask, &window, diag);

	if (!err)
		err = feed(d, &window, true, diag);
	if (!err)
		put_window(d, &window, w, false);
	return err;
}

enum hd_err daemon_drop_window(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_kept window = { 0 };
	enum hd_err err = read_text(ask, "window", window.name, sizeof window.name, diag);

	(void)w;
	return err ? err : feed(d, &window, false, diag);
}
