/* What the two files about Python share. */
#ifndef NC_PYTHON_FOLD_H
#define NC_PYTHON_FOLD_H

#include "policy/scan.h"

/* Finds an attribute that leads to the interpreter's own objects. */
void nc_python_attribute(struct nc_scan *scan, uint32_t node, const char *text, size_t size);

/* object[a:b:c] */
uint32_t nc_python_slice(struct nc_scan *scan, uint32_t object, uint32_t index);

/* What a call gives, by the function's name; see struct nc_analyser. */
uint32_t nc_python_call(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *function);
uint32_t nc_python_method(struct nc_scan *scan, const struct nc_call *call, uint32_t receiver,
	const char *method, size_t size);

/* [f(x) for x in constants]: worked out element by element. */
uint32_t nc_python_comprehension(struct nc_scan *scan, uint32_t node);

#endif
