/* The maxima of an analysis. What reaches one is reported as cut short, never as a pass. */
#ifndef NC_POLICY_BOUNDS_H
#define NC_POLICY_BOUNDS_H

/* Source text of one file; larger programs are data, or generated to hide something. */
#define NC_SOURCE_MAX (1024U * 1024)
/* Time for all parsing of one analysis. 1 MiB of ordinary code takes a tenth of it. */
#define NC_PARSE_TIME_NS (2000ULL * 1000 * 1000)
/* The same for all walks over the trees; each is a few milliseconds for ordinary code. */
#define NC_WALK_TIME_NS (2000ULL * 1000 * 1000)
/* Memory of the parser; 1 MiB of ordinary code takes half of it. */
#define NC_PARSE_MEMORY_MAX (64UL * 1024 * 1024)
/* Nodes of one tree. 1 MiB of source has at most one node per byte, and a few around them. */
#define NC_NODES_MAX (2U * 1024 * 1024)
/* What is known about expressions, in one analysis. */
#define NC_DATA_MAX (2U * 1024 * 1024)
/* Memory for texts that are put together while folding, and for what the report keeps. */
#define NC_FOLD_MEMORY_MAX (64U * 1024 * 1024)
#define NC_REPORT_MEMORY_MAX (8U * 1024 * 1024)
/* One folded text; a dotted name; the elements of one folded list. */
#define NC_FOLDED_MAX (256U * 1024)
#define NC_NAME_TEXT_MAX 192U
#define NC_LIST_ITEMS_MAX 16384U
/* Texts inside the text that are run as code, and how deep they may stand in each other. */
#define NC_JOBS_MAX 64U
#define NC_JOB_DEPTH_MAX 6U
/* Expressions of comprehensions that are worked out element by element. */
#define NC_UNROLL_MAX 65536U
/* Possible values of one variable that are kept; scopes that a name is looked for in. */
#define NC_ALTERNATIVES_MAX 16U
#define NC_SCOPES_MAX 32U
/* Bindings of names in one analysis. */
#define NC_BINDINGS_MAX (256U * 1024)
/* What the report lists. */
#define NC_FINDINGS_MAX 1000U
#define NC_IMPORTS_MAX 1000U
#define NC_NEEDS_MAX 500U
/* Source text that a finding quotes. */
#define NC_SNIPPET_MAX 160U
/* Arguments of a call, and words of a command, that rules look at. */
#define NC_ARGUMENTS_MAX 64U

#endif
