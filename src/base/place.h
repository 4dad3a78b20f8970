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
/* What a box with users has for `sudo`: the program, and the socket in a directory of root's. In
 * /dev, which is ours in every box; /opt may be an image's. */
#define NC_BOX_SUDO_DIR "/dev/nacre"
#define NC_BOX_SUDO_BIN NC_BOX_SUDO_DIR "/bin"
#define NC_BOX_SUDO_PROGRAM NC_BOX_SUDO_BIN "/sudo"
#define NC_BOX_SUDO_RUN NC_BOX_SUDO_DIR "/run"
#define NC_BOX_SUDO_SOCKET NC_BOX_SUDO_RUN "/sudo"

#endif
