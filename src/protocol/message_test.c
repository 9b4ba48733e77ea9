#include "protocol/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plan/ins.h"
#include "tests/check.h"

static const struct hd_vrank rank[] = { { 1, 4 }, { 2, 3 } };
static const struct hd_vrange range[] = { { 0, 4 }, { 9, 1 }, { 5, 2 } };
static const struct hd_pass pass[] = { { 1, 0, 0, 2, 0 }, { 2, 0, 2, 1, 63 } };
static const struct hd_have have[] = { { 0, 3 }, { 7, 0 } };
static const struct hd_held_run held[] = { { 0, 2, 5 }, { 4, 1, 6 } };
static const uint32_t ids[] = { 1, 2 };
static const uint32_t cuts[] = { 0, 12 }, places[] = { 0, 63 }, high[] = { 0, 64 };
static const struct hd_spent_kind spent[] = { { 0, 1, HD_INS_F, 4, 50, 40 },
	{ 3, 0, HD_INS_B, 4, UINT64_MAX, 0 } };
static const uint64_t longs[] = { 5, UINT64_MAX };

/* Two of each with arrays, one of the others: the corpus of the laws below. */
static const struct hd_msg samples[] = {
	{ HD_MSG_JOIN, 1, 2, .join = { .worker = HD_NOBODY, .ndevices = 2, .vn_ps = 9, .naddress = 4, .address = "/a b", .nhost = 3, .host = "\xc3\xa9h" } },
	{ HD_MSG_ADMIT, 1, 2, .admit = { 7, 8 } },
	{ HD_MSG_REFUSE, 1, 2, .refuse = { .code = 2, .nwhy = 2, .why = "no" } },
	{ HD_MSG_PEER, 1, 2, .peer = { .worker = 3, .naddress = 1, .address = "x" } },
	{ HD_MSG_READY_TO_SYNC, 1, 2, .ready_to_sync = { 12 } },
	{ HD_MSG_SYNC, 1, 2, .sync = { 3, 12 } },
	{ HD_MSG_SEND_STATE, 1, 2, .send_state = { 3, true } },
	{ HD_MSG_SYNCED, 1, 2, .synced = { 3, 12 } },
	{ HD_MSG_PREPARE, 1, 2, .prepare = { .next = 3, .nmember = 2, .member = ids, .nrank = 2, .rank = rank,
		.width = 2, .nplace = 2, .place = places, .old_width = 1, .nold_place = 1,
		.old_place = places, .schedule = 5, .old_schedule = 6,
		.way = 4, .old_way = 0x10200, .nold_rank = 1, .old_rank = rank,
		.nfirst = 2, .first = cuts, .nold_first = 1, .old_first = cuts + 1 } },
	{ HD_MSG_PREPARED, 1, 2, .decided = { 3 } },
	{ HD_MSG_DECIDE, 1, 2, .decided = { 3 } },
	{ HD_MSG_SEAL, 1, 2, .seal = { .step = 4, .knows = 3,
		.news = { .loss_sum = 0.5, .step_ns = 9, .wait_ns = 8, .compute_ns = 7, .redone = 2,
		.redundant_ns = 6, .stalled_ns = 5, .read_wait_ns = 4, .bytes_out = 3,
		.preempted = 12, .inverted = 13, .nterms = 2, .term_sum = { 0.25, 1.5 },
		.skipped = true }, .nheld = 2, .held = held } },
	{ HD_MSG_SUSPECT, 1, 2, .suspect = { 3, HD_HUNG } },
	{ HD_MSG_FENCE, 1, 2, .fence = { .ndead = 2, .dead = ids } },
	{ HD_MSG_STATUS, 1, 2, .status = { .at = 4, .begun = true, .npass = 2, .pass = pass, .nrange = 3, .range = range, .nsum = 2, .sum = longs,
		.updated = true, .stops = true, .nparm = 1, .parm = longs + 1, .nslot = 2, .slot = longs,
		.width = 2, .schedule = 7, .way = 0x202, .nplace = 2, .place = places,
		.nfirst = 2, .first = cuts } },
	{ HD_MSG_VIEW, 1, 2, .view = { .step = 4, .hold = true, .fewer = true, .table = 1, .nmember = 2, .member = ids, .nat = 2, .at = longs, .nrank = 2, .rank = rank,
				       .npass = 2, .pass = pass, .nrange = 3, .range = range, .nhave = 2,
				       .have = have,
				       .nparm = 1, .parm = have, .nchain = 2, .chain = have,
				       .width = 2, .schedule = 8, .way = 3, .nplace = 2, .place = places,
				       .nfirst = 2, .first = cuts, .ndoubled = 1, .doubled = ids,
				       .nnext = 2, .next = ids, .narrived = 1, .arrived = range } },
	{ HD_MSG_STOPPED, 1, 2, .stopped = { .step = 4, .of = 1, .nrank = 2, .rank = ids, .nnext = 2, .next = ids,
		.narrived = 2, .arrived = range } },
	{ HD_MSG_UNFIT, 1, 2, .unfit = { .view = 3, .nwhy = 7, .why = "8 MiB of" } },
	{ HD_MSG_STALE, 1, 2, .none = { 0 } },
	{ HD_MSG_LEAVE, 1, 2, .leave = { .code = 75, .left_ns = 20000, .nwhy = 1, .why = "?" } },
	{ HD_MSG_RELEASE, 1, 2, .release = { .code = 0 } },
	{ HD_MSG_STOP, 1, 2, .stop = { .code = 130 } },
	{ HD_MSG_ENDED, 1, 2, .ended = { .nwhy = 4, .why = "over" } },
	{ HD_MSG_HALT, 1, 2, .halt = { 9 } },
	{ HD_MSG_DONE, 1, 2, .done = { .step = 9, .code = 4 } },
	{ HD_MSG_EVENT, 1, 2, .event = { .nkind = 1, .kind = "k", .njson = 2, .json = "{}" } },
	{ HD_MSG_PROGRESS, 1, 2, .progress = { 1, 2, 3, true } },
	{ HD_MSG_SPENT, 1, 2, .spent = { .step = 4, .nspent = 2, .spent = spent } },
	{ HD_MSG_SLOTTED, 1, 2, .halt = { 9 } },
	{ HD_MSG_ENTERED, 1, 2, .none = { 0 } },
	{ HD_MSG_ASK, 1, 2, .none = { 0 } },
	{ HD_MSG_OFFER, 1, 2, .offer = { .data_count = 7, .ntext = 2, .text = "{}", .nfolder = 1, .folder = "/" } },
};
enum { NSAMPLES = sizeof samples / sizeof *samples, ROOM = 4096 };

static void every_kind_comes_back_as_it_went_and_no_byte_is_spare(void **state)
{
	bool seen[HD_MSG_NKINDS] = { false };
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < NSAMPLES; i++) {
		uint8_t bytes[ROOM], again[ROOM];
		size_t len = 0, len2 = 0;
		struct hd_msg msg;
		const char *name = hd_msg_name(samples[i].kind);
		assert_int_equal(hd_msg_encode(&samples[i], bytes, ROOM, &len, NULL), HD_OK);
		assert_int_equal(len, hd_msg_len(&samples[i]));
		assert_int_equal(hd_msg_encode(&samples[i], again, len - 1, &len2, NULL), HD_E_NOSPACE);
		CHECK(hd_msg_decode(&msg, samples[i].kind, bytes, len, &arena, NULL) == HD_OK, "%s", name);
		assert_int_equal(hd_msg_encode(&msg, again, ROOM, &len2, NULL), HD_OK);
		CHECK(len == len2 && !memcmp(bytes, again, len), "%s", name);
		for (size_t cut = 0; cut < len; cut++)
			CHECK(hd_msg_decode(&msg, samples[i].kind, bytes, cut, &arena, NULL) == HD_E_PROTOCOL,
				"%s cut to %zu", name, cut);
		bytes[len] = 0;
		CHECK(hd_msg_decode(&msg, samples[i].kind, bytes, len + 1, &arena, NULL) == HD_E_PROTOCOL,
			"%s and a byte", name);
		seen[samples[i].kind] = true;
		hd_arena_reset(&arena);
	}
	for (uint32_t k = 0; k < HD_MSG_NKINDS; k++)
		CHECK(seen[k] == (hd_msg_name((enum hd_msg_kind)k) != NULL), "kind %u has no sample", k);
	hd_arena_finish(&arena);
}

static void fields_arrive_in_their_places(void **state)
{
	struct hd_arena arena;
	uint8_t bytes[ROOM];
	size_t len = 0;
	struct hd_msg msg;

	(void)state;
	hd_arena_init(&arena, 1 << 20);
	assert_int_equal(hd_msg_encode(&samples[15], bytes, ROOM, &len, NULL), HD_OK);
	assert_int_equal(hd_msg_decode(&msg, HD_MSG_VIEW, bytes, len, &arena, NULL), HD_OK);
	assert_true(msg.term == 1 && msg.epoch == 2 && msg.view.step == 4 && msg.view.hold &&
		msg.view.halt == 0 && msg.view.table == 1);
	assert_true(msg.view.member[1] == 2 && msg.view.at[1] == UINT64_MAX && msg.view.rank[0].nvns == 4 &&
		msg.view.range[2].first == 5);
	assert_true(msg.view.pass[1].worker == 2 && msg.view.pass[1].first_range == 2 &&
		msg.view.have[1].first == 7);
	hd_arena_finish(&arena);
}

/* One byte changed: refused, or another message that is written back as those very bytes. */
static void what_is_accepted_is_understood_completely(void **state)
{
	struct hd_arena arena;
	uint32_t refused = 0;

	(void)state;
	hd_arena_init(&arena, 1 << 24);
	for (size_t i = 0; i < NSAMPLES; i++) {
		uint8_t bytes[ROOM], again[ROOM];
		size_t len = 0, len2 = 0;
		assert_int_equal(hd_msg_encode(&samples[i], bytes, ROOM, &len, NULL), HD_OK);
		for (size_t at = 0; at < len; at++)
			for (uint32_t flip = 1; flip < 256; flip += 50) {
				struct hd_msg msg;
				bytes[at] ^= (uint8_t)flip;
				enum hd_err err = hd_msg_decode(&msg, samples[i].kind, bytes, len, &arena,
					NULL);
				CHECK(err == HD_OK || err == HD_E_PROTOCOL, "%s byte %zu: %d",
					hd_msg_name(samples[i].kind), at, err);
				if (!err)
					CHECK(!hd_msg_encode(&msg, again, ROOM, &len2, NULL) && len == len2 &&
						!memcmp(bytes, again, len), "%s byte %zu",
						hd_msg_name(samples[i].kind), at);
				refused += err != HD_OK;
				bytes[at] ^= (uint8_t)flip;
				hd_arena_reset(&arena);
			}
	}
	assert_true(refused > 100);
	hd_arena_finish(&arena);
}

static void what_breaks_a_rule_is_refused(void **state)
{
	static const struct hd_have gap[] = { { 1, 3 } }, back[] = { { 0, 1 }, { 0, 2 } },
		beyond[] = { { 0, 1 }, { HD_MAX_BUCKETS, 1 } };
	/* 3 of 32 bits in all */
	static const struct hd_pass over[] = { { 1, 0, 0, UINT32_MAX, 0 }, { 2, 0, 0, 4, 0 } };
	static const struct hd_spent_kind twice[] = { { 1, 1, HD_INS_F, 1, 1, 1 },
		{ 1, 1, HD_INS_F, 2, 2, 2 } },
		sinking[] = { { 1, 1, HD_INS_F, 1, 1, 1 }, { 1, 0, HD_INS_B, 1, 1, 1 } },
		no_rank[] = { { HD_VIEW_RANKS, 0, HD_INS_F, 1, 1, 1 } },
		no_stage[] = { { 0, HD_STAGE_BITS, HD_INS_F, 1, 1, 1 } },
		no_ins[] = { { 0, 0, HD_INS_END, 1, 1, 1 } };
	static const struct hd_pass beyond_stages[] = { { 1, 0, 0, 3, 64 } };
	static const struct hd_msg bad[] = {
		{ HD_MSG_PREPARE, 1, 2, .prepare = { .nplace = 2, .place = high } },
		{ HD_MSG_PREPARE, 1, 2, .prepare = { .nold_place = 2, .old_place = high } },
		{ HD_MSG_VIEW, 1, 2, .view = { .nplace = 2, .place = high } },
		{ HD_MSG_STATUS, 1, 2, .status = { .nplace = 2, .place = high } },
		{ HD_MSG_STATUS, 1, 2, .status = { .npass = 1, .pass = beyond_stages, .nrange = 3, .range = range } },
		{ HD_MSG_SUSPECT, 1, 2, .suspect = { 3, HD_NSUSPICIONS } },
		{ HD_MSG_REFUSE, 1, 2, .refuse = { .code = 2, .nwhy = 2, .why = "a\n" } },
		{ HD_MSG_REFUSE, 1, 2, .refuse = { .code = 2, .nwhy = 2, .why = "a\xff" } },
		{ HD_MSG_REFUSE, 1, 2, .refuse = { .code = 2, .nwhy = 2, .why = "a\x7f" } },
		{ HD_MSG_VIEW, 1, 2, .view = { .nmember = 2, .member = ids, .nat = 1, .at = longs } },
		{ HD_MSG_VIEW, 1, 2, .view = { .nhave = 1, .have = gap } },
		{ HD_MSG_VIEW, 1, 2, .view = { .nhave = 2, .have = back } },
		{ HD_MSG_VIEW, 1, 2, .view = { .nhave = 2, .have = beyond } },
		{ HD_MSG_VIEW, 1, 2, .view = { .nparm = 2, .parm = back } },
		{ HD_MSG_VIEW, 1, 2, .view = { .nchain = 2, .chain = back } },
		{ HD_MSG_VIEW, 1, 2, .view = { .npass = 2, .pass = over, .nrange = 3, .range = range } },
		{ HD_MSG_VIEW, 1, 2, .view = { .npass = 1, .pass = pass, .nrange = 3, .range = range } },
		{ HD_MSG_STATUS, 1, 2, .status = { .npass = 2, .pass = pass, .nrange = 2, .range = range } },
		{ HD_MSG_STOPPED, 1, 2, .stopped = { .nrank = 2, .rank = ids, .nnext = 1, .next = ids } },
		{ HD_MSG_SPENT, 1, 2, .spent = { .nspent = 2, .spent = twice } },
		{ HD_MSG_SPENT, 1, 2, .spent = { .nspent = 2, .spent = sinking } },
		{ HD_MSG_SPENT, 1, 2, .spent = { .nspent = 1, .spent = no_rank } },
		{ HD_MSG_SPENT, 1, 2, .spent = { .nspent = 1, .spent = no_stage } },
		{ HD_MSG_SPENT, 1, 2, .spent = { .nspent = 1, .spent = no_ins } },
	};
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	uint8_t bytes[ROOM];
	struct hd_msg msg;
	size_t len = 0;

	(void)state;
	hd_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(hd_msg_encode(&bad[i], bytes, ROOM, &len, NULL), HD_OK);
		CHECK(hd_msg_decode(&msg, bad[i].kind, bytes, len, &arena, NULL) == HD_E_PROTOCOL, "case %zu",
			i);
	}
	assert_int_equal(hd_msg_decode(&msg, 15, bytes, 8, &arena, &diag), HD_E_PROTOCOL);
	assert_string_equal(diag.text, "no message has the number 15");
	assert_int_equal(hd_msg_decode(&msg, UINT32_MAX, bytes, 8, &arena, &diag), HD_E_PROTOCOL);
	assert_null(hd_msg_name((enum hd_msg_kind)(1 << 28)));
	assert_int_equal(hd_msg_encode(&(struct hd_msg){ (enum hd_msg_kind)15, 1, 2, .none = { 0 } }, bytes,
		ROOM, &len, NULL), HD_E_INVAL);
	assert_int_equal(hd_msg_encode(&(struct hd_msg){ HD_MSG_REFUSE, 1, 2,
		.refuse = { .nwhy = HD_MSG_TEXT + 1 } }, bytes, ROOM, &len, NULL), HD_E_INVAL);
	hd_arena_finish(&arena);
	hd_arena_init(&arena, 64);
	assert_int_equal(hd_msg_encode(&samples[15], bytes, ROOM, &len, NULL), HD_OK);
	assert_int_equal(hd_msg_decode(&msg, HD_MSG_VIEW, bytes, len, &arena, NULL), HD_E_NOMEM);
	hd_arena_finish(&arena);
}

/* Rule 1: behind the last byte lies a page that may not be read. */
static void nothing_is_read_behind_a_message(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hd_arena arena;

	(void)state;
	assert_ptr_not_equal(two, MAP_FAILED);
	assert_int_equal(mprotect(two + page, page, PROT_NONE), 0);
	hd_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < NSAMPLES; i++) {
		uint8_t bytes[ROOM];
		size_t len = 0;
		assert_int_equal(hd_msg_encode(&samples[i], bytes, ROOM, &len, NULL), HD_OK);
		for (size_t cut = 0; cut < len; cut++) {
			struct hd_msg msg;
			memcpy(two + page - cut, bytes, cut);
			CHECK(hd_msg_decode(&msg, samples[i].kind, two + page - cut, cut, &arena,
				NULL) == HD_E_PROTOCOL, "%s cut to %zu",
				hd_msg_name(samples[i].kind), cut);
			hd_arena_reset(&arena);
		}
	}
	hd_arena_finish(&arena);
	munmap(two, 2 * page);
}

/* A count is held against the bytes that are there before memory is taken; that memory is short is said of
 * sound messages alone. */
static void memory_is_taken_only_for_what_is_there(void **state)
{
#define FIFTY "01234567890123456789012345678901234567890123456789"
	static const char text[200] = FIFTY FIFTY FIFTY "0123456789012345678901234567890123456789012345678";
	static const struct { uint32_t naddress, nhost; size_t cut, used; enum hd_err err; } cases[] = {
		{ 199, 3, 0, 192, HD_E_NOMEM },                   /* the second would fit */
		{ 10, 60, 20, 256, HD_E_PROTOCOL },               /* the first does not fit, and the second is not there */
		{ HD_MSG_ADDR + 1, 3, 0, 0, HD_E_INVAL },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_msg join = { HD_MSG_JOIN, 1, 2, .join = { .address = text, .host = text } }, msg;
		struct hd_arena arena;
		uint8_t bytes[ROOM];
		size_t len = 0;
		join.join.naddress = cases[i].naddress;
		join.join.nhost = cases[i].nhost;
		enum hd_err err = hd_msg_encode(&join, bytes, ROOM, &len, NULL);
		hd_arena_init(&arena, 256);
		assert_true(!cases[i].used || hd_arena_take(&arena, cases[i].used, 1));
		if (!err)
			err = hd_msg_decode(&msg, HD_MSG_JOIN, bytes, len - cases[i].cut, &arena, NULL);
		CHECK(err == cases[i].err, "case %zu: %d", i, err);
		hd_arena_finish(&arena);
	}
	struct hd_msg no = { HD_MSG_REFUSE, 1, 2, .refuse = { .nwhy = 199, .why = text } }, msg;
	struct hd_arena arena;
	uint8_t bytes[ROOM];
	size_t len = 0;
	assert_int_equal(hd_msg_encode(&no, bytes, ROOM, &len, NULL), HD_OK);
	hd_arena_init(&arena, 1 << 20);
	assert_int_equal(hd_msg_decode(&msg, HD_MSG_REFUSE, bytes, len - 1, &arena, NULL), HD_E_PROTOCOL);
	assert_int_equal(arena.used_bytes, 0);
	hd_arena_finish(&arena);
}

/* A seed of a message that is refused at its first byte starts no fuzzing of it. */
static void a_seed_of_every_kind_is_understood(void **state)
{
	const char *source = getenv("SOURCE_DIR");

	(void)state;
	for (int kind = 0; kind < HD_MSG_NKINDS; kind++) {
		const char *name = hd_msg_name((enum hd_msg_kind)kind);
		uint8_t bytes[ROOM];
		char path[512];
		struct hd_arena arena;
		struct hd_msg msg;
		struct hd_diag diag = { "" };
		if (!name)
			continue;
		snprintf(path, sizeof path, "%s/fuzz/corpus/message/%s", source ? source : ".", name);
		FILE *file = fopen(path, "rb");
		CHECK(file, "%s: no such seed", path);
		const size_t len = fread(bytes, 1, sizeof bytes, file);
		fclose(file);
		hd_arena_init(&arena, 1 << 20);
		CHECK(len > 1 && len < sizeof bytes && bytes[0] == kind && hd_msg_decode(&msg, bytes[0],
			bytes + 1, len - 1, &arena, &diag) == HD_OK, "%s: %s", path, diag.text);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_comes_back_as_it_went_and_no_byte_is_spare),
		cmocka_unit_test(fields_arrive_in_their_places),
		cmocka_unit_test(what_is_accepted_is_understood_completely),
		cmocka_unit_test(what_breaks_a_rule_is_refused),
		cmocka_unit_test(nothing_is_read_behind_a_message),
		cmocka_unit_test(memory_is_taken_only_for_what_is_there),
		cmocka_unit_test(a_seed_of_every_kind_is_understood),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
