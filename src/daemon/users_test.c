#include "daemon/users.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static uint32_t uid_of(const char *name)
{
	static const struct { const char *name; uint32_t uid; } here[] = { { "root", 0 }, { "ada", 1001 },
		{ "bob", 1002 }, { "eve", 1003 }, { "twin", 1001 } };

	for (size_t i = 0; i < sizeof here / sizeof *here; i++)
		if (!strcmp(name, here[i].name))
			return here[i].uid;
	return HD_NO_UID;
}

static struct hd_arena arena;

static enum hd_err read_text(struct hd_users *users, const char *text, struct hd_diag *diag)
{
	return hd_users_read(users, "users.yaml", text, strlen(text), uid_of, &arena, diag);
}

static const char whole[] =
	"accounts:\n"
	"  vision: {weight: 3, devices: 8, running: 20, queued: 100, order: fifo}\n"
	"  speech:\n"
	"groups:\n"
	"  students: {devices: 2, priority: 1.5}\n"
	"users:\n"
	"  ada: {account: vision, role: operator}\n"
	"  bob: {account: speech, groups: [students], devices: 1}\n"
	"  svc: {uid: 4711, role: admin}\n"
	"  gone:\n"
	"others: {account: speech, running: 0}\n";

static void a_file_is_read_as_it_stands(void **state)
{
	struct hd_users u;
	struct hd_diag diag = { "" };
	(void)state;

	CHECK(read_text(&u, whole, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(u.naccounts, 2);
	assert_string_equal(u.account[0].name, "vision");
	assert_true(u.account[0].weight == 3 && u.account[0].fifo);
	assert_true(u.account[1].weight == 1 && !u.account[1].fifo);
	assert_true(u.account[0].quota.most[HD_QUOTA_DEVICES] == 8);
	assert_true(u.account[0].quota.most[HD_QUOTA_QUEUED] == 100);
	assert_true(isinf(u.account[1].quota.most[HD_QUOTA_DEVICES]));
	assert_true(u.group[0].quota.most[HD_QUOTA_PRIORITY] == 1.5);
	assert_int_equal(u.nusers, 4);
	assert_int_equal(u.user[0].uid, 1001);
	assert_int_equal(u.user[0].role, HD_ROLE_OPERATOR);
	assert_int_equal(u.user[2].uid, 4711);
	assert_int_equal(u.user[3].uid, HD_NO_UID);
	assert_false(u.visible_all);
	assert_non_null(u.others.name);
}

static void what_is_wrong_has_its_place(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "users:\n  ada: {acount: x}\n", "users.yaml:2:9: there is no \"acount\" here; did you mean account?" },
		{ "user: {}\n", "users.yaml:1:1: there is no \"user\" here; did you mean users?" },
		{ "users: [ada]\n", "it should be a" },
		{ "users:\n  ada: 7\n", "users.yaml:2:8" },
		{ "users:\n  ada: {account: visio}\naccounts:\n  vision:\n", "did you mean vision?" },
		{ "users:\n  ada: {groups: [a]}\n", "there is no group \"a\"" },
		{ "groups: {a: , b: , c: , d: , e: }\nusers:\n  ada: {groups: [a, b, c, d, e]}\n", "4 groups at most" },
		{ "groups: {a: }\nusers:\n  ada: {groups: [a, a]}\n", "twice" },
		{ "users:\n  ada: {role: root}\n", "role is user, operator or admin" },
		{ "users:\n  ada: {devices: -1}\n", "devices is a count from 0" },
		{ "users:\n  ada: {devices: 1.5}\n", "devices is a count from 0" },
		{ "users:\n  ada: {priority: 0}\n", "priority is a number from" },
		{ "users:\n  ada: {uid: 0}\n", "from 1 on" },
		{ "users:\n  x: {uid: 1001}\n  ada:\n", "x and ada are one account of this machine (1001)" },
		{ "users:\n  ada:\n  twin:\n", "ada and twin are one account" },
		{ "users:\n  -a:\n", "is no name" },
		{ "users:\n  uid-7:\n", "uid-7 is what an account without a name is called" },
		{ "accounts:\n  a: {weight: 0}\n", "weight is a number" },
		{ "accounts:\n  a: {order: lifo}\n", "order is fair" },
		{ "accounts:\n  lab:\n  v: {parent: labb}\n", "users.yaml:3:15: there is no account \"labb\"; did you mean lab?" },
		{ "accounts:\n  v: {parent: [a, b]}\n  a:\n  b:\n", "users.yaml:2:15: an account has one parent, by name" },
		{ "accounts:\n  v: {parent: a, parent: b}\n  a:\n  b:\n", "users.yaml:2" },
		{ "accounts:\n  a: {parent: a}\n", "users.yaml:2:3: account a lies below itself: a is its parent" },
		{ "accounts:\n  a: {parent: b}\n  b: {parent: c}\n  c: {parent: a}\n", "account a lies below itself: b is its parent" },
		{ "accounts:\n  z: {parent: a}\n  a: {parent: b}\n  b: {parent: a}\n", "account z lies below one that lies below itself" },
		{ "accounts:\n  a:\n  b: {parent: a}\n  c: {parent: b}\n  d: {parent: c}\n  e: {parent: d}\n  f: {parent: e}\n",
		  "users.yaml:7:3: account f has 5 accounts above it: at most 4" },
		{ "accounts: {a: , b: }\nusers:\n  ada: {account: a, accounts: [b]}\n", "give one of account and accounts" },
		{ "accounts: {a: , b: }\nusers:\n  ada: {accounts: [a, b, a]}\n", "account a stands there twice" },
		{ "accounts: {a: }\nusers:\n  ada: {accounts: [a, c]}\n", "there is no account \"c\"" },
		{ "accounts: {a: }\nusers:\n  ada: {accounts: a}\n", "it should be a" },
		{ "accounts: {a: , b: , c: , d: , e: , f: , g: , h: , i: }\nusers:\n  ada: {accounts: [a, b, c, d, e, f, g, h, i]}\n", "8 accounts at most" },
		{ "accounts: {a: }\nusers:\n  ada: {operates: [b]}\n", "there is no account \"b\"" },
		{ "accounts: {a: }\nothers: {operates: [a]}\n", "operate no account" },
		{ "visible: none\n", "visible is own or all" },
		{ "others: {role: admin}\n", "neither a uid nor another role" },
		{ "others: {uid: 5}\n", "neither a uid nor another role" },
		{ "users:\n  ada:\n  ada:\n", "users.yaml:" },
		{ "", "users.yaml" },
		{ "- a\n", "users.yaml:1:1" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_users u = { .nusers = 77 };
		struct hd_diag diag = { "" };
		CHECK(read_text(&u, cases[i].text, &diag) == HD_E_INPUT, "case %zu", i);
		CHECK(strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
		assert_int_equal(u.nusers, 0);
	}
}

static void a_uid_is_a_user_or_another_or_refused(void **state)
{
	struct hd_users u;
	struct hd_caller c;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(read_text(&u, whole, NULL), HD_OK);
	/* the file's name counts, not what the machine calls it now */
	assert_int_equal(hd_users_by_uid(&u, 1001, 5, "renamed", &c, NULL), HD_OK);
	assert_string_equal(c.name, "ada");
	assert_true(c.role == HD_ROLE_OPERATOR && c.uid == 1001 && c.gid == 5 && !c.owner && c.sees_all);
	assert_int_equal(hd_users_by_uid(&u, 7777, 5, "", &c, NULL), HD_OK);
	assert_string_equal(c.name, "uid-7777");
	assert_true(c.role == HD_ROLE_USER && !c.sees_all);
	assert_int_equal(hd_users_by_uid(&u, 7778, 5, "zoe", &c, NULL), HD_OK);
	assert_string_equal(c.name, "zoe");
	/* an account that is called as a user of the file, and is another, is not that one */
	assert_int_equal(hd_users_by_uid(&u, 7779, 5, "svc", &c, NULL), HD_OK);
	assert_string_equal(c.name, "uid-7779");
	assert_int_equal(hd_users_by_uid(&u, 7780, 5, "gone", &c, NULL), HD_OK);
	assert_string_equal(c.name, "uid-7780");
	assert_int_equal(hd_users_by_name(&u, "svc", &c, NULL), HD_OK);
	assert_int_equal(c.uid, 4711);
	assert_int_equal(hd_users_by_name(&u, "zoe", &c, NULL), HD_E_REFUSED);
	assert_int_equal(hd_users_by_name(&u, "gone", &c, NULL), HD_OK);
	assert_int_equal(c.uid, HD_NO_UID);
	assert_int_equal(read_text(&u, "users:\n  ada:\n", NULL), HD_OK);
	assert_int_equal(hd_users_by_uid(&u, 1002, 5, "bob", &c, &diag), HD_E_REFUSED);
	assert_non_null(strstr(diag.text, "bob (1002) is no user"));
	/* a user without an account is not everybody without one */
	assert_int_equal(read_text(&u, "users:\n  gone:\n", NULL), HD_OK);
	assert_int_equal(hd_users_by_uid(&u, HD_NO_UID, 5, "", &c, NULL), HD_E_REFUSED);
}

static void rights_are_the_tables(void **state)
{
	/* by role: may ask; may of its own; may of another's */
	static const struct { const char *what; const char *rows[HD_NROLES]; } cases[] = {
		{ "submit", { "yy-", "yy-", "yyy" } }, { "jobs", { "yy-", "yyy", "yyy" } },
		{ "job", { "yy-", "yyy", "yyy" } }, { "explain", { "yy-", "yyy", "yyy" } },
		{ "cancel", { "yy-", "yyy", "yyy" } }, { "prio", { "yy-", "yyy", "yyy" } },
		{ "events", { "yy-", "yyy", "yyy" } }, { "whatif", { "yy-", "yyy", "yyy" } },
		{ "status", { "yy-", "yyy", "yyy" } }, { "pools", { "yy-", "yyy", "yyy" } },
		{ "waiting", { "yy-", "yyy", "yyy" } }, { "ledger", { "yy-", "yyy", "yyy" } },
		{ "run", { "yy-", "yyy", "yyy" } }, { "metrics", { "yy-", "yyy", "yyy" } },
		{ "device", { "---", "yyy", "yyy" } }, { "stop", { "---", "---", "yyy" } },
		{ "tokens", { "yy-", "yy-", "yyy" } }, { "revoke", { "yy-", "yy-", "yyy" } },
		{ "something new", { "---", "---", "yyy" } },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int role = 0; role < HD_NROLES; role++) {
			const struct hd_caller c = { .uid = 1001, .role = (enum hd_role)role };
			const char *want = cases[i].rows[role];
			CHECK((hd_caller_may(&c, cases[i].what, NULL, NULL) == HD_OK) == (want[0] == 'y'),
				"%s as %s", cases[i].what, hd_role_name(c.role));
			CHECK(hd_caller_may_of(&c, cases[i].what, NULL, 1001) == (want[1] == 'y'),
				"%s of its own as %s", cases[i].what, hd_role_name(c.role));
			CHECK(hd_caller_may_of(&c, cases[i].what, NULL, 1002) == (want[2] == 'y'),
				"%s of another as %s", cases[i].what, hd_role_name(c.role));
		}
}

static void to_look_at_the_policy_is_not_to_choose_it(void **state)
{
	static const char look[] = "{\"do\":\"policy\"}", choose[] = "{\"do\":\"policy\",\"policy\":\"las\"}";
	const struct hd_caller c = { .uid = 1001, .role = HD_ROLE_OPERATOR };
	const struct hd_json *ask;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_json_parse(&arena, "a", look, sizeof look - 1, &ask, NULL), HD_OK);
	assert_int_equal(hd_caller_may(&c, "policy", ask, NULL), HD_OK);
	assert_int_equal(hd_json_parse(&arena, "a", choose, sizeof choose - 1, &ask, NULL), HD_OK);
	assert_int_equal(hd_caller_may(&c, "policy", ask, &diag), HD_E_REFUSED);
	assert_non_null(strstr(diag.text, "it takes the role admin"));
}

static void who_sees_all_does_not_end_all(void **state)
{
	const struct hd_caller c = { .uid = 1001, .role = HD_ROLE_USER, .sees_all = true };
	const struct hd_caller none = { .uid = HD_NO_UID, .role = HD_ROLE_USER };
	(void)state;

	static const char *const looks[] = { "job", "jobs", "status", "pools", "waiting", "explain" };
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
		CHECK(hd_caller_may_of(&c, looks[i], NULL, 1002), "%s", looks[i]);
	assert_false(hd_caller_may_of(&c, "cancel", NULL, 1002));
	assert_false(hd_caller_may_of(&c, "prio", NULL, 1002));
	assert_false(hd_caller_may_of(&none, "job", NULL, HD_NO_UID));
}

static void limits_are_of_the_user_its_account_and_its_groups(void **state)
{
	struct hd_users_limit l[HD_USERS_LIMITS];
	struct hd_users u;
	uint32_t account;
	(void)state;

	assert_int_equal(read_text(&u, whole, NULL), HD_OK);
	assert_int_equal(hd_users_limits(&u, 1002, "bob", false, "", l, &account), 3);
	assert_int_equal(account, 1);
	assert_string_equal(l[0].name, "user bob");
	assert_true(l[0].quota.most[HD_QUOTA_DEVICES] == 1);
	assert_string_equal(l[1].name, "account speech");
	assert_string_equal(l[2].name, "group students");
	assert_true(l[2].quota.most[HD_QUOTA_DEVICES] == 2);
	assert_int_equal(hd_users_limits(&u, 7777, "uid-7777", false, "", l, &account), 2);
	assert_string_equal(l[0].name, "user uid-7777");
	assert_true(l[0].quota.most[HD_QUOTA_RUNNING] == 0);
	assert_int_equal(hd_users_limits(&u, 0, "root", true, "", l, &account), 0);
	assert_int_equal(account, HD_USERS_NONE);
	assert_int_equal(read_text(&u, "users:\n  ada:\n", NULL), HD_OK);
	assert_int_equal(hd_users_limits(&u, 1002, "bob", false, "", l, &account), 0);
}

static const char tree[] =
	"accounts:\n"
	"  vision: {parent: lab, devices: 3}\n"
	"  lab: {parent: org, devices: 5}\n"
	"  speech: {parent: lab}\n"
	"  org: {running: 9}\n"
	"  other:\n"
	"users:\n"
	"  ada: {accounts: [vision, other], devices: 2}\n"
	"  bob: {account: lab, operates: [lab]}\n"
	"others: {account: speech}\n";

static void accounts_above_limit_a_job_too_and_the_one_it_was_handed_in_for_counts(void **state)
{
	static const struct { uint32_t uid; bool owner; const char *handed_in, *counts, *limits; } rows[] = {
		{ 1001, false, "", "vision", "user ada,account vision,account lab,account org," },
		{ 1001, false, "vision", "vision", "user ada,account vision,account lab,account org," },
		{ 1001, false, "other", "other", "user ada,account other," },
		/* not in it (any more), or there is none: its first */
		{ 1001, false, "speech", "vision", "user ada,account vision,account lab,account org," },
		{ 1001, false, "gone", "vision", "user ada,account vision,account lab,account org," },
		{ 1001, false, "lab", "vision", "user ada,account vision,account lab,account org," },
		{ 1002, false, "", "lab", "user bob,account lab,account org," },
		{ 1003, false, "", "speech", "user eve,account speech,account lab,account org," },
		{ 0, true, "", "", "" },
		{ 0, true, "speech", "speech", "account speech,account lab,account org," },
		{ 0, true, "gone", "", "" },
	};
	struct hd_users_limit l[HD_USERS_LIMITS];
	struct hd_diag diag = { "" };
	struct hd_users u;
	(void)state;

	CHECK(read_text(&u, tree, &diag) == HD_OK, "%s", diag.text);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char all[200] = "";
		size_t len = 0;
		uint32_t account;
		uint32_t n = hd_users_limits(&u, rows[i].uid, rows[i].uid == 1003 ? "eve" : "x",
			rows[i].owner, rows[i].handed_in, l, &account);
		for (uint32_t k = 0; k < n; k++)
			len += (size_t)snprintf(all + len, sizeof all - len, "%s,", l[k].name);
		CHECK(!strcmp(all, rows[i].limits), "row %zu: %s", i, all);
		CHECK(!strcmp(account == HD_USERS_NONE ? "" : u.account[account].name, rows[i].counts),
			"row %zu counts to %s", i, account == HD_USERS_NONE ? "none" :
			u.account[account].name);
	}
	static const uint32_t listed[] = { 3, 1, 0, 2, 4 };
	assert_memory_equal(u.listed, listed, sizeof listed);
	assert_int_equal(u.account[0].level, 2);
	assert_int_equal(u.account[3].level, 0);
	CHECK(hd_users_reaches(&u, 1001, 3) && hd_users_reaches(&u, 1001, 0) &&
		hd_users_reaches(&u, 1001, 4) && !hd_users_reaches(&u, 1001, 2) &&
		!hd_users_reaches(&u, 1002, 0), "what users reach");
	/* a user by token that this machine has no account for is none of the others */
	CHECK(!hd_users_reaches(&u, HD_NO_UID, 2) && hd_users_reaches(&u, 1003, 2), "what others reach");
}

static void the_operator_of_an_account_is_one_of_those_below_it_alone(void **state)
{
	static const char *const may[] = { "jobs", "job", "explain", "cancel", "prio", "scale", "hold",
		"release", "continue", "run", "metrics" }, *const may_not[] = { "submit", "tokens", "token",
		"revoke", "stop", "sweeps", "backup", "something new" };
	struct hd_caller bob, ada;
	struct hd_users u;
	(void)state;

	assert_int_equal(read_text(&u, tree, NULL), HD_OK);
	CHECK(hd_users_operates(&u, 1002, 1) && hd_users_operates(&u, 1002, 0) &&
		hd_users_operates(&u, 1002, 2) && !hd_users_operates(&u, 1002, 3) &&
		!hd_users_operates(&u, 1002, 4) &&
		!hd_users_operates(&u, 1002, HD_USERS_NONE) && !hd_users_operates(&u, 1001, 0) &&
		!hd_users_operates(&u, 1003, 0), "what they operate");
	assert_int_equal(hd_users_by_uid(&u, 1002, 1, "bob", &bob, NULL), HD_OK);
	assert_int_equal(hd_users_by_uid(&u, 1001, 1, "ada", &ada, NULL), HD_OK);
	assert_int_equal(bob.role, HD_ROLE_USER);
	for (size_t i = 0; i < sizeof may / sizeof *may; i++)
		CHECK(hd_caller_may_operate(&bob, may[i], NULL) &&
			!hd_caller_may_operate(&ada, may[i], NULL) &&
			!hd_caller_may_of(&bob, may[i], NULL, 1001), "%s", may[i]);
	for (size_t i = 0; i < sizeof may_not / sizeof *may_not; i++)
		CHECK(!hd_caller_may_operate(&bob, may_not[i], NULL), "%s", may_not[i]);
	assert_int_equal(hd_caller_may(&bob, "device", NULL, NULL), HD_E_REFUSED);
	assert_int_equal(hd_caller_may(&bob, "reserve", NULL, NULL), HD_E_REFUSED);
}

static void no_job_is_handed_in_for_an_account_that_its_user_is_not_in(void **state)
{
	static const struct { uint32_t uid; bool owner; const char *name; enum hd_err err; const char *says; }
		rows[] = {
		{ 1001, false, "", HD_OK, "vision" }, { 1001, false, "other", HD_OK, "other" },
		{ 1001, false, "lab", HD_E_INVAL, "user x is in no account \"lab\"; it is in: vision, other" },
		{ 1001, false, "speech", HD_E_INVAL, "is in no account \"speech\"" },
		{ 1001, false, "nothing", HD_E_INVAL, "is in no account \"nothing\"; it is in: vision, other" },
		{ 1002, false, "vision", HD_E_INVAL, "it is in: lab" }, { 1003, false, "", HD_OK, "speech" },
		{ 0, true, "", HD_OK, "" }, { 0, true, "vision", HD_OK, "vision" },
		{ 0, true, "nothing", HD_E_INVAL, "there is no account \"nothing\"" },
	};
	struct hd_users u;
	(void)state;

	assert_int_equal(read_text(&u, tree, NULL), HD_OK);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		uint32_t account = 77;
		enum hd_err err = hd_users_bill(&u, rows[i].uid, "x", rows[i].owner, rows[i].name, &account,
			&diag);
		CHECK(err == rows[i].err, "row %zu: %d, %s", i, err, diag.text);
		if (err)
			CHECK(strstr(diag.text, rows[i].says) && account == 77, "row %zu: %s", i, diag.text);
		else
			CHECK(!strcmp(account == HD_USERS_NONE ? "" : u.account[account].name,
				rows[i].says), "row %zu", i);
	}
	assert_int_equal(read_text(&u, "users:\n  ada:\n", NULL), HD_OK);
	uint32_t account = 0;
	struct hd_diag diag = { "" };
	assert_int_equal(hd_users_bill(&u, 1001, "ada", false, "lab", &account, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "is in no account \"lab\", and in no other: leave it out"), "%s", diag.text);
}

static uint64_t next_draw(uint64_t *rng)
{
	*rng = *rng * 6364136223846793005u + 1442695040888963407u;
	return *rng >> 33;
}

/* Random trees, written in random orders: which accounts limit a job, against the tree that was drawn. */
static void the_limits_of_a_random_tree_are_those_on_the_way_to_its_root(void **state)
{
	enum { MOST = 40 };
	uint64_t rng = 7;
	(void)state;

	for (int trial = 0; trial < DRAWS(200); trial++) {
		uint32_t n = 1 + (uint32_t)(next_draw(&rng) % MOST), up[MOST], deep[MOST], place[MOST];
		char text[MOST * 120 + 100] = "accounts:\n";
		size_t len = strlen(text);
		for (uint32_t a = 0; a < n; a++) {
			up[a] = a && next_draw(&rng) % 4 ? (uint32_t)(next_draw(&rng) % a) : a;
			deep[a] = up[a] == a ? 1 : deep[up[a]] + 1;
			if (deep[a] > HD_USERS_LEVELS)
				up[a] = a, deep[a] = 1;
			place[a] = a;
		}
		for (uint32_t a = n; a > 1; a--) {
			uint32_t with = (uint32_t)(next_draw(&rng) % a), was = place[a - 1];
			place[a - 1] = place[with];
			place[with] = was;
		}
		for (uint32_t i = 0; i < n; i++) {
			char parent[40] = "";
			if (up[place[i]] != place[i])
				snprintf(parent, sizeof parent, ", parent: a%u", up[place[i]]);
			len += (size_t)snprintf(text + len, sizeof text - len, "  a%u: {devices: %u%s}\n",
				place[i], place[i] + 1, parent);
		}
		uint32_t of = (uint32_t)(next_draw(&rng) % n);
		snprintf(text + len, sizeof text - len, "users:\n  ada: {account: a%u}\n", of);
		struct hd_users_limit l[HD_USERS_LIMITS];
		struct hd_diag diag = { "" };
		struct hd_users u;
		uint32_t account;
		CHECK(read_text(&u, text, &diag) == HD_OK, "%s\n%s", diag.text, text);
		uint32_t has = hd_users_limits(&u, 1001, "ada", false, "", l, &account);
		CHECK(has == 1 + deep[of], "%u limits of an account %u deep", has, deep[of]);
		for (uint32_t k = 1, a = of; k < has; k++, a = up[a]) {
			char name[40];
			snprintf(name, sizeof name, "account a%u", a);
			CHECK(!strcmp(l[k].name, name) && l[k].quota.most[HD_QUOTA_DEVICES] == a + 1,
				"limit %u is %s, not %s", k, l[k].name, name);
		}
		/* each is listed once, behind its parent */
		bool seen[MOST] = { false };
		for (uint32_t i = 0; i < n; i++) {
			uint32_t a = (uint32_t)strtoul(u.account[u.listed[i]].name + 1, NULL, 10);
			CHECK(!seen[a] && (up[a] == a || seen[up[a]]), "account a%u is listed at %u", a, i);
			seen[a] = true;
		}
	}
}

static int begin(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int end(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_as_it_stands),
		cmocka_unit_test(what_is_wrong_has_its_place),
		cmocka_unit_test(a_uid_is_a_user_or_another_or_refused),
		cmocka_unit_test(rights_are_the_tables),
		cmocka_unit_test(to_look_at_the_policy_is_not_to_choose_it),
		cmocka_unit_test(who_sees_all_does_not_end_all),
		cmocka_unit_test(limits_are_of_the_user_its_account_and_its_groups),
		cmocka_unit_test(accounts_above_limit_a_job_too_and_the_one_it_was_handed_in_for_counts),
		cmocka_unit_test(the_operator_of_an_account_is_one_of_those_below_it_alone),
		cmocka_unit_test(no_job_is_handed_in_for_an_account_that_its_user_is_not_in),
		cmocka_unit_test(the_limits_of_a_random_tree_are_those_on_the_way_to_its_root),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
