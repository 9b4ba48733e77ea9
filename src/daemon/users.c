#define _GNU_SOURCE                       /* qsort_r */
#include "daemon/users.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/near.h"
#include "base/num.h"
#include "base/yaml.h"
#include "sys/file.h"

/* ---- tables ---- */

const char *hd_role_name(enum hd_role role)
{
	static const char *const names[] = {
#define X(id, name) name,
		HD_ROLES(X)
#undef X
	};

	return names[role];
}

static const struct { const char *key; double least; bool whole; } quotas[HD_NQUOTAS] = {
#define X(id, key, least, whole, about) { key, least, whole },
	HD_QUOTAS(X)
#undef X
};

/* ---- the file ---- */

enum { HD_USERS_TEXT = 200 };
#define NAMELESS "uid-"           /* with its number: the name of an account that has none here */

struct users_reading {
	const char *file;
	struct hd_arena *arena;
	struct hd_users *to;
	uint32_t (*uid_of)(const char *name);
	struct hd_diag *diag;
};

__attribute__((format(printf, 3, 4)))
static enum hd_err bad(const struct users_reading *r, const struct hd_yaml_mark *at, const char *fmt, ...)
{
	char text[HD_USERS_TEXT + 200];
	va_list list;

	va_start(list, fmt);
	vsnprintf(text, sizeof text, fmt, list);
	va_end(list);
	return hd_fail(r->diag, HD_E_INPUT, "%.200s:%u:%u: %s", r->file, at->line, at->column, text);
}

static enum hd_err is_kind(const struct users_reading *r, const struct hd_yaml_node *n,
	enum hd_yaml_kind kind)
{
	return n->kind == kind ? HD_OK : bad(r, &n->at, "%.64s is %s; it should be %s",
		n->key ? n->key : "this", hd_yaml_kind_name(n->kind), hd_yaml_kind_name(kind));
}

static enum hd_err unknown(const struct users_reading *r, const struct hd_yaml_node *n,
	const char *const *known, size_t nknown)
{
	struct hd_near near = hd_near_to(n->key);
	char all[HD_USERS_TEXT] = "";
	size_t len = 0;

	for (size_t i = 0; i < nknown; i++) {
		hd_near_offer(&near, known[i]);
		len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", len ? ", " : "", known[i]);
	}
	if (near.best)
		return bad(r, &n->key_at, "there is no \"%.64s\" here; did you mean %s?", n->key, near.best);
	return bad(r, &n->key_at, "there is no \"%.64s\" here; there are: %s", n->key, all);
}

static struct hd_quota no_quota(void)
{
	struct hd_quota q;

	for (int k = 0; k < HD_NQUOTAS; k++)
		q.most[k] = INFINITY;
	return q;
}

static int quota_of(const char *key)      /* HD_NQUOTAS: none */
{
	int k = 0;

	while (k < HD_NQUOTAS && strcmp(quotas[k].key, key) != 0)
		k++;
	return k;
}

static enum hd_err read_quota(const struct users_reading *r, const struct hd_yaml_node *n, int k,
	struct hd_quota *quota)
{
	uint64_t whole = 0;
	double v = 0;

	if (n->kind == HD_YAML_SCALAR && quotas[k].whole && !hd_num_u64(n->text, 1 << 24, &whole, NULL)) {
		quota->most[k] = (double)whole;
		return HD_OK;
	}
	if (n->kind == HD_YAML_SCALAR && !quotas[k].whole &&
		!hd_num_f64(n->text, quotas[k].least, 1e6, &v, NULL)) {
		quota->most[k] = v;
		return HD_OK;
	}
	return quotas[k].whole ? bad(r, &n->at, "%s is a count from 0 to %d", n->key, 1 << 24) :
		bad(r, &n->at, "%s is a number from %g to 1e6", n->key, quotas[k].least);
}

/* Members of one entry: quotas, and what `own` knows (it answers HD_E_NOTFOUND to others). */
static enum hd_err read_entry(const struct users_reading *r, const struct hd_yaml_node *entry,
	struct hd_quota *quota, enum hd_err (*own)(const struct users_reading *, const struct hd_yaml_node *,
	void *), void *to, const char *const *names, size_t nnames)
{
	const char *known[HD_NQUOTAS + 8];
	size_t nknown = 0;
	/* "name:" alone is an entry without members */
	bool none = entry->kind == HD_YAML_SCALAR && !entry->text_len && !entry->quoted;
	enum hd_err err = none ? HD_OK : is_kind(r, entry, HD_YAML_MAP);

	*quota = no_quota();
	for (size_t i = 0; i < nnames; i++)
		known[nknown++] = names[i];
	for (int k = 0; k < HD_NQUOTAS; k++)
		known[nknown++] = quotas[k].key;
	for (const struct hd_yaml_node *n = none ? NULL : entry->first; n && !err; n = n->next) {
		int k = quota_of(n->key);
		err = k < HD_NQUOTAS ? read_quota(r, n, k, quota) : own ? own(r, n, to) : HD_E_NOTFOUND;
		if (err == HD_E_NOTFOUND)
			err = unknown(r, n, known, nknown);
	}
	return err;
}

static enum hd_err good_name(const struct users_reading *r, const struct hd_yaml_node *n)
{
	return hd_name_valid(n->key) && strlen(n->key) <= HD_USERS_NAME ? HD_OK :
		bad(r, &n->key_at, "\"%.64s\" is no name: 1 to %d of A-Z a-z 0-9 . _ -", n->key,
			HD_USERS_NAME);
}

/* The entries of a list by name: how many, and space for them. */
static enum hd_err begin_list(const struct users_reading *r, const struct hd_yaml_node *list, size_t bytes,
	void **at)
{
	enum hd_err err = is_kind(r, list, HD_YAML_MAP);

	if (!err && list->nchildren > HD_USERS_MOST)
		err = bad(r, &list->at, "%s has %u entries: at most %d", list->key, list->nchildren,
			HD_USERS_MOST);
	for (const struct hd_yaml_node *n = err ? NULL : list->first; n && !err; n = n->next)
		err = good_name(r, n);
	if (!err && !(*at = hd_arena_take(r->arena, list->nchildren + 1u, bytes)))
		err = hd_fail(r->diag, HD_E_NOMEM, "no memory for %s of %.200s", list->key, r->file);
	return err;
}

static enum hd_err account_member(const struct users_reading *r, const struct hd_yaml_node *n, void *to)
{
	struct hd_users_account *a = to;

	if (!strcmp(n->key, "parent"))            /* read_parents() */
		return n->kind == HD_YAML_SCALAR ? HD_OK : bad(r, &n->at,
			"an account has one parent, by name");
	if (!strcmp(n->key, "weight"))
		return n->kind == HD_YAML_SCALAR && !hd_num_f64(n->text, 1e-6, 1e6, &a->weight, NULL) ?
			HD_OK : bad(r, &n->at, "weight is a number from 1e-6 to 1e6");
	if (strcmp(n->key, "order") != 0)
		return HD_E_NOTFOUND;
	bool known = n->kind == HD_YAML_SCALAR && (!strcmp(n->text, "fair") || !strcmp(n->text, "fifo"));
	a->fifo = known && !strcmp(n->text, "fifo");
	return known ? HD_OK : bad(r, &n->at, "order is fair (its jobs share) or fifo (one after another)");
}

/* An account that is named somewhere. */
static enum hd_err find_account(const struct users_reading *r, const struct hd_yaml_node *n,
	uint32_t *account)
{
	struct hd_near near;

	if (n->kind != HD_YAML_SCALAR)
		return is_kind(r, n, HD_YAML_SCALAR);
	*account = hd_users_find_account(r->to, n->text);
	if (*account != HD_USERS_NONE)
		return HD_OK;
	near = hd_near_to(n->text);
	for (uint32_t i = 0; i < r->to->naccounts; i++)
		hd_near_offer(&near, r->to->account[i].name);
	return bad(r, &n->at, "there is no account \"%.64s\"%s%s%s", n->text, near.best ? "; did you mean " :
		": write it into `accounts`", near.best ? near.best : "", near.best ? "?" : "");
}

static int by_name(const void *a, const void *b, void *accounts)
{
	const struct hd_users_account *of = accounts;

	return strcmp(of[*(const uint32_t *)a].name, of[*(const uint32_t *)b].name);
}

uint32_t hd_users_find_account(const struct hd_users *users, const char *name)
{
	uint32_t low = 0, high = users->naccounts;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int is = strcmp(users->account[users->named[mid]].name, name);
		if (!is)
			return users->named[mid];
		low = is < 0 ? mid + 1 : low;
		high = is < 0 ? high : mid;
	}
	return HD_USERS_NONE;
}

/* Once all have names: a parent may stand behind its children. */
static enum hd_err read_parents(const struct users_reading *r, const struct hd_yaml_node *list,
	struct hd_users_account *account)
{
	enum hd_err err = HD_OK;
	uint32_t i = 0;

	for (const struct hd_yaml_node *n = list->first; n && !err; n = n->next, i++) {
		const struct hd_yaml_node *parent = n->kind == HD_YAML_MAP ? hd_yaml_find(n, "parent") : NULL;
		err = parent ? find_account(r, parent, &account[i].parent) : HD_OK;
	}
	i = 0;
	for (const struct hd_yaml_node *n = list->first; n && !err; n = n->next, i++) {
		uint32_t at = i;
		while (account[at].parent != HD_USERS_NONE && account[i].level <= HD_USERS_MOST) {
			at = account[at].parent;
			account[i].level++;
			if (at == i)
				return bad(r, &n->key_at, "account %s lies below itself: %s is its parent",
					n->key, account[account[i].parent].name);
		}
		/* of a ring that does not hold it, or too far down */
		if (account[i].level > HD_USERS_MOST)
			err = bad(r, &n->key_at, "account %s lies below one that lies below itself", n->key);
		else if (account[i].level >= HD_USERS_LEVELS)
			err = bad(r, &n->key_at, "account %s has %u accounts above it: at most %d", n->key,
				account[i].level, HD_USERS_LEVELS - 1);
	}
	return err;
}

/* Each before those below it, in the order of the file. */
static enum hd_err list_accounts(const struct users_reading *r, const struct hd_users_account *account,
	uint32_t n)
{
	uint32_t *listed = hd_arena_take(r->arena, n + 1, sizeof *listed),
		*child = hd_arena_take(r->arena, n + 1, sizeof *child),
		*next = hd_arena_take(r->arena, n + 1, sizeof *next), k = 0;

	if (!listed || !child || !next)
		return hd_fail(r->diag, HD_E_NOMEM, "no memory for accounts of %.200s", r->file);
	for (uint32_t i = 0; i <= n; i++)
		child[i] = HD_USERS_NONE;
	for (uint32_t i = n; i--;) {              /* n: of those without a parent */
		uint32_t up = account[i].parent == HD_USERS_NONE ? n : account[i].parent;
		next[i] = child[up];
		child[up] = i;
	}
	for (uint32_t at = child[n]; at != HD_USERS_NONE;) {
		listed[k++] = at;
		if (child[at] != HD_USERS_NONE) {
			at = child[at];
			continue;
		}
		while (next[at] == HD_USERS_NONE && account[at].parent != HD_USERS_NONE)
			at = account[at].parent;
		at = next[at];
	}
	r->to->listed = listed;
	return HD_OK;
}

static enum hd_err read_accounts(const struct users_reading *r, const struct hd_yaml_node *list)
{
	static const char *const names[] = { "weight", "order", "parent" };
	void *at = NULL;
	enum hd_err err = begin_list(r, list, sizeof *r->to->account, &at);
	struct hd_users_account *a = at;
	uint32_t n = 0, *named = err ? NULL : hd_arena_take(r->arena, list->nchildren + 1u, sizeof *named);

	if (!err && !named)
		err = hd_fail(r->diag, HD_E_NOMEM, "no memory for accounts of %.200s", r->file);
	for (const struct hd_yaml_node *e = err ? NULL : list->first; e && !err; e = e->next, n++) {
		a[n] = (struct hd_users_account){ .name = e->key, .weight = 1, .parent = HD_USERS_NONE };
		err = read_entry(r, e, &a[n].quota, account_member, &a[n], names, 3);
		named[n] = n;
	}
	if (err)
		return err;
	qsort_r(named, n, sizeof *named, by_name, a);
	r->to->account = a;
	r->to->named = named;
	r->to->naccounts = n;
	err = read_parents(r, list, a);
	return err ? err : list_accounts(r, a, n);
}

static enum hd_err read_groups(const struct users_reading *r, const struct hd_yaml_node *list)
{
	void *at = NULL;
	enum hd_err err = begin_list(r, list, sizeof *r->to->group, &at);
	struct hd_users_group *g = at;

	for (const struct hd_yaml_node *n = err ? NULL : list->first; n && !err; n = n->next, g++) {
		*g = (struct hd_users_group){ .name = n->key };
		err = read_entry(r, n, &g->quota, NULL, NULL, NULL, 0);
		r->to->ngroups++;
	}
	r->to->group = at;
	return err;
}

static enum hd_err user_role(const struct users_reading *r, const struct hd_yaml_node *n, void *to)
{
	struct hd_users_user *u = to;

	for (int k = 0; k < HD_NROLES && n->kind == HD_YAML_SCALAR; k++)
		if (!strcmp(n->text, hd_role_name((enum hd_role)k))) {
			u->role = (enum hd_role)k;
			return HD_OK;
		}
	return bad(r, &n->at, "role is user, operator or admin");
}

/* Accounts of a user, each once. */
static enum hd_err add_account(const struct users_reading *r, const struct hd_yaml_node *n,
	uint32_t account[HD_USERS_ACCOUNTS], uint32_t *naccounts)
{
	uint32_t at = 0;
	enum hd_err err = find_account(r, n, &at);

	for (uint32_t k = 0; k < *naccounts && !err; k++)
		if (account[k] == at)
			err = bad(r, &n->at, "account %s stands there twice", n->text);
	if (!err && *naccounts == HD_USERS_ACCOUNTS)
		err = bad(r, &n->at, "%d accounts at most", HD_USERS_ACCOUNTS);
	if (!err)
		account[(*naccounts)++] = at;
	return err;
}

static enum hd_err add_accounts(const struct users_reading *r, const struct hd_yaml_node *n,
	uint32_t account[HD_USERS_ACCOUNTS], uint32_t *naccounts)
{
	enum hd_err err = is_kind(r, n, HD_YAML_SEQ);

	for (const struct hd_yaml_node *a = err ? NULL : n->first; a && !err; a = a->next)
		err = add_account(r, a, account, naccounts);
	return err;
}

static enum hd_err user_account(const struct users_reading *r, const struct hd_yaml_node *n, void *to)
{
	struct hd_users_user *u = to;

	return u->naccounts ? bad(r, &n->key_at, "give one of account and accounts") :
		add_account(r, n, u->account, &u->naccounts);
}

static enum hd_err user_accounts(const struct users_reading *r, const struct hd_yaml_node *n, void *to)
{
	struct hd_users_user *u = to;

	return u->naccounts ? bad(r, &n->key_at, "give one of account and accounts") :
		add_accounts(r, n, u->account, &u->naccounts);
}

static enum hd_err user_operates(const struct users_reading *r, const struct hd_yaml_node *n, void *to)
{
	struct hd_users_user *u = to;

	return add_accounts(r, n, u->operates, &u->noperates);
}

static enum hd_err user_groups(const struct users_reading *r, const struct hd_yaml_node *n, void *to)
{
	struct hd_users_user *u = to;
	enum hd_err err = is_kind(r, n, HD_YAML_SEQ);

	for (const struct hd_yaml_node *g = err ? NULL : n->first; g && !err; g = g->next) {
		uint32_t i = 0;
		while (i < r->to->ngroups && (g->kind != HD_YAML_SCALAR ||
			strcmp(g->text, r->to->group[i].name) != 0))
			i++;
		if (i == r->to->ngroups)
			return bad(r, &g->at, "there is no group \"%.64s\": write it into `groups`",
				g->kind == HD_YAML_SCALAR ? g->text : "");
		for (uint32_t k = 0; k < u->ngroups; k++)
			if (u->group[k] == i)
				return bad(r, &g->at, "group %s stands there twice", g->text);
		if (u->ngroups == HD_USERS_GROUPS)
			return bad(r, &g->at, "a user is in %d groups at most", HD_USERS_GROUPS);
		u->group[u->ngroups++] = i;
	}
	return err;
}

static enum hd_err user_uid(const struct users_reading *r, const struct hd_yaml_node *n, void *to)
{
	struct hd_users_user *u = to;
	uint64_t uid = 0;

	if (n->kind != HD_YAML_SCALAR || hd_num_u64(n->text, UINT32_MAX - 1, &uid, NULL) || !uid)
		return bad(r, &n->at, "uid is the number of an account of this machine, from 1 on");
	u->uid = (uint32_t)uid;
	return HD_OK;
}

static const struct { const char *key; enum hd_err (*read)(const struct users_reading *,
	const struct hd_yaml_node *, void *); } user_members[] = {
	{ "account", user_account }, { "accounts", user_accounts }, { "role", user_role }, { "groups", user_groups }, { "uid", user_uid },
	{ "operates", user_operates },
};
enum { NMEMBERS = sizeof user_members / sizeof *user_members };

static enum hd_err user_member(const struct users_reading *r, const struct hd_yaml_node *n, void *to)
{
	for (size_t i = 0; i < NMEMBERS; i++)
		if (!strcmp(n->key, user_members[i].key))
			return user_members[i].read(r, n, to);
	return HD_E_NOTFOUND;
}

static enum hd_err read_user(const struct users_reading *r, const struct hd_yaml_node *n,
	struct hd_users_user *u)
{
	const char *names[NMEMBERS];

	for (size_t i = 0; i < NMEMBERS; i++)
		names[i] = user_members[i].key;
	*u = (struct hd_users_user){ .name = n->key, .uid = HD_NO_UID };
	return read_entry(r, n, &u->quota, user_member, u, names, NMEMBERS);
}

static enum hd_err read_users(const struct users_reading *r, const struct hd_yaml_node *list)
{
	void *at = NULL;
	enum hd_err err = begin_list(r, list, sizeof *r->to->user, &at);
	struct hd_users_user *first = at, *u = at;

	for (const struct hd_yaml_node *n = err ? NULL : list->first; n && !err; n = n->next, u++) {
		err = read_user(r, n, u);
		if (!err && !strncmp(n->key, NAMELESS, strlen(NAMELESS)))
			err = bad(r, &n->key_at, "%s is what an account without a name is called: choose "
				"another", n->key);
		if (!err && u->uid == HD_NO_UID)
			u->uid = r->uid_of(u->name);
		for (const struct hd_users_user *o = first; o < u && !err; o++)
			if (o->uid == u->uid && u->uid != HD_NO_UID)
				err = bad(r, &n->key_at, "%s and %s are one account of this machine (%u)",
					o->name, u->name, u->uid);
		r->to->nusers++;
	}
	r->to->user = at;
	return err;
}

static enum hd_err read_others(const struct users_reading *r, const struct hd_yaml_node *n)
{
	struct hd_users_user *u = &r->to->others;
	enum hd_err err = read_user(r, n, u);

	if (!err && (u->uid != HD_NO_UID || u->role != HD_ROLE_USER || u->noperates))
		err = bad(r, &n->at, "`others` have neither a uid nor another role than user, and operate "
			"no account");
	return err;
}

static enum hd_err read_visible(const struct users_reading *r, const struct hd_yaml_node *n)
{
	bool known = n->kind == HD_YAML_SCALAR && (!strcmp(n->text, "own") || !strcmp(n->text, "all"));

	r->to->visible_all = known && !strcmp(n->text, "all");
	return known ? HD_OK : bad(r, &n->at, "visible is own or all");
}

/* In the order in which one needs the other. */
static const struct { const char *key; enum hd_err (*read)(const struct users_reading *,
	const struct hd_yaml_node *); } parts[] = {
	{ "visible", read_visible }, { "accounts", read_accounts }, { "groups", read_groups },
	{ "users", read_users }, { "others", read_others },
};
enum { NPARTS = sizeof parts / sizeof *parts };

enum hd_err hd_users_load(struct hd_fs *fs, const char *dir, struct hd_users *users, struct hd_arena *arena,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	snprintf(path, sizeof path, "%s/.", dir);         /* of a link to a folder: the folder */
	enum hd_err err = hd_account_trust(path, diag);
	snprintf(path, sizeof path, "%s/" HD_USERS_FILE, dir);
	if (!err)
		err = hd_account_trust(path, diag);
	if (!err)
		err = hd_file_read_all(fs, path, arena, HD_USERS_BYTES, &bytes, &len, diag);
	return err ? err : hd_users_read(users, path, (const char *)bytes, len, hd_account_uid, arena, diag);
}

enum hd_err hd_users_read(struct hd_users *users, const char *name, const char *text, size_t len,
	uint32_t (*uid_of)(const char *name), struct hd_arena *arena, struct hd_diag *diag)
{
	const struct users_reading r = { name, arena, users, uid_of, diag };
	const struct hd_yaml_node *root = NULL;
	const char *known[NPARTS];
	enum hd_err err = hd_yaml_parse(arena, name, text, len, &root, diag);

	*users = (struct hd_users){ 0 };
	err = err == HD_E_INVAL ? HD_E_INPUT : err;
	if (!err)
		err = is_kind(&r, root, HD_YAML_MAP);
	for (size_t i = 0; i < NPARTS; i++)
		known[i] = parts[i].key;
	for (const struct hd_yaml_node *n = err ? NULL : root->first; n && !err; n = n->next) {
		size_t i = 0;
		while (i < NPARTS && strcmp(n->key, known[i]) != 0)
			i++;
		if (i == NPARTS)
			err = unknown(&r, n, known, NPARTS);
	}
	for (size_t i = 0; i < NPARTS && !err; i++) {
		const struct hd_yaml_node *part = hd_yaml_find(root, parts[i].key);
		err = part ? parts[i].read(&r, part) : HD_OK;
	}
	if (err)
		*users = (struct hd_users){ 0 };
	return err;
}

/* ---- whose a request is ---- */

struct hd_caller hd_caller_owner(uint32_t uid, uint32_t gid, const char *name)
{
	struct hd_caller c = { .uid = uid, .gid = gid, .role = HD_ROLE_ADMIN, .owner = true,
		.sees_all = true };

	snprintf(c.name, sizeof c.name, "%.64s", name);
	return c;
}

static struct hd_caller caller_of(const struct hd_users *users, const struct hd_users_user *u, uint32_t uid,
	uint32_t gid, const char *name)
{
	struct hd_caller c = { .uid = uid, .gid = gid, .role = u->role,
		.sees_all = users->visible_all || u->role >= HD_ROLE_OPERATOR, .operates = u->noperates > 0 };

	if (*name)
		snprintf(c.name, sizeof c.name, "%.64s", name);
	else
		snprintf(c.name, sizeof c.name, NAMELESS "%u", uid);
	return c;
}

static bool is_listed(const struct hd_users *users, const char *name)
{
	for (uint32_t i = 0; i < users->nusers; i++)
		if (!strcmp(users->user[i].name, name))
			return true;
	return false;
}

const struct hd_users_user *hd_users_of(const struct hd_users *users, uint32_t uid)
{
	for (uint32_t i = 0; i < users->nusers && uid != HD_NO_UID; i++)
		if (users->user[i].uid == uid)
			return &users->user[i];
	return NULL;
}

enum hd_err hd_users_by_uid(const struct hd_users *users, uint32_t uid, uint32_t gid, const char *name,
	struct hd_caller *caller, struct hd_diag *diag)
{
	const struct hd_users_user *u = hd_users_of(users, uid);

	if (!u && !users->others.name)
		return hd_fail(diag, HD_E_REFUSED,
			"account %.64s (%u) is no user of this scheduler: its owner lists users in "
			HD_USERS_FILE, *name ? name : "without a name", uid);
	/* tokens and limits go by name: one that the file gives to another uid is not this account's */
	*caller = caller_of(users, u ? u : &users->others, uid, gid, u ? u->name :
		is_listed(users, name) ? "" : name);
	return HD_OK;
}

enum hd_err hd_users_by_name(const struct hd_users *users, const char *name, struct hd_caller *caller,
	struct hd_diag *diag)
{
	for (uint32_t i = 0; i < users->nusers; i++)
		if (!strcmp(users->user[i].name, name)) {
			*caller = caller_of(users, &users->user[i], users->user[i].uid, HD_NO_UID, name);
			return HD_OK;
		}
	return hd_fail(diag, HD_E_REFUSED, "%.64s is no user of this scheduler (" HD_USERS_FILE ")", name);
}

/* ---- what it may ---- */

struct hd_right hd_right_to(const char *what, const struct hd_json *ask)
{
	static const struct { const char *what, *with; struct hd_right right; } rows[] = {
#define X(what, with, own, all) { what, with, { HD_ROLE_##own, HD_ROLE_##all } },
		HD_RIGHTS(X)
#undef X
	};
	struct hd_right right = { HD_ROLE_ADMIN, HD_ROLE_ADMIN };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].what, what) && (!rows[i].with || (ask && hd_json_find(ask,
			rows[i].with))))
			right = rows[i].right;
	return right;
}

enum hd_err hd_caller_may(const struct hd_caller *caller, const char *what, const struct hd_json *ask,
	struct hd_diag *diag)
{
	struct hd_right right = hd_right_to(what, ask);

	return caller->role >= right.own ? HD_OK : hd_fail(diag, HD_E_REFUSED,
		"%s may not do that: it takes the role %s (" HD_USERS_FILE ")", caller->name,
		hd_role_name(right.own));
}

static bool only_looks(const char *what)
{
	static const char *const looks[] = { "jobs", "job", "explain", "events", "whatif", "run",
		"metrics", "waiting", "ledger", "status", "pools" };
	bool any = false;

	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
		any |= !strcmp(what, looks[i]);
	return any;
}

bool hd_caller_may_of(const struct hd_caller *caller, const char *what, const struct hd_json *ask,
	uint32_t uid)
{
	struct hd_right right = hd_right_to(what, ask);

	if (caller->role >= right.all || (caller->sees_all && only_looks(what)))
		return true;
	return uid != HD_NO_UID && uid == caller->uid && caller->role >= right.own;
}

bool hd_caller_may_operate(const struct hd_caller *caller, const char *what, const struct hd_json *ask)
{
	return caller->operates && hd_right_to(what, ask).all <= HD_ROLE_OPERATOR;
}

/* ---- its limits ---- */

static void add_limit(struct hd_users_limit *limit, uint32_t *n, const char *kind, const char *name,
	const struct hd_quota *quota)
{
	snprintf(limit[*n].name, sizeof limit->name, "%s %.64s", kind, name);
	limit[(*n)++].quota = *quota;
}

static const struct hd_users_user *user_or_others(const struct hd_users *users, uint32_t uid)
{
	const struct hd_users_user *u = hd_users_of(users, uid);

	return u || uid == HD_NO_UID || !users->others.name ? u : &users->others;
}

static bool is_in(const struct hd_users_user *u, uint32_t account)
{
	for (uint32_t k = 0; u && k < u->naccounts; k++)
		if (u->account[k] == account)
			return true;
	return false;
}

bool hd_users_reaches(const struct hd_users *users, uint32_t uid, uint32_t account)
{
	const struct hd_users_user *u = user_or_others(users, uid);

	for (uint32_t k = 0; u && k < u->naccounts; k++)
		for (uint32_t at = u->account[k]; at != HD_USERS_NONE; at = users->account[at].parent)
			if (at == account)
				return true;
	return false;
}

bool hd_users_operates(const struct hd_users *users, uint32_t uid, uint32_t account)
{
	const struct hd_users_user *u = hd_users_of(users, uid);

	for (uint32_t at = account; u && at != HD_USERS_NONE; at = users->account[at].parent)
		for (uint32_t k = 0; k < u->noperates; k++)
			if (u->operates[k] == at)
				return true;
	return false;
}

/* What it may name, and no word about what else there is. */
static enum hd_err not_in(const struct hd_users *users, const struct hd_users_user *u, const char *user,
	const char *name, struct hd_diag *diag)
{
	char all[HD_USERS_ACCOUNTS * (HD_USERS_NAME + 2) + 1] = "";
	size_t len = 0;

	for (uint32_t k = 0; u && k < u->naccounts; k++)
		len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", k ? ", " : "",
			users->account[u->account[k]].name);
	if (!len)
		return hd_fail(diag, HD_E_INVAL, "ACCOUNT: user %.64s is in no account \"%.64s\", and in no "
			"other: leave it out", user, name);
	return hd_fail(diag, HD_E_INVAL, "ACCOUNT: user %.64s is in no account \"%.64s\"; it is in: %s", user,
		name, all);
}

enum hd_err hd_users_bill(const struct hd_users *users, uint32_t uid, const char *user, bool owner,
	const char *name, uint32_t *account, struct hd_diag *diag)
{
	const struct hd_users_user *u = owner ? NULL : user_or_others(users, uid);
	uint32_t at = *name ? hd_users_find_account(users, name) : u && u->naccounts ? u->account[0] :
		HD_USERS_NONE;

	if (*name && owner && at == HD_USERS_NONE)
		return hd_fail(diag, HD_E_INVAL, "there is no account \"%.64s\" in " HD_USERS_FILE, name);
	if (*name && !owner && (at == HD_USERS_NONE || !is_in(u, at)))
		return not_in(users, u, user, name, diag);
	*account = at;
	return HD_OK;
}

uint32_t hd_users_limits(const struct hd_users *users, uint32_t uid, const char *name, bool owner,
	const char *handed_in, struct hd_users_limit limit[HD_USERS_LIMITS], uint32_t *account)
{
	const struct hd_users_user *u = owner ? NULL : user_or_others(users, uid);
	uint32_t n = 0, at = *handed_in ? hd_users_find_account(users, handed_in) : HD_USERS_NONE;

	*account = HD_USERS_NONE;
	if (!owner && !u)
		return 0;
	if (!owner && (at == HD_USERS_NONE || !is_in(u, at)))
		at = u->naccounts ? u->account[0] : HD_USERS_NONE;
	*account = at;
	/* a job that was handed in under another name counts to the name of now */
	if (u)
		add_limit(limit, &n, "user", u == &users->others ? name : u->name, &u->quota);
	for (; at != HD_USERS_NONE; at = users->account[at].parent)
		add_limit(limit, &n, "account", users->account[at].name, &users->account[at].quota);
	for (uint32_t g = 0; u && g < u->ngroups; g++)
		add_limit(limit, &n, "group", users->group[u->group[g]].name,
			&users->group[u->group[g]].quota);
	return n;
}
