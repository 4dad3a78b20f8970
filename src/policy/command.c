/* Commands: tables of programs, and what their words mean. */
#include "policy/command.h"

#include <string.h>

#include "policy/lists.h"
#include "policy/literal.h"

/* What is looked at beside the program's name. */
enum check {
	CHECK_NOTHING,
	CHECK_WRAPPER,	/* the command that really runs follows */
	CHECK_WRAPPER1, /* the same, behind one word of its own */
	CHECK_SHELL,	/* -c TEXT */
	CHECK_CODE,	/* -c or -e TEXT of the language that it interprets */
	CHECK_EVAL,	/* all words are code */
	CHECK_DELETE,
	CHECK_DD,
	CHECK_WRITES,	   /* its words are files that it writes */
	CHECK_WRITES_LAST, /* the last one is */
	CHECK_MODE,
	CHECK_KILL,
	CHECK_NETWORK, /* its words are hosts */
	CHECK_NETCAT,
	CHECK_FIND,
	CHECK_PACKAGES, /* only when it installs */
	CHECK_GIT,
	CHECK_HISTORY,
	CHECK_AWK,    /* system() in its program */
	CHECK_TAR,    /* options that run commands */
	CHECK_EDITOR, /* -c ':!COMMAND' */
	CHECK_RSYNC,  /* hosts, and --delete */
	CHECK_HASH,   /* -p PROGRAM gives it another name */
};

struct program {
	const char *name;
	enum check check;
	enum nc_rule_id rule;
};

static const struct program programs[] = {
	{"apk", CHECK_PACKAGES, NC_RULE_NONE},
	{"apt", CHECK_PACKAGES, NC_RULE_NONE},
	{"apt-get", CHECK_PACKAGES, NC_RULE_NONE},
	{"ash", CHECK_SHELL, NC_RULE_NONE},
	{"at", CHECK_NOTHING, NC_RULE_PERSIST},
	{"awk", CHECK_AWK, NC_RULE_NONE},
	{"bash", CHECK_SHELL, NC_RULE_NONE},
	{"batch", CHECK_NOTHING, NC_RULE_PERSIST},
	{"builtin", CHECK_WRAPPER, NC_RULE_NONE},
	{"busybox", CHECK_WRAPPER, NC_RULE_NONE},
	{"capsh", CHECK_NOTHING, NC_RULE_PRIVILEGE},
	{"chattr", CHECK_NOTHING, NC_RULE_PERMISSIONS},
	{"chgrp", CHECK_NOTHING, NC_RULE_PERMISSIONS},
	{"chmod", CHECK_MODE, NC_RULE_NONE},
	{"chown", CHECK_NOTHING, NC_RULE_PERMISSIONS},
	{"chpasswd", CHECK_NOTHING, NC_RULE_PRIVILEGE},
	{"chroot", CHECK_WRAPPER1, NC_RULE_PRIVILEGE},
	{"chrt", CHECK_WRAPPER1, NC_RULE_NONE},
	{"command", CHECK_WRAPPER, NC_RULE_NONE},
	{"coproc", CHECK_WRAPPER, NC_RULE_NONE},
	{"cp", CHECK_WRITES_LAST, NC_RULE_NONE},
	{"crontab", CHECK_NOTHING, NC_RULE_PERSIST},
	{"csh", CHECK_SHELL, NC_RULE_NONE},
	{"curl", CHECK_NETWORK, NC_RULE_NETWORK},
	{"dash", CHECK_SHELL, NC_RULE_NONE},
	{"dd", CHECK_DD, NC_RULE_NONE},
	{"debugfs", CHECK_NOTHING, NC_RULE_ADMIN},
	{"dig", CHECK_NETWORK, NC_RULE_NETWORK},
	{"dnf", CHECK_PACKAGES, NC_RULE_NONE},
	{"doas", CHECK_WRAPPER, NC_RULE_PRIVILEGE},
	{"docker", CHECK_NOTHING, NC_RULE_ADMIN},
	{"env", CHECK_WRAPPER, NC_RULE_NONE},
	{"eval", CHECK_EVAL, NC_RULE_NONE},
	{"ex", CHECK_EDITOR, NC_RULE_NONE},
	{"exec", CHECK_WRAPPER, NC_RULE_NONE},
	{"fdisk", CHECK_NOTHING, NC_RULE_DESTROY},
	{"find", CHECK_FIND, NC_RULE_NONE},
	{"flock", CHECK_WRAPPER1, NC_RULE_NONE},
	{"ftp", CHECK_NETWORK, NC_RULE_NETWORK},
	{"gawk", CHECK_AWK, NC_RULE_NONE},
	{"gdb", CHECK_NOTHING, NC_RULE_TRACE},
	{"git", CHECK_GIT, NC_RULE_NONE},
	{"halt", CHECK_NOTHING, NC_RULE_ADMIN},
	{"hash", CHECK_HASH, NC_RULE_NONE},
	{"history", CHECK_HISTORY, NC_RULE_NONE},
	{"insmod", CHECK_NOTHING, NC_RULE_KERNEL_MODULE},
	{"install", CHECK_WRITES_LAST, NC_RULE_NONE},
	{"ionice", CHECK_WRAPPER, NC_RULE_NONE},
	{"iptables", CHECK_NOTHING, NC_RULE_ADMIN},
	{"kexec", CHECK_NOTHING, NC_RULE_KERNEL_MODULE},
	{"kill", CHECK_KILL, NC_RULE_NONE},
	{"killall", CHECK_NOTHING, NC_RULE_KILL},
	{"ksh", CHECK_SHELL, NC_RULE_NONE},
	{"kubectl", CHECK_NOTHING, NC_RULE_ADMIN},
	{"ln", CHECK_WRITES_LAST, NC_RULE_NONE},
	{"losetup", CHECK_NOTHING, NC_RULE_ADMIN},
	{"lua", CHECK_CODE, NC_RULE_NONE},
	{"masscan", CHECK_NETWORK, NC_RULE_RAW_SOCKET},
	{"mawk", CHECK_AWK, NC_RULE_NONE},
	{"minerd", CHECK_NOTHING, NC_RULE_MINER},
	{"mkfs", CHECK_NOTHING, NC_RULE_DESTROY},
	{"mkfs.ext4", CHECK_NOTHING, NC_RULE_DESTROY},
	{"mkfs.xfs", CHECK_NOTHING, NC_RULE_DESTROY},
	{"mknod", CHECK_NOTHING, NC_RULE_DEVICE},
	{"mkswap", CHECK_NOTHING, NC_RULE_DESTROY},
	{"modprobe", CHECK_NOTHING, NC_RULE_KERNEL_MODULE},
	{"mount", CHECK_NOTHING, NC_RULE_ADMIN},
	{"mv", CHECK_WRITES_LAST, NC_RULE_NONE},
	{"nc", CHECK_NETCAT, NC_RULE_NETWORK},
	{"nc.traditional", CHECK_NETCAT, NC_RULE_NETWORK},
	{"ncat", CHECK_NETCAT, NC_RULE_NETWORK},
	{"netcat", CHECK_NETCAT, NC_RULE_NETWORK},
	{"nice", CHECK_WRAPPER, NC_RULE_NONE},
	{"nmap", CHECK_NETWORK, NC_RULE_RAW_SOCKET},
	{"node", CHECK_CODE, NC_RULE_NONE},
	{"nodejs", CHECK_CODE, NC_RULE_NONE},
	{"nohup", CHECK_WRAPPER, NC_RULE_NONE},
	{"npm", CHECK_PACKAGES, NC_RULE_NONE},
	{"nsenter", CHECK_WRAPPER, NC_RULE_ESCAPE},
	{"nslookup", CHECK_NETWORK, NC_RULE_NETWORK},
	{"nvim", CHECK_EDITOR, NC_RULE_NONE},
	{"parallel", CHECK_WRAPPER, NC_RULE_NONE},
	{"parted", CHECK_NOTHING, NC_RULE_DESTROY},
	{"passwd", CHECK_NOTHING, NC_RULE_PRIVILEGE},
	{"perl", CHECK_CODE, NC_RULE_NONE},
	{"php", CHECK_CODE, NC_RULE_NONE},
	{"ping", CHECK_NETWORK, NC_RULE_NETWORK},
	{"pip", CHECK_PACKAGES, NC_RULE_NONE},
	{"pip3", CHECK_PACKAGES, NC_RULE_NONE},
	{"pivot_root", CHECK_NOTHING, NC_RULE_ESCAPE},
	{"pkexec", CHECK_WRAPPER, NC_RULE_PRIVILEGE},
	{"pkill", CHECK_NOTHING, NC_RULE_KILL},
	{"poweroff", CHECK_NOTHING, NC_RULE_ADMIN},
	{"python", CHECK_CODE, NC_RULE_NONE},
	{"python2", CHECK_CODE, NC_RULE_NONE},
	{"python3", CHECK_CODE, NC_RULE_NONE},
	{"reboot", CHECK_NOTHING, NC_RULE_ADMIN},
	{"rm", CHECK_DELETE, NC_RULE_NONE},
	{"rmmod", CHECK_NOTHING, NC_RULE_KERNEL_MODULE},
	{"rsync", CHECK_RSYNC, NC_RULE_NONE},
	{"ruby", CHECK_CODE, NC_RULE_NONE},
	{"scp", CHECK_NETWORK, NC_RULE_REMOTE_ACCESS},
	{"script", CHECK_WRAPPER, NC_RULE_NONE},
	{"setcap", CHECK_NOTHING, NC_RULE_SETUID_BIT},
	{"setpriv", CHECK_WRAPPER, NC_RULE_PRIVILEGE},
	{"setsid", CHECK_WRAPPER, NC_RULE_NONE},
	{"sftp", CHECK_NETWORK, NC_RULE_REMOTE_ACCESS},
	{"sh", CHECK_SHELL, NC_RULE_NONE},
	{"shred", CHECK_DELETE, NC_RULE_NONE},
	{"shutdown", CHECK_NOTHING, NC_RULE_ADMIN},
	{"socat", CHECK_NETCAT, NC_RULE_NETWORK},
	{"source", CHECK_NOTHING, NC_RULE_NONE},
	{"ssh", CHECK_NETWORK, NC_RULE_REMOTE_ACCESS},
	{"stdbuf", CHECK_WRAPPER, NC_RULE_NONE},
	{"strace", CHECK_WRAPPER, NC_RULE_TRACE},
	{"su", CHECK_SHELL, NC_RULE_PRIVILEGE},
	{"sudo", CHECK_WRAPPER, NC_RULE_PRIVILEGE},
	{"sysctl", CHECK_NOTHING, NC_RULE_ADMIN},
	{"systemctl", CHECK_NOTHING, NC_RULE_ADMIN},
	{"tar", CHECK_TAR, NC_RULE_NONE},
	{"tcpdump", CHECK_NOTHING, NC_RULE_RAW_SOCKET},
	{"tee", CHECK_WRITES, NC_RULE_NONE},
	{"telnet", CHECK_NETWORK, NC_RULE_REMOTE_ACCESS},
	{"time", CHECK_WRAPPER, NC_RULE_NONE},
	{"timeout", CHECK_WRAPPER1, NC_RULE_NONE},
	{"touch", CHECK_WRITES, NC_RULE_NONE},
	{"toybox", CHECK_WRAPPER, NC_RULE_NONE},
	{"truncate", CHECK_WRITES, NC_RULE_NONE},
	{"umount", CHECK_NOTHING, NC_RULE_ADMIN},
	{"unlink", CHECK_DELETE, NC_RULE_NONE},
	{"unshare", CHECK_WRAPPER, NC_RULE_PRIVILEGE},
	{"useradd", CHECK_NOTHING, NC_RULE_PRIVILEGE},
	{"usermod", CHECK_NOTHING, NC_RULE_PRIVILEGE},
	{"vi", CHECK_EDITOR, NC_RULE_NONE},
	{"vim", CHECK_EDITOR, NC_RULE_NONE},
	{"visudo", CHECK_NOTHING, NC_RULE_PRIVILEGE},
	{"watch", CHECK_WRAPPER, NC_RULE_NONE},
	{"wget", CHECK_NETWORK, NC_RULE_NETWORK},
	{"wipefs", CHECK_NOTHING, NC_RULE_DESTROY},
	{"xargs", CHECK_WRAPPER, NC_RULE_NONE},
	{"xmrig", CHECK_NOTHING, NC_RULE_MINER},
	{"yum", CHECK_PACKAGES, NC_RULE_NONE},
	{"zsh", CHECK_SHELL, NC_RULE_NONE},
};

static const struct program *find_program(const char *name, size_t size)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (programs[i].name[0] == name[0] && strlen(programs[i].name) == size &&
			memcmp(programs[i].name, name, size) == 0)
			return &programs[i];
	return NULL;
}

void nc_command_add(struct nc_command *command, uint32_t word)
{
	if (command->count < NC_ARGUMENTS_MAX)
		command->words[command->count++] = word;
	else
		command->more = true;
}

static const struct nc_datum *word_of(
	const struct nc_scan *scan, const struct nc_command *command, uint32_t i)
{
	return nc_datum(&scan->data, i < command->count ? command->words[i] : 0);
}

/* Takes away the first count words. */
static void drop(struct nc_command *command, uint32_t count)
{
	if (count > command->count)
		count = command->count;
	memmove(command->words, command->words + count,
		(command->count - count) * sizeof(command->words[0]));
	command->count -= count;
}

static bool begins(const struct nc_datum *word, const char *text)
{
	return word->kind == NC_DATUM_TEXT && word->size >= strlen(text) &&
	       memcmp(word->text, text, strlen(text)) == 0;
}

/* The name of the first word's program, without the path and the backslash before it. */
static const char *program_name(
	const struct nc_scan *scan, const struct nc_command *command, size_t *ret_size)
{
	const struct nc_datum *word = word_of(scan, command, 0);
	const char *name = word->text, *slash;
	size_t size = word->size;

	if (word->kind != NC_DATUM_TEXT || !name || size == 0)
		return NULL;
	slash = memrchr(name, '/', size);
	if (slash && slash + 1 < name + size) {
		size -= (size_t)(slash + 1 - name);
		name = slash + 1;
	}
	if (memmem(name, size, NC_HOLE, NC_HOLE_SIZE))
		return NULL;
	*ret_size = size;
	return name;
}

/* The letters of wrappers' options that take the next word: env -u NAME, nice -n 5. */
static const struct {
	const char *program;
	const char *letters;
} wrapper_options[] = {
	{"chrt", "TPD"},
	{"doas", "uC"},
	{"env", "uC"},
	{"exec", "a"},
	{"flock", "wE"},
	{"ionice", "cnpPu"},
	{"nice", "n"},
	{"nsenter", "tSG"},
	{"parallel", "jNIa"},
	{"stdbuf", "ioe"},
	{"strace", "eopsuEPbaIOSX"},
	{"sudo", "ugCDhpRTtrU"},
	{"time", "fo"},
	{"timeout", "sk"},
	{"unshare", "SG"},
	{"watch", "n"},
	{"xargs", "ILPnsdEa"},
};

/* Whether an option of a wrapper takes the next word; "-n5" brings its own. */
static bool takes_word(const struct nc_datum *option, const char *program, size_t size)
{
	if (option->size != 2)
		return false;
	for (size_t i = 0; i < sizeof(wrapper_options) / sizeof(wrapper_options[0]); i++)
		if (strlen(wrapper_options[i].program) == size &&
			memcmp(wrapper_options[i].program, program, size) == 0)
			return strchr(wrapper_options[i].letters, option->text[1]);
	return false;
}

/*
 * Takes a wrapper away: its name, its options, NAME=value, and words of its own. Returns how many
 * words there may be besides that belong to long options.
 */
static uint32_t unwrap(const struct nc_scan *scan, struct nc_command *command, uint32_t own,
	const char *program, size_t size)
{
	uint32_t unsure = 0;

	drop(command, 1);
	while (command->count > 0) {
		const struct nc_datum *word = word_of(scan, command, 0);
		bool option = begins(word, "-") && word->size > 1;

		if (begins(word, "--") && word->size > 2 && !memchr(word->text, '=', word->size))
			unsure++;
		if (option)
			drop(command, takes_word(word, program, size) ? 2 : 1);
		else if (word->kind == NC_DATUM_TEXT && memchr(word->text, '=', word->size) &&
			 word->text[0] != '=')
			drop(command, 1);
		else if (own > 0) {
			drop(command, 1);
			own--;
		} else {
			break;
		}
	}
	return unsure;
}

const char *nc_command_program(
	const struct nc_scan *scan, struct nc_command *command, size_t *ret_size)
{
	while (command->count > 0) {
		const char *name = program_name(scan, command, ret_size);
		const struct program *program = name ? find_program(name, *ret_size) : NULL;

		if (!program || command->count == 1 ||
			(program->check != CHECK_WRAPPER && program->check != CHECK_WRAPPER1))
			return name;
		(void)unwrap(scan, command, program->check == CHECK_WRAPPER1, name, *ret_size);
	}
	return NULL;
}

enum nc_language nc_command_interprets(const char *program, size_t size)
{
	if (size >= 6 && memcmp(program, "python", 6) == 0)
		return NC_PYTHON;
	if ((size == 4 && memcmp(program, "node", 4) == 0) ||
		(size == 6 && memcmp(program, "nodejs", 6) == 0))
		return NC_JAVASCRIPT;
	if (size == 2 && memcmp(program, "su", 2) == 0)
		return NC_SHELL;
	if (size >= 2 && size <= 4 && memcmp(program + size - 2, "sh", 2) == 0) {
		const struct program *known = find_program(program, size);

		return known && known->check == CHECK_SHELL ? NC_SHELL : NC_LANGUAGE_INVALID;
	}
	return NC_LANGUAGE_INVALID;
}

/* "python3.11" is python3 to all rules. */
static const struct program *find_versioned(const char *name, size_t size)
{
	const struct program *program = find_program(name, size);

	if (!program && size > 7 && memcmp(name, "python3", 7) == 0)
		program = find_program("python3", 7);
	if (!program && size > 5 && memcmp(name, "mkfs.", 5) == 0)
		program = find_program("mkfs", 4);
	return program;
}

bool nc_command_is_interpreter(const char *program, size_t size)
{
	const struct program *known = find_versioned(program, size);

	return known && (known->check == CHECK_SHELL || known->check == CHECK_CODE);
}

bool nc_command_downloads(const char *program, size_t size)
{
	const struct program *known = find_versioned(program, size);

	return known && (known->check == CHECK_NETWORK || known->check == CHECK_NETCAT ||
				known->check == CHECK_RSYNC);
}

bool nc_command_reads_input(const struct nc_scan *scan, const struct nc_command *command)
{
	for (uint32_t i = 1; i < command->count; i++) {
		const struct nc_datum *word = word_of(scan, command, i);

		if (nc_datum_is_text(word, "-") || nc_datum_is_text(word, "-s") ||
			nc_datum_is_text(word, "/dev/stdin"))
			return true;
		if (!begins(word, "-") || nc_datum_is_text(word, "-c") ||
			nc_datum_is_text(word, "-e") || nc_datum_is_text(word, "-m"))
			return false;
	}
	return true;
}

/* The word behind an option that holds a letter, as -c in "-lc"; nothing if there is none. */
static const struct nc_datum *behind_option(
	const struct nc_scan *scan, const struct nc_command *command, char letter)
{
	for (uint32_t i = 1; i + 1 < command->count; i++) {
		const struct nc_datum *word = word_of(scan, command, i);

		if (begins(word, "-") && !begins(word, "--") &&
			memchr(word->text, letter, word->size))
			return word_of(scan, command, i + 1);
	}
	return nc_datum(&scan->data, 0);
}

/*
 * What languages without a grammar here hand to a shell: system("COMMAND"), as awk, Perl, Ruby, PHP
 * and Lua write it. Returns whether there is one.
 */
static bool queue_system(struct nc_scan *scan, uint32_t node, const struct nc_datum *word)
{
	const char *end = word->text + word->size, *close;
	const char *call =
		word->kind == NC_DATUM_TEXT ? memmem(word->text, word->size, "system(", 7) : NULL;
	struct nc_datum code = *word;

	if (!call || call + 7 >= end)
		return call != NULL;
	code.text = call + 7;
	if (*code.text != '"' && *code.text != '\'')
		return true;
	close = memchr(code.text + 1, *code.text, (size_t)(end - code.text - 1));
	code.size = (uint32_t)((close ? close : end) - ++code.text);
	nc_scan_queue(scan, NC_SHELL, node, &code, true);
	return true;
}

static void check_code(struct nc_scan *scan, uint32_t node, const struct nc_command *command,
	const char *name, size_t size)
{
	enum nc_language language = nc_command_interprets(name, size);
	const struct nc_datum *code = behind_option(scan, command, 'c');

	if (code->kind == NC_DATUM_NONE && language != NC_SHELL && language != NC_PYTHON)
		code = behind_option(scan, command, language == NC_LANGUAGE_INVALID ? 'e' : 'p');
	if (code->kind == NC_DATUM_NONE && language == NC_JAVASCRIPT)
		code = behind_option(scan, command, 'e');
	if (code->kind != NC_DATUM_TEXT)
		return;
	if (code->decoded)
		nc_scan_find_datum(scan, NC_RULE_EVAL_DECODED, node, code);
	if (language >= 0) {
		nc_scan_queue(scan, language, node, code, false);
		return;
	}
	nc_scan_find_datum(scan, NC_RULE_EVAL, node, code);
	(void)queue_system(scan, node, code);
}

/* All words of eval together are code. */
static void check_eval(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	uint32_t all = command->count > 1 ? command->words[1] : 0;
	const struct nc_datum *code;

	for (uint32_t i = 2; i < command->count; i++) {
		uint32_t blank = nc_datum_text(&scan->data, " ", 1);

		all = nc_datum_concat(&scan->data, all, blank);
		all = nc_datum_concat(&scan->data, all, command->words[i]);
	}
	code = nc_datum(&scan->data, all);
	nc_scan_find_datum(scan, code->decoded ? NC_RULE_EVAL_DECODED : NC_RULE_EVAL, node, code);
	nc_scan_queue(scan, NC_SHELL, node, code, false);
}

static void check_delete(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	bool recursive = false, precious = false;

	for (uint32_t i = 1; i < command->count; i++) {
		const struct nc_datum *word = word_of(scan, command, i);

		if (word->kind != NC_DATUM_TEXT)
			continue;
		if (begins(word, "--no-preserve-root"))
			precious = true;
		if (begins(word, "-")) {
			recursive |= memchr(word->text, 'r', word->size) ||
				     memchr(word->text, 'R', word->size);
			continue;
		}
		if (nc_literal_is_precious(word->text, word->size))
			precious = true;
		nc_literal_judge(scan, node, word, NC_ACCESS_DELETE);
	}
	if (recursive)
		nc_scan_find_datum(scan, precious ? NC_RULE_DESTROY : NC_RULE_DELETE, node,
			word_of(scan, command, command->count - 1));
}

static void check_dd(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	for (uint32_t i = 1; i < command->count; i++) {
		struct nc_datum word = *word_of(scan, command, i);

		if (!begins(&word, "of=") && !begins(&word, "if="))
			continue;
		word.text += 3;
		word.size -= 3;
		nc_literal_judge(
			scan, node, &word, word.text[-3] == 'o' ? NC_ACCESS_WRITE : NC_ACCESS_READ);
	}
}

static void check_writes(
	struct nc_scan *scan, uint32_t node, const struct nc_command *command, bool last_only)
{
	for (uint32_t i = last_only ? command->count - 1 : 1; i > 0 && i < command->count; i++)
		if (!begins(word_of(scan, command, i), "-"))
			nc_literal_judge(scan, node, word_of(scan, command, i), NC_ACCESS_WRITE);
}

/* chmod: 4755, u+s and the like make a program that runs as somebody else. */
static void check_mode(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	const struct nc_datum *mode = word_of(scan, command, 1);

	if (begins(mode, "-"))
		mode = word_of(scan, command, 2);
	if (mode->kind == NC_DATUM_TEXT && mode->size > 0 &&
		((mode->size == 4 && mode->text[0] >= '2' && mode->text[0] <= '7') ||
			memmem(mode->text, mode->size, "+s", 2) ||
			memmem(mode->text, mode->size, "+xs", 3)))
		nc_scan_find_datum(scan, NC_RULE_SETUID_BIT, node, mode);
	else
		nc_scan_find_datum(scan, NC_RULE_PERMISSIONS, node, mode);
}

static void check_kill(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	for (uint32_t i = 2; i < command->count; i++)
		if (nc_datum_is_text(word_of(scan, command, i), "-1") ||
			nc_datum_is_text(word_of(scan, command, i), "1")) {
			nc_scan_find_datum(scan, NC_RULE_KILL_ALL, node, word_of(scan, command, i));
			return;
		}
	nc_scan_find_datum(scan, NC_RULE_KILL, node, word_of(scan, command, 1));
}

/* What stands behind a mark at which a word begins, or that is in it, is run by a shell. */
static void queue_behind(
	struct nc_scan *scan, uint32_t node, const struct nc_datum *word, const char *mark)
{
	const char *at = word->kind == NC_DATUM_TEXT
				 ? memmem(word->text, word->size, mark, strlen(mark))
				 : NULL;
	struct nc_datum code = *word;

	if (!at || (at != word->text && *mark != '='))
		return;
	code.text = at + strlen(mark);
	code.size = (uint32_t)(word->text + word->size - code.text);
	nc_scan_queue(scan, NC_SHELL, node, &code, false);
}

static void check_network(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	scan->report->needs.network = true;
	for (uint32_t i = 1; i < command->count; i++) {
		const struct nc_datum *word = word_of(scan, command, i);

		if (word->kind == NC_DATUM_NONE)
			scan->report->needs.unknown = true;
		queue_behind(scan, node, word, "ProxyCommand=");
		queue_behind(scan, node, word, "-oProxyCommand=");
		/* curl -d @FILE, -F name=@FILE: what is sent */
		if (word->kind == NC_DATUM_TEXT && memchr(word->text, '@', word->size)) {
			struct nc_datum file = *word;
			const char *at = memchr(word->text, '@', word->size);

			file.size -= (uint32_t)(at + 1 - file.text);
			file.text = at + 1;
			nc_literal_judge(scan, node, &file, NC_ACCESS_READ);
		}
	}
}

/* A shell behind a connection. */
static void check_netcat(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	check_network(scan, node, command);
	for (uint32_t i = 1; i < command->count; i++) {
		const struct nc_datum *word = word_of(scan, command, i);

		if (word->kind != NC_DATUM_TEXT)
			continue;
		if ((begins(word, "-") && !begins(word, "--") &&
			    (memchr(word->text, 'e', word->size) ||
				    memchr(word->text, 'c', word->size))) ||
			begins(word, "--exec") || begins(word, "--sh-exec") ||
			memmem(word->text, word->size, "EXEC:", 5) ||
			memmem(word->text, word->size, "exec:", 5) ||
			memmem(word->text, word->size, "SYSTEM:", 7))
			nc_scan_find_datum(scan, NC_RULE_REVERSE_SHELL, node, word);
	}
}

/* find / -delete, find -exec COMMAND ; The command inside has fewer words: this ends. */
static void check_find(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	const struct nc_datum *start = word_of(scan, command, 1);

	for (uint32_t i = 1; i < command->count; i++) {
		const struct nc_datum *word = word_of(scan, command, i);
		struct nc_command inner = {0};

		if (nc_datum_is_text(word, "-delete"))
			nc_scan_find_datum(scan,
				start->kind == NC_DATUM_TEXT &&
						nc_literal_is_precious(start->text, start->size)
					? NC_RULE_DESTROY
					: NC_RULE_DELETE,
				node, start);
		if (!begins(word, "-exec") && !begins(word, "-ok"))
			continue;
		for (i++; i < command->count; i++) {
			const struct nc_datum *part = word_of(scan, command, i);

			if (nc_datum_is_text(part, ";") || nc_datum_is_text(part, "+"))
				break;
			/* {} is each file that find found: as precious as where it starts */
			nc_command_add(&inner, nc_datum_is_text(part, "{}") && command->count > 1
						       ? command->words[1]
						       : command->words[i]);
		}
		nc_command_judge(scan, node, &inner);
	}
}

static void check_packages(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	for (uint32_t i = 1; i < command->count && i < 4; i++) {
		const struct nc_datum *word = word_of(scan, command, i);

		if (begins(word, "install") || nc_datum_is_text(word, "add") ||
			nc_datum_is_text(word, "i") || nc_datum_is_text(word, "ci")) {
			nc_scan_find_datum(scan, NC_RULE_PACKAGES, node, word);
			scan->report->needs.network = true;
		}
	}
}

static void check_git(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	static const char *const remote[] = {"clone", "fetch", "pull", "push", "ls-remote", NULL};
	/* settings that are commands, with what stands before these */
	static const char *const runs[] = {"core.pager=", "core.editor=", "core.sshCommand=",
		"core.fsmonitor=", "core.askPass=", "diff.external=", "sequence.editor=",
		"gpg.program=", "credential.helper=!", NULL};
	uint32_t verb_at = 1;

	for (; begins(word_of(scan, command, verb_at), "-"); verb_at++) {
		const struct nc_datum *option = word_of(scan, command, verb_at);

		if (!nc_datum_is_text(option, "-c") && !nc_datum_is_text(option, "-C"))
			continue;
		verb_at++;
		for (const char *const *run = runs; *run; run++)
			queue_behind(scan, node, word_of(scan, command, verb_at), *run);
		if (begins(word_of(scan, command, verb_at), "alias."))
			queue_behind(scan, node, word_of(scan, command, verb_at), "=!");
	}
	for (const char *const *verb = remote; *verb; verb++)
		if (nc_datum_is_text(word_of(scan, command, verb_at), *verb)) {
			nc_scan_find_datum(
				scan, NC_RULE_NETWORK, node, word_of(scan, command, verb_at));
			scan->report->needs.network = true;
		}
}

static void check_tar(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	static const char *const runs[] = {
		"--checkpoint-action=exec=", "--to-command=", "--use-compress-program=",
		"--rsh-command=", "--info-script=", "--new-volume-script=", NULL};

	for (uint32_t i = 1; i < command->count; i++)
		for (const char *const *run = runs; *run; run++)
			queue_behind(scan, node, word_of(scan, command, i), *run);
}

static void check_awk(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	for (uint32_t i = 1; i < command->count; i++)
		if (queue_system(scan, node, word_of(scan, command, i))) {
			nc_scan_find_datum(scan, NC_RULE_SHELL, node, word_of(scan, command, i));
			scan->report->needs.subprocess = true;
		}
}

/* vim -c ':!COMMAND', vim '+!COMMAND' */
static void check_editor(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	for (uint32_t i = 1; i < command->count; i++) {
		queue_behind(scan, node, word_of(scan, command, i), ":!");
		queue_behind(scan, node, word_of(scan, command, i), "+!");
		queue_behind(scan, node, word_of(scan, command, i), "!");
	}
}

static void check_hash(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	for (uint32_t i = 1; i + 1 < command->count; i++)
		if (nc_datum_is_text(word_of(scan, command, i), "-p"))
			nc_scan_find_datum(
				scan, NC_RULE_HIDDEN_NAME, node, word_of(scan, command, i + 1));
}

/* rsync --delete EMPTY/ TO: nothing is left there. */
static void check_rsync(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	const struct nc_datum *to = word_of(scan, command, command->count - 1);

	check_network(scan, node, command);
	for (uint32_t i = 1; i < command->count; i++)
		if (begins(word_of(scan, command, i), "--del"))
			nc_scan_find_datum(scan,
				to->kind == NC_DATUM_TEXT &&
						nc_literal_is_precious(to->text, to->size)
					? NC_RULE_DESTROY
					: NC_RULE_DELETE,
				node, to);
}

static void check_words(struct nc_scan *scan, uint32_t node, const struct nc_command *command,
	enum check check, const char *name, size_t size)
{
	switch (check) {
	case CHECK_SHELL:
	case CHECK_CODE:
		check_code(scan, node, command, name, size);
		break;
	case CHECK_EVAL:
		check_eval(scan, node, command);
		break;
	case CHECK_DELETE:
		check_delete(scan, node, command);
		break;
	case CHECK_DD:
		check_dd(scan, node, command);
		break;
	case CHECK_WRITES:
	case CHECK_WRITES_LAST:
		check_writes(scan, node, command, check == CHECK_WRITES_LAST);
		break;
	case CHECK_MODE:
		check_mode(scan, node, command);
		break;
	case CHECK_KILL:
		check_kill(scan, node, command);
		break;
	case CHECK_NETWORK:
		check_network(scan, node, command);
		break;
	case CHECK_NETCAT:
		check_netcat(scan, node, command);
		break;
	case CHECK_FIND:
		check_find(scan, node, command);
		break;
	case CHECK_PACKAGES:
		check_packages(scan, node, command);
		break;
	case CHECK_GIT:
		check_git(scan, node, command);
		break;
	case CHECK_AWK:
		check_awk(scan, node, command);
		break;
	case CHECK_TAR:
		check_tar(scan, node, command);
		break;
	case CHECK_EDITOR:
		check_editor(scan, node, command);
		break;
	case CHECK_RSYNC:
		check_rsync(scan, node, command);
		break;
	case CHECK_HASH:
		check_hash(scan, node, command);
		break;
	case CHECK_HISTORY:
		if (command->count > 1)
			nc_scan_find_datum(
				scan, NC_RULE_COVER_TRACKS, node, word_of(scan, command, 1));
		break;
	case CHECK_NOTHING:
	case CHECK_WRAPPER:
	case CHECK_WRAPPER1:
		break;
	}
}

/* env -S TEXT: the text is a command with its words. */
static void check_split(struct nc_scan *scan, uint32_t node, const struct nc_command *command,
	const char *name, size_t size)
{
	if (size != 3 || memcmp(name, "env", 3) != 0)
		return;
	nc_scan_queue(scan, NC_SHELL, node, behind_option(scan, command, 'S'), false);
	for (uint32_t i = 1; i < command->count; i++) {
		queue_behind(scan, node, word_of(scan, command, i), "-S");
		queue_behind(scan, node, word_of(scan, command, i), "--split-string=");
	}
}

void nc_command_judge(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	struct nc_command rest = *command;
	uint32_t unsure = 0; /* words that may belong to a wrapper */

	if (scan->learning || scan->unrolling)
		return;
	if (rest.more)
		nc_scan_cut(scan);
	/* each turn takes at least one word away */
	while (rest.count > 0) {
		size_t size = 0;
		const char *name = program_name(scan, &rest, &size);
		const struct program *program;

		if (!name) {
			scan->report->needs.unknown = true;
			nc_scan_find_datum(
				scan, NC_RULE_RUN_UNKNOWN, node, word_of(scan, &rest, 0));
			return;
		}
		nc_report_command(scan->report, name, size);
		nc_lists_command(scan, node, name, size);
		if (word_of(scan, &rest, 0)->decoded)
			nc_scan_find(scan, NC_RULE_HIDDEN_NAME, node, name, size);
		program = find_versioned(name, size);
		/* watch 'a b', flock FILE -c 'a b': a shell takes it apart */
		if (!program && rest.count < command->count && memchr(name, ' ', size))
			nc_scan_queue(scan, NC_SHELL, node, word_of(scan, &rest, 0), true);
		if (!program && unsure > 0) {
			unsure--;
			drop(&rest, 1);
			continue;
		}
		if (!program)
			return;
		nc_scan_find(scan, program->rule, node, name, size);
		if (program->check != CHECK_WRAPPER && program->check != CHECK_WRAPPER1) {
			check_words(scan, node, &rest, program->check, name, size);
			return;
		}
		check_split(scan, node, &rest, name, size);
		unsure += unwrap(scan, &rest, program->check == CHECK_WRAPPER1, name, size);
	}
}
