#include "textflag.h"

// func vfork() (result uintptr)
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-8
	MOVQ	$0x4111, DI	// CLONE_VFORK|CLONE_VM|SIGCHLD
	MOVQ	$0, SI
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$0, R9
	MOVQ	$56, AX	// SYS_clone
	POPQ	R12	// the child overwrites the return address
	SYSCALL
	PUSHQ	R12
	MOVQ	AX, result+0(FP)
	RET
