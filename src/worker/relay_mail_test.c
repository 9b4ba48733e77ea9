#include "worker/relay_int.h"

/* Mail between stages on its way through a relay (relay.h, rule 5), and what several workers say of one
 * virtual node. */

#include "worker/testing_relays.h"

enum { EPOCH = 5, LEN = 24 };

static uint8_t room[HD_MAIL_FAKES][LEN];

/* A letter between member 0, whose relay is looked at, and member 1; `i` is where its bytes lie. */
static struct hd_dist_letter letter(bool send, uint32_t vn, uint32_t i)
{
	return (struct hd_dist_letter){ .kind = send ? HD_XFER_ACTIVATIONS : HD_XFER_GRADIENTS, .send = send,
		.stage = send ? 1 : 0, .vn = vn, .from = send ? 0 : 1, .to = send ? 1 : 0, .step = 4,
		.epoch = EPOCH, .bytes = room[i], .len = LEN };
}

static void hand_over(struct hd_dist_letter l) { hd_mail_fake.queue[hd_mail_fake.nqueue++] = l; }

static struct hd_relay *r;
static struct channel *with;

static void arrive_at(uint32_t step)
{
	const struct scene s = { "mail", .n = 3 };

	begin(&s, step);
	assert_int_equal(hd_relay_open(r, &world->node[0]->x, NULL), HD_OK);
}

static void enter_stages(void)
{
	memset(&hd_mail_fake, 0, sizeof hd_mail_fake);
	enter(3, 0, false);
	r = &world->node[0]->r;
	with = &world->node[0]->with[1];
	hd_mail_fake.worker = &world->node[0]->w;
	hd_mail_fake.nstages = 2;
	/* in no order: rows have one */
	for (uint32_t i = 0; i < 4; i++)
		hd_mail_fake.list[hd_mail_fake.nlist++] = letter(i % 2, 3 - i, 0);
}

static uint32_t row(const struct hd_dist_letter *l)
{
	return hd_transfers_id(&r->rows, (struct hd_xfer_name){ (enum hd_xfer_kind)l->kind, HD_NOBODY,
		HD_NOBODY,
		l->stage * VNS + l->vn, 0 });
}

static void carry(void) { assert_int_equal(hd_relay_mail(r, NULL), HD_OK); }

static uint32_t posts_of(uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < with->nposts; i++)
		n += with->post[i].transfer == id;
	return n;
}

static const struct sent *sent_of(uint32_t id)
{
	for (uint32_t i = 0; i < with->nsent; i++)
		if (with->sent[i].transfer == id)
			return &with->sent[i];
	return NULL;
}

static enum hd_err come_of(uint64_t step, uint32_t id, void *buffer, struct hd_relay_news *news)
{
	struct hd_diag diag = { "" };

	return hd_relay_arrived(r, &(struct hd_arrival){ .worker = id_of_member(1), .transfer = id,
		.step = step, .buffer = buffer, .len = LEN }, news, &diag);
}

static enum hd_err come(uint32_t id, void *buffer, struct hd_relay_news *news)
{
	return come_of(r->step, id, buffer, news);
}

/* What came before the channel opens goes when it does, by its row. */
static void letters_wait_for_their_channel(void **state)
{
	const struct hd_dist_letter out = letter(true, 2, 0), in = letter(false, 3, 1);

	(void)state;
	enter_stages();
	hand_over(out);
	hand_over(in);
	carry();
	assert_int_equal(with->nposts + with->nsent, 0);
	arrive_at(4);
	const uint32_t nposts = with->nposts;
	carry();
	assert_int_equal(with->nposts, nposts + 1);
	assert_int_equal(posts_of(row(&in)), 1);
	assert_ptr_equal(with->post[nposts].buffer, room[1]);
	const struct sent *s = sent_of(row(&out));
	assert_true(s && s->bytes == room[0] && s->len == LEN && s->step == 4 && s->priority == 0);
	carry();                                  /* once */
	assert_int_equal(with->nposts, nposts + 1);
	leave();
}

/* Of a sync there is a row for each pair of members: neither way is taken for the other. */
static void moments_go_by_their_sync_and_pair(void **state)
{
	struct hd_dist_letter out = { .kind = HD_XFER_MOMENTS, .send = true, .stage = 2, .from = 0, .to = 1,
		.step = 4, .epoch = EPOCH, .bytes = room[0], .len = LEN }, in = out;
	struct hd_relay_news news;

	(void)state;
	in.send = false;
	in.from = 1;
	in.to = 0;
	in.bytes = room[1];
	enter_stages();
	hd_mail_fake.nstages = 1;
	hd_mail_fake.nsyncs = 3;
	hd_mail_fake.nlist = 0;
	hd_mail_fake.list[hd_mail_fake.nlist++] = in;
	hd_mail_fake.list[hd_mail_fake.nlist++] = out;
	hand_over(in);
	hand_over(out);
	arrive_at(4);
	carry();
	const uint32_t
		there = hd_transfers_id(&r->rows, (struct hd_xfer_name){ HD_XFER_MOMENTS, 0, 1, 2, 0 }),
		here = hd_transfers_id(&r->rows, (struct hd_xfer_name){ HD_XFER_MOMENTS, 1, 0, 2, 0 });
	assert_int_not_equal(there, here);
	assert_int_equal(posts_of(here), 1);
	assert_int_equal(posts_of(there), 0);
	assert_true(sent_of(there) && sent_of(there)->bytes == room[0] && !sent_of(here));
	assert_int_equal(come(here, room[1], &news), HD_OK);
	assert_int_equal(news.kind, HD_XFER_MOMENTS);
	assert_true(hd_mail_fake.narrived == 1 && hd_mail_fake.arrived[0].from == 1 &&
		hd_mail_fake.arrived[0].stage == 2);
	leave();
}

/* A copy of a gradient for the shadow of a stage is not the stage's gradient: a row behind all stages. */
static void letters_to_shadows_have_rows_of_their_own(void **state)
{
	struct hd_dist_letter to_stage = letter(false, 3, 1), to_shadow = letter(false, 3, 2);
	struct hd_relay_news news;

	(void)state;
	enter_stages();
	hd_mail_fake.nshadows = 2;
	to_shadow.stage = 2;
	hd_mail_fake.list[hd_mail_fake.nlist++] = to_shadow;
	hand_over(to_stage);
	hand_over(to_shadow);
	arrive_at(4);
	carry();
	assert_int_equal(row(&to_shadow), row(&to_stage) + 2 * VNS);
	assert_true(posts_of(row(&to_stage)) == 1 && posts_of(row(&to_shadow)) == 1);
	assert_int_equal(come(row(&to_shadow), room[2], &news), HD_OK);
	assert_true(hd_mail_fake.narrived == 1 && hd_mail_fake.arrived[0].stage == 2);
	leave();
}

static void an_arrival_is_the_workers(void **state)
{
	const struct hd_dist_letter in = letter(false, 3, 1);
	struct hd_relay_news news;

	(void)state;
	enter_stages();
	arrive_at(4);
	const uint32_t awaited = r->awaited[1];
	hand_over(in);
	carry();
	assert_int_equal(come(row(&in), room[2], &news), HD_E_INTEGRITY);          /* another buffer */
	assert_int_equal(come(row(&in) + 1, room[1], &news), HD_E_INTEGRITY);      /* another row */
	assert_int_equal(hd_mail_fake.narrived, 0);
	assert_int_equal(come(row(&in), room[1], &news), HD_OK);
	assert_true(hd_mail_fake.narrived == 1 && news.kind == HD_XFER_GRADIENTS);
	assert_int_equal(hd_mail_fake.arrived[0].vn, 3);
	assert_int_equal(come(row(&in), room[1], &news), HD_E_INTEGRITY);          /* twice */
	assert_int_equal(r->awaited[1], awaited);
	/* a step that was given up here waits for nothing, and that is no fault of the sender's */
	hd_mail_fake.arrives = HD_E_STALE;
	hand_over(letter(false, 1, 3));
	carry();
	const struct hd_dist_letter late = letter(false, 1, 3);
	assert_int_equal(come(row(&late), room[3], &news), HD_OK);
	leave();
}

/* Where steps overlap: it is sent and awaited while the step before is open, and says of which step it is. */
static void mail_may_be_of_the_step_to_come(void **state)
{
	struct hd_dist_letter out = letter(true, 2, 0), in = letter(false, 3, 1);
	struct hd_relay_news news;

	(void)state;
	enter_stages();
	out.step = in.step = 5;
	arrive_at(4);
	hand_over(out);
	hand_over(in);
	carry();
	assert_int_equal(sent_of(row(&out))->step, 5);
	assert_int_equal(come_of(4, row(&in), room[1], &news), HD_E_INTEGRITY);
	assert_int_equal(hd_mail_fake.narrived, 0);
	assert_int_equal(come_of(5, row(&in), room[1], &news), HD_OK);
	assert_true(hd_mail_fake.narrived == 1 && hd_mail_fake.arrived[0].step == 5);
	leave();
}

static void what_was_sent_is_the_workers_again(void **state)
{
	(void)state;
	enter_stages();
	arrive_at(4);
	hand_over(letter(true, 0, 0));
	hand_over(letter(true, 2, 1));
	carry();
	assert_int_equal(hd_mail_fake.nsent, 0);
	assert_false(hd_relay_sent(r, &(struct hd_sent){ .token = 1 }));           /* another send's */
	assert_false(hd_relay_sent(r, &(struct hd_sent){ .token = (uintptr_t)room }));
	assert_true(hd_relay_sent(r, &(struct hd_sent){ .token = with->mail_token[1], .err = HD_E_STALE }));
	assert_true(hd_mail_fake.nsent == 1 && hd_mail_fake.sent[0].bytes == room[1]);
	assert_true(hd_relay_sent(r, &(struct hd_sent){ .token = with->mail_token[0] }));
	assert_true(hd_mail_fake.nsent == 2 && hd_mail_fake.sent[1].bytes == room[0]);
	leave();
}

/* What is posted is void, what waits goes back at once, what the hub has when it says so; the worker is
 * fenced. */
static void an_epoch_ends_what_is_on_its_way(void **state)
{
	const struct hd_dist_letter in = letter(false, 3, 1);
	struct hd_relay_news news;

	(void)state;
	enter_stages();
	arrive_at(4);
	hand_over(letter(true, 0, 0));
	hand_over(in);
	carry();
	world->view.epoch++;
	hd_relay_epoch(r, world->view.epoch);
	assert_int_equal(hd_mail_fake.fence, EPOCH + 1);
	assert_int_equal(hd_mail_fake.nsent, 0);
	hd_relay_view(r, &world->view, id_of_member(0));
	for (uint32_t m = 0; m < 3; m++)
		world->node[0]->with[m].nposts = world->node[0]->with[m].nsent = 0;
	/* a device that was about to hand over another one */
	hand_over(letter(true, 2, 2));
	arrive_at(4);
	const uint32_t nposts = with->nposts, nsent = with->nsent;
	carry();
	assert_true(with->nposts == nposts && with->nsent == nsent);
	assert_true(hd_mail_fake.nsent == 1 && hd_mail_fake.sent[0].bytes == room[2]);
	assert_int_equal(come(row(&in), room[1], &news), HD_E_INTEGRITY);
	assert_true(hd_relay_sent(r, &(struct hd_sent){ .token = with->mail_token[0], .err = HD_E_STALE }));
	assert_true(hd_mail_fake.nsent == 2 && hd_mail_fake.sent[1].bytes == room[0]);
	leave();
}

static void a_full_queue_is_tried_again_and_a_lost_link_is_not(void **state)
{
	struct hd_dist_letter next;

	(void)state;
	enter_stages();
	arrive_at(4);
	world->fails = HD_E_AGAIN;
	world->fail_at = world->ncalls + 1;
	world->lost = false;
	hand_over(letter(true, 0, 0));
	carry();
	assert_int_equal(with->nmail, 0);
	world->fails = HD_OK;
	carry();
	assert_int_equal(with->nmail, 1);
	world->lost = true;
	next = letter(true, 2, 1);
	hand_over(next);
	carry();
	assert_true(hd_mail_fake.nsent == 1 && hd_mail_fake.sent[0].bytes == room[1]);
	carry();
	assert_int_equal(with->nmail, 1);
	world->lost = false;
	leave();
}

/* Each of three workers says its part of a virtual node: the table has all of it. */
static void what_several_say_of_a_virtual_node_is_merged(void **state)
{
	(void)state;
	enter_stages();
	arrive_at(4);
	assert_int_equal(r->nplanes, 3);
	for (uint32_t m = 0; m < 3; m++)
		for (uint32_t v = 0; v < VNS; v++) {
			uint8_t *entry = r->metrics + hd_relay_metrics_at(r, m, v) * r->metrics_len;
			memset(entry, 0, r->metrics_len);
			hd_put32(entry + HEAD, v);
			entry[HEAD + 8 + m] = (uint8_t)(10 * m + v + 1);
		}
	hd_relay_merge(r);
	for (uint32_t v = 0; v < VNS; v++)
		for (uint32_t m = 0; m < 3; m++)
			assert_int_equal(r->table[HEAD + v * ENTRY + 8 + m], 10 * m + v + 1);
	leave();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_wait_for_their_channel),
		cmocka_unit_test(moments_go_by_their_sync_and_pair),
		cmocka_unit_test(letters_to_shadows_have_rows_of_their_own),
		cmocka_unit_test(an_arrival_is_the_workers),
		cmocka_unit_test(mail_may_be_of_the_step_to_come),
		cmocka_unit_test(what_was_sent_is_the_workers_again),
		cmocka_unit_test(an_epoch_ends_what_is_on_its_way),
		cmocka_unit_test(a_full_queue_is_tried_again_and_a_lost_link_is_not),
		cmocka_unit_test(what_several_say_of_a_virtual_node_is_merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
