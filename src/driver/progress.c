#include "driver/progress.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum { HD_PROGRESS_WORDS = 600, HD_PROGRESS_LINE = HD_PROGRESS_WORDS + 100 };

void hd_driver_progress_init(struct hd_driver_progress *p, const struct hd_driver_progress_spec *spec)
{
	*p = (struct hd_driver_progress){ .spec = *spec };
	hd_arena_init(&p->arena, 0);
}

void hd_driver_progress_finish(struct hd_driver_progress *p) { hd_arena_finish(&p->arena); }

/* The plan that a view stands for; NULL: the step was recorded without one, the last plan is shown. */
static void take_view(struct hd_driver_progress *p, const struct hd_view *view)
{
	const struct hd_plan_job job = hd_plan_job_whole(p->spec.nvns, 1);
	uint32_t counts[HD_VIEW_RANKS];

	if (!view || view->epoch == p->shown)
		return;
	p->shown = view->epoch;
	p->nstages = view->shape.nstages;
	p->npipes = p->nstages ? hd_view_pipes(view) : 0;
	for (uint32_t r = 0; r < view->nranks; r++)
		counts[r] = view->rank[r].nvns;
	hd_arena_reset(&p->arena);
	if (hd_plan_data(&p->plan, &job, view->nranks, counts, &p->arena, NULL))
		p->plan = (struct hd_plan){ 0 };
}

static double seconds_left(const struct hd_driver_progress *p, uint64_t step, int64_t now_ns)
{
	uint64_t done = step - p->began_step;

	return done ?
		(double)(now_ns - p->began_ns) * 1e-9 / (double)done * (double)(p->spec.nsteps - step - 1)
		: 0;
}

static void on_step(void *user, const struct hd_step_news *n, uint64_t step, const struct hd_view *view)
{
	struct hd_driver_progress *p = user;
	int64_t now_ns = hd_clock_now_ns(p->spec.clock);

	take_view(p, view);
	if (!p->begun) {
		p->begun = true;
		p->began_ns = now_ns;
		p->began_step = step;
	}
	struct hd_progress out = { .plan = &p->plan, .nsteps = p->spec.nsteps,
		.nstages = p->nstages, .npipes = p->npipes,
		.step_ms = (double)n->step_ns * 1e-6 };
	out.record.step = step;
	out.record.lr = (float)n->lr;
	out.loss = n->weight > 0 ? n->loss_sum / n->weight : 0;
	hd_times_add(&p->times, out.step_ms);
	out.times = &p->times;
	out.samples_per_s = out.step_ms > 0 ? (double)p->spec.batch * 1e3 / out.step_ms : 0;
	out.wait_share = n->step_ns ? (double)n->wait_ns / (double)n->step_ns : 0;
	out.eta_s = seconds_left(p, step, now_ns);
	p->spec.watch.step(p->spec.watch.user, &out);
}

static void put_member(struct hd_text *to, const char *key, const struct hd_json *value)
{
	const char *text;
	double number;

	if (!hd_json_as_text(value, &text, NULL))
		hd_text_addf(to, "%s%s %s", to->len ? "  " : "", key, text);
	else if (!hd_json_as_f64(value, &number, NULL))
		hd_text_addf(to, "%s%s %.6g", to->len ? "  " : "", key, number);
}

/* What cannot be parsed stays as it is. */
static const char *words_of(const char *text, char *words, size_t cap)
{
	const struct hd_json *json;
	const char *said = text;
	struct hd_arena arena;
	struct hd_text to;

	if (*text != '{')
		return text;
	hd_arena_init(&arena, 0);
	hd_text_fixed(&to, words, cap);
	if (!hd_json_parse(&arena, "an event", text, strlen(text), &json, NULL) &&
		hd_json_kind(json) == HD_JSON_OBJECT) {
		const struct hd_json *alone = hd_json_count(json) == 1 ? hd_json_find(json, "text") : NULL;
		if (alone && !hd_json_as_text(alone, &said, NULL))
			hd_text_add(&to, said);
		for (size_t i = 0; i < hd_json_count(json) && !alone; i++)
			put_member(&to, hd_json_key(json, i), hd_json_item(json, i));
		said = to.len ? words : text;
	}
	hd_arena_finish(&arena);
	return said;
}

static void on_note(void *user, const char *kind, uint32_t worker, const char *text)
{
	struct hd_driver_progress *p = user;
	char line[HD_PROGRESS_LINE], words[HD_PROGRESS_WORDS];

	text = words_of(text, words, sizeof words);
	if (worker != HD_NOBODY)
		snprintf(line, sizeof line, "worker %u: %s", worker, text);
	p->spec.watch.note(p->spec.watch.user, kind, worker != HD_NOBODY ? line : text);
}

struct hd_driver_watch hd_driver_progress_watch(struct hd_driver_progress *p)
{
	return (struct hd_driver_watch){ .user = p, .step = on_step, .note = on_note };
}
