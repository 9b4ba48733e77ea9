/* users.h -- users of a scheduler: a file of accounts, groups and users, and what each of them may.
 *
 * `users.yaml` in the scheduler's folder; without it the scheduler has one owner and all that follows is not
 * asked. The daemon reads it (daemon_users.c), the frontends learn from it whose a request is, questions are
 * let through by the table of rights below.
 *
 *	visible: own                     # what users see of others' jobs: own (counts only) or all
 *	accounts:                        # users share by the account's weight under hierarchical policies
 *	  lab: {devices: 12}
 *	  vision: {parent: lab, weight: 3, devices: 8, running: 20, queued: 100}
 *	  speech: {parent: lab}
 *	groups:
 *	  students: {devices: 2, priority: 1}
 *	users:
 *	  ada: {account: vision, role: operator}
 *	  bob: {accounts: [vision, speech], groups: [students], devices: 1}
 *	  eve: {account: vision, operates: [lab]}
 *	others: {account: vision}        # accounts of the machine that are not listed; without it: refused
 *
 * 1. A job belongs to an account of the machine, by its number (uid): the kernel gives it for a Unix socket,
 *    and a token has that of its user. A name is looked up when the file is read, or is given with `uid:`.
 *    Two users of one uid are refused.
 * 2. Root and the scheduler's own account are its owner: they may do everything and have no quotas, whatever
 *    the file says.
 * 3. A quota holds for the sum over all jobs of the user, of the account and of all those below it, of the
 *    group; the tightest counts. One of `others` holds for each of them.
 * 4. What the table of rights does not name is for admins alone. For jobs that count to an account that a
 *    user operates, or to one below it, that user has the rights that an operator has for all jobs.
 * 5. A name in the file stands for its uid alone: another account of that name is called uid-NUMBER here.
 * 6. Accounts are trees, HD_USERS_LEVELS deep. A job counts to one account: the one that it was handed in
 *    for, as long as its user is in that, else the first that its user is in. A job of the owner counts to
 *    the account that it was handed in for, and then has that one's quotas; else to none.
 * 7. A file that is not understood completely is HD_E_INPUT with its place; nothing of it is used. Nor is one
 *    that others than the scheduler's account and root could have written.
 *
 * Pure but for hd_users_load. Ownership: texts lie in the arena of the read, and hold as long as it does. */
#ifndef HD_DAEMON_USERS_H
#define HD_DAEMON_USERS_H

#include "base/arena.h"
#include "base/json.h"
#include "sys/account.h"

enum {
	HD_USERS_NAME = 64,               /* bytes of a name */
	HD_USERS_GROUPS = 4,              /* of a user */
	HD_USERS_ACCOUNTS = 8,            /* of a user */
	HD_USERS_LEVELS = 5,              /* of accounts */
	HD_USERS_MOST = 10000,            /* users; as many accounts, groups */
	HD_USERS_LIMITS = 1 + HD_USERS_LEVELS + HD_USERS_GROUPS,
	HD_USERS_BYTES = 1 << 20,
};
#define HD_USERS_FILE "users.yaml"
#define HD_USERS_NONE UINT32_MAX

/* Each may what those before it may.
 *        id         name */
#define HD_ROLES(X)            \
	X(USER,      "user")      /* submits; sees and ends its own */ \
	X(OPERATOR,  "operator")  /* all jobs, devices */              \
	X(ADMIN,     "admin")     /* the policy, the scheduler's end, others' tokens */

enum hd_role {
#define X(id, name) HD_ROLE_##id,
	HD_ROLES(X)
#undef X
	HD_NROLES
};
const char *hd_role_name(enum hd_role role);

/*        id         key          least   whole   what is limited */
#define HD_QUOTAS(X) \
	X(DEVICES,   "devices",   0,      true,   "devices at once")                     \
	X(RUNNING,   "running",   0,      true,   "jobs with devices at once")           \
	X(QUEUED,    "queued",    0,      true,   "jobs that wait, when another comes")  \
	X(PRIORITY,  "priority",  1e-6,   false,  "the weight of a job")

enum hd_quota_kind {
#define X(id, key, least, whole, about) HD_QUOTA_##id,
	HD_QUOTAS(X)
#undef X
	HD_NQUOTAS
};
struct hd_quota { double most[HD_NQUOTAS]; };        /* INFINITY: none */

struct hd_users_account {
	const char *name;
	double weight;
	bool fifo;
	uint32_t parent, level;           /* HD_USERS_NONE: none; 0: has none */
	struct hd_quota quota;
};
struct hd_users_group { const char *name; struct hd_quota quota; };
struct hd_users_user {
	const char *name;
	uint32_t uid;                     /* HD_NO_UID: the machine has no account of that name */
	enum hd_role role;
	uint32_t naccounts, account[HD_USERS_ACCOUNTS];           /* the first is the one without a word */
	uint32_t ngroups, group[HD_USERS_GROUPS];
	uint32_t noperates, operates[HD_USERS_ACCOUNTS];          /* accounts */
	struct hd_quota quota;
};

struct hd_users {
	uint32_t naccounts, ngroups, nusers;
	const struct hd_users_account *account;
	/* numbers of accounts: each before those below it; by name */
	const uint32_t *listed, *named;
	const struct hd_users_group *group;
	const struct hd_users_user *user;
	struct hd_users_user others;      /* name NULL: refused */
	bool visible_all;
};

/* The file of that folder. HD_E_REFUSED: others could write it, or put another one into its place; they would
 * be every user. */
struct hd_fs;
HD_MUST_USE enum hd_err hd_users_load(struct hd_fs *fs, const char *dir, struct hd_users *users,
	struct hd_arena *arena, struct hd_diag *diag);
/* `uid_of`: the machine's account of that name, or HD_NO_UID. */
HD_MUST_USE enum hd_err hd_users_read(struct hd_users *users, const char *name, const char *text, size_t len,
	uint32_t (*uid_of)(const char *name), struct hd_arena *arena, struct hd_diag *diag);

/* ---- whose a request is ---- */

struct hd_caller {
	uint32_t uid, gid;                /* uid HD_NO_UID: a user by token without an account here */
	enum hd_role role;
	bool owner;                       /* rule 2, or there is no file */
	bool sees_all;                    /* jobs of others */
	bool operates;                    /* some account; which, the file says of its uid */
	char name[HD_USERS_NAME + 1];
};

/* The one that is asked where there is no file. */
struct hd_caller hd_caller_owner(uint32_t uid, uint32_t gid, const char *name);
/* By the uid; `name` is the machine's for it, "" none. HD_E_REFUSED: it is no user. */
HD_MUST_USE enum hd_err hd_users_by_uid(const struct hd_users *users, uint32_t uid, uint32_t gid,
	const char *name, struct hd_caller *caller, struct hd_diag *diag);
/* By the name in the file. HD_E_REFUSED: there is none (any more). */
HD_MUST_USE enum hd_err hd_users_by_name(const struct hd_users *users, const char *name,
	struct hd_caller *caller, struct hd_diag *diag);

/* ---- what it may ---- */

/*        what        with        own        all        rows with a member `with` hold where it is asked */
#define HD_RIGHTS(X) \
	X("submit",   NULL,       USER,      ADMIN)       /* all: as another user */                 \
	X("jobs",     NULL,       USER,      OPERATOR)                                             \
	X("job",      NULL,       USER,      OPERATOR)                                             \
	X("explain",  NULL,       USER,      OPERATOR)                                             \
	X("cancel",   NULL,       USER,      OPERATOR)                                             \
	X("prio",     NULL,       USER,      OPERATOR)                                             \
	X("scale",    NULL,       USER,      OPERATOR)                                             \
	X("continue", NULL,       USER,      OPERATOR)                                             \
	X("hold",     NULL,       USER,      OPERATOR)                                             \
	X("release",  NULL,       USER,      OPERATOR)                                             \
	X("run",      NULL,       USER,      OPERATOR)                                             \
	X("metrics",  NULL,       USER,      OPERATOR)                                             \
	X("waiting",  NULL,       USER,      OPERATOR)                                             \
	X("ledger",   NULL,       USER,      OPERATOR)                                             \
	X("history",  NULL,       USER,      USER)                                                 \
	X("whatif",   NULL,       USER,      OPERATOR)                                             \
	X("events",   NULL,       USER,      OPERATOR)    /* all: of no job, too */                  \
	X("sweeps",   NULL,       ADMIN,     ADMIN)       /* they lie in the owner's folder */       \
	X("sweep",    NULL,       ADMIN,     ADMIN)                                                \
	X("status",   NULL,       USER,      OPERATOR)    /* own: its running jobs, and counts */    \
	X("hosts",    NULL,       USER,      USER)                                                 \
	X("pools",    NULL,       USER,      OPERATOR)    /* own: which device has which job */      \
	X("policy",   NULL,       USER,      USER)                                                 \
	X("policy",   "policy",   ADMIN,     ADMIN)                                                \
	X("device",   NULL,       OPERATOR,  OPERATOR)                                             \
	X("windows",  NULL,       USER,      USER)                                                 \
	X("reserve",  NULL,       OPERATOR,  OPERATOR)                                             \
	X("unreserve", NULL,      OPERATOR,  OPERATOR)                                             \
	X("stop",     NULL,       ADMIN,     ADMIN)                                                \
	X("me",       NULL,       USER,      USER)                                                 \
	X("tokens",   NULL,       USER,      ADMIN)                                                \
	X("token",    NULL,       USER,      ADMIN)                                                \
	X("revoke",   NULL,       USER,      ADMIN)

/* What the least role is for that question: of one's own, and of all. */
struct hd_right { enum hd_role own, all; };
struct hd_right hd_right_to(const char *what, const struct hd_json *ask);
/* Whether it may ask that at all. HD_E_REFUSED, with the role that may. */
HD_MUST_USE enum hd_err hd_caller_may(const struct hd_caller *caller, const char *what,
	const struct hd_json *ask, struct hd_diag *diag);
/* Whether it may ask it of what belongs to that uid. Only to look counts `sees_all`. */
bool hd_caller_may_of(const struct hd_caller *caller, const char *what, const struct hd_json *ask,
	uint32_t uid);

/* Whether it may ask it of jobs of an account that it operates. */
bool hd_caller_may_operate(const struct hd_caller *caller, const char *what, const struct hd_json *ask);

/* ---- its limits ---- */

/* name: "user ada", "account vision", "group students" */
struct hd_users_limit { char name[HD_USERS_NAME + 16]; struct hd_quota quota; };
/* The account of that name; HD_USERS_NONE: there is none. */
uint32_t hd_users_find_account(const struct hd_users *users, const char *name);
/* The one that a job of that uid is to count to; name "": nothing was said, and HD_USERS_NONE is none.
 * HD_E_INVAL: the user is not in it, or there is none of that name. */
HD_MUST_USE enum hd_err hd_users_bill(const struct hd_users *users, uint32_t uid, const char *user,
	bool owner, const char *name, uint32_t *account, struct hd_diag *diag);
/* Whether the account is one of the user's, or lies above one. */
bool hd_users_reaches(const struct hd_users *users, uint32_t uid, uint32_t account);
/* Whether the user operates the account, or one above it. */
bool hd_users_operates(const struct hd_users *users, uint32_t uid, uint32_t account);
/* The limits of a job of one uid that was handed in for that account (""): rule 6; `account`: the one it
 * counts to. Of the owner without an account, or of a uid that the file does not have (any more): none. Those
 * of accounts follow the user's, from its own outward. */
uint32_t hd_users_limits(const struct hd_users *users, uint32_t uid, const char *name, bool owner,
	const char *handed_in, struct hd_users_limit limit[HD_USERS_LIMITS], uint32_t *account);
/* Of the user itself: HD_USERS_NONE where the file has none such. */
const struct hd_users_user *hd_users_of(const struct hd_users *users, uint32_t uid);

#endif
