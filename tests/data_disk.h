/* data_disk.h -- a simulated disk, new for each test: a row ON_DISK(test) has one with the folder d. A test
 * that wants another has a set_up() of its own, and cmocka_unit_test_setup_teardown(). */
#ifndef HD_TESTS_DATA_DISK_H
#define HD_TESTS_DATA_DISK_H

#include "tests/data_files.h"

static struct hd_fs_sim sim;              /* of the test that runs */

static inline int set_up_disk(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	put_folder(&sim.fs, "d");
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	hd_fs_sim_finish(&sim);
	return 0;
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, set_up_disk, tear_down)

#endif
