/* safetensors.h -- named tensors in one file: checkpoints, weights of others.
 *
 *	0        8              8 + n                      end
 *	| n u64 | JSON header, n bytes | tensors' bytes, row-major, little-endian |
 *
 * The header is {name: {"dtype", "shape", "data_offsets": [begin, end)}, ...,
 * "__metadata__": {string: string}}; offsets count from the header's end.
 *
 * 1. The reader takes exactly the files that are well formed: a header of at most
 *    16 MiB inside the file, no duplicate names, known dtypes, at most 8 extents,
 *    end - begin = elements x size, and tensors that cover the bytes without gap or
 *    overlap. All else is HD_E_INPUT, with the tensor's name.
 * 2. The writer sorts by name, packs without gaps and pads the header with blanks to
 *    a multiple of 8; equal calls write equal bytes.
 *
 * Ownership: names and arrays lie in the arena; `at` points into the caller's bytes and
 * may be misaligned (other writers do not pad): copy, do not cast. Pure. */
#ifndef HD_GRAPH_SAFETENSORS_H
#define HD_GRAPH_SAFETENSORS_H

#include "base/arena.h"
#include "base/err.h"
#include "graph/ir.h"

enum { HD_ST_DIMS = 8, HD_ST_PREFIX_BYTES = 8, HD_ST_HEADER_BYTES = 16 << 20 };

/*        text    bytes  our dtype, 0: only read and copied */
#define HD_ST_DTYPES(X)      \
	X(F64,  8, HD_F64)   \
	X(F32,  4, HD_F32)   \
	X(F16,  2, 0)        \
	X(BF16, 2, 0)        \
	X(I64,  8, HD_I64)   \
	X(I32,  4, HD_I32)   \
	X(I16,  2, 0)        \
	X(I8,   1, 0)        \
	X(U8,   1, HD_U8)    \
	X(BOOL, 1, 0)

enum hd_st_dtype {
#define X(text, bytes, ours) HD_ST_##text,
	HD_ST_DTYPES(X)
#undef X
	HD_ST_NDTYPES
};
const char *hd_st_dtype_text(enum hd_st_dtype dtype);
/* 0: we compute with nothing of that kind */
enum hd_dtype hd_st_dtype_ours(enum hd_st_dtype dtype);
bool hd_st_dtype_from(enum hd_dtype ours, enum hd_st_dtype *dtype);

/* Gives bytes [at, at + len) of a tensor; both are multiples of its elements' bytes. */
struct hd_st_source { void (*get)(const void *user, uint64_t at, uint64_t len, void *to); const void *user; };

struct hd_st_tensor {
	const char *name;
	enum hd_st_dtype dtype;
	uint32_t rank;                    /* 0: a scalar */
	uint64_t dim[HD_ST_DIMS];         /* extents of 0 are allowed */
	const void *at;
	const struct hd_st_source *source;        /* of one to write that does not lie at `at`; NULL */
	uint64_t len_bytes;
};

struct hd_st_meta { const char *key, *value; };

struct hd_safetensors {
	struct hd_st_tensor *tensor;      /* in order of their bytes */
	struct hd_st_meta *meta;
	uint32_t ntensors, nmeta;
};

/* The first HD_ST_PREFIX_BYTES of a file of `len` bytes -> how many of it the header ends after. */
HD_MUST_USE enum hd_err hd_safetensors_head_bytes(const char *file, const uint8_t *prefix, uint64_t len,
	uint64_t *head_bytes, struct hd_diag *diag);
/* From the head alone (prefix and header) of a file of `len` bytes, for readers of a file that is larger than
 * memory: every `at` is NULL, and the tensors' bytes follow the head in their order. */
HD_MUST_USE enum hd_err hd_safetensors_head(struct hd_safetensors *out, struct hd_arena *arena,
	const char *file, const void *head, uint64_t head_bytes, uint64_t len, struct hd_diag *diag);
/* `file` is for messages. */
HD_MUST_USE enum hd_err hd_safetensors_read(struct hd_safetensors *out, struct hd_arena *arena,
	const char *file,
	const void *bytes, uint64_t len, struct hd_diag *diag);
/* NULL: none */
const struct hd_st_tensor *hd_safetensors_find(const struct hd_safetensors *file, const char *name);

/* Calls `put` for piece after piece, in order; its failure ends the writing and is passed on. */
typedef enum hd_err hd_st_put(void *context, const void *bytes, uint64_t len, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_safetensors_write(const struct hd_st_tensor *tensor, uint32_t ntensors,
	const struct hd_st_meta *meta,
	uint32_t nmeta, struct hd_arena *scratch, hd_st_put *put, void *context, struct hd_diag *diag);

#endif
