/*
 * Decoys: files with keys that open nothing, where only somebody who looks for keys would look. A
 * policy that wants them (`decoys: true`) has them put beside the program; whether they were read
 * is told when it has ended (`decoys_touched`, an alert).
 *
 * Theory of operation: nacre-files gives them an age, and access and change the same time. The file
 * system of a container notes the first reading after a change (relatime), so that the two differ
 * then. What it cannot see: a file that is opened and not read, and who opens with O_NOATIME or
 * sets the times back. Nobody outside is told while the program runs.
 */
#ifndef NC_DECOYS_H
#define NC_DECOYS_H

#include "engine/execution.h"

/* Whether a policy wants any; NULL: there is no such policy. */
bool nc_decoys_wanted(const struct nc_terms *terms);

/* Adds them to what is put into the box; where the request has a file of its own, there is none.
 * files: NULL: it has none. */
void nc_decoys_put(const struct nc_request_files *files, struct nc_buf *stream);

/* The words for nacre-files that look at them, and take them away. */
void nc_decoys_words(const struct nc_request_files *files, struct nc_word_list *argv);

/* How many were touched, from what that said. */
size_t nc_decoys_count(const char *said);

/*
 * For a box that stays: the words that look at all of them and leave them there, as if they had not
 * been read; and how many were touched since the last time. lost: those that are no decoys any
 * more, as bits.
 */
const char *const *nc_decoys_look(void);
size_t nc_decoys_count_again(const char *said, unsigned int *lost);

#endif
