/*
 * Policies and reports as bytes, so that a program can be analysed by a process that has no rights
 * and knows nothing but what it is sent. What comes back from there is read as foreign bytes are.
 */
#ifndef NC_PORTABLE_H
#define NC_PORTABLE_H

#include "base/buf.h"
#include "policy/policy.h"

/* The lists of a policy are as long as its files; a report has NC_REPORT_MEMORY_MAX of texts. */
#define NC_PORTABLE_POLICY_MAX (4U * 1024 * 1024)
#define NC_PORTABLE_REPORT_MAX (16U * 1024 * 1024)

/* Appends; whether that was possible is in out->error. */
void nc_policy_pack(const struct nc_policy *policy, struct nc_buf *out);
void nc_report_pack(const struct nc_report *report, struct nc_buf *out);

/* The caller frees what they return, which needs data no more. 0, -EBADMSG or -ENOMEM. */
int nc_policy_unpack(const void *data, size_t size, struct nc_policy **ret_policy);
int nc_report_unpack(const void *data, size_t size, struct nc_report **ret_report);

/* What the analyses of another policy have looked up about languages is known to this one too. */
void nc_policy_learn(struct nc_policy *policy, const struct nc_policy *from);

#endif
