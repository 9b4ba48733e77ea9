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
	for (uint32_t i = 0; i < users.nusers; i++) {
		const struct hd_users_user *u = &users.user[i];
		if (u->role >= HD_NROLES || u->ngroups > HD_USERS_GROUPS || u->uid == 0 ||
			(u->account != HD_USERS_NONE && u->account >= users.naccounts))
			abort();
		for (uint32_t k = 0; k < i; k++)
			if (users.user[k].uid == u->uid && u->uid != HD_NO_UID)
				abort();
		if (hd_users_by_name(&users, u->name, &caller, NULL) || caller.owner)
			abort();
		if (hd_users_limits(&users, u->uid, u->name, false, limit, &account) > HD_USERS_LIMITS)
			abort();
	}
	if (!hd_users_by_uid(&users, HD_NO_UID, 0, "", &caller, NULL) && !users.others.name)
		abort();
	hd_arena_finish(&arena);
	return 0;
}
