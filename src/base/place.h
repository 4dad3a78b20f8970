/* Where things are in a box that has a root of its own. */
#ifndef NC_PLACE_H
#define NC_PLACE_H

#define NC_BOX_WORKSPACE "/workspace"
#define NC_BOX_TEMPORARY "/tmp"
/* Where a box shows its layers, and its image nothing: the number follows. */
#define NC_BOX_LAYER "/opt/nacre/layer"

#endif
