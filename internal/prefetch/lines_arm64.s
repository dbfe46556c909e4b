#include "textflag.h"

// func lines(p *byte, n int)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1
	ADD  R0, R1, R1
	AND  $~63, R0, R0

next:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0, R0
	CMP  R1, R0
	BLO  next
	RET

// func Word(w *atomic.Uint64)
TEXT ·Word(SB), NOSPLIT, $0-8
	MOVD w+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET

// func Byte(p *byte)
TEXT ·Byte(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET
