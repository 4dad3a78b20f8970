/* What has to be known of the host before something is run in a box. */
#ifndef NC_SETTLE_H
#define NC_SETTLE_H

#include "base/buf.h"
#include "base/place.h"
#include "kernel/strength.h"
#include "tier/exec.h"
#include "tier/holder.h"

/* What the caller insists on. */
struct nc_wish {
	bool named[NC_NAMED_MAX];
	const char *const *names; /* what messages call these limits, one each */
	enum nc_grade floor[NC_STRENGTH_MAX];
};

/*
 * Completes what is to be run: where it works, and what must be so or nothing runs. -EOPNOTSUPP
 * with a message where a limit that was named, or the floor, cannot be held.
 */
int nc_settle(const struct nc_holder *first, const struct nc_wish *wish, struct nc_exec_spec *exec,
	struct nacre_err *err);

/* As many files as a box may open here: nobody has more than whoever started us. */
uint64_t nc_files_most(void);

/* The same for who names none: the usual number, or what there is. */
#define NC_FILES_USUAL 1024U
uint64_t nc_files_usual(void);

/* Where a box has its workspace and temporary files. */
#define NC_PLACE_SIZE (NC_BOX_DIR_MAX + 32)
void nc_box_places(const struct nc_holder *first, enum nc_tier tier, uint64_t id,
	char workspace[static NC_PLACE_SIZE], char temporary[static NC_PLACE_SIZE]);

/* Words end to end; the buffer's error is sticky. */
struct nc_word_list {
	struct nc_buf buf;
	size_t count;
};

#define NC_WORD_LIST                                                                               \
	{                                                                                          \
		.buf = NC_BUF(1U << 20)                                                            \
	}

void nc_word_add(struct nc_word_list *list, const char *word);

/* The list as a spec has it, valid until its next change. */
struct nc_box_words nc_word_view(const struct nc_word_list *list);

/* What a box has that its environment tells of. */
struct nc_env_place {
	const char *workspace, *temporary;
	enum nc_tier tier;
	uint64_t memory_bytes; /* 0: nobody has to know */
	const char *user;      /* NULL or "": the sandbox's */
	bool writable;	       /* its root is */
};

/*
 * The environment of a box, made from scratch; the given "NAME=value" words, which end in NULL,
 * come last and win.
 */
void nc_env_fill(
	struct nc_word_list *list, const struct nc_env_place *place, const char *const *given);

#endif
