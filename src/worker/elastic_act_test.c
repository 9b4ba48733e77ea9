/* A refusal that comes late: the compute thread still has BEGIN of a view when the I/O thread begins the step
 * of the next one. What it notes: after the result that it follows from. This file plays what the file under
 * test calls: the member machine, which says what a test gives it to say, and the slots; the test is the
 * compute thread. */
#include "worker/elastic_int.h"

#include <string.h>

#include "tests/check.h"

static struct hd_elastic e;
static struct hd_elastic_spec spec;
static struct hd_clock_sim sim;
static struct hd_exchange exchange;
static struct hd_view view;

/* ---- the member machine */
static const struct hd_member_action *says;
static size_t nsays;
static uint32_t nunfit, unfit_epoch;
static uint32_t nfolded, nearly;

static void fold_at_once(void);

struct hd_member_actions hd_member_step(struct hd_member *member, const struct hd_member_event *event,
	int64_t now_ns)
{
	const struct hd_member_actions now = { says, nsays };

	(void)member;
	(void)now_ns;
	nsays = 0;
	if (event->kind == HD_IN_FINAL)
		fold_at_once();
	nfolded += event->kind == HD_IN_FOLDED;
	nearly += event->kind == HD_IN_EARLY;
	assert_true(nearly <= nfolded);
	nunfit += event->kind == HD_IN_UNFIT;
	unfit_epoch = event->kind == HD_IN_UNFIT ? event->epoch : unfit_epoch;
	return now;
}

const struct hd_view *hd_member_view(const struct hd_member *member) { (void)member; return &view; }
const struct hd_exchange *hd_member_exchange(const struct hd_member *member) { (void)member; return &exchange;
	}
bool hd_member_may_early(const struct hd_member *member, uint32_t bucket)
{
	(void)member;
	(void)bucket;
	return false;
}
enum hd_member_state hd_member_state(const struct hd_member *member) { (void)member; return HD_MEMBER; }
uint32_t hd_member_worker(const struct hd_member *member) { (void)member; return 0; }
uint32_t hd_member_epoch(const struct hd_member *member) { (void)member; return view.epoch; }

/* ---- slots: is there a fetch? */
static bool fetches;

void hd_elastic_slots_fetch(struct hd_elastic *of, uint64_t step, bool read)
{
	(void)step;
	(void)read;
	assert_true(of == &e && !fetches);
	fetches = true;
}

void hd_elastic_slots_void(struct hd_elastic *of)
{
	assert_true(of == &e);
	fetches = false;
}

void hd_elastic_slots_forget(struct hd_elastic *of) { (void)of; }
void hd_elastic_slots_gather(struct hd_elastic *of, const struct hd_command *d) { (void)of; (void)d; }
void hd_elastic_slots_saved(struct hd_elastic *of) { (void)of; }
void hd_elastic_slots_unsaved(struct hd_elastic *of) { (void)of; }
void hd_elastic_slots_view(struct hd_elastic *of, const struct hd_view *was, const struct hd_view *now)
{
	(void)of;
	(void)was;
	(void)now;
}

/* ---- the rest of an elastic worker, of which nothing is asked here */
void hd_elastic_answer(struct hd_elastic *of) { (void)of; }
void hd_elastic_promoted(struct hd_elastic *of) { (void)of; }
void hd_elastic_chunk_done(struct hd_elastic *of, const struct hd_command_done *d) { (void)of; (void)d; }
void hd_elastic_transfer_done(struct hd_elastic *of, const struct hd_command_done *d) { (void)of; (void)d; }
void hd_elastic_note(struct hd_elastic *of, const char *kind, const char *text) { (void)of; (void)kind;
	(void)text; }
void hd_elastic_stopped(struct hd_elastic *of, const struct hd_command *d) { (void)of; (void)d; }
void hd_elastic_sync(struct hd_elastic *of, uint32_t source, uint64_t step)
{
	(void)of;
	(void)source;
	(void)step;
}
void hd_elastic_send_state(struct hd_elastic *of, uint32_t joiner, bool on)
{
	(void)of;
	(void)joiner;
	(void)on;
}

enum hd_err hd_elastic_address(const char *text, char transport[16], char addr[HD_ADDR_CAP],
	struct hd_diag *diag)
{
	(void)transport;
	(void)addr;
	return hd_fail(diag, HD_E_INVAL, "%s", text);
}

const char *hd_elastic_reach(const char *text, bool remote, char one[HD_ELASTIC_ADDR])
{
	(void)remote;
	(void)one;
	return text;
}

/* ---- */

static void wake(void *user) { (void)user; }

static int begin(void **state)
{
	(void)state;
	memset(&e, 0, sizeof e);
	hd_clock_sim(&sim, 1000000, 0);
	spec = (struct hd_elastic_spec){ .clock = &sim.clock };
	e.spec = &spec;
	e.readmit = HD_NOBODY;
	exchange = (struct hd_exchange){ .step = 7 };
	fetches = false;
	nunfit = unfit_epoch = nfolded = nearly = 0;
	nsays = 0;
	return hd_commands_init(&e.commands, wake, NULL, NULL);
}

static int end(void **state)
{
	(void)state;
	hd_commands_finish(&e.commands);
	return 0;
}

static void machine_says(const struct hd_member_action *at, size_t n)
{
	says = at;
	nsays = n;
	hd_elastic_feed(&e, &(struct hd_member_event){ .kind = HD_IN_TICK });
	assert_int_equal(nsays, 0);
}

/* The step in the view of that epoch, and what its part lacks. */
static void begins_in(uint32_t epoch)
{
	static const struct hd_member_action of[] = { { .kind = HD_DO_BEGIN, .step = 7, .fewer = true },
		{ .kind = HD_DO_FETCH, .step = 7 } };

	view = (struct hd_view){ .epoch = epoch, .nmembers = 1 };
	machine_says(of, 2);
	assert_true(fetches);
}

static void cancels(void)
{
	static const struct hd_member_action of[] = { { .kind = HD_DO_CANCEL, .step = 7 } };

	machine_says(of, 1);
}

/* The compute thread has done the next command. */
static void done(enum hd_command_kind kind, bool unfit)
{
	struct hd_command_done result = { .unfit = unfit, .diag = { "3 MiB more" } };

	assert_int_equal(hd_commands_take(&e.commands, &result.command, 1), 1);
	assert_int_equal(result.command.kind, kind);
	hd_commands_done(&e.commands, &result);
	hd_elastic_results(&e);
	assert_false(e.leaving);
}

/* It is of a view before: what the step in force fetches still comes. */
static void a_refusal_that_comes_late_ends_no_fetch_of_the_next_view(void **state)
{
	(void)state;
	begins_in(2);
	cancels();
	begins_in(3);
	done(HD_COMMAND_BEGIN, true);
	assert_true(nunfit == 1 && unfit_epoch == 2);
	assert_true(fetches);
	done(HD_COMMAND_CANCEL, false);
	assert_true(fetches && nunfit == 1);
	/* the view in force is refused as well */
	done(HD_COMMAND_BEGIN, true);
	assert_true(nunfit == 2 && unfit_epoch == 3 && !fetches);
}

static void a_refusal_ends_the_fetch_of_its_view(void **state)
{
	(void)state;
	begins_in(2);
	done(HD_COMMAND_BEGIN, true);
	assert_true(nunfit == 1 && unfit_epoch == 2 && !fetches);
}

/* Between two looks of the I/O thread the compute thread sums a bucket, brings it on and notes that. */
static void fold_at_once(void)
{
	struct hd_command_done result = { .err = HD_OK };

	assert_int_equal(hd_commands_take(&e.commands, &result.command, 1), 1);
	assert_int_equal(result.command.kind, HD_COMMAND_FOLD);
	hd_commands_done(&e.commands, &result);
	hd_finals_note(&e.early, 1);
}

static void new_parameters_are_said_after_the_sum_that_they_are_made_of(void **state)
{
	(void)state;
	e.nbuckets = 2;
	assert_int_equal(hd_finals_init(&e.finals, 2, wake, NULL, NULL), HD_OK);
	assert_int_equal(hd_finals_init(&e.early, 2, wake, NULL, NULL), HD_OK);
	hd_finals_begin(&e.finals, &(struct hd_finals_pass){ 7, 0, 0 });
	hd_finals_begin(&e.early, &(struct hd_finals_pass){ 7, 0, 0 });
	assert_int_equal(hd_commands_give(&e.commands, &(struct hd_command){ .kind = HD_COMMAND_FOLD,
		.step = 7, .bucket = 1 }, NULL), HD_OK);
	e.folds_open = 1;
	hd_finals_note(&e.finals, 0);
	hd_elastic_results(&e);
	hd_elastic_results(&e);
	assert_true(nfolded == 1 && nearly == 1);
	hd_finals_finish(&e.finals);
	hd_finals_finish(&e.early);
}

int main(void)
{
#define T_(name) cmocka_unit_test_setup_teardown(name, begin, end)
	static const struct CMUnitTest tests[] = {
		T_(a_refusal_that_comes_late_ends_no_fetch_of_the_next_view),
		T_(a_refusal_ends_the_fetch_of_its_view),
		T_(new_parameters_are_said_after_the_sum_that_they_are_made_of),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
