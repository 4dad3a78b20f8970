/* A sandbox and its processes, as the files that make them up see them. */
#ifndef NC_SANDBOX_PARTS_H
#define NC_SANDBOX_PARTS_H

#include "base/clock.h"
#include "base/id.h"
#include "engine/access.h"
#include "engine/ledger.h"
#include "engine/output.h"
#include "engine/registry.h"
#include "engine/sandbox.h"
#include "engine/sandbox_spec.h"
#include "policy/book.h"
#include "policy/threat.h"
#include "tier/settle.h"

/* Processes of one sandbox that run at once, and that have ended and are still known. */
#define NC_SANDBOX_RUNNING_MAX 32U
#define NC_SANDBOX_ENDED_MAX 64U
/* What they may have printed that is remembered, of one sandbox and of one tenant. */
#define NC_SANDBOX_HELD_MAX (16U << 20)
#define NC_TENANT_HELD_MAX (64U << 20)
/* Work on files of one sandbox at once: each is a process, of which the spawner has so many. */
#define NC_SANDBOX_TASKS_MAX 8U
/* Who is told of one process at once. */
#define NC_PROCESS_LISTENERS_MAX 8U

struct nc_process {
	struct nc_sandbox *sandbox;
	struct nc_process *next;
	char id[NC_ID_SIZE];
	json_t *command; /* as it was asked for */
	bool terminal, background;
	bool interactive; /* takes input while it runs */
	bool doomed;	  /* it was to end before it had begun, where that takes a signal */
	struct nc_process_listener listener[NC_PROCESS_LISTENERS_MAX];
	bool held[NC_PROCESS_LISTENERS_MAX]; /* by that listener */
	struct nc_command *running;	     /* NULL: it has ended */
	bool awaited;  /* it ran when the worker before died: its adoption is to come */
	uint32_t page; /* of the ledger; 0: none */
	uint64_t box_id;
	char *input;  /* that it began with */
	bool hungry;  /* for input that it began with: not all of it is in its pipe */
	bool starved; /* and never will be: it is ended for that */
	char started[NC_CLOCK_STAMP_SIZE];
	struct nc_output output[NC_STREAM_MAX];
	uint64_t output_bytes, birth_ns;
	uint64_t began_ns; /* with this worker */
	struct nc_box_end end;
	struct nacre_err failure;
	bool unborn;	 /* it never ran: its end says nothing */
	bool blocked;	 /* the policy refused or ended it, for the failure's reason */
	bool looks;	 /* it has ended, and decoys are being looked at */
	bool uncounted;	 /* its end was, before anybody counted */
	bool paused_for; /* the sandbox was paused for what it did */
	json_t *denials; /* of what its text would do; NULL: none */
	json_t *alerts;	 /* once it has ended; NULL: none */
	enum nc_severity risk;
	struct nc_rate output_rate, memory_rate; /* while it runs */
	struct nc_forks forks;
	struct nc_box_end so_far; /* as it was told last */
	size_t decoys_touched;
};

struct nc_sandbox {
	struct nc_sandboxes *all;
	struct nc_sandbox *next;
	char id[NC_ID_SIZE];
	char tenant[NC_REQUEST_NAME_MAX + 1];
	struct nc_sandbox_spec spec;
	const struct nc_terms *terms;
	struct nc_wish wish;
	struct nc_access *access; /* NULL: nothing */
	struct nacre_err trouble; /* why its network could not be had; code 0: it could */
	json_t *network;	  /* that its terms borrow from, once they were changed */
	struct nc_box_limits limits;
	struct nc_exec_spec exec; /* of the box; its commands' are like it */
	struct nc_word_list env;
	uint64_t box_id;
	struct nc_command *making; /* while it is made */
	bool unborn;		   /* it waits to be: others of its tenant are being made */
	struct nc_buf files;	   /* that go into it then */
	nc_sandbox_made made;
	void *made_context;
	bool lives, paused, ends;
	int64_t pausing; /* the ticket of that, until it is answered; or 0 */
	bool must_pause; /* or is ended */
	bool filling;	 /* with the files of its snapshot: nobody was told of it yet */
	bool adopted;	 /* it is there, or was made by this worker */
	bool writing;	 /* it is being written down, and nobody was told of it yet */
	bool built;	 /* its box is there */
	bool recalled;	 /* of a worker before; whether it is there is not known yet */
	bool stranded;	 /* of a daemon before: only its record told of it */
	uint32_t page;	 /* of the ledger; 0: none */
	char created[NC_CLOCK_STAMP_SIZE];
	uint64_t deadline_ns, used_ns; /* on the monotonic clock */
	uint64_t expires_s;	       /* the deadline for others, in seconds since 1970 */
	uint64_t saved_ns;	       /* used_ns as the next worker would know it */
	struct nc_process *processes;  /* the newest first */
	size_t n_running, n_tasks;
	size_t n_idling;	       /* of the tasks */
	unsigned int decoys_lost;      /* bits of nc_decoys_count_again() */
	struct nc_stats_wait *waiting; /* who wants to know how it is */
	struct nc_sudo *sudo;	       /* NULL: nobody in it may ask for commands as root */
};

struct nc_sandboxes {
	struct nc_sandboxes_setup setup;
	struct nc_hub *hub;
	struct nc_ledger *ledger;     /* NULL: they end with this worker */
	struct nc_registry *registry; /* NULL: they are not written down */
	uint64_t patience_ns;	      /* until then holders of those before may come */
	uint64_t orphans_ns;	      /* until then a worker before us may tell of its own */
	struct nc_stranded *stranded; /* on disk, and their holders have not come */
	size_t lost;		      /* whose records were found, and nothing else; to be said */
	uint64_t lost_before;	      /* that were said */
	struct nc_sandbox *list;
	size_t count;
	struct nc_file_task *tasks; /* work on files that is under way */
	struct nc_sandboxes_gate gate;
};

/* For a command in it: id, home, limits; words are the caller's. */
int nc_sandbox_exec_spec(
	struct nc_sandbox *sandbox, struct nc_exec_spec *ret_exec, struct nacre_err *err);

/* Whether commands can run beside each other in it. */
bool nc_sandbox_is_home(const struct nc_sandbox *sandbox);

/* Takes terms, limits and order from its spec; placeholders: of the worker before, or NULL. */
int nc_sandbox_settle(
	struct nc_sandbox *sandbox, const json_t *placeholders, struct nacre_err *err);

/* It has other terms of its network; takes them over, and the body that they borrow from. */
void nc_sandbox_take_network(
	struct nc_sandbox *sandbox, struct nc_request_network *fresh, json_t *body);

/* Into the list, the oldest first. */
void nc_sandbox_enlist(struct nc_sandbox *sandbox);

/* It is gone: takes it out of the list, and tells everybody. */
void nc_sandbox_gone(struct nc_sandbox *sandbox);

/* What it has of memory; its page, if there is a ledger. */
void nc_sandbox_free(struct nc_sandbox *sandbox);

/* Writes it down for the next worker (sandbox_keep.c); what cannot be written ends with this one.
 */
void nc_sandbox_save(struct nc_sandbox *sandbox);
void nc_process_save(struct nc_process *process);

/* A page for it; -ENOMEM. 0 too if there is no ledger. */
int nc_sandbox_keep(struct nc_sandbox *sandbox);
int nc_process_keep(struct nc_process *process);

/* Takes up what the worker before has left. */
void nc_sandboxes_recall(struct nc_sandboxes *sandboxes);

/* One that is described by a page of the ledger or, stranded, by its record (page 0). NULL: it
 * cannot go on, which is said. */
struct nc_sandbox *nc_sandbox_recall(
	struct nc_sandboxes *sandboxes, uint32_t page, const json_t *note, bool stranded);

/* Of those before, whoever is known to be gone is; and whose holder may still come, is waited for.
 */
void nc_sandboxes_bury(struct nc_sandboxes *sandboxes);

/* On disk (sandbox_registry.c): a new one, of which nobody is told before; nc_sandbox_written
 * follows. -ENOSPC with err. */
int nc_sandbox_write(struct nc_sandbox *sandbox, struct nacre_err *err);
void nc_sandbox_written(void *context, int error);

/* As it is now. */
void nc_sandbox_register(struct nc_sandbox *sandbox);
void nc_sandbox_unregister(const struct nc_sandbox *sandbox);

/* What the daemon before has left on disk, and the ledger does not know: it waits for its holder.
 */
void nc_sandboxes_find_stranded(struct nc_sandboxes *sandboxes);

/* Its holder is there with its box. NULL: there is no such one, or it cannot go on, which is said.
 */
struct nc_sandbox *nc_sandbox_unstrand(struct nc_sandboxes *sandboxes, uint64_t box_id);

/* Whose holders do not have them are lost; nobody waits any more; and how many they were. */
void nc_sandboxes_bury_stranded(struct nc_sandboxes *sandboxes);
void nc_sandboxes_forget_stranded(struct nc_sandboxes *sandboxes);
void nc_sandboxes_say_lost(struct nc_sandboxes *sandboxes);

/* Whether the holder of the box has told of all that is there, or is not waited for any more. */
bool nc_sandboxes_is_decided(const struct nc_sandboxes *sandboxes, uint64_t box_id);

/* Its deadline as others know it; it ends so many milliseconds from now. */
uint64_t nc_sandbox_expires(const struct nc_sandbox *sandbox);
void nc_sandbox_set_deadline(struct nc_sandbox *sandbox, uint64_t life_ms);
void nc_sandboxes_adopted(void *context, struct nc_adoption *adoption);

/* Empty, with an id if it is new. NULL: no memory. */
struct nc_process *nc_process_new(struct nc_sandbox *sandbox, const struct nc_process_spec *spec);

/* Goes on with one that was awaited. -errno: it is as good as lost. */
int nc_process_adopt(struct nc_process *process, struct nc_adoption *adoption);

/* It was awaited, and does not come. */
void nc_process_lose(struct nc_process *process);

void nc_process_free(struct nc_process *process);

/* Takes what was found out about its text. 0 or -ENOMEM. */
int nc_process_take_study(struct nc_process *process, const struct nc_study_text *found);

/* It is refused for err: what is said of ends is said, and it is freed. */
void nc_process_refuse(struct nc_process *process, const struct nc_process_spec *spec,
	const struct nacre_err *err);

/* It has ended: it is told of once its decoys were looked at, if there are any. */
void nc_process_close(struct nc_process *process);

/* The worker before died while it looked: what was touched is told with the next one. */
void nc_process_unlooked(struct nc_process *process);

/* And now it is told of. */
void nc_process_finish(struct nc_process *process);

/* It has ended: what that moves, for everybody; before anybody who waits for it is told. */
void nc_process_account(struct nc_process *process);

/* The same for what ended before there was a gate. */
void nc_process_count(struct nc_process *process);

/* Once a second while it runs: the threat detector looks at it. */
void nc_process_look(struct nc_process *process);
void nc_process_told(void *context, const struct nc_box_now *now);

/* Nobody of this context is told any more. */
void nc_process_forget(struct nc_process *process, const void *context);

/* The sandbox has gone: whoever listens is told. */
void nc_processes_lose(struct nc_sandbox *sandbox);

/* Work whose end is for this context (NULL: for any) has nobody to tell it to. */
void nc_file_tasks_forget(struct nc_sandboxes *sandboxes, const void *context);

#endif
