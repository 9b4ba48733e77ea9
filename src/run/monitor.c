#include "run/monitor.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "run/rundir.h"
#include "run/scrape.h"
#include "run/tensorboard.h"

struct hd_monitor {
	struct hd_tensorboard board;
	struct hd_scrape *scrape;
	struct hd_scrape_numbers numbers;
	struct hd_clock *clock;           /* borrowed */
	int64_t began_ns;
	void (*say)(void *user, const char *kind, const char *text);
	void *user;
	bool said_lost;
};

static void say(const struct hd_monitor_spec *spec, const char *kind, const char *fmt, const char *what)
{
	char text[400];

	snprintf(text, sizeof text, fmt, what);
	spec->say(spec->user, kind, text);
}

static void open_board(struct hd_monitor *m, const struct hd_monitor_spec *spec)
{
	struct hd_diag diag = { "" };

	if (hd_tensorboard_open(&m->board, spec->fs, spec->clock, spec->folder, spec->step, &diag))
		say(spec, "warning", "log.tensorboard: the run goes on without it: %s", diag.text);
}

static void open_scrape(struct hd_monitor *m, const struct hd_monitor_spec *spec)
{
	struct hd_diag diag = { "" };
	char at[160];

	if (hd_scrape_open(&m->scrape, spec->clock, hd_job_text(spec->job, HD_JOB_PROMETHEUS), at, sizeof at,
		&diag))
		say(spec, "warning", "log.prometheus: the run goes on without it: %s", diag.text);
	else
		say(spec, "listening", "Prometheus is answered at %s: GET /metrics",
			strncmp(at, "tcp:", 4) ? at : at + 4);
}

void hd_monitor_open(struct hd_monitor **monitor, const struct hd_monitor_spec *spec)
{
	bool board = hd_job_int(spec->job, HD_JOB_TENSORBOARD) != 0,
		scrape = !spec->job->value[HD_JOB_PROMETHEUS].is_none;

	*monitor = NULL;
	if (!board && !scrape)
		return;
	struct hd_monitor *m = hd_alloc(sizeof *m);
	if (!m) {
		spec->say(spec->user, "warning", "no memory for log.tensorboard and log.prometheus");
		return;
	}
	*m = (struct hd_monitor){ .clock = spec->clock, .began_ns = hd_clock_now_ns(spec->clock),
		.say = spec->say, .user = spec->user };
	m->numbers.begun_step = m->numbers.step_number = spec->step;
	if (board)
		open_board(m, spec);
	if (scrape)
		open_scrape(m, spec);
	*monitor = m;
}

/* Once, when there is room for the event, too; it comes back here, and finds itself said. */
static void say_lost(struct hd_monitor *m)
{
	if (!m->board.lost || m->said_lost)
		return;
	m->said_lost = true;
	m->say(m->user, "warning", "log.tensorboard: its file could not be written and has gaps: look at the "
		"space of this disk");
}

static void publish(struct hd_monitor *m)
{
	if (!m->board.failing)
		say_lost(m);
	m->numbers.up_s = (double)(hd_clock_now_ns(m->clock) - m->began_ns) * 1e-9;
	if (m->scrape)
		hd_scrape_set(m->scrape, &m->numbers);
}

void hd_monitor_line(struct hd_monitor *m, const struct hd_step_record *r, const struct hd_step_times *times)
{
	if (m)
		hd_tensorboard_step(&m->board, r, times);
}

void hd_monitor_step(struct hd_monitor *m, const struct hd_step_record *r, const struct hd_step_times *times,
	uint32_t plan, uint64_t lines_lost)
{
	if (!m)
		return;
	struct hd_scrape_numbers *n = &m->numbers;
	hd_scrape_step_took(n, times->step_ms * 1e-3);
	/* the first step that another coordinator began took longer than this one holds the run */
	double held_s = (double)(hd_clock_now_ns(m->clock) - m->began_ns) * 1e-9;
	n->productive_s += times->step_ms * 1e-3;
	n->productive_s = n->productive_s < held_s ? n->productive_s : held_s;
	n->step_number = r->step + 1;
	n->samples = r->samples;
	n->loss = r->weight > 0 ? r->loss_sum / r->weight : 0;
	n->lr = (double)r->lr;
	n->gnorm = r->gnorm;
	n->workers = times->workers;
	n->membership = times->membership;
	n->plan = plan;
	n->wait_s += times->peers_ms * 1e-3;
	n->read_wait_s += (double)r->wait_data_ns * 1e-9;
	n->wire_bytes += times->bytes_out;
	n->preempted += times->preempted;
	n->inverted += times->inverted;
	n->redone += times->redone;
	n->skipped += r->skipped;
	n->lines_lost = lines_lost;
	publish(m);
}

static void take_eval(struct hd_monitor *m, uint64_t step, const struct hd_json *eval)
{
	const struct hd_json *accuracy = hd_json_find(eval, "accuracy");

	hd_tensorboard_eval(&m->board, step, eval);
	m->numbers.evaluated = !hd_json_get_f64(eval, "loss", &m->numbers.eval_loss, NULL);
	m->numbers.has_accuracy = accuracy && !hd_json_as_f64(accuracy, &m->numbers.eval_accuracy, NULL);
}

static void read_eval(struct hd_monitor *m, uint64_t step, const char *body)
{
	const struct hd_json *eval;
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_text_addf(&text, "{%s}", body);
	if (!text.full && !hd_json_parse(&arena, "an event", text.at, text.len, &eval, NULL))
		take_eval(m, step, eval);
	hd_arena_finish(&arena);
}

void hd_monitor_event(struct hd_monitor *m, const char *kind, uint64_t step, const char *body)
{
	if (!m)
		return;
	hd_scrape_event(&m->numbers, kind);
	if (!strcmp(kind, "eval"))
		read_eval(m, step, body);
	publish(m);
}

void hd_monitor_close(struct hd_monitor *m)
{
	if (!m)
		return;
	say_lost(m);
	hd_scrape_close(m->scrape);
	hd_tensorboard_close(&m->board);
	hd_free(m);
}
