/*
 * Names of packages: the grammars of pip and npm, without everything in which they are more than a
 * name in a registry.
 *
 *	package := name [extras] [specifiers] | ["@" name "/"] name ["@" [range] version]
 */
#include "engine/package.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/text.h"

static bool is_alnum(char c)
{
	return isascii((unsigned char)c) && isalnum((unsigned char)c);
}

/* What follows a word that begins with a letter or digit and has those and others; NULL: none. */
static const char *skip_word(const char *text, const char *others)
{
	if (!is_alnum(*text))
		return NULL;
	while (*text && (is_alnum(*text) || strchr(others, *text)))
		text++;
	return text;
}

static const char *skip_name(const char *text)
{
	const char *end = skip_word(text, "._-");

	return end && is_alnum(end[-1]) ? end : NULL;
}

static const char *skip_version(const char *text)
{
	return skip_word(text, ".*+!_-");
}

/* "[standard,http2]", or nothing. */
static const char *skip_extras(const char *text)
{
	if (*text != '[')
		return text;
	do
		text = skip_name(text + 1);
	while (text && *text == ',');
	return text && *text == ']' ? text + 1 : NULL;
}

static const char *skip_one_of(const char *text, const char *const *words)
{
	for (; *words; words++) {
		const char *behind = nc_text_after(text, *words);

		if (behind)
			return behind;
	}
	return NULL;
}

/* ">=0.20,<1", of pip. */
static const char *skip_specifiers(const char *text)
{
	/* the longer one first where one begins with another */
	static const char *const operators[] = {
		"===", "==", "~=", "!=", "<=", ">=", "<", ">", NULL};

	for (;;) {
		text = skip_one_of(text, operators);
		text = text ? skip_version(text) : NULL;
		if (!text || *text != ',')
			return text;
		text++;
	}
}

/* "@^20", of npm. */
static const char *skip_range(const char *text)
{
	static const char *const ranges[] = {"^", "~", ">=", "<=", ">", "<", "=", NULL};
	const char *behind = skip_one_of(text + 1, ranges);

	return skip_version(behind ? behind : text + 1);
}

/* Both installers take such a name for a file beside them. */
static bool is_archive(const char *text, size_t size)
{
	static const char *const endings[] = {".whl", ".zip", ".egg", ".tar", ".tgz", ".tbz",
		".txz", ".tlz", ".gz", ".bz2", ".xz", ".lzma", NULL};

	for (const char *const *ending = endings; *ending; ending++) {
		size_t length = strlen(*ending);

		if (size >= length && strcasecmp(text + size - length, *ending) == 0)
			return true;
	}
	return false;
}

bool nc_package_is_name(const char *text)
{
	size_t size = strlen(text);
	bool scoped = text[0] == '@';
	const char *at = text;

	if (size == 0 || size > NC_REQUEST_PACKAGE_MAX || is_archive(text, size))
		return false;
	if (scoped) {
		at = skip_name(at + 1);
		if (!at || *at++ != '/')
			return false;
	}
	at = skip_name(at);
	if (at && !scoped)
		at = skip_extras(at);
	if (at && *at == '@' && at[-1] != ']')
		at = skip_range(at);
	else if (at && *at && !scoped)
		at = skip_specifiers(at);
	return at && *at == '\0';
}
