#include "worker/later.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

/* Before its bytes. */
struct later_head { uint64_t step; uint32_t id, len; };

enum hd_err hd_later_init(struct hd_later *l, struct hd_diag *diag)
{
	*l = (struct hd_later){ .room = hd_alloc(HD_LATER_BYTES), .said_ns = INT64_MIN / 2 };
	return l->room ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for records that wait");
}

void hd_later_finish(struct hd_later *l)
{
	hd_free(l->room);
	*l = (struct hd_later){ 0 };
}

bool hd_later_keep(struct hd_later *l, const struct hd_later_message *m, int64_t now_ns)
{
	const struct later_head head = { m->step, m->id, m->len };

	if (!l->room || now_ns >= l->said_ns + HD_LATER_NS || m->len > HD_LATER_BYTES - sizeof head ||
		l->used > HD_LATER_BYTES - sizeof head - m->len)
		return false;
	assert(l->at == 0);
	memcpy(l->room + l->used, &head, sizeof head);
	memcpy(l->room + l->used + sizeof head, m->bytes, m->len);
	l->used += sizeof head + m->len;
	return true;
}

bool hd_later_take(struct hd_later *l, struct hd_later_message *m, int64_t now_ns)
{
	struct later_head head;

	if (l->at == l->used) {
		hd_later_drop(l);
		l->said_ns = now_ns;
		return false;
	}
	memcpy(&head, l->room + l->at, sizeof head);
	*m = (struct hd_later_message){ head.step, head.id, head.len, l->room + l->at + sizeof head };
	l->at += sizeof head + head.len;
	return true;
}

void hd_later_drop(struct hd_later *l) { l->used = l->at = 0; }

int64_t hd_later_due_ns(const struct hd_later *l, int64_t now_ns)
{
	const int64_t due_ns = l->said_ns + HD_LATER_NS;

	return l->room && (l->used || now_ns < due_ns) ? due_ns : INT64_MAX;
}
