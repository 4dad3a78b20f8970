/* Whether a program can do its work in one process. */
#include "policy/alone.h"

#include <string.h>

#include "base/text.h"

/*
 * Modules that start no process on their own, whatever of them is called: what programs call of os
 * or child_process itself is seen by the analysis. Python's platform, uuid, ctypes.util, webbrowser
 * and pydoc do start some, and so may everything that is installed.
 */
static const char python_modules[] =
	"__future__ abc argparse array ast base64 bisect calendar cmath codecs collections "
	"configparser contextlib copy csv dataclasses datetime decimal difflib enum errno fnmatch "
	"fractions functools gc getopt glob gzip hashlib heapq hmac html io ipaddress itertools "
	"json "
	"keyword linecache locale math numbers operator os pathlib pprint queue random re secrets "
	"shlex shutil statistics string stringprep struct sys tempfile textwrap threading time "
	"timeit tokenize traceback types typing unicodedata weakref zlib zoneinfo bz2 lzma zipfile";

static const char node_modules[] =
	"assert async_hooks buffer console crypto events fs path perf_hooks process punycode "
	"querystring readline stream string_decoder timers tty url util zlib";

/* Go's and Rust's own modules start processes by one of theirs, which counts as subprocess. */
static const char go_modules[] = "bufio bytes cmp compress container context crypto embed encoding "
				 "errors flag fmt hash html "
				 "io iter log maps math os path reflect regexp slices sort strconv "
				 "strings sync testing text "
				 "time unicode";

static const char rust_modules[] = "std core alloc";

static const char *modules_of(enum nc_language language)
{
	switch (language) {
	case NC_PYTHON:
		return python_modules;
	case NC_JAVASCRIPT:
	case NC_TYPESCRIPT:
		return node_modules;
	case NC_GO:
		return go_modules;
	case NC_RUST:
		return rust_modules;
	case NC_SHELL: /* every command is a process */
	case NC_C:     /* its tokens are not enough */
	case NC_CPP:
	case NC_LANGUAGE_MAX:
	case NC_LANGUAGE_INVALID:
		break;
	}
	return NULL;
}

/* The module's first part is in the list: "os.path", "node:fs/promises", "encoding/json". */
static bool is_known(const char *modules, const char *name)
{
	const char *plain = nc_text_after(name, "node:");
	char first[64];
	size_t size;

	name = plain ? plain : name;
	size = strcspn(name, "./:");
	if (size == 0 || size >= sizeof(first))
		return false;
	memcpy(first, name, size);
	first[size] = '\0';
	return nc_text_has_word(modules, ' ', first);
}

bool nc_report_is_whole(const struct nc_report *report)
{
	size_t count;
	const struct nc_finding *finding = nc_report_findings(report, &count);

	for (size_t i = 0; i < count; i++)
		if (nc_text_after(finding[i].rule, "code.") ||
			nc_text_after(finding[i].rule, "native.") ||
			nc_text_after(finding[i].rule, "analysis."))
			return false;
	return !nc_report_needs(report)->unknown;
}

/* Nothing that was found is about processes: a fork is no subprocess. */
static bool finds_processes(const struct nc_report *report)
{
	size_t count;
	const struct nc_finding *finding = nc_report_findings(report, &count);

	for (size_t i = 0; i < count; i++)
		if (nc_text_after(finding[i].rule, "process."))
			return true;
	return false;
}

bool nc_report_is_alone(const struct nc_report *report, enum nc_language language)
{
	const struct nc_needs *needs = nc_report_needs(report);
	const char *modules = modules_of(language);
	size_t count;
	const struct nc_import *import = nc_report_imports(report, &count);

	if (!modules || needs->subprocess || needs->commands[0] || finds_processes(report) ||
		!nc_report_is_whole(report))
		return false;
	for (size_t i = 0; i < count; i++)
		if (import[i].hidden || !is_known(modules, import[i].name))
			return false;
	return true;
}
