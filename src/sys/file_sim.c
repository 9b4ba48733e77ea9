#include "sys/file_sim_int.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

const char *hd_fs_call_text(enum hd_fs_call call)
{
	static const char *const text[] = {
#define X(id, text) text,
		HD_FS_CALLS(X)
#undef X
	};
	return text[call];
}

bool hd_fs_sim_grow(void *array, size_t n, size_t *cap, size_t size)
{
	void *old;

	if (n < *cap)
		return true;
	size_t more = *cap ? *cap * 2 : 16;
	void *at = hd_alloc(more * size);
	if (!at)
		return false;
	memcpy(&old, array, sizeof old);
	if (n)
		memcpy(at, old, n * size);
	hd_free(old);
	memcpy(array, &at, sizeof at);
	*cap = more;
	return true;
}

static struct hd_fs_sim *sim_of(struct hd_fs *fs) { return (struct hd_fs_sim *)fs; }

/* ---- the call: numbered, logged, perhaps failed ---- */

static int call_begins(struct hd_fs_sim *sim, enum hd_fs_call call, const char *path, int64_t offset,
	int64_t len)
{
	sim->calls++;
	bool due = sim->fail_at && (sim->fail_on ? sim->calls >= sim->fail_at : sim->calls == sim->fail_at);
	if (!hd_fs_sim_grow(&sim->log, sim->n_log, &sim->log_cap, sizeof *sim->log))
		return -ENOMEM;
	struct hd_fs_record *record = &sim->log[sim->n_log++];
	*record = (struct hd_fs_record){ .call = call, .offset = offset, .len = len,
		.result = due ? -sim->fail_errno : 0 };
	size_t n = strlen(path), cut = n < sizeof record->path ? 0 : n + 1 - sizeof record->path;
	memcpy(record->path, path + cut, n - cut + 1);
	return (int)record->result;
}

static int64_t call_ends(struct hd_fs_sim *sim, int64_t result)
{
	if (sim->n_log)
		sim->log[sim->n_log - 1].result = result;
	return result;
}

/* ---- trees ---- */

static int find(const struct hd_fs_tree *tree, int folder, const char *name, size_t len)
{
	for (size_t i = 0; i < tree->n; i++)
		if (tree->at[i].folder == folder && strlen(tree->at[i].name) == len &&
			!memcmp(tree->at[i].name, name, len))
			return (int)i;
	return HD_FS_NOWHERE;
}

static void take_away(struct hd_fs_tree *tree, const struct hd_fs_entry *entry)
{
	int i = find(tree, entry->folder, entry->name, strlen(entry->name));

	if (i != HD_FS_NOWHERE)
		tree->at[i] = tree->at[--tree->n];
}

void hd_fs_tree_apply(struct hd_fs_tree *tree, const struct hd_fs_change *change)
{
	if (change->from.folder != HD_FS_NOWHERE)
		take_away(tree, &change->from);
	if (change->to.node == HD_FS_NOWHERE)
		return;
	take_away(tree, &change->to);
	assert(tree->n < tree->cap);
	tree->at[tree->n++] = change->to;
}

/* Where a path leads: the folder of its last part, that part, and the node, if there is one. */
struct where { int folder, node; const char *name; size_t len; };

static int look_up(struct hd_fs_sim *sim, int start, const char *path, struct where *where)
{
	*where = (struct where){ start, start, "", 0 };
	for (;;) {
		path += strspn(path, "/");
		size_t len = strcspn(path, "/");
		if (!len)
			return 0;
		if (len == 1 && *path == '.') {
			path++;
			continue;
		}
		if (len >= HD_FS_NAME)
			return -ENAMETOOLONG;
		if (where->node == HD_FS_NOWHERE)
			return -ENOENT;
		if (!sim->nodes[where->node].folder)
			return -ENOTDIR;
		int i = find(&sim->now, where->node, path, len);
		*where = (struct where){ where->node, i == HD_FS_NOWHERE ? HD_FS_NOWHERE :
			sim->now.at[i].node, path, len };
		path += len;
	}
}

static struct hd_fs_entry entry_at(const struct where *where, int node)
{
	struct hd_fs_entry entry = { .folder = where->folder, .node = node };

	memcpy(entry.name, where->name, where->len);
	return entry;
}

static const struct hd_fs_entry nothing = { .folder = HD_FS_NOWHERE, .node = HD_FS_NOWHERE };

/* Each change adds at most one entry: with space for all pending ones in both trees, neither
 * applying nor crashing needs memory. */
static int change(struct hd_fs_sim *sim, struct hd_fs_entry from, struct hd_fs_entry to)
{
	struct hd_fs_change made = { from, to };

	if (!hd_fs_sim_grow(&sim->changes, sim->n_changes, &sim->changes_cap, sizeof *sim->changes) ||
	    !hd_fs_sim_grow(&sim->now.at, sim->now.n, &sim->now.cap, sizeof *sim->now.at))
		return -ENOMEM;
	while (sim->durable.cap < sim->durable.n + sim->n_changes + 1)
		if (!hd_fs_sim_grow(&sim->durable.at, sim->durable.cap, &sim->durable.cap,
			sizeof *sim->durable.at))
			return -ENOMEM;
	sim->changes[sim->n_changes++] = made;
	hd_fs_tree_apply(&sim->now, &made);
	return 0;
}

int hd_fs_change_folder(const struct hd_fs_change *c) { return c->to.node == HD_FS_NOWHERE ? c->from.folder :
	c->to.folder; }

/* ---- open files ---- */

/* Its time is the number of changes so far. */
static void touch(struct hd_fs_sim *sim, struct hd_fs_node *node) { node->changed_wall_ns = ++sim->n_touched;
	}

static int node_new(struct hd_fs_sim *sim, bool folder)
{
	if (!hd_fs_sim_grow(&sim->nodes, sim->n_nodes, &sim->nodes_cap, sizeof *sim->nodes))
		return -ENOMEM;
	sim->nodes[sim->n_nodes] = (struct hd_fs_node){ .folder = folder };
	return (int)sim->n_nodes++;
}

static int handle_new(struct hd_fs_sim *sim, int node, unsigned how)
{
	size_t id = 0;

	while (id < sim->n_handles && sim->handles[id].open)
		id++;
	if (id == sim->n_handles) {
		if (!hd_fs_sim_grow(&sim->handles, sim->n_handles, &sim->handles_cap, sizeof *sim->handles))
			return -ENOMEM;
		sim->n_handles++;
	}
	sim->handles[id] = (struct hd_fs_handle){ .node = node, .open = true, .append = how & HD_OPEN_APPEND,
		.writes = how & HD_OPEN_WRITE };
	return (int)id;
}

static int open_found(struct hd_fs_sim *sim, const struct where *where, unsigned how)
{
	int node = where->node;

	if (node == HD_FS_NOWHERE) {
		if (!(how & HD_OPEN_CREATE))
			return -ENOENT;
		node = node_new(sim, false);
		int r = node < 0 ? node : change(sim, nothing, entry_at(where, node));
		return r ? r : handle_new(sim, node, how);
	}
	if (how & HD_OPEN_NEW)
		return -EEXIST;
	if (sim->nodes[node].folder && how & HD_OPEN_WRITE)
		return -EISDIR;
	if (!sim->nodes[node].folder && how & HD_OPEN_FOLDER)
		return -ENOTDIR;
	if (how & HD_OPEN_TRUNCATE) {
		sim->nodes[node].len = 0;
		touch(sim, &sim->nodes[node]);
	}
	return handle_new(sim, node, how);
}

static int sim_open(struct hd_fs *fs, const char *beneath, const char *path, unsigned how)
{
	struct hd_fs_sim *sim = sim_of(fs);
	struct where where = { .node = HD_FS_ROOT };

	int r = call_begins(sim, HD_FS_OPEN, path, 0, 0);
	if (!r && beneath)
		r = look_up(sim, HD_FS_ROOT, beneath, &where);
	if (!r && where.node == HD_FS_NOWHERE)
		r = -ENOENT;
	if (!r)
		r = look_up(sim, where.node, path, &where);
	return (int)call_ends(sim, r ? r : open_found(sim, &where, how));
}

static struct hd_fs_handle *handle_of(struct hd_fs_sim *sim, int id)
{
	return id >= 0 && (size_t)id < sim->n_handles && sim->handles[id].open ? &sim->handles[id] : NULL;
}

static bool interrupted(struct hd_fs_sim *sim)
{
	return sim->interrupt_every && ++sim->transfers % sim->interrupt_every == 0;
}

static size_t shortened(const struct hd_fs_sim *sim, size_t len)
{
	return sim->short_bytes && len > sim->short_bytes ? sim->short_bytes : len;
}

static int64_t do_read(struct hd_fs_sim *sim, struct hd_fs_handle *handle, void *bytes, size_t len,
	int64_t offset)
{
	if (!handle)
		return -EBADF;
	const struct hd_fs_node *node = &sim->nodes[handle->node];
	size_t at = offset < 0 ? handle->position : (size_t)offset;
	if (node->folder)
		return -EISDIR;
	if (interrupted(sim))
		return -EINTR;
	size_t left = at < node->len ? node->len - at : 0;
	size_t n = shortened(sim, len < left ? len : left);
	if (n)
		memcpy(bytes, node->bytes + at, n);
	if (offset < 0)
		handle->position += n;
	return (int64_t)n;
}

static int64_t sim_read(struct hd_fs *fs, int id, void *bytes, size_t len, int64_t offset)
{
	struct hd_fs_sim *sim = sim_of(fs);

	int r = call_begins(sim, HD_FS_READ, "", offset, (int64_t)len);
	return call_ends(sim, r ? r : do_read(sim, handle_of(sim, id), bytes, len, offset));
}

int hd_fs_node_resize(struct hd_fs_node *node, size_t len)
{
	if (len > node->cap) {
		size_t cap = len * 2;
		uint8_t *bytes = hd_alloc(cap);
		if (!bytes)
			return -ENOMEM;
		if (node->len)
			memcpy(bytes, node->bytes, node->len);
		hd_free(node->bytes);
		node->bytes = bytes;
		node->cap = cap;
	}
	if (len > node->len)
		memset(node->bytes + node->len, 0, len - node->len);
	node->len = len;
	return 0;
}

static int64_t do_write(struct hd_fs_sim *sim, struct hd_fs_handle *handle, const void *bytes, size_t len,
	int64_t offset)
{
	if (!handle || !handle->writes)
		return -EBADF;
	if (interrupted(sim))
		return -EINTR;
	struct hd_fs_node *node = &sim->nodes[handle->node];
	size_t at = handle->append ? node->len : offset < 0 ? handle->position : (size_t)offset;
	size_t n = shortened(sim, len);
	int r = at + n > node->len ? hd_fs_node_resize(node, at + n) : 0;
	if (r)
		return r;
	if (n)
		memcpy(node->bytes + at, bytes, n);
	touch(sim, node);
	if (offset < 0)
		handle->position = at + n;
	return (int64_t)n;
}

static int64_t sim_write(struct hd_fs *fs, int id, const void *bytes, size_t len, int64_t offset)
{
	struct hd_fs_sim *sim = sim_of(fs);

	int r = call_begins(sim, HD_FS_WRITE, "", offset, (int64_t)len);
	if (r == -ENOSPC)
		(void)do_write(sim, handle_of(sim, id), bytes, len / 2, offset);
	return call_ends(sim, r ? r : do_write(sim, handle_of(sim, id), bytes, len, offset));
}

/* Applies what is pending in the folder, after what its renames need of other folders. */
static void sync_folder(struct hd_fs_sim *sim, int folder)
{
	size_t last = 0, kept = 0;
	int other = folder;

	for (size_t i = 0; i < sim->n_changes; i++)
		if (hd_fs_change_folder(&sim->changes[i]) == folder) {
			last = i + 1;
			if (sim->changes[i].from.folder != HD_FS_NOWHERE)
				other = sim->changes[i].from.folder;
		}
	for (size_t i = 0; i < sim->n_changes; i++) {
		int of = hd_fs_change_folder(&sim->changes[i]);
		if (i < last && (of == folder || of == other))
			hd_fs_tree_apply(&sim->durable, &sim->changes[i]);
		else
			sim->changes[kept++] = sim->changes[i];
	}
	sim->n_changes = kept;
}

int hd_fs_node_sync(struct hd_fs_node *node)
{
	uint8_t *durable = hd_alloc(node->len);

	if (!durable)
		return -ENOMEM;
	if (node->len)
		memcpy(durable, node->bytes, node->len);
	hd_free(node->durable);
	node->durable = durable;
	node->durable_len = node->len;
	return 0;
}

static int sim_sync(struct hd_fs *fs, int id)
{
	struct hd_fs_sim *sim = sim_of(fs);
	struct hd_fs_handle *handle = handle_of(sim, id);

	int r = call_begins(sim, HD_FS_SYNC, "", 0, 0);
	if (!r && !handle)
		r = -EBADF;
	if (!r && sim->nodes[handle->node].folder)
		sync_folder(sim, handle->node);
	else if (!r)
		r = hd_fs_node_sync(&sim->nodes[handle->node]);
	return (int)call_ends(sim, r);
}

static int sim_truncate(struct hd_fs *fs, int id, int64_t size_bytes)
{
	struct hd_fs_sim *sim = sim_of(fs);
	struct hd_fs_handle *handle = handle_of(sim, id);

	int r = call_begins(sim, HD_FS_TRUNCATE, "", 0, size_bytes);
	if (!r && (!handle || !handle->writes))
		r = -EBADF;
	if (!r && size_bytes < 0)
		r = -EINVAL;
	if (!r)
		r = hd_fs_node_resize(&sim->nodes[handle->node], (size_t)size_bytes);
	if (!r)
		touch(sim, &sim->nodes[handle->node]);
	return (int)call_ends(sim, r);
}

static int do_lock(struct hd_fs_sim *sim, struct hd_fs_handle *handle, bool shared)
{
	if (!handle)
		return -EBADF;
	for (size_t i = 0; i < sim->n_handles; i++)
		if (&sim->handles[i] != handle && sim->handles[i].open && sim->handles[i].locked &&
			sim->handles[i].node == handle->node &&
			!(shared && sim->handles[i].shared))
			return -EWOULDBLOCK;
	handle->locked = true;
	handle->shared = shared;
	return 0;
}

static int sim_lock(struct hd_fs *fs, int id, bool shared)
{
	struct hd_fs_sim *sim = sim_of(fs);

	int r = call_begins(sim, HD_FS_LOCK, "", 0, 0);
	return (int)call_ends(sim, r ? r : do_lock(sim, handle_of(sim, id), shared));
}

static int sim_close(struct hd_fs *fs, int id)
{
	struct hd_fs_sim *sim = sim_of(fs);
	struct hd_fs_handle *handle = handle_of(sim, id);

	int r = call_begins(sim, HD_FS_CLOSE, "", 0, 0);
	if (!r && !handle)
		r = -EBADF;
	if (handle)
		handle->open = false;
	return (int)call_ends(sim, r);
}

static int do_map(struct hd_fs_sim *sim, const struct hd_fs_handle *handle, struct hd_map *map)
{
	if (!handle)
		return -EBADF;
	const struct hd_fs_node *node = &sim->nodes[handle->node];
	if (node->folder)
		return -EISDIR;
	uint8_t *copy = node->len ? hd_alloc(node->len) : NULL;
	if (node->len && !copy)
		return -ENOMEM;
	if (copy)
		memcpy(copy, node->bytes, node->len);
	*map = (struct hd_map){ copy, node->len };
	return 0;
}

static int sim_map(struct hd_fs *fs, int id, struct hd_map *map)
{
	struct hd_fs_sim *sim = sim_of(fs);

	int r = call_begins(sim, HD_FS_MAP, "", 0, 0);
	return (int)call_ends(sim, r ? r : do_map(sim, handle_of(sim, id), map));
}

static void sim_unmap(struct hd_fs *fs, const struct hd_map *map) { (void)fs;
	hd_free((void *)(uintptr_t)map->bytes); }

/* ---- names ---- */

static bool folder_is_empty(const struct hd_fs_sim *sim, int node)
{
	for (size_t i = 0; i < sim->now.n; i++)
		if (sim->now.at[i].folder == node)
			return false;
	return true;
}

/* What stands at the target gives way if it is of the same kind, and empty. */
static int may_replace(const struct hd_fs_sim *sim, int node, int target)
{
	if (target == HD_FS_NOWHERE)
		return 0;
	if (sim->nodes[target].folder != sim->nodes[node].folder)
		return sim->nodes[target].folder ? -EISDIR : -ENOTDIR;
	return sim->nodes[target].folder && !folder_is_empty(sim, target) ? -ENOTEMPTY : 0;
}

static int do_rename(struct hd_fs_sim *sim, const char *from, const char *to)
{
	struct where a, b;

	int r = look_up(sim, HD_FS_ROOT, from, &a);
	if (!r && a.node == HD_FS_NOWHERE)
		r = -ENOENT;
	if (!r)
		r = look_up(sim, HD_FS_ROOT, to, &b);
	if (!r && (!a.len || !b.len))
		r = -EBUSY;
	if (!r)
		r = may_replace(sim, a.node, b.node);
	if (r || a.node == b.node)
		return r;
	return change(sim, entry_at(&a, a.node), entry_at(&b, a.node));
}

static int sim_rename(struct hd_fs *fs, const char *from, const char *to)
{
	int r = call_begins(sim_of(fs), HD_FS_RENAME, from, 0, 0);
	return (int)call_ends(sim_of(fs), r ? r : do_rename(sim_of(fs), from, to));
}

static int do_mkdir(struct hd_fs_sim *sim, const char *path)
{
	struct where where;

	int r = look_up(sim, HD_FS_ROOT, path, &where);
	if (r)
		return r;
	if (where.node != HD_FS_NOWHERE)
		return -EEXIST;
	int node = node_new(sim, true);
	return node < 0 ? node : change(sim, nothing, entry_at(&where, node));
}

static int sim_mkdir(struct hd_fs *fs, const char *path)
{
	int r = call_begins(sim_of(fs), HD_FS_MKDIR, path, 0, 0);
	return (int)call_ends(sim_of(fs), r ? r : do_mkdir(sim_of(fs), path));
}

static int do_remove(struct hd_fs_sim *sim, const char *path, bool folder)
{
	struct where where;

	int r = look_up(sim, HD_FS_ROOT, path, &where);
	if (r)
		return r;
	if (where.node == HD_FS_NOWHERE)
		return -ENOENT;
	if (sim->nodes[where.node].folder != folder)
		return folder ? -ENOTDIR : -EISDIR;
	if (!where.len)
		return -EBUSY;
	if (folder && !folder_is_empty(sim, where.node))
		return -ENOTEMPTY;
	return change(sim, entry_at(&where, where.node), nothing);
}

static int sim_remove(struct hd_fs *fs, const char *path, bool folder)
{
	int r = call_begins(sim_of(fs), HD_FS_REMOVE, path, 0, 0);
	return (int)call_ends(sim_of(fs), r ? r : do_remove(sim_of(fs), path, folder));
}

static int sim_stat(struct hd_fs *fs, const char *path, bool follow, struct hd_stat *stat)
{
	struct hd_fs_sim *sim = sim_of(fs);
	struct where where = { 0 };

	(void)follow;
	int r = call_begins(sim, HD_FS_STAT, path, 0, 0);
	if (!r)
		r = look_up(sim, HD_FS_ROOT, path, &where);
	if (!r && where.node == HD_FS_NOWHERE)
		r = -ENOENT;
	if (!r)
		*stat = (struct hd_stat){ .kind = sim->nodes[where.node].folder ? HD_FILE_FOLDER :
			HD_FILE_REGULAR,
					  .size_bytes = (int64_t)sim->nodes[where.node].len,
					  .inode = (uint64_t)where.node,
					  .changed_wall_ns = sim->nodes[where.node].changed_wall_ns };
	return (int)call_ends(sim, r);
}

static int sim_list(struct hd_fs *fs, const char *path, int (*each)(void *user, const char *name), void *user)
{
	struct hd_fs_sim *sim = sim_of(fs);
	struct where where = { 0 };

	int r = call_begins(sim, HD_FS_LIST, path, 0, 0);
	if (!r)
		r = look_up(sim, HD_FS_ROOT, path, &where);
	if (!r && where.node == HD_FS_NOWHERE)
		r = -ENOENT;
	if (!r && !sim->nodes[where.node].folder)
		r = -ENOTDIR;
	for (size_t i = 0; !r && i < sim->now.n; i++)
		if (sim->now.at[i].folder == where.node)
			r = each(user, sim->now.at[i].name);
	return (int)call_ends(sim, r);
}

static int sim_space(struct hd_fs *fs, const char *path, struct hd_fs_space *space)
{
	const struct hd_fs_sim *sim = (const struct hd_fs_sim *)fs;

	(void)path;
	if (!sim->free_bytes)
		return -ENOSYS;
	*space = (struct hd_fs_space){ .free_bytes = sim->free_bytes, .at = "/sim" };
	return 0;
}

static const struct hd_fs_ops sim_ops = {
	.name = "simulated",
	.file = { .read = sim_read, .write = sim_write, .sync = sim_sync, .truncate = sim_truncate,
	.lock = sim_lock,
		  .close = sim_close, .map = sim_map, .unmap = sim_unmap },
	.open = sim_open, .rename = sim_rename, .mkdir = sim_mkdir, .remove = sim_remove, .stat = sim_stat,
	.list = sim_list,
	.space = sim_space,
};

void hd_fs_sim_init(struct hd_fs_sim *sim)
{
	*sim = (struct hd_fs_sim){ .fs = { &sim_ops } };
	int root = node_new(sim, true);
	assert(root == HD_FS_ROOT);        /* a test's first allocation: arm the trap after init */
	(void)root;
}

void hd_fs_sim_finish(struct hd_fs_sim *sim)
{
	for (size_t i = 0; i < sim->n_nodes; i++) {
		hd_free(sim->nodes[i].bytes);
		hd_free(sim->nodes[i].durable);
	}
	hd_free(sim->nodes);
	hd_free(sim->now.at);
	hd_free(sim->durable.at);
	hd_free(sim->changes);
	hd_free(sim->handles);
	hd_free(sim->log);
	*sim = (struct hd_fs_sim){ 0 };
}

void hd_fs_sim_fail(struct hd_fs_sim *sim, uint64_t call, int error, bool on)
{
	sim->fail_at = call ? sim->calls + call : 0;
	sim->fail_errno = error;
	sim->fail_on = on;
}
