/* What an order needs to know of the host before it can be given. */
#ifndef NC_SETTLE_H
#define NC_SETTLE_H

#include "base/buf.h"
#include "kernel/boxwire.h"
#include "kernel/strength.h"

/* Limits that not every host can hold. */
enum nc_named_limit {
	NC_NAMED_MEMORY,
	NC_NAMED_CPUS,
	NC_NAMED_CPU_TIME,
	NC_NAMED_PIDS,
	NC_NAMED_DISK,
	NC_NAMED_INODES,
	NC_NAMED_MAX,
};

/* What the caller insists on. */
struct nc_wish {
	bool named[NC_NAMED_MAX];
	const char *const *names; /* what messages call these limits, one each */
	enum nc_grade floor[NC_STRENGTH_MAX];
};

/*
 * Completes an order: where it works, and what must be so or nothing runs. -EOPNOTSUPP with a
 * message where a limit that was named, or the floor, cannot be held. landlock is the ABI that is
 * here.
 */
int nc_settle(struct nc_box_order *order, const struct nc_wish *wish,
	const struct nc_box_host *host, int landlock, struct nacre_err *err);

/* As many files as a box may open here: nobody has more than whoever started us. */
uint64_t nc_files_most(void);

/* The same for who names none: the usual number, or what there is. */
#define NC_FILES_USUAL 1024U
uint64_t nc_files_usual(void);

/* Where a box of this order has its workspace and temporary files. */
#define NC_PLACE_SIZE (NC_BOX_DIR_MAX + 32)
void nc_box_places(const struct nc_box_order *order, const struct nc_box_host *host,
	char workspace[static NC_PLACE_SIZE], char temporary[static NC_PLACE_SIZE]);

/* Words end to end, as an order has them; the buffer's error is sticky. */
struct nc_word_list {
	struct nc_buf buf;
	size_t count;
};

#define NC_WORD_LIST                                                                               \
	{                                                                                          \
		.buf = NC_BUF(1U << 20)                                                            \
	}

void nc_word_add(struct nc_word_list *list, const char *word);

/* An order's view of the list, valid until its next change. */
struct nc_box_words nc_word_view(const struct nc_word_list *list);

/* What a box has that its environment tells of. */
struct nc_env_place {
	const char *workspace, *temporary;
	enum nc_tier tier;
	uint64_t memory_bytes; /* 0: nobody has to know */
};

/*
 * The environment of a box, made from scratch; the given "NAME=value" words, which end in NULL,
 * come last and win.
 */
void nc_env_fill(
	struct nc_word_list *list, const struct nc_env_place *place, const char *const *given);

#endif
