/* message_fuzz -- the first byte is a kind, the rest a message: refused, or understood so completely that it
 * is written back as the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "protocol/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hd_arena arena;
	struct hd_msg msg;
	size_t len = 0;

	if (!size)
		return 0;
	hd_arena_init(&arena, 8 << 20);
	if (hd_msg_decode(&msg, data[0], data + 1, size - 1, &arena, NULL) == HD_OK) {
		uint8_t *again = hd_arena_take(&arena, size, 1);
		if (again && (hd_msg_encode(&msg, again, size, &len, NULL) || len != size - 1 ||
			memcmp(again, data + 1, len) != 0))
			abort();
	}
	hd_arena_finish(&arena);
	return 0;
}
