/* What a zygote says in Python (zygote.py), for zygote.c: a string. */
	.section .rodata
	.global nc_zygote_script
	.hidden nc_zygote_script
nc_zygote_script:
	.incbin NC_SCRIPT_FILE
	.byte 0
	.section .note.GNU-stack,"",%progbits
