/* What is common to languages with expressions: folding, names, calls. */
#ifndef NC_EVAL_H
#define NC_EVAL_H

#include "policy/scan.h"

/* For a language's enter and leave: does what the node's kind asks for. */
void nc_eval_enter(struct nc_scan *scan, uint32_t node);
void nc_eval_leave(struct nc_scan *scan, uint32_t node);

/* What a name stands for: what it is bound to, or itself. */
uint32_t nc_eval_name(struct nc_scan *scan, const char *name, size_t size);

/* A member of something, by a name that may have been made by the program. */
uint32_t nc_eval_member(struct nc_scan *scan, uint32_t object, const char *name, size_t size);

/* The same for a name that is a text of the program: finds it if it was hidden or not known. */
uint32_t nc_eval_member_by_text(
	struct nc_scan *scan, uint32_t node, uint32_t object, const struct nc_datum *name);

/* An element of a text, list or dictionary; 0 if it cannot be told. */
uint32_t nc_eval_element(struct nc_scan *scan, uint32_t object, const struct nc_datum *index);

/* The i-th argument of a call: its datum, nothing if there is none. */
const struct nc_datum *nc_eval_argument(
	const struct nc_scan *scan, const struct nc_call *call, uint32_t i);
uint32_t nc_eval_argument_number(
	const struct nc_scan *scan, const struct nc_call *call, uint32_t i);

/* The datum of a keyword argument, or of a member of an object that is an argument. */
const struct nc_datum *nc_eval_keyword(
	const struct nc_scan *scan, const struct nc_call *call, const char *name);

/* Binds what an assignment names: a name, a member, or several at once. */
void nc_eval_assign(struct nc_scan *scan, uint32_t left, uint32_t datum);

/* Works out a node and all below it once more, with what names stand for by now. */
uint32_t nc_eval_again(struct nc_scan *scan, uint32_t node);

#endif
