/* Workers that a launcher starts (launch/launcher.h). The machine counts workers; of places it knows nothing:
 * asked for are as many as the run wants, and which of them come, and when, is for the batch system to say.
 * */
#include "driver/driver_int.h"

#include <stdio.h>

#include "worker/elastic.h"

#define GRACE_NS INT64_C(3000000000)

static void said(void *user, const char *kind, const char *text) { driver_note(user, kind, HD_NOBODY, text); }

void driver_places_begin(struct driver *c)
{
	struct hd_launcher *launcher = c->spec->launcher;

	if (!launcher)
		return;
	launcher->said = said;
	launcher->user = c;
}

/* Workers that hold what the run has are not ended for places that fail beside them. */
static void place_ended(struct driver *c, const struct hd_launcher_end *end)
{
	const bool by_signal = end->code >= 128;
	char line[DRIVER_LINE];
	struct hd_diag diag = { "" };

	if (!end->alike)
		return;
	driver_last_line(c, end->log, line);
	enum hd_err err = hd_fail(&diag, by_signal ? HD_E_WORKERS : hd_err_of_exit(end->code),
		"%s ended with %s %d, as %u in a row did; %s/%s %s%s", end->name, by_signal ? "signal" :
		"exit code",
		by_signal ? end->code - 128 : end->code, end->alike, c->spec->dir->path, end->log,
		*line ? "ends with: " : "is empty", line);
	driver_note(c, "failing", HD_NOBODY, diag.text);
	if (end->alike >= HD_LAUNCHER_ALIKE && !driver_has_others(c))
		driver_fail(c, err, &diag);
}

static uint32_t wanted(const struct driver *c)
{
	struct hd_co_status status = { .asked = c->config.target };

	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	return c->over || c->stop_asked || status.halting ? 0 : status.asked;
}

void driver_look_at_places(struct driver *c)
{
	struct hd_launcher *launcher = c->spec->launcher;
	struct hd_launcher_count count = { 0 };
	struct hd_launcher_end end;
	struct hd_diag diag = { "" };

	if (!launcher)
		return;
	launcher->ops->want(launcher, wanted(c));
	enum hd_err err = launcher->ops->look(launcher, &diag);
	if (err)
		driver_fail(c, err, &diag);
	while (launcher->ops->ended(launcher, &end))
		place_ended(c, &end);
	launcher->ops->count(launcher, &count);
	if (count.waiting)
		c->queued_ns = hd_clock_now_ns(c->spec->clock);
}

const char *driver_places_why(const struct driver *c, char *out, size_t cap)
{
	struct hd_launcher_count count = { 0 };

	out[0] = '\0';
	if (!c->spec->launcher)
		return out;
	c->spec->launcher->ops->count(c->spec->launcher, &count);
	if (count.waiting)
		snprintf(out, cap, "%u wait in the queue of %s%s%s", count.waiting,
			c->spec->launcher->ops->name,
			*count.why ? ": " : "", count.why);
	return out;
}

void driver_places_end(struct driver *c)
{
	struct hd_launcher *launcher = c->spec->launcher;
	struct hd_diag diag = { "" };
	char path[HD_PATH_CAP];

	if (!launcher)
		return;
	launcher->ops->want(launcher, 0);
	if (launcher->ops->stop(launcher, GRACE_NS, &diag))
		driver_note(c, "warning", HD_NOBODY, diag.text);
	/* of those that were killed */
	hd_rundir_path(c->spec->dir, HD_FAR_FOLDER, path, sizeof path);
	(void)!hd_fs_remove_tree(c->spec->fs, path, NULL);
	launcher->said = NULL;
}
