/*
 * The maxima of everything that is fed from outside. A number that bounds foreign input stands
 * here and nowhere else, with the reason for its size.
 */
#ifndef NC_LIMITS_H
#define NC_LIMITS_H

/* One message between our processes. SOCK_SEQPACKET delivers it whole; 64 KiB passes everywhere. */
#define NC_WIRE_MESSAGE_MAX (64U * 1024)
/* Descriptors that may come with one message; the kernel's own cap is 253. */
#define NC_WIRE_FDS_MAX 16U

/* A configuration file; ours are a few hundred bytes. */
#define NC_CONFIG_FILE_MAX (256U * 1024)
/* Entries of one list in a configuration file, and bytes of one entry. */
#define NC_CONFIG_LIST_MAX 1024U
#define NC_CONFIG_TEXT_MAX 1024U

/* Nesting of foreign JSON: jansson recurses and alone would allow 2048 levels. */
#define NC_JSON_DEPTH_MAX 64U

/* A path relative to a root that we hold: PATH_MAX less its NUL; one name: NAME_MAX. */
#define NC_PATH_MAX 4095U
#define NC_NAME_MAX 255U

/* What `nacre doctor` keeps of the answer of a program that it asks for its version. */
#define NC_PROBE_OUTPUT_MAX (64U * 1024)
/* A file below /proc or /sys that we read whole. */
#define NC_PROC_FILE_MAX (256U * 1024)

/* The JSON body of one line of the journal; with its envelope it fits one message and one line. */
#define NC_RECORD_BODY_MAX (60U * 1024)
/* A line of the journal with its envelope and its newline. */
#define NC_LINE_MAX (NC_RECORD_BODY_MAX + 1024U)
/* The id of an execution in the journal. */
#define NC_RECORD_ID_MAX 64U
/* Executions of one worker that are open at once. */
#define NC_RECORD_OPEN_MAX 1024U
/* A blob of the history: what a box may print by default. */
#define NC_BLOB_MAX (64U * 1024 * 1024)
/* Segments of a journal: a year of one a minute. */
#define NC_SEGMENTS_MAX (512U * 1024)

#endif
