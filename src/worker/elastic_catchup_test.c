/* A state transfer between the I/O threads of a source and a joiner: what one tells the other comes at once,
 * and no time passes, so nothing is repeated because it took long. This file plays what the file under test
 * calls (it is linked in place of the library's): hubs, the queue to the compute threads. */
#include "worker/elastic_int.h"

#include <string.h>

#include "tests/check.h"

enum { SOURCE = 1, JOINER = 2, OTHERS = 3, NOTHING = 99 };

static struct hd_elastic source, joiner;
static struct hd_elastic_spec spec;
static struct hd_clock_sim sim;
static uint8_t buffer[HD_ELASTIC_CHUNKS][8];

/* ---- the hubs */
static bool cut;                          /* what the source tells is lost */
static uint32_t ntold, ninvited, invited[8];

bool hd_hub_is_up(const struct hd_hub *hub, uint32_t worker) { (void)hub; (void)worker; return true; }

enum hd_err hd_hub_tell(struct hd_hub *hub, uint32_t worker, uint32_t id, uint64_t step, const void *bytes,
	size_t len, struct hd_diag *diag)
{
	(void)step;
	(void)diag;
	assert_int_equal(id, HD_ASK_ID);
	if (hub == &joiner.hub) {
		assert_true(worker == SOURCE && len);
		ntold++;
		hd_elastic_asked(&source, JOINER, bytes, (uint32_t)len);
		return HD_OK;
	}
	assert_true(hub == &source.hub && !len && ninvited < 8);
	invited[ninvited++] = worker;
	if (worker == JOINER && !cut)
		hd_elastic_invited(&joiner, SOURCE);
	return HD_OK;
}

enum hd_err hd_hub_expect(struct hd_hub *hub, uint32_t worker, uint64_t request, void *to, uint64_t cap,
	struct hd_diag *diag)
{
	(void)request;
	(void)cap;
	(void)diag;
	assert_true(hub == &joiner.hub && worker == SOURCE && to);
	return HD_OK;
}

enum hd_err hd_hub_answer(struct hd_hub *hub, uint32_t worker, const struct hd_answer *answer,
	struct hd_diag *diag)
{
	(void)hub;
	(void)worker;
	(void)answer;
	return hd_fail(diag, HD_E_BUG, "no source was made");
}

void hd_hub_drop(struct hd_hub *hub, uint32_t worker, enum hd_close reason, const char *why)
{
	(void)hub;
	(void)worker;
	(void)reason;
	fail_msg("%s", why);
}

/* ---- the machines and the compute threads */
static uint32_t nmade;

enum hd_err hd_commands_give(struct hd_commands *commands, const struct hd_command *command,
	struct hd_diag *diag)
{
	(void)diag;
	assert_true(commands == &source.commands && command->kind == HD_COMMAND_TRANSFER);
	nmade += command->flag && command->worker == JOINER;
	return HD_OK;
}

void hd_elastic_feed(struct hd_elastic *of, const struct hd_member_event *event) { (void)of; (void)event; }
void hd_elastic_fail(struct hd_elastic *of, enum hd_err err, const struct hd_diag *diag)
{
	(void)of;
	fail_msg("%d: %s", (int)err, diag->text);
}
void hd_elastic_slots_lost(struct hd_elastic *of, uint32_t worker) { (void)of; (void)worker; }
bool hd_member_holds(const struct hd_member *member) { (void)member; return false; }
const struct hd_view *hd_member_view(const struct hd_member *member) { (void)member; return NULL; }

/* ---- */

static int begin(void **state)
{
	(void)state;
	memset(&source, 0, sizeof source);
	memset(&joiner, 0, sizeof joiner);
	hd_clock_sim(&sim, 1000000, 0);
	spec = (struct hd_elastic_spec){ .clock = &sim.clock };
	source.spec = joiner.spec = &spec;
	source.detect_ns = joiner.detect_ns = INT64_C(60000000000);
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		source.transfer[i].worker = HD_NOBODY;
	for (uint32_t i = 0; i < HD_ELASTIC_CHUNKS; i++)
		joiner.chunk[i].bytes = buffer[i];
	source.source = joiner.source = HD_NOBODY;
	cut = false;
	ntold = ninvited = nmade = 0;
	return 0;
}

static bool is_asked(void)
{
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		if (source.transfer[i].worker == JOINER && !source.transfer[i].ended)
			return source.transfer[i].out[0].asked && source.transfer[i].out[1].asked;
	return false;
}

/* The coordinator sends SEND_STATE and SYNC on two links: any of them may be the first. */
static void it_is_served_whichever_comes_first(void **state)
{
	for (int first = 0; first < 2; first++) {
		begin(state);
		if (first)
			hd_elastic_send_state(&source, JOINER, true);
		hd_elastic_sync(&joiner, SOURCE, 0);
		if (!first) {
			assert_false(is_asked());
			hd_elastic_send_state(&source, JOINER, true);
		}
		CHECK(is_asked() && nmade == 1, "SEND_STATE %s", first ? "first" : "last");
	}
}

/* It is no reason to go to another source, and none to ask a source that is not its own. */
static void only_its_own_source_invites(void **state)
{
	(void)state;
	hd_elastic_sync(&joiner, SOURCE, 0);
	const uint32_t asked = ntold;
	hd_elastic_invited(&joiner, SOURCE + 1);
	assert_int_equal(ntold, asked);
	hd_elastic_promoted(&joiner);
	hd_elastic_invited(&joiner, SOURCE);
	assert_int_equal(ntold, asked);
}

static void let_go_of(uint32_t i)
{
	const struct hd_command_done done = { .command = { .kind = HD_COMMAND_TRANSFER,
		.worker = source.transfer[i].worker, .number = i } };

	hd_elastic_transfer_done(&source, &done);
}

/* More joiners than a source serves at once: whose turn it is hears so when another is through. */
static void it_is_invited_when_another_is_served(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		hd_elastic_send_state(&source, OTHERS + i, true);
	ninvited = 0;
	hd_elastic_sync(&joiner, SOURCE, 0);
	hd_elastic_send_state(&source, JOINER, true);
	assert_int_equal(ninvited, 0);            /* nothing is free */
	hd_elastic_send_state(&source, OTHERS, false);
	assert_false(is_asked());                 /* the compute thread still has it */
	let_go_of(0);
	/* with the first request that it repeats it has the place; then it repeats all */
	assert_true(ninvited >= 1 && invited[0] == JOINER && nmade == 1);
	assert_true(is_asked());
}

/* What is being sent of a transfer that has ended keeps its place until it is sent. */
static void it_is_invited_when_the_last_chunk_of_another_is_sent(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		hd_elastic_send_state(&source, OTHERS + i, true);
	hd_elastic_sync(&joiner, SOURCE, 0);
	hd_elastic_send_state(&source, JOINER, true);
	source.transfer[0].out[0].sending = true;
	hd_elastic_send_state(&source, OTHERS, false);
	let_go_of(0);
	assert_int_equal(nmade, 0);
	hd_elastic_chunk_sent(&source, &(struct hd_sent){
		.token = (uint64_t)(uintptr_t)&source.transfer[0].out[0] });
	assert_true(nmade == 1 && is_asked());
}

/* An invitation that is lost costs what a request that is lost costs. */
static void it_repeats_its_requests_by_itself_as_well(void **state)
{
	(void)state;
	cut = true;
	hd_elastic_sync(&joiner, SOURCE, 0);
	hd_elastic_send_state(&source, JOINER, true);
	hd_elastic_ask(&joiner);
	assert_false(is_asked());
	hd_clock_sim_advance(&sim, joiner.detect_ns);
	hd_elastic_ask(&joiner);
	assert_true(is_asked());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(it_is_served_whichever_comes_first, begin),
		cmocka_unit_test_setup(only_its_own_source_invites, begin),
		cmocka_unit_test_setup(it_is_invited_when_another_is_served, begin),
		cmocka_unit_test_setup(it_is_invited_when_the_last_chunk_of_another_is_sent, begin),
		cmocka_unit_test_setup(it_repeats_its_requests_by_itself_as_well, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
