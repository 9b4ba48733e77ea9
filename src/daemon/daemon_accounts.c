#include <math.h>
#include <string.h>

#include "daemon/daemon_int.h"

/* What the accounts of users.yaml have: sums over their jobs and those of accounts below them. */

enum { SHOWN = 1000 };

struct account_sum { int64_t devices, running, waiting; };

/* To the account of each job and to all above it. */
static void add_up(const struct hd_daemon *d, const struct hd_users *users, struct account_sum *sum)
{
	for (uint32_t i = 0; i < hd_dispatch_njobs(d->dispatch); i++) {
		uint64_t id = hd_dispatch_nth(d->dispatch, i);
		const struct hd_dispatch_job *row = hd_dispatch_job(d->dispatch, id);
		const struct hd_dispatch_lease *lease = hd_dispatch_lease(d->dispatch, id);
		uint32_t at = row->entity.name[0] ? hd_users_find_account(users, row->entity.name) :
			HD_USERS_NONE;
		for (; at != HD_USERS_NONE; at = users->account[at].parent) {
			sum[at].devices += lease ? lease->n : 0;
			sum[at].running += lease != NULL;
			sum[at].waiting += !lease && row->state == HD_DISPATCH_OPEN;
		}
	}
}

static double shown(double most) { return isfinite(most) ? most : -1; }

/* Of others' accounts users learn nothing; of their own and those that they operate, what all there have. */
static bool may_see(const struct hd_daemon *d, const struct hd_users *users, uint32_t account)
{
	return daemon_sees_cluster(d) || hd_users_reaches(users, d->by->uid, account) ||
		hd_users_operates(users, d->by->uid, account);
}

void daemon_fill_accounts(void *user, struct hd_json_writer *w)
{
	const struct hd_daemon *d = user;
	const struct hd_users *users = daemon_users_now(d);
	struct hd_arena arena;
	uint32_t n = 0;

	if (!users || !users->naccounts)
		return;
	hd_arena_init(&arena, 0);
	struct account_sum *sum = hd_arena_take(&arena, users->naccounts, sizeof *sum);
	if (sum)
		add_up(d, users, sum);
	for (uint32_t i = 0; sum && i < users->naccounts && n < SHOWN; i++) {
		const uint32_t at = users->listed[i];
		const struct hd_users_account *a = &users->account[at];
		if (!may_see(d, users, at))
			continue;
		struct hd_answer_account is = { .name = a->name, .parent = a->parent == HD_USERS_NONE ? "" :
			users->account[a->parent].name, .level = a->level, .weight = a->weight,
			.devices = sum[at].devices, .running = sum[at].running, .waiting = sum[at].waiting,
			.devices_most = shown(a->quota.most[HD_QUOTA_DEVICES]),
			.running_most = shown(a->quota.most[HD_QUOTA_RUNNING]),
			.queued_most = shown(a->quota.most[HD_QUOTA_QUEUED]) };
		hd_fields_put_object(&hd_answer_account_fields, 0, &is, NULL, w);
		n++;
	}
	hd_arena_finish(&arena);
}
