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
/* What is read of a failed program's messages to find the place of its error. */
#define NC_DIAGNOSE_MAX (256U * 1024)
/* A file below /proc or /sys that we read whole. */
#define NC_PROC_FILE_MAX (256U * 1024)

#endif
