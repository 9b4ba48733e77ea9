#include "daemon/run_page.h"

#include <math.h>

#include <stdio.h>
#include <string.h>

#include "sys/crypto.h"
#include "run/curve.h"
#include "daemon/answers.h"

enum { POINTS = 500, TURN = 16 };
#define TURN_NS INT64_C(1000000000)

/* ---- answers ---- */

struct run_answer { struct hd_run_page *page; const struct hd_json *ask; struct hd_json_writer *w;
	struct hd_live *live; };

static struct hd_answer_job job_of(const struct hd_live *l)
{
	return (struct hd_answer_job){ .id = 1, .name = l->name, .user = "", .state = l->state,
		.step = l->step, .steps = l->steps,
		.priority = 1, .scale = l->target, .devices_n = l->members, .type = "",
		.rate = l->step_ms > 0 ? 1e3 / l->step_ms : 0, .submitted_s = -1, .started_s = -1,
		.ended_s = -1, .deadline_s = -1,
		.expected_error = NAN, .exit = l->exit, .after = "", .partition = "", .account = "",
		.why = l->why };
}

static enum hd_err answer_jobs(struct run_answer *a, struct hd_diag *diag)
{
	const struct hd_answer_job job = job_of(a->live);
	int64_t after = 0;
	enum hd_err err = hd_json_find(a->ask, "after") ?
		hd_json_get_i64(a->ask, "after", 0, INT64_MAX, &after, diag) : HD_OK;

	if (!err)
		hd_fields_put(&hd_answer_jobs_fields, 0, &(struct hd_answer_jobs){
			.jobs = { .at = &job, .n = after < 1 } }, a->w);
	return err;
}

static enum hd_err answer_job(struct run_answer *a, struct hd_diag *diag)
{
	(void)diag;
	hd_fields_put(&hd_answer_job_whole_fields, 0, &(struct hd_answer_job_whole){ .job = job_of(a->live),
		.lease = "", .run = a->page->run, .digest = "", .paid = a->live->paid }, a->w);
	return HD_OK;
}

static enum hd_err answer_run(struct run_answer *a, struct hd_diag *diag)
{
	(void)diag;
	hd_live_put(a->live, 0, a->w);
	return HD_OK;
}

static enum hd_err answer_metrics(struct run_answer *a, struct hd_diag *diag)
{
	struct hd_answer_points points = { 0 };
	char path[HD_PATH_CAP];
	int64_t most = POINTS;
	enum hd_err err = hd_json_find(a->ask, "points") ?
		hd_json_get_i64(a->ask, "points", 2, HD_CURVE_POINTS, &most, diag) : HD_OK;

	if (err)
		return err;
	(void)snprintf(path, sizeof path, "%s/metrics.ndjson", a->page->run);
	err = hd_curve_read(a->page->reach.fs, path, (uint32_t)most, a->page->reach.arena, &points.at,
		&points.n, diag);
	if (err && err != HD_E_NOTFOUND)
		return err;
	hd_fields_put(&hd_answer_curve_fields, 0, &(struct hd_answer_curve){ .id = 1,
		.points = { .fill = hd_answer_points_fill, .user = &points } }, a->w);
	return HD_OK;
}

static enum hd_err answer_scale(struct run_answer *a, struct hd_diag *diag)
{
	const struct hd_json *answer;
	int64_t scale = 0;
	char text[64];
	enum hd_err err = hd_json_get_i64(a->ask, "scale", 1, INT32_MAX, &scale, diag);

	(void)snprintf(text, sizeof text, "{\"do\":\"scale\",\"workers\":%lld}", (long long)scale);
	if (!err)
		err = hd_reach_ask(&a->page->reach, a->page->run, text, &answer, diag);
	if (!err)
		hd_fields_put(&hd_answer_scale_fields, 0, &(struct hd_answer_scale){ 1, scale }, a->w);
	return err;
}

/* A run of one process stops with its own signal; `heddle stop` does that. */
static enum hd_err answer_cancel(struct run_answer *a, struct hd_diag *diag)
{
	const struct hd_json *answer;
	enum hd_err err = hd_reach_ask(&a->page->reach, a->page->run, "{\"do\":\"stop\"}", &answer, diag);

	if (!err)
		hd_fields_put(&hd_answer_state_fields, 0, &(struct hd_answer_state){ 1, "stopping", 1 },
			a->w);
	return err;
}

static enum hd_err check_job(const struct hd_json *ask, const struct hd_live *live, struct hd_diag *diag)
{
	const struct hd_json *job = hd_json_find(ask, "job");
	const char *name = "";
	int64_t id = 0;

	if (!job)
		return HD_OK;
	if (hd_json_kind(job) == HD_JSON_TEXT ?
		!hd_json_as_text(job, &name, NULL) && !strcmp(name, live->name) :
		!hd_json_as_i64(job, 1, 1, &id, NULL))
		return HD_OK;
	return hd_fail(diag, HD_E_NOTFOUND, "there is one job here: 1, the run %.60s", live->name);
}

static enum hd_err answer(void *self, const struct hd_caller *by, const char *what, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag)
{
	(void)by;
	static const struct { const char *what; enum hd_err (*answer)(struct run_answer *, struct hd_diag *);
		} row[] = {
		{ "jobs", answer_jobs }, { "job", answer_job }, { "run", answer_run },
		{ "metrics", answer_metrics }, { "scale", answer_scale }, { "cancel", answer_cancel },
	};
	struct hd_run_page *page = self;

	hd_arena_reset(page->reach.arena);
	struct run_answer a = { page, ask, w, hd_arena_take(page->reach.arena, 1, sizeof *a.live) };
	enum hd_err err = a.live ? hd_reach_look(&page->reach, page->run, a.live, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for the workers of a run");
	if (!err)
		err = check_job(ask, a.live, diag);
	for (size_t i = 0; i < sizeof row / sizeof *row && !err; i++)
		if (!strcmp(row[i].what, what))
			return row[i].answer(&a, diag);
	return err ? err : hd_fail(diag, HD_E_INVAL, "a run does not \"%s\"", what);
}

/* ---- the server ---- */

static void tell(const struct hd_run_page *page, const struct hd_http *http, const struct hd_key *token)
{
	char url[HD_ADDR_CAP + 2 * HD_KEY_BYTES + 24];
	struct hd_text text;

	hd_text_fixed(&text, url, sizeof url);
	hd_text_addf(&text, "http://%s/#token=", http->listener.addr + strlen("tcp:"));
	for (size_t i = 0; i < HD_KEY_BYTES; i++)
		hd_text_addf(&text, "%02x", token->byte[i]);
	page->opened(page->user, url);
}

static enum hd_err serve(struct hd_run_page *page, struct hd_http *http, struct hd_loop *loop,
	struct hd_diag *diag)
{
	struct hd_loop_event event[TURN];
	enum hd_err err = HD_OK;

	while (!err && !page->stop(page->user)) {
		int64_t now = hd_clock_now_ns(page->reach.clock), next = hd_http_tick(http, now);
		size_t n = 0;
		err = hd_loop_poll(loop, next < now + TURN_NS ? next : now + TURN_NS, event, TURN, &n, diag);
		for (size_t i = 0; i < n; i++)
			hd_http_event(http, &event[i]);
	}
	return err;
}

enum hd_err hd_run_page(struct hd_run_page *page, struct hd_diag *diag)
{
	struct hd_live *live = hd_arena_take(page->reach.arena, 1, sizeof *live);
	struct hd_key token = { 0 };
	struct hd_net net;
	struct hd_loop loop = { 0 };
	struct hd_http http = { .handler = { page, answer, hd_identify_owner }, .token = &token,
		.gate.run = true, .tag = 1 };
	char addr[HD_ADDR_CAP];

	enum hd_err err = live ? hd_reach_look(&page->reach, page->run, live, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for a page");
	if (!err)
		err = hd_http_where(page->where, addr, diag);
	if (!err)
		err = hd_random_bytes(token.byte, sizeof token.byte, diag);
	hd_net_real(&net);
	if (!err)
		err = hd_loop_init(&loop, page->reach.clock, diag);
	if (err)
		return err;
	err = hd_http_open(&http, addr, &loop, &net, diag);
	if (!err) {
		tell(page, &http, &token);
		err = serve(page, &http, &loop, diag);
	}
	hd_http_close(&http);
	hd_key_wipe(&token);
	hd_loop_finish(&loop);
	return err;
}
