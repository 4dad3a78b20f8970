/* The zygote inside of Python (src/inside/zygote.c), as the build made it, for src/engine/pool.c. */
	.section .rodata
	.global nc_zygote_object
	.global nc_zygote_object_end
	.balign 16
nc_zygote_object:
	.incbin NC_ZYGOTE_FILE
nc_zygote_object_end:
	.byte 0
	.section .note.GNU-stack,"",%progbits
