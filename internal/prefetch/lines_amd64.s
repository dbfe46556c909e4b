#include "textflag.h"

// func lines(p *byte, n int)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
	ADDQ AX, CX
	ANDQ $~63, AX

next:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	CMPQ AX, CX
	JCS  next
	RET

// func Word(w *atomic.Uint64)
TEXT ·Word(SB), NOSPLIT, $0-8
	MOVQ w+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func Byte(p *byte)
TEXT ·Byte(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	RET
