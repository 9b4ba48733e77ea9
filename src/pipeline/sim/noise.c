#include <math.h>

#include "base/philox.h"
#include "pipeline/sim/int.h"

int64_t hd_sim_draw(uint64_t seed, uint32_t step, uint32_t rank, uint32_t index, uint32_t part,
	const struct hd_spread *of)
{
	struct hd_philox block = hd_philox((const uint32_t[]){ index, rank, step, part },
		hd_philox_key(seed, HD_RNG_NOISE));
	float normal[2];

	hd_normal2(block.word[0], block.word[1], normal);
	int64_t t = of->mean + llround((double)of->sd * (double)normal[0]);
	return t > 0 ? t : 0;
}
