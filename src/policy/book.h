/*
 * The policies that this process knows, by the names that requests give them, and what each comes
 * to for a tenant: one set of terms, in which later ones win:
 *
 *	the shipped profile < security_policies.yaml < the policy's own file
 *		< the tenant's part of the former < the tenant's part of the latter
 *
 *	r = nc_book_new(config, &book);
 *	r = nc_book_add(book, "lenient", err);		while files can still be read
 *	r = nc_book_terms(book, "lenient", "acme", &terms, err);
 */
#ifndef NC_BOOK_H
#define NC_BOOK_H

#include "base/error.h"
#include "config/config.h"
#include "policy/policy.h"

struct nc_book;

/* All of it belongs to the book. */
struct nc_terms {
	const char *policy;	 /* as it was named */
	const char *tenant;	 /* whose overrides are in it; "": none */
	enum nc_profile profile; /* that it stands on */
	struct nc_policy_values values;
	struct nc_policy *analyser;
	uint64_t number; /* by chance, of these terms and no others of this machine */
};

/* Borrows config. 0 or -ENOMEM. */
int nc_book_new(const struct nc_config *config, struct nc_book **ret_book);
void nc_book_free(struct nc_book *book);

static inline void nc_book_freep(struct nc_book **place)
{
	nc_book_free(*place);
}

#define cleanup_book nc_cleanup(nc_book_freep)

/* Whether it names a file, by a slash or its ending; everything else is the name of a policy. */
bool nc_book_is_path(const char *word);

/*
 * Reads a policy, unless it is known: a shipped profile, NAME.yaml in the directory policies of the
 * configuration, or a file by its path. -EINVAL: no such policy, or its fault with the line;
 * -ENOENT: no such file.
 */
int nc_book_add(struct nc_book *book, const char *word, struct nacre_err *err);

/* The policy of those who name none. */
const char *nc_book_usual(const struct nc_book *book);

/* Where a policy was read from, and what it says itself; NULL for a shipped profile. */
const char *nc_book_path(const struct nc_book *book, const char *word);
const struct nc_policies_config *nc_book_file(const struct nc_book *book, const char *word);

/* What holds for the tenant ("": nobody in particular). -EINVAL: no such policy; -ENOMEM. */
int nc_book_terms(struct nc_book *book, const char *policy, const char *tenant,
	const struct nc_terms **ret_terms, struct nacre_err *err);

/* Reads all of the configuration's directory; fails with the fault of the first that is bad. */
int nc_book_add_all(struct nc_book *book, struct nacre_err *err);

/*
 * The names of the policies in the configuration's directory, sorted, whether they can be read or
 * not. The caller frees the names and the list.
 */
int nc_book_names(const struct nc_config *config, char ***ret_names, size_t *ret_count);

#endif
