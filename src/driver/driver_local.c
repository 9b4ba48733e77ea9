#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

#include "driver/standing.h"

/* Workers on the run's own machine: those that end, those that are to be started, and what is said of
 * starts that fail alike. */

enum { LINE = 300, TAIL = 2048 };

/* One that was to come will not. Before there is a machine nobody else counts the missing ones; it asks
 * for others itself. */
static void unspawned(struct conduct *c)
{
	if (c->machine)
		conduct_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_UNSPAWNED, .n = 1 });
	else if (c->crew.n + c->to_start < c->config.target)
		c->to_start++;
}

/* Of those that are not started yet there are as many as are missing. */
void conduct_resize_start(struct conduct *c)
{
	if (c->spec->worker_argv && (c->spec->target || c->asked_for_all))
		c->to_start = c->config.target > c->crew.n ? c->config.target - c->crew.n : 0;
}

uint32_t conduct_under_way(const struct conduct *c)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0, joined = 0;

	for (uint32_t h = 0; h < HD_CREW_HANDS; h++)
		for (uint32_t i = 0; i < n && c->crew.hand[h].proc.host; i++)
			if (conduct_pid(&w[i]) == c->crew.hand[h].proc.pid) {
				joined++;
				break;
			}
	return c->crew.n - joined + c->to_start;
}

/* Somebody takes part, or somebody who was not started here may yet. */
static bool anybody_else(struct conduct *c)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0;
	struct hd_co_status status = { 0 };

	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	for (uint32_t i = 0; i < n; i++) {
		bool here = w[i].up && w[i].state != HD_W_LEFT && w[i].state != HD_W_OUT;
		if (here && !hd_crew_find(&c->crew, conduct_pid(&w[i])))
			return true;
	}
	return status.nmembers > 0;
}

/* What it said last; "" where there is nothing to read. */
static void last_line(struct conduct *c, uint32_t number, char line[LINE])
{
	char path[HD_PATH_CAP], room[TAIL + 1];
	struct hd_file file = { 0 };
	struct hd_stat stat;
	size_t got = 0;

	*line = '\0';
	snprintf(path, sizeof path, "%s/log/hand-%u.log", c->spec->dir->path, number);
	if (hd_fs_stat(c->spec->fs, path, &stat, NULL) || hd_file_open(c->spec->fs, path, HD_OPEN_READ, &file,
		NULL))
		return;
	if (hd_file_pread(&file, room, TAIL, stat.size_bytes > TAIL ? stat.size_bytes - TAIL : 0, &got, NULL))
		got = 0;
	(void)!hd_file_close(&file, NULL);
	while (got && (room[got - 1] == '\n' || room[got - 1] == '\r'))
		got--;
	room[got] = '\0';
	const char *nl = strrchr(room, '\n');
	snprintf(line, LINE, "%.*s", LINE - 1, nl ? nl + 1 : room);
}

/* They are told once in a row; nobody would begin any more, so the run ends as they do. Whoever kills them
 * may stop doing so. */
static void failed_alike(struct conduct *c, const struct hd_hand_end *end)
{
	bool by_signal = end->code >= 128;
	struct hd_diag diag = { "" };
	char line[LINE];

	last_line(c, end->number, line);
	enum hd_err err = hd_fail(&diag, hd_err_of_exit(end->code),
		"%u workers in a row ended with %s %d before they took part; %s/log/hand-%u.log %s%s",
		c->crew.nalike, by_signal ? "signal" : "exit code", by_signal ? end->code - 128 : end->code,
		c->spec->dir->path, end->number,
		*line ? "ends with: " : "is empty", line);
	if (c->crew.nalike == HD_CREW_ALIKE)
		conduct_note(c, "failing", HD_NOBODY, diag.text);
	if (!by_signal && !anybody_else(c))
		conduct_fail(c, err, &diag);
}

static void ended(struct conduct *c, const struct hd_hand_end *end)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t worker = HD_NOBODY, n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) :
		0;
	bool took_part = false;
	char text[80];

	for (uint32_t i = 0; i < n; i++)
		if (conduct_pid(&w[i]) == end->pid) {
			worker = w[i].worker;
			took_part = w[i].sealed && c->end.commits > end->mark;
		}
	c->sweep = true;
	snprintf(text, sizeof text, "process %d ended with exit code %d", end->pid, end->code);
	conduct_note(c, "process_ended", worker, text);
	bool alike = hd_crew_judge(&c->crew, end, took_part);
	if (worker != HD_NOBODY)
		conduct_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = worker,
			.why = HD_EXITED });
	else
		unspawned(c);
	if (alike && !c->over)
		failed_alike(c, end);
}

/* False: not now. */
static bool start_one(struct conduct *c)
{
	struct hd_diag diag = { "" };

	c->crew.mark = c->end.commits;
	enum hd_err err = hd_crew_start(&c->crew, NULL, &diag);
	if (err == HD_E_AGAIN)
		return false;
	c->to_start--;
	if (!err)
		return true;
	if (c->crew.nalike == 1 || c->crew.nalike == HD_CREW_ALIKE)
		conduct_note(c, "unspawned", HD_NOBODY, diag.text);
	unspawned(c);
	if (c->crew.nalike >= HD_CREW_ALIKE && !anybody_else(c))
		conduct_fail(c, err, &diag);
	return true;
}

/* Those that did not come are not on their way: the machine, for which they count as started, asks for
 * others. */
static void look_at_presumed(struct conduct *c)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = 0, came = 0;

	if (!c->presumed_ns || hd_clock_now_ns(c->spec->clock) < c->presumed_ns)
		return;
	c->presumed_ns = 0;
	n = hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS);
	for (uint32_t i = 0; i < n; i++)
		came += w[i].state != HD_W_FREE && !hd_is_remote(w[i].worker) &&
			!hd_crew_find(&c->crew, conduct_pid(&w[i]));
	/* the first of them had come before they were counted */
	n = c->presumed + 1 > came ? c->presumed + 1 - came : 0;
	if (n)
		conduct_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_UNSPAWNED, .n = n });
}

void conduct_sweep(struct conduct *c)
{
	uint32_t living = 0;

	c->sweep = false;
	/* what stays lies about until the next time */
	(void)!hd_posts_look(c->spec->fs, c->spec->dir->path, true, &living, NULL);
}

void conduct_look_at_crew(struct conduct *c)
{
	struct hd_hand_end end;

	look_at_presumed(c);
	if (c->sweep)
		conduct_sweep(c);
	while (hd_crew_ended(&c->crew, &end))
		ended(c, &end);
	while (c->to_start && !c->over && start_one(c))
		continue;
}
