#include "clustersim/availability.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/check.h"
#include "tests/shared_file.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static enum hd_err read_text(struct hd_spot_trace *t, const char *text, size_t len, struct hd_diag *diag)
{
	diag->text[0] = 0;
	return hd_availability_read(t, "t", (const uint8_t *)text, len, 7, &arena, diag);
}

/* What the material's own description says: sizes[k] instants at which k + 1 go. */
static void published_traces_are_what_their_description_says(void **state)
{
	static const struct { const char *path; uint32_t n, removals, sizes[6], most, end; } traces[] = {
		{ "data/spot/p3-trace.csv", 344, 167, { 39, 13, 15, 7, 1, 4 }, 32, 10 },
		{ "data/spot/g4dn-trace.csv", 153, 74, { 31, 12, 2, 2, 1, 0 }, 24, 5 },
		{ "data/spot/gcloud-a100x1-east1b.txt", 0, 0, { 0 }, 64, 64 },
		{ "data/spot/gcloud-v100x1-east1c.txt", 0, 0, { 0 }, 80, 80 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
		struct hd_spot_trace t;
		struct hd_diag diag = { "" };
		uint32_t sizes[65] = { 0 }, removals = 0, there = 0, most = 0, together = 0, largest = 0;
		size_t len;
		const uint8_t *bytes = shared_bytes(traces[i].path, &arena, &len);
		if (!bytes)
			SKIP("data/spot is neither in HEDDLE_SHARED nor in tests");
		CHECK(!hd_availability_read(&t, traces[i].path, bytes, len, 1, &arena, &diag), "%s",
			diag.text);
		for (size_t k = 0; k < t.n; k++) {
			if (!k || t.at[k].at_ms != t.at[k - 1].at_ms)
				together = 0;
			there += t.at[k].added ? 1 : UINT32_MAX;
			most = there > most ? there : most;
			removals += !t.at[k].added;
			together += !t.at[k].added;
			largest = together > largest ? together : largest;
			if (!t.at[k].added && (k + 1 == t.n || t.at[k + 1].at_ms != t.at[k].at_ms))
				sizes[together - 1]++;
		}
		CHECK(most == traces[i].most && there == traces[i].end, "%s: at most %u, at the end %u",
			traces[i].path, most, there);
		CHECK(traces[i].n || largest == (i == 2 ? 36 : 40), "%s: falls by %u", traces[i].path,
			largest);
		CHECK(!traces[i].n || (t.n == traces[i].n && removals == traces[i].removals &&
			!memcmp(sizes, traces[i].sizes, sizeof traces[i].sizes)),
			"%s: %zu events, %u removals", traces[i].path, t.n, removals);
	}
	hd_arena_reset(&arena);
}

static void a_list_of_starts_and_stops_becomes_events(void **state)
{
	static const char *const texts[] = {
		"name,start,stop\na,100,160.5\nb,130,\na,200,230\n",
		("zone\tstop\tname\tstart\nx\t2021-12-11 10:01:00.5\ta\t2021-12-11T10:00:00\n"
		"x\t\tb\t2021-12-11T10:00:30Z\nx\t2021-12-11 10:02:10\ta\t2021-12-11 10:01:40\n"),
		"start,name,stop\r\n200,a,230\r\n130,b,\r\n\r\n100,a,160.5\r\n",
	};
	static const struct hd_spot_event want[] = { { 0, 0, true }, { 30000, 1, true }, { 60500, 0, false },
		{ 100000, 2, true }, { 130000, 2, false } };
	(void)state;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct hd_spot_trace t;
		struct hd_diag diag;
		CHECK(!read_text(&t, texts[i], strlen(texts[i]), &diag), "case %zu: %s", i, diag.text);
		CHECK(t.n == 5 && t.nnodes == 3 && !strcmp(t.name[2], "a#2"), "case %zu: %zu events", i, t.n);
		for (size_t k = 0; k < 5; k++)
			CHECK(t.at[k].at_ms == want[k].at_ms && t.at[k].node == want[k].node &&
				t.at[k].added == want[k].added, "case %zu, event %zu", i, k);
	}
	static const char thrice[] = "name,start,stop\na,1,2\na,3,4\na,5,6\na,6,6\n";
	struct hd_spot_trace t;
	struct hd_diag diag;
	CHECK(!read_text(&t, thrice, sizeof thrice - 1, &diag), "%s", diag.text);
	assert_true(t.n == 8 && t.at[6].at_ms == 5000 && t.at[7].at_ms == 5000);
	assert_string_equal(t.name[2], "a#3");
	assert_string_equal(t.name[3], "a#4");
	/* at once: in the order of the file */
	static const char at_once[] = "name,start,stop\nc,2,\nb,1,3\na,1,3\n";
	CHECK(!read_text(&t, at_once, sizeof at_once - 1, &diag), "%s", diag.text);
	assert_string_equal(t.name[0], "b");
	assert_string_equal(t.name[1], "a");
	assert_true(t.n == 5 && t.at[3].node == 0 && t.at[4].node == 1);
}

static void bad_files_are_refused_with_their_place(void **state)
{
	static const struct { const char *text, *says; } bad[] = {
		{ "", "t: no machine ever comes in it" },
		{ "name,start,stop\n", "t: no machine ever comes in it" },
		{ "name,start,stop\na,1\n", "t:2:3: 2 fields, the header has 3" },
		{ "name,start,stop\na,5,4\n", "t:2:5: it stops before it starts" },
		{ "name,start,stop\n,5,6\n", "t:2:1: the machine has no name" },
		{ "name,start,stop\na,soon,6\n", "t:2:3: start \"soon\" is no time" },
		{ "name,start,stop\na,1,6\na,5,7\n", "t: \"a\" starts before it stopped" },
		{ "name,start,stop\na,1,\na,5,7\n", "t: \"a\" starts before it stopped" },
		{ "name,start,stop\na,1,2\na,5,7\na#2,1,2\n", "t: \"a#2\" is added again at 4.000 s" },
		{ "name,start,stop\na,1,2e12\n", "t:2:3: more than 1e+12 s after the first start" },
		{ "name,start\na,1\n", "t:1:1: 2 fields: a line is" },
		{ "0,add,a\n1,remove,b\n", "t: \"b\" is removed before it is added" },
		{ "2021-12-11, 10:00:00, 5\n2021-12-11, 10:0", "t:2:1: 2 fields: a line is" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_spot_trace t;
		struct hd_diag diag;
		CHECK(read_text(&t, bad[i].text, strlen(bad[i].text), &diag) == HD_E_INPUT, "case %zu", i);
		CHECK(!strncmp(diag.text, bad[i].says, strlen(bad[i].says)), "case %zu: %s", i, diag.text);
	}
}

/* What a last line without an end says may be half of what was written. */
static void a_line_that_may_be_cut_off_is_named_as_that(void **state)
{
	static const char tells[] = "the last one, has no end: it may be cut off";
	static const struct { const char *text, *line; } cut[] = {
		{ "0,add,node12\n5,add,b\n9,remove,node1", "; line 3, " },
		{ "0,add,a\n5,add,ab\n9,add,a", "; line 3, " },
		{ "0,add,a\n5,rem", "; line 2, " },
		{ "0,add,a\n5,remov,a", "; line 2, " },
		{ "2021-12-11, 10:00:00, 5\n2021-12-11, 10:0", "; line 2, " },
		{ "name\tstart\tstop\na\t1\t2\nb\t3", "; line 3, " },
		{ "name,start,stop\na,100,220\nb,300,3", "; line 3, " },
		{ "0,add,node12\n5,add,b\n9,remove,node1\n", NULL },
		{ "9,remove,node1\n0,add,node12", NULL },
		{ "0,add,a\n5,rem\n6,add,b", NULL },
		{ "name\tstart\tstop\na\t1\t2\nb\t3\n", NULL },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
		struct hd_spot_trace t;
		struct hd_diag diag;
		CHECK(read_text(&t, cut[i].text, strlen(cut[i].text), &diag) == HD_E_INPUT, "case %zu", i);
		const bool said = strstr(diag.text, tells) != NULL, is_cut = cut[i].line != NULL;
		CHECK(said == is_cut && (!said || strstr(diag.text, cut[i].line)), "case %zu: %s", i,
			diag.text);
	}
	struct hd_spot_trace t;
	struct hd_diag diag;
	CHECK(!read_text(&t, "0,add,a\n5,remove,a", 18, &diag) && t.n == 2, "%s", diag.text);
}

/* A file that ends early, or has one other byte, is read or refused with a reason; nothing worse. */
static void no_cut_and_no_flipped_byte_does_harm(void **state)
{
	static const char *const good[] = { "0,add,a\n10,add,b\n20,remove,a\n",
		"2021-12-11, 10:00:00, 5\n2021-12-11, 10:01:00, 3\n2021-12-11, 10:00:30, 9\n",
		"name,start,stop\na,1,2\nb,1,\na,5,7\n" };
	(void)state;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		for (size_t k = 0; k <= strlen(good[i]); k++)
			for (int flip = -1; flip < 8; flip++) {
				char text[128];
				struct hd_spot_trace t;
				struct hd_diag diag;
				size_t len = flip < 0 ? k : strlen(good[i]);
				memcpy(text, good[i], strlen(good[i]) + 1);
				if (flip >= 0 && k < len)
					text[k] = (char)(text[k] ^ 1 << flip);
				enum hd_err err = read_text(&t, text, len, &diag);
				CHECK(!err || (err == HD_E_INPUT && *diag.text), "case %zu, byte %zu", i, k);
				hd_arena_reset(&arena);
			}
}

static void without_memory_it_says_so(void **state)
{
	static const char text[] = "name,start,stop\na,1,2\nb,1,\na,5,7\n";
	struct hd_spot_trace t;
	struct hd_diag diag;
	enum hd_err err;
	(void)state;

	EACH_PIECE_REFUSED(err, read_text(&t, text, sizeof text - 1, &diag));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_traces_are_what_their_description_says),
		cmocka_unit_test(a_list_of_starts_and_stops_becomes_events),
		cmocka_unit_test(bad_files_are_refused_with_their_place),
		cmocka_unit_test(a_line_that_may_be_cut_off_is_named_as_that),
		cmocka_unit_test(no_cut_and_no_flipped_byte_does_harm),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
