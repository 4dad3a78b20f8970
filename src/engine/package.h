/* Names of packages in requests. */
#ifndef NC_PACKAGE_H
#define NC_PACKAGE_H

#include <stdbool.h>

/*
 * Whether text names a package of a registry, for pip or npm: "requests", "requests==2.31.0",
 * "uvicorn[standard]>=0.20,<1", "lodash@4.17.21", "@types/node@^20". What an installer would take
 * for a path, an address, an archive or an option is none.
 */
bool nc_package_is_name(const char *text);

#endif
