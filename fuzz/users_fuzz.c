/* A file of users is understood or refused with a sentence; what is understood keeps its bounds, and gives
 * the owner's rights to no account. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/users.h"

/* As in yaml_fuzz.c: the library loses a buffer of a refused file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static uint32_t uid_of(const char *name) { return strlen(name) % 3 ? 1000u + (uint8_t)*name : HD_NO_UID; }

/* Each account is listed once, behind the one that it lies below; none lies too deep. */
static void check_tree(const struct hd_users *users)
{
	for (uint32_t i = 0; i < users->naccounts; i++) {
		const struct hd_users_account *a = &users->account[users->listed[i]];
		uint32_t up = a->parent, seen = up == HD_USERS_NONE, times = 0;
		if (a->level >= HD_USERS_LEVELS || (up != HD_USERS_NONE && (up >= users->naccounts ||
			users->account[up].level + 1 != a->level)))
			abort();
		for (uint32_t k = 0; k < users->naccounts; k++) {
			times += users->listed[k] == users->listed[i];
			seen |= k < i && users->listed[k] == up;
		}
		if (times != 1 || !seen || hd_users_find_account(users, a->name) != users->listed[i])
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_users_limit limit[HD_USERS_LIMITS];
	struct hd_caller caller = { 0 };
	struct hd_diag diag = { "" };
	struct hd_users users;
	struct hd_arena arena;
	uint32_t account;

	hd_arena_init(&arena, 64 << 20);
	enum hd_err err = hd_users_read(&users, "f", (const char *)bytes, len, uid_of, &arena, &diag);
	if ((err && !diag.text[0]) || (err && users.nusers))
		abort();
	check_tree(&users);
	for (uint32_t i = 0; i < users.nusers; i++) {
		const struct hd_users_user *u = &users.user[i];
		if (u->role >= HD_NROLES || u->ngroups > HD_USERS_GROUPS || u->uid == 0 ||
			u->naccounts > HD_USERS_ACCOUNTS || u->noperates > HD_USERS_ACCOUNTS)
			abort();
		for (uint32_t k = 0; k < u->noperates; k++)
			if (u->operates[k] >= users.naccounts || (u->uid != HD_NO_UID &&
				!hd_users_operates(&users, u->uid, u->operates[k])))
				abort();
		/* a user without an account of this machine hands nothing in */
		for (uint32_t k = 0; k < u->naccounts && u->uid != HD_NO_UID; k++) {
			if (u->account[k] >= users.naccounts || !hd_users_reaches(&users, u->uid,
				u->account[k]))
				abort();
			const char *name = users.account[u->account[k]].name;
			if (hd_users_bill(&users, u->uid, u->name, false, name, &account, NULL) ||
				account != u->account[k])
				abort();
		}
		for (uint32_t k = 0; k < i; k++)
			if (users.user[k].uid == u->uid && u->uid != HD_NO_UID)
				abort();
		if (hd_users_by_name(&users, u->name, &caller, NULL) || caller.owner)
			abort();
		if (hd_users_limits(&users, u->uid, u->name, false, "", limit, &account) > HD_USERS_LIMITS)
			abort();
	}
	if (!hd_users_by_uid(&users, HD_NO_UID, 0, "", &caller, NULL) && !users.others.name)
		abort();
	hd_arena_finish(&arena);
	return 0;
}
