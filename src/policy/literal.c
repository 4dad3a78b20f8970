/* Paths and hosts in texts: tables of those that matter, and how they are told from other texts. */
#include "policy/literal.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/place.h"
#include "policy/decode.h"

#define PATH_TEXT_MAX 512U
#define URL_HOST_MAX 253U
/* What may stand in front of "://", and between that and the end of a host. */
#define SCHEME_MAX 64U
#define AUTHORITY_MAX 1024U

/*
 * Paths that say something by themselves. One that begins with '/' is meant with all below it;
 * others are meant wherever they stand behind a '/' or at the beginning.
 */
static const struct {
	const char *path;
	enum nc_rule_id mention; /* found by any use; NC_RULE_NONE: only by writing */
	enum nc_rule_id write;
} paths[] = {
	/* ways out of a container */
	{"/var/run/docker.sock", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/run/docker.sock", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/run/containerd", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/proc/1/root", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/proc/1/ns", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/proc/sys/kernel/core_pattern", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/proc/sys/kernel/modprobe", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/proc/sysrq-trigger", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/sys/kernel/uevent_helper", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/sys/kernel/security", NC_RULE_NONE, NC_RULE_ESCAPE},
	{"/sys/fs/cgroup", NC_RULE_NONE, NC_RULE_ESCAPE},
	{"release_agent", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	{"/etc/ld.so.preload", NC_RULE_ESCAPE, NC_RULE_ESCAPE},
	/* keys and passwords */
	{"/etc/shadow", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{"/etc/gshadow", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{"/etc/sudoers", NC_RULE_CREDENTIALS, NC_RULE_PRIVILEGE},
	{"/etc/sudoers.d", NC_RULE_CREDENTIALS, NC_RULE_PRIVILEGE},
	{"/var/run/secrets", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{"/run/secrets", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".ssh", NC_RULE_CREDENTIALS, NC_RULE_PERSIST},
	{"authorized_keys", NC_RULE_CREDENTIALS, NC_RULE_PERSIST},
	{"id_rsa", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{"id_ed25519", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".aws/credentials", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".aws", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".kube/config", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".docker/config.json", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".config/gcloud", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".netrc", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".git-credentials", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".pgpass", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".gnupg", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".npmrc", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{".pypirc", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{"Login Data", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	{"wallet.dat", NC_RULE_CREDENTIALS, NC_RULE_CREDENTIALS},
	/* other people's secrets in processes */
	{"/proc/self/environ", NC_RULE_ENVIRONMENT, NC_RULE_ENVIRONMENT},
	{"/proc/self/mem", NC_RULE_TRACE, NC_RULE_TRACE},
	{"/proc/1", NC_RULE_ENVIRONMENT, NC_RULE_ENVIRONMENT},
	{"/proc/kcore", NC_RULE_DEVICE, NC_RULE_DEVICE},
	{"/proc/kallsyms", NC_RULE_DEVICE, NC_RULE_DEVICE},
	/* devices */
	{"/dev/mem", NC_RULE_DEVICE, NC_RULE_DEVICE},
	{"/dev/kmem", NC_RULE_DEVICE, NC_RULE_DEVICE},
	{"/dev/port", NC_RULE_DEVICE, NC_RULE_DEVICE},
	{"/dev/kmsg", NC_RULE_DEVICE, NC_RULE_DEVICE},
	{"/dev/kvm", NC_RULE_DEVICE, NC_RULE_DEVICE},
	{"/dev/disk", NC_RULE_DEVICE, NC_RULE_DESTROY},
	{"/dev/mapper", NC_RULE_DEVICE, NC_RULE_DESTROY},
	/* places that programs are started from */
	{"/etc/cron.d", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/etc/crontab", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/etc/cron.hourly", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/etc/cron.daily", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/var/spool/cron", NC_RULE_PERSIST, NC_RULE_PERSIST},
	{"/etc/rc.local", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/etc/profile", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/etc/profile.d", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/etc/init.d", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/etc/systemd", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/lib/systemd", NC_RULE_NONE, NC_RULE_PERSIST},
	{"/usr/lib/systemd", NC_RULE_NONE, NC_RULE_PERSIST},
	{".config/autostart", NC_RULE_NONE, NC_RULE_PERSIST},
	{".config/systemd", NC_RULE_NONE, NC_RULE_PERSIST},
	{".bashrc", NC_RULE_NONE, NC_RULE_PERSIST},
	{".bash_profile", NC_RULE_NONE, NC_RULE_PERSIST},
	{".profile", NC_RULE_NONE, NC_RULE_PERSIST},
	{".zshrc", NC_RULE_NONE, NC_RULE_PERSIST},
	{".git/hooks", NC_RULE_NONE, NC_RULE_PERSIST},
	/* traces */
	{".bash_history", NC_RULE_CREDENTIALS, NC_RULE_COVER_TRACKS},
	{".zsh_history", NC_RULE_CREDENTIALS, NC_RULE_COVER_TRACKS},
	{"/var/log", NC_RULE_NONE, NC_RULE_COVER_TRACKS},
	/* the system */
	{"/etc/passwd", NC_RULE_ACCOUNTS, NC_RULE_PRIVILEGE},
	{"/etc/group", NC_RULE_ACCOUNTS, NC_RULE_PRIVILEGE},
	{"/etc/hosts", NC_RULE_NONE, NC_RULE_SYSTEM_WRITE},
	{"/etc", NC_RULE_NONE, NC_RULE_SYSTEM_WRITE},
	{"/usr", NC_RULE_NONE, NC_RULE_SYSTEM_WRITE},
	{"/bin", NC_RULE_NONE, NC_RULE_SYSTEM_WRITE},
	{"/sbin", NC_RULE_NONE, NC_RULE_SYSTEM_WRITE},
	{"/lib", NC_RULE_NONE, NC_RULE_SYSTEM_WRITE},
	{"/boot", NC_RULE_NONE, NC_RULE_SYSTEM_WRITE},
	{"/proc/sys", NC_RULE_NONE, NC_RULE_ADMIN},
	{"/sys", NC_RULE_NONE, NC_RULE_ADMIN},
};

/* Beginnings of the names of devices that hold file systems. */
static const char *const disks[] = {"/dev/sd", "/dev/nvme", "/dev/vd", "/dev/xvd", "/dev/hd",
	"/dev/mmcblk", "/dev/loop", "/dev/dm-", NULL};

static const char *const roots[] = {"/bin/", "/boot/", "/data/", "/dev/", "/etc/", "/home/",
	"/lib/", "/media/", "/mnt/", "/opt/", "/proc/", "/root/", "/run/", "/sbin/", "/srv/",
	"/sys/", "/tmp/", "/usr/", "/var/", NC_BOX_WORKSPACE "/", NULL};

/* Hosts that hand out a machine's keys, in the ways that they are written to get past filters. */
static const char *const metadata_hosts[] = {"169.254.169.254", "metadata.google.internal",
	"metadata", "100.100.100.200", "fd00:ec2::254", "2852039166", "0xa9fea9fe",
	"0xa9.0xfe.0xa9.0xfe", "169.254.170.2", "instance-data", NULL};

static const char *const miner_words[] = {"stratum+tcp://", "stratum+ssl://", "stratum2+tcp://",
	"xmrig", "cryptonight", "minerd", NULL};

static const char *const local_hosts[] = {
	"localhost", "127.0.0.1", "0.0.0.0", "::1", "::", "[", "", NULL};

static bool is_one_of(const char *const *list, const char *text, size_t size)
{
	for (; *list; list++)
		if (strlen(*list) == size && memcmp(*list, text, size) == 0)
			return true;
	return false;
}

static bool begins_with_one_of(const char *const *list, const char *text, size_t size)
{
	for (; *list; list++)
		if (size >= strlen(*list) && memcmp(*list, text, strlen(*list)) == 0)
			return true;
	return false;
}

/*
 * Writes a path without "//", "/./" and "name/..", as the kernel would go it. Returns its size, or
 * 0 if the text is none: too long, or with control characters.
 */
static size_t normalise(const char *text, size_t size, char out[static PATH_TEXT_MAX])
{
	size_t used = 0;

	if (size == 0 || size >= PATH_TEXT_MAX)
		return 0;
	for (size_t i = 0; i < size;) {
		size_t length = 0;

		while (i + length < size && text[i + length] != '/') {
			if ((unsigned char)text[i + length] < ' ')
				return 0;
			length++;
		}
		if (length == 2 && memcmp(text + i, "..", 2) == 0 && used > 0 && text[0] == '/') {
			while (used > 0 && out[used - 1] != '/')
				used--;
			used -= used > 0;
		} else if (length > 0 && !(length == 1 && text[i] == '.')) {
			if (i > 0)
				out[used++] = '/';
			memcpy(out + used, text + i, length);
			used += length;
		}
		i += length + 1;
	}
	if (used == 0)
		out[used++] = '/';
	return used;
}

/* Whether path is pattern or below it; see the table. */
static bool path_matches(const char *pattern, const char *path, size_t size)
{
	size_t length;

	/* the first characters tell most apart, and there are many patterns */
	if (pattern[0] == '/' && (size < 2 || path[1] != pattern[1] || path[0] != '/'))
		return false;
	if (pattern[0] != '/' && !memchr(path, pattern[0], size))
		return false;
	length = strlen(pattern);
	if (pattern[0] == '/')
		return size >= length && memcmp(path, pattern, length) == 0 &&
		       (size == length || path[length] == '/');
	for (size_t i = 0; i + length <= size; i++) {
		if (i > 0 && path[i - 1] != '/')
			continue;
		if (memcmp(path + i, pattern, length) == 0 &&
			(i + length == size || path[i + length] == '/'))
			return true;
	}
	return false;
}

static bool is_writing(enum nc_access access)
{
	return access == NC_ACCESS_WRITE || access == NC_ACCESS_DELETE;
}

static void judge_path(
	struct nc_scan *scan, uint32_t node, const char *path, size_t size, enum nc_access access)
{
	if (begins_with_one_of(disks, path, size))
		nc_scan_find(scan, is_writing(access) ? NC_RULE_DESTROY : NC_RULE_DEVICE, node,
			path, size);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		enum nc_rule_id rule = is_writing(access) ? paths[i].write : paths[i].mention;

		if (!path_matches(paths[i].path, path, size))
			continue;
		/* the first entry that says anything decides: they go from worse to better */
		if (rule != NC_RULE_NONE) {
			nc_scan_find(scan, rule, node, path, size);
			return;
		}
	}
}

bool nc_literal_is_precious(const char *path, size_t size)
{
	static const char *const whole[] = {"/", "~", "*", "/*", "~/*", "$HOME", ".", "..", "/home",
		"/root", "/etc", "/usr", "/var", "/bin", "/lib", "/boot", "/home/*", "/etc/*",
		"/usr/*", "/var/*", "/*.*", "/.", "--no-preserve-root", NULL};
	static const char *const harmless[] = {"*", ".", "..", NULL};
	char normal[PATH_TEXT_MAX];
	size_t length = normalise(path, size, normal);

	if (length == 0 || is_one_of(harmless, path, size))
		return false;
	return is_one_of(whole, path, size) || is_one_of(whole, normal, length);
}

/* The host of "scheme://user@host:port/path"; 0 if there is none. */
static size_t find_host(const char *text, size_t size, const char **ret_host)
{
	/* a scheme is short, and texts may be long and be looked at often */
	const char *at = memmem(text, size < SCHEME_MAX ? size : SCHEME_MAX, "://", 3);
	size_t length = 0, left;

	if (!at || at == text)
		return 0;
	for (const char *c = text; c < at; c++)
		if (!isalnum((unsigned char)*c) && *c != '+' && *c != '-' && *c != '.')
			return 0;
	at += 3;
	left = size - (size_t)(at - text);
	if (left > AUTHORITY_MAX)
		left = AUTHORITY_MAX;
	for (size_t i = 0; i < left && !strchr("/?# \t\r\n\"'<>", at[i]); i++) {
		length = i + 1;
		if (at[i] == '@') {
			at += i + 1;
			left -= i + 1;
			i = (size_t)-1;
			length = 0;
		}
	}
	for (size_t i = 0; i < length; i++)
		if (at[i] == ':' && at[0] != '[')
			length = i;
	*ret_host = at;
	return length <= URL_HOST_MAX ? length : 0;
}

static void judge_host(struct nc_scan *scan, uint32_t node, const char *host, size_t size)
{
	if (is_one_of(metadata_hosts, host, size))
		nc_scan_find(scan, NC_RULE_METADATA, node, host, size);
	if (memmem(host, size, NC_HOLE, NC_HOLE_SIZE)) {
		scan->report->needs.unknown = true;
		return;
	}
	if (!is_one_of(local_hosts, host, size) && !scan->learning)
		nc_report_host(scan->report, host, size);
}

void nc_literal_host(struct nc_scan *scan, uint32_t node, const struct nc_datum *text)
{
	const char *host;
	size_t size;

	if (text->kind != NC_DATUM_TEXT || text->size == 0) {
		scan->report->needs.unknown = true;
		return;
	}
	size = find_host(text->text, text->size, &host);
	if (size > 0) {
		judge_host(scan, node, host, size);
		return;
	}
	while (size < text->size && text->text[size] != ':' && text->text[size] != '/')
		size++;
	if (size <= URL_HOST_MAX)
		judge_host(scan, node, text->text, size);
}

/* Whether a text is an address of version 4 in its usual form, which nothing else looks like. */
static bool is_address(const char *text, size_t size)
{
	unsigned int parts = 0, digits = 0, value = 0;

	for (size_t i = 0; i < size; i++) {
		if (isdigit((unsigned char)text[i]) && digits < 3) {
			value = value * 10 + (unsigned int)(text[i] - '0');
			digits++;
		} else if (text[i] == '.' && digits > 0 && value < 256) {
			parts++;
			digits = value = 0;
		} else {
			return false;
		}
	}
	return parts == 3 && digits > 0 && value < 256;
}

void nc_literal_judge(
	struct nc_scan *scan, uint32_t node, const struct nc_datum *text, enum nc_access access)
{
	char path[PATH_TEXT_MAX];
	const char *host;
	size_t size;

	if (text->kind != NC_DATUM_TEXT || text->size < 2 || scan->learning)
		return;
	for (const char *const *word = miner_words; *word; word++)
		if (text->size >= strlen(*word) && text->size < PATH_TEXT_MAX &&
			memmem(text->text, text->size, *word, strlen(*word)))
			nc_scan_find_datum(scan, NC_RULE_MINER, node, text);
	size = find_host(text->text, text->size, &host);
	if (size > 0) {
		judge_host(scan, node, host, size);
		return;
	}
	if (is_address(text->text, text->size)) {
		judge_host(scan, node, text->text, text->size);
		return;
	}
	size = normalise(text->text, text->size, path);
	if (size == 0)
		return;
	judge_path(scan, node, path, size, access);
	if (access != NC_ACCESS_MENTION || begins_with_one_of(roots, path, size)) {
		if (text->partial)
			scan->report->needs.unknown = true;
		else
			nc_report_path(scan->report, path, size);
	}
}

void nc_literal_blob(struct nc_scan *scan, uint32_t node, const struct nc_datum *text)
{
	static ssize_t (*const decoders[])(const char *from, size_t size, char *to) = {
		nc_decode_hex, nc_decode_base64};
	char *out;

	/* shorter ones are words; longer ones are data, and folding finds what decodes them */
	if (scan->learning || text->kind != NC_DATUM_TEXT || text->partial || text->size < 24 ||
		text->size > NC_FOLDED_MAX || memchr(text->text, ' ', text->size) || text->decoded)
		return;
	for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++) {
		struct nc_datum code = {.kind = NC_DATUM_TEXT, .decoded = true};
		ssize_t size;

		if (decoders[i] == nc_decode_base64 && strchr("/.-_", text->text[0]))
			continue;
		out = nc_arena_alloc(&scan->arena, text->size + 1);
		if (!out)
			return;
		size = decoders[i](text->text, text->size, out);
		if (size < 12 || !nc_decode_is_readable(out, (size_t)size))
			continue;
		code.text = out;
		code.size = (uint32_t)size;
		nc_scan_queue(scan, scan->job->language, node, &code, true);
		if (scan->job->language != NC_SHELL)
			nc_scan_queue(scan, NC_SHELL, node, &code, true);
		return;
	}
}
