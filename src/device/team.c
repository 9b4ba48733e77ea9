#include "device/team.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/thread.h"

struct team_member {
	struct hd_team *team;
	struct hd_thread thread;          /* of the leader: never started */
	/* passed once, with the leader, when it is known whether all could start */
	struct hd_barrier gate;
	void *scratch;                    /* owned */
};

/* `tile`, `user`, `ntiles`, `stop` are written by the leader before `begin` and read by
 * helpers after it: the barriers order them. */
struct hd_team {
	struct hd_barrier begin, end;
	_Alignas(64) _Atomic uint32_t next;
	_Atomic bool arithmetic_changed;
	_Alignas(64) void (*tile)(const void *user, uint32_t i, void *scratch);
	const void *user;
	uint32_t ntiles;
	bool abandoned;                   /* written before the gates, never after */
	bool stop;                        /* before `begin`, as the job of tiles is */
	uint32_t nthreads;
	size_t scratch_bytes;
	void (*init)(void);
	struct team_member member[];           /* [nthreads]; 0 is the leader */
};

static void take_tiles(struct hd_team *team, void *scratch)
{
	for (;;) {
		uint32_t i = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
		if (i >= team->ntiles)
			break;
		team->tile(team->user, i, scratch);
	}
	if (!hd_thread_arith_ok())
		atomic_store_explicit(&team->arithmetic_changed, true, memory_order_relaxed);
}

static void help(void *user)
{
	struct team_member *member = user;
	struct hd_team *team = member->team;

	team->init();
	hd_barrier_wait(&member->gate);
	if (team->abandoned)
		return;
	for (;;) {
		hd_barrier_wait(&team->begin);
		if (team->stop)
			return;
		take_tiles(team, member->scratch);
		hd_barrier_wait(&team->end);
	}
}

/* The shared barriers count all helpers. If one cannot be started, those before it must
 * not reach them: they wait at gates of their own and leave. */
static enum hd_err start_helpers(struct hd_team *team, const struct hd_team_spec *spec, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	uint32_t nstarted = 1;

	for (uint32_t i = 1; i < spec->nthreads; i++) {
		int core = spec->first_core < 0 ? -1 : spec->first_core + (int)i;
		hd_barrier_init(&team->member[i].gate, 2, false);
		err = hd_thread_start(&team->member[i].thread, "hd-tiles", core, help, &team->member[i],
			diag);
		if (err)
			break;
		nstarted++;
	}
	team->abandoned = err != HD_OK;
	for (uint32_t i = 1; i < nstarted; i++)
		hd_barrier_wait(&team->member[i].gate);
	return err;
}

enum hd_err hd_team_create(struct hd_team **team, const struct hd_team_spec *spec, struct hd_diag *diag)
{
	if (spec->nthreads < 1 || spec->nthreads > HD_TEAM_CAP)
		return hd_fail(diag, HD_E_INVAL, "%u threads for a device: 1 to %d", spec->nthreads,
			HD_TEAM_CAP);
	size_t bytes = sizeof **team + spec->nthreads * sizeof(struct team_member);
	struct hd_team *made = hd_alloc(bytes);
	if (!made)
		return hd_fail(diag, HD_E_NOMEM, "a team of %u threads: out of memory", spec->nthreads);
	memset(made, 0, bytes);
	made->nthreads = spec->nthreads;
	made->init = spec->init;
	for (uint32_t i = 0; i < spec->nthreads; i++)
		made->member[i].team = made;
	hd_barrier_init(&made->begin, spec->nthreads, spec->spin);
	hd_barrier_init(&made->end, spec->nthreads, spec->spin);
	enum hd_err err = start_helpers(made, spec, diag);
	if (err) {
		hd_team_destroy(made);
		return err;
	}
	*team = made;
	return HD_OK;
}

void hd_team_destroy(struct hd_team *team)
{
	if (!team)
		return;
	if (!team->abandoned && team->nthreads > 1) {
		team->stop = true;
		hd_barrier_wait(&team->begin);
	}
	for (uint32_t i = 0; i < team->nthreads; i++) {
		hd_thread_join(&team->member[i].thread);
		hd_free(team->member[i].scratch);
	}
	hd_free(team);
}

enum hd_err hd_team_scratch(struct hd_team *team, size_t bytes, struct hd_diag *diag)
{
	if (bytes <= team->scratch_bytes)
		return HD_OK;
	for (uint32_t i = 0; i < team->nthreads; i++) {
		void *larger = hd_alloc(bytes);
		if (!larger)
			return hd_fail(diag, HD_E_NOMEM,
				"%zu bytes of scratch for each of %u threads: out of memory", bytes,
				team->nthreads);
		hd_free(team->member[i].scratch);
		team->member[i].scratch = larger;
	}
	team->scratch_bytes = bytes;
	return HD_OK;
}

size_t hd_team_scratch_bytes(const struct hd_team *team) { return team->scratch_bytes * team->nthreads; }

bool hd_team_run(struct hd_team *team, uint32_t ntiles, bool alone,
	void (*tile)(const void *user, uint32_t i, void *scratch), const void *user)
{
	if (alone || ntiles < 2 || team->nthreads == 1) {
		for (uint32_t i = 0; i < ntiles; i++)
			tile(user, i, team->member[0].scratch);
		return hd_thread_arith_ok();
	}
	team->tile = tile;
	team->user = user;
	team->ntiles = ntiles;
	atomic_store_explicit(&team->next, 0, memory_order_relaxed);
	hd_barrier_wait(&team->begin);
	take_tiles(team, team->member[0].scratch);
	hd_barrier_wait(&team->end);
	return !atomic_load_explicit(&team->arithmetic_changed, memory_order_relaxed);
}
