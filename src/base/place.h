/* Where things are in a box that has a root of its own. */
#ifndef NC_PLACE_H
#define NC_PLACE_H

#define NC_BOX_WORKSPACE "/workspace"
#define NC_BOX_TEMPORARY "/tmp"
/* The name of its usual user, and where root is at home, which only a writable root has. */
#define NC_SANDBOX_USER "sandbox"
#define NC_BOX_ROOT_HOME "/root"
/* Where a box shows its layers, and its image nothing: the number follows. */
#define NC_BOX_LAYER "/opt/nacre/layer"

#endif
