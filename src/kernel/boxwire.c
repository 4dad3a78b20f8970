/* What the unprivileged side and the spawner say to each other: encoding. */
#include "kernel/boxwire.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/fd.h"

static void put_words(struct nc_wire_out *out, const struct nc_box_words *words, bool beside)
{
	nc_wire_put_u32(out, (uint32_t)words->count);
	if (beside)
		nc_wire_put_u32(out, (uint32_t)words->size);
	else
		nc_wire_put_bytes(out, words->data, words->size);
}

/* Whether there are exactly count words, each with its NUL. */
static bool are_words(const struct nc_box_words *words)
{
	size_t nuls = 0;

	for (size_t i = 0; i < words->size; i++)
		nuls += words->data[i] == '\0';
	return nuls == words->count && (words->size == 0 || words->data[words->size - 1] == '\0');
}

static void get_words(struct nc_wire_in *in, struct nc_box_words *words, bool beside)
{
	const void *data = NULL;

	words->count = nc_wire_get_u32(in);
	if (beside)
		words->size = nc_wire_get_u32(in);
	else
		words->size = nc_wire_get_bytes(in, NC_BOX_ARG_SIZE_MAX, &data);
	words->data = data;
	if (words->count > NC_BOX_ARGS_MAX || words->size > NC_BOX_WORDS_MAX ||
		(!beside && !are_words(words)))
		in->error = -EBADMSG;
}

int nc_box_words_read(struct nc_box_order *order, int fd, char data[static NC_BOX_WORDS_MAX])
{
	const size_t size = order->argv.size + order->env.size;
	const ssize_t n = size > NC_BOX_WORDS_MAX ? -E2BIG : nc_fd_read_upto(fd, data, size);

	if (n < 0)
		return (int)n;
	order->argv.data = data;
	order->env.data = data + order->argv.size;
	return (size_t)n == size && are_words(&order->argv) && are_words(&order->env) ? 0
										      : -EBADMSG;
}

static void limit_fields(struct nc_box_limits *limits, uint64_t *fields[8])
{
	fields[0] = &limits->memory_bytes;
	fields[1] = &limits->cpu_milli;
	fields[2] = &limits->cpu_time_ms;
	fields[3] = &limits->wall_ms;
	fields[4] = &limits->pids;
	fields[5] = &limits->disk_bytes;
	fields[6] = &limits->inodes;
	fields[7] = &limits->open_files;
}

_Static_assert(sizeof(struct nc_box_limits) == 8 * sizeof(uint64_t), "a limit is not sent");

const enum nc_box_fd nc_box_streams[3] = {NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR};
const enum nc_box_fd nc_box_own_streams[3] = {NC_FD_OWN_INPUT, NC_FD_OWN_OUTPUT, NC_FD_OWN_ERROR};

void nc_box_fds_add(struct nc_box_fds *fds, enum nc_box_fd kind, int fd)
{
	if (fd < 0)
		return;
	assert(fds->n < NC_BOX_FDS_MAX);
	fds->kind[fds->n] = kind;
	fds->fd[fds->n++] = fd;
}

static size_t find(const struct nc_box_fds *fds, enum nc_box_fd kind)
{
	size_t i = 0;

	while (i < fds->n && fds->kind[i] != kind)
		i++;
	return i;
}

bool nc_box_fds_has(const struct nc_box_fds *fds, enum nc_box_fd kind)
{
	return find(fds, kind) < fds->n;
}

int nc_box_fds_find(const struct nc_box_fds *fds, enum nc_box_fd kind)
{
	const size_t i = find(fds, kind);

	return i < fds->n ? fds->fd[i] : -EBADF;
}

int nc_box_fds_take(struct nc_box_fds *fds, enum nc_box_fd kind)
{
	const size_t i = find(fds, kind);

	return i < fds->n ? take_fd(fds->fd[i]) : -EBADF;
}

void nc_box_fds_close(struct nc_box_fds *fds)
{
	for (size_t i = 0; i < fds->n; i++)
		fds->fd[i] = nc_fd_close(fds->fd[i]);
}

int nc_box_fds_meet(struct nc_box_fds *fds, const struct nc_wire_packet *packet)
{
	if (packet->n_fds != fds->n)
		return -EBADMSG;
	memcpy(fds->fd, packet->fds, fds->n * sizeof(fds->fd[0]));
	return 0;
}

void nc_boxwire_put_fds(struct nc_wire_out *out, const struct nc_box_fds *fds)
{
	nc_wire_put_u8(out, (uint8_t)fds->n);
	for (size_t i = 0; i < fds->n; i++)
		nc_wire_put_u8(out, (uint8_t)fds->kind[i]);
}

void nc_boxwire_get_fds(struct nc_wire_in *in, struct nc_box_fds *ret_fds)
{
	const uint8_t n = nc_wire_get_u8(in);

	ret_fds->n = 0;
	if (n > NC_BOX_FDS_MAX)
		in->error = -EBADMSG;
	for (size_t i = 0; i < n && in->error == 0; i++) {
		const uint8_t kind = nc_wire_get_u8(in);

		if (kind >= NC_FD_MAX) {
			in->error = -EBADMSG;
			break;
		}
		ret_fds->kind[i] = (enum nc_box_fd)kind;
		ret_fds->fd[i] = -EBADF;
		ret_fds->n++;
	}
}

static bool is_layer(enum nc_box_fd kind)
{
	return kind == NC_FD_LAYER || kind == NC_FD_LAYER_WRITABLE;
}

bool nc_box_fd_is_tree(enum nc_box_fd kind)
{
	return kind == NC_FD_IMAGE || is_layer(kind);
}

bool nc_box_fds_fit(const struct nc_box_order *order)
{
	const size_t piped = order->flags & NC_ORDER_TTY ? 0 : 1;
	const size_t kept = order->flags & NC_ORDER_KEEP ? piped : 0;
	size_t count[NC_FD_MAX] = {0};

	for (size_t i = 0; i < order->fds.n; i++)
		count[order->fds.kind[i]]++;
	for (size_t i = 0; i < 3; i++)
		if (count[nc_box_streams[i]] != piped || count[nc_box_own_streams[i]] != kept)
			return false;
	return count[NC_FD_PACK] <= piped && count[NC_FD_IMAGE] <= 1 && count[NC_FD_WORDS] <= 1 &&
	       nc_box_layers(order) <= NC_BOX_LAYERS_MAX && count[NC_FD_TERMINAL] == 0 &&
	       count[NC_FD_DOOR] == 0;
}

size_t nc_box_layers(const struct nc_box_order *order)
{
	size_t n = 0;

	for (size_t i = 0; i < order->fds.n; i++)
		n += is_layer(order->fds.kind[i]);
	return n;
}

static bool is_below(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	return strncmp(path, dir, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool nc_box_target_ok(const char *target)
{
	size_t length = strlen(target);

	return length > 1 && length <= NC_BOX_DIR_MAX && target[0] == '/' &&
	       target[length - 1] != '/' && !strstr(target, "//") && !strstr(target, "/./") &&
	       !strstr(target, "/../") && strcmp(target + length - 2, "/.") != 0 &&
	       (length < 3 || strcmp(target + length - 3, "/..") != 0) &&
	       !is_below(target, "/proc") && !is_below(target, "/dev") && !is_below(target, "/sys");
}

static bool within(uint64_t value, uint64_t least, uint64_t most)
{
	return value >= least && value <= most;
}

bool nc_box_limits_ok(const struct nc_box_limits *limits)
{
	return within(limits->memory_bytes, 1U << 20, 1ULL << 40) &&
	       within(limits->cpu_milli, 10, 1024000) && limits->cpu_time_ms <= 7 * 86400000ULL &&
	       within(limits->wall_ms, 1, 7 * 86400000ULL) && within(limits->pids, 1, 32768) &&
	       within(limits->disk_bytes, 4096, 1ULL << 40) &&
	       within(limits->inodes, 16, 1ULL << 32) && within(limits->open_files, 8, 1U << 20);
}

bool nc_box_is_neutral(const struct nc_box_order *order)
{
	return order->tier == NC_TIER_CONTAINER && order->n_binds == 0 && order->home == 0 &&
	       nc_box_layers(order) == 0 && !nc_box_fds_has(&order->fds, NC_FD_IMAGE) &&
	       !(order->flags & (NC_ORDER_TTY | NC_ORDER_DOOR | NC_ORDER_HOME | NC_ORDER_ZYGOTE |
					NC_ORDER_USERS | NC_ORDER_WRITABLE)) &&
	       order->user[0] == '\0';
}

static void put_binds(struct nc_wire_out *out, const struct nc_box_order *order)
{
	nc_wire_put_u32(out, order->n_binds);
	for (size_t i = 0; i < order->n_binds; i++) {
		nc_wire_put_u32(out, order->binds[i].index);
		nc_wire_put_u8(out, order->binds[i].writable);
		nc_wire_put_text(out, order->binds[i].target);
	}
}

static void get_binds(struct nc_wire_in *in, struct nc_box_order *order)
{
	order->n_binds = nc_wire_get_u32(in);
	if (order->n_binds > NC_BOX_BINDS_MAX) {
		order->n_binds = 0;
		in->error = -EBADMSG;
	}
	for (size_t i = 0; i < order->n_binds; i++) {
		order->binds[i].index = nc_wire_get_u32(in);
		order->binds[i].writable = nc_wire_get_u8(in) != 0;
		nc_wire_get_text(in, order->binds[i].target, NC_BOX_DIR_MAX);
	}
}

/* With their number: another version may have more of them, or fewer. */
static void put_grades(struct nc_wire_out *out, const enum nc_grade grades[static NC_STRENGTH_MAX])
{
	nc_wire_put_u8(out, NC_STRENGTH_MAX);
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		nc_wire_put_u8(out, (uint8_t)grades[i]);
}

/* What this version does not know it cannot hold: who requires that is refused. */
static void get_grades(
	struct nc_wire_in *in, bool are_required, enum nc_grade ret_grades[static NC_STRENGTH_MAX])
{
	const uint8_t n = nc_wire_get_u8(in);

	for (size_t i = 0; i < n && in->error == 0; i++) {
		const uint8_t grade = nc_wire_get_u8(in);

		if (grade >= NC_GRADE_MAX ||
			(are_required && i >= NC_STRENGTH_MAX && grade > NC_GRADE_NONE))
			in->error = -EBADMSG;
		else if (i < NC_STRENGTH_MAX)
			ret_grades[i] = (enum nc_grade)grade;
	}
}

void nc_boxwire_put_order(struct nc_wire_out *out, const struct nc_box_order *order)
{
	struct nc_box_limits limits = order->limits;
	uint64_t *fields[8];

	nc_wire_put_u64(out, order->id);
	nc_wire_put_u64(out, order->home);
	nc_wire_put_u64(out, order->warm_class);
	limit_fields(&limits, fields);
	for (size_t i = 0; i < 8; i++)
		nc_wire_put_u64(out, *fields[i]);
	nc_wire_put_u8(out, (uint8_t)order->tier);
	nc_wire_put_u32(out, order->flags);
	put_grades(out, order->required);
	nc_wire_put_u32(out, order->rows);
	nc_wire_put_u32(out, order->columns);
	put_binds(out, order);
	nc_boxwire_put_fds(out, &order->fds);
	nc_wire_put_text(out, order->name);
	nc_wire_put_text(out, order->dir);
	put_words(out, &order->argv, nc_box_fds_has(&order->fds, NC_FD_WORDS));
	put_words(out, &order->env, nc_box_fds_has(&order->fds, NC_FD_WORDS));
	nc_wire_put_text(out, order->user);
}

void nc_boxwire_get_order(struct nc_wire_in *in, struct nc_box_order *ret_order)
{
	uint64_t *fields[8];
	uint8_t tier;

	*ret_order = (struct nc_box_order){.id = nc_wire_get_u64(in)};
	ret_order->home = nc_wire_get_u64(in);
	ret_order->warm_class = nc_wire_get_u64(in);
	limit_fields(&ret_order->limits, fields);
	for (size_t i = 0; i < 8; i++)
		*fields[i] = nc_wire_get_u64(in);
	tier = nc_wire_get_u8(in);
	ret_order->flags = nc_wire_get_u32(in);
	get_grades(in, true, ret_order->required);
	ret_order->rows = nc_wire_get_u32(in);
	ret_order->columns = nc_wire_get_u32(in);
	get_binds(in, ret_order);
	nc_boxwire_get_fds(in, &ret_order->fds);
	nc_wire_get_text(in, ret_order->name, NC_BOX_NAME_MAX);
	nc_wire_get_text(in, ret_order->dir, NC_BOX_DIR_MAX);
	get_words(in, &ret_order->argv, nc_box_fds_has(&ret_order->fds, NC_FD_WORDS));
	get_words(in, &ret_order->env, nc_box_fds_has(&ret_order->fds, NC_FD_WORDS));
	if (in->left > 0) /* a worker that is older has no users */
		nc_wire_get_text(in, ret_order->user, NC_BOX_USER_MAX);
	if (ret_order->argv.count == 0 || tier >= NC_TIER_MAX ||
		(ret_order->flags & ~(uint32_t)NC_ORDER_FLAGS) != 0 ||
		ret_order->rows > UINT16_MAX || ret_order->columns > UINT16_MAX)
		in->error = -EBADMSG;
	else
		ret_order->tier = tier;
}

int nc_boxwire_read_order(const void *data, size_t size, struct nc_box_order *ret_order)
{
	struct nc_wire_in in;
	int r = nc_wire_open(&in, data, size);

	if (r < 0)
		return r;
	in.lenient = true;
	(void)nc_wire_get_u32(&in); /* its number */
	nc_boxwire_get_order(&in, ret_order);
	return nc_wire_close(&in);
}

#define USAGE_FIELDS 13

static void usage_fields(struct nc_box_usage *usage, uint64_t *fields[USAGE_FIELDS])
{
	fields[0] = &usage->wall_ns;
	fields[1] = &usage->cpu_user_us;
	fields[2] = &usage->cpu_system_us;
	fields[3] = &usage->memory_peak_bytes;
	fields[4] = &usage->pids_peak;
	fields[5] = &usage->oom_kills;
	fields[6] = &usage->pids_refused;
	fields[7] = &usage->disk_bytes;
	fields[8] = &usage->context_switches;
	fields[9] = &usage->io_read_bytes;
	fields[10] = &usage->io_written_bytes;
	fields[11] = &usage->net_received_bytes;
	fields[12] = &usage->net_sent_bytes;
}

_Static_assert(
	sizeof(struct nc_box_usage) == USAGE_FIELDS * sizeof(uint64_t), "a figure is not sent");

/* What boxes can do, as bits. */
#define TERMS_CAN 6

static void can_fields(struct nc_tier_terms *terms, bool *fields[TERMS_CAN])
{
	fields[0] = &terms->stops;
	fields[1] = &terms->shares;
	fields[2] = &terms->mounts;
	fields[3] = &terms->warms;
	fields[4] = &terms->users;
	fields[5] = &terms->writes;
}

static void put_terms(struct nc_wire_out *out, enum nc_tier tier, const struct nc_tier_terms *terms)
{
	struct nc_tier_terms copy = *terms;
	uint32_t can = 0, holds = 0;
	bool *fields[TERMS_CAN];

	can_fields(&copy, fields);
	for (size_t i = 0; i < TERMS_CAN; i++)
		can |= (uint32_t)*fields[i] << i;
	for (size_t i = 0; i < NC_NAMED_MAX; i++)
		holds |= (uint32_t)terms->holds[i] << i;
	nc_wire_put_u8(out, (uint8_t)tier);
	nc_wire_put_u32(out, can);
	nc_wire_put_u32(out, holds);
	put_grades(out, terms->grades);
}

/* Of a tier that this version does not know nothing is taken. */
static void get_terms(struct nc_wire_in *in, struct nc_tier_terms all[static NC_TIER_MAX])
{
	const uint8_t tier = nc_wire_get_u8(in);
	const uint32_t can = nc_wire_get_u32(in), holds = nc_wire_get_u32(in);
	struct nc_tier_terms terms = {.here = true};
	bool *fields[TERMS_CAN];

	can_fields(&terms, fields);
	for (size_t i = 0; i < TERMS_CAN; i++)
		*fields[i] = can >> i & 1;
	for (size_t i = 0; i < NC_NAMED_MAX; i++)
		terms.holds[i] = holds >> i & 1;
	get_grades(in, false, terms.grades);
	if (in->error == 0 && tier < NC_TIER_MAX)
		all[tier] = terms;
}

void nc_boxwire_put_welcome(struct nc_wire_out *out, const struct nc_box_welcome *welcome)
{
	uint8_t n = 0;

	nc_wire_put_u8(out, welcome->ranges);
	nc_wire_put_text(out, welcome->scratch);
	for (enum nc_tier i = 0; i < NC_TIER_MAX; i++)
		n += welcome->terms[i].here;
	nc_wire_put_u8(out, n);
	for (enum nc_tier i = 0; i < NC_TIER_MAX; i++)
		if (welcome->terms[i].here)
			put_terms(out, i, &welcome->terms[i]);
	nc_wire_put_u32(out, welcome->n_adopted);
}

void nc_boxwire_get_welcome(struct nc_wire_in *in, struct nc_box_welcome *ret_welcome)
{
	uint8_t n;

	*ret_welcome = (struct nc_box_welcome){.ranges = nc_wire_get_u8(in) != 0};
	nc_wire_get_text(in, ret_welcome->scratch, NC_BOX_DIR_MAX);
	n = nc_wire_get_u8(in);
	for (uint8_t i = 0; i < n && in->error == 0; i++)
		get_terms(in, ret_welcome->terms);
	ret_welcome->n_adopted = nc_wire_get_u32(in);
}

void nc_boxwire_put_end(struct nc_wire_out *out, const struct nc_box_end *end)
{
	struct nc_box_usage usage = end->usage;
	uint64_t *fields[USAGE_FIELDS];

	nc_wire_put_u64(out, end->id);
	nc_wire_put_u8(out, (uint8_t)end->cause);
	nc_wire_put_u32(out, end->code);
	nc_wire_put_u32(out, end->signal);
	nc_wire_put_u8(out, (uint8_t)end->tier);
	put_grades(out, end->held);
	nc_wire_put_u8(out, end->alone);
	nc_wire_put_u32(out, end->hit);
	nc_wire_put_u8(out, end->stays);
	usage_fields(&usage, fields);
	for (size_t i = 0; i < USAGE_FIELDS; i++)
		nc_wire_put_u64(out, *fields[i]);
	nc_wire_put_u32(out, end->n_denied);
	for (size_t i = 0; i < end->n_denied; i++) {
		nc_wire_put_u32(out, end->denied[i].call);
		nc_wire_put_u32(out, end->denied[i].count);
	}
}

void nc_boxwire_get_end(struct nc_wire_in *in, struct nc_box_end *ret_end)
{
	struct nc_box_end end = {.id = nc_wire_get_u64(in)};
	uint64_t *fields[USAGE_FIELDS];
	uint8_t cause = nc_wire_get_u8(in);
	uint8_t tier;

	end.code = nc_wire_get_u32(in);
	end.signal = nc_wire_get_u32(in);
	tier = nc_wire_get_u8(in);
	get_grades(in, false, end.held);
	end.alone = nc_wire_get_u8(in) != 0;
	end.hit = nc_wire_get_u32(in);
	end.stays = nc_wire_get_u8(in) != 0;
	usage_fields(&end.usage, fields);
	for (size_t i = 0; i < USAGE_FIELDS; i++)
		*fields[i] = nc_wire_get_u64(in);
	end.n_denied = nc_wire_get_u32(in);
	if (cause >= NC_CAUSE_MAX || tier >= NC_TIER_MAX || end.n_denied > NC_DENIED_MAX) {
		in->error = -EBADMSG;
		return;
	}
	end.cause = cause;
	end.tier = tier;
	for (size_t i = 0; i < end.n_denied; i++) {
		end.denied[i].call = nc_wire_get_u32(in);
		end.denied[i].count = nc_wire_get_u32(in);
	}
	*ret_end = end;
}

static void now_fields(struct nc_box_now *now, uint64_t *fields[10])
{
	fields[0] = &now->id;
	fields[1] = &now->cpu_us;
	fields[2] = &now->memory_bytes;
	fields[3] = &now->memory_peak_bytes;
	fields[4] = &now->pids;
	fields[5] = &now->disk_bytes;
	fields[6] = &now->io_read_bytes;
	fields[7] = &now->io_written_bytes;
	fields[8] = &now->made;
	fields[9] = &now->made_ns;
}

void nc_boxwire_put_now(struct nc_wire_out *out, const struct nc_box_now *now)
{
	struct nc_box_now copy = *now;
	uint64_t *fields[10];

	now_fields(&copy, fields);
	for (size_t i = 0; i < 10; i++)
		nc_wire_put_u64(out, *fields[i]);
	nc_wire_put_u8(out, now->frozen);
	nc_boxwire_put_end(out, &now->so_far);
}

void nc_boxwire_get_now(struct nc_wire_in *in, struct nc_box_now *ret_now)
{
	uint64_t *fields[10];

	now_fields(ret_now, fields);
	for (size_t i = 0; i < 10; i++)
		*fields[i] = nc_wire_get_u64(in);
	ret_now->frozen = nc_wire_get_u8(in) != 0;
	nc_boxwire_get_end(in, &ret_now->so_far);
}
