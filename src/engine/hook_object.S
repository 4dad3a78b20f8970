/* The hook for interpreters (src/inside/python.c), as the build made it, for src/engine/hooks.c. */
	.section .rodata
	.global nc_hook_object
	.global nc_hook_object_end
	.balign 16
nc_hook_object:
	.incbin NC_HOOK_FILE
nc_hook_object_end:
	.byte 0
	.section .note.GNU-stack,"",%progbits
