#include "daemon/allowance.h"

#include <assert.h>
#include <stddef.h>

static int64_t left_of(const struct hd_allowed *u, int64_t now_ns)
{
	int64_t went_ns = now_ns > u->at_ns ? now_ns - u->at_ns : 0;

	/* compared before it is added: a debt is small, and time may be long */
	return went_ns / HD_ALLOWANCE_PART >= HD_ALLOWANCE_MOST_NS - u->left_ns ? HD_ALLOWANCE_MOST_NS :
		u->left_ns + went_ns / HD_ALLOWANCE_PART;
}

static const struct hd_allowed *find(const struct hd_allowance *a, uint32_t uid)
{
	assert(a->n <= HD_ALLOWANCE_USERS);
	for (uint32_t i = 0; i < a->n; i++)
		if (a->user[i].uid == uid)
			return &a->user[i];
	return NULL;
}

int64_t hd_allowance_left(const struct hd_allowance *a, uint32_t uid, int64_t now_ns)
{
	const struct hd_allowed *u = find(a, uid);

	return u ? left_of(u, now_ns) : HD_ALLOWANCE_MOST_NS;
}

/* The place of that user; of one that is not known a free one, or that of the user with most left. */
static struct hd_allowed *place(struct hd_allowance *a, uint32_t uid, int64_t now_ns)
{
	struct hd_allowed *most = &a->user[0];

	for (uint32_t i = 0; i < a->n; i++) {
		if (a->user[i].uid == uid)
			return &a->user[i];
		if (left_of(&a->user[i], now_ns) > left_of(most, now_ns))
			most = &a->user[i];
	}
	if (a->n < HD_ALLOWANCE_USERS)
		most = &a->user[a->n++];
	*most = (struct hd_allowed){ uid, HD_ALLOWANCE_MOST_NS, now_ns };
	return most;
}

int64_t hd_allowance_price(int64_t cpu_ns, uint32_t njobs)
{
	return cpu_ns > njobs * HD_ALLOWANCE_JOB_NS ? cpu_ns : njobs * HD_ALLOWANCE_JOB_NS;
}

void hd_allowance_took(struct hd_allowance *a, uint32_t uid, int64_t now_ns, int64_t took_ns)
{
	struct hd_allowed *u = place(a, uid, now_ns);

	assert(took_ns >= 0);
	u->left_ns = left_of(u, now_ns) - took_ns;
	u->at_ns = now_ns;
	assert(u->left_ns <= HD_ALLOWANCE_MOST_NS);
}

int64_t hd_allowance_wait(const struct hd_allowance *a, uint32_t uid, int64_t now_ns)
{
	int64_t left_ns = hd_allowance_left(a, uid, now_ns);

	return left_ns > 0 ? 0 : (1 - left_ns) * HD_ALLOWANCE_PART;
}
