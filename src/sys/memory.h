/* memory.h -- big blocks straight from the system, and how much of it there is.
 *
 * The arenas of tensors are a few blocks of many megabytes, taken at job start; the
 * check "does the model fit" asks here before the first step.
 *
 * 1. A block is zero, aligned to 2 MiB from 2 MiB up (else to a page), and advised to be
 *    backed by huge pages where whole ones fit; with HD_MEMORY_TOUCH its pages exist, so that no step meets a
 *    fault.
 * 2. The limit of the process is the smallest of the machine's memory, the cgroup's limit
 *    (v1 or v2, any ancestor that is visible) and RLIMIT_AS.
 * 3. A block that cannot be had is HD_E_NOMEM with the numbers.
 * 4. A shared block is a file: what was stored in it survives the process however it
 *    ends, but not the machine.
 *
 * Ownership: hd_memory_take() and hd_memory_share() pair with hd_memory_give(). Threads: any. */
#ifndef HD_SYS_MEMORY_H
#define HD_SYS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hd_memory { void *at; size_t len_bytes; };          /* len_bytes: rounded up to what was mapped */

/* SMALL: invariant 1 without huge pages, for a block of which little is ever touched. */
enum hd_memory_how { HD_MEMORY_LAZY = 0, HD_MEMORY_TOUCH = 1, HD_MEMORY_SMALL = 2 };

HD_MUST_USE enum hd_err hd_memory_take(size_t bytes, enum hd_memory_how how, struct hd_memory *memory,
	struct hd_diag *diag);
/* What a block of hd_memory_take() of len_bytes takes where these parts of it alone are written to, by
 * invariant 1: whole pages, huge ones as far as they fit into the block. Sorts the parts, which may meet and
 * overlap. */
struct hd_memory_part { uint64_t at, end; };
uint64_t hd_memory_taken_by(struct hd_memory_part *part, uint32_t n, uint64_t len_bytes);
/* A new file at `path` (0600, of `bytes` zeros, its blocks reserved so that no store meets a full disk).
 * HD_E_EXISTS: there is one. Always the system's files: other processes are to find it. */
HD_MUST_USE enum hd_err hd_memory_share(const char *path, size_t bytes, struct hd_memory *memory,
	struct hd_diag *diag);
/* A block between processes without a name: `id` is given to the other one (hd_sock_give) and closed by
 * hd_memory_id_close(). Its length is sealed: neither end can take away what the other has mapped. */
HD_MUST_USE enum hd_err hd_memory_pair(size_t bytes, struct hd_memory *memory, int *id, struct hd_diag *diag);
/* Maps what was taken. HD_E_PROTOCOL: not a block of exactly that length, sealed. */
HD_MUST_USE enum hd_err hd_memory_pair_map(int id, size_t bytes, struct hd_memory *memory,
	struct hd_diag *diag);
void hd_memory_id_close(int id);
void hd_memory_give(struct hd_memory *memory);             /* takes zeroed and given ones */
/* The whole pages of a part of a block go back to the system, and are zero when they are touched again;
 * what lies beside them stays. */
void hd_memory_drop(void *at, size_t bytes);

/* A file without a name in `folder`, of `bytes` zeros without blocks, to which parts of blocks can be moved:
 * the system takes their pages back when it needs memory, at the price of reading them again. *id is closed
 * by hd_memory_id_close(). */
HD_MUST_USE enum hd_err hd_memory_spill_open(const char *folder, uint64_t bytes, int *id,
	struct hd_diag *diag);
/* The whole pages of a part of a block lie in the file, the part itself from `offset` on, which lies to a
 * page as `at` does; they read as the file. */
HD_MUST_USE enum hd_err hd_memory_spill(int id, void *at, size_t bytes, uint64_t offset,
	struct hd_diag *diag);
/* They are memory again, and zero; the file's blocks are given back. */
HD_MUST_USE enum hd_err hd_memory_unspill(int id, void *at, size_t bytes, uint64_t offset,
	struct hd_diag *diag);

/* Bytes to the file and back, by copying: the block stays as it is. HD_E_IO and others: the disk is full, or
 * it fails. */
HD_MUST_USE enum hd_err hd_memory_put(int id, const void *at, size_t bytes, uint64_t offset,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_memory_get(int id, void *at, size_t bytes, uint64_t offset, struct hd_diag *diag);

struct hd_memory_info {
	uint64_t machine_bytes;           /* physical */
	/* what the system says a new process could take, within the limit */
	uint64_t free_bytes;
	uint64_t limit_bytes;             /* invariant 2 */
	uint64_t rss_bytes, rss_peak_bytes;       /* of this process */
	uint64_t mapped_bytes;            /* of this process, resident or not */
	/* what bounds free_bytes is RLIMIT_AS: it counts what is mapped, not what is resident */
	bool     free_is_space;
	/* of rss: pages of programs and files, which the system takes back when it needs them; 0: unknown */
	uint64_t rss_file_bytes;
};
void hd_memory_look(struct hd_memory_info *info);
/* A limit out of the text of a cgroup file: a number of bytes, or "max" (UINT64_MAX), as is what cannot be
 * read. */
uint64_t hd_memory_limit_parse(const char *text);

#endif
