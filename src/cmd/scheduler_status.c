/* heddle status, heddle top of a scheduler: devices, jobs that run, jobs that wait and why. */
#include <string.h>

#include "sys/signal.h"
#include "cmd/live.h"
#include "cmd/scheduler.h"

enum { HD_WAITING_SHOWN = 20, HD_EVERY_MS = 1000, HD_EVERY_LEAST_MS = 50 };

struct view { const struct hd_json *status, *waiting; };

static enum hd_err look(struct hd_cmd *cmd, struct view *v)
{
	char target[60];
	enum hd_err err = hd_scheduler_ask(cmd, "GET", "/v1/status", NULL, &v->status);

	snprintf(target, sizeof target, "/v1/jobs?state=queued&limit=%d", HD_WAITING_SHOWN);
	return err ? err : hd_scheduler_ask(cmd, "GET", target, NULL, &v->waiting);
}

static enum hd_err print_head(const struct hd_json *s, int64_t *queued, struct hd_diag *diag)
{
	const struct hd_json *counts = NULL;
	const char *policy = "", *dir = "", *late = "";
	double now = 0, boundary = 0, round = 0;
	const struct { const char *key; double *at; } real[] = { { "now_s", &now },
		{ "boundary_s", &boundary }, { "round_s", &round } };
	enum hd_err err = hd_json_get_text(s, "policy", &policy, diag);

	if (!err)
		err = hd_json_get_text(s, "dir", &dir, diag);
	for (size_t i = 0; i < sizeof real / sizeof *real && !err; i++)
		err = hd_json_get_f64(s, real[i].key, real[i].at, diag);
	if (!err)
		err = hd_json_get(s, "counts", HD_JSON_OBJECT, &counts, diag);
	if (err)
		return err;
	printf("%s  policy %s  rounds of %g s  next in %.1f s\njobs:", dir, policy, round,
		boundary > now ? boundary - now : 0);
	*queued = 0;
	for (size_t i = 0; i < hd_json_count(counts) && !err; i++) {
		int64_t n = 0;
		err = hd_json_as_i64(hd_json_item(counts, i), 0, INT64_MAX, &n, diag);
		if (!strcmp(hd_json_key(counts, i), "queued"))
			*queued = n;
		printf("  %s %lld", hd_json_key(counts, i), (long long)n);
	}
	printf("\n");
	if (!err && hd_json_find(s, "late"))      /* a scheduler of an older build does not say it */
		err = hd_json_get_text(s, "late", &late, diag);
	if (*late)
		printf("%s\n", late);
	return err;
}

static enum hd_err print_devices(const struct hd_json *s, struct hd_diag *diag)
{
	static const char *const numbers[] = { "devices", "busy", "free", "lost" };
	const struct hd_json *types = NULL;
	enum hd_err err = hd_json_get(s, "types", HD_JSON_ARRAY, &types, diag);

	if (!err)
		printf("%-12s %8s %6s %6s %6s %8s %12s\n", "type", "devices", "busy", "free", "lost", "speed",
			"price $/h");
	for (size_t i = 0; !err && i < hd_json_count(types); i++) {
		const struct hd_json *t = hd_json_item(types, i);
		const char *name = "";
		int64_t n[4] = { 0 };
		double speed = 0, price = 0;
		err = hd_json_get_text(t, "type", &name, diag);
		for (int k = 0; k < 4 && !err; k++)
			err = hd_json_get_i64(t, numbers[k], 0, INT64_MAX, &n[k], diag);
		if (!err)
			err = hd_json_get_f64(t, "speed", &speed, diag);
		if (!err)
			err = hd_json_get_f64(t, "price_usd_h", &price, diag);
		if (!err)
			printf("%-12s %8lld %6lld %6lld %6lld %8.3g %12.4g\n", name, (long long)n[0],
				(long long)n[1], (long long)n[2], (long long)n[3],
				speed, price);
	}
	return err;
}

static enum hd_err print_jobs(const struct hd_json *in, const char *key, bool *headed, size_t *n,
	struct hd_diag *diag)
{
	const struct hd_json *list = NULL;
	struct hd_scheduled job;
	enum hd_err err = hd_json_get(in, key, HD_JSON_ARRAY, &list, diag);

	*n = err ? 0 : hd_json_count(list);
	if (*n && !*headed)
		hd_scheduled_head(stdout);
	*headed |= *n > 0;
	for (size_t i = 0; i < *n && !err; i++) {
		err = hd_scheduled_read(hd_json_item(list, i), &job, diag);
		if (!err)
			hd_scheduled_print(&job, stdout);
	}
	return err;
}

static enum hd_err print(const struct view *v, struct hd_diag *diag)
{
	int64_t queued = 0;
	bool headed = false;
	size_t n = 0;
	enum hd_err err = print_head(v->status, &queued, diag);

	if (!err)
		err = print_devices(v->status, diag);
	if (!err)
		err = print_jobs(v->status, "running", &headed, &n, diag);
	if (!err)
		err = print_jobs(v->waiting, "jobs", &headed, &n, diag);
	if (!err && queued > (int64_t)n)
		printf("and %lld more that wait: `heddle jobs --state queued` lists them\n",
			(long long)(queued - (int64_t)n));
	return err;
}

static enum hd_err once(struct hd_cmd *cmd, bool clear)
{
	struct view v;
	enum hd_err err = look(cmd, &v);

	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		err = hd_scheduler_print(cmd, v.status);
	else {
		if (clear && cmd->rewrite)
			printf("\033[H\033[2J");
		err = print(&v, &cmd->diag);
	}
	fflush(stdout);
	return err;
}

enum hd_err hd_scheduler_status(struct hd_cmd *cmd, bool again, bool clear)
{
	uint64_t every = cmd->args.has[HD_OPT_EVERY] ? cmd->args.count[HD_OPT_EVERY] : HD_EVERY_MS;
	enum hd_err err = every >= HD_EVERY_LEAST_MS ? once(cmd, clear) :
		hd_fail(&cmd->diag, HD_E_INVAL, "--every is at least %d (milliseconds)", HD_EVERY_LEAST_MS);

	if (err || !again)
		return err;
	struct hd_live_misses misses = { 0 };
	err = hd_signal_install(&cmd->diag);
	while (!err && !hd_signal_stop()) {
		hd_arena_reset(&cmd->arena);
		hd_clock_wait_until(&cmd->clock, hd_clock_now_ns(&cmd->clock) + (int64_t)every * 1000000);
		err = hd_signal_stop() ? HD_OK : once(cmd, clear);
		err = hd_live_missed(&misses, err) ? HD_OK : err;
	}
	return err == HD_E_NOTFOUND ? HD_OK : err;        /* it was there, and ended */
}
