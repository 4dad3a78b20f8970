/* Nacre's public C API. Names that begin with nacre_ are public; nothing else is. */
#ifndef NACRE_NACRE_H
#define NACRE_NACRE_H

/* Room for the longest message, with its terminating NUL. */
#define NACRE_ERR_MESSAGE_MAX 1024

/*
 * An error, owned by the caller. It has a fixed size and points nowhere, so that it can live on the
 * stack, be copied, and be sent from one process to another. A function that takes one fills it if
 * and only if it returns a negative value. Zero-initialise it before first use.
 */
struct nacre_err {
	int code; /* the negative errno that the function returned; 0: no error */
	char message[NACRE_ERR_MESSAGE_MAX];
};

#endif
