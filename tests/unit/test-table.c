/* The table of boxes: who moves, who rests, and finding both. */
#include "unit.h"

#include <string.h>

#include "spawner/table.h"

static struct nc_table table;

static struct nc_box *begin(uint64_t id, enum nc_box_state state)
{
	struct nc_box *box = nc_table_free(&table);

	assert_non_null(box);
	assert_int_equal(box->state, NC_BOX_FREE);
	*box = (struct nc_box){.state = state, .ordered = id > 0, .end.id = id};
	return box;
}

static size_t count_moving(void)
{
	size_t n = 0;

	NC_EACH_MOVING (&table, box)
		n++;
	return n;
}

static void settle_all(void)
{
	NC_EACH_MOVING (&table, box)
		nc_table_settle(&table, box);
}

static int set_up(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	return 0;
}

static void test_only_lasting_states_rest(void **state)
{
	(void)state;
	for (unsigned int i = NC_BOX_GROWING; i <= NC_BOX_KEPT; i++)
		(void)begin(i, (enum nc_box_state)i);
	assert_int_equal(count_moving(), NC_BOX_KEPT);
	settle_all();
	assert_int_equal(count_moving(), NC_BOX_KEPT - 2);
	NC_EACH_MOVING (&table, box)
		assert_true(box->state != NC_BOX_STAYS && box->state != NC_BOX_KEPT);
}

static void test_who_is_found_moves(void **state)
{
	struct nc_box *box;

	(void)state;
	box = begin(7, NC_BOX_STAYS);
	assert_ptr_equal(nc_table_find(&table, 0, 7), box);
	settle_all();
	assert_int_equal(count_moving(), 0);
	assert_null(nc_table_find(&table, 0, 8));
	assert_null(nc_table_find(&table, 0, 0));
	assert_int_equal(count_moving(), 0);
	assert_ptr_equal(nc_table_find(&table, 0, 7), box);
	assert_int_equal(count_moving(), 1);
	box->end.id = 9; /* an id that it rested under is no longer its own */
	assert_null(nc_table_find(&table, 0, 7));
	assert_ptr_equal(nc_table_find(&table, 0, 9), box);
}

static void test_nobodys_are_not_found(void **state)
{
	struct nc_box *box;

	(void)state;
	box = begin(7, NC_BOX_DYING);
	box->told = true;
	assert_null(nc_table_find(&table, 0, 7));
	box->told = box->ordered = false;
	assert_null(nc_table_find(&table, 0, 7));
	box->ordered = true;
	assert_non_null(nc_table_find(&table, 0, 7));
	box->state = NC_BOX_FREE;
	assert_null(nc_table_find(&table, 0, 7));
}

static void test_places_are_taken_once_and_come_back(void **state)
{
	struct nc_box *first, *second;

	(void)state;
	first = nc_table_free(&table);
	second = nc_table_free(&table);
	assert_ptr_not_equal(first, second);
	settle_all(); /* nothing was made of them */
	assert_int_equal(count_moving(), 0);
	assert_ptr_equal(begin(1, NC_BOX_RUNS), first);
	for (unsigned int i = 1; i < NC_BOXES_MAX; i++)
		(void)begin(i + 1, NC_BOX_STAYS);
	settle_all();
	assert_null(nc_table_free(&table));
	assert_int_equal(count_moving(), 1);
	second = nc_table_find(&table, 0, NC_BOXES_MAX);
	assert_ptr_equal(second, &table.box[NC_BOXES_MAX - 1]);
	second->state = NC_BOX_FREE;
	settle_all();
	assert_ptr_equal(nc_table_free(&table), second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_only_lasting_states_rest, set_up),
		cmocka_unit_test_setup(test_who_is_found_moves, set_up),
		cmocka_unit_test_setup(test_nobodys_are_not_found, set_up),
		cmocka_unit_test_setup(test_places_are_taken_once_and_come_back, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
