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

/* Holders of boxes that one worker knows; each has a number below. */
#define NC_HOLDERS_MAX 16U

/* Messages that a holder of boxes has not taken yet; more are refused. */
#define NC_HOLDER_MAIL_MAX 4096U
/* How long one beside the first may take to greet, and to say what became of an order. */
#define NC_HOLDER_PATIENCE_MS 30000U

/* The same of the recorder: what begins and is noted, each of up to 64 KiB. */
#define NC_RECORD_MAIL_MAX 1024U

/*
 * nacre-relay: streams at once, and what is kept of each until it is acknowledged, or delivered: of
 * the first few more, since one box seldom has more. 15.5 MiB in all.
 */
#define NC_RELAY_STREAMS_MAX 256U
#define NC_RELAY_WIDE 16U
#define NC_RELAY_WINDOW_WIDE (512U * 1024)
#define NC_RELAY_WINDOW (32U * 1024)
/* Messages that are not acknowledged; more are not taken from the worker or the holder. */
#define NC_RELAY_UNACKED_MAX (2U * 1024 * 1024)
/* How long the other end has to greet and to acknowledge a message. */
#define NC_RELAY_PATIENCE_MS 30000U
/* Frames in 10 ms; more have to wait. */
#define NC_RELAY_FRAMES_MAX 1000U
/* What the other end may say that nobody asked for: boxes of a worker before, for one. */
#define NC_RELAY_UNASKED_MAX 1024U

/* A configuration file; ours are a few hundred bytes. */
#define NC_CONFIG_FILE_MAX (256U * 1024)
/* Entries of one list in a configuration file, and bytes of one entry. */
#define NC_CONFIG_LIST_MAX 1024U
#define NC_CONFIG_TEXT_MAX 1024U
/* Entries whose names are the file's own, such as tenants. */
#define NC_CONFIG_MAP_MAX 256U
/* Policies that one process knows: those of its directory, and one named by its path. */
#define NC_POLICIES_MAX 256U

/* Nesting of foreign JSON: jansson recurses and alone would allow 2048 levels. */
#define NC_JSON_DEPTH_MAX 64U

/* A path relative to a root that we hold: PATH_MAX less its NUL; one name: NAME_MAX. */
#define NC_PATH_MAX 4095U
#define NC_NAME_MAX 255U

/* Files that one request takes out of a box. */
#define NC_CAPTURE_FILES_MAX 1000U
/* Entries of one directory that are listed. */
#define NC_LISTING_MAX 10000U

/* What `nacre doctor` keeps of the answer of a program that it asks for its version. */
#define NC_PROBE_OUTPUT_MAX (64U * 1024)
/* What is read of a failed program's messages to find the place of its error. */
#define NC_DIAGNOSE_MAX (256U * 1024)
/* A file below /proc or /sys that we read whole. */
#define NC_PROC_FILE_MAX (256U * 1024)

/* One execution request: the files of 64 MiB as base64, the rest, and room for the JSON of both. */
#define NC_REQUEST_SIZE_MAX (96U * 1024 * 1024)
/* Of one that comes in a file: what is left without the contents of its files. */
#define NC_REQUEST_REST_MAX (24U * 1024 * 1024)
/* A content that is longer than this stays in that file until it is wanted. */
#define NC_CUT_MIN 4096U
/* A reply to one as text: streams and files, each of whose bytes may take six. */
#define NC_REPLY_TEXT_MAX (1024U * 1024 * 1024)
/* Values in it: each costs jansson some 100 bytes, so that ",,,," must not become gigabytes. */
#define NC_REQUEST_VALUES_MAX 32768U
/* Faults that one answer lists. */
#define NC_REQUEST_FAULTS_MAX 64U
#define NC_REQUEST_CODE_MAX (1024U * 1024)
#define NC_REQUEST_FILES_MAX 1000U
#define NC_REQUEST_FILES_SIZE_MAX (64U * 1024 * 1024)
/* Their paths: each directory above one is looked up among the others. */
#define NC_REQUEST_PATH_MAX 1023U
#define NC_REQUEST_PATH_DEPTH_MAX 32U
/* Lines of standard input, and their bytes in all. */
#define NC_REQUEST_INPUTS_MAX 4096U
#define NC_REQUEST_INPUTS_SIZE_MAX (4U * 1024 * 1024)
/* Arguments and variables with their NULs. A step has its own beside the request's variables: all
 * three must fit into the order of one box (NC_BOX_ARG_SIZE_MAX), with what the runtime adds. */
#define NC_REQUEST_ARGS_MAX 1024U
#define NC_REQUEST_ARGS_SIZE_MAX (16U * 1024)
/* A command in a sandbox: longer ones go into a file first. */
#define NC_COMMAND_SIZE_MAX (32U * 1024)
#define NC_REQUEST_ENV_MAX 256U
#define NC_REQUEST_ENV_SIZE_MAX (12U * 1024)
#define NC_REQUEST_PACKAGES_MAX 64U
#define NC_REQUEST_PACKAGE_MAX 214U /* bytes of one; npm's own maximum for a name */
#define NC_REQUEST_HOSTS_MAX 64U
#define NC_URL_MAX 512U
#define NC_REQUEST_CAPTURES_MAX 64U
#define NC_REQUEST_BINDS_MAX 16U
#define NC_REQUEST_CAPTURE_MAX 255U
#define NC_REQUEST_STEPS_MAX 16U
#define NC_REQUEST_LABELS_MAX 32U
#define NC_REQUEST_LABEL_MAX 256U /* bytes of a value */
/* Ids, tenants, names of steps and of labels. */
#define NC_REQUEST_NAME_MAX 64U

/* One frame to `nacre engine`: a request and what is around it. */
#define NC_FRAME_REQUEST_MAX (NC_REQUEST_SIZE_MAX + 64U * 1024)
#define NC_FRAME_VALUES_MAX (NC_REQUEST_VALUES_MAX + 64U)
/* One frame from it: most captured files of 64 MiB fit, written as text or as base64. */
#define NC_FRAME_REPLY_MAX (256U * 1024 * 1024)
#define NC_FRAME_REPLY_VALUES_MAX (4U * 1024 * 1024)
/* What waits for a client that does not read: beyond the first live output is left out, beyond the
 * second no more is read from it, beyond the third it is given up. */
#define NC_SERVICE_STREAM_MAX (8U * 1024 * 1024)
#define NC_SERVICE_PAUSE_MAX (64U * 1024 * 1024)
#define NC_SERVICE_UNSENT_MAX (512U * 1024 * 1024)
/* Frames of all executions that are open, together. */
#define NC_SERVICE_REQUESTS_MAX (512U * 1024 * 1024)
/* Executions at once, and that wait: each has three pipes, and some 40 KiB of its own. */
#define NC_SERVICE_RUNNING_MAX 256U
#define NC_SERVICE_QUEUED_MAX 65536U
/* Live output that a program has not fetched from the library yet. */
#define NC_LIBRARY_EVENTS_MAX (16U * 1024 * 1024)

/* Processes of the machine that one look covers: twice the usual pid_max. */
#define NC_PROCESSES_MAX 65536U
/* Processes of a tree or a group that a monitor follows. */
#define NC_MONITOR_PROCESSES_MAX 4096U
/* Samples that a monitor keeps: an hour of one per second. */
#define NC_MONITOR_RING_MAX 3600U
/* Boxes that one spawner keeps alive at once, and that `nacre top` shows. */
#define NC_BOXES_MAX 4096U

/* The JSON body of one line of the journal; with its envelope it fits one message and one line. */
#define NC_RECORD_BODY_MAX (60U * 1024)
/* A line of the journal with its envelope and its newline. */
#define NC_LINE_MAX (NC_RECORD_BODY_MAX + 1024U)
/* The id of an execution in the journal. */
#define NC_RECORD_ID_MAX 64U
/* Kinds of refusals that the death of one program tells of. */
#define NC_RECORD_REFUSALS_MAX 40U
/* Executions of one worker that are open at once. */
#define NC_RECORD_OPEN_MAX 2048U
/* Executions that have ended and wait for the recorder; no other is begun then. */
#define NC_RECORD_BEHIND_MAX 128U
/* Lines beside those of executions that wait for the next recorder. */
#define NC_RECORD_NOTES_MAX 1024U
/* A blob of the history: what a box may print by default. */
#define NC_BLOB_MAX (64U * 1024 * 1024)
/* What is as large is mapped by itself in the daemon, moved without a copy and unmapped when freed.
 */
#define NC_MAPPED_MIN (4U * 1024 * 1024)
/* So much of one is written at a time, if it comes in parts. */
#define NC_BLOB_PART (128U * 1024)
/* Segments of a journal: a year of one a minute. */
#define NC_SEGMENTS_MAX (512U * 1024)

/* Programs of requests that wait to be analysed. */
#define NC_STUDIES_MAX 2048U

/* HTTP: the head of a request, which libmicrohttpd keeps in one block with a little of its own. */
#define NC_HTTP_HEAD_MAX (16U * 1024)
#define NC_HTTP_HEADERS_MAX 100U
/* The request line's target; longer than any of ours, with a query. */
#define NC_HTTP_TARGET_MAX (8U * 1024)
/* A body whose route names no other maximum. */
#define NC_HTTP_BODY_MAX (1024U * 1024)
/* Connections at once, and of one peer. */
#define NC_HTTP_CONNECTIONS_MAX 1024U
#define NC_HTTP_CONNECTIONS_EACH 512U
/* Of them those that have shown no key, in all and of one peer. */
#define NC_HTTP_STRANGERS_MAX 256U
#define NC_HTTP_STRANGERS_EACH 64U
/* Bodies of all requests that are open together. */
#define NC_HTTP_BODIES_MAX (256U * 1024 * 1024)
/* Replies that wait for clients who do not read them: of one tenant, and in all. */
#define NC_HTTP_HELD_EACH (64U * 1024 * 1024)
#define NC_HTTP_HELD_MAX (256U * 1024 * 1024)
/* Files and archives on their way from or to sandboxes, each with at most 256 KiB here: of one
 * tenant, and in all. */
#define NC_TRANSFERS_EACH 64U
#define NC_TRANSFERS_MAX 256U
/* Clients that watch files of sandboxes, each with events of at most NC_FEED_MAX: as above. */
#define NC_WATCHES_EACH 32U
#define NC_WATCHES_MAX 128U
/* An archive of files of a sandbox, which passes through piece by piece; that it fits is the
 * sandbox's affair. */
#define NC_ARCHIVE_MAX (8ULL * 1024 * 1024 * 1024)
/* A snapshot of a sandbox, those of one tenant, and those that one daemon keeps. */
#define NC_SNAPSHOT_MAX (2ULL * 1024 * 1024 * 1024)
#define NC_SNAPSHOTS_EACH 100U
#define NC_SNAPSHOTS_MAX 10000U
/* What is written down of a sandbox: of one, of those of a tenant, and of all. */
#define NC_REGISTRY_RECORD_MAX (1024U * 1024)
#define NC_REGISTRY_EACH (8U * 1024 * 1024)
#define NC_REGISTRY_MAX (32U * 1024 * 1024)
/* Parts of a path, and bytes of one part that names something. */
#define NC_HTTP_PARTS_MAX 8U
#define NC_HTTP_PART_MAX 128U

/* API keys in one file, with those that were revoked. */
#define NC_KEYS_MAX 4096U
#define NC_KEYS_FILE_MAX (4U * 1024 * 1024)
/* Tenants that one daemon counts for. */
#define NC_TENANTS_MAX 1024U

/* Executions that a daemon knows by their id, finished ones too. */
#define NC_HTTP_JOBS_MAX 4096U
/* What finished ones keep for those who ask later: replies and events of all together. */
#define NC_JOBS_KEPT_MAX (32U * 1024 * 1024)
/* Live events of one, from which a client that lost its connection goes on. */
#define NC_FEED_MAX (1024U * 1024)
/* Replies that are kept for a repeated Idempotency-Key: how many, and their bytes. */
#define NC_REPLAYS_MAX 4096U
#define NC_REPLAYS_SIZE_MAX (32U * 1024 * 1024)
#define NC_REPLAY_SIZE_MAX (4U * 1024 * 1024)
/* Bytes of an Idempotency-Key. */
#define NC_REPLAY_KEY_MAX 255U

/* Label sets of one metric: what comes beyond is counted as "other". */
#define NC_METRIC_SERIES_MAX 256U

/* nacre-egress: boxes with a door, and the entries of the list of one. */
#define NC_EGRESS_DOORS_MAX 1024U
#define NC_EGRESS_RULES_MAX 256U
/* A host as a policy writes it: "*.", a name, ":65535". */
#define NC_EGRESS_PATTERN_MAX 272U
#define NC_EGRESS_PATHS_MAX 16U
#define NC_EGRESS_PATH_MAX 255U
/* Secrets of one box, their values, and what stands for them inside. */
#define NC_EGRESS_SECRETS_MAX 16U
#define NC_EGRESS_SECRET_MAX 4096U
/* Of a value that is masked where it comes back. */
#define NC_EGRESS_MASK_MIN 4U
/* Values that wait for the doors of their boxes. */
#define NC_EGRESS_KEPT_MAX 16384U
#define NC_EGRESS_HEADER_MAX 64U
/* Certificates that boxes trust, as text. */
#define NC_TRUSTED_MAX (2U * 1024 * 1024)
/* The certificate that boxes with secrets in TLS have to trust. */
#define NC_EGRESS_AUTHORITY_MAX 4095U
/* Names of members of groups, and of groups: a tenant's, with whose they are. */
#define NC_EGRESS_NAME_MAX 63U
#define NC_EGRESS_GROUP_MAX (2 * NC_REQUEST_NAME_MAX + 1)
/* The head of a request or a reply, and its fields. */
#define NC_EGRESS_HEAD_MAX (32U * 1024)
#define NC_EGRESS_FIELDS_MAX 128U
/* Connections of one box at once: each has two descriptors, and buffers while a head is read. */
#define NC_EGRESS_CONNECTIONS_MAX 4096U
/* Names that one box may ask for in its life; how many of them a meter tells. */
#define NC_EGRESS_NAMES_MAX 1024U
#define NC_EGRESS_TOP_MAX 16U
/* Questions to the name server at once, addresses of one answer, entries of the hosts file. */
#define NC_EGRESS_LOOKUPS_MAX 1024U
#define NC_EGRESS_ADDRESSES_MAX 64U
#define NC_EGRESS_HOSTS_MAX 4096U
/* Messages that wait for a worker which asks and does not read. */
#define NC_EGRESS_UNSENT_MAX 4096U

#endif
