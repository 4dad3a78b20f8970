/* What makes interpreters wait (src/inside/zygote.c, ahead.c, ahead.js), as the build made it, for src/engine/pool.c. */
	.section .rodata
	.global nc_zygote_object
	.global nc_zygote_object_end
	.global nc_ahead_object
	.global nc_ahead_object_end
	.global nc_ahead_script
	.global nc_ahead_script_end
	.balign 16
nc_zygote_object:
	.incbin NC_ZYGOTE_FILE
nc_zygote_object_end:
	.byte 0
	.balign 16
nc_ahead_object:
	.incbin NC_AHEAD_FILE
nc_ahead_object_end:
	.byte 0
nc_ahead_script:
	.incbin NC_AHEAD_SCRIPT
nc_ahead_script_end:
	.byte 0
	.section .note.GNU-stack,"",%progbits
