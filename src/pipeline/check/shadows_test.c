/* K31 - K35: each rule fires alone where its place in accepted lists is broken; an oracle of its own judges
 * lists changed at random. */
#include "pipeline/redundancy.h"

#include "pipeline/testing_said.h"
#include "tests/check.h"

static struct hd_schedule made(const char *name, uint32_t p, uint32_t m, enum hd_redundancy mode)
{
	struct hd_schedule s = hd_named_schedule(name, p, m, 0), out = { 0 };
	struct hd_diag diag = { "" };
	const struct hd_redundancy_ask ask = { mode, HD_SHADOW_PLACE_RECEIVES, NULL };

	CHECK(hd_redundancy_add(&out, &s, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	return out;
}

/* The text with its first `from` replaced. */
static const char *changed(const char *text, const char *from, const char *to)
{
	char *at = strstr(text, from), *out = hd_arena_take(&arena, strlen(text) + strlen(to) + 1, 1);

	CHECK(at, "%s is not in\n%s", from, text);
	snprintf(out, strlen(text) + strlen(to) + 1, "%.*s%s%s", (int)(at - text), text, to,
		at + strlen(from));
	return out;
}

static void each_rule_fires_where_it_is_broken(void **state)
{
	static const struct { enum hd_redundancy mode; const char *from, *to, *want; } cases[] = {
		{ HD_REDUNDANCY_EAGER, "Fx1.0 ", "Fx2.0 ", "K31 plan: rank 0, #7 Fx2.0: rank 0 shadows stage 1, not 2\n" },
		{ HD_REDUNDANCY_EAGER, "F0.1 SAk0.1>1 ", "F0.1 SAk0.1>1 HA0.1 ", "K31 plan: rank 0, #7 HA0.1: HA is of the rest of a step after a loss\n" },
		{ HD_REDUNDANCY_LAZY, "TAKE1<1", "TAKE1<2", "K31 plan: rank 0, #13 TAKE1<2: it comes from rank 1, not 2\n" },
		{ HD_REDUNDANCY_FULL, "SGx2.0>0", "SGx2.0>1", "K31 plan: rank 2, #6 SGx2.0>1: the shadow of stage 1 lives on rank 0\n" },
		{ HD_REDUNDANCY_LAZY, "TAKE1<1 ", "TAKE1<1 Wx1.0 ", "K31 plan: rank 0, #14 Wx1.0: a shadow does no W\n" },
		{ HD_REDUNDANCY_EAGER, "LD0.1 F0.1 SAk0.1>1 Fx1.0 OFFx1.0", "Fx1.1 LD0.1 F0.1 SAk0.1>1 Fx1.0 OFFx1.0", "it comes before F0.1, whose output it takes\n" },
		{ HD_REDUNDANCY_EAGER, "LDx2.1 Fx2.1", "Fx2.1", "nothing reads virtual node 1 for the shadow: LDx2.1 is missing\n" },
		{ HD_REDUNDANCY_EAGER, "LDx2.1 Fx2.1", "LDx2.1 LDx2.1 Fx2.1", "LDx2.1 comes twice or after its forward\n" },
		{ HD_REDUNDANCY_EAGER, "Fx1.0 ", "LDx1.0 Fx1.0 ", "stage 1 takes nothing from the reader\n" },
		{ HD_REDUNDANCY_EAGER, "Fx1.1 OFFx1.1 ", "", "K32 plan: rank 0: the shadow of stage 1 runs forward for 1 of 2 virtual nodes\n" },
		{ HD_REDUNDANCY_EAGER, "Fx1.1 OFFx1.1 ", "Fx1.1 OFFx1.1 Fx1.1 ", "shadow forward of 1.1 appears twice\n" },
		{ HD_REDUNDANCY_EAGER, "OFFx1.1 ", "OFFx1.1 OFFx1.1 ", "activations of the shadow are not on the device\n" },
		{ HD_REDUNDANCY_EAGER, "OFFx1.1 ", "ONx1.1 ", "activations of the shadow are not on the host\n" },
		{ HD_REDUNDANCY_FULL, "Fx1.0 RGx1.0<2 Bx1.0 ", "RGx1.0<2 Bx1.0 Fx1.0 ", "K32 plan: rank 0, #8 Bx1.0: shadow backward before shadow forward\n" },
		{ HD_REDUNDANCY_FULL, "RGx1.0<2 Bx1.0 ", "Bx1.0 RGx1.0<2 ", "its gradient is not there: RGx1.0 comes before it\n" },
		{ HD_REDUNDANCY_FULL, "Fx1.0 RGx1.0<2 Bx1.0 ", "Fx1.0 OFFx1.0 RGx1.0<2 Bx1.0 ", "activations of the shadow are on the host: ONx1.0 is missing\n" },
		{ HD_REDUNDANCY_FULL, "Bx1.0 ", "Bx1.0 Bx1.0 ", "shadow backward of 1.0 appears twice\n" },
		{ HD_REDUNDANCY_FULL, "RGx1.1<2 Bx1.1 ", "RGx1.1<2 ", "K32 plan: rank 0: the shadow of stage 1 runs backward for 1 of 2 virtual nodes\n" },
		{ HD_REDUNDANCY_FULL, "B2.0 SGk2.0>1 SGx2.0>0", "SGx2.0>0 B2.0 SGk2.0>1", "a gradient is sent before it is made\n" },
		{ HD_REDUNDANCY_FULL, "SGx2.0>0 ", "", "rank 0 takes gradients for its shadow in another order than rank 2 sends them\n" },
		{ HD_REDUNDANCY_FULL, "SGx2.0>0 ", "SGx2.0>0 SGx2.0>0 ", "K32 plan: rank 2, #7 SGx2.0>0: SGx2.0 appears twice\n" },
		{ HD_REDUNDANCY_FULL, "RGx1.0<2 ", "RGx1.0<2 RGx1.0<2 ", "RGx1.0 comes twice or after its backward\n" },
		{ HD_REDUNDANCY_FULL, "Fx1.0 RGx1.0<2 Bx1.0 ", "RGx1.0<2 ", "rank 0: RGx1.0 takes a gradient for a shadow that does not run forward\n" },
		{ HD_REDUNDANCY_EAGER, "Fx1.0 ", "Fcx1.0 ", "a shadow keeps its activations (no flag c): nothing makes them again\n" },
		{ HD_REDUNDANCY_LAZY, "SAk0.1", "SA0.1", "K33 plan: rank 0, #6 SA0.1>1: what is sent is not kept (flag k): after a loss it would be missing\n" },
		{ HD_REDUNDANCY_LAZY, "SGk1.1", "SG1.1", "K33 plan: rank 1, #12 SG1.1>0: what is sent is not kept (flag k): after a loss it would be missing\n" },
		{ HD_REDUNDANCY_LAZY, "SHIP0>2 ", "", "K34 plan: rank 0 ships 0 of 1 buckets of stage 0 to rank 2\n" },
		{ HD_REDUNDANCY_LAZY, "SHIP0>2", "SHIP0>1", "rank 0 ships stage 0 to rank 2, which shadows it\n" },
		{ HD_REDUNDANCY_LAZY, "SHIP0>2 ", "SHIP0>2 SHIP0>2 ", "bucket 0 of stage 0 is shipped twice\n" },
		{ HD_REDUNDANCY_LAZY, "B0.1 SHIP0>2 ", "SHIP0>2 B0.1 ", "bucket 0 of stage 0 is shipped before it is reduced\n" },
		{ HD_REDUNDANCY_LAZY, "TAKE1<1 ", "", "1 of 1 buckets of stage 1 have not arrived: TAKE comes before STEPx\n" },
		{ HD_REDUNDANCY_LAZY, " STEPx1@1", "", "K35 plan: rank 0 never updates its shadow of stage 1\n" },
		{ HD_REDUNDANCY_LAZY, "STEPx1@1", "STEPx1@1 STEPx1@1", "the shadow of stage 1 is updated twice\n" },
		{ HD_REDUNDANCY_EAGER, "STEPx1@1", "STEPx1@1 ONx1.1", "shadow work after its update would use the weights of the next step\n" },
		{ HD_REDUNDANCY_EAGER, "F0.0 SAk0.0>1 LD0.1 F0.1", "SAk0.0>1 F0.0 LD0.1 F0.1", "K10 plan: without its shadows: rank 0, #2 SA0.0>1: activation of 0.0 is sent before it is made (#3)" },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_schedule s = made("1f1b", 3, 2, cases[k].mode);
		const char *text = changed(hd_printed_schedule(&s), cases[k].from, cases[k].to);
		struct hd_schedule broken = hd_parsed_schedule(text);
		const char *said = hd_all_said(&broken, NULL, HD_TRANSPORT_BUFFERED);
		CHECK(strstr(said, cases[k].want), "%s -> %s: %s", cases[k].from, cases[k].to, said);
	}
}

static void shadows_stand_in_complete_lists(void **state)
{
	struct hd_schedule s;

	(void)state;
	s = hd_parsed_schedule("0: F0.0 Fx1.0 B0.0\n1: F1.0 B1.0\n");
	assert_string_equal(hd_all_said(&s, NULL, HD_TRANSPORT_EAGER),
		"K31 plan: shadow work stands in complete lists: transfers are missing\n");
}

static void a_shadow_is_updated_after_the_norm(void **state)
{
	static const char text[] =
		"0: LD0.0 F0.0 SAk0.0>1 RG0.0<1 B0.0 SHIP0>1 TAKE1<1 NORM STEP0 STEPx1\n"
		"1: LD1.0 RA1.0<0 F1.0 B1.0 SGk1.0>0 SHIP1>0 TAKE0<0 NORM STEP1 STEPx0\n";
	struct hd_schedule s;

	(void)state;
	s = hd_parsed_schedule(text);
	assert_string_equal(hd_all_said(&s, NULL, HD_TRANSPORT_EAGER), "");
	s = hd_parsed_schedule(changed(changed(text, " STEPx1", ""), "NORM", "STEPx1 NORM"));
	assert_string_equal(hd_all_said(&s, NULL, HD_TRANSPORT_EAGER),
		"K35 plan: rank 0, #7 STEPx1: the shadow is updated before the norm is known\n");
}

/* TAKE of each waits for the other's SHIP behind it. */
static void ranks_that_wait_for_each_others_sums_are_found(void **state)
{
	struct hd_schedule s;
	const char *said;

	(void)state;
	s = hd_parsed_schedule(
		"0: LD0.0 F0.0 SAk0.0>1 RG0.0<1 B0.0 TAKE1<1 SHIP0>1 STEP0 STEPx1\n"
		"1: LD1.0 RA1.0<0 F1.0 B1.0 SGk1.0>0 TAKE0<0 SHIP1>0 STEP1 STEPx0\n");
	said = hd_all_said(&s, NULL, HD_TRANSPORT_EAGER);
	CHECK(strstr(said, "K7 plan: these instructions wait for each other: rank 0 #5 TAKE1<1 -> rank 1 #5 "
		"TAKE0<0"),
		"%s", said);
}

/* ---- an oracle: executes lists with sets of what each rank has, by names. */

enum { MOST = 600, RANKS = 4 };
struct things { char name[MOST][24]; uint32_t n; };

static bool has(const struct things *t, const char *name)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (!strcmp(t->name[i], name))
			return true;
	return false;
}

static void gain(struct things *t, const char *fmt, uint32_t a, uint32_t b)
{
	CHECK(t->n < MOST, "too many things");
	snprintf(t->name[t->n++], sizeof t->name[0], fmt, a, b);
}

static bool needs(const struct things *t, const char *fmt, uint32_t a, uint32_t b)
{
	char name[24];

	snprintf(name, sizeof name, fmt, a, b);
	return has(t, name);
}

/* Does the rank's next instruction have what it needs? It then makes what it makes. */
static bool try_one(const struct hd_ins *x, uint32_t r, uint32_t last, struct things *own,
	struct things *mail)
{
	const uint32_t s = x->stage, v = x->vn;
	char tag[24];

	if (!hd_ins_redundant(x)) {
		switch (x->op) {
		case HD_INS_F:
			if (s && !needs(own, "act %u.%u", s - 1, v))
				return false;
			gain(own, "act %u.%u", s, v);
			break;
		case HD_INS_B:
			if (s < last && !needs(own, "grad %u.%u", s + 1, v))
				return false;
			gain(own, "grad %u.%u", s, v);
			gain(own, "sum %u.%u", s, v);
			break;
		case HD_INS_SA: gain(&mail[x->peer], "act %u.%u", s, v); break;
		case HD_INS_SG: gain(&mail[x->peer], "grad %u.%u", s, v); break;
		case HD_INS_RA:
			if (!needs(&mail[r], "act %u.%u", s - 1, v))
				return false;
			gain(own, "act %u.%u", s - 1, v);
			break;
		case HD_INS_RG:
			if (!needs(&mail[r], "grad %u.%u", s + 1, v))
				return false;
			gain(own, "grad %u.%u", s + 1, v);
			break;
		default: break;
		}
		return true;
	}
	switch (x->op) {
	case HD_INS_LD: gain(own, "rows %u.%u", s, v); return true;
	case HD_INS_F:
		snprintf(tag, sizeof tag, "act %u.%u", s - 1, v);
		if ((s && !has(own, tag)) || ((s == 0 || s == last) && !needs(own, "rows %u.%u", s, v)))
			return false;
		gain(own, "shadow %u.%u", s, v);
		return true;
	case HD_INS_B:
		if (!needs(own, "shadow %u.%u", s, v) || (s < last && !needs(own, "copy %u.%u", s + 1, v) &&
			!(last == 1 && needs(own, "grad %u.%u", s + 1, v))))
			return false;
		gain(own, "shadowed back %u.%u", s, v);
		return true;
	case HD_INS_SG:
		if (!needs(own, "grad %u.%u", s, v))
			return false;
		gain(&mail[x->peer], "copy %u.%u", s, v);
		return true;
	case HD_INS_RG:
		if (!needs(&mail[r], "copy %u.%u", s + 1, v))
			return false;
		gain(own, "copy %u.%u", s + 1, v);
		return true;
	case HD_INS_SHIP: gain(&mail[x->peer], "sum %u of %u", s, own->n); return true;
	case HD_INS_TAKE:
		for (uint32_t i = 0; i < mail[r].n; i++) {
			uint32_t of = 0, n = 0;
			if (sscanf(mail[r].name[i], "sum %u of %u", &of, &n) == 2 && of == s) {
				gain(own, "sum of %u, %u", s, 0);
				return true;
			}
		}
		return false;
	case HD_INS_STEP: return needs(own, "sum of %u, %u", s, 0);
	default: return true;
	}
}

/* All instructions have what they need at some time. */
static bool runs(const struct hd_schedule *s)
{
	struct things *own = hd_arena_take(&arena, RANKS, sizeof *own), *mail = hd_arena_take(&arena, RANKS,
		sizeof *mail);
	uint32_t at[RANKS] = { 0 };
	bool moved = true, done = true;

	while (moved) {
		moved = false;
		for (uint32_t r = 0; r < s->nranks; r++)
			while (at[r] < s->list[r].len && try_one(&s->list[r].at[at[r]], r, s->nstages - 1,
				&own[r], mail)) {
				at[r]++;
				moved = true;
			}
	}
	for (uint32_t r = 0; r < s->nranks; r++)
		done &= at[r] == s->list[r].len;
	return done;
}

/* Neighbours exchanged, an instruction taken away, moved or given another virtual node: what is still
 * accepted runs, and without any one shadow instruction nothing is accepted. */
static void accepted_lists_run_and_nothing_may_be_missing(void **state)
{
	struct hd_dice dice = { 7 };
	uint32_t accepted = 0, refused = 0;

	(void)state;
	for (uint32_t round = 0; round < 3000; round++) {
		const enum hd_redundancy mode = (enum hd_redundancy)(1 + round % 3);
		struct hd_schedule s = made(round % 2 ? "1f1b" : "gpipe", 2 + round % 3, 2, mode);
		struct hd_ilist *list = &s.list[hd_roll(&dice, s.nranks)];
		uint32_t i = hd_roll(&dice, list->len), k = hd_roll(&dice, list->len), how = hd_roll(&dice,
			3);
		struct hd_ins x = list->at[i];
		if (how == 0) {
			k = i + 1 < list->len ? i + 1 : i;
			list->at[i] = list->at[k];
			list->at[k] = x;
		} else if (how == 1) {
			memmove(&list->at[i], &list->at[i + 1], (list->len - i - 1) * sizeof x);
			memmove(&list->at[k + 1], &list->at[k], (list->len - k - 1) * sizeof x);
			list->at[k] = x;
		} else if (hd_ins_uses(x.op, 'v')) {
			list->at[i].vn ^= 1;
		}
		bool good = *hd_all_said(&s, NULL, HD_TRANSPORT_EAGER) == '\0';
		CHECK(!good || runs(&s), "accepted, and does not run:\n%s", hd_printed_schedule(&s));
		accepted += good;
		refused += !good;
	}
	CHECK(accepted > 100 && refused > 1000, "%u accepted, %u refused", accepted, refused);
	for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++)
		for (uint32_t r = 0; r < 4; r++)
			for (uint32_t i = 0; i < 400; i++) {
				struct hd_schedule s = made("1f1b", 4, 3, (enum hd_redundancy)mode);
				struct hd_ilist *list = &s.list[r];
				/* OFFx only saves memory */
				if (i >= list->len || !hd_ins_redundant(&list->at[i]) ||
					list->at[i].op == HD_INS_OFF)
					continue;
				memmove(&list->at[i], &list->at[i + 1],
					(list->len - i - 1) * sizeof *list->at);
				list->len--;
				CHECK(*hd_all_said(&s, NULL, HD_TRANSPORT_EAGER), "without #%u of rank %u", i,
					r);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_rule_fires_where_it_is_broken, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(shadows_stand_in_complete_lists, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(a_shadow_is_updated_after_the_norm, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(ranks_that_wait_for_each_others_sums_are_found, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(accepted_lists_run_and_nothing_may_be_missing, make_arena,
		drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
