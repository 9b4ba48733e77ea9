#include "run/functions.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "sys/crypto.h"
#include "engine/stretch.h"
#include "run/functions_bill.h"
#include "run/run_int.h"

#define LEAST_S 1.0                       /* steps that are one observation of the tuner */
enum { WINDOWS = 3, LOG_BYTES = 256 << 20, PORTS = 64 };

static const char *const argv[] = { "/proc/self/exe", "worker", "--function=pool", "-q", NULL };

static const char *text_or_null(const struct hd_job *job, enum hd_job_key key)
{
	return job->value[key].is_none ? NULL : hd_job_text(job, key);
}

/* Calls at once, at most. */
static uint32_t slots_of(const struct hd_job *job)
{
	return (uint32_t)hd_job_int(job, job->value[HD_JOB_FN_SIZE].is_auto ? HD_JOB_FN_MAX : HD_JOB_FN_SIZE);
}

/* Equal bits need kernels that have the same on any machine, and one device that waits for them. */
static enum hd_err check(struct hd_run *run, struct hd_diag *diag)
{
	struct hd_worker_spec *spec = &run->options.worker;

	if (strcmp(spec->kind, "cpu") != 0 || spec->kernels != HD_KERNELS_PORTABLE)
		return hd_fail(diag, HD_E_INVAL, "functions.kind: %s: functions compute with our own "
			"kernels, and this run with those of %s: set job.kernels to portable, on cores",
			hd_job_text(run->job, HD_JOB_FN_KIND), strcmp(spec->kind, "cpu") != 0 ?
			spec->kind : hd_kernels_text(spec->kernels));
	if (run->job->value[HD_JOB_FN_SIZE].is_auto &&
		hd_job_int(run->job, HD_JOB_FN_MIN) > hd_job_int(run->job, HD_JOB_FN_MAX))
		return hd_fail(diag, HD_E_INVAL, "functions.min is %lld and functions.max %lld: no size of a "
			"pool lies between them", (long long)hd_job_int(run->job, HD_JOB_FN_MIN),
			(long long)hd_job_int(run->job, HD_JOB_FN_MAX));
	if (!spec->ndevices) {            /* auto: one, of all cores */
		spec->ndevices = 1;
		spec->nthreads = run->options.auto_cores ? run->options.auto_cores : 1;
	}
	return HD_OK;
}

static void begin_tuning(struct hd_run *run, const struct hd_fn_tuner_spec *spec)
{
	struct hd_run_functions *f = run->functions;

	f->tunes = true;
	hd_fn_tuner_init(&f->tuner, spec, run->job->nvns);
	hd_fn_owner_resize(&f->service.owner, f->tuner.slots);
}

void hd_run_functions_ask(const struct hd_job *job, struct hd_fn_service_spec *service,
	struct hd_fn_tuner_spec *tuner)
{
	/* these rest where a word that was said later is pool (job/check.c) */
	const bool serves = hd_job_int(job, HD_JOB_FN_KIND) != HD_FUNCTIONS_POOL;

	*service = (struct hd_fn_service_spec){ .kind = hd_job_text(job, HD_JOB_FN_KIND),
		.name = hd_job_text(job, HD_JOB_FN_NAME),
		.endpoint = serves ? text_or_null(job, HD_JOB_FN_ENDPOINT) : NULL,
		.listen = serves ? text_or_null(job, HD_JOB_FN_LISTEN) : NULL, .argv = argv,
		.price = hd_job_text(job, HD_JOB_FN_PRICE), .ntasks = job->nvns, .slots = slots_of(job),
		.lease_ns = hd_job_int(job, HD_JOB_FN_DEADLINE),
		.memory_mb = hd_job_int(job, HD_JOB_FN_MEMORY),
		.faults = { .seed = (uint64_t)hd_job_int(job, HD_JOB_SEED) } };
	*tuner = (struct hd_fn_tuner_spec){ .min = (uint32_t)hd_job_int(job, HD_JOB_FN_MIN),
		.max = service->slots, .budget_per_hour = job->value[HD_JOB_FN_BUDGET].f,
		.least_s = LEAST_S };
}

enum hd_err hd_run_functions_open(struct hd_run *run, struct hd_diag *diag)
{
	struct hd_fn_service_spec spec;
	struct hd_fn_tuner_spec tuner;

	if (!(run->options.stages || run->options.shared) ||
		hd_job_int(run->job, HD_JOB_FN_KIND) == HD_FUNCTIONS_NONE)
		return HD_OK;
	hd_run_functions_ask(run->job, &spec, &tuner);
	spec.clock = run->clock;
	spec.fs = run->fs;
	spec.nports = run->options.shared ? PORTS : 0;
	enum hd_err err = check(run, diag);
	if (err)
		return err;
	run->functions = hd_alloc(sizeof *run->functions);
	if (!run->functions)
		return hd_fail(diag, HD_E_NOMEM, "no memory for functions");
	memset(run->functions, 0, sizeof *run->functions);
	err = hd_fn_service_open(&run->functions->service, &spec, diag);
	if (err)
		return err;
	run->functions->service.owner.board.shares = true;
	if (run->job->value[HD_JOB_FN_SIZE].is_auto)
		begin_tuning(run, &tuner);
	run->options.worker.functions = &run->functions->service.owner;
	return HD_OK;
}

void hd_run_functions_tell(struct hd_run *run)
{
	const char *why = "";
	uint32_t n;

	if (!run->functions || run->functions->said || (run->options.shared && !run->options.watch.note))
		return;
	run->functions->said = true;
	const struct hd_fn_service *s = &run->functions->service;
	n = hd_stretches_of(run->worker, &why);
	hd_run_note(run, "choice", "functions: %s, %u at once%s, %u parts of a step as tasks of each virtual "
		"node, prices of %s%s; they call %s", s->spec.kind, s->owner.board.slots,
		run->functions->tunes ? " to begin with" : "", n, s->price.date,
		s->pays ? "" : " (emulated)", s->owner.listener.addr);
	if (why[0])
		hd_run_note(run, "warning", "functions: %s", why);
}

/* ---- the bill ---- */

/* Calls end soon after their results; a lost one at its deadline. Others wait for one of several workers */
static void await_calls(struct hd_run *run)
{
	struct hd_fn_owner *o = &run->functions->service.owner;
	const int64_t until_ns = hd_clock_now_ns(run->clock) + (run->options.shared ? HD_RUN_FN_WAIT_NS / 10 :
		HD_RUN_FN_WAIT_NS);
	uint32_t none;

	while (hd_fn_owner_is_calling(o) && hd_clock_now_ns(run->clock) < until_ns)
		if (hd_fn_owner_turn(o, until_ns, false, &none, NULL))
			return;
}

/* Lines of the service's log in place of estimates: of a pool its own, else functions.reports, which is one
 * for all callers and so of use to one process alone. */
static void settle(struct hd_run *run)
{
	struct hd_fn_service *s = &run->functions->service;
	const char *name = s->dir[0] ? s->log_name : text_or_null(run->job, HD_JOB_FN_REPORTS);
	struct hd_diag diag = { "" };
	uint64_t added = 0;
	uint8_t *log = NULL;
	size_t len = 0;

	if (!name || (!s->dir[0] && run->options.shared))
		return;
	enum hd_err err = s->log && fflush(s->log) ? hd_fail(&diag, HD_E_IO, "cannot write %s", name) :
		hd_file_read_all(run->fs, name, &s->arena, LOG_BYTES, &log, &len, &diag);
	if (!err)
		err = hd_fn_bill_settle(&s->owner.bill, (const char *)log, len, &added, &diag);
	if (err)
		hd_run_note(run, "warning", "the bill of functions is by this process's clock: %s",
			diag.text);
}

/* A worker of another machine says it to the coordinator. */
static void say_bill(struct hd_run *run, const struct hd_functions_bill *bill)
{
	struct hd_run_functions *f = run->functions;
	char line[HD_FN_BILL_LINE];
	uint8_t byte[8];

	if (!f->drawn && !hd_random_bytes(byte, sizeof byte, NULL))
		f->drawn = hd_get64(byte);
	if (f->drawn)
		hd_run_note(run, HD_NOTE_BILL, "%s", hd_functions_bill_note(line, bill, f->drawn));
}

/* For `heddle status`. A disk that fails stops no step. */
static void keep_bill(struct hd_run *run)
{
	struct hd_run_functions *f = run->functions;
	const struct hd_fn_owner *o = &f->service.owner;
	const struct hd_functions_bill bill = { .accepted = o->board.count.accepted,
		.here = o->board.count.here, .calls = o->bill.ncalls,
		.nano_usd = hd_fn_bill_nano(&o->bill), .pays = f->service.pays };
	struct hd_diag diag = { "" };

	f->kept_ns = hd_clock_now_ns(run->clock);
	if (!run->dir && run->options.shared)
		say_bill(run, &bill);
	if (!run->dir || f->unkept || !hd_functions_bill_put(run->fs, run->dir->path, &f->file, &bill, &diag))
		return;
	f->unkept = true;
	hd_run_note(run, "warning", "the bill of functions cannot be written: %s", diag.text);
}

static void tell_bill(struct hd_run *run)
{
	struct hd_fn_service *s = &run->functions->service;
	const struct hd_fn_counts *n = &s->owner.board.count;

	await_calls(run);
	settle(run);
	hd_run_note(run, "functions", "functions: %llu tasks by functions, %llu here; %llu attempts, %llu "
		"duplicates, %llu failed, %llu throttled; bill: %lld nano-dollars for %llu calls, %llu of "
		"them estimated, %u not ended (prices of %s%s)",
		(unsigned long long)n->accepted, (unsigned long long)n->here, (unsigned long long)n->attempts,
		(unsigned long long)n->duplicates, (unsigned long long)n->failures,
		(unsigned long long)n->throttled, (long long)hd_fn_bill_nano(&s->owner.bill),
		(unsigned long long)s->owner.bill.ncalls, (unsigned long long)s->owner.bill.nestimated,
		s->owner.calling, s->price.date, s->pays ? "" : ", emulated");
}

/* ---- how many at once ---- */

static void begin_epoch(struct hd_run *run)
{
	struct hd_run_functions *f = run->functions;

	f->at_ns = hd_clock_now_ns(run->clock);
	f->nano = hd_fn_bill_nano(&f->service.owner.bill);
	f->idle_ns = hd_stretches_idle_ns(run->worker);
}

static void tune(struct hd_run *run)
{
	struct hd_run_functions *f = run->functions;
	const double usd_h = run->job->value[HD_JOB_USD_H].f > 0 ? run->job->value[HD_JOB_USD_H].f :
		HD_RUN_FN_CORE_USD_H * run->options.worker.nthreads;
	const int64_t took_ns = hd_clock_now_ns(run->clock) - f->at_ns,
		idle_ns = hd_stretches_idle_ns(run->worker) - f->idle_ns;
	struct hd_fn_owner *o = &f->service.owner;
	const double usd = (double)(hd_fn_bill_nano(&o->bill) - f->nano) * 1e-9;
	const uint32_t was = f->tuner.slots;
	struct hd_fn_tuner_epoch epoch = { .seconds = (double)took_ns * 1e-9, .function_usd = usd,
		.away = hd_fn_board_is_away(&o->board) || (o->board.offers && f->silent) };

	if (!f->at_ns || took_ns <= 0)    /* of the first step the begin is not known */
		return;
	epoch.usd = usd + usd_h / 3600 * epoch.seconds;
	for (int i = 0; i <= WINDOWS; i++)
		hd_fn_tuner_window(&f->tuner, idle_ns > took_ns / 8 ? 0 : i);
	const struct hd_fn_tuned d = hd_fn_tuner_next(&f->tuner, &epoch);
	hd_fn_owner_resize(o, d.slots);
	if (d.says)
		hd_run_note(run, "functions_size", "functions: %u at once (it was %u), by %s: value %.4g a "
			"dollar and second, expected %.4g", d.slots, was, hd_fn_tuner_reasons[d.why],
			d.value, d.expected);
}

/* ---- the service ---- */

/* Each said once, until a call ends well again. */
static void look_at_service(struct hd_run *run)
{
	struct hd_run_functions *f = run->functions;
	const struct hd_fn_owner *o = &f->service.owner;
	const int64_t silent_ns = hd_fn_owner_silent_ns(o);
	const char *last = o->last_error[0] ? o->last_error : "no answer so far";

	if (o->board.count.closed != f->closed && !f->shut) {
		hd_run_note(run, "warning", "functions: %d calls in a row failed, so all is run here for "
			"%lld s, and then until one ends well; the last one: %s", HD_FN_CIRCUIT,
			(long long)(HD_FN_CLOSED_NS / HD_NS_PER_S), last);
		f->shut = f->silent = true;
	} else if (silent_ns >= HD_RUN_FN_SILENT_NS && !f->silent) {
		hd_run_note(run, "warning", "functions: no call has ended well for %.1f s (%llu failed, %llu "
			"refused), and what they were to do is run here; the last one: %s",
			(double)silent_ns * 1e-9, (unsigned long long)o->board.count.failures,
			(unsigned long long)o->board.count.throttled, last);
		f->silent = true;
	} else if (f->silent && o->board.offers && silent_ns < HD_RUN_FN_SILENT_NS &&
		!hd_fn_board_is_away(&o->board)) {          /* others may be under way all the time */
		hd_run_note(run, "functions_back", "functions: calls end well again");
		f->shut = f->silent = false;
	}
	f->closed = o->board.count.closed;
}

void hd_run_functions_look(struct hd_run *run, bool ends)
{
	struct hd_run_functions *f = run->functions;

	if (!f || f->billed)
		return;
	hd_run_functions_tell(run);
	look_at_service(run);
	if (f->tunes && !ends) {
		tune(run);
		begin_epoch(run);
	}
	f->billed = ends;
	if (ends)
		tell_bill(run);
	if (ends || hd_clock_now_ns(run->clock) - f->kept_ns >= HD_RUN_FN_KEEP_NS)
		keep_bill(run);
}

void hd_run_functions_close(struct hd_run *run)
{
	if (!run->functions)
		return;
	hd_fn_service_close(&run->functions->service);
	hd_free(run->functions);
	run->functions = NULL;
}
