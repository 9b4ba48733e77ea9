#include "scheduler/window.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct { const char *name, *state; } kinds[HD_WINDOW_NKINDS] = {
#define X(id, name, state) [HD_WINDOW_##id] = { name, state },
	HD_WINDOWS(X)
#undef X
};

const char *hd_window_name(enum hd_window_kind kind) { return kinds[kind].name; }
const char *hd_window_state(enum hd_window_kind kind) { return kinds[kind].state; }

enum hd_err hd_window_check(const struct hd_kept *w, uint32_t ndevices, struct hd_diag *diag)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
	bool owned = w->user[0] || w->account[0];

	if (!w->name[0] || w->name[strspn(w->name, letters)])
		return hd_fail(diag, HD_E_INVAL, "name \"%s\": letters, digits and -._, at most %d", w->name,
			HD_WINDOW_NAME);
	if (!isfinite(w->from_s) || isnan(w->until_s) || !(w->until_s > w->from_s))
		return hd_fail(diag, HD_E_INVAL, "%s: from %g s until %g s is no time", w->name, w->from_s,
			w->until_s);
	if (w->kind == HD_WINDOW_RESERVED ? !owned || (w->user[0] && w->account[0]) : owned)
		return hd_fail(diag, HD_E_INVAL, "%s: a reservation is for one user or one account, drains "
			"and maintenance are for none", w->name);
	for (uint32_t i = 0; i < w->ndevices && i < HD_WINDOW_DEVICES; i++)
		if (w->device[i] >= ndevices || (i && w->device[i - 1] >= w->device[i]))
			return hd_fail(diag, HD_E_INVAL, "%s: device %u is not there, or there twice",
				w->name, w->device[i]);
	return w->ndevices && w->ndevices <= HD_WINDOW_DEVICES ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"%s: %u devices, 1 to %d", w->name, w->ndevices, HD_WINDOW_DEVICES);
}

bool hd_window_has(const struct hd_kept *w, uint32_t device)
{
	for (uint32_t i = 0; i < w->ndevices && w->device[i] <= device; i++)
		if (w->device[i] == device)
			return true;
	return false;
}

void hd_window_put(const struct hd_kept *window, struct hd_json_writer *w)
{
	hd_json_put_text(w, "name", window->name);
	hd_json_put_text(w, "kind", hd_window_name(window->kind));
	hd_json_put_f64(w, "from_s", window->from_s);
	hd_json_put_f64(w, "until_s", window->until_s);
	hd_json_put_text(w, "user", window->user);
	hd_json_put_text(w, "account", window->account);
	hd_json_put_text(w, "reason", window->reason);
}

enum hd_err hd_window_get(const struct hd_json *json, struct hd_kept *window, struct hd_diag *diag)
{
	const struct { const char *key; char *to; size_t cap; } texts[] = {
		{ "name", window->name, sizeof window->name }, { "user", window->user, sizeof window->user },
		{ "account", window->account, sizeof window->account },
		{ "reason", window->reason, sizeof window->reason } };
	const char *text = "";
	uint32_t kind = 0;

	*window = (struct hd_kept){ 0 };
	enum hd_err err = hd_json_get_f64(json, "from_s", &window->from_s, diag);
	if (!err)
		err = hd_json_get_f64(json, "until_s", &window->until_s, diag);
	for (size_t i = 0; i < sizeof texts / sizeof *texts && !err; i++) {
		err = hd_json_get_text(json, texts[i].key, &text, diag);
		if (!err && strlen(text) >= texts[i].cap)
			err = hd_fail(diag, HD_E_INPUT, "%s of a window is longer than %zu bytes",
				texts[i].key, texts[i].cap - 1);
		if (!err)
			snprintf(texts[i].to, texts[i].cap, "%s", text);
	}
	if (!err)
		err = hd_json_get_text(json, "kind", &text, diag);
	while (!err && kind < HD_WINDOW_NKINDS &&
		strcmp(text, hd_window_name((enum hd_window_kind)kind)) != 0)
		kind++;
	if (!err && kind == HD_WINDOW_NKINDS)
		return hd_fail(diag, HD_E_INPUT, "a window of kind \"%.40s\"", text);
	window->kind = (enum hd_window_kind)kind;
	return err;
}
