#include "driver/driver_int.h"

#include "protocol/testing_coordinator.h"
#include "driver/testing_run.h"

/* workers.zones: in which zone the next local worker is started. */

struct run {
	struct desk desk;
	struct driver c;
	struct hd_driver_spec spec;
	struct hd_host_sim host;
};

static void begin(struct run *r, const char *zones)
{
	char more[120];

	memset(r, 0, sizeof *r);
	snprintf(more, sizeof more, "workers: {zones: %s}\n", zones);
	desk_open(&r->desk, more);
	r->spec = (struct hd_driver_spec){ .task = r->desk.made.rig.task };
	r->c.spec = &r->spec;
	hd_host_sim_init(&r->host);
}

/* As if it had been started; the pid is its place. */
static void start(struct run *r, uint32_t at, const char *zone)
{
	r->c.local.child[at] = (struct hd_child){ .proc = { .host = &r->host.host, .pid = 100 + (int)at },
		.zone = zone };
}

static void starts(struct run *r, uint32_t at, const char *want)
{
	const char *zone = driver_next_zone(&r->c);

	CHECK(want ? zone && !strcmp(zone, want) : !zone, "worker %u: %s", at, zone ? zone : "none");
	start(r, at, zone);
}

static void local_workers_stand_in_the_zones_in_turn(void **state)
{
	static const struct { const char *zones, *want[7]; } row[] = {
		{ "[a, b, a, b]", { "a", "b", "a", "b", "a", "b", "a" } },
		{ "[a, b, c]", { "a", "b", "c", "a", "b", "c", "a" } },
		{ "[a, b, b]", { "a", "b", "b", "a", "b", "b", "a" } },
		{ "[one]", { "one", "one", "one", "one", "one", "one", "one" } },
		{ "[]", { NULL } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct run r;
		begin(&r, row[i].zones);
		for (uint32_t n = 0; n < 7; n++)
			starts(&r, n, row[i].want[n]);
		desk_close(&r.desk);
	}
}

static void one_for_a_lost_worker_has_its_zone(void **state)
{
	/* which of the six are gone; what is started then */
	static const struct { uint32_t gone[2]; const char *want[2]; } row[] = { { { 1, 1 }, { "b", "a" } },
		{ { 0, 2 }, { "a", "a" } }, { { 1, 5 }, { "b", "b" } }, { { 4, 3 }, { "a", "b" } } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct run r;
		begin(&r, "[a, b]");
		for (uint32_t n = 0; n < 6; n++)
			starts(&r, n, n % 2 ? "b" : "a");
		for (int k = 0; k < 2; k++)
			r.c.local.child[row[i].gone[k]] = (struct hd_child){ .number = 0 };
		for (uint32_t k = 0; k < 2; k++)
			starts(&r, 7 + k, row[i].want[k]);
		desk_close(&r.desk);
	}
}

/* A coordinator that takes over has started none of those that are there. One of its own is not counted
 * twice, those of other machines and those that are gone not at all. */
static void those_of_the_coordinator_before_count(void **state)
{
	static const struct { uint32_t worker; enum hd_co_worker_state state; bool own; const char *want; }
		row[] = {
		{ 0, HD_W_MEMBER, false, "b" }, { 0, HD_W_SYNCING, false, "b" }, { 0, HD_W_OUT, false, "a" },
		{ HD_REMOTE_WORKER, HD_W_MEMBER, false, "a" }, { 0, HD_W_MEMBER, true, "a" } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct run r;
		struct co_at_work at;
		begin(&r, "[a, a, b]");
		co_run(&at, &co_config, 1);
		struct hd_co_worker *w = &at.co->worker[0];
		w->worker = row[i].worker;
		w->state = row[i].state;
		snprintf(w->zone, sizeof w->zone, "a");
		snprintf(w->host, sizeof w->host, "%s", row[i].own ? "pid:100" : "pid:7");
		r.c.machine = at.co;
		start(&r, row[i].own ? 0 : 7, "a");       /* one of its own, which may be that */
		const char *zone = driver_next_zone(&r.c);
		CHECK(!strcmp(zone, row[i].want), "row %zu: %s", i, zone);
		co_end(&at);
		desk_close(&r.desk);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_workers_stand_in_the_zones_in_turn),
		cmocka_unit_test(one_for_a_lost_worker_has_its_zone),
		cmocka_unit_test(those_of_the_coordinator_before_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
