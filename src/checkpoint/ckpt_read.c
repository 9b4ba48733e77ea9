#include <stdio.h>
#include <string.h>

#include "checkpoint/ckpt_int.h"

enum hd_err hd_ckpt_manifest_read(struct hd_fs *fs, const char *folder, struct hd_arena *arena,
	struct hd_manifest *manifest, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	uint64_t step;
	size_t len;
	bool old;

	if (strlen(folder) >= sizeof manifest->info.folder)
		return hd_fail(diag, HD_E_INVAL, "the path %.100s... is longer than %zu bytes", folder,
			sizeof manifest->info.folder - 1);
	hd_ckpt_join(path, sizeof path, folder, HD_CKPT_MANIFEST);
	enum hd_err err = hd_file_read_all(fs, path, arena, HD_CKPT_MANIFEST_BYTES, &bytes, &len, diag);
	if (!err)
		err = hd_manifest_parse(manifest, arena, path, (const char *)bytes, len, diag);
	if (err)
		return err;
	snprintf(manifest->info.folder, sizeof manifest->info.folder, "%s", folder);
	const char *slash = strrchr(folder, '/');
	if (hd_ckpt_folder_parse(slash ? slash + 1 : folder, &step, &old) && step != manifest->info.step)
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s: its manifest is of step %llu: the folder was renamed", folder,
			(unsigned long long)manifest->info.step);
	return HD_OK;
}

/* ---- a table of its own ---- */

struct own { struct hd_arena *arena; const char *folder; };

static enum hd_err own_room(void *user, struct hd_state_entry *entry, struct hd_diag *diag)
{
	const struct own *own = user;

	entry->at = hd_arena_take(own->arena, entry->len_bytes + 1, 1);
	return entry->at ? HD_OK : hd_fail(diag, HD_E_NOMEM, "%s: no memory for tensor '%s' (%llu bytes)",
		own->folder, entry->name, (unsigned long long)entry->len_bytes);
}

enum hd_err hd_ckpt_load(struct hd_fs *fs, const char *folder, struct hd_arena *arena, struct hd_state *state,
	struct hd_ckpt_info *info, struct hd_diag *diag)
{
	struct own own = { arena, folder };

	hd_state_init(state, arena);
	return hd_ckpt_stream(fs, folder, &(struct hd_ckpt_rooms){ own_room, &own }, state, info, diag);
}

enum hd_err hd_ckpt_verify(struct hd_fs *fs, const char *folder, struct hd_ckpt_info *info,
	struct hd_diag *diag)
{
	struct hd_arena arena;
	struct hd_state state;

	hd_arena_init(&arena, 0);
	hd_state_init(&state, &arena);
	enum hd_err err = hd_ckpt_stream(fs, folder, NULL, &state, info, diag);
	hd_arena_finish(&arena);
	return err;
}

/* ---- a state that is there ---- */

struct theirs { const struct hd_state *state; const char *folder; };

static enum hd_err find_in(const struct theirs *theirs, const struct hd_state_entry *from,
	const struct hd_state_entry **found, struct hd_diag *diag)
{
	const struct hd_state_entry *e = hd_state_find(theirs->state, from->name);

	if (!e)
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s: tensor '%s' is not one of this model's: another job's checkpoint?",
			theirs->folder, from->name);
	if (e->dtype != from->dtype || e->rank != from->rank || e->group != from->group ||
		memcmp(e->dim, from->dim, e->rank * sizeof *e->dim))
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s: tensor '%s' has another type or shape than this model's: another job's "
			"checkpoint?", theirs->folder, from->name);
	*found = e;
	return HD_OK;
}

static enum hd_err their_room(void *user, struct hd_state_entry *entry, struct hd_diag *diag)
{
	const struct hd_state_entry *found = NULL;
	enum hd_err err = find_in(user, entry, &found, diag);

	entry->at = err ? NULL : found->at;
	entry->slices = err ? NULL : found->slices;
	return err;
}

static enum hd_err take_counters(const struct theirs *theirs, const struct hd_state *table,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < table->nentries; i++) {
		const struct hd_state_entry *from = &table->entry[i];
		const struct hd_state_entry *found = NULL;
		if (from->group != HD_STATE_RUN)
			continue;
		err = find_in(theirs, from, &found, diag);
		if (!err && from->len_bytes)
			memcpy(found->at, from->at, from->len_bytes);
	}
	return err;
}

enum hd_err hd_ckpt_read(struct hd_fs *fs, const char *folder, struct hd_state *state,
	struct hd_ckpt_info *info, struct hd_diag *diag)
{
	struct theirs theirs = { state, folder };
	struct hd_ckpt_info read;
	struct hd_arena arena;
	struct hd_state table;

	hd_arena_init(&arena, 0);
	hd_state_init(&table, &arena);
	enum hd_err err = hd_ckpt_stream(fs, folder, &(struct hd_ckpt_rooms){ their_room, &theirs }, &table,
		&read, diag);
	err = err ? err : take_counters(&theirs, &table, diag);
	for (uint32_t i = 0; !err && i < state->nentries; i++)
		if (!hd_state_find(&table, state->entry[i].name))
			err = hd_fail(diag, HD_E_INTEGRITY,
				"%s: tensor '%s' is missing: another job's checkpoint?", folder,
				state->entry[i].name);
	if (!err && !hd_hash_same(hd_state_digest(state), read.digest))
		err = hd_fail(diag, HD_E_INTEGRITY,
			"%s: what was loaded has another digest than its manifest: memory fails?", folder);
	if (!err)
		*info = read;
	hd_arena_finish(&arena);
	return err;
}
