/* Random bytes and names that nobody can guess, all straight from the kernel. */
#ifndef NC_ID_H
#define NC_ID_H

#include <stddef.h>

/* Fills data from getrandom(). 0 or -errno. */
int nc_random(void *data, size_t size);

/* 36 characters and a NUL. */
#define NC_UUID_SIZE 37

/* A random UUID (version 4), as text. */
int nc_uuid(char out[static NC_UUID_SIZE]);

/* Two characters of kind, '_', 32 hexadecimal digits (128 bits), a NUL. */
#define NC_ID_SIZE 36

/* A fresh id such as "bx_0123456789abcdef0123456789abcdef"; kind is two characters. */
int nc_id_new(const char *kind, char out[static NC_ID_SIZE]);

#endif
