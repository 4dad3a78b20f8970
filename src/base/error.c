/* Filling and wrapping the public error object. */
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char ellipsis[] = "...";

static void mark_cut(char *message, size_t size, int wanted)
{
	if (wanted >= (int)size)
		memcpy(message + size - sizeof(ellipsis), ellipsis, sizeof(ellipsis));
}

static int positive(int code)
{
	return code < 0 ? (int)-(unsigned int)code : code; /* INT_MIN has no counterpart */
}

const char *nc_errno_text(int code)
{
	const char *text = strerrordesc_np(positive(code));

	return text ? text : "Unknown error";
}

const char *nc_errno_name(int code)
{
	const char *name = code ? strerrorname_np(positive(code)) : NULL;

	return name ? name : "E?";
}

int nc_err_set(struct nacre_err *err, int code, const char *format, ...)
{
	va_list arguments;
	int wanted;

	assert(code < 0);
	if (!err)
		return code;
	err->code = code;
	va_start(arguments, format);
	wanted = vsnprintf(err->message, sizeof(err->message), format, arguments);
	va_end(arguments);
	mark_cut(err->message, sizeof(err->message), wanted);
	return code;
}

int nc_err_errno(struct nacre_err *err, int code, const char *format, ...)
{
	char message[NACRE_ERR_MESSAGE_MAX];
	va_list arguments;
	int wanted;

	va_start(arguments, format);
	wanted = vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	mark_cut(message, sizeof(message), wanted);
	return nc_err_set(err, code, "%s: %s", message, nc_errno_text(code));
}

int nc_err_wrap(struct nacre_err *err, const char *format, ...)
{
	char cause[NACRE_ERR_MESSAGE_MAX];
	char context[NACRE_ERR_MESSAGE_MAX];
	va_list arguments;
	int wanted;

	assert(err && err->code < 0);
	memcpy(cause, err->message, sizeof(cause));
	va_start(arguments, format);
	wanted = vsnprintf(context, sizeof(context), format, arguments);
	va_end(arguments);
	mark_cut(context, sizeof(context), wanted);
	return nc_err_set(err, err->code, "%s: %s", context, cause);
}
