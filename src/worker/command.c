#include "worker/command.h"

#include <assert.h>

#include "base/alloc.h"

/* a wake-up is sent; the timeout only bounds every wait */
enum { HD_COMMAND_LOOK_NS = 1000000000 };

static struct hd_command *command_at(struct hd_commands *d, uint64_t n)
{
	return &d->command[(n - d->base) % HD_COMMANDS];
}

static struct hd_command_done *done_at(struct hd_commands *d, uint64_t n)
{
	return &d->done[(n - d->base_done) % HD_COMMANDS_RESULTS];
}

enum hd_err hd_commands_init(struct hd_commands *d, void (*wake)(void *user), void *user,
	struct hd_diag *diag)
{
	*d = (struct hd_commands){ .wake = wake, .user = user };
	d->command = hd_alloc(HD_COMMANDS * sizeof *d->command);
	d->done = hd_alloc(HD_COMMANDS_RESULTS * sizeof *d->done);
	if (!d->command || !d->done) {
		hd_free(d->command);
		hd_free(d->done);
		*d = (struct hd_commands){ 0 };
		return hd_fail(diag, HD_E_NOMEM, "no memory for the commands of a worker");
	}
	hd_clock_real(&d->clock);
	hd_lock_init(&d->lock);
	hd_cond_init(&d->given);
	return HD_OK;
}

void hd_commands_finish(struct hd_commands *d)
{
	if (!d->command)
		return;
	hd_cond_finish(&d->given);
	hd_lock_finish(&d->lock);
	hd_free(d->command);
	hd_free(d->done);
	*d = (struct hd_commands){ 0 };
}

enum hd_err hd_commands_give(struct hd_commands *d, const struct hd_command *command, struct hd_diag *diag)
{
	hd_lock_take(&d->lock);
	assert(command->kind < HD_COMMAND_NKINDS && d->first <= d->end &&
		d->end - d->first <= HD_COMMANDS);
	bool full = d->end - d->first == HD_COMMANDS, idle = d->end == d->first;
	d->base = idle ? d->end : d->base;
	if (!full)
		*command_at(d, d->end++) = *command;
	hd_lock_give(&d->lock);
	if (idle)
		/* with the lock released: the woken thread needs it at once */
		hd_cond_wake(&d->given);
	if (d->call)
		d->call(d->compute);
	return full ? hd_fail(diag, HD_E_AGAIN, "%d commands are open", HD_COMMANDS) : HD_OK;
}

bool hd_commands_result(struct hd_commands *d, struct hd_command_done *done)
{
	hd_lock_take(&d->lock);
	assert(d->first_done <= d->end_done && d->end_done <= d->first);  /* results are of commands taken */
	bool some = d->end_done > d->first_done;
	if (some) {
		*done = *done_at(d, d->first_done++);
		if (d->end_done - d->first_done == HD_COMMANDS_RESULTS - 1)
			hd_cond_wake(&d->given);
	}
	hd_lock_give(&d->lock);
	return some;
}

bool hd_commands_wait(struct hd_commands *d)
{
	hd_lock_take(&d->lock);
	const bool wait = d->first < d->end;
	hd_lock_give(&d->lock);
	return wait;
}

uint32_t hd_commands_take(struct hd_commands *d, struct hd_command *command, uint32_t cap)
{
	uint32_t n = 0;

	assert(cap > 0);
	hd_lock_take(&d->lock);
	atomic_store(&d->busy, d->first < d->end);
	while (d->first == d->end)
		hd_cond_wait(&d->given, &d->lock, hd_clock_now_ns(&d->clock) + HD_COMMAND_LOOK_NS);
	atomic_store(&d->busy, true);
	do
		command[n++] = *command_at(d, d->first++);
	while (n < cap && d->first < d->end && command_at(d, d->first)->kind == command[0].kind
		&& (command[0].kind == HD_COMMAND_FOLD || command[0].kind == HD_COMMAND_ARRIVED));
	hd_lock_give(&d->lock);
	return n;
}

void hd_commands_done(struct hd_commands *d, const struct hd_command_done *done)
{
	hd_lock_take(&d->lock);
	while (d->end_done - d->first_done == HD_COMMANDS_RESULTS)
		hd_cond_wait(&d->given, &d->lock, hd_clock_now_ns(&d->clock) + HD_COMMAND_LOOK_NS);
	assert(d->end_done < d->first);   /* one result a command, none before it was taken */
	d->base_done = d->end_done == d->first_done ? d->end_done : d->base_done;
	*done_at(d, d->end_done++) = *done;
	hd_lock_give(&d->lock);
	atomic_fetch_add(&d->progress, 1);
	d->wake(d->user);
}
