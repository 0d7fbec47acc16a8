#include "textflag.h"

// func vfork() (result uintptr)
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-8
	MOVD	$0x4111, R0	// CLONE_VFORK|CLONE_VM|SIGCHLD
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$0, R5
	MOVD	$220, R8	// SYS_clone
	SVC
	MOVD	R0, result+0(FP)
	RET
