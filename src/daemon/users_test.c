#include "daemon/users.h"

#include <math.h>
#include <stdio.h>
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
	assert_int_equal(hd_users_limits(&u, 1002, "bob", false, l, &account), 3);
	assert_int_equal(account, 1);
	assert_string_equal(l[0].name, "user bob");
	assert_true(l[0].quota.most[HD_QUOTA_DEVICES] == 1);
	assert_string_equal(l[1].name, "account speech");
	assert_string_equal(l[2].name, "group students");
	assert_true(l[2].quota.most[HD_QUOTA_DEVICES] == 2);
	assert_int_equal(hd_users_limits(&u, 7777, "uid-7777", false, l, &account), 2);
	assert_string_equal(l[0].name, "user uid-7777");
	assert_true(l[0].quota.most[HD_QUOTA_RUNNING] == 0);
	assert_int_equal(hd_users_limits(&u, 0, "root", true, l, &account), 0);
	assert_int_equal(account, HD_USERS_NONE);
	assert_int_equal(read_text(&u, "users:\n  ada:\n", NULL), HD_OK);
	assert_int_equal(hd_users_limits(&u, 1002, "bob", false, l, &account), 0);
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
	};
	return cmocka_run_group_tests(tests, begin, end);
}
